"""Hyperstack: the three GPU tables of the public price page (on demand, reservation, spot).

Documentation: https://www.hyperstack.cloud/gpu-pricing (prices),
https://docs.hyperstack.cloud/docs/hardware/flavors (sizes; "NVIDIA H100" is the PCIe card, "NVLink" its bridged pairs)
Fields: GPU, VRAM (GB), Max pCPUs and RAM (GB) per GPU, "Pricing Per Hour" (USD per GPU-hour), "Starting from" in the
reservation table; volumes per GB-hour and addresses per hour below.

Traps: the three tables name the same GPUs at other prices, and the spot table calls the "NVIDIA H100" an "H100 PCIe";
the reservation table has no specification columns and names no term, so its prices are listed as on request; a GPU is
listed weeks before it can be rented; processor and RAM figures are maxima per GPU.
"""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup, Tag

from catalog.types import Availability, Document, PurchaseOption
from catalog.units import HOURS_PER_MONTH, read_price
from collectors.cards import price_cards
from collectors.contract import MINUTE_S, Expect
from collectors.meters import add_free_egress
from collectors.pages import (
    Terms,
    add_sizes,
    gpu_memory_gb_in,
    memory_gib_in,
    option_in,
    per_gpu,
    terms_in,
    whole_number_in,
)
from collectors.price_page import PricePage
from collectors.readers import Table, changed, read_table, text_of
from collectors.rows import RowBuilder

PAGE = "https://www.hyperstack.cloud/gpu-pricing"
_ANNOUNCED = re.compile(r"coming|launch|available (?:in|from)|pre-?order|announced", re.IGNORECASE)
_GPU_HEADER = re.compile(r"\s*GPU(?:\s+(?:model|name|type))?\s*$", re.IGNORECASE)
_PRICE_HEADER = re.compile(r"pric|starting from|per hour|/\s*h", re.IGNORECASE)


class Hyperstack(PricePage):
    """Hyperstack: GPU VMs in USD, on demand and spot; reservations on request."""

    provider = "hyperstack"
    title = "Hyperstack"
    home_page = page = PAGE
    page_name = "gpu-pricing"
    sources = (PAGE,)
    rows_at = "table tbody tr"
    extra_hosts = ("hyperstack.cloud",)
    billing_increment_s = MINUTE_S
    terms_note = "A VM that is shut off is billed in full; a hibernated one only for storage and address."
    expect = Expect(min_rows=10, gpus=frozenset({"h100-sxm-80gb", "h100-pcie-80gb", "rtx-a6000-48gb"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per row and documented size; volumes, addresses and traffic as surcharges."""
        tables = [t for t in map(read_table, soup.find_all("table")) if _name_column(t) is not None]
        if not tables:
            changed(document, "table th 'GPU'")
        for table in tables:
            _add_table(rows, document, table)
        _add_surcharges(rows, document, soup)


def _name_column(table: Table) -> int | None:
    """The column that names the GPU: not its memory, nor what comes with each."""
    return next((i for i, h in enumerate(table.headers) if _GPU_HEADER.match(h)), None)


def _option(table: Table, price_header: str) -> PurchaseOption | None:
    """What a table sells, from its price header or the heading above it."""
    heading = table.node.find_previous(re.compile(r"^h[1-6]$"))
    words = option_in(price_header) or option_in(text_of(heading) if isinstance(heading, Tag) else "")
    return words or ("reserved" if "starting from" in price_header.casefold() else None)


def _add_table(rows: RowBuilder, document: Document, table: Table) -> None:
    name = _name_column(table) or 0
    price = next((i for i, h in enumerate(table.headers) if i != name and _PRICE_HEADER.search(h)), None)
    header = table.headers[price] if price is not None else ""
    option = _option(table, header)
    if price is None or option is None:
        changed(document, "th 'Pricing Per Hour'", f"headers are {', '.join(table.headers)}")
    vram, cpus, ram = table.column("VRAM"), table.column("CPU"), table.column("RAM", "GPU")
    for line in table.whole_rows(rows):
        terms = terms_in(per_gpu(document, header)) or terms_in(line[price])
        if terms is None and read_price(line[price]):
            rows.reject("unit_missing", "price", line[price], sample=line[name])
            continue
        announced = bool(_ANNOUNCED.search(" ".join(line)))
        availability: Availability = "unavailable" if announced else "unknown"
        label = re.sub(
            r"\s*\(?(?:coming|launching|available (?:in|from)|pre-?order|announced).*$",
            "",
            line[name],
            flags=re.IGNORECASE,
        )
        extra: dict[str, Any] = {"flags": ["announced"]} if announced else {}
        add_sizes(
            rows, document, label, line[price], Terms(terms.unit if terms else "hour", "gpu", "USD"),
            provider="hyperstack", memory_gb=gpu_memory_gb_in(line[vram]) if vram is not None else None,
            single={
                "vcpu_count": whole_number_in(line[cpus]) if cpus is not None else None,
                "memory_gib": memory_gib_in(line[ram]) if ram is not None else None,
            },
            purchase_option=option, availability=availability, **extra,
        )  # fmt: skip


def _add_surcharges(rows: RowBuilder, document: Document, soup: Tag) -> None:
    for card in price_cards(soup):
        price = read_price(card.prices[0])
        if price is None or card.is_gpu:
            continue
        hourly = "hour" in f"{card.label} {card.prices[0]}".casefold()
        if re.search(r"\bSSD\b|volume", card.label, re.IGNORECASE) and hourly:
            rows.surcharge(document, "block_storage", price.amount * HOURS_PER_MONTH, "gb_month")
        elif re.search(r"public ip|ip address", card.label, re.IGNORECASE) and hourly:
            rows.surcharge(document, "public_ipv4", price.amount, "hour")
    add_free_egress(rows, document, text_of(soup.body))
