"""From a provider's GPU label to a product of the accelerator table.

The name decides; memory, form factor and edition only choose among the products of that name, and a figure that fits
none of them is ignored. What stays open keeps its family and its candidates. An unknown name stays unknown.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache

from catalog.accelerators import accelerators, families
from catalog.datafiles import csv_rows
from catalog.errors import UnknownName
from catalog.gpu_slices import slice_of
from catalog.name_patterns import NameMatch, edition, exact_slug, fold, names_in
from catalog.name_quantities import Label, form_factors_in, read_label
from catalog.tpu_names import resolve_tpu

_LONGEST_LABEL = 512  # characters; what follows is prose
_SAME_FIGURE = 0.02
_MEMORY_TOLERANCE = 0.12  # 268 GB reported of a 288 GB card is off by 7 %; 80 and 94 GB differ by 15 %


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
    folded = fold(text[:_LONGEST_LABEL])
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
    count = next((label.count for _, label in read if label.count), None)
    if candidates is None:
        union = dict.fromkeys(gpu for match, _ in read for gpu in match.gpus)
        return Resolution(text, None, tuple(union), True, count, None, None)
    if not label.is_slice:
        return _whole(text, candidates, count)
    part = slice_of(candidates, label)
    return Resolution(
        text, _common_name(part.gpus), part.gpus, len(part.gpus) > 1, count, part.fraction, part.memory_gb
    )


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
    return frozenset(row["gpu"] for row in csv_rows("catalog", "uncommon_variants.csv"))


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
    form_factors = label.form_factors or form_factors_in(fold(form_factor or ""))
    gpus, exact_form = _by_form_factor(gpus, form_factors)
    figures = () if label.names_slice_memory else label.memory_gb
    tolerance = _SAME_FIGURE if label.is_slice else _MEMORY_TOLERANCE
    gpus = _by_memory(gpus, figures or ((memory_gb,) if memory_gb else ()), label.count, tolerance)
    if not figures and not memory_gb and label.bare_memory_gb:
        gpus = _by_memory(gpus, (label.bare_memory_gb,), None, 0.0)
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


def _by_memory(
    gpus: tuple[str, ...], figures: tuple[float, ...], count: int | None, tolerance: float
) -> tuple[str, ...]:
    """Products whose memory is nearest to a stated figure, per GPU first, then as the total of `count` GPUs."""
    for per_gpu in (*figures, *(figure / count for figure in figures if count and count > 1)):
        distance = {gpu: abs(per_gpu / accelerators()[gpu].memory_gb - 1) for gpu in gpus}
        nearest = min(distance.values())
        if nearest <= tolerance:
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
