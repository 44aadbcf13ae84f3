"""What the views and their columns mean: one table of words, shown by `sql --describe` and stored as comments."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from catalog.engine import quoted
from catalog.errors import UnknownName
from catalog.reader import Catalog

_SAME_COLUMNS = {
    "v_cheapest": "v_offers", "offers_as_of": "v_offers", "offers_for": "v_offers",
    "price_history_since": "v_price_history",
}  # fmt: skip
MACROS: Mapping[str, str] = {
    "offers_as_of": "offers_as_of(moment): v_offers as it was then; stock and flags of the past are not kept",
    "price_history_since": "price_history_since(moment): the rows of v_price_history that hold at or after a moment",
    "offers_for": "offers_for(min_gpu_memory_gb, min_memory_bandwidth_gb_s): v_offers with at least that, by price",
}


@cache
def words() -> Mapping[tuple[str, str], str]:
    """(view, column) to its description; the column is '' for the view itself."""
    with files("catalog").joinpath("data", "columns.csv").open(encoding="utf-8") as lines:
        return {(row["view"], row["column"]): row["description"] for row in csv.DictReader(lines)}


def comments() -> str:
    """Statements that store the descriptions in a catalog file, for whoever opens it with another program."""
    found = []
    for (view, column), text in words().items():
        what = f"COLUMN {view}.{column}" if column else f"VIEW {view}"
        found.append(f"COMMENT ON {what} IS '{quoted(text)}';")
        if view == "v_offers" and column:
            found.append(f"COMMENT ON COLUMN v_cheapest.{column} IS '{quoted(text)}';")
    return "\n".join(found)


def describe(catalog: Catalog, name: str | None = None) -> list[dict[str, Any]]:
    """The views with what they hold, or one view's columns with type and meaning: name, type, description.

    Raises:
        UnknownName: no view or macro of that name.
    """
    views = [r["view_name"] for r in catalog.rows("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1")]
    if name is None:
        listed = [{"name": v, "type": "view", "description": words().get((v, ""), "")} for v in views]
        return listed + [{"name": m, "type": "macro", "description": text} for m, text in MACROS.items()]
    if name not in {*views, *MACROS}:
        raise UnknownName("view", name, [*views, *MACROS])
    source = _SAME_COLUMNS.get(name, name)
    columns = catalog.rows(f"DESCRIBE {source}")
    return [
        {"name": c["column_name"], "type": c["column_type"], "description": words().get((source, c["column_name"]), "")}
        for c in columns
    ]
