"""Seconds per image or clip: denoiser arithmetic over the attained peak, decoding, and what offloading moves.

FLOPs of one denoiser pass = 2 x parameters a token meets x tokens + 4 x tokens^2 x hidden x layers. Attained shares by
class of GPU are fitted on https://github.com/sayakpaul/diffusers-torchao (A100, H100, eager and compiled) and checked
on L20, RTX 4090D and https://github.com/ModelTC/LightX2V.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.media_job import MediaJob
from planner.training_efficiency import accelerator_kind, peak_tflops

# Share of the dense 16-bit peak in a transformer denoiser: eager, compiled. Slower cards attain more of theirs.
_SHARES: Mapping[str, tuple[float, float]] = {
    "a100": (0.46, 0.52),
    "hopper": (0.32, 0.42),
    "blackwell": (0.26, 0.36),
    "consumer": (0.68, 0.80),
    "cdna": (0.25, 0.32),
    "tpu": (0.30, 0.40),
    "other": (0.45, 0.55),
}
_UNET_GAIN = 1.45
# Time of a quantised denoiser over the 16-bit one: eager, compiled. Weight-only formats unpack before each product;
# fp8 arithmetic pays once the casts are fused.
_QUANT_TIME: Mapping[str, tuple[float, float]] = {
    "none": (1.0, 1.0),
    "fp8": (1.12, 0.78),
    "int8": (1.15, 1.02),
    "nf4": (1.10, 1.02),
    "int4": (9.0, 5.0),
    "nvfp4": (1.10, 0.70),
}
_LAUNCH_S = 0.25e-3
# Host to device through pageable memory, GB/s: whole models out and in again, and weights streamed layer by layer.
_MODEL_MOVE_GB_S = 3.0
_STREAM_GB_S = 4.6
_GROUP_STREAM_GB_S = 12.0
_GIGA = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTime:
    """Seconds of one batch by part, and of one item."""

    denoise_s: float
    decode_s: float
    encode_s: float
    transfer_s: float
    seconds_per_item: float
    bottleneck: str


def media_time(job: MediaJob) -> MediaTime:
    """Time of one batch and of one item on one GPU (or one group of `tp`). Pure and fast."""
    kind = accelerator_kind(job.accelerator)
    eager, compiled = _SHARES[kind]
    share = compiled if job.compiled else eager
    network = job.model.denoiser
    if network.unet_flops_per_latent_px:
        share = min(0.85, share * _UNET_GAIN)
    rate = peak_tflops(job.accelerator, job.precision) * 1e12 * share
    passes = job.steps * network.cfg
    launches = job.steps * (1 if network.cfg_batched else network.cfg) * network.layers
    denoise = pass_flops(job) * passes * job.batch / rate * _quant_factor(job, kind)
    denoise = denoise / (job.tp * (0.85 if job.tp > 1 else 1.0)) + launches * _LAUNCH_S * (0.3 if job.compiled else 1)
    decode = job.model.decoder.decode_flops_per_px * job.output_px * job.batch / rate
    encode = 2.0 * sum(job.model.encoders) * 300 * job.batch * network.cfg / rate
    transfer = _transfer_seconds(job)
    total = max(denoise, transfer) if job.offload == "group" else denoise + transfer
    total += decode + encode
    return MediaTime(
        denoise_s=denoise,
        decode_s=decode,
        encode_s=encode,
        transfer_s=transfer,
        seconds_per_item=total / job.batch,
        bottleneck="interconnect" if transfer > denoise else "compute",
    )


def pass_flops(job: MediaJob) -> float:
    """FLOPs of one forward pass of the denoiser for one sample."""
    network = job.model.denoiser
    if network.unet_flops_per_latent_px:
        frames, rows, columns = job.latent
        return network.unet_flops_per_latent_px * frames * rows * columns
    tokens = float(job.tokens)
    return 2.0 * network.token_params * tokens + 4.0 * tokens**2 * network.hidden * network.layers


def _quant_factor(job: MediaJob, kind: str) -> float:
    eager, compiled = _QUANT_TIME[job.quant]
    factor = compiled if job.compiled else eager
    if job.quant == "fp8" and kind == "consumer":
        return 0.75 if not job.compiled else 0.65
    return factor


def _transfer_seconds(job: MediaJob) -> float:
    """Seconds that offloading spends on the bus for one batch."""
    size = job.sixteen * (job.model.params)
    network = job.model.denoiser
    per_step = job.sixteen * network.params * (1 if network.cfg_batched else network.cfg)
    if job.offload == "model":
        return 2.0 * size / (_MODEL_MOVE_GB_S * _GIGA)
    if job.offload == "sequential":
        return job.steps * per_step / (_STREAM_GB_S * _GIGA)
    if job.offload == "group":
        return job.steps * per_step / (_GROUP_STREAM_GB_S * _GIGA)
    return 0.0
