"""Checks every file of a data folder against what was written, and starts again from the last good snapshot.

The checks change nothing. Where a writer is at work its own file is left alone: no process but the writer opens it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from catalog import history_months
from catalog.engine import Connection, DatabaseError, attach, memory_connection, read_only_connection, rows_of, scalar
from catalog.errors import StoreBusy, StoreError
from catalog.home import Home
from catalog.lock import exclusive
from catalog.manifest import Manifest, read_manifest, sha256_of

State = Literal["ok", "warning", "error"]
RESTORE = "gpubazaar doctor --restore"
_LEAST_FREE_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked: its state, what was found, and what to do next ('' where nothing)."""

    item: str
    state: State
    detail: str
    advice: str = ""


def examine(home: Home) -> list[Finding]:
    """Check folder, space, pointer, snapshots, live file and closed months; nothing is changed."""
    if not home.path.is_dir():
        return [Finding(str(home.path), "warning", "there is no data folder yet", "run `gpubazaar refresh`")]
    snapshots = [snapshot_finding(path) for path in home.published()]
    return [
        _folder(home), _space(home), _pointer(home), *snapshots, *_live(home), *_months(home), *_leftovers(home),
    ]  # fmt: skip


def _folder(home: Home) -> Finding:
    if os.access(home.path, os.W_OK | os.X_OK) and (not home.snapshots.exists() or os.access(home.snapshots, os.W_OK)):
        return Finding("folder", "ok", f"{home.path} can be written")
    return Finding("folder", "error", f"{home.path} cannot be written: reading works, refresh does not",
                   "make it writable, or set GPUBAZAAR_HOME to another folder")  # fmt: skip


def _space(home: Home) -> Finding:
    free = shutil.disk_usage(home.path).free
    size = sum(p.stat().st_size for p in (home.live, home.pointer.resolve()) if p.exists())
    needed = max(_LEAST_FREE_BYTES, 2 * size)
    detail = f"{free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB wanted for the next publishes"
    return Finding("space", "ok", detail) if free >= needed else Finding(
        "space", "warning", detail, "free some space: a full disk stops refreshes, it does not damage the catalog"
    )  # fmt: skip


def _pointer(home: Home) -> Finding:
    if not home.pointer.is_symlink() and not home.pointer.exists():
        if not home.published():
            return Finding("pointer", "warning", "nothing is published yet", "run `gpubazaar refresh`")
        return Finding("pointer", "error", "missing; readers take the newest snapshot", f"run `{RESTORE}`")
    if not home.pointer.exists():
        return Finding("pointer", "error", f"names {home.pointer.readlink()}, which is gone; readers take the newest "
                       "snapshot that is there", f"run `{RESTORE}`")  # fmt: skip
    if not home.pointer.is_symlink():
        return Finding("pointer", "warning", "is a file of its own, not a link: refreshes replace it", "")
    if home.pointer.readlink().is_absolute():
        return Finding("pointer", "warning", "is an absolute link: a moved folder would lose it", "run any refresh")
    return Finding("pointer", "ok", f"names {home.pointer.resolve().name}")


def snapshot_finding(path: Path) -> Finding:
    """Check one snapshot: its size and hash against its record, and every block by reading all of it."""
    name, manifest = path.name, read_manifest(path)
    try:
        if manifest is not None and path.stat().st_size != manifest.byte_count:
            return Finding(name, "error", f"{path.stat().st_size} bytes, {manifest.byte_count} were written", RESTORE)
        if manifest is not None and sha256_of(path) != manifest.sha256:
            return Finding(name, "error", "its content is not what was written (other SHA-256)", RESTORE)
        with _read_only(path) as connection:
            counts = _read_all(connection)
    except (OSError, StoreError, DatabaseError) as problem:
        return Finding(name, "error", str(problem).splitlines()[0], RESTORE)
    if manifest is None:
        return Finding(name, "warning", "reads whole, but its record (.json) is missing or unreadable", "")
    differing = [t for t, n in manifest.rows.items() if counts.get(t) != n]
    if differing:
        return Finding(name, "error", f"other row counts than written: {', '.join(differing)}", RESTORE)
    if path.stat().st_mode & 0o222:
        return Finding(name, "warning", "reads whole, but is writable: someone may open it read-write",
                       f"chmod 0444 {path}")  # fmt: skip
    return Finding(name, "ok", f"reads whole: {counts.get('current', 0)} offers, published {manifest.published_at}")


@contextmanager
def _read_only(path: Path) -> Iterator[Connection]:
    connection = read_only_connection(path)
    try:
        yield connection
    finally:
        connection.close()


