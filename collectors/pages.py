"""Cells of price pages: what a cell that shows a price, "Contact sales" or a dash means, and sizes with units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from catalog.accelerators import accelerator
from catalog.names import resolve
from catalog.types import Availability, Document, OfferRow, PriceScope, PriceUnit, PurchaseOption
from catalog.units import MACHINE_WORDS, read_price, unit_in
from collectors.readers import changed
from collectors.rows import GpuRead, RowBuilder
from collectors.shapes import Shape, open_shape, shape_of, shapes

CellState = Literal["priced", "on_request", "unavailable", "absent", "unreadable"]

_ON_REQUEST = re.compile(
    r"contact|talk to|get in touch|request|\bquote|\bsales\b|on application|\benquir|\binquir|book a|custom pricing|"
    r"\bcall\b|speak to|\bpoa\b|anfrage|sur devis|su richiesta",
    re.IGNORECASE,
)
_UNAVAILABLE = re.compile(
    r"sold[\s-]*out|coming soon|out of stock|unavailable|not available|wait\s?list|no capacity|\bsoon\b|pre-?order",
    re.IGNORECASE,
)
_ABSENT = re.compile(r"[\s\-–—−_.*]*|n\s*/?\s*a\.?|none|null|tb[ad]|not applicable", re.IGNORECASE)
_SIZE = re.compile(r"(\d[\d.,]*)\s*([KMGT]i?B)\b", re.IGNORECASE)
_GIB_PER: dict[str, float] = {"k": 1 / 2**20, "m": 1 / 2**10, "g": 1.0, "t": 2.0**10}
_GB_PER: dict[str, float] = {"k": 1e-6, "m": 1e-3, "g": 1.0, "t": 1e3}


@dataclass(frozen=True, slots=True)
class Terms:
    """What a column's header pins down for its cells; a unit, scope or currency written in the cell goes first."""

    unit: PriceUnit = "hour"
    scope: PriceScope = "gpu"
    currency: str | None = None


def cell_state(text: str) -> CellState:
    """What a price cell says: a price, sold on request, listed but not obtainable, not sold, or none of these."""
    if _ON_REQUEST.search(text):
        return "on_request"
    if _UNAVAILABLE.search(text):
        return "unavailable"
    if _ABSENT.fullmatch(text.strip()):
        return "absent"
    return "priced" if read_price(text) else "unreadable"


def add_cell(
    rows: RowBuilder,
    document: Document,
    gpu: GpuRead,
    text: str,
    terms: Terms,
    *,
    sku: str,
    flags: Iterable[str] = (),
    availability: Availability = "unknown",
    **offer_fields: Any,
) -> OfferRow | None:
    """Add the offer of one price cell, or a rejection where the cell holds no price that can be read.

    "Contact sales" gives an offer without a price (flag on_request); "sold out" and "coming soon" one without a price
    that is unavailable; a dash or "N/A" means that this option is not sold and gives nothing. "from $2.49" keeps the
    price with the flag from_price: the true price may be higher. A reserved price whose term the source does not name
    cannot be compared with any other and is listed without a price (flag term_not_stated).
    """
    state = cell_state(text)
    if state == "absent":
        return None
    found = read_price(text) if state == "priced" else None
    if state == "unreadable":
        rows.reject("not_a_price", "price", text, sample=sku)
        return None
    measure = found.other_measure if found else None
    whole = terms.scope == "instance" and (measure in MACHINE_WORDS or measure == str(gpu.count))
    if measure and not whole:
        rows.reject("unit_unknown", "price", text, sample=sku)
        return None
    odd = {"on_request": ["on_request"], "unavailable": ["not_obtainable"]}.get(state, [])
    if offer_fields.get("purchase_option") == "reserved" and not offer_fields.get("commitment_days"):
        found, odd = None, [*odd, "term_not_stated"]
    return rows.offer(
        document,
        gpu,
        sku=sku,
        price=found.amount if found else None,
        price_unit=(found.unit if found else None) or terms.unit,
        price_scope=(found.scope if found else None) or terms.scope,
        currency=(found.currency if found else None) or terms.currency,
        availability="unavailable" if state == "unavailable" else availability,
        flags=[*flags, *odd, *(["from_price"] if found and found.lower_bound else [])],
        **offer_fields,
    )


