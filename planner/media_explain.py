"""The arithmetic of an image, video or audio estimate, line by line, each with its rule and source."""

from __future__ import annotations

from planner.accelerator_choice import choose
from planner.media import fit_media
from planner.media_audio import audio_fit
from planner.media_job import resolve_media
from planner.media_memory import decode_bytes, held_bytes, step_bytes
from planner.media_models import media_model
from planner.media_time import linear_flops, pass_flops
from planner.request import Request, RequestError

_GIB = 2.0**30
_FITTED = "https://github.com/sayakpaul/diffusers-torchao, https://huggingface.co/blog/video_gen"


def explain_media(request: Request) -> list[str]:
    """The lines behind `planner.media.estimate_media` for the same request.

    Raises:
        RequestError: as `estimate_media`.
    """
    if request.gpu is None:
        raise RequestError("missing_key", "a media estimate needs a gpu: a slug or an alias")
    accelerator, _ = choose(request.gpu)
    if request.workload == "audio":
        audio = audio_fit(request, accelerator)
        return [
            f"model: {audio.name}, weights {audio.weights:.2f} GiB [{audio.source}]",
            f"caches and workspaces {audio.activations:.2f} GiB, runtime {audio.runtime:g} GiB: peak {audio.peak:.2f} "
            f"GiB" + (", raised to the makers' stated minimum" if audio.stated_minimum else ""),
            f"a track of {audio.track_s:g} s takes {audio.seconds_per_item:.4g} s",
        ]
    fit = fit_media(resolve_media(request, media_model(request), accelerator))
    job, memory, time = fit.job, fit.memory, fit.time
    network = job.model.denoiser
    lines = [
        (
            f"model: {job.model.name}, encoders {job.model.encoder_params / 1e9:.3g}B, denoiser "
            f"{network.params * network.experts / 1e9:.3g}B held in {held_bytes(job)[1] / _GIB:.2f} GiB ({job.quant}), "
            f"decoder {job.model.decoder.params / 1e9:.3g}B [{job.model.source}]"
        ),
        (
            f"one step of {job.batch} x {job.tokens} tokens: {step_bytes(job) / _GIB:.2f} GiB; decoding "
            f"{job.output_px / 1e6:.3g} M pixels at {job.model.decoder.decode_bytes_per_px:g} bytes: "
            f"{decode_bytes(job) / _GIB:.2f} GiB [{_FITTED}]"
        ),
        (
            f"offload {job.offload}: worst stage {memory.stage}, peak {memory.peak:.2f} GiB of "
            f"{job.accelerator.memory_gib_usable:.2f} GiB: {fit.verdict}"
        ),
        (
            f"one pass: {pass_flops(job) / 1e12:.4g} TFLOP ({linear_flops(job) / 1e12:.4g} linear); "
            f"{job.steps} steps x {network.cfg} = {time.denoise_s:.4g} s, encoding {time.encode_s:.3g} s, "
            f"decoding {time.decode_s:.3g} s, transfers {time.transfer_s:.3g} s [{_FITTED}]"
        ),
        f"one item: {fit.seconds_per_item:.4g} s",
    ]
    if fit.training:
        lines.append(f"adapter training: peak {fit.training.peak:.2f} GiB with rank {job.lora_rank}")
    return lines