def _read_all(connection: Connection, database: str = "") -> dict[str, int]:
    """Rows per table, having read every column of every row: a damaged block raises."""
    where = "database_name = ?" if database else "database_name = current_database()"
    tables = rows_of(
        connection, f"SELECT table_name FROM duckdb_tables() WHERE {where}", [database] if database else []
    )
    prefix = f"{database}." if database else ""
    counts = {}
    for table in tables:
        name = table["table_name"]
        connection.execute(f"SELECT count(*), bit_xor(hash(t)) FROM {prefix}{name} t")
        counts[name] = int(connection.fetchall()[0][0])
    return counts


def _live(home: Home) -> list[Finding]:
    wal = home.live.with_name(f"{home.live.name}.wal")
    if not home.live.exists():
        if home.published():
            return [Finding("live file", "warning", "is not there; the next refresh starts from the newest snapshot")]
        return []
    try:
        with exclusive(home.lock, 0.0):
            return [*_open_live(home), *([] if not wal.exists() else [_pending(wal)])]
    except StoreBusy as problem:
        return [Finding("live file", "ok", f"not looked at: {problem}")]
    except StoreError as problem:
        return [Finding("live file", "warning", f"not looked at: {problem}")]


def _pending(wal: Path) -> Finding:
    detail = f"{wal.name} holds {wal.stat().st_size} bytes that were not yet published"
    return Finding("interrupted write", "warning", detail, "the next refresh replays them")


def _open_live(home: Home) -> list[Finding]:
    connection = memory_connection()
    try:
        attach(connection, home.live, "live", read_only=True)
        counts = _read_all(connection, "live")
        sequence = int(scalar(connection, "SELECT value FROM live.meta WHERE key = 'sequence'") or 0)
        lineage = scalar(connection, "SELECT value FROM live.meta WHERE key = 'lineage'")
    except (StoreError, DatabaseError) as problem:
        return [Finding("live file", "error", str(problem).splitlines()[0], f"run `{RESTORE}`")]
    finally:
        connection.close()
    newest = next((m for p in home.published() if (m := read_manifest(p)) is not None), None)
    if newest is not None and newest.lineage == lineage:
        lost = counts["current"] < newest.rows.get("current", 0)
        if sequence < newest.sequence or lost:
            return [Finding("live file", "error", f"is older than snapshot {newest.name}: its last changes are lost",
                            f"run `{RESTORE}`")]  # fmt: skip
    return [Finding("live file", "ok", f"reads whole: {counts['current']} offers, {counts['price_log']} log entries")]


def _months(home: Home) -> list[Finding]:
    """Closed months that the newest snapshot lists, against the files that are there."""
    newest = next((p for p in home.published() if snapshot_opens(p)), None)
    if newest is None:
        return []
    with _read_only(newest) as connection:
        listed = rows_of(connection, "SELECT * FROM history_months ORDER BY month")
        lineage = scalar(connection, "SELECT value FROM meta WHERE key = 'lineage'")
    found = [_month(home, m["month"], m["row_count"], str(lineage)) for m in listed]
    known = {history_months.file_of(home, m["month"]) for m in listed}
    strangers = [path for path in history_months.files_in(home) if path not in known]
    return found + [Finding(path.name, "warning", "is not part of the published catalog") for path in strangers]


def snapshot_opens(path: Path) -> bool:
    """Whether a snapshot opens and has a catalog's tables; its blocks are not all read."""
    try:
        with _read_only(path) as connection:
            scalar(connection, "SELECT count(*) FROM current")
    except (StoreError, DatabaseError):
        return False
    return True


def _month(home: Home, month: str, row_count: int, lineage: str) -> Finding:
    path = history_months.file_of(home, month)
    advice = "put back a copy of this file; until then history before the next month is not shown"
    try:
        with _read_only(path) as connection:
            counts = _read_all(connection)
            own = scalar(connection, "SELECT value FROM meta WHERE key = 'lineage'")
    except (StoreError, DatabaseError) as problem:
        return Finding(path.name, "error", str(problem).splitlines()[0], advice)
    if own != lineage:
        return Finding(path.name, "error", "belongs to another catalog", advice)
    if counts.get("price_log") != row_count:
        return Finding(path.name, "error", f"{counts.get('price_log')} entries, {row_count} were written", advice)
    return Finding(path.name, "ok", f"reads whole: {row_count} log entries")


def _leftovers(home: Home) -> list[Finding]:
    left = [p for folder in (home.path, home.snapshots) for p in folder.glob(".*.tmp*")]
    if not left:
        return []
    return [Finding("leftovers", "ok", f"{len(left)} half-written files of an interrupted publish; the next one "
                    "removes them")]  # fmt: skip


def good_snapshots(home: Home) -> Iterator[Manifest]:
    """Snapshots that check out whole, newest first, with their records."""
    for path in home.published():
        manifest = read_manifest(path)
        if manifest is not None and snapshot_finding(path).state != "error":
            yield manifest
