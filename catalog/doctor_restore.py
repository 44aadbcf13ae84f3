"""Starting again from a good snapshot. Nothing is deleted: damaged files are moved into `damaged/`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from catalog import history_months, live_file
from catalog.doctor import good_snapshots, snapshot_finding
from catalog.engine import DatabaseError, attach, memory_connection, read_only_connection, scalar
from catalog.errors import CatalogMissing, StoreError, UnknownName
from catalog.home import Home
from catalog.lock import exclusive
from catalog.manifest import Manifest, file_of
from catalog.publish import point


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did: the snapshot now current, and the files that were put aside."""

    snapshot: str
    published_at: str
    put_aside: tuple[Path, ...]


def restore(home: Home, name: str | None = None, *, timeout_s: float = 10.0) -> Restored:
    """Make a good snapshot the current one and the live file a copy of it.

    Args:
        home: the data folder.
        name: which snapshot; the newest that checks out whole by default.
        timeout_s: how long to wait for a writer.

    Raises:
        UnknownName: no good snapshot of that name.
        CatalogMissing: no snapshot checks out whole.
        StoreBusy: a writer is at work.
        StoreError: the folder cannot be written.
    """
    with exclusive(home.lock, timeout_s):
        chosen = _chosen(home, name)
        moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
        try:
            aside = _put_aside(home, moment)
            live_file.copy_to_live(home, chosen)
            _skip_used_numbers(home)
            point(home, chosen.path)
        except OSError as problem:
            raise StoreError(f"cannot restore in {home.path}: {problem.strerror or problem}") from problem
    return Restored(chosen.name, chosen.published_at, tuple(aside))


def _chosen(home: Home, name: str | None) -> Manifest:
    if name is None:
        newest = next(good_snapshots(home), None)
        if newest is None:
            raise CatalogMissing(f"no snapshot in {home.snapshots} checks out whole; run `gpubazaar refresh` anew")
        return newest
    good = {m.name: m for m in good_snapshots(home)}
    wanted = name.removesuffix(".duckdb")
    if wanted not in good:
        raise UnknownName("good snapshot", name, good)
    return good[wanted]


def _put_aside(home: Home, moment: str) -> list[Path]:
    """Move the live file, its log and every damaged snapshot away; a later look at them may still be wanted."""
    folder = home.path / "damaged"
    folder.mkdir(exist_ok=True)
    damaged = [p for p in home.published() if snapshot_finding(p).state == "error"]
    wal = home.live.with_name(f"{home.live.name}.wal")
    there = [p for p in (home.live, wal, *damaged, *(file_of(p) for p in damaged)) if p.exists()]
    return [path.rename(folder / f"{moment}-{path.name}") for path in there]


def _skip_used_numbers(home: Home) -> None:
    """Offer numbers that a closed month already uses must not be given to other offers."""
    used = 0
    for path in history_months.files_in(home):
        try:
            connection = read_only_connection(path)
        except StoreError:
            continue
        try:
            used = max(used, int(scalar(connection, "SELECT coalesce(max(offer_no), 0) FROM price_log")))
        except DatabaseError:
            continue
        finally:
            connection.close()
    connection = memory_connection()
    try:
        attach(connection, home.live, "live")
        here = int(live_file.meta(connection, "next_offer_no") or 1)
        live_file.set_meta(connection, "next_offer_no", str(max(here, used + 1)))
        connection.execute("CHECKPOINT live")
    finally:
        connection.close()
