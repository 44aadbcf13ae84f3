"""The writer's own file: opening it, its schema, and noticing that it is not what was left behind last time."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from catalog.engine import Connection, DatabaseError, attach, memory_connection, scalar, script, transaction
from catalog.errors import CatalogDamaged, StoreError
from catalog.home import Home
from catalog.manifest import Manifest, newest_readable
from catalog.view_script import view_script

SCHEMA_VERSION = "2"
_CLEARED = (
    "current", "price_log", "price_terms", "price_bases", "history_months", "coverage", "offer_coverage",
    "price_daily", "runs", "seen", "held_offers", "held_surcharges", "guard_trips", "guard_marks", "rejections",
    "unmapped_names", "surcharges", "exchange_rates", "fetch_state", "provider_state", "scheduler_events",
)  # fmt: skip
_log = logging.getLogger("gpubazaar.store")


@contextmanager
def opened(home: Home) -> Iterator[Connection]:
    """An in-memory connection with the live file attached as `live`; the caller holds the writer's lock.

    A live file that is not there is started from the newest readable snapshot, so that a deleted or forgotten file
    costs nothing that was published.

    Raises:
        CatalogDamaged: it does not open, or it lacks what was published from it.
    """
    newest = newest_readable(home)
    if not home.live.exists() and newest is not None:
        _start_from(home, newest)
    connection = memory_connection()
    try:
        _attach(connection, home)
        _ensure_schema(connection)
        _check_sequence(connection, home, newest)
        yield connection
    finally:
        connection.close()


def _attach(connection: Connection, home: Home) -> None:
    try:
        attach(connection, home.live, "live")
    except CatalogDamaged as problem:
        raise CatalogDamaged(
            f"{problem}. Nothing was changed. `gpubazaar doctor` says what is wrong, "
            "`gpubazaar doctor --restore` starts again from the last good snapshot and keeps the damaged files aside."
        ) from problem


def _start_from(home: Home, newest: Manifest) -> None:
    """Copy a snapshot to where the live file should be, under another name first."""
    _log.warning("the live file is not there; starting from snapshot %s", newest.name)
    copy_to_live(home, newest)


def copy_to_live(home: Home, snapshot: Manifest) -> None:
    """Make the live file a copy of a snapshot. There must be no live file."""
    working = home.path / ".live.tmp"
    for leftover in (working, home.path / ".live.tmp.wal", home.path / f"{home.live.name}.wal"):
        leftover.unlink(missing_ok=True)
    connection = memory_connection()
    try:
        attach(connection, snapshot.path, "source", read_only=True)
        attach(connection, working, "live")
        connection.execute("COPY FROM DATABASE source TO live")
        connection.execute("CHECKPOINT live")
    except DatabaseError as problem:
        raise StoreError(f"cannot copy {snapshot.path} to {home.live}: {str(problem).splitlines()[0]}") from problem
    finally:
        connection.close()
    working.rename(home.live)


def _ensure_schema(connection: Connection) -> None:
    """Create what is missing. Views are only replaced where their text changed: DDL stays out of ordinary runs."""
    try:
        found = scalar(connection, "SELECT value FROM live.meta WHERE key = 'schema_version'")
    except DatabaseError:
        found = None
    if found not in {None, SCHEMA_VERSION}:
        raise StoreError(
            f"the catalog was written with schema {found}, this gpubazaar knows {SCHEMA_VERSION}; "
            "install the version that wrote it, or set GPUBAZAAR_HOME to another folder"
        )
    tables, views = script("schema.sql"), view_script()
    wanted = hashlib.sha256(f"{tables}\n{views}".encode()).hexdigest()
    if found and meta(connection, "schema_hash") == wanted:
        return
    connection.execute("USE live")
    connection.execute(tables)
    connection.execute(views)
    connection.execute("USE memory")
    if found is None:
        set_meta(connection, "schema_version", SCHEMA_VERSION)
        _start_lineage(connection)
    set_meta(connection, "schema_hash", wanted)
    connection.execute("CHECKPOINT live")


def _check_sequence(connection: Connection, home: Home, newest: Manifest | None) -> None:
    """Every publish counts up. A live file that is behind the newest snapshot lost something: say so, change nothing.

    That happens when its write-ahead log was emptied or it was replaced by an older copy.
    """
    if newest is None or newest.lineage not in {"", meta(connection, "lineage")}:
        return
    here = int(meta(connection, "sequence") or 0)
    if here < newest.sequence:
        raise CatalogDamaged(
            f"{home.live} is older than the published snapshot {newest.name} (publish {here} against "
            f"{newest.sequence}): its last changes are lost. `gpubazaar doctor --restore` starts again from that "
            "snapshot and keeps the old file aside."
        )


def meta(connection: Connection, key: str) -> str | None:
    """A value of the live file's own notes."""
    value = scalar(connection, "SELECT value FROM live.meta WHERE key = ?", [key])
    return None if value is None else str(value)


def set_meta(connection: Connection, key: str, value: str) -> None:
    """Replace a value of the live file's own notes."""
    connection.execute("DELETE FROM live.meta WHERE key = ?", [key])
    connection.execute("INSERT INTO live.meta VALUES (?, ?)", [key, value])


def next_sequence(connection: Connection) -> int:
    """Count one more publish."""
    number = int(meta(connection, "sequence") or 0) + 1
    set_meta(connection, "sequence", str(number))
    return number


def clear(connection: Connection) -> None:
    """Forget all data. A new lineage begins: month files of the old one are no longer this catalog's."""
    with transaction(connection):
        for table in _CLEARED:
            connection.execute(f"DELETE FROM live.{table}")
        connection.execute("DELETE FROM live.meta WHERE key IN ('mode', 'log_from', 'next_offer_no')")
        _start_lineage(connection)


def _start_lineage(connection: Connection) -> None:
    set_meta(connection, "lineage", secrets.token_hex(8))
