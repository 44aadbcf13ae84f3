"""Google's accelerator price page: one line per machine type, one column per way of buying.

Page: https://cloud.google.com/products/compute/pricing/accelerator-optimized
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from catalog.types import Document, PurchaseOption
from collectors.readers import Table, changed, read_html, read_table

_YEAR_DAYS = 365
_COUNT = re.compile(r"GPUs?:\s*(\d+)")
_NOT_SOLD = re.compile(r"\s*(?:n\s*/?\s*a|[-–—]*)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of buying: its purchase option, commitment, and what tells its SKU from its siblings'."""

    option: PurchaseOption
    days: int = 0
    suffix: str = ""


ON_DEMAND = Way("on_demand")
SPOT = Way("spot")
FLEX = Way("scheduled", suffix="/flex-start")
CALENDAR = Way("scheduled", suffix="/calendar")
COMMIT_1 = Way("reserved", _YEAR_DAYS)
COMMIT_3 = Way("reserved", 3 * _YEAR_DAYS)


@dataclass(frozen=True, slots=True)
class MachineLine:
    """One machine type as the page shows it: `cells` are the texts of the ways it is sold in ("N/A" left out)."""

    machine_type: str
    gpu_label: str
    gpu_count: int | None
    cells: tuple[tuple[Way, str], ...]


def machine_lines(document: Document) -> Iterator[MachineLine]:
    """Every machine type of the page; rows that only name a group are left out.

    Raises:
        LayoutChanged: no table has the columns Machine type, Components and Price, or none of them a machine.
    """
    tables = [read_table(node) for node in read_html(document).find_all("table")]
    count = 0
    for table in tables:
        name, parts, ways = table.column("machine type"), table.column("components"), _ways(table)
        gpu = table.column("gpu")
        if name is None or parts is None or ON_DEMAND not in ways.values():
            continue
        if not all(table.headers):
            changed(document, "th", "a column has no header: which price stands in which column is not certain")
        for cells in table.rows:
            if len(cells) <= name or "-" not in cells[name]:
                continue
            count += 1
            if len(cells) != len(table.headers):
                yield MachineLine(cells[name].split()[0], "", None, ())  # cells do not match columns
            else:
                found = _COUNT.search(cells[parts])
                sold = tuple((way, cells[i]) for i, way in ways.items() if not _NOT_SOLD.fullmatch(cells[i]))
                label = "" if gpu is None else cells[gpu]
                yield MachineLine(cells[name].split()[0], label, int(found.group(1)) if found else None, sold)
    if not count:
        changed(document, "table with the columns Machine type, Components and Price")


def _ways(table: Table) -> dict[int, Way]:
    """Column to way of buying, by the words of its header; a column that is none of them is left out."""
    found: dict[int, Way] = {}
    for index, header in enumerate(table.headers):
        text = header.casefold()
        years = re.search(r"(\d)\s*[- ]?year", text)
        if "calendar" in text:
            found[index] = CALENDAR
        elif "flex" in text:
            if "dws" in text:  # "Flexible CUDs" are discounts on spend, not a price of their own
                found[index] = FLEX
        elif "spot" in text:
            found[index] = SPOT
        elif "cud" in text or "commit" in text:
            if years:
                found[index] = COMMIT_1 if years.group(1) == "1" else COMMIT_3
        elif text.startswith(("price", "on-demand", "on demand")):
            found[index] = ON_DEMAND
    return found
