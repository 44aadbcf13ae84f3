"""Numbers and qualifiers in a GPU label, around the product name.

`Label` holds the text with its parts masked one after another, so that no figure is read twice: the 80 of "80GB" is
never a count, the 4 of "SXM4x8" never a quantity, the 16 of "PCIe x16" never eight pairs of cards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

_NAME = "\x01"
_FILLER = (
    r"(?:(?:nvidia|amd|intel|google|aws|tesla|geforce|instinct|radeon|quadro|hgx|dgx|grid|gpus?|of|a|an|the|full"
    r"|whole)(?![a-z0-9])|[\s_\-()]|\x02)*"
)
_MIG = re.compile(r"(?<![a-z0-9])(\d)g[._](\d{1,3})gb(?:\+[a-z.]+)*(?![a-z0-9])|(?<![a-z0-9])(\d)g[._](\d{1,3})gb")
_GLUED_MEMORY = re.compile(r"(pcie|sxm\d|sxm|nvl)(?=\d{2,3}\s?gb?(?![a-z0-9]))")
_MIG_WORD = re.compile(r"(?<![a-z])mig(?![a-z])")
_NOT_OF_THE_GPU = r"\s*(?:ram|host|ssd|nvme|disk|storage|ddr\d|system|cpu)(?![a-z])"
_MEMORY = re.compile(
    r"(?<![\da-z])(?<!\d\.)(\d{1,6}(?:\.\d+)?)\s?(gib|gb|g|mib|mb)(?![a-z0-9])(?!\s?\+)(?!/s)"
    rf"(?!{_NOT_OF_THE_GPU})"
    r"|(?<![\d.a-z])(\d{1,3})(gb)(?=x\d)"
)
# "8x80GB" is eight devices of 80 GB each: the figure before the x is a count, the one behind it memory.
_COUNT_TIMES_MEMORY = re.compile(
    r"(?<![a-z0-9.])(\d{1,4})\s?[x*]\s?"
    rf"(?=\d{{1,3}}(?:\.\d+)?\s?(?:gib|gb|g)(?![a-z0-9])(?!{_NOT_OF_THE_GPU}))"
)
# "A100-80", "V100 SXM2 32": a last number too large for a count, that is memory if the name comes with so much.
_BARE_MEMORY = re.compile(rf"{_NAME}(?:[\s_\-]*(?:sxm\d?|pci-?e|nvl|oam))?[\s_\-]+(\d{{2,3}})$")
_LEAST_BARE_MEMORY_GB = 24
_MEMORY_TYPE = re.compile(r"(?<![a-z0-9])(hbm[234]e?|gddr\d[x]?)(?![a-z0-9])")
# The bus of the host, not the form factor of the card: SXM modules sit behind PCIe 5.0 x16 too.
_PCIE_LANES = re.compile(r"(?:pci-?e[\s_-]*)?(?:pci-?e|gen)[\s_-]*\d(?:\.\d)?[\s_-]*x\d+|pci-?e[\s_-]*x16")
# Verda writes 8H100.80S.176V for 8 GPUs of 80 GB on SXM and 176 vCPUs.
_VERDA_MODULE = re.compile(rf"{_NAME}\.(\d{{2,3}})s(?=\.\d)")
# Baseten writes A10G:2x24x96 for 2 GPUs, 24 vCPUs and 96 GiB, T4x4x16 for one GPU.
_GPU_CPU_MEMORY = re.compile(rf"{_NAME}(?::(\d{{1,2}})x\d+x\d+|x\d+x\d+)")
_VGPU_PROFILE = re.compile(rf"{_NAME}-(\d{{1,2}})[qc]$")
_FORM_FACTORS = (
    ("nvl", re.compile(r"(?<![a-z])nvl(?![a-z0-9])(?!\s?\d)")),
    ("sxm", re.compile(r"(?<![a-z])(?:sxm\d?|hgx|dgx)(?![a-wyz0-9])|(?<![a-z])sxm\d")),
    ("oam", re.compile(r"(?<![a-z])oam(?![a-z])")),
    ("pcie", re.compile(r"(?<![a-z])pci-?e?(?![a-wyz])")),
)
_COUNTS = (
    re.compile(rf"(?<![a-z0-9.])(\d{{1,5}})[\s_]*[x*][\s_\-]*{_FILLER}{_NAME}"),
    re.compile(rf"(?<![a-z0-9.])[x*](\d{{1,4}})(?![a-z0-9.])[\s_\-]*{_FILLER}{_NAME}"),
    re.compile(rf"{_NAME}.*?:\s?(\d{{1,4}})(?![\d.])"),
    re.compile(rf"{_NAME}.*?(?<![a-z.])(?:x|\*)[\s_]?(\d{{1,5}})(?![\d.]|x\d|\s?\x02|\s?gi?b)"),
    re.compile(rf"{_NAME}.*?(?<![a-z0-9.])(\d{{1,5}})\s?x(?![a-z0-9])"),
    re.compile(r"(?<![a-z0-9./])(\d{1,5})[\s_-]?gpus?(?![a-z])"),
    re.compile(rf"(?<![a-z0-9.])(\d{{1,2}})-\s?{_NAME}-gpu"),
    re.compile(rf"(?:^|[(,;])\s*(\d{{1,3}})\s+{_FILLER}{_NAME}"),
)
_COUNT_WORDS = (("single", 1), ("dual", 2), ("quad", 4), ("octa", 8))
_FRACTIONS = (
    re.compile(rf"(?<![\d./])(\d{{1,2}})\s?/\s?(\d{{1,3}})(?:th)?[\s_]*x?[\s_]*{_FILLER}{_NAME}"),
    re.compile(rf"{_NAME}[\s_(:\-x]*(\d{{1,2}})\s?/\s?(\d{{1,3}})(?![\d./])"),
    re.compile(r"(?<![\d./])(\d{1,2})\s?/\s?(\d{1,3})(?:th)?[\s_-]*(?:of\s)?(?:a\s)?gpu(?![a-z])"),
)
_MAX_SHARES = 20
_DECIMAL_FRACTIONS = (
    re.compile(rf"(?<![\d.])(0\.\d{{1,5}})[\s_]*x?[\s_]*{_FILLER}{_NAME}"),
    re.compile(rf"{_NAME}[\s_(:x*\-]*(0\.\d{{1,5}})(?![\d.])(?!\s?\x02)"),
)
_LEFT_OVER = re.compile(r"[a-z0-9]")


@dataclass(frozen=True, slots=True)
class Label:
    """What a label states around the product name. Memory figures are GB per device unless they are a total."""

    count: int | None
    memory_gb: tuple[float, ...]
    bare_memory_gb: float | None
    memory_type: str | None
    form_factors: tuple[str, ...]
    mig_slices: int | None
    mig_memory_gb: float | None
    is_mig: bool
    vgpu_memory_gb: float | None
    fraction: Decimal | None
    nothing_else: bool

    @property
    def is_slice(self) -> bool:
        """Whether the label names a part of one GPU."""
        return self.is_mig or self.vgpu_memory_gb is not None or self.fraction is not None

    @property
    def names_slice_memory(self) -> bool:
        """Whether a memory figure is the slice's: "MIG 24GB" without a profile."""
        return self.is_mig and self.mig_memory_gb is None


