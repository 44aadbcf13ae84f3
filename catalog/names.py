"""From a provider's GPU label to a product of the accelerator table.

The name decides; memory, form factor and edition only choose among the products of that name, and a figure that fits
none of them is ignored. What stays open keeps its family and its candidates. An unknown name stays unknown.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache, lru_cache

from catalog.accelerators import accelerators, data_rows, families
from catalog.errors import UnknownName
from catalog.name_patterns import NameMatch, edition, exact_slug, fold, names_in
from catalog.name_quantities import Label, read_label
from catalog.tpu_names import resolve_tpu

_MEMORY_TOLERANCE = 0.12  # 268 GB reported of a 288 GB card is off by 7 %; 80 and 94 GB differ by 15 %
_FRACTION_STEP = Decimal("0.00001")  # the column is DECIMAL(6,5)
# Whole-GPU compute slices by memory share in eighths: NVIDIA MIG user guide, profiles 1g, 2g, 3g and 7g.
_SLICES_BY_EIGHTHS = {1: 1, 2: 2, 4: 3, 8: 7}


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a label means.

    Attributes:
        text: the label as given.
        gpu: a slug; a family where `gpu_ambiguous`; None when no product, or more than one, is named.
        gpu_candidates: every slug the label can mean; one when it is certain.
        gpu_ambiguous: more than one candidate.
        gpu_count: GPUs (TPU chips) that the label states; None when it states none.
        gpu_fraction: share of one physical GPU; 1 for whole GPUs, None for a slice of unstated size.
        gpu_memory_gb: GB per GPU, or of the slice: the table's figure, the smallest one over the candidates.
    """

    text: str
    gpu: str | None
    gpu_candidates: tuple[str, ...]
    gpu_ambiguous: bool
    gpu_count: int | None
    gpu_fraction: Decimal | None
    gpu_memory_gb: float | None


@lru_cache(maxsize=16384)
def resolve(text: str, *, memory_gb: float | None = None, form_factor: str | None = None) -> Resolution:
    """Resolve one label.

    Args:
        text: the label, such as "8x NVIDIA A100 80GB SXM4" or "gpu_1x_a10".
        memory_gb: memory per GPU that the source states elsewhere, in GB (or GiB: the difference does not matter).
        form_factor: form factor that the source states elsewhere (`sxm`, `pcie`, `nvl`, `oam`).
    """
    folded = fold(text)
    slug = exact_slug(folded)
    if slug:
        return _whole(text, (slug,), None)
    tpu = resolve_tpu(folded)
    if tpu:
        return _whole(text, (tpu[0],), tpu[1])
    read = [(match, read_label(folded, match.start, match.end, match.glued_count)) for match in names_in(folded)]
    read = [(match, label) for match, label in read if label.nothing_else or not match.stands_alone]
    if not read:
        return Resolution(text, None, (), False, None, None, None)
    candidates = _named_by_all([_narrow(match, label, folded, memory_gb, form_factor) for match, label in read])
    label = read[0][1]
    if candidates is None:
        union = dict.fromkeys(gpu for match, _ in read for gpu in match.gpus)
        return Resolution(text, None, tuple(union), True, label.count, None, None)
    if not label.is_mig and label.vgpu_memory_gb is None and label.fraction is None:
        return _whole(text, candidates, label.count)
    return _slice(text, candidates, label)


def gpu_slugs_for(text: str) -> tuple[str, ...]:
    """The slugs that a user's GPU name admits: a slug, a family, an alias, a label, or a glob such as `h100*`.

    Raises:
        UnknownName: nothing in the table answers to it; the message carries the nearest names.
    """
    wanted = fold(text)
    if any(mark in wanted for mark in "*?["):
        matching = [gpu for gpu, facts in accelerators().items() if _matches(wanted, gpu, facts.family)]
        if matching:
            return tuple(matching)
    elif wanted in families():
        return families()[wanted]
    else:
        found = resolve(text)
        if found.gpu is not None:
            return found.gpu_candidates
    raise UnknownName("GPU", text, (*accelerators(), *families()))


def _matches(pattern: str, gpu: str, family: str) -> bool:
    return fnmatch.fnmatchcase(gpu, pattern) or fnmatch.fnmatchcase(family, pattern)


@cache
def _uncommon() -> frozenset[str]:
    return frozenset(row["gpu"] for row in data_rows("uncommon_variants.csv"))


