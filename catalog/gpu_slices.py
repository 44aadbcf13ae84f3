"""Parts of one physical GPU: MIG instances, vGPU profiles, plain fractions.

Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html (shares of memory and of
SMs per profile) and https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-gpus.html (instances per card).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from catalog.accelerators import accelerators
from catalog.name_quantities import Label

_FRACTION_STEP = Decimal("0.00001")  # the column gpu_fraction is DECIMAL(6,5)
_MEMORY_TOLERANCE = 0.12  # profiles round: 1g.23gb of 180 GB, 1g.34gb of 288 GB
_INSTANCES = {"a30": 4, "rtx-pro-6000": 4, "rtx-pro-5000": 2, "rtx-pro-4500": 2}
_MOST_INSTANCES = 7
# Cards with 7 compute slices have 8 memory slices: a 3g or 4g instance holds half of the memory.
_MEMORY_EIGHTHS = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
_SLICES_BY_EIGHTHS = {1: 1, 2: 2, 4: 3, 8: 7}


@dataclass(frozen=True, slots=True)
class GpuSlice:
    """A part of one GPU: the products it can be cut from, its share of compute and its memory in GB, if known."""

    gpus: tuple[str, ...]
    fraction: Decimal | None
    memory_gb: float | None


def slice_of(gpus: tuple[str, ...], label: Label) -> GpuSlice:
    """The slice that a label names, cut from one of the candidates `gpus`."""
    if label.is_mig:
        return _mig_slice(gpus, label)
    stated_gb = label.vgpu_memory_gb or (label.memory_gb[0] if label.memory_gb else None)
    gpus = _holding(gpus, stated_gb)
    whole_gb = _smallest(gpus)
    fraction = label.fraction
    if fraction is None:
        assert stated_gb is not None  # only a vGPU profile is a slice without a fraction, and it states its memory
        return GpuSlice(gpus, _rounded(min(Decimal(1), Decimal(stated_gb) / Decimal(whole_gb))), stated_gb)
    if stated_gb is None or stated_gb >= whole_gb:
        stated_gb = round(whole_gb * float(fraction), 3)
    return GpuSlice(gpus, _rounded(fraction), stated_gb)


def _mig_slice(gpus: tuple[str, ...], label: Label) -> GpuSlice:
    slice_gb, slices = label.mig_memory_gb, label.mig_slices
    if slice_gb is None and label.memory_gb:
        slice_gb = label.memory_gb[0]
    if slice_gb is None:
        return GpuSlice(gpus, None, None)
    gpus = _matching_profile(gpus, slices, slice_gb) if slices else _holding(gpus, slice_gb)
    instances = _instances(gpus[0])
    if slices is None:
        share = slice_gb / _smallest(gpus)
        eighths = _SLICES_BY_EIGHTHS.get(round(share * 8))
        slices = eighths if instances == _MOST_INSTANCES else round(share * instances)
    fraction = _rounded(Decimal(min(slices, instances)) / instances) if slices else None
    return GpuSlice(gpus, fraction, slice_gb)


def _matching_profile(gpus: tuple[str, ...], slices: int, slice_gb: float) -> tuple[str, ...]:
    """Candidates of which `slices` hold about `slice_gb`; a 1g instance may take a double share of memory."""
    for factor in (1, 2):
        fitting = tuple(
            gpu for gpu in gpus if abs(slice_gb / (factor * _profile_gb(gpu, slices)) - 1) <= _MEMORY_TOLERANCE
        )
        if fitting:
            return fitting
    return _holding(gpus, slice_gb)


def _profile_gb(gpu: str, slices: int) -> float:
    instances = _instances(gpu)
    share = _MEMORY_EIGHTHS.get(slices, slices) / 8 if instances == _MOST_INSTANCES else slices / instances
    return accelerators()[gpu].memory_gb * max(share, 1 / 8)


def _instances(gpu: str) -> int:
    return _INSTANCES.get(accelerators()[gpu].family, _MOST_INSTANCES)


def _holding(gpus: tuple[str, ...], slice_gb: float | None) -> tuple[str, ...]:
    """Candidates large enough to hold the slice; all where none is."""
    return tuple(gpu for gpu in gpus if slice_gb and accelerators()[gpu].memory_gb * 1.02 >= slice_gb) or gpus


def _smallest(gpus: tuple[str, ...]) -> float:
    return min(accelerators()[gpu].memory_gb for gpu in gpus)


def _rounded(share: Decimal) -> Decimal:
    return share.quantize(_FRACTION_STEP, ROUND_HALF_UP)