def read_label(folded: str, start: int, end: int, glued_count: int | None) -> Label:
    """Read the label whose product name spans `start` to `end`."""
    text = folded[:start] + " " + _NAME + folded[end:]
    text, mig_slices, mig_memory_gb = _take_mig(text)
    is_mig = mig_slices is not None or _MIG_WORD.search(text) is not None
    vgpu = _VGPU_PROFILE.search(text)
    if vgpu:
        text = text[: vgpu.start()] + _NAME
    text = _GLUED_MEMORY.sub(r"\1 ", _VERDA_MODULE.sub(rf"{_NAME} \1gb sxm ", text))
    multiplied = _COUNT_TIMES_MEMORY.search(text)
    text = _COUNT_TIMES_MEMORY.sub(" ", text)
    text, memory_gb = _take_memory(text)
    bare = None if memory_gb else _BARE_MEMORY.search(text)
    memory_type = _MEMORY_TYPE.search(text)
    text = _PCIE_LANES.sub(" ", text)
    form_factors = form_factors_in(text)
    fraction = _fraction(text)
    return Label(
        count=glued_count
        or (int(multiplied[1]) if multiplied else None)
        or (_count(text) if fraction is None else None),
        memory_gb=memory_gb,
        bare_memory_gb=float(bare[1]) if bare and int(bare[1]) >= _LEAST_BARE_MEMORY_GB else None,
        memory_type=memory_type[1] if memory_type else None,
        form_factors=form_factors,
        mig_slices=mig_slices,
        mig_memory_gb=mig_memory_gb,
        is_mig=is_mig,
        vgpu_memory_gb=float(vgpu[1]) if vgpu else None,
        fraction=fraction,
        nothing_else=_nothing_else(text),
    )


