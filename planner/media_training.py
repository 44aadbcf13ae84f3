"""LoRA training of an image or video denoiser: base and encoders resident, activations of one or all blocks.

Checked against https://github.com/kohya-ss/sd-scripts and https://github.com/huggingface/diffusers issue reports; few
rows exist, so confidence is low.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.media_job import QUANT_BYTES, MediaJob
from planner.media_memory import RUNTIME_GIB
from planner.media_time import pass_flops
from planner.training_efficiency import accelerator_kind, peak_tflops

_GIB = 2.0**30
# Bytes per token and channel that autograd keeps of one block without checkpointing, and its working set with it.
_BLOCK_BYTES = 90.0
_TRAINING_SHARE = {"a100": 0.40, "hopper": 0.30, "blackwell": 0.25, "blackwell-ultra": 0.25, "consumer": 0.55}
_ADAPTER_BYTES = 16.0
# Optimizer workspaces, cached latents and what the allocator keeps: GiB, and a share of the weights. Reported runs of
# FLUX.1 and Stable Diffusion 1.4 adapters lie 6 to 9 GiB above weights and activations.
_TRAINING_RUNTIME_GIB = 4.0
_TRAINING_RUNTIME_SHARE = 0.13


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTraining:
    """GiB on one GPU, and seconds per training sample."""

    weights: float
    adapters: float
    activations: float
    runtime: float
    peak: float
    seconds_per_sample: float


def media_training(job: MediaJob) -> MediaTraining:
    """Memory and time of adapter training at the job's size and batch. Text encoders stay resident."""
    network = job.model.denoiser
    per = QUANT_BYTES[job.quant] if job.quant != "none" else job.sixteen
    weights = per * network.params + job.sixteen * (job.model.encoder_params + job.model.decoder.params)
    adapters = _ADAPTER_BYTES * job.lora_rank * network.layers * 12 * network.hidden
    tokens = float(job.tokens) * job.batch
    if network.unet_flops_per_latent_px:
        frames, rows, columns = job.latent
        tokens = float(frames * rows * columns) * job.batch
    block = tokens * network.hidden * _BLOCK_BYTES
    kept = {"none": network.layers * block, "selective": 0.55 * network.layers * block}.get(
        job.checkpointing, network.layers * tokens * network.hidden * 2.0 + block
    )
    latents = job.batch * job.output_px * job.model.decoder.decode_bytes_per_px * 0.5
    activations = max(kept + block, latents)
    runtime = RUNTIME_GIB + _TRAINING_RUNTIME_GIB + _TRAINING_RUNTIME_SHARE * weights / _GIB
    recompute = 1.0 if job.checkpointing == "full" else 0.0
    share = _TRAINING_SHARE.get(accelerator_kind(job.accelerator), 0.3)
    seconds = pass_flops(job) * (2 + recompute) / (peak_tflops(job.accelerator, job.precision) * 1e12 * share)
    return MediaTraining(
        weights=weights / _GIB,
        adapters=adapters / _GIB,
        activations=activations / _GIB,
        runtime=runtime,
        peak=(weights + adapters + activations) / _GIB + runtime,
        seconds_per_sample=seconds,
    )
