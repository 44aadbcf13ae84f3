"""Writes the catalog: one process at a time, one transaction per provider, one publish at the end.

A provider's rows are merged into `current` in place; what changed in price or availability is appended to the log. The
live file is only ever touched through this connection: opening and closing it any other way in the same process would
drop the kernel's lock (POSIX record locks belong to the process).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from catalog import history_months, live_file, writer_rows, writer_runs
from catalog.engine import Connection, DatabaseError, rows_of, scalar, transaction
from catalog.errors import StoreError, UnknownName
from catalog.gpu_facts import load_accelerators, load_gpu_facts
from catalog.home import Home
from catalog.lock import exclusive
from catalog.publish import publish
from catalog.types import Provenance
from catalog.writer_runs import Refreshed, RowCounts, Trip, insert

__all__ = ["ProviderFacts", "Refreshed", "RowCounts", "Trip", "Writer", "writing"]

_KEPT_RUNS = "35 days"


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """A provider's declared facts, as the views need them."""

    provider: str
    title: str
    home_page: str
    kind: str
    cadence_s: int
    max_age_s: int
    on_demand: bool
    currency: str
    counted: bool
    terms_note: str


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that the guard held and whose rows are kept."""

    complete: bool
    row_count: int
    observed_at: datetime
    provenance: Provenance


class Writer:
    """The open live file. Made by `writing`."""

    def __init__(self, home: Home, connection: Connection) -> None:
        self._home = home
        self._connection = connection

    @property
    def connection(self) -> Connection:
        """The connection with the live file attached as `live`: for benchmarks and repairs, not for ordinary runs."""
        return self._connection

    @property
    def mode(self) -> str | None:
        """`live` or `recorded` once anything was stored; a home is never both."""
        return live_file.meta(self._connection, "mode")

    def set_mode(self, mode: str) -> None:
        """Declare whether this home holds live or recorded data."""
        live_file.set_meta(self._connection, "mode", mode)

    def clear(self) -> None:
        """Forget every offer, run and log entry of the live file. Published snapshots keep them."""
        live_file.clear(self._connection)

    def set_providers(self, facts: Iterable[ProviderFacts]) -> None:
        """Replace the declared facts of all providers."""
        rows = [
            (f.provider, f.title, f.home_page, f.kind, f.cadence_s, f.max_age_s, f.on_demand, f.currency, f.counted,
             f.terms_note) for f in facts
        ]  # fmt: skip
        with transaction(self._connection):
            self._connection.execute("DELETE FROM live.providers")
            insert(self._connection, "providers", rows)

    def known_rows(self, provider: str) -> list[dict[str, Any]]:
        """The provider's open offers as last stored: what they are, where, and their native price per hour."""
        return rows_of(
            self._connection,
            """SELECT offer_id, gpu, region, purchase_option, instance_type, currency, price_hour FROM live.current
            WHERE source = ? AND closed_at IS NULL ORDER BY offer_id""",
            [provider],
        )

    def stored_counts(self, provider: str) -> RowCounts:
        """The provider's open offers, and the other counts of the run that stored them."""
        open_offers = scalar(
            self._connection, "SELECT count(*) FROM live.current WHERE source = ? AND closed_at IS NULL", [provider]
        )
        rows = rows_of(
            self._connection,
            "SELECT rejected_count, unmapped_count FROM live.provider_state WHERE provider = ?",
            [provider],
        )
        state = rows[0] if rows else {}
        return RowCounts(open_offers, state.get("rejected_count") or 0, state.get("unmapped_count") or 0)

    def held_run(self, provider: str, run_id: str) -> HeldRun:
        """What is kept of a provider's held run.

        Raises:
            UnknownName: no rows of it are kept; the message names the run of which there are.
        """
        rows = rows_of(
            self._connection,
            """SELECT held_run_id, bool_and(held_complete) AS complete, count(*) AS row_count,
                   min(observed_at) AS observed_at, min(provenance) AS provenance
            FROM live.held_offers WHERE source = ? GROUP BY ALL""",
            [provider],
        )
        for row in rows:
            if row["held_run_id"] == run_id:
                return HeldRun(row["complete"], row["row_count"], row["observed_at"], row["provenance"])
        raise UnknownName(f"held run of {provider}", run_id, [row["held_run_id"] for row in rows])

    def drift_marks(self, provider: str, first_day: str, last_day: str) -> dict[str, float]:
        """Per GPU key the earliest median price per hour (native) kept between two days; empty where none is kept."""
        rows = rows_of(
            self._connection,
            """SELECT gpu_key, arg_min(median_price_hour, day) AS price FROM live.guard_marks
            WHERE source = ? AND day BETWEEN ? AND ? GROUP BY ALL""",
            [provider, first_day, last_day],
        )
        return {row["gpu_key"]: row["price"] for row in rows}

    def dollar_rates(self) -> dict[str, Decimal]:
        """US dollars per unit of each currency, by its newest dated rate."""
        rows = rows_of(
            self._connection,
            "SELECT currency, arg_max(usd_per_unit, day) AS rate FROM live.exchange_rates GROUP BY ALL",
        )
        return {row["currency"]: row["rate"] for row in rows} | {"USD": Decimal(1)}

    def apply(self, refreshed: Refreshed) -> int:
        """Store one run. Outcomes ok and partial change rows; unchanged only says they were seen; others keep all.

        Returns:
            How many entries the price log gained.
        """
        run = refreshed.run
        if run.outcome in {"ok", "partial", "held"}:
            writer_rows.stage(self._connection, run.provider, run.run_id, refreshed.rows)
        return self._store(refreshed)

    def accept(self, run_id: str, run: Refreshed) -> int:
        """Publish the rows of a held run that a person looked at; `run` is the record of doing so.

        Returns:
            How many entries the price log gained.

        Raises:
            UnknownName: no held run of that name is kept; the message names the newest.
        """
        surcharges = writer_rows.stage_held(self._connection, run_id, run.run.run_id)
        return self._store(run, held_surcharges=surcharges)

    def _store(self, refreshed: Refreshed, held_surcharges: str = "") -> int:
        run, connection = refreshed.run, self._connection
        if run.outcome in {"ok", "partial"}:
            writer_rows.compare(connection, refreshed.observed_at)
        with transaction(connection):
            gained = 0
            if run.outcome in {"ok", "partial"}:
                gained = writer_rows.merge(connection, run, refreshed.observed_at)
            elif run.outcome == "unchanged" and run.complete:
                connection.execute("DELETE FROM live.seen WHERE source = ?", [run.provider])
            elif run.outcome == "held":
                writer_rows.keep_held(connection, run)
            writer_runs.record(connection, refreshed, held_surcharges)
            if run.outcome in {"ok", "partial", "unchanged"}:
                writer_rows.follow_up(connection, run, refreshed.observed_at)
        return gained

    def record_events(self, events: Sequence[tuple[datetime, str, str, str]]) -> None:
        """Keep what the scheduler noticed: (when, provider or '', what, detail)."""
        with transaction(self._connection):
            insert(self._connection, "scheduler_events", events)

    def publish(self, now: datetime | None = None) -> Path:
        """Close finished months, checkpoint the live file and publish a snapshot of it; returns the snapshot's path.

        Raises:
            StoreError: it cannot be written, or rows that were published before are missing from the live file.
        """
        moment = now or datetime.now(UTC)
        connection = self._connection
        history_months.close_finished(connection, self._home, moment)
        with transaction(connection):
            load_accelerators(connection, "live")
            load_gpu_facts(connection, "live")
            for table, column in (("runs", "started_at"), ("scheduler_events", "happened_at")):
                connection.execute(f"DELETE FROM live.{table} WHERE {column} < now() - INTERVAL '{_KEPT_RUNS}'")
            live_file.set_meta(connection, "published_at", moment.isoformat())
            live_file.next_sequence(connection)
        connection.execute("CHECKPOINT live")
        return publish(connection, self._home, moment)


@contextmanager
def writing(home: Home, timeout_s: float) -> Iterator[Writer]:
    """Become the writer: take the lock, open the live file (made if absent), close both at the end.

    Raises:
        StoreBusy: another process is writing and did not finish within `timeout_s`.
        CatalogDamaged: the live file does not open, or is older than what was published; it is left as it is.
        StoreError: the disk is full, the folder is read-only, a block is damaged.
    """
    home.ensure()
    try:
        with exclusive(home.lock, timeout_s), live_file.opened(home) as connection:
            yield Writer(home, connection)
    except (DatabaseError, OSError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise StoreError(
            f"cannot write the catalog in {home.path}: {reason}. What was published before is still in place; free "
            "space or permissions and refresh again, or see `gpubazaar doctor`."
        ) from problem
