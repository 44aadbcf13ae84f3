"""Together AI: the GPU cluster tables of the public price page.

Documentation: https://www.together.ai/pricing (prices), https://docs.together.ai/docs/gpu-clusters-billing (a
reservation is paid up front), https://docs.together.ai/reference/clusters-create (clusters are multiples of 8 GPUs)
Fields: under the heading "GPU Clusters": Hardware, an hourly on-demand column, and reserved columns by their days
("7-30 days"), all USD per GPU-hour.

Traps: "Dedicated Inference" has a table of the same markup with the same chips at other prices (another reader took its
5.49 for the cluster price of 3.99), so only the tables under the heading are read; the markup is invalid (div between
tbody and tr); a hidden table repeats the on-demand prices; a dash or "Contact us" is no price, once over four columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bs4 import BeautifulSoup, Tag

from catalog.types import Document
from catalog.units import unit_in
from collectors.contract import Expect
from collectors.pages import Terms, add_sizes, cell_state, commitment_days_in, option_in, per_gpu
from collectors.price_page import PricePage
from collectors.readers import changed, read_table, text_of
from collectors.rows import RowBuilder

PAGE = "https://www.together.ai/pricing"
_HEADING = re.compile(r"^GPU clusters?$", re.IGNORECASE)
_PER_HOUR = re.compile(r"\bhourly\b|\bhour\b|/\s*(?:gpu[\s\-]*)?/?\s*hr\b|gpu-hour", re.IGNORECASE)


class Together(PricePage):
    """Together: GPU clusters in USD, on demand and reserved for weeks or months."""

    provider = "together"
    title = "Together AI"
    home_page = page = PAGE
    sources = (PAGE, "https://together.ai/pricing")
    rows_at = "table.pricing_table tbody tr"
    terms_note = "A reservation is paid in full; volumes outlive the cluster and are billed."
    expect = Expect(min_rows=3, gpus=frozenset({"h100-sxm-80gb", "b200-sxm-180gb"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer of eight GPUs per row and term."""
        if not _PER_HOUR.search(text_of(soup.body)):
            changed(document, "text 'per hour'", f"no unit of the prices in {document.url}")
        tables = list(_cluster_tables(soup))
        if not tables:
            changed(document, "h2 'GPU Clusters' + table", f"no table under that heading in {document.url}")
        for table in tables:
            _add_table(rows, document, table)


def _cluster_tables(soup: Tag) -> Iterator[Tag]:
    """The tables after the heading, up to the next heading of its level."""
    heading = next((h for h in soup.find_all(re.compile(r"^h[1-4]$")) if _HEADING.match(text_of(h))), None)
    if heading is None:
        return
    for node in heading.find_all_next(re.compile(rf"^({heading.name}|table)$")):
        if node.name != "table":
            return
        yield node


def _grid(table: Tag) -> tuple[list[str], list[list[str]]]:
    """Headers and rows; a header without a row element, and cells over several columns, are read too."""
    head = table.find("thead")
    if isinstance(head, Tag) and head.find("tr") is None:
        lines = [tr.find_all("td") for tr in table.find_all("tr")]
        body = [[text_of(td) for td in line for _ in range(_span(td))] for line in lines]
        return [text_of(th) for th in head.find_all("th")], body
    read = read_table(table)
    return list(read.headers), [list(line) for line in read.rows]


def _span(cell: Tag) -> int:
    found = re.match(r"\s*(\d+)", str(cell.get("colspan") or ""))
    return min(max(int(found.group(1)), 1), 100) if found else 1


def _column(header: str) -> dict[str, Any] | None:
    """What a column sells: reserved for its days, or on demand; None for a column that is no price."""
    days = commitment_days_in(header)
    if days:
        return {"purchase_option": "reserved", "commitment_days": days, "upfront": "all"}
    if re.search(r"hourly|per hour", header, re.IGNORECASE) or option_in(header) == "on_demand":
        return {"purchase_option": "on_demand"}
    return {"purchase_option": "reserved"} if option_in(header) == "reserved" else None


def _add_table(rows: RowBuilder, document: Document, table: Tag) -> None:
    headers, body = _grid(table)
    name = next((i for i, header in enumerate(headers) if header.casefold().startswith("hardware")), None)
    columns = {i: column for i, header in enumerate(headers) if i != name and (column := _column(header))}
    if name is None or not columns:
        changed(document, "thead th", f"headers are {', '.join(headers) or 'missing'}")
    units = {i: unit_in(per_gpu(document, headers[i])) or unit_in(per_gpu(document, headers[name])) for i in columns}
    if not any(units.values()) and any(column["purchase_option"] == "on_demand" for column in columns.values()):
        changed(document, "thead th", f"no unit of time in {', '.join(headers)}")
    for line in body:
        if len(line) != len(headers):  # a cell is missing, and which one is not known
            rows.reject("row_unreadable", "tr", " | ".join(line), sample=next(iter(line), ""))
            continue
        for index, column in columns.items():
            unit = units[index]
            if unit is None:
                if cell_state(line[index]) == "priced":
                    rows.reject("unit_missing", headers[index], line[index], sample=line[name])
            else:
                terms = Terms(unit, "gpu", "USD")
                add_sizes(rows, document, line[name], line[index], terms, provider="together", **column)
