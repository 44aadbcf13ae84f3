"""Memory and time of speech recognition (Whisper family) and of audio generation, by the track.

Few public measurements exist, so confidence is low. Whisper: 30-second windows, an encoder pass each, then tokens one
by one, bound by reading the decoder's weights and by launches (calibrated on the large-v2 figures of
https://github.com/SYSTRAN/faster-whisper, RTX 3070 Ti, beam 5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from catalog.errors import nearest
from catalog.types import Accelerator
from planner.media_job import QUANT_BYTES, precision_and_quant
from planner.request import Request, RequestError
from planner.training_efficiency import accelerator_kind, peak_tflops

_DATA = Path(__file__).parent / "data" / "media_audio.json"
_GIB, _GIGA, _TERA = 2.0**30, 1e9, 1e12
_WINDOW_S = 30.0
# Speech is about 150 words a minute, 1.4 tokens a word.
_TOKENS_S = 3.6
_DEFAULT_TRACK_S = 600.0
# Beam caches, encoder activations and workspaces of a model of width 1280, GiB for one window; scales with width.
_WORKSPACE_GIB = 1.25
# Cross-attention and beam caches of one more window of a 32-layer decoder.
_WINDOW_CACHE_GIB = 0.30
# Windows of a batch wait for the longest one: a batch of n is n^0.7 times faster.
_BATCH_GAIN = 0.7
RUNTIME_GIB = 0.5
_BANDWIDTH_SHARE = 0.5
_LAYER_LAUNCH_S = 0.4e-3
_ENCODER_SHARE = 0.3
_DIFFUSION_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFit:
    """GiB on one GPU and seconds per track of `track_s` seconds."""

    name: str
    weights: float
    activations: float
    peak: float
    runtime: float
    track_s: float
    seconds_per_item: float
    stated_minimum: bool
    source: str
    assumptions: tuple[tuple[str, Any], ...] = field(default=())


def audio_fit(request: Request, accelerator: Accelerator) -> AudioFit:
    """Memory and time of the request's audio model on one GPU.

    Raises:
        RequestError: unknown model; the nearest known ones are named.
    """
    row = _lookup(request)
    precision, quant = precision_and_quant(request, "fp16")
    per = QUANT_BYTES[quant] if quant != "none" else 4.0 if precision == "fp32" else 2.0
    notes = [] if request.seconds else [("seconds", row.get("seconds", _DEFAULT_TRACK_S))]
    seconds = request.seconds or row.get("seconds", _DEFAULT_TRACK_S)
    shape = _Shape(row, per, seconds, request.batch or 1, request.steps, precision)
    if "decoder_layers" in row:
        return _whisper(shape, accelerator, tuple(notes))
    return _generator(shape, request.offload or "none", accelerator, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Shape:
    row: Mapping[str, Any]
    bytes_per_param: float
    seconds: float
    batch: int
    steps: int | None
    precision: str


def _bandwidth(accelerator: Accelerator) -> float:
    return (accelerator.memory_bandwidth_gb_s or 300.0) * _GIGA * _BANDWIDTH_SHARE


def _whisper(shape: _Shape, accelerator: Accelerator, notes: tuple[tuple[str, Any], ...]) -> AudioFit:
    row = shape.row
    weights = row["params_b"] * _GIGA * shape.bytes_per_param / _GIB
    caches = _WINDOW_CACHE_GIB * (0.25 + 0.75 * row["decoder_layers"] / 32)
    work = (_WORKSPACE_GIB + caches * (shape.batch - 1)) * row["width"] / 1280
    windows = -(-shape.seconds // _WINDOW_S)
    encoder = 2 * (row["params_b"] - row["decoder_params_b"]) * _GIGA * 1500
    rate = peak_tflops(accelerator, shape.precision) * _TERA * _ENCODER_SHARE
    token = row["decoder_params_b"] * _GIGA * shape.bytes_per_param / _bandwidth(accelerator)
    token += row["decoder_layers"] * _LAYER_LAUNCH_S
    tokens = min(shape.seconds, _WINDOW_S) * _TOKENS_S
    window_s = encoder / rate + tokens * token / shape.batch**_BATCH_GAIN
    return AudioFit(
        name=row["id"],
        weights=weights,
        activations=work,
        peak=weights + work + RUNTIME_GIB,
        runtime=RUNTIME_GIB,
        track_s=shape.seconds,
        seconds_per_item=windows * window_s,
        stated_minimum=False,
        source="https://huggingface.co/" + row["id"],
        assumptions=notes,
    )


def _generator(shape: _Shape, offload: str, accelerator: Accelerator, notes: tuple[tuple[str, Any], ...]) -> AudioFit:
    row = shape.row
    main = row["params_b"] * _GIGA * shape.bytes_per_param
    rest = row["other_params_b"] * _GIGA * 4.0
    tokens = row["tokens_s"] * shape.seconds
    samples = shape.batch * row["cfg"]
    if row["kind"] == "autoregressive":
        cache_bytes = min(tokens, 8192.0) * samples * row["layers"] * 4.0 * row["hidden"]
        step = main / _bandwidth(accelerator) + row["layers"] * _LAYER_LAUNCH_S * 0.75
        seconds = tokens * step / shape.batch
        work = cache_bytes + samples * 2e8
    else:
        work = samples * tokens * row["hidden"] * 30.0 + shape.seconds * 44100 * 2 * 400.0 * shape.batch
        flops = 2 * row["params_b"] * _GIGA * tokens + 4 * tokens**2 * row["hidden"] * row["layers"]
        rate = peak_tflops(accelerator, shape.precision) * _TERA * _DIFFUSION_SHARE
        steps = shape.steps or row["steps"]
        seconds = steps * (row["cfg"] * flops / rate + row["layers"] * _LAYER_LAUNCH_S * 2)
    held = main + rest if offload == "none" else max(main, rest)
    peak = (held + work) / _GIB + RUNTIME_GIB
    minimum = row.get("minimum") or {}
    bound = minimum.get("gib", 0.0) if shape.seconds >= minimum.get("from_seconds", 0.0) else 0.0
    return AudioFit(
        name=row["id"],
        weights=held / _GIB,
        activations=work / _GIB,
        peak=max(peak, bound),
        runtime=RUNTIME_GIB,
        track_s=shape.seconds,
        seconds_per_item=seconds * (1.0 if kind_is_known(accelerator) else 1.5),
        stated_minimum=bound > peak,
        source=row["source"],
        assumptions=notes,
    )


def kind_is_known(accelerator: Accelerator) -> bool:
    """Whether the accelerator's class has calibration at all."""
    return accelerator_kind(accelerator) != "other"


