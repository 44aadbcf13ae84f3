"""Which weight and cache formats run where: an allow-list per engine and architecture (`data/precision.csv`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from catalog.types import Accelerator
from planner.datafiles import data_rows

Path = Literal["native", "weight_only", "fp16"]
_ENGINE_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}
_SIZE_ORDER = ("nvfp4", "mxfp4", "int4", "awq", "gptq", "fp8", "int8", "bf16", "fp16")
# What to offer first in place of a format that does not run, by how much it resembles it.
_NEAREST: Mapping[str, tuple[str, ...]] = {
    "fp8": ("int8", "awq", "gguf", "bf16", "fp16"),
    "mxfp8": ("fp8", "int8", "bf16", "fp16"),
    "int8": ("fp8", "awq", "gguf", "bf16", "fp16"),
    "awq": ("gptq", "int4", "gguf", "fp16"),
    "gptq": ("awq", "int4", "gguf", "fp16"),
    "int4": ("awq", "gptq", "gguf", "fp16"),
    "int4-g32": ("int4", "awq", "gptq", "fp16"),
    "nvfp4": ("awq", "gptq", "int4", "fp8", "gguf", "fp16"),
    "mxfp4": ("awq", "int4", "fp8", "gguf", "fp16"),
    "gguf": ("awq", "gptq", "fp16"),
    "bf16": ("fp16",),
    "fp16": ("bf16",),
    "fp32": ("bf16", "fp16"),
}


@dataclass(frozen=True, slots=True)
class Support:
    """How a format runs: `path` None means it does not, and `reason` says why, with the nearest that does."""

    path: Path | None
    reason: dict[str, Any] | None = None


def architecture_key(gpu: Accelerator) -> str:
    """The name that the allow-list uses: compute capability, gfx target, gaudi, xe, tpu generation; '' without one."""
    if gpu.vendor == "Intel":
        return "gaudi" if gpu.architecture.startswith("Gaudi") else "xe"
    if gpu.vendor == "Google":
        return gpu.gpu.rsplit("-", 1)[0]
    return gpu.compute_capability


def family_of(weight_format: str) -> str:
    """The allow-list's format of a weight format: every GGUF type is `gguf`."""
    return "gguf" if weight_format.startswith("gguf") else weight_format


@functools.lru_cache(maxsize=4096)
def weight_support(engine: str, weight_format: str, gpu: Accelerator) -> Support:
    """Whether `engine` runs `weight_format` on `gpu`, and by which path."""
    wanted = family_of(weight_format)
    path = _path(engine, wanted, architecture_key(gpu))
    if path is not None:
        return Support(path)
    nearest = next((f for f in _NEAREST.get(wanted, ()) if _path(engine, f, architecture_key(gpu))), None)
    values = {
        "format": weight_format,
        "engine": engine,
        "gpu": gpu.gpu,
        "architecture": gpu.architecture,
        "compute_capability": gpu.compute_capability,
        "nearest": nearest,
    }
    return Support(None, {"code": "unsupported_format", "values": values})


@functools.lru_cache(maxsize=4096)
def cache_support(engine: str, cache_format: str, gpu: Accelerator) -> Support:
    """Whether `engine` keeps a KV cache in `cache_format` on `gpu`."""
    key = architecture_key(gpu)
    rows = [row for row in data_rows("cache_formats.csv") if row["engine"] == engine]
    if any(row["format"] == cache_format and _covers(row["architectures"], key) for row in rows):
        return Support("native")
    running = [row["format"] for row in rows if _covers(row["architectures"], key)]
    nearest = "fp8" if "fp8" in running else "q8_0" if "q8_0" in running else "bf16"
    values = {"kv_cache": cache_format, "engine": engine, "gpu": gpu.gpu, "nearest": nearest}
    return Support(None, {"code": "unsupported_kv_cache", "values": values})


@functools.lru_cache(maxsize=4096)
def _path(engine: str, weight_format: str, key: str) -> Path | None:
    for row in data_rows("precision.csv"):
        if row["engine"] == engine and row["format"] == weight_format and _covers(row["architectures"], key):
            return row["path"]  # type: ignore[return-value]
    return None


def _covers(architectures: str, key: str) -> bool:
    return architectures == "*" or key in architectures.split()


@functools.cache
def _listed(engine: str) -> frozenset[str]:
    rows = (row for row in data_rows("precision.csv") if row["engine"] == engine)
    return frozenset(key for row in rows for key in row["architectures"].split() if key != "*")


def engine_support(engine: str, vendors: frozenset[str], minimum_capability: float, gpu: Accelerator) -> Support:
    """Whether the engine runs on the chip at all: vendor, then compute capability.

    Of vendors that the engine does not support as a whole, the chips that its allow-list of formats names run all the
    same (Gaudi, Intel GPUs and TPUs by plugins of vLLM).
    """
    values: dict[str, Any] = {"engine": engine, "gpu": gpu.gpu, "vendor": gpu.vendor}
    if gpu.vendor not in vendors and architecture_key(gpu) not in _listed(engine):
        return Support(None, {"code": "unsupported_engine", "values": values})
    if gpu.vendor != "NVIDIA":
        return Support("native")
    try:
        capability = float(gpu.compute_capability)
    except ValueError:
        return Support("native")
    if capability < minimum_capability:
        values |= {"compute_capability": gpu.compute_capability, "minimum": minimum_capability}
        return Support(None, {"code": "unsupported_engine", "values": values})
    return Support("native")
