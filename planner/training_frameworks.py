"""Training frameworks by class: how much of the loss and of each layer they keep, and how they store states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Regime = Literal["mixed18", "mixed16", "amp32", "pure16", "fp32"]
_DATA = Path(__file__).parent / "data" / "training_frameworks.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One class of training software; a row of `data/training_frameworks.json`, which carries its source.

    `logits_bytes` are bytes per token and vocabulary entry alive at the loss, divided by `loss_chunks` where the loss
    is computed in pieces. `kept` is the share of a plain layer's saved activations that its kernels keep.
    `regime` names the bytes per parameter of full training in 16 bit (see `training_states`). `attention_share` and
    `kernels` name rows of `data/training_efficiency.json`. `causal_flops`: reports attention arithmetic halved.
    """

    name: str
    logits_bytes: float
    norms_in_fp32: bool
    kept: float
    loss_chunks: int
    regime: Regime
    quantised_head_upcast: bool
    double_quant: bool
    default_checkpointing: str
    attention_share: str
    kernels: str
    causal_flops: bool
    source: str


@cache
def frameworks() -> Mapping[str, Framework]:
    """Every framework class by name and by alias, lower case."""
    rows = json.loads(_DATA.read_text(encoding="utf-8"))["frameworks"]
    table: dict[str, Framework] = {}
    for row in rows:
        aliases = row.pop("aliases")
        framework = Framework(**row)
        for name in (framework.name, *aliases):
            table[name] = framework
    return table


def framework_class(name: str | None) -> tuple[Framework, bool]:
    """The class of a framework name, and whether the name was recognised; unnamed and unknown ones are plain."""
    table = frameworks()
    if name is None:
        return table["plain"], True
    found = table.get(name.strip().casefold())
    return (found, True) if found else (table["plain"], False)
