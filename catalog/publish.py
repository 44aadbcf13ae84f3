"""Publishing: an immutable copy of the live catalog under a new name, then an atomic swap of the pointer to it.

The copy is made byte for byte, while no connection has the live file open and the writer's lock keeps all others away:
a tenth of a second, where writing the tables anew takes two. That is done only when much of the live file is unused;
then the live file becomes a copy of the compact one.
"""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

from catalog import live_file
from catalog.engine import Connection, DatabaseError, attach, rows_of, scalar
from catalog.errors import CatalogDamaged, StoreError
from catalog.history_months import sync
from catalog.home import SNAPSHOT_PREFIX, Home
from catalog.manifest import Manifest, file_of, read_manifest, sha256_of

KEPT_SNAPSHOTS = 8
KEPT_SECONDS = 600
# The share of unused blocks from which the live file is written anew.
COMPACT_ABOVE = 0.45


def publish(connection: Connection, home: Home, now: datetime) -> Path:
    """Copy the attached database `live` into a new snapshot and point `catalog.duckdb` at it.

    The copy is written under a temporary name, synced, made read-only and renamed before the pointer moves, so that a
    crash at any moment leaves either the old or the new catalog.

    Raises:
        CatalogDamaged: the live file holds fewer offers or log entries than the last snapshot of the same lineage.
        StoreError: the copy cannot be written (a full disk, a read-only folder); the old snapshot stays published.
    """
    home.ensure()
    name = f"{SNAPSHOT_PREFIX}{now:%Y%m%dT%H%M%S}-{_next_number(home):06d}"
    working = home.snapshots / f".{name}.tmp"
    final = home.snapshots / f"{name}.duckdb"
    rows, log_rows = _counts(connection)
    _refuse_losses(connection, home, rows, log_rows)
    try:
        for leftover in home.snapshots.glob(f".{SNAPSHOT_PREFIX}*.tmp*"):
            leftover.unlink(missing_ok=True)
        sequence, lineage = (live_file.meta(connection, key) or "" for key in ("sequence", "lineage"))
        _copy(connection, home, working)
        sync(working)
        manifest = Manifest(
            path=final, published_at=now.isoformat(), byte_count=working.stat().st_size, sha256=sha256_of(working),
            sequence=int(sequence), lineage=lineage, log_rows=log_rows, rows=rows,
        )  # fmt: skip
        working.chmod(0o444)
        manifest.write()
        working.rename(final)
        sync(home.snapshots)
        point(home, final)
    except (OSError, DatabaseError) as problem:
        _drop(working)
        reason = problem.strerror if isinstance(problem, OSError) else str(problem).splitlines()[0]
        raise StoreError(
            f"cannot publish a snapshot in {home.snapshots}: {reason}. "
            "The previous one is still in place; free space or permissions, then refresh again."
        ) from problem
    _prune(home, now)
    return final


def _copy(connection: Connection, home: Home, target: Path) -> None:
    """Copy the checkpointed live file; it is detached meanwhile, because a plain open and close would drop its lock."""
    if _unused_share(connection) > COMPACT_ABOVE:
        _copy_compact(connection, home, target)
        return
    connection.execute("DETACH live")
    try:
        shutil.copyfile(home.live, target)
    finally:
        attach(connection, home.live, "live")


def _unused_share(connection: Connection) -> float:
    """The share of the live file's blocks that hold nothing."""
    rows = rows_of(
        connection, "SELECT total_blocks, free_blocks FROM pragma_database_size() WHERE database_name = 'live'"
    )
    return rows[0]["free_blocks"] / max(1, rows[0]["total_blocks"]) if rows else 0.0


def _copy_compact(connection: Connection, home: Home, target: Path) -> None:
    """Write the tables anew, and put a copy of the result in the live file's place."""
    attach(connection, target, "snapshot")
    try:
        connection.execute("COPY FROM DATABASE live TO snapshot")
    finally:
        connection.execute("DETACH snapshot")
    working = home.path / ".live.tmp"
    shutil.copyfile(target, working)
    sync(working)
    connection.execute("DETACH live")
    try:
        working.replace(home.live)
        sync(home.path)
    finally:
        attach(connection, home.live, "live")


def _drop(working: Path) -> None:
    for leftover in (working, working.with_name(f"{working.name}.wal")):
        leftover.unlink(missing_ok=True)


def _counts(connection: Connection) -> tuple[dict[str, int], int]:
    """Rows of every table, and of the whole log with its closed months."""
    tables = rows_of(
        connection, "SELECT table_name FROM duckdb_tables() WHERE database_name = 'live' ORDER BY table_name"
    )
    counts = {t["table_name"]: int(scalar(connection, f"SELECT count(*) FROM live.{t['table_name']}")) for t in tables}
    log_from = live_file.meta(connection, "log_from")
    archived = scalar(connection, "SELECT coalesce(sum(row_count), 0) FROM live.history_months")
    # Closed months that the live log still holds are counted once.
    doubled = scalar(
        connection,
        """SELECT count(*) FROM live.price_log WHERE changed_at < (SELECT max(ends_at) FROM live.history_months)
        AND changed_at >= ?::TIMESTAMPTZ""",
        [log_from or "-infinity"],
    )
    return counts, counts["price_log"] + int(archived) - int(doubled)


def _refuse_losses(connection: Connection, home: Home, rows: dict[str, int], log_rows: int) -> None:
    """Offers are closed, never deleted, and the log only grows: fewer of either means that data was lost."""
    newest = next((m for p in home.published() if (m := read_manifest(p)) is not None), None)
    if newest is None or newest.lineage != live_file.meta(connection, "lineage"):
        return
    for what, before, after in (
        ("offers", newest.rows.get("current", 0), rows["current"]),
        ("log entries", newest.log_rows, log_rows),
    ):
        if after < before:
            raise CatalogDamaged(
                f"{home.live} holds {after} {what}, the published snapshot {newest.name} {before}: data was lost, and "
                "nothing was published. `gpubazaar doctor --restore` starts again from that snapshot."
            )


def _next_number(home: Home) -> int:
    numbers = [int(p.stem.rpartition("-")[2]) for p in home.published() if p.stem.rpartition("-")[2].isdigit()]
    return max(numbers, default=0) + 1


def point(home: Home, target: Path) -> None:
    """Swap the relative symlink in one step."""
    temporary = home.path / f".{home.pointer.name}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target.relative_to(home.path))
    temporary.replace(home.pointer)
    sync(home.path)


def _prune(home: Home, now: datetime) -> None:
    """Keep the newest snapshots and all young ones; readers that hold an older file open keep it until they close."""
    current = home.pointer.resolve()
    for path in home.published()[KEPT_SNAPSHOTS:]:
        if path != current and now.timestamp() - path.stat().st_mtime > KEPT_SECONDS:
            path.unlink(missing_ok=True)
            file_of(path).unlink(missing_ok=True)
    for record in home.snapshots.glob(f"{SNAPSHOT_PREFIX}*.json"):
        if not record.with_suffix(".duckdb").exists():
            record.unlink(missing_ok=True)
