"""Which files of a model folder or repository are its checkpoint, and what they say together.

One rule for a folder on disk and for a repository on a hub, so that both give the same answer: a safetensors index
names its shards (other copies of the weights beside them do not count twice), else `model.safetensors` is the whole,
else every safetensors file is a part; without any, a GGUF file or the parts of a split one.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
_WHOLE = "model.safetensors"
_QUANTIZATION = "hf_quant_config.json"
# gguf-split, of llama.cpp, numbers the parts of a file like this.
_GGUF_PART = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf")
# GGUF files beside a model that are not the model: the vision projector and the importance matrix.
_NOT_THE_MODEL = re.compile(r"(^|/)mmproj|imatrix", re.IGNORECASE)
_LISTED = 8


class CheckpointFiles(Protocol):
    """The files of one folder or repository, by their names in it."""

    @property
    def place(self) -> str:
        """What to call it in messages."""

    def names(self) -> list[str]:
        """All files, those of sub-folders with their path."""

    def text(self, name: str) -> str | None:
        """A small text file, or None where there is none of that name."""

    def safetensors_bytes(self, names: Sequence[str]) -> int | None:
        """Tensor bytes of these files by their headers, or None where one of them is absent."""

    def gguf(self, names: Sequence[str]) -> dict[str, Any]:
        """What the headers of these parts of one GGUF file say."""


@contextmanager
def layout_checked(name: str) -> Iterator[None]:
    """Turn what goes wrong inside a file of another layout into a ValueError that says so."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, struct.error, RecursionError, OverflowError) as error:
        msg = f"{name} does not have the layout of a checkpoint ({type(error).__name__}: {error})"
        raise ValueError(msg) from None


def read_files(files: CheckpointFiles, wanted: str = "") -> dict[str, Any]:
    """Configuration keys of a checkpoint, with `weight_bytes` (tensor bytes, without headers) where they are listed.

    Args:
        files: where to look.
        wanted: for a GGUF repository, the file or the quantisation tag to take, such as Q4_K_M.

    Raises:
        ValueError: no checkpoint that these rules know, a damaged one, or several where one has to be named.
    """
    with layout_checked(files.place):
        text = None if wanted else files.text(CONFIG)
        if text is None:
            return files.gguf(gguf_parts(files, wanted))
        config = read_config(files, text)
        size = weight_bytes(files)
        if size is None:
            listed = [name for name in files.names() if name.endswith(".gguf")]
            if listed:
                # The repository's own keys are finer on shapes, the file knows the bytes.
                gguf = files.gguf(gguf_parts(files, wanted))
                stored = {key: gguf[key] for key in ("weight_bytes", "gguf_type", "native_format")}
                return {**gguf, **config, **stored}
            return config
        return {**config, "weight_bytes": size}


def read_config(files: CheckpointFiles, text: str) -> dict[str, Any]:
    """config.json; ModelOpt builds may keep what was quantised in a file of its own."""
    config = json_object(text, CONFIG)
    if not config.get("quantization_config") and (beside := files.text(_QUANTIZATION)) is not None:
        found = json_object(beside, _QUANTIZATION)
        config["quantization_config"] = {"quant_method": "modelopt", **found.get("quantization", found)}
    return config


def weight_bytes(files: CheckpointFiles) -> int | None:
    """Tensor bytes of the safetensors files that make up the checkpoint, or None where there are none."""
    text = files.text(INDEX)
    if text is not None:
        return indexed_bytes(files, json_object(text, INDEX))
    whole = files.safetensors_bytes([_WHOLE])
    if whole is not None:
        return whole
    parts = [name for name in files.names() if name.endswith(".safetensors") and "/" not in name]
    return files.safetensors_bytes(sorted(parts)) if parts else None


def indexed_bytes(files: CheckpointFiles, index: Mapping[str, Any]) -> int:
    """Tensor bytes of the shards that an index names; its own total where they are not all there.

    Raises:
        ValueError: neither the shards nor a total.
    """
    shards = sorted(set(index["weight_map"].values()))
    found = files.safetensors_bytes(shards) if shards else None
    if found is not None:
        return found
    total = index.get("metadata", {}).get("total_size")
    if isinstance(total, int | float):
        return int(total)
    msg = f"{files.place}: the index gives no total_size, and not all of its {len(shards)} files are there"
    raise ValueError(msg)


def gguf_parts(files: CheckpointFiles, wanted: str = "") -> list[str]:
    """The one GGUF model of a folder or repository: its file, or all parts of it in order.

    Raises:
        ValueError: none, several, or parts missing.
    """
    models = _gguf_models(files.names())
    if not models:
        msg = f"{files.place} holds neither {CONFIG} nor a .gguf file"
        raise ValueError(msg)
    chosen = {stem: parts for stem, parts in models.items() if _is_wanted(stem, parts, wanted)}
    if len(chosen) != 1:
        found = sorted(chosen or models)
        listed = ", ".join(found[:_LISTED]) + (" …" if len(found) > _LISTED else "")
        problem = f"has no GGUF model {wanted!r}" if not chosen else f"holds {len(found)} GGUF models"
        msg = f"{files.place} {problem}; name one of: {listed}"
        raise ValueError(msg)
    (parts,) = chosen.values()
    split = _GGUF_PART.fullmatch(parts[0])
    if split and len(parts) != int(split["parts"]):
        msg = f"{files.place}: {len(parts)} of the {int(split['parts'])} parts of {split['stem']} are there"
        raise ValueError(msg)
    return parts


def _gguf_models(names: Sequence[str]) -> dict[str, list[str]]:
    """Files by model: the name without its ending and part number."""
    models: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.endswith(".gguf") and not _NOT_THE_MODEL.search(name):
            split = _GGUF_PART.fullmatch(name)
            models.setdefault(split["stem"] if split else name.removesuffix(".gguf"), []).append(name)
    return models


def _is_wanted(stem: str, parts: Sequence[str], wanted: str) -> bool:
    """`wanted` is a file's name, or a whole word of it; anything is where nothing is asked for."""
    if not wanted or wanted in parts:
        return True
    word = re.compile(rf"(?:^|[-./_]){re.escape(wanted)}(?:$|[-.])", re.IGNORECASE)
    return bool(word.search(stem.rsplit("/", 1)[-1]))


def json_object(text: str, name: str) -> dict[str, Any]:
    """The JSON object in a text file of a checkpoint.

    Raises:
        ValueError: it holds something else.
    """
    data = json.loads(text)
    if not isinstance(data, dict):
        msg = f"{name} is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - the content of a file, not an argument
    return data
