"""Reviewed tables of instance types, for sources that name no accelerator: `collectors/data/<provider>-*.csv`."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.datafiles import csv_rows


def spec_rows(file_name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of one data file, as text, keyed by its header."""
    return csv_rows("collectors", file_name)


def number(cell: str) -> float | None:
    """A cell's number; None for an empty cell, which means not published."""
    return float(cell) if cell else None