def _named_by_all(readings: list[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The products that every name in the label admits ("H100 H100-SXM5"); None when the names contradict."""
    common = [gpu for gpu in readings[0] if all(gpu in reading for reading in readings)]
    return tuple(common) or None


def _narrow(
    match: NameMatch, label: Label, folded: str, memory_gb: float | None, form_factor: str | None
) -> tuple[str, ...]:
    """Choose among the products of one name by edition, form factor, memory, memory type, in that order."""
    gpus = match.gpus
    stated_edition = edition(folded[match.end :], gpus)
    if stated_edition:
        gpus = tuple(gpu for gpu in gpus if f"-{stated_edition}-" in gpu)
    form_factors = label.form_factors or ((form_factor.lower(),) if form_factor else ())
    gpus, exact_form = _by_form_factor(gpus, form_factors)
    figures = label.memory_gb if label.mig_memory_gb is None and not label.is_mig and label.fraction is None else ()
    gpus = _by_memory(gpus, figures or ((memory_gb,) if memory_gb else ()), label.count)
    gpus = tuple(gpu for gpu in gpus if gpu in exact_form) or gpus
    gpus = _by_memory_type(gpus, label.memory_type)
    if not any(_says_uncommon(gpu, label, memory_gb) for gpu in gpus):
        gpus = tuple(gpu for gpu in gpus if gpu not in _uncommon()) or gpus
    return gpus


def _by_form_factor(gpus: tuple[str, ...], stated: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Products of the stated form factor, and those of exactly that one. NVL cards are PCIe cards too."""
    for form_factor in stated:
        admitted = ("pcie", "nvl") if form_factor == "pcie" else (form_factor,)
        fitting = tuple(gpu for gpu in gpus if accelerators()[gpu].form_factor in admitted)
        exact = tuple(gpu for gpu in fitting if accelerators()[gpu].form_factor == form_factor)
        if fitting:
            return fitting, exact
    return gpus, ()


def _by_memory(gpus: tuple[str, ...], figures: tuple[float, ...], count: int | None) -> tuple[str, ...]:
    """Products whose memory is nearest to a stated figure, per GPU first, then as the total of `count` GPUs."""
    for per_gpu in (*figures, *(figure / count for figure in figures if count and count > 1)):
        distance = {gpu: abs(per_gpu / accelerators()[gpu].memory_gb - 1) for gpu in gpus}
        nearest = min(distance.values())
        if nearest <= _MEMORY_TOLERANCE:
            return tuple(gpu for gpu in gpus if distance[gpu] == nearest)
    return gpus


def _by_memory_type(gpus: tuple[str, ...], memory_type: str | None) -> tuple[str, ...]:
    """HBM3 and HBM3e are told apart; sources write HBM2 for HBM2e."""
    if memory_type is None:
        return gpus
    admitted = {"hbm2", "hbm2e"} if memory_type == "hbm2" else {memory_type}
    return tuple(gpu for gpu in gpus if accelerators()[gpu].memory_type.lower() in admitted) or gpus


def _says_uncommon(gpu: str, label: Label, memory_gb: float | None) -> bool:
    """Whether a label asks for a variant that is not meant without saying so: its exact memory, or its form factor."""
    if gpu not in _uncommon():
        return False
    facts = accelerators()[gpu]
    siblings = [accelerators()[other] for other in families()[facts.family] if other != gpu]
    if all(facts.memory_gb != sibling.memory_gb for sibling in siblings):
        return facts.memory_gb in label.memory_gb or facts.memory_gb == memory_gb
    return facts.form_factor in label.form_factors


def _whole(text: str, gpus: tuple[str, ...], count: int | None) -> Resolution:
    memory_gb = min(accelerators()[gpu].memory_gb for gpu in gpus)
    return Resolution(text, _common_name(gpus), gpus, len(gpus) > 1, count, Decimal(1), memory_gb)


def _common_name(gpus: tuple[str, ...]) -> str:
    return gpus[0] if len(gpus) == 1 else accelerators()[gpus[0]].family


def _slice(text: str, gpus: tuple[str, ...], label: Label) -> Resolution:
    """A part of one GPU: its share of compute and its own memory, None where the label states neither."""
    stated = label.mig_memory_gb or label.vgpu_memory_gb or (label.memory_gb[0] if label.memory_gb else None)
    gpus = _holding(gpus, stated) if stated else gpus
    whole_gb = min(accelerators()[gpu].memory_gb for gpu in gpus)
    fraction = label.fraction
    if fraction is None and label.is_mig:
        fraction = _mig_fraction(gpus[0], label.mig_slices, stated, whole_gb)
    elif fraction is None and stated:
        fraction = Decimal(str(stated)) / Decimal(str(whole_gb))
    if (stated is None or stated >= whole_gb) and fraction is not None and label.mig_memory_gb is None:
        stated = round(whole_gb * float(fraction), 3)
    share = None if fraction is None else fraction.quantize(_FRACTION_STEP, ROUND_HALF_UP)
    return Resolution(text, _common_name(gpus), gpus, len(gpus) > 1, label.count, share, stated)


def _holding(gpus: tuple[str, ...], slice_gb: float) -> tuple[str, ...]:
    """Candidates large enough to hold the slice."""
    return tuple(gpu for gpu in gpus if accelerators()[gpu].memory_gb * 1.02 >= slice_gb) or gpus


def _mig_fraction(gpu: str, slices: int | None, slice_gb: float | None, whole_gb: float) -> Decimal | None:
    """Compute share of a MIG slice: of 7 slices, of 4 on A30 and RTX PRO cards.

    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html
    """
    in_quarters = gpu.startswith(("a30-", "rtx-pro-"))
    if slices is None and slice_gb:
        share = slice_gb / whole_gb
        slices = round(share * 4) if in_quarters else _SLICES_BY_EIGHTHS.get(round(share * 8))
    if not slices:
        return None
    return Decimal(min(slices, 4 if in_quarters else 7)) / (4 if in_quarters else 7)
