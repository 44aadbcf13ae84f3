"""Attained shares of an accelerator's peak in training, by class of accelerator, precision and kind of model."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from catalog.types import Accelerator
from planner.training_job import TrainingJob

_DATA = Path(__file__).parent / "data" / "training_efficiency.json"
# Share of the 16-bit peak that flash attention attains (causal FLOPs).
_ATTENTION = {
    ("triton", "a100"): 0.33,
    ("triton", "hopper"): 0.185,
    ("current", "a100"): 0.68,
    ("current", "hopper"): 0.35,
    ("current", "consumer"): 0.60,
    ("cudnn", "hopper"): 0.30,
    ("cudnn", "blackwell"): 0.30,
    ("cudnn", "blackwell-ultra"): 0.30,
    ("cudnn", "tpu"): 0.40,
    ("cudnn", "tpu-starved"): 0.30,
}
# Linear layers of a framework that runs plain modules one by one against fused ones; without adapters on H100 33 % MFU
# against 39 % compiled (https://github.com/pytorch/torchtitan/blob/main/docs/performance.md).
_EAGER = 0.72
# Split matrices (tensor parallelism, sharded vocabulary) attain less in 16 bit: 41 to 48 % MFU on H100 from 2B to 175B,
# 38 to 43 % for 405B (https://github.com/NVIDIA/Megatron-LM, https://arxiv.org/abs/2407.21783).
_MEGATRON_HALF = 0.88
# Grouped expert products in 16 bit against those in 8 bit, relative to dense layers.
_GROUPED_HALF = 0.78
_MEGATRON_KINDS = frozenset({"a100", "hopper", "blackwell", "blackwell-ultra"})
# Seconds per layer and micro-batch of launches and hooks; bytes per token, layer and channel of all that is not a
# matrix product, forward and backward; by how the framework runs its kernels.
_LAUNCH_S = {"eager": 2.4e-3, "fused": 4.5e-3, "graph": 0.45e-3, "triton": 1.4e-3}
_ELEMENTWISE = {"eager": 375.0, "fused": 190.0, "graph": 120.0, "triton": 350.0}
# Peak FLOPs per byte of memory bandwidth above which a TPU's matrix units wait (v6e: 560, v5p: 166).
_STARVED_FLOPS_PER_BYTE = 400.0
# Peak FLOPs per byte of memory bandwidth up to which a GDDR card's tensor cores are kept busy.
_FED_FLOPS_PER_BYTE = 250.0
# Extra bytes per token, layer and channel of a Mamba or linear-attention layer (its scan).
_STATE_LAYER_BYTES = 400.0
# Expert width at which grouped products attain half of what dense ones do.
_NARROW_EXPERT = 170.0
# Bytes per token, routed expert and channel of one layer's permutation, casts and gating, forward and backward.
_ROUTING_BYTES = 18.0
# Seconds per expert layer that routing on the host adds.
_ROUTING_S = 4.2e-3
# The same on machines of 8 GPUs, against racks whose 72 GPUs share one NVLink domain.
_SMALL_DOMAIN = 1.2


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What one class of accelerator attains. Shares of dense peak; `bandwidth` in bytes per second, attained.

    `eager` and `eager_full` are what modules run one by one leave of it, with adapters beside them and without.
    """

    kind: str
    half: float
    eighth: float
    eager: float
    eager_full: float
    bandwidth: float
    source: str

    def matmul_share(self, job: TrainingJob) -> float:
        """Share of peak of the linear layers."""
        narrow = job.precision in {"fp8", "nvfp4"} and bool(job.accelerator.fp8_tflops)
        share = (self.eighth if narrow else self.half) * fed_share(job.accelerator)
        if job.framework.kernels == "eager":
            share *= self.eager if job.adapters else self.eager_full
        elif job.framework.kernels == "graph" and not narrow and self.kind in _MEGATRON_KINDS:
            share *= _MEGATRON_HALF * (_GROUPED_HALF if job.model.is_moe else 1.0)
        if job.model.is_moe:
            share *= moe_factor(job)
        return share

    def launch_s(self, job: TrainingJob) -> float:
        """Seconds of launching one layer's kernels, forward and backward."""
        return _LAUNCH_S[job.framework.kernels]

    def elementwise_bytes(self, job: TrainingJob) -> float:
        """Bytes per token, layer and channel of everything that is not a matrix product, forward and backward."""
        states = _STATE_LAYER_BYTES * job.model.state_layers / job.model.layers
        return _ELEMENTWISE[job.framework.kernels] + states


def routing_seconds(job: TrainingJob, table: Efficiency) -> float:
    """Permuting tokens to experts and back, in all expert layers of one pipeline stage."""
    model = job.model
    if not model.is_moe:
        return 0.0
    moved = _ROUTING_BYTES * max(model.experts_per_token, 1) * model.hidden * job.micro_tokens / job.tp
    host = 0.0 if table.kind.startswith("tpu") else _ROUTING_S
    slower = 1.0 if "72-GPU" in job.accelerator.link or not host else _SMALL_DOMAIN
    return slower * model.moe_layers / job.pp * (moved / table.bandwidth + host)


def moe_factor(job: TrainingJob) -> float:
    """Grouped expert products against dense ones: narrow experts fill the tensor cores worse."""
    width = job.model.moe_intermediate or job.model.intermediate
    return width / (width + _NARROW_EXPERT)


@cache
def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_DATA.read_text(encoding="utf-8"))["matmul"]
    return rows


def accelerator_kind(accelerator: Accelerator) -> str:
    """The class of an accelerator in the efficiency table."""
    architecture = accelerator.architecture.casefold()
    capability = accelerator.compute_capability
    if accelerator.vendor.casefold() == "google":
        fed = (accelerator.bf16_tflops or 1.0) * 1e3 / (accelerator.memory_bandwidth_gb_s or 1.0)
        return "tpu" if fed < _STARVED_FLOPS_PER_BYTE else "tpu-starved"
    if accelerator.vendor.casefold() == "amd":
        return "cdna" if capability.startswith("gfx9") else "other"
    if capability == "8.0":
        return "a100"
    if capability == "9.0" or "hopper" in architecture:
        return "hopper"
    if capability.startswith("10."):
        return "blackwell" if capability == "10.0" else "blackwell-ultra"
    if capability[:2] in {"8.", "12"}:
        return "consumer"
    return "other"


@cache
def efficiency(accelerator: Accelerator) -> Efficiency:
    """The row of an accelerator's class; 80 % of its memory bandwidth counts."""
    kind = accelerator_kind(accelerator)
    row = next(r for r in _rows() if r["match"] == kind)
    bandwidth = (accelerator.memory_bandwidth_gb_s or 300.0) * 1e9 * 0.8
    eager = row.get("eager", _EAGER)
    return Efficiency(kind, row["half"], row["eighth"], eager, row.get("eager_full", eager), bandwidth, row["source"])


def fed_share(accelerator: Accelerator) -> float:
    """How far a GDDR card's memory keeps its tensor cores busy: 1 up to 250 peak FLOPs per byte, less above.

    The calibration cards lie at 76 (RTX 3090) to 164 (RTX 4090); L4, L40S and RTX 6000 Ada at 400 and more are
    inferred, by the square root that a roofline of tiled products suggests.
    """
    if accelerator_kind(accelerator) not in {"consumer", "other"} or not accelerator.memory_bandwidth_gb_s:
        return 1.0
    ratio = peak_tflops(accelerator, "bf16") * 1e3 / accelerator.memory_bandwidth_gb_s
    return min(1.0, math.sqrt(_FED_FLOPS_PER_BYTE / ratio))


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
