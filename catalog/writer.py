"""Writes the catalog: one process at a time, one transaction per provider, one publish at the end.

A provider's rows are merged into `current` in place; what changed in price or availability is appended to the log. The
live file is only ever touched through this connection: opening and closing it any other way in the same process would
drop the kernel's lock (POSIX record locks belong to the process).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from catalog.engine import Connection, attach, memory_connection, quoted, rows_of, scalar, script, transaction
from catalog.errors import StoreError
from catalog.gpu_facts import load_accelerators, load_gpu_facts
from catalog.home import Home
from catalog.lock import exclusive
from catalog.publish import publish
from catalog.types import ExchangeRate, OfferRow, Provenance, Rejection, Run, Surcharge

SCHEMA_VERSION = "1"
_KEPT_RUNS = "35 days"
# Columns whose change makes a new entry in the price log.
_QUOTED = ("price", "currency", "price_unit", "price_scope", "availability")
# Columns that say when and by which run a row was seen, not what it is.
_BOOKKEEPING = frozenset({"offer_id", "run_id", "observed_at"})


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
class Refreshed:
    """Everything one run brings to the store. `document_hash` recognises unchanged documents next time."""

    run: Run
    observed_at: datetime
    provenance: Provenance
    rows: Sequence[OfferRow] = ()
    surcharges: Sequence[Surcharge] = ()
    rejections: Sequence[Rejection] = ()
    rates: Sequence[ExchangeRate] = ()
    document_hash: str = ""
    fetch_state: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows a run brought: stored, refused, and with a GPU name outside the table."""

    row_count: int = 0
    rejected_count: int = 0
    unmapped_count: int = 0


