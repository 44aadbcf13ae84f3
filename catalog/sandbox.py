"""Read-only SQL for users over the published views: no files, network, extensions, settings or writes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import duckdb

from catalog.engine import Connection, DatabaseError
from catalog.errors import QueryRefused
from catalog.reader import Catalog

# What the sandbox runs: queries, DESCRIBE and SUMMARIZE (which parse as queries) and EXPLAIN.
_ALLOWED = frozenset({"SELECT", "EXPLAIN"})


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a query; `truncated` is True where more rows than the limit matched."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool


def seal(connection: Connection, *, memory_limit: str = "2GB") -> None:
    """Close a connection's way to anything but its own tables; it cannot be opened again."""
    for setting in (
        f"SET memory_limit = '{memory_limit}'",
        "SET temp_directory = ''",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)


def run(catalog: Catalog, sql: str, *, timeout_s: float = 30.0, row_limit: int = 100_000) -> Answer:
    """Run one query of a user.

    Args:
        catalog: an open snapshot; its connection is sealed and should be closed afterwards.
        sql: one statement.
        timeout_s: after this the query is interrupted.
        row_limit: at most so many rows are returned.

    Raises:
        QueryRefused: not exactly one query, a statement of another kind, a database error, or out of time.
    """
    seal(catalog.connection)
    _check(catalog.connection, sql)
    expired = threading.Event()

    def interrupt() -> None:
        expired.set()
        catalog.connection.interrupt()

    timer = threading.Timer(timeout_s, interrupt)
    timer.daemon = True
    timer.start()
    try:
        catalog.connection.execute(sql)
        columns = tuple(column[0] for column in catalog.connection.description or ())
        rows = catalog.connection.fetchmany(row_limit + 1)
    except DatabaseError as problem:
        if expired.is_set():
            raise QueryRefused(f"the query ran longer than {timeout_s:g} s and was stopped") from problem
        raise QueryRefused(str(problem).strip()) from problem
    finally:
        timer.cancel()
    return Answer(columns, tuple(tuple(r) for r in rows[:row_limit]), truncated=len(rows) > row_limit)


def _check(connection: Connection, sql: str) -> None:
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as problem:
        raise QueryRefused(str(problem).strip()) from problem
    if len(statements) != 1:
        raise QueryRefused(f"give one statement at a time, got {len(statements)}")
    kind = statements[0].type.name
    if kind not in _ALLOWED:
        raise QueryRefused(f"only queries run here, not {kind}: the catalog is read-only")
