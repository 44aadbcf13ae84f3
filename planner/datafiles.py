"""The planner's own data files: `planner/data/<name>.csv`."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.datafiles import csv_rows


def data_rows(file_name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of `planner/data/<file_name>` as text, keyed by its header. Read once."""
    return csv_rows("planner", file_name)
