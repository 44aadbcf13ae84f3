"""From collected documents to a stored run: dollars, row checks, guard, outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from catalog.types import Document, OfferRow, Outcome, Provenance, Rejection, Run
from catalog.validate import check_rows
from catalog.writer import Refreshed, RowCounts, Trip, Writer
from collectors.contract import Collector, Parsed
from collectors.rows import with_usd
from jobs.collect import Collected
from jobs.guard import Known, compare, examine

# Slow drift is measured against the earliest figures kept between so many days ago.
_DRIFT_DAYS = (35, 14)


@dataclass(frozen=True, slots=True)
class RunClock:
    """A run's identity and times."""

    run_id: str
    started_at: datetime
    finished_at: datetime
    source: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored run and how many price-log entries it made."""

    run: Run
    changed_count: int


def store(
    writer: Writer, collector: Collector, collected: Collected | None, clock: RunClock, *, failure: str, skipped: bool
) -> Stored:
    """Store what one provider brought, whatever it is.

    Args:
        writer: the open store.
        collector: the provider.
        collected: its documents and rows; None where it failed.
        clock: identity and times of the run.
        failure: why it failed or was skipped, in plain words; '' otherwise.
        skipped: True where a missing key is the reason.
    """
    if collected is None:
        return _finish(writer, collector, clock, "skipped" if skipped else "failed", failure)
    if collected.parsed is None:
        return _finish(
            writer, collector, clock, "unchanged", "documents unchanged", collected=collected,
            counts=writer.stored_counts(collector.provider),
        )  # fmt: skip
    parsed = collected.parsed
    once = _each_once(parsed.rows)
    checked = check_rows(_in_dollars(once, writer.dollar_rates()))
    rejections = (*parsed.rejections, *checked.rejections)
    trips: list[Trip] = []
    if collector.kind != "rates":
        repeats = sum(r.reason == "duplicate_key" for r in parsed.rejections)
        trips = examine(
            compare(
                collector.provider, checked.rows, [Known(**row) for row in writer.known_rows(collector.provider)],
                rejected_count=len(checked.rejections), complete=collected.complete, expect=collector.expect,
                duplicate_count=len(parsed.rows) - len(once) + repeats,
                marks=_marks(writer, collector.provider, clock.finished_at),
            )
        )  # fmt: skip
    outcome: Outcome = "held" if trips else "ok" if collected.complete else "partial"
    reason = _reason(trips, collected.notes)
    return _finish(
        writer, collector, clock, outcome, reason, collected=collected, parsed=parsed, rows=checked.rows,
        rejections=rejections, trips=trips,
    )  # fmt: skip


def accept(writer: Writer, provider: str, run_id: str, now: datetime) -> Stored:
    """Publish the rows of a held run after a person looked at them, as a run of its own.

    Args:
        writer: the open store.
        provider: whose run it is.
        run_id: the held run.
        now: aware UTC now.

    Raises:
        UnknownName: no rows of such a run of this provider are kept.
    """
    held = writer.held_run(provider, run_id)
    reason = f"accepted by hand: {run_id}"
    run = Run(
        run_id=f"{provider}-{now:%Y%m%dT%H%M%S}-accepted", provider=provider, started_at=now, finished_at=now,
        outcome="ok" if held.complete else "partial", row_count=held.row_count, complete=held.complete, reason=reason,
    )  # fmt: skip
    changed = writer.accept(run_id, Refreshed(run=run, observed_at=held.observed_at, provenance=held.provenance))
    return Stored(run, changed)


def _each_once(rows: Sequence[OfferRow]) -> list[OfferRow]:
    """The first row of each offer: one offer has one price."""
    first: dict[str, OfferRow] = {}
    for row in rows:
        first.setdefault(row.offer.offer_id, row)
    return list(first.values())


def _marks(writer: Writer, provider: str, now: datetime) -> Mapping[str, float]:
    first, last = (now - timedelta(days=days) for days in _DRIFT_DAYS)
    return writer.drift_marks(provider, first.date().isoformat(), last.date().isoformat())


def _reason(trips: Sequence[Trip], notes: Sequence[str]) -> str:
    if trips:
        return "held by the guard: " + "; ".join(t.sentence() for t in trips)
    return "; ".join(notes)[:1000]


def _in_dollars(rows: Sequence[OfferRow], rates: Mapping[str, Decimal]) -> list[OfferRow]:
    return [OfferRow(r.offer, with_usd(r.quote, r.offer, r.quote.currency, rates.get(r.quote.currency))) for r in rows]


def _finish(
    writer: Writer,
    collector: Collector,
    clock: RunClock,
    outcome: Outcome,
    reason: str,
    *,
    collected: Collected | None = None,
    parsed: Parsed | None = None,
    rows: Sequence[OfferRow] = (),
    rejections: Sequence[Rejection] = (),
    counts: RowCounts | None = None,
    trips: Sequence[Trip] = (),
) -> Stored:
    counts = counts or RowCounts(len(rows), len(rejections), len(parsed.unmapped) if parsed else 0)
    run = Run(
        run_id=clock.run_id, provider=collector.provider, started_at=clock.started_at, finished_at=clock.finished_at,
        outcome=outcome, row_count=counts.row_count, rejected_count=counts.rejected_count,
        unmapped_count=counts.unmapped_count, complete=bool(collected and collected.complete),
        reason=reason, collector_version=collector.version,
    )  # fmt: skip
    provenance: Provenance = collected.provenance if collected else ("live" if clock.source == "live" else "recorded")
    stamped = [dataclasses.replace(r, quote=dataclasses.replace(r.quote, run_id=clock.run_id)) for r in rows]
    changed = writer.apply(
        Refreshed(
            run=run,
            observed_at=collected.observed_at if collected else clock.finished_at,
            provenance=provenance,
            rows=stamped,
            surcharges=parsed.surcharges if parsed else (),
            rejections=rejections,
            unmapped=parsed.unmapped if parsed else (),
            rates=parsed.rates if parsed else (),
            trips=trips,
            document_hash=collected.document_hash if collected else "",
            fetch_state=_fetch_state(collected.documents) if collected and run.complete else (),
        )
    )
    return Stored(run, changed)


def _fetch_state(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """What to keep of each live document so that the next run can ask whether it changed."""
    return [
        {"url": d.url, "request_hash": "", "etag": d.headers.get("etag", ""),
         "last_modified": d.headers.get("last-modified", ""), "sha256": d.sha256, "fetched_at": d.fetched_at}
        for d in documents if d.provenance == "live" and d.method == "GET"
    ]  # fmt: skip
