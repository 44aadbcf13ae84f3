"""The accelerator that a request means.

A name that leaves form factor or memory open becomes the least of its kin; a slice of a GPU (MIG, vGPU, a fraction)
becomes what one tenant sees of it.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from catalog.accelerators import accelerator, accelerators, families
from catalog.errors import GpuBazaarError, nearest
from catalog.names import Resolution, gpu_slugs_for, resolve
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
_RATES = ("memory_bandwidth_gb_s", "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "fp8_tflops",
          "int8_tflops", "fp4_tflops")  # fmt: skip


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
    chosen = candidates[0] if len(candidates) == 1 else _least(candidates)
    part = _part(name)
    if part is None:
        return chosen, slugs
    if part.gpu_fraction is None:
        raise RequestError(
            "unknown_gpu", f"{name!r} is a slice of unstated size; a profile such as 1g.10gb says it", [chosen.gpu]
        )
    return part_of(chosen, float(part.gpu_fraction), part.gpu_memory_gb), slugs


@functools.lru_cache(maxsize=1024)
def slice_said(name: str | None) -> tuple[str, ...]:
    """What to say of a name that means a slice of a GPU; nothing of whole ones."""
    name = (name or "").strip()
    part = _part(name)
    if part is None or part.gpu_fraction is None:
        return ()
    return (f"{name} is {float(part.gpu_fraction):.3g} of a GPU with {part.gpu_memory_gb:g} GB of its own",)


@functools.lru_cache(maxsize=512)
def part_of(accelerator: Accelerator, fraction: float, memory_gb: float | None) -> Accelerator:
    """The accelerator as one tenant sees it: a slice has its own memory and its share of bandwidth and arithmetic.

    Bandwidth goes with the memory slices (one of eight for 1g.10gb), arithmetic with the compute slices (one of seven).
    Memory below the product's label (a slice, or a part sold with less) counts; more than the label does not.
    """
    share = 1.0 if memory_gb is None else min(1.0, memory_gb / accelerator.memory_gb)
    if memory_gb is None and fraction < 1:
        share = fraction
    if fraction >= 1 and share > 0.95:
        return accelerator
    values: dict[str, Any] = {
        "memory_gb": accelerator.memory_gb * share,
        "memory_gib_usable": accelerator.memory_gib_usable * share,
    }
    if fraction < 1:
        parts = {n: min(fraction, share) if n == "memory_bandwidth_gb_s" else fraction for n in _RATES}
        values |= {n: None if (v := getattr(accelerator, n)) is None else v * part for n, part in parts.items()}
        values |= {"link": "none", "link_gb_s_bidirectional": None}
    return replace(accelerator, **values)


def _part(name: str) -> Resolution | None:
    """The slice that a label names, None where it names whole GPUs."""
    if name.strip().casefold() in accelerators():
        return None
    found = resolve(name)
    return None if found.gpu is None or found.gpu_fraction == 1 else found


def _slugs(name: str) -> tuple[str, ...]:
    folded = name.strip().casefold()
    if folded in accelerators():
        return (folded,)
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
