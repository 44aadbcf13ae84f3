"""Seconds per image or clip: denoiser arithmetic over the attained peak, decoding, and what offloading moves.

FLOPs of one denoiser pass = 2 x parameters a token meets x tokens + 4 x tokens^2 x hidden x layers. Attained shares by
class of GPU are fitted on https://github.com/sayakpaul/diffusers-torchao (A100, H100, eager and compiled) and checked
on L20, RTX 4090D and https://github.com/ModelTC/LightX2V.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.media_job import MediaJob
from planner.media_memory import held_bytes
from planner.training_efficiency import accelerator_kind, fed_share, peak_tflops


@dataclass(frozen=True, slots=True)
class Shares:
    """Attained shares of the dense 16-bit peak: linear layers eager and compiled, attention, U-Net convolutions."""

    linear: float
    linear_compiled: float
    attention: float
    unet: float


# Slower cards attain more of their peak: their memory keeps up.
_SHARES: Mapping[str, Shares] = {
    "a100": Shares(0.44, 0.56, 0.46, 0.72),
    "hopper": Shares(0.34, 0.56, 0.30, 0.45),
    "blackwell": Shares(0.28, 0.46, 0.28, 0.36),
    "blackwell-ultra": Shares(0.28, 0.46, 0.32, 0.36),
    "consumer": Shares(0.66, 0.80, 0.78, 0.75),
    "cdna": Shares(0.25, 0.34, 0.22, 0.30),
    "tpu-starved": Shares(0.25, 0.38, 0.25, 0.30),
    "tpu": Shares(0.30, 0.45, 0.30, 0.35),
    "other": Shares(0.45, 0.55, 0.45, 0.55),
}
# Time of quantised linear layers over 16-bit ones: eager, compiled. Weight-only formats unpack before each product,
# int4 without a fused kernel ninefold (https://huggingface.co/blog/diffusers-quantization: 12 s to 109 s); fp8
# arithmetic pays once the casts are fused, or where arithmetic is what limits.
_QUANT_TIME: Mapping[str, tuple[float, float]] = {
    "none": (1.0, 1.0),
    "fp8": (1.12, 0.60),
    "int8": (1.20, 1.0),
    "nf4": (1.05, 1.0),
    "int4": (11.0, 11.0),
    "nvfp4": (1.05, 0.45),
}
_FP8_ARITHMETIC_BOUND = 0.50
_LAUNCH_S = 0.25e-3
# Host to device through pageable memory, GB/s: whole models out and in again, and weights streamed layer by layer.
_MODEL_MOVE_GB_S = 2.2
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
    shares = _SHARES[kind]
    network = job.model.denoiser
    peak = peak_tflops(job.accelerator, job.precision) * 1e12 * fed_share(job.accelerator)
    rate = peak * shares.unet
    passes = job.steps * network.cfg
    launches = job.steps * (1 if network.cfg_batched else network.cfg) * network.layers
    denoise = _pass_seconds(job, kind, peak) * passes * job.batch
    denoise = denoise / (job.tp * (0.85 if job.tp > 1 else 1.0)) + launches * _LAUNCH_S * (0.3 if job.compiled else 1)
    decode = job.model.decoder.decode_flops_per_px * job.output_px * job.batch / rate
    encode = 2.0 * job.model.encoder_params * 300 * job.batch * network.cfg / rate
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


def _pass_seconds(job: MediaJob, kind: str, peak: float) -> float:
    """Seconds of one forward pass for one sample; quantisation changes the linear layers only."""
    shares, network = _SHARES[kind], job.model.denoiser
    factor = _quant_factor(job, kind)
    if network.unet_flops_per_latent_px:
        return pass_flops(job) * factor / (peak * shares.unet * (1.1 if job.compiled else 1.0))
    linear, attention = linear_flops(job), pass_flops(job) - linear_flops(job)
    share = shares.linear_compiled if job.compiled else shares.linear
    return linear * factor / (peak * share) + attention / (peak * shares.attention)


def linear_flops(job: MediaJob) -> float:
    """FLOPs of the linear layers in one forward pass of a transformer denoiser for one sample."""
    return 2.0 * job.model.denoiser.token_params * float(job.tokens)


def _quant_factor(job: MediaJob, kind: str) -> float:
    eager, compiled = _QUANT_TIME[job.quant]
    if job.quant == "fp8" and kind == "consumer" and job.accelerator.fp8_tflops:
        return _FP8_ARITHMETIC_BOUND
    return compiled if job.compiled else eager


def _transfer_seconds(job: MediaJob) -> float:
    """Seconds that offloading spends on the bus for one batch."""
    network = job.model.denoiser
    size, denoiser = held_bytes(job)
    per_step = denoiser / network.experts * (1 if network.cfg_batched else network.cfg)
    if job.offload == "model":
        return 2.0 * size / (_MODEL_MOVE_GB_S * _GIGA)
    if job.offload == "sequential":
        return job.steps * per_step / (_STREAM_GB_S * _GIGA)
    if job.offload == "group":
        return job.steps * per_step / (_GROUP_STREAM_GB_S * _GIGA)
    return 0.0
