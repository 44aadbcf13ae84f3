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
from functools import cache

from catalog.accelerators import accelerators
from catalog.datafiles import csv_rows
from catalog.types import OfferRow, Quote, Rejection


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
    usd = quote.price_usd_gpu_hour
    if usd is not None:
        band = band_of(offer.gpu)
        if not band.min_usd_gpu_hour <= usd <= band.max_usd_gpu_hour:
            return reject("price_out_of_band", "price_usd_gpu_hour", round(usd, 6))
    return None


def _flag_siblings(rows: Sequence[OfferRow]) -> list[OfferRow]:
    """Flag spot that is not below on-demand, and n GPUs that cost less than half of what smaller sizes come to."""
    on_demand = {_place_key(r): r.quote.price_usd_hour for r in rows if r.offer.purchase_option == "on_demand"}
    by_size: dict[tuple[object, ...], dict[int, float]] = defaultdict(dict)
    for r in rows:
        if r.quote.price_usd_hour is not None:
            by_size[_size_key(r)][r.offer.gpu_count] = r.quote.price_usd_hour
    flagged = []
    for r in rows:
        flags = list(r.quote.flags)
        price = r.quote.price_usd_hour
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
    )


def _size_key(row: OfferRow) -> tuple[object, ...]:
    o = row.offer
    return (
        o.provider, o.via, o.gpu, o.gpu_fraction, o.region, o.zone, o.purchase_option, o.commitment_days, o.upfront,
        o.tenancy, o.os, o.network_option, o.variant,
    )  # fmt: skip
