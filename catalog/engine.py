"""DuckDB connections as this product uses them: nothing downloaded, UTC, files that 1.5 and 2.x both read.

Only the calls common to the 1.5 and 2.x clients are used, and every result is fetched whole: on 2.x a half-read result
keeps its connection busy (https://duckdb.org/docs/2.0/clients/python/migration.html).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from catalog.errors import CatalogDamaged, StoreBusy, StoreError

STORAGE_VERSION = "v1.5.0"
_OFFLINE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}

Connection = duckdb.DuckDBPyConnection
DatabaseError = duckdb.Error
# A query that is wrong in itself: unknown column, syntax. Never a sign of a damaged file.
BadQuery = duckdb.ProgrammingError


def memory_connection() -> Connection:
    """An empty in-memory database: the place from which the live file and snapshots are attached."""
    connection = duckdb.connect(config=_OFFLINE)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def read_only_connection(path: Path) -> Connection:
    """Open one database file for reading.

    Raises:
        CatalogDamaged: it is not a database, or its header or log does not check out.
        StoreError: it cannot be opened for another reason.
    """
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_OFFLINE)
    except duckdb.Error as problem:
        raise _open_error(path, problem) from problem
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def attach(connection: Connection, path: Path, alias: str, *, read_only: bool = False) -> None:
    """Attach a database file under a name.

    Raises:
        CatalogDamaged, StoreBusy, StoreError: as the file's state demands.
    """
    mode = "READ_ONLY" if read_only else f"STORAGE_VERSION '{STORAGE_VERSION}'"
    try:
        connection.execute(f"ATTACH '{quoted(str(path))}' AS {alias} ({mode})")
    except duckdb.Error as problem:
        raise _open_error(path, problem) from problem


def _open_error(path: Path, problem: duckdb.Error) -> StoreError:
    text = str(problem).splitlines()[0]
    if "set lock on file" in text.lower():  # "block" is another matter
        return StoreBusy(f"{path} is open in another process: {text}")
    if not path.exists():
        return StoreError(f"{path} is not there: {text}")
    return CatalogDamaged(f"{path} does not open as a catalog: {text}")


def quoted(text: str) -> str:
    """A text with its single quotes doubled, for use inside a SQL literal."""
    return text.replace("'", "''")


def script(name: str) -> str:
    """One of the SQL scripts of this package."""
    return files("catalog").joinpath(name).read_text(encoding="utf-8")


def rows_of(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Run a query and return every row as a dict keyed by column name."""
    connection.execute(sql, list(parameters))
    names = [column[0] for column in connection.description or ()]
    return [dict(zip(names, values, strict=True)) for values in connection.fetchall()]


def scalar(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> Any:
    """The first value of the first row, or None."""
    rows = connection.execute(sql, list(parameters)).fetchall()
    return rows[0][0] if rows else None


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """All or nothing: commits at the end of the block, rolls back when it raises."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
