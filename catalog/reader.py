"""Reads the published catalog. A reader opens an immutable snapshot, so a refresh never blocks or changes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from catalog.engine import BadQuery, Connection, DatabaseError, read_only_connection, rows_of
from catalog.errors import CatalogDamaged, CatalogMissing, StoreBusy, StoreError
from catalog.home import Home


@dataclass(slots=True)
class Catalog:
    """An open snapshot. `warnings` say when it is not the newest one."""

    path: Path
    connection: Connection
    warnings: list[str] = field(default_factory=list)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Run a query and return all rows as dicts.

        Raises:
            CatalogDamaged: a block of the file fails its checksum.
        """
        try:
            return rows_of(self.connection, sql, parameters)
        except BadQuery:
            raise
        except DatabaseError as problem:
            raise damaged(self.path, problem) from problem

    def mode(self) -> str | None:
        """`live` or `recorded`: what this home holds; None for an empty one."""
        found = self.rows("SELECT value FROM meta WHERE key = 'mode'")
        return found[0]["value"] if found else None

    def as_of(self) -> datetime:
        """When this snapshot is read: ages are computed against this moment."""
        return datetime.now(UTC)


def damaged(path: Path, problem: Exception) -> CatalogDamaged:
    """The error for a snapshot whose content does not read, naming what to do."""
    return CatalogDamaged(
        f"{path}, or a closed month beside it, does not read ({str(problem).splitlines()[0]}). "
        "`gpubazaar doctor` says which file is damaged; older snapshots are intact: `gpubazaar doctor --restore` makes "
        "the newest good one current, `gpubazaar refresh` publishes a new one."
    )


@contextmanager
def reading(home: Home) -> Iterator[Catalog]:
    """Open the newest readable snapshot.

    The pointer is resolved first, so that a swap or a clean-up during the open costs one retry; a damaged newest
    snapshot falls back to the one before it, with a warning.

    Raises:
        CatalogMissing: nothing has been published in this home.
        CatalogDamaged: no snapshot can be read.
    """
    catalog = _open(home)
    try:
        yield catalog
    finally:
        catalog.connection.close()


def _open(home: Home) -> Catalog:
    refused: StoreError | None = None
    for _ in range(2):
        target = _pointed(home)
        try:
            return Catalog(target, _checked(target), _pointer_warnings(home))
        except CatalogDamaged as problem:
            return _previous(home, target, problem)
        except StoreError as problem:
            refused = problem  # swapped or pruned between resolving and opening, or locked: resolve once more
    if isinstance(refused, StoreBusy):  # somebody opened the snapshot read-write
        return _previous(home, target, refused)
    raise CatalogMissing(f"the snapshot that {home.pointer} names is gone; run `gpubazaar refresh`")


def _pointer_warnings(home: Home) -> list[str]:
    if home.pointer.exists():
        return []
    return [f"{home.pointer} does not name a snapshot; showing the newest one (`gpubazaar doctor --restore` mends it)"]


def _pointed(home: Home) -> Path:
    if not home.pointer.is_symlink() and not home.pointer.exists():
        older = home.published()
        if older:
            return older[0]
        raise CatalogMissing(
            f"no catalog in {home.path} yet. Fill it with `gpubazaar refresh` (live) or "
            "`gpubazaar refresh --from-fixtures` (recorded), or try `gpubazaar demo`."
        )
    target = home.pointer.resolve()
    if not target.exists():
        older = [p for p in home.published() if p != target]
        if older:
            return older[0]
        raise CatalogMissing(f"{home.pointer} names {target.name}, which is gone; run `gpubazaar refresh`")
    return target


def _checked(path: Path) -> Connection:
    """Open and touch the tables behind every query, so that damage shows now and not in the middle of an answer."""
    connection = read_only_connection(path)
    try:
        rows_of(connection, "SELECT count(*) AS n, max(observed_at) AS t, sum(length(offer_id)) AS c FROM current")
        rows_of(connection, "SELECT count(*) AS n FROM v_provider_health")
    except DatabaseError as problem:
        connection.close()
        raise CatalogDamaged(f"{path}: {str(problem).splitlines()[0]}") from problem
    return connection


def _previous(home: Home, broken: Path, problem: StoreError) -> Catalog:
    for path in home.published():
        if path == broken:
            continue
        try:
            connection = _checked(path)
        except StoreError:
            continue
        state = "is open elsewhere" if isinstance(problem, StoreBusy) else "is damaged"
        note = f"snapshot {broken.name} {state} and was not read; showing {path.name} instead ({problem})"
        return Catalog(path, connection, [note])
    if isinstance(problem, StoreBusy):
        raise problem
    raise damaged(broken, problem)