class Writer:
    """The open live file. Made by `writing`."""

    def __init__(self, home: Home, connection: Connection) -> None:
        self._home = home
        self._connection = connection

    @property
    def mode(self) -> str | None:
        """`live` or `recorded` once anything was stored; a home is never both."""
        value = scalar(self._connection, "SELECT value FROM live.meta WHERE key = 'mode'")
        return None if value is None else str(value)

    def set_mode(self, mode: str) -> None:
        """Declare whether this home holds live or recorded data."""
        self._connection.execute("DELETE FROM live.meta WHERE key = 'mode'")
        self._connection.execute("INSERT INTO live.meta VALUES ('mode', ?)", [mode])

    def clear(self) -> None:
        """Forget every offer, run and log entry of the live file. Published snapshots keep them."""
        with transaction(self._connection):
            for table in ("current", "price_log", "runs", "seen", "rejections", "surcharges", "exchange_rates",
                          "fetch_state", "provider_state", "meta"):  # fmt: skip
                self._connection.execute(f"DELETE FROM live.{table}")
            self._connection.execute("INSERT INTO live.meta VALUES ('schema_version', ?)", [SCHEMA_VERSION])

    def set_providers(self, facts: Iterable[ProviderFacts]) -> None:
        """Replace the declared facts of all providers."""
        rows = [
            (f.provider, f.title, f.home_page, f.kind, f.cadence_s, f.max_age_s, f.on_demand, f.currency, f.counted,
             f.terms_note) for f in facts
        ]  # fmt: skip
        with transaction(self._connection):
            self._connection.execute("DELETE FROM live.providers")
            self._connection.executemany(f"INSERT INTO live.providers VALUES ({', '.join('?' * 10)})", rows)

    def known_rows(self, provider: str) -> list[dict[str, Any]]:
        """The provider's open offers as last stored: offer_id, gpu, currency and price_hour (native)."""
        return rows_of(
            self._connection,
            """SELECT offer_id, gpu, currency, price_hour FROM live.current
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
        staged = run.outcome in {"ok", "partial"}
        if staged:
            self._stage(refreshed)
        with transaction(self._connection):
            before = self._log_length()
            if staged:
                self._merge(refreshed)
            if run.outcome == "unchanged" and run.complete:
                self._connection.execute("DELETE FROM live.seen WHERE source = ?", [run.provider])
            self._record(refreshed)
            return self._log_length() - before

    def _log_length(self) -> int:
        return int(scalar(self._connection, "SELECT count(*) FROM live.price_log"))

    def _stage(self, refreshed: Refreshed) -> None:
        """Bring the rows in beside the live file, and find out what differs, before the transaction starts."""
        from catalog.frames import SCHEMA, offer_frame

        run = refreshed.run
        with tempfile.TemporaryDirectory(prefix="gpubazaar-") as folder:
            path = Path(folder) / "rows.parquet"
            offer_frame(run.provider, run.run_id, refreshed.rows).write_parquet(path)
            self._connection.execute(
                f"CREATE OR REPLACE TEMP TABLE incoming AS SELECT * FROM read_parquet('{quoted(str(path))}')"
            )
        differs = " OR ".join(f"c.{n} IS DISTINCT FROM i.{n}" for n in SCHEMA if n not in _BOOKKEEPING)
        requoted = " OR ".join(f"c.{n} IS DISTINCT FROM i.{n}" for n in _QUOTED)
        self._connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE delta AS
            SELECT i.*, coalesce(c.first_seen_at, i.observed_at) AS first_seen_at,
                   CASE WHEN c.offer_id IS NULL THEN 'open' WHEN c.closed_at IS NOT NULL THEN 'back'
                        WHEN {requoted} THEN 'change' END AS event
            FROM incoming i LEFT JOIN live.current c USING (offer_id)
            WHERE c.offer_id IS NULL OR c.closed_at IS NOT NULL OR {differs}"""
        )

    def _merge(self, refreshed: Refreshed) -> None:
        run, at = refreshed.run, refreshed.observed_at
        execute = self._connection.execute
        quote_columns = ", ".join((*_QUOTED, "price_hour"))
        execute(
            f"""INSERT INTO live.price_log (offer_id, changed_at, event, {quote_columns}, run_id)
            SELECT offer_id, observed_at, event, {quote_columns}, run_id FROM delta WHERE event IS NOT NULL"""
        )
        execute("DELETE FROM live.current WHERE offer_id IN (SELECT offer_id FROM delta)")
        execute("INSERT INTO live.current BY NAME SELECT * EXCLUDE (event), NULL::TIMESTAMPTZ AS closed_at FROM delta")
        gone = "source = ? AND closed_at IS NULL AND offer_id NOT IN (SELECT offer_id FROM incoming)"
        if run.complete:
            execute(
                f"""INSERT INTO live.price_log (offer_id, changed_at, event, {quote_columns}, run_id)
                SELECT offer_id, ?, 'gone', {quote_columns.replace("availability", "'unavailable'")}, ?
                FROM live.current WHERE {gone}""",
                [at, run.run_id, run.provider],
            )
            execute(f"UPDATE live.current SET closed_at = ? WHERE {gone}", [at, run.provider])
            execute("DELETE FROM live.seen WHERE source = ?", [run.provider])
        else:
            execute("DELETE FROM live.seen WHERE offer_id IN (SELECT offer_id FROM incoming)")
            execute("INSERT INTO live.seen SELECT offer_id, source, observed_at FROM incoming")

    def _record(self, refreshed: Refreshed) -> None:
        run = refreshed.run
        execute = self._connection.execute
        execute(
            f"INSERT INTO live.runs VALUES ({', '.join('?' * 11)})",
            [run.run_id, run.provider, run.started_at, run.finished_at, run.outcome, run.row_count, run.rejected_count,
             run.unmapped_count, run.complete, run.reason, run.collector_version],
        )  # fmt: skip
        if run.outcome in {"ok", "partial", "held"}:
            execute("DELETE FROM live.rejections WHERE provider = ?", [run.provider])
            self._insert(
                "rejections",
                [(run.run_id, r.provider, r.reason, r.field, r.value, r.sample) for r in refreshed.rejections],
            )
        if run.outcome in {"ok", "partial"}:
            self._replace_surcharges(run.provider, refreshed.surcharges)
            self._upsert_rates(refreshed.rates)
        if refreshed.fetch_state:
            execute("DELETE FROM live.fetch_state WHERE provider = ?", [run.provider])
            names = ("url", "request_hash", "etag", "last_modified", "sha256", "fetched_at")
            self._insert("fetch_state", [(run.provider, *(s.get(n) for n in names)) for s in refreshed.fetch_state])
        self._update_state(refreshed)

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            self._connection.executemany(f"INSERT INTO live.{table} VALUES ({marks})", rows)

    def _replace_surcharges(self, source: str, surcharges: Sequence[Surcharge]) -> None:
        if not surcharges:
            return
        self._connection.execute("DELETE FROM live.surcharges WHERE source = ?", [source])
        self._insert(
            "surcharges",
            [
                (source, s.provider, s.region, s.kind, s.price, s.currency, s.unit, s.included_quantity,
                 [{"from_quantity": t.from_quantity, "price": t.price} for t in s.tiers], s.source_url, s.observed_at)
                for s in surcharges
            ],
        )  # fmt: skip

    def _upsert_rates(self, rates: Sequence[ExchangeRate]) -> None:
        for rate in rates:
            self._connection.execute(
                "DELETE FROM live.exchange_rates WHERE day = ? AND currency = ?", [rate.day, rate.currency]
            )
        self._insert("exchange_rates", [(r.day, r.currency, r.usd_per_unit, r.source) for r in rates])

    def _update_state(self, refreshed: Refreshed) -> None:
        run = refreshed.run
        old = rows_of(self._connection, "SELECT * FROM live.provider_state WHERE provider = ?", [run.provider])
        state: dict[str, Any] = old[0] if old else {"provider": run.provider}
        good = run.outcome in {"ok", "unchanged", "partial"}
        state |= {"outcome": run.outcome, "note": run.reason, "last_run_id": run.run_id,
                  "last_attempt_at": run.finished_at or run.started_at}  # fmt: skip
        if good:
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
        self._connection.execute("DELETE FROM live.provider_state WHERE provider = ?", [run.provider])
        names = ("provider", "outcome", "note", "provenance", "last_run_id", "last_attempt_at", "last_success_at",
                 "last_complete_at", "document_hash", "row_count", "rejected_count", "unmapped_count",
                 "consecutive_failures")  # fmt: skip
        self._insert("provider_state", [tuple(state.get(n) for n in names)])

    def record_events(self, events: Sequence[tuple[datetime, str, str, str]]) -> None:
        """Keep what the scheduler noticed: (when, provider or '', what, detail)."""
        with transaction(self._connection):
            self._insert("scheduler_events", events)

    def publish(self, now: datetime | None = None) -> Path:
        """Checkpoint the live file and publish an immutable snapshot of it; returns the snapshot's path."""
        with transaction(self._connection):
            load_accelerators(self._connection, "live")
            load_gpu_facts(self._connection, "live")
            self._connection.execute(f"DELETE FROM live.runs WHERE started_at < now() - INTERVAL '{_KEPT_RUNS}'")
            self._connection.execute(
                f"DELETE FROM live.scheduler_events WHERE happened_at < now() - INTERVAL '{_KEPT_RUNS}'"
            )
        self._connection.execute("CHECKPOINT live")
        return publish(self._connection, self._home, now or datetime.now(UTC))


@contextmanager
def writing(home: Home, timeout_s: float) -> Iterator[Writer]:
    """Become the writer: take the lock, open the live file (made if absent), close both at the end.

    Raises:
        StoreBusy: another process is writing and did not finish within `timeout_s`.
        CatalogDamaged: the live file does not open; it is left as it is.
    """
    home.ensure()
    with exclusive(home.lock, timeout_s):
        connection = memory_connection()
        try:
            attach(connection, home.live, "live")
            _ensure_schema(connection)
            yield Writer(home, connection)
        finally:
            connection.close()


def _ensure_schema(connection: Connection) -> None:
    connection.execute("USE live")
    connection.execute(script("schema.sql"))
    connection.execute(script("views.sql"))
    connection.execute("USE memory")
    found = scalar(connection, "SELECT value FROM live.meta WHERE key = 'schema_version'")
    if found is None:
        connection.execute("INSERT INTO live.meta VALUES ('schema_version', ?)", [SCHEMA_VERSION])
    elif found != SCHEMA_VERSION:
        raise StoreError(
            f"the catalog was written with schema {found}, this gpubazaar knows {SCHEMA_VERSION}; "
            "install the newer version or set GPUBAZAAR_HOME to another folder"
        )
