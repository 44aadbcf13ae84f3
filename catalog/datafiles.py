"""Tables that ship with the code: `<package>/data/<name>.csv`, read once as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def csv_rows(package: str, file_name: str, *, optional: bool = False) -> tuple[Mapping[str, str], ...]:
    """The rows of one data file of a package, as text, keyed by its header; an empty cell is ''.

    Args:
        package: `catalog`, `collectors`, `planner` or `jobs`.
        file_name: the file in the package's `data` folder.
        optional: without the file there are no rows.

    Raises:
        FileNotFoundError: the package has no such file, and it is not optional.
    """
    source = files(package).joinpath("data", file_name)
    if optional and not source.is_file():
        return ()
    return tuple(csv.DictReader(io.StringIO(source.read_text(encoding="utf-8"))))
