"""Read-only SQL for users over the published views: no files, network, extensions, settings or writes.

Two walls. The database's own: external access off and its configuration locked. Before it, the query's syntax tree: one
query, only tables and views of the catalog, only table functions from a short list. Table functions alone would let a
query run another query from a text, read settings and secrets, or follow a pointer into this process's memory.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from catalog.engine import Connection, DatabaseError, rows_of
from catalog.errors import QueryRefused, nearest
from catalog.reader import Catalog

_EXPLAIN = re.compile(r"^\s*EXPLAIN(?:\s+ANALYZE)?\b(?!\s*\()", re.IGNORECASE)
# Views of the engine that a query may read to find its way.
_OPEN_VIEWS = frozenset({"duckdb_columns", "duckdb_tables", "duckdb_views"})
_ENGINE_NAME = re.compile(r"^(duckdb|pragma|sqlite|pg)_")
_TABLE_FUNCTIONS = _OPEN_VIEWS | {
    "generate_series", "histogram", "json_each", "json_tree", "offers_as_of", "offers_for", "pragma_table_info",
    "price_history_since", "range", "repeat_row", "summary", "unnest",
}  # fmt: skip
# Scalar functions that reach outside the data: environment, settings, variables, logs, other texts as queries.
_CLOSED_FUNCTIONS = re.compile(
    r"^(getenv|getvariable|current_setting|set_config|write_log|pg_sleep|pg_\w*|sleep\w*|json_execute_serialized_sql"
    r"|query|query_table|glob|read_\w*|\w*_scan|\w*secret\w*|nextval|currval)$"
)


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
        "SET python_enable_replacements = false",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)


def run(catalog: Catalog, sql: str, *, timeout_s: float = 30.0, row_limit: int = 100_000) -> Answer:
    """Run one query of a user.

    Args:
        catalog: an open snapshot; its connection is sealed and should be closed afterwards.
        sql: one query, DESCRIBE, SUMMARIZE or EXPLAIN.
        timeout_s: after this the query is interrupted.
        row_limit: at most so many rows are returned.

    Raises:
        QueryRefused: not exactly one query, a statement of another kind, a name outside the catalog, a database error,
            or out of time.
    """
    seal(catalog.connection)
    check(catalog.connection, sql)
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


def check(connection: Connection, sql: str) -> None:
    """Refuse what is not one query over the catalog's own tables and views.

    Raises:
        QueryRefused: with what is not allowed, and what the name may have meant.
    """
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as problem:
        raise QueryRefused(str(problem).strip()) from problem
    if len(statements) != 1:
        raise QueryRefused(f"give one statement at a time, got {len(statements)}")
    try:
        kind = statements[0].type.name
    except ValueError:  # a kind that the client has no name for
        kind = "this"
    if kind not in {"SELECT", "EXPLAIN"}:
        raise QueryRefused(f"only queries run here, not {kind}: the catalog is read-only")
    tree = _tree(connection, _EXPLAIN.sub("", sql, count=1) if kind == "EXPLAIN" else sql)
    known = {r["name"] for r in rows_of(connection, _KNOWN_NAMES)}
    own = {str(e["key"]).casefold() for n in _nodes(tree) if isinstance(n.get("map"), list) for e in n["map"]}
    for node in _nodes(tree):
        _check_table(node, known, own)
        _check_function(node)


_KNOWN_NAMES = """SELECT lower(table_name) AS name FROM duckdb_tables() WHERE NOT internal
    UNION SELECT lower(view_name) FROM duckdb_views() WHERE NOT internal"""


def _tree(connection: Connection, sql: str) -> Any:
    try:
        found = json.loads(rows_of(connection, "SELECT json_serialize_sql(?) AS tree", [sql])[0]["tree"])
    except DatabaseError as problem:
        raise QueryRefused(str(problem).strip()) from problem
    if found.get("error"):
        raise QueryRefused(f"this cannot be run here: {found.get('error_message', 'not a plain query')}")
    return found


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree."""
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from _nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from _nodes(child)


def _check_table(node: dict[str, Any], known: set[str], own: set[str]) -> None:
    kind = node.get("type")
    if not isinstance(kind, str) or kind not in {"BASE_TABLE", "SHOW_REF"} or not node.get("table_name"):
        return
    name = str(node["table_name"]).strip('"').casefold()
    schema = str(node.get("schema_name") or "").casefold()
    if kind == "SHOW_REF" and name in {"tables", "__show_tables_expanded"}:
        return
    if schema == "information_schema" or name in known or (not schema and name in _OPEN_VIEWS):
        return
    if not schema and name in own and not _ENGINE_NAME.match(name):
        return
    close = nearest(name, [n for n in known if n.startswith("v_")])
    hint = f"; did you mean {' or '.join(close)}?" if close else "; see `gpubazaar sql --describe`"
    raise QueryRefused(f"there is no table or view {node['table_name']!r} here{hint}")


def _check_function(node: dict[str, Any]) -> None:
    if node.get("type") == "TABLE_FUNCTION":
        name = str((node.get("function") or {}).get("function_name", "")).casefold()
        if name not in _TABLE_FUNCTIONS:
            raise QueryRefused(f"the table function {name} is not allowed here: only the catalog can be read")
    elif node.get("class") == "FUNCTION":
        name = str(node.get("function_name", "")).casefold()
        if _CLOSED_FUNCTIONS.match(name) and name != "pg_typeof":
            raise QueryRefused(f"the function {name} is not allowed here: only the catalog can be read")
