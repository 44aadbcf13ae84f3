"""Image and video generators by their parts: text encoders, denoiser, decoder, from data or from dimensions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from catalog.errors import nearest
from planner.request import Request, RequestError

_DATA = Path(__file__).parent / "data" / "media_components.json"
_BILLION = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoiser:
    """The network that runs once per step (or once per token group), parameters as counts.

    A transformer has `layers`, `hidden`, `heads`; a U-Net has `unet_flops_per_latent_px` instead. `cfg` is passes per
    step; batched passes share one forward. `experts` networks of this size take turns (Wan 2.2). `stored_bytes` is 4
    for a checkpoint published in fp32, which its reference code does not cast.
    """

    params: float
    layers: int
    hidden: int
    heads: int = 0
    intermediate: int = 0
    mlp_ratio: float = 4.0
    patch: int = 2
    temporal_patch: int = 1
    text_tokens: int = 0
    cross_attention: bool = False
    cfg: int = 1
    cfg_batched: bool = True
    experts: int = 1
    stored_bytes: int = 2
    unet_flops_per_latent_px: float = 0.0

    @property
    def token_params(self) -> float:
        """Parameters that one token multiplies with: attention, feed-forward and, where there is one, cross-attention.

        Modulation networks and per-stream copies of double blocks are left out: they see other tokens or none.
        """
        feed_forward = 2 * self.hidden * (self.intermediate or self.mlp_ratio * self.hidden)
        cross = 2 * self.hidden**2 if self.cross_attention else 0
        return min(self.layers * (4 * self.hidden**2 + feed_forward + cross), self.params)


@dataclass(frozen=True, slots=True)
class Encoder:
    """A text or image encoder: parameters, and those that stay in fp32 when it is quantised."""

    params: float
    fp32_params: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """The autoencoder: compression and what decoding needs per output pixel (and frame) in 16 bit.

    `chunk_frames` output frames are decoded at a time, 0 = all at once; `fp32` decoders run in 32 bit.
    """

    params: float
    spatial: int
    temporal: int
    decode_bytes_per_px: float
    decode_flops_per_px: float
    fp32: bool
    chunk_frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaModel:
    """One generator: text and image encoders, denoiser, decoder, and the pipeline's defaults.

    `minimum_gib` is a stated minimum of its makers and the offload mode it was stated for: a lower bound.
    """

    name: str
    kind: str
    denoiser: Denoiser
    encoders: tuple[Encoder, ...]
    decoder: Decoder
    steps: int
    width: int
    height: int
    frames: int = 1
    fps: float = 1.0
    minimum_gib: float = 0.0
    minimum_offload: str = ""
    source: str = ""

    @property
    def encoder_params(self) -> float:
        """Parameters of all encoders."""
        return sum(encoder.params for encoder in self.encoders)

    @property
    def params(self) -> float:
        """All parameters of all parts."""
        return self.denoiser.params * self.denoiser.experts + self.encoder_params + self.decoder.params


def media_model(request: Request) -> MediaModel:
    """The generator that a request names or describes by dimensions.

    Raises:
        RequestError: unknown id (with the nearest known ones), or a description without size.
    """
    if isinstance(request.model, str):
        found = _by_name().get(_folded(request.model))
        if found is not None:
            return found
        if request.params_b is None:
            raise _unknown(request.model)
    described = dict(request.model) if isinstance(request.model, Mapping) else {}
    for key in ("params_b", "layers", "hidden", "heads", "intermediate"):
        value = getattr(request, key)
        if value is not None:
            described[key] = value
    return _described(request, described)


@cache
def known_media_models() -> Mapping[str, MediaModel]:
    """Every generator of `data/media_components.json` by its id."""
    return {model.name: model for model in _table()}


def _unknown(name: str) -> RequestError:
    close = nearest(name, known_media_models())
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return RequestError(
        "unknown_model",
        f"unknown image or video model {name!r}{hint} A known id, or params_b with layers and hidden of the denoiser "
        "would be accepted.",
        close,
    )


def _described(request: Request, described: Mapping[str, Any]) -> MediaModel:
    """A transformer denoiser given by dimensions, with a T5-XXL encoder and the usual autoencoder."""
    size = described.get("params_b")
    layers = described.get("layers") or described.get("num_layers") or described.get("num_hidden_layers")
    hidden = described.get("hidden") or described.get("hidden_size")
    if size is None and not (layers and hidden):
        raise RequestError("missing_key", "a denoiser needs params_b, or layers and hidden")
    if not (layers and hidden):
        layers = max(12, round((float(size or 1) * _BILLION / 16 / 64**2) ** (1 / 3)))
        hidden = 64 * layers
    params = float(size) * _BILLION if size else 16.0 * float(layers) * float(hidden) ** 2
    data = _data()
    video = request.workload == "video"
    stated = described.get("text_encoder_params_b")
    encoder = _encoder(data["encoders"]["t5-xxl"]) if stated is None else Encoder(float(stated) * _BILLION)
    return MediaModel(
        name=str(described.get("_name_or_path") or f"{params / _BILLION:g}B denoiser"),
        kind=request.workload,
        denoiser=Denoiser(
            params=params,
            layers=int(layers),
            hidden=int(hidden),
            heads=int(described.get("heads") or max(1, int(hidden) // 128)),
            intermediate=int(described.get("intermediate") or 0),
            text_tokens=int(described.get("text_tokens") or 256),
            cfg=int(described.get("cfg") or 2),
            patch=int(described.get("patch") or 2),
        ),
        encoders=(encoder,),
        decoder=_decoder(data["decoders"]["hunyuan-3d" if video else "kl-2d"]),
        steps=50 if video else 28,
        width=832 if video else 1024,
        height=480 if video else 1024,
        frames=81 if video else 1,
        fps=16 if video else 1,
        source="request",
    )


@cache
def _data() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_DATA.read_text(encoding="utf-8"))
    return content


def _encoder(row: Mapping[str, Any]) -> Encoder:
    return Encoder(row["params_b"] * _BILLION, row.get("fp32_params_b", 0.0) * _BILLION)


def _decoder(row: Mapping[str, Any]) -> Decoder:
    values = {key: value for key, value in row.items() if key not in {"source", "params_b"}}
    return Decoder(params=row["params_b"] * _BILLION, **values)


@cache
def _table() -> tuple[MediaModel, ...]:
    data = _data()
    return tuple(_row(data, row) for row in data["models"])


def _row(data: Mapping[str, Any], row: Mapping[str, Any]) -> MediaModel:
    network = dict(row["denoiser"])
    params = network.pop("params_b") * _BILLION
    minimum = row.get("minimum") or {}
    return MediaModel(
        name=row["id"],
        kind=row["kind"],
        denoiser=Denoiser(params=params, **network),
        encoders=tuple(_encoder(data["encoders"][name]) for name in row["encoders"]),
        decoder=_decoder(data["decoders"][row["decoder"]]),
        steps=row["steps"],
        width=row["width"],
        height=row["height"],
        frames=row.get("frames", 1),
        fps=row.get("fps", 1.0),
        minimum_gib=minimum.get("gib", 0.0),
        minimum_offload=minimum.get("offload", ""),
        source=row["source"],
    )


@cache
def _by_name() -> Mapping[str, MediaModel]:
    models = known_media_models()
    table: dict[str, MediaModel] = {}
    for row in _data()["models"]:
        for name in (row["id"], *row["aliases"]):
            table[_folded(name)] = models[row["id"]]
            table.setdefault(_folded(name.rsplit("/", 1)[-1]), models[row["id"]])
    return table


def _folded(name: str) -> str:
    return name.strip().casefold().removesuffix("-diffusers").removesuffix("_diffusers")
