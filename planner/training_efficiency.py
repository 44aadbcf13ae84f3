"""Attained shares of an accelerator's peak in training, by class of accelerator, precision and kind of model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from catalog.types import Accelerator
from planner.training_job import TrainingJob

_DATA = Path(__file__).parent / "data" / "training_efficiency.json"
# Share of the 16-bit peak that flash attention attains (causal FLOPs).
_ATTENTION = {
    ("triton", "a100"): 0.34,
    ("triton", "hopper"): 0.20,
    ("current", "a100"): 0.50,
    ("current", "hopper"): 0.35,
    ("cudnn", "hopper"): 0.45,
    ("cudnn", "blackwell"): 0.45,
    ("cudnn", "tpu"): 0.40,
}
_LAUNCH_S = {"eager": 2.0e-3, "fused": 0.6e-3, "graph": 0.15e-3}
_ELEMENTWISE = {"eager": 400.0, "fused": 250.0, "graph": 200.0}
_EAGER_LINEAR = {"eager": 0.88, "fused": 1.0, "graph": 1.0}


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What one class of accelerator attains. Shares of dense peak; `bandwidth` in bytes per second, attained."""

    kind: str
    half: float
    eighth: float
    bandwidth: float
    source: str

    def matmul_share(self, job: TrainingJob) -> float:
        """Share of peak of the linear layers."""
        share = self.eighth if job.precision in {"fp8", "nvfp4"} and job.accelerator.fp8_tflops else self.half
        share *= _EAGER_LINEAR[job.framework.kernels]
        if job.model.is_moe:
            share *= moe_factor(job)
        return share

    def launch_s(self, job: TrainingJob) -> float:
        """Seconds of launching one layer's kernels, forward and backward."""
        return _LAUNCH_S[job.framework.kernels]

    def elementwise_bytes(self, job: TrainingJob) -> float:
        """Bytes per token, layer and channel of everything that is not a matrix product, forward and backward."""
        return _ELEMENTWISE[job.framework.kernels]


def moe_factor(job: TrainingJob) -> float:
    """Grouped expert products against dense ones: narrow experts fill the tensor cores worse."""
    width = job.model.moe_intermediate or job.model.intermediate
    return width / (width + 1500.0)


@cache
def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_DATA.read_text(encoding="utf-8"))["matmul"]
    return rows


def accelerator_kind(accelerator: Accelerator) -> str:
    """The class of an accelerator in the efficiency table."""
    architecture = accelerator.architecture.casefold()
    capability = accelerator.compute_capability
    if accelerator.vendor.casefold() == "google":
        return "tpu"
    if accelerator.vendor.casefold() == "amd":
        return "cdna" if capability.startswith("gfx9") else "other"
    if capability == "8.0":
        return "a100"
    if capability == "9.0" or "hopper" in architecture:
        return "hopper"
    if capability.startswith("10."):
        return "blackwell"
    if capability[:2] in {"8.", "12"}:
        return "consumer"
    return "other"


@cache
def efficiency(accelerator: Accelerator) -> Efficiency:
    """The row of an accelerator's class; 80 % of its memory bandwidth counts."""
    kind = accelerator_kind(accelerator)
    row = next(r for r in _rows() if r["match"] == kind)
    bandwidth = (accelerator.memory_bandwidth_gb_s or 300.0) * 1e9 * 0.8
    return Efficiency(kind, row["half"], row["eighth"], bandwidth, row["source"])


def attention_share(job: TrainingJob, table: Efficiency) -> float:
    """Share of the 16-bit peak in attention; without flash attention it is bound by memory and far lower."""
    share = _ATTENTION.get((job.framework.attention_share, table.kind), 0.35)
    return share if job.flash_attention else 0.3 * share


def peak_tflops(accelerator: Accelerator, precision: str) -> float:
    """Dense peak at a precision, falling back to the next wider one that the accelerator has."""
    ladder = {
        "fp8": (accelerator.fp8_tflops, accelerator.bf16_tflops, accelerator.fp16_tflops),
        "nvfp4": (accelerator.fp4_tflops, accelerator.fp8_tflops, accelerator.bf16_tflops),
        "fp32": (accelerator.tf32_tflops, accelerator.fp32_tflops),
        "fp16": (accelerator.fp16_tflops, accelerator.bf16_tflops),
    }.get(precision, (accelerator.bf16_tflops, accelerator.fp16_tflops))
    for value in (*ladder, accelerator.fp32_tflops):
        if value:
            return value
    return 10.0
