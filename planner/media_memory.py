"""Peak memory of image and video generation: what is resident, and the worst of the stages by offload mode.

Stages: text encoding, one denoiser step, decoding (and loading, where weights are quantised after they arrive). With
offload the parts take turns, without it all are resident. Coefficients are fitted on
https://github.com/sayakpaul/diffusers-torchao, https://huggingface.co/blog/video_gen and
https://huggingface.co/blog/simple_sdxl_optimizations.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.media_job import QUANT_BYTES, MediaJob
from planner.media_models import Encoder

_GIB = 2.0**30
# 16-bit tensors of (tokens x hidden) that are alive in one transformer block.
STEP_TENSORS = 15.0
# Bytes per latent pixel that a U-Net step keeps alive, 16 bit, 320 base channels.
UNET_BYTES_PER_LATENT_PX = 72_000.0
# Offloading moves weights through the allocator, which keeps blocks it cannot reuse: share on top of activations.
OFFLOAD_FRAGMENTATION = 0.15
RUNTIME_GIB = 0.5
# A decoder tile: 512 x 512 pixels of an image, 256 x 256 x 16 frames of a video.
_TILE_PX_IMAGE = 512.0 * 512.0
_TILE_PX_VIDEO = 256.0 * 256.0 * 16.0
# bitsandbytes int8 weights stay on the GPU when parts are offloaded.
_UNMOVABLE = frozenset({"int8"})
# bitsandbytes leaves in fp32 what the encoder asks to keep there.
_KEEP_FP32 = frozenset({"nf4", "int8"})
# Quantised in place after loading: all parts pass through the GPU in 16 bit first.
_IN_PLACE = frozenset({"int8", "fp8"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaMemory:
    """GiB on one GPU: weights resident in the peak stage, what the stage needs on top, and the peak."""

    encoders: float
    denoiser: float
    decoder: float
    activations: float
    runtime: float
    peak: float
    stage: str
    host: float
    stated_minimum: bool

    @property
    def below_minimum(self) -> float:
        """What the makers' stated minimum adds to the sum of the parts."""
        return max(0.0, self.peak - sum((self.encoders, self.denoiser, self.decoder, self.activations, self.runtime)))


@dataclass(frozen=True, slots=True)
class _Parts:
    """Bytes of the parts as they are held."""

    encoders: tuple[float, ...]
    denoiser: float
    decoder: float

    @property
    def all(self) -> float:
        return sum(self.encoders) + self.denoiser + self.decoder


def media_memory(job: MediaJob) -> MediaMemory:
    """Peak memory of one generation on one GPU. Pure and fast."""
    parts = _parts(job)
    step, decode, encode = step_bytes(job), decode_bytes(job), _encode_bytes(job)
    stages = _stages(job, parts, step, decode, encode)
    stage = max(stages, key=lambda name: sum(stages[name]))
    weights, work = stages[stage]
    peak = (weights + work) / _GIB + RUNTIME_GIB
    minimum = job.model.minimum_gib if _minimum_applies(job) else 0.0
    resident = job.offload == "none"
    if stage == "loading":
        parts = _as_loaded(job, parts)
    return MediaMemory(
        encoders=sum(parts.encoders) / _GIB if resident else (weights / _GIB if stage == "text_encoder" else 0.0),
        denoiser=parts.denoiser / _GIB if resident else (weights / _GIB if stage == "denoiser" else 0.0),
        decoder=parts.decoder / _GIB if resident else (weights / _GIB if stage == "decoder" else 0.0),
        activations=work / _GIB,
        runtime=RUNTIME_GIB,
        peak=max(peak, minimum),
        stage=stage if peak >= minimum else "stated_minimum",
        host=0.0 if resident else parts.all / _GIB,
        stated_minimum=minimum > peak,
    )


def _minimum_applies(job: MediaJob) -> bool:
    """A stated minimum is for the makers' own size and mode; smaller jobs and quantised networks go below it."""
    model = job.model
    full_size = job.width * job.height * job.frames >= 0.9 * model.width * model.height * model.frames
    mode = job.offload in {model.minimum_offload, "none"}
    return bool(model.minimum_gib) and mode and full_size and job.quant == "none"


