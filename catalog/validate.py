"""Row checks before anything is stored: what cannot be true is rejected with a reason, what is odd is flagged.

Bands per accelerator are data (`catalog/data/sanity.csv`): the widest price per GPU-hour that was ever seen for a
product, with room to spare. They catch a wrong unit, scope or column, not a bargain.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from catalog.accelerators import accelerators
from catalog.datafiles import csv_rows
from catalog.types import OfferRow, Quote, Rejection
from catalog.units import gpu_price_hour, instance_price_hour


@dataclass(frozen=True, slots=True)
class Band:
    """Plausible range of one GPU or family: US dollars per whole GPU and hour."""

    min_usd_gpu_hour: float
    max_usd_gpu_hour: float


@dataclass(frozen=True, slots=True)
class Checked:
    """Rows that may be stored, and why the others may not."""

    rows: tuple[OfferRow, ...]
    rejections: tuple[Rejection, ...]


# US dollars that one unit of a currency was worth at least and at most since 2015, with room to spare: enough to see a
# wrong unit in a price of which the day's rate is not known. A currency that is not here is not judged without a rate.
_USD_PER_UNIT: Mapping[str, tuple[float, float]] = {
    "EUR": (0.8, 1.6), "GBP": (0.9, 2.0), "CHF": (0.8, 1.7), "CAD": (0.5, 1.1), "AUD": (0.4, 1.1), "SGD": (0.5, 1.1),
    "CNY": (0.1, 0.2), "BRL": (0.1, 0.6), "PLN": (0.15, 0.5), "INR": (0.007, 0.025), "JPY": (0.004, 0.013),
}  # fmt: skip


@cache
def bands() -> Mapping[str, Band]:
    """GPU slug or family to its band; `*` is the band of everything else."""
    return {
        row["gpu"]: Band(float(row["min_usd_gpu_hour"]), float(row["max_usd_gpu_hour"]))
        for row in csv_rows("catalog", "sanity.csv")
    }


def band_of(gpu: str | None) -> Band:
    """The band of a slug or family, of the slug's family, or the general one."""
    known = bands()
    if gpu is None:
        return known["*"]
    facts = accelerators().get(gpu)
    return known.get(gpu) or (known.get(facts.family) if facts else None) or known["*"]


def check_rows(rows: Iterable[OfferRow]) -> Checked:
    """Check every row by itself, then rows against their siblings."""
    good: list[OfferRow] = []
    rejections: list[Rejection] = []
    for row in rows:
        fault = _fault(row)
        if fault is None:
            good.append(row)
        else:
            rejections.append(fault)
    return Checked(tuple(_flag_siblings(good)), tuple(rejections))


def _fault(row: OfferRow) -> Rejection | None:
    offer, quote = row.offer, row.quote

    def reject(reason: str, field: str, value: object) -> Rejection:
        sample = f"{offer.source_sku} {offer.region} {offer.purchase_option} {quote.price} {quote.currency}"
        return Rejection(offer.provider, reason, field, str(value), sample)

    if offer.gpu_count < 1:
        return reject("gpu_count", "gpu_count", offer.gpu_count)
    if not 0 < offer.gpu_fraction <= 1:
        return reject("gpu_fraction", "gpu_fraction", offer.gpu_fraction)
    for field in ("gpu_memory_gb", "memory_gib", "vcpu_count"):
        value = getattr(offer, field)
        if value is not None and (not math.isfinite(value) or value <= 0):
            return reject("not_positive", field, value)
    if quote.price is None:
        return None
    if not quote.price.is_finite() or quote.price <= 0:
        return reject("not_a_price", "price", quote.price)
    if quote.price_unit == "term" and offer.commitment_days <= 0:
        return reject("term_without_commitment", "commitment_days", offer.commitment_days)
    band, (low, high) = band_of(offer.gpu), _usd_gpu_hour(row)
    if low > band.max_usd_gpu_hour or high < band.min_usd_gpu_hour:
        return reject("price_out_of_band", "price_usd_gpu_hour", round(low, 6))
    return None


def _usd_gpu_hour(row: OfferRow) -> tuple[float, float]:
    """The least and the most that a price can be in dollars per GPU and hour; one figure where the rate is known."""
    usd, native = row.quote.price_usd_gpu_hour, _native_hour(row)
    if usd is not None:
        return usd, usd
    per_gpu = None if native is None else gpu_price_hour(native, row.offer.gpu_count, row.offer.gpu_fraction)
    low, high = _USD_PER_UNIT.get(row.quote.currency, (0.0, math.inf))
    return (0.0, math.inf) if per_gpu is None else (float(per_gpu) * low, float(per_gpu) * high)


def _native_hour(row: OfferRow) -> Decimal | None:
    """The price of the instance for an hour in its own currency; None without a price."""
    o, q = row.offer, row.quote
    if q.price is None:
        return None
    return instance_price_hour(q.price, q.price_unit, q.price_scope, o.gpu_count, o.commitment_days)


def _flag_siblings(rows: Sequence[OfferRow]) -> list[OfferRow]:
    """Flag spot that is not below on-demand, and n GPUs that cost less than half of what smaller sizes come to."""
    hourly = {id(r): _native_hour(r) for r in rows}
    on_demand = {_place_key(r): hourly[id(r)] for r in rows if r.offer.purchase_option == "on_demand"}
    by_size: dict[tuple[object, ...], dict[int, Decimal]] = defaultdict(dict)
    for r in rows:
        price = hourly[id(r)]
        if price is not None:
            by_size[_size_key(r)][r.offer.gpu_count] = price
    flagged = []
    for r in rows:
        flags = list(r.quote.flags)
        price = hourly[id(r)]
        if price is not None:
            full = on_demand.get(_place_key(r))
            if r.offer.purchase_option == "spot" and full is not None and price >= full:
                flags.append("spot_not_discounted")
            smaller = [(n, p) for n, p in by_size[_size_key(r)].items() if n < r.offer.gpu_count]
            if any(price / r.offer.gpu_count < p / n / 2 for n, p in smaller):
                flags.append("price_not_monotonic")
        quote: Quote = (
            r.quote if len(flags) == len(r.quote.flags) else dataclasses.replace(r.quote, flags=_unique(flags))
        )
        flagged.append(r if quote is r.quote else OfferRow(r.offer, quote))
    return flagged


def _unique(flags: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(flags))


def _place_key(row: OfferRow) -> tuple[object, ...]:
    o = row.offer
    return (
        o.provider,
        o.via,
        o.instance_type,
        o.variant,
        o.region,
        o.zone,
        o.tenancy,
        o.os,
        o.network_option,
        o.gpu_count,
        row.quote.currency,
    )


def _size_key(row: OfferRow) -> tuple[object, ...]:
    o = row.offer
    return (
        o.provider, o.via, o.gpu, o.gpu_fraction, o.region, o.zone, o.purchase_option, o.commitment_days, o.upfront,
        o.tenancy, o.os, o.network_option, o.variant, row.quote.currency,
    )  # fmt: skip
