"""Why a training estimate came out as it did: codes with values, no prose."""

from __future__ import annotations

from typing import Any

from catalog.types import Accelerator
from planner.training_job import TrainingJob
from planner.training_memory import TrainingMemory
from planner.training_time import TrainingTime

# A step whose exposed communication exceeds this share of its arithmetic is worth a warning.
_LINK_BOUND = 0.5


def training_reasons(
    job: TrainingJob, memory: TrainingMemory, speed: TrainingTime, usable_gib: float, candidates: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Reasons of one estimate, most important first."""
    found: list[dict[str, Any]] = []

    def add(code: str, **values: Any) -> None:
        found.append({"code": code, "values": values})

    if memory.peak > usable_gib:
        add("exceeds_memory", required_gib=round(memory.peak, 2), usable_gib=round(usable_gib, 2), stage=memory.stage)
        _add_ways_out(add, job)
    else:
        add("peak_stage", stage=memory.stage, required_gib=round(memory.peak, 2))
    if len(candidates) > 1:
        add("gpu_ambiguous", candidates=list(candidates))
    if memory.experts_kept_16_bit:
        add("experts_not_quantised", format=job.base)
    _add_precision(add, job)
    if job.nodes > 1:
        if speed.links.assumed:
            add("fabric_assumed", gb_s_per_node=speed.links.between_gb_s, nodes=job.nodes)
        add("needs_shared_storage", nodes=job.nodes)
    if speed.communication_s > _LINK_BOUND * (speed.compute_s + speed.memory_s):
        add(
            "interconnect_bound",
            communication_s=round(speed.communication_s, 4),
            compute_s=round(speed.compute_s + speed.memory_s, 4),
            link=speed.links.kind,
        )
    if job.cpu_offload or job.activation_offload or job.optimizer.startswith("paged"):
        add("host_memory_needed", gib_per_node=round(memory.host_per_node, 1))
    return found


def _add_ways_out(add: Any, job: TrainingJob) -> None:
    if job.checkpointing != "full":
        add("try", key="gradient_checkpointing", value="full")
    if job.micro_batch > 1:
        add("try", key="micro_batch", value=1)
    if job.dp > 1 and job.strategy not in {"fsdp", "zero3"}:
        add("try", key="strategy", value="fsdp")
    if job.method == "lora":
        add("try", key="workload", value="qlora")
    if job.method == "full":
        add("try", key="workload", value="lora")


def _add_precision(add: Any, job: TrainingJob) -> None:
    if not supports_precision(job.accelerator, job.precision):
        add("precision_unsupported", precision=job.precision, gpu=job.accelerator.gpu)


def supports_precision(gpu: Accelerator, precision: str) -> bool:
    """Whether the chip computes in a format: frameworks refuse bf16, fp8 and nvfp4 training without units for it."""
    rates = {"bf16": gpu.bf16_tflops, "fp8": gpu.fp8_tflops, "nvfp4": gpu.fp4_tflops}
    return precision not in rates or rates[precision] is not None
