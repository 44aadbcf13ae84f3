"""fal: the GPU table of the public price page (serverless and compute).

Documentation: https://fal.ai/pricing
Fields: the table whose headers are GPU, VRAM, List Price, As low as; "$8.50/h" is USD per GPU-hour.

Traps: the tables of model prices share the page and the class; "As low as" is the floor of contracts through sales
with no term stated, so it is listed without a price and never as the on-demand price; footnote marks stand in cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bs4 import BeautifulSoup

from catalog.types import Document
from catalog.units import read_price
from collectors.contract import Expect
from collectors.pages import Terms, add_cell, gpu_memory_gb_in, per_gpu, slug
from collectors.price_page import PricePage
from collectors.readers import changed, read_table
from collectors.rows import GpuRead, RowBuilder

PAGE = "https://fal.ai/pricing"


class Fal(PricePage):
    """fal: serverless GPUs in USD."""

    provider = "fal"
    title = "fal"
    home_page = page = PAGE
    sources = (PAGE,)
    rows_at = "tbody tr"
    terms_note = "List prices; lower ones are sold through sales."
    expect = Expect(min_rows=3, gpus=frozenset({"h100", "h200"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per GPU at its list price, and one on request where a floor price is shown."""
        wanted = [
            (table, {h.strip().casefold(): i for i, h in enumerate(table.headers)})
            for table in map(read_table, soup.find_all("table"))
            if {"gpu", "vram", "list price"} <= {h.strip().casefold() for h in table.headers}
        ]
        if not wanted:
            changed(document, "th 'GPU', 'VRAM', 'List Price'")
        for table, column in wanted:
            for header in table.headers:
                per_gpu(document, header)
            for line in table.whole_rows(rows):
                _add_row(rows, document, {name: line[i] for name, i in column.items()})


def _add_row(rows: RowBuilder, document: Document, cells: Mapping[str, str]) -> None:
    name = cells["gpu"]
    gpu = GpuRead(label=name, count=1, memory_gb=gpu_memory_gb_in(cells.get("vram", "")))
    terms = Terms("hour", "gpu", "USD")
    common: dict[str, Any] = {"sku": slug(name), "instance_type": name}
    add_cell(rows, document, gpu, cells.get("list price", ""), terms, tenancy="serverless", **common)
    # A floor price is not listed, but its offer is in the currency of its row.
    listed = read_price(cells.get("list price", ""))
    floor = Terms("hour", "gpu", (listed.currency if listed else None) or "USD")
    add_cell(
        rows, document, gpu, cells.get("as low as", ""), floor, tenancy="serverless", purchase_option="reserved",
        **common,
    )  # fmt: skip
