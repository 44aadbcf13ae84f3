"""What pages bill beside the GPU: processor and memory meters, storage and traffic, in the catalog's units."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from catalog.types import Document, PriceUnit, SurchargeKind
from catalog.units import PriceText, hours_in, read_price, unit_in
from collectors.rows import RowBuilder

_DIGITS = Decimal("1e-12")  # the catalog keeps twelve decimals
_FREE = re.compile(r"(\d+)\s*([GT])(i?)B\s*(?:\w+\s+)?(?:free|included)", re.IGNORECASE)

_METERS: tuple[tuple[str, SurchargeKind, str, str], ...] = (
    (r"object storage", "object_storage", r"month", "gb_month"),
    (r"volume|\bdisk|storage", "block_storage", r"month", "gb_month"),
    (r"egress|outbound|bandwidth|data transfer", "egress", r"(?:/|per)\s*Gi?B\b", "gb"),
    (r"memory|\bram\b", "memory", r"sec|min|hour|hr|/\s*[smh]\b", "gib_hour"),
    (r"cpu|\bcores?\b", "cpu", r"sec|min|hour|hr|/\s*[smh]\b", "core_hour"),
)


STORAGE: frozenset[SurchargeKind] = frozenset({"block_storage", "object_storage", "egress"})
METERS: frozenset[SurchargeKind] = STORAGE | {"cpu", "memory"}


def add_meters(
    rows: RowBuilder,
    document: Document,
    lines: Iterable[tuple[str, str]],
    kinds: frozenset[SurchargeKind] = METERS,
) -> None:
    """Add the processor, memory and storage meters among (label, price text) lines, once per kind.

    `kinds` leaves out processor and memory where the page's lines of them are instances of their own.

    Meters per second or minute become prices per hour, exactly; storage is taken per month only.
    """
    seen: set[str] = set()
    for label, text in lines:
        for words, kind, needs, unit in _METERS:
            if kind not in kinds or not re.search(words, label, re.IGNORECASE):
                continue
            found = read_price(text)
            if found and kind not in seen and re.search(needs, text, re.IGNORECASE):
                price = found.amount
                if unit.endswith("_hour"):
                    price = (price / hours_in(_time_in(text))).quantize(_DIGITS).normalize()
                elif "gib" in text.casefold():
                    price = per_gb(price)
                rows.surcharge(document, kind, price, unit, included_quantity=_free_gb(f"{label} {text}"))
                seen.add(kind)
            break


def _time_in(text: str) -> PriceUnit:
    """The time unit of "$0.0000131 / core / sec": the last one that the text names."""
    words = re.findall(r"[a-z]+", text.casefold())
    units: list[PriceUnit] = [u for w in words if (u := unit_in(f"/{w}")) is not None]
    return units[-1] if units else "hour"


def price_or_free(text: str) -> Decimal | None:
    """The amount of a surcharge cell: "Free" and "included" are zero; None where the cell holds no amount."""
    if re.search(r"\bfree\b|\bincluded\b|no charge", text, re.IGNORECASE):
        return Decimal(0)
    found: PriceText | None = read_price(text)
    return found.amount if found else None


def per_gb(price_per_gib: Decimal) -> Decimal:
    """A price per GiB as one per decimal GB."""
    return (price_per_gib * 10**9 / 2**30).quantize(_DIGITS)


def gb_of(gib: Decimal) -> Decimal:
    """A quantity of GiB in decimal GB, to a thousandth."""
    return (gib * 2**30 / 10**9).quantize(Decimal("0.001"))


def _free_gb(text: str) -> Decimal | None:
    """The quantity that a text gives away ("first 100 GB free", "1 TiB free"), in decimal GB."""
    found = _FREE.search(text)
    if not found:
        return None
    step = Decimal(1024 if found.group(3) else 1000)
    gb = Decimal(found.group(1)) * (step if found.group(2).casefold() == "t" else 1)
    return gb_of(gb) if found.group(3) else gb


_FREE_EGRESS = re.compile(
    r"\b(?:no|zero|free)\s+(?:data\s+)?(?:egress|ingress/egress|bandwidth)\b"
    r"|\begress\b[^.<]{0,40}\b(?:free|no charge)\b",
    re.IGNORECASE,
)


def add_free_egress(rows: RowBuilder, document: Document, text: str) -> None:
    """Add an egress price of zero where a page says in words that traffic is free."""
    if _FREE_EGRESS.search(text):
        rows.surcharge(document, "egress", 0, "gb")
