"""Civo: the GPU tables of the public price page, on demand and with commitments.

Documentation: https://www.civo.com/pricing
Fields: `section#nvidia-gpus table.pricing-table`, one table per product (caption), cells by `td[data-title]`: Size with
`.product-detail` "2 x NVIDIA L40S - 48GB", RAM, vCPU, Storage, Data Transfer, On-demand price, Commitment price; prices
in `[data-option=hourly]` (USD per instance-hour), those of commitments inside `#6_months` to `#36_months`.

Traps: ids repeat all over the page; a monthly figure (730 hours) stands beside each hourly one, hidden; "N/A" where a
size is sold with a commitment only; RAM is written as "2.5TB" in places.
"""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup, Tag

from catalog.types import Document
from collectors.contract import Expect
from collectors.meters import price_or_free
from collectors.pages import (
    Terms,
    add_cell,
    commitment_days_in,
    memory_gib_in,
    slug,
    storage_gb_in,
    whole_number_in,
)
from collectors.price_page import PricePage
from collectors.readers import changed, text_of
from collectors.rows import GpuRead, RowBuilder

PAGE = "https://www.civo.com/pricing"
_DETAIL = re.compile(r"(\d+)\s*x\s*(.+?)\s*-\s*(\d+)\s*GB", re.IGNORECASE)
_TERMS = Terms("hour", "instance", "USD")


class Civo(PricePage):
    """Civo: GPU instances in USD, on demand and for 6 to 36 months."""

    provider = "civo"
    title = "Civo"
    home_page = page = PAGE
    sources = (PAGE,)
    rows_at = "tbody tr .product-detail"
    extra_hosts = ("civo.com",)
    terms_note = "Data transfer is free."
    expect = Expect(min_rows=10, gpus=frozenset({"l40s-48gb", "h100-sxm-80gb"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per size and option."""
        tables = soup.select("section#nvidia-gpus table.pricing-table")
        if not tables:
            changed(document, "section#nvidia-gpus table.pricing-table")
        for table in tables:
            product = re.sub(r"\s*GPU pricing.*$", "", text_of(table.caption), flags=re.IGNORECASE)
            for tr in table.select("tbody tr"):
                _add_size(rows, document, product, tr)
        if any(price_or_free(text_of(td)) == 0 for td in soup.select('td[data-title="Data Transfer"]')):
            rows.surcharge(document, "egress", 0, "gb")


def _add_size(rows: RowBuilder, document: Document, product: str, tr: Tag) -> None:
    cells = {str(td["data-title"]).casefold(): td for td in tr.select("td[data-title]")}
    for name in ("size", "on-demand price", "commitment price"):
        if name not in cells:
            changed(document, f"td[data-title={name!r}]", f"cells are {', '.join(cells)}")
    detail = text_of(cells["size"].select_one(".product-detail"))
    found = _DETAIL.search(detail)
    if not found:
        rows.reject("gpu_count", "size", detail, sample=product)
        return
    count, size = int(found.group(1)), text_of(cells["size"]).replace(detail, " ").strip()
    label = product if product.casefold().startswith(found.group(2).casefold()) else found.group(2)
    name = f"{product or found.group(2)} {size}".strip()
    facts: dict[str, Any] = {
        "sku": slug(name),
        "instance_type": name,
        "vcpu_count": whole_number_in(text_of(cells.get("vcpu"))),
        "memory_gib": memory_gib_in(text_of(cells.get("ram"))),
        "local_storage_gb": storage_gb_in(text_of(cells.get("storage"))),
    }
    gpu = GpuRead(label=label, count=count, memory_gb=float(found.group(3)))
    add_cell(rows, document, gpu, _hourly(document, cells["on-demand price"]), _TERMS, **facts)
    for block in cells["commitment price"].find_all(id=re.compile(r"^\d+_(?:month|year)")):
        days = commitment_days_in(str(block["id"]))
        add_cell(
            rows, document, gpu, _hourly(document, block), _TERMS, purchase_option="reserved",
            commitment_days=days or 0, **facts,
        )  # fmt: skip


def _hourly(document: Document, block: Tag) -> str:
    """The hourly price text of a cell: "$1.29 per hour"."""
    price = block.select_one('[data-option="hourly"]')
    return text_of(price) if price else changed(document, "[data-option=hourly]")
