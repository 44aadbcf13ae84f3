"""From a request to a generation job with every choice made: size, steps, batch, precision, offload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import nearest
from catalog.types import Accelerator
from planner.media_models import MediaModel
from planner.request import Request, RequestError

# Bytes of one parameter of a quantised network. NF4 and int4 carry a scale per 64 and 128 weights and leave norms and
# embeddings at 16 bit (about 2 %).
QUANT_BYTES: Mapping[str, float] = {
    "none": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "nf4": 0.59,
    "int4": 0.56,
    "nvfp4": 0.60,
}
_ALIASES = {"bf16": "none", "fp16": "none", "fp8dq": "fp8", "fp8wo": "fp8", "int8wo": "int8", "int4wo": "int4",
            "4bit": "nf4", "8bit": "int8", "fp4": "nvfp4", "svdquant": "int4"}  # fmt: skip

_ARITHMETIC = ("bf16", "fp16", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaJob:
    """One image or video job, nothing left open. Pixels, output frames, sequences in a batch."""

    model: MediaModel
    accelerator: Accelerator
    gpus: int
    precision: str
    quant: str
    encoder_quant: str
    width: int
    height: int
    frames: int
    batch: int
    steps: int
    offload: str
    tiling: bool
    compiled: bool
    task: str
    tp: int = 1
    lora_rank: int = 16
    checkpointing: str = "none"
    assumptions: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def sixteen(self) -> float:
        """Bytes of one unquantised parameter: 4 in fp32, else 2."""
        return 4.0 if self.precision == "fp32" else 2.0

    @property
    def latent(self) -> tuple[int, int, int]:
        """Latent frames, rows, columns."""
        decoder = self.model.decoder
        frames = (self.frames - 1) // decoder.temporal + 1
        return frames, -(-self.height // decoder.spatial), -(-self.width // decoder.spatial)

    @property
    def tokens(self) -> int:
        """Tokens of one sample in the denoiser: latent patches and joint text tokens."""
        network = self.model.denoiser
        frames, rows, columns = self.latent
        patched = -(-frames // network.temporal_patch) * -(-rows // network.patch) * -(-columns // network.patch)
        return patched + network.text_tokens

    @property
    def output_px(self) -> float:
        """Output pixels of one sample, all frames."""
        return float(self.width * self.height * self.frames)


def resolve_media(request: Request, model: MediaModel, accelerator: Accelerator) -> MediaJob:
    """Make every choice that the request leaves open and note it.

    Raises:
        RequestError: a quantisation this module does not know.
    """
    notes: list[tuple[str, Any]] = []
    half = "bf16" if accelerator.bf16_tflops else "fp16"
    precision, quant = precision_and_quant(request, half)
    if precision != request.precision:
        notes.append(("precision", precision))
    if request.quant is None and quant != "none":
        notes.append(("quant", quant))

    def default(name: str, value: Any) -> Any:
        stated = getattr(request, name)
        if stated is None:
            notes.append((name, value))
            return value
        return stated

    frames = request.frames
    if frames is None and request.seconds is not None and model.frames > 1:
        frames = max(1, round(request.seconds * model.fps))
    if frames is None:
        frames = default("frames", model.frames) if model.frames > 1 else 1
    return MediaJob(
        model=model,
        accelerator=accelerator,
        gpus=request.gpus or 1,
        precision=precision,
        quant=quant,
        encoder_quant=_encoder_quant(request, notes),
        width=default("width", model.width),
        height=default("height", model.height),
        frames=frames,
        batch=default("batch", 1),
        steps=default("steps", model.steps),
        offload=default("offload", "none"),
        tiling=bool(request.vae_tiling),
        compiled=bool(request.compile),
        task=default("task", "generate"),
        tp=request.tp or 1,
        lora_rank=request.lora_rank or 16,
        checkpointing=default("gradient_checkpointing", "none") if request.task == "lora" else "none",
        assumptions=tuple(notes),
    )


def precision_and_quant(request: Request, usual: str) -> tuple[str, str]:
    """Precision of the arithmetic and format of the weights; a precision of 8 bit or less names the weights.

    Raises:
        RequestError: neither a precision nor a quantisation that this module knows.
    """
    asked = request.precision or usual
    if asked in _ARITHMETIC:
        return asked, quantisation(request.quant)
    try:
        narrow = quantisation(asked)
    except RequestError as error:
        known = ", ".join((*_ARITHMETIC, *(name for name in QUANT_BYTES if name != "none")))
        suggestions = nearest(asked, (*_ARITHMETIC, *QUANT_BYTES))
        raise RequestError("bad_value", f"unknown precision {asked!r}; known: {known}", suggestions) from error
    return usual, quantisation(request.quant or narrow)


def _encoder_quant(request: Request, notes: list[tuple[str, Any]]) -> str:
    """As stated; int4 pipelines quantise the text encoders with the denoiser, all others leave them in 16 bit.

    Source: every published int4 run, https://huggingface.co/blog/diffusers-quantization and
    https://github.com/sayakpaul/diffusers-torchao.
    """
    if request.text_encoder_quant is None and quantisation(request.quant) == "int4":
        notes.append(("text_encoder_quant", "int4"))
        return "int4"
    return quantisation(request.text_encoder_quant)


def quantisation(text: str | None) -> str:
    """The canonical name of a quantisation, `none` when not stated.

    Raises:
        RequestError: not one of the known ones.
    """
    name = (text or "none").strip().casefold()
    name = _ALIASES.get(name, name)
    if name not in QUANT_BYTES:
        raise RequestError(
            "bad_value", f"unknown quantisation {text!r}; known: {', '.join(QUANT_BYTES)}", nearest(name, QUANT_BYTES)
        )
    return name
