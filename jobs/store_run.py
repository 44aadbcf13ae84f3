"""From collected documents to a stored run: dollars, row checks, guard, outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from catalog.types import Document, OfferRow, Outcome, Provenance, Rejection, Run
from catalog.validate import check_rows
from catalog.writer import Refreshed, RowCounts, Trip, Writer
from collectors.contract import Collector, Parsed
from collectors.rows import with_usd
from jobs.collect import Collected
from jobs.guard import Known, compare, examine


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
    checked = check_rows(_in_dollars(parsed.rows, writer.dollar_rates()))
    rejections = (*parsed.rejections, *checked.rejections)
    known = [Known(**row) for row in writer.known_rows(collector.provider)]
    trips = [] if collector.kind == "rates" else examine(
        compare(collector.provider, checked.rows, known, rejected_count=len(checked.rejections),
                complete=collected.complete, expect=collector.expect)
    )  # fmt: skip
    outcome: Outcome = "held" if trips else "ok" if collected.complete else "partial"
    reason = _reason(trips, collected.notes)
    return _finish(
        writer, collector, clock, outcome, reason, collected=collected, parsed=parsed, rows=checked.rows,
        rejections=rejections,
    )  # fmt: skip


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
            rates=parsed.rates if parsed else (),
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
