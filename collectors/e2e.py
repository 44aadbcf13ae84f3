"""E2E Networks (India): the dollar tables of the public price page and the rupee list in its structured data.

Documentation: https://www.e2enetworks.com/pricing
Page fields: tables whose first header names the GPU, with memory, vCPUs and RAM columns and prices Hourly, Monthly and
Annually (USD per GPU, tax excluded), in tabs by number of GPUs ("1x").
Structured data: `application/ld+json` offers {itemOffered.name or name, price, priceCurrency "INR", unit "hour"}.

Traps: two price lists in two currencies, neither a conversion of the other (both are kept, the rupee list as a variant
of its own); a monthly and a yearly amount are commitments, a yearly one pays for the whole year; schema.org's InStock
is a word of the page, not stock. Whether tabs of several GPUs price the GPU or the machine is not documented, so only
the tab of one GPU is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bs4 import BeautifulSoup, Tag

from catalog.names import resolve
from catalog.types import Document
from collectors.contract import MINUTE_S, Expect
from collectors.pages import Terms, add_cell, gpu_memory_gb_in, memory_gib_in, per_gpu, slug, whole_number_in
from collectors.price_page import PricePage
from collectors.readers import Table, changed, read_table, structured_data, tab_count
from collectors.rows import GpuRead, RowBuilder

PAGE = "https://www.e2enetworks.com/pricing"
REGION = "india"
_OPTIONS: tuple[tuple[str, Terms, dict[str, Any]], ...] = (
    (r"hour", Terms("hour", "gpu"), {}),
    (r"month", Terms("month", "gpu"), {"purchase_option": "reserved", "commitment_days": 30}),
    (r"annual|year", Terms("term", "gpu"), {"purchase_option": "reserved", "commitment_days": 365}),
)


class E2e(PricePage):
    """E2E Networks: GPU nodes in India, in USD and in INR."""

    provider = "e2e"
    title = "E2E Networks"
    home_page = page = PAGE
    sources = (PAGE,)
    rows_at = "table tbody tr"
    extra_hosts = ("e2enetworks.com",)
    billing_increment_s = MINUTE_S
    terms_note = "Prices before tax."
    expect = Expect(min_rows=5, gpus=frozenset({"l4-24gb", "l40s-48gb"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per GPU, option and currency."""
        tables = [table for table in map(read_table, soup.find_all("table")) if _gpu_column(table) is not None]
        if not tables:
            changed(document, "th 'GPU'", f"no table with that header in {document.url}")
        for table in tables:
            if len(_prices(table)) < len(_OPTIONS):
                changed(document, "th 'Hourly', 'Monthly', 'Annually'", f"headers are {', '.join(table.headers)}")
            for index in _prices(table):
                per_gpu(document, table.headers[index])
            _add_table(rows, document, table, tab_count(soup, table.node) or 1)
        _add_structured(rows, document, soup)


def _gpu_column(table: Table) -> int | None:
    """The column that names the GPU: not its memory."""
    return next(
        (i for i, h in enumerate(table.headers) if re.fullmatch(r"GPU(?:\s+(?:model|name|type))?", h, re.IGNORECASE)),
        None,
    )


def _prices(table: Table) -> dict[int, tuple[Terms, dict[str, Any]]]:
    """Price columns by index. A header names the unit; a column of a currency other than the cells' is not assumed."""
    found: dict[int, tuple[Terms, dict[str, Any]]] = {}
    for index, header in enumerate(table.headers):
        for words, terms, option in _OPTIONS:
            if re.search(words, header, re.IGNORECASE):
                found[index] = (terms, option)
                break
    return found


def _add_table(rows: RowBuilder, document: Document, table: Table, gpus: int) -> None:
    name, memory = _gpu_column(table), table.column("Memory")
    memory = memory if memory is not None and memory != name else table.column("VRAM")
    cpus, ram = table.column("CPU"), table.column("RAM")
    for line in table.whole_rows(rows):
        label = line[name or 0]
        if gpus != 1:
            rows.reject("scope_unknown", "price", " | ".join(line), sample=f"{gpus}x {label}")
            continue
        gpu = GpuRead(label=label, count=1, memory_gb=gpu_memory_gb_in(line[memory]) if memory is not None else None)
        for index, (terms, option) in _prices(table).items():
            add_cell(
                rows, document, gpu, line[index], Terms(terms.unit, "gpu", "USD"), region=REGION,
                sku=slug(label, line[memory] if memory is not None else ""), instance_type=label,
                vcpu_count=whole_number_in(line[cpus]) if cpus is not None else None,
                memory_gib=memory_gib_in(line[ram]) if ram is not None else None, **option,
            )  # fmt: skip


def _add_structured(rows: RowBuilder, document: Document, soup: Tag) -> None:
    """The rupee list: every offer in INR that names a GPU and is priced per hour."""
    for entry in structured_data(soup):
        specification = entry.get("priceSpecification")
        price = {**entry, **(specification if isinstance(specification, Mapping) else {})}
        item = entry.get("itemOffered")
        label = str((item if isinstance(item, Mapping) else entry).get("name") or "")
        if "Offer" not in str(entry.get("@type")) or price.get("priceCurrency") != "INR" or resolve(label).gpu is None:
            continue
        unit = f"{price.get('unitText') or ''} {price.get('unitCode') or ''} {price.get('description') or ''} {label}"
        if not re.search(r"hour|\bHUR\b|/\s*hr", unit, re.IGNORECASE):
            rows.reject("unit_missing", "price", price.get("price"), sample=label)
            continue
        name = re.sub(r"\s*[\-–(]?\s*per hour\)?$", "", label, flags=re.IGNORECASE)
        rows.offer(
            document, GpuRead(label=name, count=1), sku=slug(name), instance_type=name, price=price.get("price"),
            price_scope="gpu", currency="INR", region=REGION, variant="inr",
        )  # fmt: skip