def memory_gib_in(text: str) -> float | None:
    """Host memory as pages write it ("2900 GiB", "2.5TB", "96 GB", "4,096") in GiB; None without a single figure.

    Memory is sold in binary units, whichever way a page abbreviates them.
    """
    return _size_in(text, _GIB_PER)


def storage_gb_in(text: str) -> float | None:
    """Disk space as pages write it ("22 TiB SSD", "512 GiB", "1.5 TB", "500") in decimal GB."""
    found = _SIZE.search(text)
    amount = _size_in(text, _GB_PER)
    if amount is None or found is None or "i" not in found.group(2).casefold():
        return amount
    return amount * (1.024**4 if found.group(2)[0].casefold() == "t" else 1.024**3)


def gpu_memory_gb_in(text: str) -> float | None:
    """GPU memory as pages write it ("80 GB", "141GB", "80 GiB VRAM"); the figure on the label, in GB."""
    return _size_in(text, _GB_PER)


def whole_number_in(text: str) -> int | None:
    """The only whole number of a cell ("208", "24 vCPUs", "1,024"), or None for ranges and words."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    if len(found) != 1 or "." in found[0]:
        return None
    return int(found[0].replace(",", ""))


def _size_in(text: str, per: dict[str, float]) -> float | None:
    found = _SIZE.findall(text) or [(n, "g") for n in re.findall(r"\d[\d.,]*", text)]
    if len(found) != 1 or re.search(r"\d\s*[-–—]\s*\d", text):
        return None
    number, unit = found[0]
    return float(number.replace(",", "").rstrip(".")) * per[unit[0].casefold()]


def slug(*parts: object) -> str:
    """A stable sku out of the words of a page: lower case, one hyphen between words."""
    return re.sub(r"[^a-z0-9.+]+", "-", " ".join(str(p) for p in parts if p not in ("", None)).casefold()).strip("-")


_TERM = re.compile(r"(\d+)(?:\s*[-–—to]+\s*\d+)?[\s\-_+]*(day|week|wk|month|mo|year|yr)", re.IGNORECASE)
_DAYS_PER: dict[str, float] = {
    "day": 1, "week": 7, "wk": 7, "month": 365 / 12, "mo": 365 / 12, "year": 365, "yr": 365,
}  # fmt: skip


def commitment_days_in(text: str) -> int | None:
    """The shortest commitment that a text names ("2 weeks – 1 year" is 14 days, "36_months" 1095), or None.

    A month is a twelfth of 365 days, so that twelve months are one year.
    """
    found = _TERM.search(text)
    return round(int(found.group(1)) * _DAYS_PER[found.group(2).casefold()]) if found else None


def terms_in(header: str, currency: str | None = None) -> Terms | None:
    """What a header such as "On-demand, GPU-hour" pins down; None where it names no unit of time."""
    unit = unit_in(header)
    scope: PriceScope = "gpu" if re.search(r"\b(?:per|/)?\s*gpu\b", header, re.IGNORECASE) else "instance"
    return Terms(unit, scope, currency) if unit else None


def per_gpu(document: Document, header: str) -> str:
    """The header of a column whose prices are documented per GPU.

    Raises:
        LayoutChanged: it names a node, an instance or the like instead.
    """
    found = re.search(rf"(?:/|\bper\b)\s*({'|'.join(sorted(MACHINE_WORDS))})\b", header, re.IGNORECASE)
    return changed(document, "th", f"{header!r} is per {found.group(1)}, not per GPU") if found else header


def option_in(header: str) -> PurchaseOption | None:
    """The purchase option that a header or heading names, or None where it names none or more than one."""
    found: list[PurchaseOption] = [option for option, words in _OPTION_WORDS.items() if words.search(header)]
    return found[0] if len(found) == 1 else None


_OPTION_WORDS: dict[PurchaseOption, re.Pattern[str]] = {
    "on_demand": re.compile(r"on[\s-]*demand|pay[\s-]*as[\s-]*you[\s-]*go", re.IGNORECASE),
    "spot": re.compile(r"\bspot\b|preempt|interruptible", re.IGNORECASE),
    "reserved": re.compile(r"reserv|commit", re.IGNORECASE),
}


def add_sizes(
    rows: RowBuilder,
    document: Document,
    label: str,
    text: str,
    terms: Terms,
    *,
    provider: str,
    memory_gb: float | None = None,
    form_factor: str | None = None,
    per_gpu: Mapping[str, float | None] | None = None,
    single: Mapping[str, float | None] | None = None,
    **offer_fields: Any,
) -> None:
    """Add one offer per size that a provider documents for what it prices per GPU (`<provider>-shapes.csv`).

    A label that states a number of GPUs ("8x H100") is that one size; what has no price is listed once.
    `per_gpu` holds the share of the host that comes with each GPU (vcpu_count, memory_gib, local_storage_gb);
    `single` the same where it holds for the single-GPU size only.
    """
    found = resolve(label, memory_gb=memory_gb, form_factor=form_factor)
    known = {slug(label), found.gpu} & shapes(provider).keys()
    shape = shape_of(provider, slug(label), found.gpu) if known else open_shape(provider, found.gpu_candidates)
    stated = found.gpu_count
    sizes = (stated,) if stated else shape.gpu_counts
    open_term = offer_fields.get("purchase_option") == "reserved" and not offer_fields.get("commitment_days")
    for count in sizes if cell_state(text) == "priced" and not open_term else sizes[:1]:
        share: dict[str, Any] = {name: value and value * count for name, value in (per_gpu or {}).items()}
        share.update((single or {}) if count == 1 else {})
        name = label if stated else f"{label} x{count}"
        add_cell(
            rows, document,
            GpuRead(label=label, gpu=shape.product, count=count, memory_gb=memory_gb, form_factor=form_factor),
            text, Terms(terms.unit, "gpu" if count > 1 and not stated else terms.scope, terms.currency),
            sku=slug(name), instance_type=name, **share, **_wiring(shape, count),
            **offer_fields,
        )  # fmt: skip


def _wiring(shape: Shape, count: int) -> dict[str, Any]:
    """How the GPUs, and whole nodes, of a shape are joined as far as documented; single GPUs are on no network."""
    wired: dict[str, Any] = {} if shape.wiring(count) == "unknown" else {"gpu_interconnect": shape.wiring(count)}
    if shape.network_option and count > 1:
        wired.update(network_option=shape.network_option, rdma=True)
    return wired


def per_gpu_memory_gb(label: str, stated_gb: float | None, count: int) -> float | None:
    """GPU memory per card where a source states the instance's total in some places and one card's in others.

    The figure that fits a product of the label's name decides; None where neither does.
    """
    if stated_gb is None or count == 1:
        return stated_gb
    known = [accelerator(gpu).memory_gb for gpu in resolve(label).gpu_candidates]
    for figure in (stated_gb / count, stated_gb):
        if any(abs(figure - memory) <= 0.12 * memory for memory in known):
            return figure
    return None


def possible_gpus(label: str, memory_gb: float | None, count: int) -> set[tuple[str, int]]:
    """What an offer can be, as (slug, GPUs per instance): two sources list the same thing where these sets meet."""
    found = resolve(label, memory_gb=memory_gb)
    return {(gpu, count) for gpu in found.gpu_candidates}
