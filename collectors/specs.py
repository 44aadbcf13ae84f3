"""Reviewed tables of instance types, for sources that name no accelerator: `collectors/data/<provider>-*.csv`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def spec_rows(file_name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of one data file, as text, keyed by its header."""
    with files("collectors").joinpath("data", file_name).open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


def number(cell: str) -> float | None:
    """A cell's number; None for an empty cell, which means not published."""
    return float(cell) if cell else None