def _take_mig(text: str) -> tuple[str, int | None, float | None]:
    profile = _MIG.search(text)
    if profile is None:
        return text, None, None
    slices, memory = (profile[1] or profile[3], profile[2] or profile[4])
    return text[: profile.start()] + " " + text[profile.end() :], int(slices), float(memory)


def _take_memory(text: str) -> tuple[str, tuple[float, ...]]:
    """Memory figures, in GB; MiB count as 1/1024 GB, as labels round binary sizes. Each becomes a mask."""
    figures: list[float] = []

    def take(found: re.Match[str]) -> str:
        amount, unit = (found[1], found[2]) if found[1] else (found[3], found[4])
        figures.append(float(amount) / 1024 if unit.startswith("m") else float(amount))
        return " \x02 "

    return _MEMORY.sub(take, text), tuple(figures)


def form_factors_in(text: str) -> tuple[str, ...]:
    """Form factors that a folded text states, the most telling first: an NVL card is a PCIe card too."""
    return tuple(name for name, pattern in _FORM_FACTORS if pattern.search(text))


def _count(text: str) -> int | None:
    shape = _GPU_CPU_MEMORY.search(text)
    if shape:
        return int(shape[1]) if shape[1] else None
    for pattern in _COUNTS:
        found = pattern.search(text)
        if found and int(found[1]) > 0:
            return int(found[1])
    before = text.split(_NAME, 1)[0]
    return next((count for word, count in _COUNT_WORDS if re.search(rf"(?<![a-z]){word}(?![a-z])", before)), None)


def _fraction(text: str) -> Decimal | None:
    """A share below one GPU, such as 1/8 or 0.5."""
    for pattern in _FRACTIONS:
        found = pattern.search(text)
        if found and 0 < int(found[1]) < int(found[2]) <= _MAX_SHARES:
            return Decimal(int(found[1])) / Decimal(int(found[2]))
    for pattern in _DECIMAL_FRACTIONS:
        found = pattern.search(text)
        if found and Decimal(found[1]) > 0:
            return Decimal(found[1])
    return None


def _nothing_else(text: str) -> bool:
    """Whether the label holds only the name, its quantities and words that say nothing."""
    for pattern in (*_COUNTS, *_FRACTIONS):
        text = pattern.sub(_NAME, text)
    for _, pattern in _FORM_FACTORS:
        text = pattern.sub(" ", text)
    text = re.sub(_MEMORY_TYPE, " ", text)
    text = re.sub(rf"{_FILLER}{_NAME}{_FILLER}", " ", text)
    return _LEFT_OVER.search(re.sub(r"(?<![a-z])(?:mig|tensor|core|cores|card|vgpu)(?![a-z])", " ", text)) is None
