"""DigitalOcean GPU Droplets: the documentation's price tables, and with a token the API's sizes with their stock.

Documentation: https://docs.digitalocean.com/products/droplets/details/pricing/,
https://docs.digitalocean.com/reference/api/digitalocean/#tag/Sizes (GET /v2/sizes)
Page fields: tables under the headings On-Demand, Spot and Contract; a GPU column, a price per hour (USD per Droplet).
API fields: `sizes[]` {slug, price_hourly (USD per Droplet), vcpus, memory (MiB), disk, regions[], available, gpu_info
{count, model, vram {amount: TOTAL of the Droplet}}, disk_info[] {type, size}}; `links.pages.next`, `meta.total`.

Traps: "(8x)" rows are totals of the Droplet; an empty list of regions means sold out, not withdrawn; contract GPUs are
no sizes of the API; a Droplet that is off is billed in full. Where both sources show a Droplet, the API's row is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bs4 import BeautifulSoup, Tag

from catalog.names import resolve
from catalog.types import Document, PurchaseOption
from catalog.units import decimal_of, gib_from_mib
from collectors.contract import Expect
from collectors.listing import positive
from collectors.meters import per_gb
from collectors.pages import Terms, add_cell, option_in, slug, terms_in
from collectors.price_page import PricePage
from collectors.readers import Table, changed, need, need_somewhere, read_json, read_table, text_of
from collectors.rows import GpuRead, RowBuilder
from collectors.shapes import shape_of

PAGE = "https://docs.digitalocean.com/products/droplets/details/pricing/"
API = "https://api.digitalocean.com/v2/sizes?per_page=200"
_EGRESS = re.compile(r"\$\s*([\d.]+)\s*per\s*GiB", re.IGNORECASE)


class DigitalOcean(PricePage):
    """DigitalOcean: GPU Droplets in USD, on demand, spot and by contract."""

    provider = "digitalocean"
    title = "DigitalOcean"
    home_page = "https://www.digitalocean.com/pricing/gpu-droplets"
    page = PAGE
    api = API
    api_name = "sizes"
    sources = (PAGE, API)
    billing_increment_s = 1
    minimum_charge_s = 60
    terms_note = (
        "Droplets that are off are billed until destroyed. The acceptable use policy bars scraping of service content; "
        "the price page is documentation and the API is a documented one."
    )
    optional_key_env = ("DIGITALOCEAN_TOKEN",)
    expect = Expect(min_rows=8, gpus=frozenset({"h100-sxm-80gb", "mi300x-192gb"}))

    def add_api(self, rows: RowBuilder, document: Document) -> None:
        """One offer per size and region."""
        body = read_json(document)
        sizes = need(document, body, "sizes", kind=list)
        needed = ("gpu_info/model", "gpu_info/count", "slug", "price_hourly", "regions", "available")
        need_somewhere(document, sizes, *needed)
        for size in sizes:
            if size.get("gpu_info"):
                _add_size(rows, document, size, size["gpu_info"])
        if not rows.covered:
            changed(document, "sizes[].gpu_info", f"no GPU sizes at {document.url}")
        total = (body.get("meta") or {}).get("total")
        if isinstance(total, int) and total > len(sizes):
            rows.incomplete(f"{len(sizes)} of {total} sizes in {document.url}")

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per row of the tables that name their option in the heading; the price of traffic."""
        found = False
        for node in soup.find_all("table"):
            heading = node.find_previous(re.compile(r"^h[2-6]$"))
            title = text_of(heading) if isinstance(heading, Tag) else ""
            option = _option(title)
            table = read_table(node)
            names, price = table.column("GPU"), _price_column(table)
            if option and (names is None or price is None):
                rows.incomplete(f"the table under {title!r} has the headers {', '.join(table.headers)}")
            elif option and names is not None and price is not None:
                found = True
                _add_rows(rows, document, table, names, price, option)
        if not found:
            changed(document, "h3 'On-Demand' + table", f"no table with a GPU and a price per hour in {document.url}")
        egress = _EGRESS.search(text_of(soup.body))
        if egress and (amount := decimal_of(egress.group(1).rstrip("."))):
            rows.surcharge(document, "egress", per_gb(amount), "gb")


def _product(label: str) -> str | None:
    """The documented product behind a name that leaves the form factor or generation open."""
    return shape_of("digitalocean", slug(label.replace("_", " "))).product


def _add_size(rows: RowBuilder, document: Document, size: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    model, count = str(facts.get("model") or ""), int(decimal_of(facts.get("count")) or 0)
    product = _product(model)
    name = str(size.get("slug") or "")
    if not name or count < 1:
        rows.reject("size_unnamed" if not name else "gpu_count", "slug", name, sample=model)
        return
    total = decimal_of((facts.get("vram") or {}).get("amount"))
    regions = [str(r) for r in size.get("regions") or []] if size.get("available") else []
    memory = positive(size.get("memory"))
    for region in regions or [""]:
        rows.offer(
            document,
            GpuRead(label=model, gpu=product, count=count, memory_gb=float(total) / count if total else None),
            sku=name, instance_type=name, price=size.get("price_hourly", "missing"), region=region,
            availability="available" if region else "unavailable", quote_kind="api_quote",
            vcpu_count=positive(size.get("vcpus")), memory_gib=gib_from_mib(memory) if memory else None,
            local_storage_gb=_disks_gb(size),
        )  # fmt: skip
    rows.covered.add((product or resolve(model).gpu, count))


def _disks_gb(size: Mapping[str, Any]) -> float | None:
    """Boot and scratch disks together."""
    amounts = [decimal_of((disk.get("size") or {}).get("amount")) for disk in size.get("disk_info") or []]
    gib = sum(float(amount) for amount in amounts if amount)
    return gib * 1.024**3 if gib else None


def _option(heading: str) -> PurchaseOption | None:
    return "reserved" if re.search(r"contract", heading, re.IGNORECASE) else option_in(heading)


def _price_column(table: Table) -> int | None:
    return next((i for i, h in enumerate(table.headers) if re.search(r"pric|hour", h, re.IGNORECASE)), None)


def _add_rows(
    rows: RowBuilder, document: Document, table: Table, names: int, price: int, option: PurchaseOption
) -> None:
    terms = terms_in(table.headers[price])
    for line in table.whole_rows(rows):
        name = line[names]
        stated = terms_in(line[price]) or terms
        if stated is None and option != "reserved":
            rows.reject("unit_missing", "price", line[price], sample=name)
            continue
        bundle = re.search(r"\((\d+)\s*x\)", name)
        count, label = (int(bundle.group(1)) if bundle else 1), re.sub(r"\s*\(\d+\s*x\)", "", name)
        product = _product(label)
        if option == "on_demand" and (product or resolve(label).gpu, count) in rows.covered:
            continue
        add_cell(
            rows, document, GpuRead(label=label, gpu=product, count=count), line[price],
            Terms(stated.unit if stated else "hour", "instance", "USD"), sku=slug(name), instance_type=name,
            purchase_option=option,
        )  # fmt: skip
