"""Publishing: an immutable copy of the live catalog under a new name, then an atomic swap of the pointer to it."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

from catalog.engine import Connection, attach, rows_of
from catalog.errors import StoreError
from catalog.home import SNAPSHOT_PREFIX, Home

KEPT_SNAPSHOTS = 8
KEPT_SECONDS = 600


def publish(connection: Connection, home: Home, now: datetime) -> Path:
    """Copy the attached database `live` into a new snapshot and point `catalog.duckdb` at it.

    The copy is written under a temporary name, synced, made read-only and renamed before the pointer moves, so that a
    crash at any moment leaves either the old or the new catalog.

    Raises:
        StoreError: the copy cannot be written (a full disk, a read-only folder); the old snapshot stays published.
    """
    home.ensure()
    name = f"{SNAPSHOT_PREFIX}{now:%Y%m%dT%H%M%S}-{_next_number(home):06d}"
    working = home.snapshots / f".{name}.tmp"
    final = home.snapshots / f"{name}.duckdb"
    try:
        working.unlink(missing_ok=True)
        _copy(connection, working)
        manifest = _manifest(connection, name, now, working.stat().st_size)
        _sync(working)
        working.chmod(0o444)
        working.rename(final)
        (home.snapshots / f"{name}.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        _point(home, final)
    except OSError as problem:
        working.unlink(missing_ok=True)
        raise StoreError(
            f"cannot publish a snapshot in {home.snapshots}: {problem.strerror or problem}. "
            "The previous one is still in place; free space or permissions, then refresh again."
        ) from problem
    _prune(home, now)
    return final


def _copy(connection: Connection, target: Path) -> None:
    attach(connection, target, "snapshot")
    try:
        connection.execute("COPY FROM DATABASE live TO snapshot")
    finally:
        connection.execute("DETACH snapshot")


def _manifest(connection: Connection, name: str, now: datetime, size_bytes: int) -> dict[str, object]:
    tables = rows_of(
        connection, "SELECT table_name FROM duckdb_tables() WHERE database_name = 'live' ORDER BY table_name"
    )
    counts = {
        t["table_name"]: rows_of(connection, f"SELECT count(*) AS n FROM live.{t['table_name']}")[0]["n"]
        for t in tables
    }
    return {"snapshot": name, "published_at": now.isoformat(), "bytes": size_bytes, "rows": counts}


def _next_number(home: Home) -> int:
    numbers = [int(p.stem.rpartition("-")[2]) for p in home.published() if p.stem.rpartition("-")[2].isdigit()]
    return max(numbers, default=0) + 1


def _sync(path: Path) -> None:
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def _point(home: Home, target: Path) -> None:
    """Swap the relative symlink in one step."""
    temporary = home.path / f".{home.pointer.name}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target.relative_to(home.path))
    temporary.replace(home.pointer)
    descriptor = os.open(home.path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prune(home: Home, now: datetime) -> None:
    """Keep the newest snapshots and all young ones; readers that hold an older file open keep it until they close."""
    current = home.pointer.resolve()
    for path in home.published()[KEPT_SNAPSHOTS:]:
        if path != current and now.timestamp() - path.stat().st_mtime > KEPT_SECONDS:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)
    for leftover in home.snapshots.glob(f".{SNAPSHOT_PREFIX}*.tmp*"):
        leftover.unlink(missing_ok=True)
