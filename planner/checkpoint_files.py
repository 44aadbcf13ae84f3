"""Read what a checkpoint on disk says about itself: config.json, safetensors headers and index, GGUF header.

Only headers are read, never tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from catalog.checkpoint_layout import (
    CONFIG,
    gguf_parts,
    indexed_bytes,
    json_object,
    layout_checked,
    read_config,
    read_files,
)
from catalog.gguf_header import read_gguf_parts
from catalog.safetensors_header import tensor_bytes


def looks_like_path(name: str) -> bool:
    """Whether a model name is meant as a file or folder rather than as an id."""
    if name.startswith(("/", "./", "../", "~")) or name.endswith((".json", ".gguf", ".safetensors")):
        return True
    try:
        return Path(name).is_dir()
    except OSError:  # too long for a path
        return False


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Configuration keys found at `path`, with `weight_bytes` (tensor bytes, without headers) where tensors are listed.

    Raises:
        OSError: the file cannot be opened.
        ValueError: it is not a checkpoint that this function knows, or is cut short.
    """
    with layout_checked(path.name):
        if path.is_dir():
            return read_files(_Folder(path))
        return _read_file(path)


def _read_file(path: Path) -> dict[str, Any]:
    folder = _Folder(path.parent)
    if path.suffix == ".gguf":
        path.stat()  # a file that is not there is an OSError, as for the other kinds
        return folder.gguf(gguf_parts(folder, path.name))
    if path.suffix == ".safetensors":
        return {**_config_beside(path, folder), "weight_bytes": safetensors_bytes(path)}
    data = json_object(path.read_text(encoding="utf-8"), path.name)
    if "weight_map" in data:
        return {**_config_beside(path, folder), "weight_bytes": indexed_bytes(folder, data)}
    return data


def _config_beside(path: Path, folder: _Folder) -> dict[str, Any]:
    text = folder.text(CONFIG)
    if text is None:
        msg = f"{path.name} says how many bytes, not which shape: put the model's {CONFIG} beside it"
        raise ValueError(msg)
    return read_config(folder, text)


def safetensors_bytes(path: Path) -> int:
    """Sum of the tensor sizes that a safetensors header lists."""
    with path.open("rb") as file:
        return tensor_bytes(file, path.name)


def read_gguf(path: Path, parts: Sequence[Path] | None = None) -> dict[str, Any]:
    """Configuration keys, tensor bytes and the commonest quantised tensor type of a GGUF file or its parts."""
    with ExitStack() as opened:
        return read_gguf_parts(_opened(opened, parts or [path]))


def _opened(stack: ExitStack, paths: Sequence[Path]) -> Iterator[tuple[str, BinaryIO]]:
    for path in paths:
        yield path.name, stack.enter_context(path.open("rb"))


@dataclass(frozen=True, slots=True)
class _Folder:
    """The files of one folder on disk, without those of sub-folders."""

    path: Path

    @property
    def place(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.iterdir() if entry.is_file())

    def text(self, name: str) -> str | None:
        file = self.path / name
        return file.read_text(encoding="utf-8") if file.exists() else None

    def safetensors_bytes(self, names: Sequence[str]) -> int | None:
        shards = [self.path / name for name in names]
        if not all(shard.exists() for shard in shards):
            return None
        return sum(safetensors_bytes(shard) for shard in shards)

    def gguf(self, names: Sequence[str]) -> dict[str, Any]:
        return read_gguf(self.path / names[0], [self.path / name for name in names])
