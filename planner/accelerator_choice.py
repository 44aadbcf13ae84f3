"""The accelerator that a request means; a name that leaves form factor or memory open becomes the least of its kin."""

from __future__ import annotations

import functools
from dataclasses import replace

from catalog.accelerators import accelerator, accelerators, families
from catalog.errors import GpuBazaarError, nearest
from catalog.types import Accelerator
from planner.request import RequestError

_LEAST = (
    "memory_gb",
    "memory_gib_usable",
    "memory_bandwidth_gb_s",
    "fp16_tflops",
    "bf16_tflops",
    "fp8_tflops",
    "int8_tflops",
    "fp4_tflops",
    "link_gb_s_bidirectional",
)


@functools.lru_cache(maxsize=1024)
def choose(name: str) -> tuple[Accelerator, tuple[str, ...]]:
    """The facts to plan with, and the slugs of all candidates when the name is ambiguous (else one).

    Raises:
        RequestError: the name is unknown; carries the nearest slugs.
    """
    slugs = _slugs(name)
    if not slugs:
        suggestions = nearest(name, (*families(), *accelerators()))
        hint = f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""
        raise RequestError("unknown_gpu", f"unknown GPU {name!r}{hint}", suggestions)
    candidates = [accelerator(slug) for slug in slugs]
    if len(candidates) == 1:
        return candidates[0], slugs
    return _least(candidates), slugs


def _slugs(name: str) -> tuple[str, ...]:
    folded = name.strip().casefold()
    if folded in accelerators():
        return (folded,)
    try:
        from catalog.names import gpu_slugs_for
    except ImportError:
        return families().get(folded, ())
    try:
        return tuple(gpu_slugs_for(name))
    except GpuBazaarError:
        return ()


def _least(candidates: list[Accelerator]) -> Accelerator:
    """Field by field the smallest value: memory, bandwidth, each TFLOPS figure; one without a link means none."""
    smallest = min(candidates, key=lambda gpu: (gpu.memory_gib_usable, gpu.memory_bandwidth_gb_s or 0))
    values: dict[str, float | None] = {}
    for field in _LEAST:
        found = [getattr(gpu, field) for gpu in candidates]
        values[field] = None if any(value is None for value in found) else min(found)
    weakest_link = min(candidates, key=lambda gpu: gpu.link_gb_s_bidirectional or 0)
    return replace(smallest, link=weakest_link.link, **values)  # type: ignore[arg-type]
