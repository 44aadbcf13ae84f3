"""Fit and time of image, video and audio generation: one request in, one answer out.

`fit_media` is the pure function behind it for images and video, `planner.media_audio.audio_fit` for audio;
`candidate_media` is what a planner calls for each accelerator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog.types import Accelerator
from planner.accelerator_choice import choose, slice_said
from planner.answer import rounded
from planner.media_audio import AudioFit, audio_fit
from planner.media_job import MediaJob, resolve_media
from planner.media_memory import MediaMemory, media_memory
from planner.media_models import media_model
from planner.media_time import MediaTime, media_time
from planner.media_training import MediaTraining, media_training
from planner.request import Request, RequestError
from planner.training import verdict_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFit:
    """Memory and speed of one generation job; `training` is set for task lora."""

    job: MediaJob
    memory: MediaMemory
    time: MediaTime
    training: MediaTraining | None
    peak: float
    verdict: str
    starts: bool
    seconds_per_item: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaCandidate:
    """What `plan` needs to know of one accelerator: room and seconds per item of one GPU."""

    verdict: str
    starts: bool
    required_gib: float
    usable_gib: float
    seconds_per_item: float


def fit_media(job: MediaJob) -> MediaFit:
    """Memory, time and verdict of a resolved image or video job. Pure and fast."""
    memory, time = media_memory(job), media_time(job)
    training = media_training(job) if job.task == "lora" else None
    peak = training.peak if training else memory.peak
    verdict = verdict_of(peak, job.accelerator.memory_gib_usable)
    return MediaFit(
        job=job,
        memory=memory,
        time=time,
        training=training,
        peak=peak,
        verdict=verdict,
        starts=verdict != "no",
        seconds_per_item=training.seconds_per_sample if training else time.seconds_per_item,
    )


def candidate_media(request: Request, accelerator: Accelerator) -> MediaCandidate:
    """The request on one GPU of this accelerator; GPUs beyond the first multiply the rate, not the room."""
    usable = accelerator.memory_gib_usable
    if request.workload == "audio":
        fit = audio_fit(request, accelerator)
        verdict = verdict_of(fit.peak, usable)
        return MediaCandidate(
            verdict=verdict,
            starts=verdict != "no",
            required_gib=fit.peak,
            usable_gib=usable,
            seconds_per_item=fit.seconds_per_item,
        )
    found = fit_media(resolve_media(request, media_model(request), accelerator))
    return MediaCandidate(
        verdict=found.verdict,
        starts=found.starts,
        required_gib=found.peak,
        usable_gib=usable,
        seconds_per_item=found.seconds_per_item,
    )


def estimate_media(request: Request) -> dict[str, Any]:
    """The answer object of image, video and audio (design, section 6).

    Raises:
        RequestError: unknown GPU, model or quantisation.
    """
    if request.gpu is None:
        raise RequestError("missing_key", "a media estimate needs a gpu: a slug or an alias")
    accelerator, candidates = choose(request.gpu)
    gpu = accelerator.gpu if len(candidates) == 1 else request.gpu.strip().casefold()
    if request.workload == "audio":
        return _audio_answer(request, audio_fit(request, accelerator), accelerator, gpu, candidates)
    fit = fit_media(resolve_media(request, media_model(request), accelerator))
    return _answer(request, fit, gpu, candidates)


def _answer(request: Request, fit: MediaFit, gpu: str, candidates: tuple[str, ...]) -> dict[str, Any]:
    job, memory = fit.job, fit.memory
    if fit.training:
        breakdown = {
            "weights_gib": rounded(fit.training.weights),
            "adapters_gib": rounded(fit.training.adapters),
            "activations_gib": rounded(fit.training.activations),
            "runtime_gib": rounded(fit.training.runtime),
        }
    else:
        breakdown = {
            "text_encoder_gib": rounded(memory.encoders),
            "denoiser_gib": rounded(memory.denoiser),
            "vae_gib": rounded(memory.decoder),
            "activations_gib": rounded(memory.activations),
            "runtime_gib": rounded(memory.runtime),
            **_up_to_minimum(memory.below_minimum if memory.stated_minimum else 0.0),
        }
    common = _common(request, job.model.name, gpu, fit.verdict, fit.peak, job.accelerator)
    return {
        **common,
        "breakdown": breakdown,
        "bottleneck": "capacity" if fit.verdict == "no" else fit.time.bottleneck,
        "confidence": _confidence(job),
        "assumptions": [*(f"{name} {value}" for name, value in job.assumptions), *slice_said(request.gpu)],
        "reasons": _reasons(fit, candidates),
        **_speed(request, fit.seconds_per_item, fit.peak),
        "peak_stage": "training" if fit.training else memory.stage,
        "host_gib_per_node": rounded(memory.host),
    }


def _audio_answer(
    request: Request, fit: AudioFit, accelerator: Accelerator, gpu: str, candidates: tuple[str, ...]
) -> dict[str, Any]:
    verdict = verdict_of(fit.peak, accelerator.memory_gib_usable)
    reasons: list[dict[str, Any]] = []
    if verdict == "no":
        reasons.append(_too_big(fit.peak, accelerator.memory_gib_usable, "generation"))
    if fit.stated_minimum:
        reasons.append({"code": "stated_minimum", "values": {"source": fit.source}})
    if len(candidates) > 1:
        reasons.append({"code": "gpu_ambiguous", "values": {"candidates": list(candidates)}})
    rate = fit.track_s / fit.seconds_per_item if fit.seconds_per_item else None
    return {
        **_common(request, fit.name, gpu, verdict, fit.peak, accelerator),
        "breakdown": {
            "weights_gib": rounded(fit.weights),
            "activations_gib": rounded(fit.activations),
            "runtime_gib": rounded(fit.runtime),
            **_up_to_minimum(fit.peak - fit.weights - fit.activations - fit.runtime if fit.stated_minimum else 0.0),
        },
        "bottleneck": "capacity" if verdict == "no" else "bandwidth",
        "confidence": "low",
        "assumptions": [*(f"{name} {value}" for name, value in fit.assumptions), *slice_said(request.gpu)],
        "reasons": reasons,
        **_speed(request, fit.seconds_per_item, fit.peak),
        "audio_seconds_per_second": rounded(rate),
    }


def _common(
    request: Request, model: str, gpu: str, verdict: str, peak: float, accelerator: Accelerator
) -> dict[str, Any]:
    usable = accelerator.memory_gib_usable
    return {
        "workload": request.workload,
        "model": model,
        "gpu": gpu,
        "gpus": request.gpus or 1,
        "starts": verdict != "no",
        "verdict": verdict,
        "required_gib_per_gpu": rounded(peak),
        "usable_gib_per_gpu": rounded(usable),
        "headroom_gib_per_gpu": rounded(usable - peak),
    }


def _speed(request: Request, seconds_per_item: float, peak: float) -> dict[str, Any]:
    """Rate of all GPUs together: each makes its own items, unless `tp` of them share one."""
    lanes = max(1, (request.gpus or 1) // (request.tp or 1))
    hours = request.items * seconds_per_item / lanes / 3600 if request.items else None
    return {
        "peak_gib_per_gpu": rounded(peak),
        "seconds_per_item": rounded(seconds_per_item),
        "items_per_hour": rounded(3600 * lanes / seconds_per_item),
        "hours": rounded(hours),
    }


def _reasons(fit: MediaFit, candidates: tuple[str, ...]) -> list[dict[str, Any]]:
    job, memory = fit.job, fit.memory
    reasons: list[dict[str, Any]] = []
    if fit.verdict == "no":
        reasons.append(_too_big(fit.peak, job.accelerator.memory_gib_usable, memory.stage))
        if job.offload == "none":
            reasons.append({"code": "try", "values": {"key": "offload", "value": "model"}})
        if memory.stage == "decoder" and not job.tiling:
            reasons.append({"code": "try", "values": {"key": "vae_tiling", "value": True}})
        if job.quant == "none":
            reasons.append({"code": "try", "values": {"key": "quant", "value": "nf4"}})
    else:
        reasons.append({"code": "peak_stage", "values": {"stage": memory.stage, "required_gib": round(fit.peak, 2)}})
    if job.gpus > 1 and job.tp == 1:
        reasons.append({"code": "gpus_do_not_pool", "values": {"gpus": job.gpus}})
    if job.model.denoiser.stored_bytes > 2 and job.quant == "none":
        reasons.append({"code": "stored_fp32", "values": {"model": job.model.name}})
    if memory.stated_minimum:
        reasons.append({"code": "stated_minimum", "values": {"gib": job.model.minimum_gib, "source": job.model.source}})
    if len(candidates) > 1:
        reasons.append({"code": "gpu_ambiguous", "values": {"candidates": list(candidates)}})
    return reasons


def _too_big(peak: float, usable: float, stage: str) -> dict[str, Any]:
    values = {"required_gib": round(peak, 2), "usable_gib": round(usable, 2), "stage": stage}
    return {"code": "exceeds_memory", "values": values}


def _confidence(job: MediaJob) -> str:
    if job.model.source == "request" or job.accelerator.vendor.casefold() != "nvidia" or job.task == "lora":
        return "low"
    return "medium"


def _up_to_minimum(gib: float) -> dict[str, float | None]:
    """What the makers' stated minimum adds to the parts, so that the breakdown makes the sum."""
    return {"up_to_stated_minimum_gib": rounded(gib)} if gib > 0 else {}