def known_audio_models() -> tuple[str, ...]:
    """Every audio model by id."""
    return tuple(row["id"] for row in _rows())


@cache
def _rows() -> tuple[Mapping[str, Any], ...]:
    data = json.loads(_DATA.read_text(encoding="utf-8"))
    return (*data["whisper"], *data["generators"])


@cache
def _by_name() -> Mapping[str, Mapping[str, Any]]:
    table: dict[str, Mapping[str, Any]] = {}
    for row in _rows():
        for name in (row["id"], *row["aliases"]):
            table[name.casefold()] = row
            table.setdefault(name.rsplit("/", 1)[-1].casefold(), row)
    return table


def _lookup(request: Request) -> Mapping[str, Any]:
    name = request.model if isinstance(request.model, str) else None
    if name is None and request.params_b is None:
        raise RequestError("missing_key", f"an audio estimate needs a model: one of {', '.join(known_audio_models())}")
    found = _by_name().get(name.strip().casefold()) if name else None
    if found is not None:
        return found
    if request.params_b is None:
        close = nearest(name or "", known_audio_models())
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise RequestError("unknown_model", f"unknown audio model {name!r}{hint}", close)
    layers = request.layers or 24
    hidden = request.hidden or round((request.params_b * _GIGA / 12 / layers) ** 0.5)
    return {
        "id": name or f"{request.params_b:g}B audio model",
        "kind": "autoregressive",
        "params_b": request.params_b,
        "other_params_b": 0.2,
        "layers": layers,
        "hidden": hidden,
        "tokens_s": 50,
        "cfg": 2,
        "seconds": 30.0,
        "source": "request",
    }
