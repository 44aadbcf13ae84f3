"""Bytes per parameter of a training job: base weights, gradients, optimizer states, adapters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import nearest
from planner.request import RequestError
from planner.training_frameworks import Framework, Regime

# Bytes of one base parameter. NF4 holds 4 bits and an fp32 scale per 64 weights (0.5 bit); double quantisation brings
# the scales to 0.127 bit (QLoRA, https://arxiv.org/abs/2305.14314). GPTQ and AWQ hold a 16-bit scale and a 4-bit zero
# per 128 weights.
BASE_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0 + 2 / 4096,
    "nf4": 0.5 + 0.5 / 8,
    "nf4-dq": 0.5 + 0.127 / 8,
    "int4": 0.5 + 0.5 / 8,
    "gptq": 0.5 + 20 / 128 / 8,
    "awq": 0.5 + 20 / 128 / 8,
    "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
}
_ALIASES = {
    "none": "none",
    "bnb.nf4": "nf4",
    "bnb.nf4-dq": "nf4-dq",
    "4bit": "nf4",
    "fp4": "nf4",
    "8bit": "int8",
    "hqq": "int4",
    "mxfp8": "fp8",
}
QUANTISED = frozenset(BASE_BYTES) - {"fp32", "bf16", "fp16"}


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes per trained parameter."""

    weights: float
    gradients: float
    optimizer: float


# Weights, gradients, optimizer with its master copy, for AdamW (two fp32 moments = 8 of the optimizer's bytes).
# 18 and 8: https://github.com/stas00/ml-engineering/tree/master/training/performance; 16: ZeRO,
# https://arxiv.org/abs/1910.02054 section 3.1; amp32: fp32 parameters, 16-bit only while a layer computes.
_REGIMES: Mapping[Regime, StateBytes] = {
    "mixed18": StateBytes(2, 4, 12),
    "mixed16": StateBytes(2, 2, 12),
    "amp32": StateBytes(4, 4, 8),
    "pure16": StateBytes(2, 2, 4),
    "fp32": StateBytes(4, 4, 8),
}
# Bytes of moments per parameter, full precision. Paged states live in host memory and come when there is room.
_MOMENTS: Mapping[str, float] = {
    "adamw": 8,
    "adam": 8,
    "adamw_8bit": 2,
    "paged_adamw": 0,
    "paged_adamw_8bit": 0,
    "adafactor": 4,
    "lion": 4,
    "lion_8bit": 1,
    "paged_lion_8bit": 0,
    "sgd": 0,
    "sgd_momentum": 4,
    "muon": 4,
}
_OPTIMIZER_ALIASES = {
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "adamw_hf": "adamw",
    "adamw_apex_fused": "adamw",
    "adamw_bnb_8bit": "adamw_8bit",
    "adamw8bit": "adamw_8bit",
    "adam_8bit": "adamw_8bit",
    "adamw_paged": "paged_adamw",
    "paged_adamw_32bit": "paged_adamw",
    "pagedadamw8bit": "paged_adamw_8bit",
    "distributed_adam": "adamw",
}
PAGED_MOMENTS: Mapping[str, float] = {"paged_adamw": 8, "paged_adamw_8bit": 2, "paged_lion_8bit": 1}
_EIGHT_BIT = frozenset({"adamw_8bit", "lion_8bit"})
_FULL_MOMENTS = 8.0


def canonical_optimizer(name: str) -> str:
    """The optimizer's name in this module.

    Raises:
        RequestError: not a known optimizer; the nearest ones are named.
    """
    key = name.strip().casefold().replace("-", "_")
    key = _OPTIMIZER_ALIASES.get(key, key)
    if key in _MOMENTS:
        return key
    close = nearest(key, _MOMENTS)
    raise RequestError("bad_value", f"unknown optimizer {name!r}; known: {', '.join(sorted(_MOMENTS))}", close)


def base_format(method: str, quant: str | None, precision: str, framework: Framework) -> str:
    """The format of the base weights: what `quant` names, else 4 bit for QLoRA, else the precision of the run.

    Raises:
        RequestError: a format this module does not know.
    """
    sixteen = {"fp8": "bf16", "nvfp4": "bf16"}.get(precision, precision)
    text = (quant or ("nf4" if method == "qlora" else "none")).strip().casefold()
    text = _ALIASES.get(text, text)
    if method not in {"lora", "qlora"} or text == "none":
        text = sixteen
    if text == "nf4" and framework.double_quant:
        text = "nf4-dq"
    if text not in BASE_BYTES:
        close = nearest(text, BASE_BYTES)
        raise RequestError("bad_value", f"unknown training format {text!r}; known: {', '.join(BASE_BYTES)}", close)
    return text


def state_bytes(regime: Regime, optimizer: str, precision: str) -> StateBytes:
    """Bytes per trained parameter of full training with `optimizer`.

    Args:
        regime: how the framework keeps 16-bit training; replaced by fp32 when the run itself is fp32.
        optimizer: any spelling that `canonical_optimizer` accepts.
        precision: precision of the run.
    """
    row = _REGIMES["fp32" if precision == "fp32" else regime]
    name = canonical_optimizer(optimizer)
    moments = _MOMENTS[name]
    if regime == "pure16" and precision != "fp32":
        scale = 1.0 if name in _EIGHT_BIT else 0.5
        return StateBytes(row.weights, row.gradients, moments * scale)
    return StateBytes(row.weights, row.gradients, row.optimizer - _FULL_MOMENTS + moments)


def adapter_bytes(optimizer: str) -> StateBytes:
    """Bytes per adapter parameter: fp32 weights and gradients, and the optimizer's moments (16 with AdamW)."""
    return StateBytes(4, 4, _MOMENTS[canonical_optimizer(optimizer)])
