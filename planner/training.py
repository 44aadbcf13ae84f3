"""Fit and time of fine-tuning and pre-training: one request in, one answer out.

`fit_training` is the pure function behind it: model, accelerator and a resolved job in, memory and speed out, without
I/O once the tables are loaded; `candidate_fit` is the same for a planner that tries accelerators, counts and nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from catalog.types import Accelerator
from planner.accelerator_choice import choose, slice_said
from planner.answer import rounded
from planner.models import ModelSpec, model_spec
from planner.request import Request, RequestError
from planner.training_checkpoints import Checkpoints, checkpoints
from planner.training_job import TrainingJob, resolve_job
from planner.training_memory import TrainingMemory, training_memory
from planner.training_reasons import supports_precision, training_reasons
from planner.training_time import TrainingTime, training_time

# The error band of the memory model: a fit with less room than this is tight.
ERROR_BAND = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFit:
    """Memory and speed of one job on one kind of accelerator.

    `verdict` is no when the estimate exceeds the memory or the chip lacks the precision, tight inside the error band
    below the memory, else fits; `starts` is True unless it is no. `hours` is None when the request states no amount of
    work.
    """

    job: TrainingJob
    memory: TrainingMemory
    time: TrainingTime
    checkpoints: Checkpoints
    usable_gib: float
    verdict: str
    starts: bool
    hours: float | None


@dataclass(frozen=True, slots=True)
class TrainingRefusal:
    """Why a candidate cannot take the job at all: a reason code and its values."""

    code: str
    values: dict[str, Any]


def verdict_of(required_gib: float, usable_gib: float) -> str:
    """fits, tight or no, for an estimate with an error band of 15 %."""
    if required_gib > usable_gib:
        return "no"
    return "tight" if required_gib * (1 + ERROR_BAND) > usable_gib else "fits"


def fit_training(job: TrainingJob) -> TrainingFit:
    """Memory, speed and verdict of a resolved job. Pure and fast (tens of microseconds)."""
    memory = training_memory(job)
    speed = training_time(job)
    usable = job.accelerator.memory_gib_usable
    runs = supports_precision(job.accelerator, job.precision)
    verdict = verdict_of(memory.peak, usable) if runs else "no"
    hours = None
    if job.total_tokens:
        hours = job.total_tokens / (speed.tokens_s_per_gpu * job.gpus) / 3600
    return TrainingFit(
        job=job,
        memory=memory,
        time=speed,
        checkpoints=checkpoints(job, hours),
        usable_gib=usable,
        verdict=verdict,
        starts=verdict != "no",
        hours=hours,
    )


def candidate_fit(
    request: Request,
    model: ModelSpec,
    accelerator: Accelerator,
    *,
    gpus: int,
    nodes: int = 1,
    link: str | None = None,
    fabric_gb_s: float | None = None,
) -> TrainingFit | TrainingRefusal:
    """What `plan` asks of one candidate: the request on `gpus` of this accelerator over `nodes` machines.

    Args:
        request: the training request; its own gpu, gpus and nodes are ignored.
        model: facts of the request's model (`planner.models.model_spec`).
        accelerator: facts of the candidate.
        gpus: GPUs of the whole job.
        nodes: machines that hold them.
        link: nvlink or pcie where the offer says; None lets the accelerator's own link decide.
        fabric_gb_s: one machine's network rate, one way, GB/s; None = unknown, and then several nodes are refused.
    """
    if nodes > 1 and fabric_gb_s is None:
        return TrainingRefusal("fabric_unknown", {"nodes": nodes})
    asked = replace(request, gpus=gpus, nodes=nodes, interconnect=link or request.interconnect)
    try:
        job = resolve_job(asked, model, accelerator)
    except RequestError as error:
        return TrainingRefusal(error.code, {"message": str(error)})
    if not supports_precision(accelerator, job.precision):
        return TrainingRefusal("precision_unsupported", {"precision": job.precision, "gpu": accelerator.gpu})
    return fit_training(replace(job, fabric_gb_s=fabric_gb_s))


def estimate_training(request: Request) -> dict[str, Any]:
    """The answer object of lora, qlora, full and pretrain (design, section 6).

    Raises:
        RequestError: unknown GPU, model, format, optimizer or target, or a layout that does not divide the GPUs.
    """
    if request.gpu is None:
        raise RequestError("missing_key", "a training estimate needs a gpu: a slug or an alias")
    accelerator, candidates = choose(request.gpu)
    model = model_spec(request)
    fit = fit_training(resolve_job(request, model, accelerator))
    gpu = accelerator.gpu if len(candidates) == 1 else request.gpu.strip().casefold()
    return _answer(request, fit, gpu, candidates)


def _answer(request: Request, fit: TrainingFit, gpu: str, candidates: tuple[str, ...]) -> dict[str, Any]:
    job, memory, speed = fit.job, fit.memory, fit.time
    return {
        "workload": request.workload,
        "model": job.model.model_id,
        "gpu": gpu,
        "gpus": job.gpus,
        "starts": fit.starts,
        "verdict": fit.verdict,
        "required_gib_per_gpu": rounded(memory.peak),
        "usable_gib_per_gpu": rounded(fit.usable_gib),
        "headroom_gib_per_gpu": rounded(fit.usable_gib - memory.peak),
        "breakdown": {
            "weights_gib": rounded(memory.weights),
            "gradients_gib": rounded(memory.gradients),
            "optimizer_gib": rounded(memory.optimizer),
            "adapters_gib": rounded(memory.adapters),
            "activations_gib": rounded(memory.saved_activations),
            "working_gib": rounded(memory.working),
            "runtime_gib": rounded(memory.runtime),
        },
        "bottleneck": _bottleneck(fit),
        "confidence": _confidence(job),
        "assumptions": [*_assumptions(fit), *slice_said(request.gpu)],
        "reasons": training_reasons(job, memory, speed, fit.usable_gib, candidates),
        "peak_gib_per_gpu": rounded(memory.peak),
        "peak_stage": memory.stage,
        "host_gib_per_node": rounded(memory.host_per_node),
        "strategy": job.strategy,
        "tp": job.tp,
        "pp": job.pp,
        "cp": job.cp,
        "ep": job.ep,
        "dp": job.dp,
        "nodes": job.nodes,
        "tokens_s_per_gpu": rounded(speed.tokens_s_per_gpu),
        "tflops_per_gpu": rounded(speed.tflops_per_gpu),
        "mfu": rounded(speed.mfu),
        "seconds_per_step": rounded(speed.seconds_per_step),
        "hours": rounded(fit.hours),
        "checkpoint_gib": rounded(fit.checkpoints.size_gib),
        "checkpoint_storage_gib": rounded(fit.checkpoints.storage_gib),
        "checkpoint_interval_h": rounded(fit.checkpoints.interval_h),
    }


def _bottleneck(fit: TrainingFit) -> str | None:
    """What limits the job; None where its precision does not run although the memory would do."""
    if fit.verdict != "no":
        return fit.time.bottleneck
    return "capacity" if fit.memory.peak > fit.usable_gib else None


def _assumptions(fit: TrainingFit) -> list[str]:
    said = [f"{name} {_shown(value)}" for name, value in fit.job.assumptions]
    if fit.time.links.assumed:
        said.append(f"fabric {fit.time.links.between_gb_s:g} GB/s a node one way: the network is not stated")
    return said


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _confidence(job: TrainingJob) -> str:
    """High where the calibration has many rows: adapters on one NVIDIA card; low where it has none."""
    if job.accelerator.vendor.casefold() != "nvidia" or job.cpu_offload or job.activation_offload or job.cp > 1:
        return "low"
    return "high" if job.adapters and job.gpus == 1 and not job.model.is_moe else "medium"
