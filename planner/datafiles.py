"""Read the planner's own CSV data files, once."""

from __future__ import annotations

import csv
import functools
from importlib import resources


@functools.cache
def data_rows(file_name: str) -> tuple[dict[str, str], ...]:
    """The rows of `planner/data/<file_name>` as text, keyed by its header."""
    text = resources.files("planner").joinpath("data", file_name).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))
