"""Acme, a pretend provider with one HTML table: GPU, Memory (GB per GPU), Price per GPU-hour (USD)."""

from __future__ import annotations

from bs4 import BeautifulSoup

from catalog.types import Document
from collectors.contract import Expect
from collectors.pages import Terms, add_cell, gpu_memory_gb_in, slug, terms_in
from collectors.price_page import PricePage
from collectors.readers import changed, tables_with
from collectors.rows import GpuRead, RowBuilder


class AcmeTable(PricePage):
    """Acme: single GPUs in USD."""

    provider = "acme_table_page"
    title = "Acme"
    home_page = page = "https://acme.invalid/pricing"
    sources = (page,)
    rows_at = "tbody tr"
    expect = Expect(min_rows=5, gpus=frozenset({"h100-sxm-80gb"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per row."""
        for table in tables_with(soup, "GPU", "Memory", "Price"):
            name, memory, price = (table.column(word) or 0 for word in ("GPU", "Memory", "Price"))
            terms = terms_in(table.headers[price]) or changed(document, "th 'Price per GPU-hour'")
            for line in table.whole_rows(rows):
                gpu = GpuRead(label=line[name], count=1, memory_gb=gpu_memory_gb_in(line[memory]))
                add_cell(
                    rows, document, gpu, line[price], Terms(terms.unit), sku=slug(line[name]), instance_type=line[name]
                )
