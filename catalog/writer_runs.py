"""Recording a run beside its rows: the run itself, rejections, surcharges, exchange rates, and the provider's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from catalog.engine import Connection, rows_of
from catalog.types import ExchangeRate, OfferRow, Provenance, Rejection, Run, Surcharge
from catalog.writer_rows import forget_held

_STATE = (
    "provider", "outcome", "note", "provenance", "last_run_id", "last_attempt_at", "last_success_at",
    "last_complete_at", "document_hash", "row_count", "rejected_count", "unmapped_count", "consecutive_failures",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trip:
    """A rule of the guard that a run broke, with its figures before and after, in words."""

    rule: str
    before: str
    after: str
    limit: str

    def sentence(self) -> str:
        """The trip in plain words."""
        return f"{self.rule}: {self.after} now, {self.before} before, limit {self.limit}"


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows a run brought: stored, refused, and with a GPU name outside the table."""

    row_count: int = 0
    rejected_count: int = 0
    unmapped_count: int = 0


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Everything one run brings to the store. `document_hash` recognises unchanged documents next time."""

    run: Run
    observed_at: datetime
    provenance: Provenance
    rows: Sequence[OfferRow] = ()
    surcharges: Sequence[Surcharge] = ()
    rejections: Sequence[Rejection] = ()
    unmapped: Sequence[str] = ()
    rates: Sequence[ExchangeRate] = ()
    trips: Sequence[Trip] = ()
    document_hash: str = ""
    fetch_state: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def insert(connection: Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Append rows to a table of the live file."""
    if rows:
        marks = ", ".join("?" for _ in rows[0])
        connection.executemany(f"INSERT INTO live.{table} VALUES ({marks})", rows)


def record(connection: Connection, refreshed: Refreshed, held_surcharges: str = "") -> None:
    """Record a run; inside the caller's transaction.

    Args:
        connection: with the live file attached.
        refreshed: the run and what it brought.
        held_surcharges: the held run whose surcharges are accepted with it, or ''.
    """
    run = refreshed.run
    insert(
        connection, "runs",
        [(run.run_id, run.provider, run.started_at, run.finished_at, run.outcome, run.row_count, run.rejected_count,
          run.unmapped_count, run.complete, run.reason, run.collector_version)],
    )  # fmt: skip
    good = run.outcome in {"ok", "partial"}
    # A run accepted by hand reads no document: what its held run left out and could not name stays.
    if (good and not held_surcharges) or run.outcome == "held":
        connection.execute("DELETE FROM live.rejections WHERE provider = ?", [run.provider])
        insert(
            connection, "rejections",
            [(run.run_id, r.provider, r.reason, r.field, r.value, r.sample) for r in refreshed.rejections],
        )  # fmt: skip
        connection.execute("DELETE FROM live.unmapped_names WHERE provider = ?", [run.provider])
        insert(connection, "unmapped_names", [(run.run_id, run.provider, name) for name in refreshed.unmapped])
    if run.outcome == "held":
        insert(connection, "guard_trips",
               [(run.run_id, run.provider, t.rule, t.before, t.after, t.limit) for t in refreshed.trips])  # fmt: skip
        insert(connection, "held_surcharges",
               [(run.run_id, *_surcharge(run.provider, s)) for s in refreshed.surcharges])  # fmt: skip
    if good:
        if held_surcharges:
            _accept_surcharges(connection, run.provider, held_surcharges)
        else:
            _replace_surcharges(connection, run.provider, refreshed.surcharges)
        _upsert_rates(connection, refreshed.rates)
    if good or run.outcome == "unchanged":
        forget_held(connection, run.provider)
    if refreshed.fetch_state:
        connection.execute("DELETE FROM live.fetch_state WHERE provider = ?", [run.provider])
        names = ("url", "request_hash", "etag", "last_modified", "sha256", "fetched_at")
        states = [(run.provider, *(s.get(n) for n in names)) for s in refreshed.fetch_state]
        insert(connection, "fetch_state", states)
    _update_state(connection, refreshed)


def _surcharge(source: str, s: Surcharge) -> tuple[Any, ...]:
    tiers = [{"from_quantity": t.from_quantity, "price": t.price} for t in s.tiers]
    return (source, s.provider, s.region, s.kind, s.price, s.currency, s.unit, s.included_quantity, tiers,
            s.source_url, s.observed_at)  # fmt: skip


def _replace_surcharges(connection: Connection, source: str, surcharges: Sequence[Surcharge]) -> None:
    if surcharges:
        connection.execute("DELETE FROM live.surcharges WHERE source = ?", [source])
        insert(connection, "surcharges", [_surcharge(source, s) for s in surcharges])


def _accept_surcharges(connection: Connection, source: str, held_run_id: str) -> None:
    rows = rows_of(connection, "SELECT 1 FROM live.held_surcharges WHERE held_run_id = ? LIMIT 1", [held_run_id])
    if rows:
        connection.execute("DELETE FROM live.surcharges WHERE source = ?", [source])
        connection.execute(
            """INSERT INTO live.surcharges SELECT * EXCLUDE (held_run_id) FROM live.held_surcharges
            WHERE held_run_id = ?""",
            [held_run_id],
        )


def _upsert_rates(connection: Connection, rates: Sequence[ExchangeRate]) -> None:
    for rate in rates:
        connection.execute("DELETE FROM live.exchange_rates WHERE day = ? AND currency = ?", [rate.day, rate.currency])
    insert(connection, "exchange_rates", [(r.day, r.currency, r.usd_per_unit, r.source) for r in rates])


def _update_state(connection: Connection, refreshed: Refreshed) -> None:
    run = refreshed.run
    old = rows_of(connection, "SELECT * FROM live.provider_state WHERE provider = ?", [run.provider])
    state: dict[str, Any] = old[0] if old else {"provider": run.provider}
    state |= {"outcome": run.outcome, "note": run.reason, "last_run_id": run.run_id,
              "last_attempt_at": run.finished_at or run.started_at}  # fmt: skip
    if run.outcome in {"ok", "unchanged", "partial"}:
        state |= {"last_success_at": refreshed.observed_at, "provenance": refreshed.provenance,
                  "consecutive_failures": 0}  # fmt: skip
        if run.complete:
            state |= {"last_complete_at": refreshed.observed_at}
    elif run.outcome != "skipped":
        state["consecutive_failures"] = int(state.get("consecutive_failures") or 0) + 1
    if run.outcome in {"ok", "partial"}:
        # A run that was not whole must be parsed again even when its documents come back the same.
        state |= {"row_count": run.row_count, "rejected_count": run.rejected_count,
                  "unmapped_count": run.unmapped_count,
                  "document_hash": refreshed.document_hash if run.complete else None}  # fmt: skip
    connection.execute("DELETE FROM live.provider_state WHERE provider = ?", [run.provider])
    insert(connection, "provider_state", [tuple(state.get(n) for n in _STATE)])
