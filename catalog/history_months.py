"""Closed months of the change log as read-only files, and the bases from which a look at the past starts.

A month is closed two days after its end, when no late document can date an entry into it any more. Then its part of the
log is written to `history/history-YYYY-MM.duckdb`, and the state of every open offer at its end is kept as a base. The
live file and its snapshots keep the last 35 days of the log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from catalog import live_file
from catalog.engine import (
    Connection,
    DatabaseError,
    attach,
    read_only_connection,
    rows_of,
    scalar,
    transaction,
)
from catalog.errors import StoreError
from catalog.home import Home
from catalog.reader import Catalog
from catalog.view_script import history_views

KEPT_DAYS = 35
GONE = 4
_SETTLED = timedelta(days=2)
_COLUMNS = "offer_no, changed_at, price, price_exact, terms_no, state"
_NAME = re.compile(r"^history-(\d{4}-\d{2})\.duckdb$")


def folder_of(home: Home) -> Path:
    """Where the files of closed months lie."""
    return home.path / "history"


def file_of(home: Home, month: str) -> Path:
    """The file of a month such as 2026-10."""
    return folder_of(home) / f"history-{month}.duckdb"


def files_in(home: Home) -> list[Path]:
    """Every month file that is there, oldest first."""
    return sorted(p for p in folder_of(home).glob("history-*.duckdb") if _NAME.match(p.name))


def close_finished(connection: Connection, home: Home, now: datetime) -> None:
    """Close every month that is over, then drop from the live log what is older than 35 days and closed.

    Recorded homes keep their whole log: it is small, and its dates are those of its sources.

    Raises:
        StoreError: a month file cannot be written; the log keeps its entries.
    """
    if live_file.meta(connection, "mode") != "live":
        return
    for start, end in _months_to_close(connection, now):
        _close(connection, home, start, end)
    closed_to = scalar(connection, "SELECT max(ends_at) FROM live.history_months")
    if closed_to is None:
        return
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    keep_from = min(closed_to, midnight - timedelta(days=KEPT_DAYS))
    if keep_from.isoformat() > (live_file.meta(connection, "log_from") or ""):
        _shorten_log(connection, keep_from)


def _shorten_log(connection: Connection, keep_from: datetime) -> None:
    """Drop the log's entries before a moment, and keep what held at it as a base: the log alone then says all since."""
    with transaction(connection):
        start = scalar(connection, "SELECT max(base_at) FROM live.price_bases WHERE base_at <= ?", [keep_from])
        if start != keep_from:
            _add_base(connection, start, keep_from)
        connection.execute(
            """DELETE FROM live.price_bases WHERE base_at = ?::TIMESTAMPTZ
            AND base_at NOT IN (SELECT ends_at FROM live.history_months)""",
            [live_file.meta(connection, "log_from")],
        )
        connection.execute("DELETE FROM live.price_log WHERE changed_at < ?", [keep_from])
        live_file.set_meta(connection, "log_from", keep_from.isoformat())


def _add_base(connection: Connection, start: datetime | None, moment: datetime) -> None:
    """Keep the state of every open offer at a moment, from an earlier base (None: the beginning) and the log since."""
    connection.execute(
        f"""INSERT INTO live.price_bases
        WITH entries AS NOT MATERIALIZED (
            SELECT {_COLUMNS} FROM live.price_bases WHERE base_at = $2::TIMESTAMPTZ
            UNION ALL
            SELECT {_COLUMNS} FROM live.price_log
            WHERE changed_at < $1 AND changed_at >= coalesce($2::TIMESTAMPTZ, '-infinity')
        ), newest AS MATERIALIZED (SELECT offer_no, max(changed_at) AS changed_at FROM entries GROUP BY offer_no)
        SELECT $1, entries.* FROM entries JOIN newest USING (offer_no, changed_at) WHERE state <> {GONE}
        ORDER BY offer_no""",
        [moment, start],
    )


