"""Serving engines as data: how each, by version, divides a card's memory. Rows and sources: `data/engines.csv`."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Literal

from catalog.types import Accelerator
from planner.datafiles import data_rows

MemoryRule = Literal["share_of_card", "static_share", "share_of_free", "allocated"]
_LATEST = (9999,)
_UNSTATED = "unstated"
NEWEST = "9999"
# Cards of 70 GiB and more get the large defaults, except the A100 (vllm/engine/arg_utils.py).
_LARGE_CARD_GIB = 70.0
# SGLang's defaults by memory tier in GiB: chunked prefill tokens and largest captured batch (server_args.py).
_SGLANG_TIERS = ((20, 2048, 8), (35, 2048, 24), (60, 4096, 32), (90, 8192, 256), (160, 8192, 256), (10_000, 16384, 512))
_MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True)
class EngineRule:
    """The memory habits of one engine from one version on; sizes in GiB per GPU, `sampler_bytes` per logit."""

    engine: str
    memory_rule: MemoryRule
    utilization: float
    large_sequences: int
    small_sequences: int
    large_batched: int
    small_batched: int
    chunked_prefill: bool
    sampler_bytes: float
    hidden_factor: float
    context_gib: float
    tensor_parallel_gib: float
    graph_base_gib: float
    graph_layer_gib: float
    page_tokens: int
    vendors: frozenset[str]
    minimum_capability: float
    source: str
    fused_experts: bool = True

    def is_large(self, gpu: Accelerator) -> bool:
        """Whether the engine takes its defaults for large cards."""
        return gpu.memory_gib_usable >= _LARGE_CARD_GIB and gpu.family not in {"a100", "a800"}

    def max_sequences(self, gpu: Accelerator) -> int:
        """Sequences that the engine schedules at once by default."""
        return self.large_sequences if self.is_large(gpu) else self.small_sequences

    def batched_tokens(self, gpu: Accelerator, context: int) -> int:
        """Tokens of one scheduling step by default; without chunked prefill a whole prompt."""
        if not self.chunked_prefill:
            return max(context, 2048) if self.engine == "vllm" else context
        return self.large_batched if self.is_large(gpu) else self.small_batched

    def static_share(self, gpu_gib: float, world: int) -> float:
        """SGLang's default fraction for weights and cache (sglang/srt/server_args.py): the card less its reserve."""
        tokens, batch = next((t, b) for limit, t, b in _SGLANG_TIERS if gpu_gib < limit)
        reserve_mib = 512 + 1.5 * tokens + 128 * world + 2 * batch
        if gpu_gib > 60:
            reserve_mib = max(reserve_mib, 10 * _MIB_PER_GIB)
        return max(0.5, 1 - reserve_mib / _MIB_PER_GIB / gpu_gib)


@functools.lru_cache(maxsize=256)
def engine_rule(engine: str, version: str | None) -> EngineRule:
    """The newest row of an engine that is not newer than `version`; without a version the row for that case."""
    wanted = parse_version(version)
    rows = [row for row in data_rows("engines.csv") if row["engine"] == engine]
    unstated = [row for row in rows if row["from_version"] == _UNSTATED]
    dated = [row for row in rows if row["from_version"] != _UNSTATED]
    day = _build_date(version)
    if unstated and version is None:
        row = unstated[0]
    elif day:
        row = [r for r in dated if r["from_date"] <= day or r is dated[0]][-1]
    else:
        row = [r for r in dated if parse_version(r["from_version"]) <= wanted][-1]
    return EngineRule(
        engine=engine,
        memory_rule=row["memory_rule"],  # type: ignore[arg-type]
        utilization=float(row["utilization"]),
        large_sequences=int(row["large_sequences"]),
        small_sequences=int(row["small_sequences"]),
        large_batched=int(row["large_batched"]),
        small_batched=int(row["small_batched"]),
        chunked_prefill=row["chunked_prefill"] == "true",
        sampler_bytes=float(row["sampler_bytes"]),
        hidden_factor=float(row["hidden_factor"]),
        context_gib=float(row["context_gib"]),
        tensor_parallel_gib=float(row["tensor_parallel_gib"]),
        graph_base_gib=float(row["graph_base_gib"]),
        graph_layer_gib=float(row["graph_layer_gib"]),
        page_tokens=int(row["page_tokens"]),
        vendors=frozenset(row["vendors"].split()),
        minimum_capability=float(row["minimum_capability"]),
        source=row["source"],
        fused_experts=engine != "vllm" or row["from_version"] != "0",
    )


def _build_date(version: str | None) -> str:
    """The year and month that stand for a version, such as 2024-11; '' if the version is not a date."""
    found = re.match(r"20\d\d-\d\d", (version or "").strip())
    return found[0] if found else ""


def parse_version(version: str | None) -> tuple[int, ...]:
    """A version as numbers. Names without one (nightly builds) and years count as the latest."""
    found = re.match(r"[vb]?(\d+)((?:\.\d+)*)", (version or "").strip())
    if not found:
        return _LATEST
    numbers = tuple(int(part) for part in (found[1] + found[2]).split("."))
    return _LATEST if numbers[0] >= 2000 else numbers