def _parts(job: MediaJob) -> _Parts:
    network = job.model.denoiser
    per = max(job.sixteen, float(network.stored_bytes)) if job.quant == "none" else QUANT_BYTES[job.quant]
    decoder = 4.0 if job.model.decoder.fp32 else job.sixteen
    return _Parts(
        tuple(_encoder_bytes(job, encoder) for encoder in job.model.encoders),
        per * network.params * network.experts / job.tp,
        decoder * job.model.decoder.params,
    )


def _as_loaded(job: MediaJob, parts: _Parts) -> _Parts:
    """The parts while they arrive: in 16 bit, but for encoders that bitsandbytes quantises as it reads them."""
    network = job.model.denoiser
    arriving = tuple(job.sixteen * encoder.params for encoder in job.model.encoders)
    return _Parts(
        parts.encoders if job.encoder_quant in _KEEP_FP32 else arriving,
        job.sixteen * network.params * network.experts / job.tp,
        job.sixteen * job.model.decoder.params,
    )


def held_bytes(job: MediaJob) -> tuple[float, float]:
    """Bytes of all parts, and of the denoiser (all experts), as they are held."""
    parts = _parts(job)
    return parts.all, parts.denoiser


def _encoder_bytes(job: MediaJob, encoder: Encoder) -> float:
    if job.encoder_quant == "none":
        return job.sixteen * encoder.params
    kept = encoder.fp32_params if job.encoder_quant in _KEEP_FP32 else 0.0
    return QUANT_BYTES[job.encoder_quant] * (encoder.params - kept) + 4.0 * kept


def _stages(job: MediaJob, parts: _Parts, step: float, decode: float, encode: float) -> dict[str, tuple[float, float]]:
    """(weights on the GPU, working memory) of each stage."""
    if job.offload == "none":
        stages = {
            "text_encoder": (parts.all, encode),
            "denoiser": (parts.all, step),
            "decoder": (parts.all, decode),
        }
        if job.quant in _IN_PLACE:
            stages["loading"] = (_as_loaded(job, parts).all, 0.0)
        return stages
    network = job.model.denoiser
    kept = parts.denoiser if job.quant in _UNMOVABLE and job.offload == "model" else 0.0
    waste = 1.0 + OFFLOAD_FRAGMENTATION
    one = parts.denoiser / network.experts
    encoder = max(parts.encoders, default=0.0)
    if job.offload in {"sequential", "group"}:
        blocks = 1.0 if job.offload == "sequential" else 4.0
        one = min(one, one * blocks / max(network.layers, 1))
        encoder = min(encoder, encoder * blocks / 24)
    return {
        "text_encoder": (encoder + kept, encode),
        "denoiser": (kept or one, step * waste),
        "decoder": (parts.decoder + kept, decode * waste),
    }


def step_bytes(job: MediaJob) -> float:
    """Working memory of one denoiser step."""
    network = job.model.denoiser
    samples = job.batch * (network.cfg if network.cfg_batched else 1)
    width = job.sixteen / 2.0
    if network.unet_flops_per_latent_px:
        frames, rows, columns = job.latent
        return samples * frames * rows * columns * UNET_BYTES_PER_LATENT_PX * width
    return samples * job.tokens * network.hidden * 2.0 * STEP_TENSORS * width / job.tp


def decode_bytes(job: MediaJob) -> float:
    """Working memory of decoding: all pixels at once, a chunk of frames, or one tile and the finished output."""
    decoder = job.model.decoder
    per_px = decoder.decode_bytes_per_px * (2.0 if decoder.fp32 or job.precision == "fp32" else 1.0)
    frames = min(job.frames, decoder.chunk_frames) if decoder.chunk_frames else job.frames
    pixels = float(job.width * job.height * frames)
    output = job.batch * job.output_px * 3 * 4.0
    whole = job.batch * pixels * per_px + (output if decoder.chunk_frames else 0.0)
    if not job.tiling:
        return whole
    tile = _TILE_PX_VIDEO if job.frames > 1 else _TILE_PX_IMAGE
    return min(whole, min(tile, pixels) * per_px + output)


def _encode_bytes(job: MediaJob) -> float:
    """Working memory of the text encoder: a few hundred tokens, small beside its weights."""
    return job.batch * 512 * 4096 * 2.0 * STEP_TENSORS