def _months_to_close(connection: Connection, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    start = scalar(connection, "SELECT max(ends_at) FROM live.history_months")
    if start is None:
        first = scalar(connection, "SELECT min(changed_at) FROM live.price_log")
        if first is None:
            return
        start = first.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    start = start.astimezone(UTC)
    while (end := month_after(start)) + _SETTLED <= now:
        yield start, end
        start = end


def month_after(start: datetime) -> datetime:
    """The first moment of the next month; `start` is the first moment of one."""
    return (start + timedelta(days=32)).replace(day=1)


def _close(connection: Connection, home: Home, start: datetime, end: datetime) -> None:
    month = f"{start:%Y-%m}"
    path = file_of(home, month)
    if not _holds_more(connection, path, start, end):  # else written before a restore from an older snapshot
        _write_month(connection, path, start, end)
    rows = _entries_of(path)
    with transaction(connection):
        connection.execute("DELETE FROM live.price_bases WHERE base_at = ?", [end])
        _add_base(connection, start, end)
        connection.execute(
            "INSERT INTO live.history_months VALUES (?, ?, ?, ?, ?)", [month, start, end, rows, path.stat().st_size]
        )


def _holds_more(connection: Connection, path: Path, start: datetime, end: datetime) -> bool:
    """Whether a file of this month and this catalog is there already, with at least as many entries."""
    if not path.exists():
        return False
    here = scalar(
        connection, "SELECT count(*) FROM live.price_log WHERE changed_at >= ? AND changed_at < ?", [start, end]
    )
    try:
        attach(connection, path, "older", read_only=True)
    except StoreError:
        return False
    try:
        own = scalar(connection, "SELECT value FROM older.meta WHERE key = 'lineage'")
        there = scalar(connection, "SELECT count(*) FROM older.price_log")
    except DatabaseError:
        return False
    finally:
        connection.execute("DETACH older")
    return bool(own == live_file.meta(connection, "lineage") and there >= here)


def _entries_of(path: Path) -> int:
    connection = read_only_connection(path)
    try:
        return int(scalar(connection, "SELECT count(*) FROM price_log"))
    finally:
        connection.close()


def _write_month(connection: Connection, path: Path, start: datetime, end: datetime) -> None:
    """Write the month's entries under another name, then put the file in place in one step."""
    working = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        working.unlink(missing_ok=True)
        attach(connection, working, "month")
        try:
            connection.execute(
                f"""CREATE TABLE month.price_log AS SELECT {_COLUMNS} FROM live.price_log
                WHERE changed_at >= '{start.isoformat()}' AND changed_at < '{end.isoformat()}' ORDER BY changed_at"""
            )
            lineage = live_file.meta(connection, "lineage")
            connection.execute(f"CREATE TABLE month.meta AS SELECT 'lineage' AS key, '{lineage}' AS value")
            connection.execute("CHECKPOINT month")
        finally:
            connection.execute("DETACH month")
        sync(working)
        working.chmod(0o444)
        working.replace(path)
        sync(path.parent)
    except (OSError, DatabaseError) as problem:
        raise StoreError(
            f"cannot write {path}: {str(problem).splitlines()[0]}. The log keeps its entries; free space or "
            "permissions, then refresh again."
        ) from problem


def sync(path: Path) -> None:
    """Make a file or folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reaches_back(sql: str) -> bool:
    """Whether a query looks at the past, and so needs the closed months; opening them takes a few milliseconds each."""
    return any(
        name in sql.casefold()
        for name in ("v_price_history", "v_price_log", "offers_as_of", "price_history_since", "history_")
    )


def attach_history(catalog: Catalog, home: Home) -> None:
    """Let a reader's history views reach over all closed months whose files are there.

    A month that is missing, damaged or of another catalog makes a warning; older months than it are left out too, so
    that no answer has a hole in the middle.
    """
    months = catalog.rows("SELECT * FROM history_months ORDER BY starts_at DESC")
    notes = {r["key"]: r["value"] for r in catalog.rows("SELECT key, value FROM meta")}
    log_from = notes.get("log_from")
    if not months or log_from is None:
        return
    parts, reach = ["SELECT * FROM price_log"], log_from
    for month in months:
        alias = f"history_{month['month'].replace('-', '_')}"
        problem = _attach_month(catalog, home, month["month"], alias, notes.get("lineage", ""))
        if problem:
            catalog.warnings.append(f"history before {reach[:10]} cannot be shown: {problem}")
            break
        parts.append(f"SELECT * FROM {alias}.price_log WHERE changed_at < '{log_from}'::TIMESTAMPTZ")
        reach = min(reach, month["starts_at"].astimezone(UTC).isoformat())
    else:
        reach = "-infinity"
    published = notes.get("published_at", "now")
    script = history_views(
        " UNION ALL ".join(parts), f"'{reach}'::TIMESTAMPTZ", f"'{published}'::TIMESTAMPTZ", temporary=True
    )
    catalog.connection.execute(script)


def _attach_month(catalog: Catalog, home: Home, month: str, alias: str, lineage: str) -> str:
    """Attach one month; returns what is wrong with it, or ''."""
    path = file_of(home, month)
    try:
        attach(catalog.connection, path, alias, read_only=True)
        found = rows_of(catalog.connection, f"SELECT value FROM {alias}.meta WHERE key = 'lineage'")
    except (StoreError, DatabaseError) as problem:
        return str(problem).splitlines()[0]
    if [row["value"] for row in found] != [lineage]:
        return f"{path} belongs to another catalog"
    return ""
