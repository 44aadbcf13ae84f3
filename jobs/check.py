"""`collector check`: what a source says now beside what its parser was written for.

The first thing to run with a network after fixtures were reconstructed: it confirms them or shows in minutes what
differs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from catalog.errors import GpuBazaarError
from catalog.types import Document, OfferRow
from catalog.units import instance_price_hour
from catalog.validate import check_rows
from collectors.contract import Collector, Parsed
from collectors.document_shape import ShapeChange, compare_shapes, shape_of
from collectors.errors import CredentialsMissing, LayoutChanged
from collectors.fixtures import fixture_documents
from jobs.collect import KnownDocuments, collect_live
from jobs.guard import compare, examine

Verdict = Literal["as expected", "drifted", "broken", "skipped"]
# A median price this far from the reference is worth a look, though the guard would still publish it.
_PRICE_SHIFT = 0.10


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of checking one provider; `reference` says what it was compared with."""

    provider: str
    verdict: Verdict
    reachable: bool
    row_count: int = 0
    rejected_count: int = 0
    unmapped: tuple[str, ...] = ()
    new_gpus: tuple[str, ...] = ()
    gone_gpus: tuple[str, ...] = ()
    appeared_count: int = 0
    vanished_count: int = 0
    median_price_ratio: float | None = None
    changed_offers: tuple[str, ...] = ()
    shape: ShapeChange = field(default_factory=lambda: ShapeChange((), ()))
    reference: str = ""
    note: str = ""


def check(collector: Collector, last_good: Sequence[Mapping[str, Any]] = (), *, timeout_s: float = 60.0) -> Check:
    """Fetch one provider live, parse and validate it, and compare.

    Args:
        collector: the provider.
        last_good: its open offers as stored (offer_id, gpu, currency, price_hour), or nothing: then its fixtures.
        timeout_s: for the fetch.
    """
    try:
        collected = collect_live(collector, known=KnownDocuments(), deadline=time.monotonic() + timeout_s)
    except CredentialsMissing as problem:
        return Check(collector.provider, "skipped", False, note=str(problem))
    except GpuBazaarError as problem:
        reached = isinstance(problem, LayoutChanged)
        return Check(collector.provider, "broken", reached, note=str(problem))
    fixtures = _counterparts(fixture_documents(collector.provider), collected.documents)
    # The headings of a reconstructed page are ours: only what a parser goes by is known of it.
    headings = any(f.provenance == "recorded" for f in fixtures)
    shape = compare_shapes(shape_of(fixtures, headings=headings), shape_of(collected.documents, headings=headings))
    parsed = collected.parsed
    rows = check_rows(parsed.rows).rows if parsed else ()
    expected, unreadable = _expected(collector, fixtures)
    reference = {r["offer_id"]: r for r in last_good} or _stored(check_rows(expected.rows).rows)
    rejected = len(parsed.rejections) if parsed else 0
    trips = [] if collector.kind == "rates" else examine(
        compare(collector.provider, rows, (), rejected_count=0, complete=collected.complete, expect=collector.expect)
    )  # fmt: skip
    ratios, changed = _prices(rows, reference)
    before, after = {r["gpu"] for r in reference.values()}, {r.offer.gpu for r in rows}
    median = statistics.median(ratios) if ratios else None
    shifted = median is not None and abs(median - 1) > _PRICE_SHIFT
    unmapped = parsed.unmapped if parsed else ()
    unknown = set(unmapped) - set(expected.unmapped)
    drifted = bool(shape.vanished or unknown or before - after or shifted or not collected.complete)
    return Check(
        provider=collector.provider,
        verdict="broken" if trips else "drifted" if drifted else "as expected",
        reachable=True, row_count=len(rows), rejected_count=rejected, unmapped=unmapped,
        new_gpus=_names(after - before), gone_gpus=_names(before - after), appeared_count=len(shape.appeared),
        vanished_count=len(shape.vanished), median_price_ratio=median, changed_offers=tuple(changed), shape=shape,
        reference="last good run" if last_good else "fixtures",
        note="; ".join([*(t.sentence() for t in trips), *collected.notes, *unreadable]),
    )  # fmt: skip


def _expected(collector: Collector, fixtures: Sequence[Document]) -> tuple[Parsed, tuple[str, ...]]:
    """What the fixtures say; nothing, with the reason, where there are none yet or not all that the parser needs."""
    try:
        return collector.read(fixtures), ()
    except LayoutChanged as problem:
        return Parsed(), (f"the fixtures cannot be read: {problem}",)


def _counterparts(fixtures: Sequence[Document], fetched: Sequence[Document]) -> Sequence[Document]:
    """The fixtures of what was fetched: by address, or by host where an address holds a name of the caller's.

    Documents behind a key that is not set are not fetched, and their keys have not vanished.
    """
    places = {_place(d) for d in fetched}
    found_by_address = {host for host, _ in places & {_place(f) for f in fixtures}}
    hosts = {host for host, _ in places} - found_by_address
    return [f for f in fixtures if _place(f) in places or _place(f)[0] in hosts] or fixtures


def _place(document: Document) -> tuple[str, str]:
    parts = urlsplit(document.url)
    return parts.hostname or "", parts.path


def _names(gpus: set[str | None]) -> tuple[str, ...]:
    return tuple(sorted(g for g in gpus if g))


def _hourly(row: OfferRow) -> float | None:
    quote, offer = row.quote, row.offer
    if quote.price is None:
        return None
    return float(
        instance_price_hour(
            quote.price, quote.price_unit, quote.price_scope, offer.gpu_count, offer.commitment_days
        )
    )  # fmt: skip


def _stored(rows: Sequence[OfferRow]) -> dict[str, dict[str, Any]]:
    return {
        r.offer.offer_id: {"offer_id": r.offer.offer_id, "gpu": r.offer.gpu, "currency": r.quote.currency,
                           "price_hour": _hourly(r)}
        for r in rows
    }  # fmt: skip


def _prices(rows: Sequence[OfferRow], reference: Mapping[str, Mapping[str, Any]]) -> tuple[list[float], list[str]]:
    """Price now over price then, offer by offer, and a line for each that moved."""
    ratios: list[float] = []
    lines: list[str] = []
    for row in rows:
        then = reference.get(row.offer.offer_id, {}).get("price_hour")
        now = _hourly(row)
        if not then or now is None:
            continue
        ratios.append(now / then)
        if abs(now / then - 1) > 0.001:
            offer = row.offer
            lines.append(
                f"{offer.instance_type} {offer.region} {offer.purchase_option}: "
                f"{then:g} -> {now:g} {row.quote.currency}/h ({(now / then - 1):+.1%})"
            )
    return ratios, lines
