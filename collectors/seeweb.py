"""Seeweb: Cloud Server GPU from the public product page, and with a key the API's plans.

Documentation: https://www.seeweb.it/en/products/cloud-server-gpu, https://docs.seeweb.it (GET /ecs/v2/plans)
Page fields: cards "CLOUD GPU NVIDIA H200 1 2 4 8 GPU … Hourly Cost 2.60 EUR" (EUR per GPU-hour).
API fields: `plans[]` {name, cpu, ram (MB), disk (GB), gpu (all text), gpu_label, hourly_price (EUR per plan), available
(the plan is active; NOT stock), available_regions[].location}.

Traps: numbers are text; processor plans share the list and the ECS prefix; "available" is no stock; GPU memory on the
page is the total of the largest size in places, so it is not read; monthly figures stand beside hourly ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bs4 import BeautifulSoup

from catalog.types import Document
from catalog.units import decimal_of, gib_from_mib, read_price
from collectors.cards import Card, gpu_cards
from collectors.contract import Expect
from collectors.pages import possible_gpus, slug
from collectors.price_page import PricePage
from collectors.readers import changed, need, need_somewhere, present_somewhere, read_json, text_of
from collectors.rows import GpuRead, RowBuilder

PAGE = "https://www.seeweb.it/en/products/cloud-server-gpu"
API = "https://api.seeweb.it/ecs/v2/plans"
_HOURLY = re.compile(r"hourly (?:cost|price)\D{0,20}?((?:€|EUR)?\s*\d[\d.,]*\s*(?:€|EUR)?)", re.IGNORECASE)
_SIZES = re.compile(r"((?:\b\d{1,2}\b[\s,/x-]*){1,6})GPUs?\b", re.IGNORECASE)


class Seeweb(PricePage):
    """Seeweb: Cloud Server GPU in EUR."""

    provider = "seeweb"
    title = "Seeweb"
    home_page = page = PAGE
    page_name = "cloud-server-gpu"
    rows_at = "text 'Hourly Cost'"
    api = API
    api_name = "plans"
    sources = (PAGE, API)
    currency = "EUR"
    terms_note = "Prices before tax."
    optional_key_env = ("SEEWEB_API_TOKEN",)
    expect = Expect(min_rows=1)

    def key_headers(self, key: str) -> Mapping[str, str]:
        """The header that the API documents."""
        return {"X-APITOKEN": key}

    def add_api(self, rows: RowBuilder, document: Document) -> None:
        """One offer per plan and region."""
        plans = need(document, read_json(document), "plans", kind=list)
        need_somewhere(document, plans, "name", "gpu", "gpu_label", "hourly_price", "available_regions")
        places = [place for plan in plans for place in plan.get("available_regions") or []]
        present_somewhere(document, places, "available_regions", "location")
        for plan in plans:
            count = int(decimal_of(plan.get("gpu")) or 0)
            if count:
                _add_plan(rows, document, plan, count)
        if not rows.covered:
            changed(document, "plans[].gpu", f"no GPU plans at {document.url}")

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """The sizes of each card."""
        for card in gpu_cards(rows, document, soup):
            _add_card(rows, document, card)


def _add_plan(rows: RowBuilder, document: Document, plan: Mapping[str, Any], count: int) -> None:
    label = str(plan.get("gpu_label") or "")
    name = str(plan.get("name") or label)
    facts = {name: decimal_of(plan.get(name)) for name in ("cpu", "ram", "disk")}
    regions = [str(r["location"]) for r in plan.get("available_regions") or [] if r.get("location")]
    for region in regions or [""]:
        rows.offer(
            document, GpuRead(label=label, count=count), sku=name, instance_type=name,
            price=plan.get("hourly_price", "missing"), region=region,
            availability="unknown" if plan.get("available", True) and regions else "unavailable",
            quote_kind="api_quote", vcpu_count=float(facts["cpu"]) if facts["cpu"] else None,
            memory_gib=gib_from_mib(facts["ram"]) if facts["ram"] else None,
            local_storage_gb=float(facts["disk"]) if facts["disk"] else None,
        )  # fmt: skip
    rows.covered |= possible_gpus(label, None, count)


def _add_card(rows: RowBuilder, document: Document, card: Card) -> None:
    text = text_of(card.node)
    hourly = _HOURLY.search(text)
    price = read_price(hourly.group(1)) if hourly else None
    if price is None:
        rows.reject("unit_missing", "price", card.prices[0], sample=card.label)
        return
    head = _SIZES.split(re.split(r"hourly", text, flags=re.IGNORECASE)[0])[0]
    name = re.sub(r"^.*?\bGPU\s+(?=NVIDIA|AMD|Intel)", "", head, flags=re.IGNORECASE).strip() or card.label
    sizes = _SIZES.search(text)
    counts = [int(n) for n in re.findall(r"\d+", sizes.group(1))] if sizes else [1]
    for count in counts:
        if rows.covered.isdisjoint(possible_gpus(name, None, count)):
            rows.offer(
                document, GpuRead(label=name, count=count), sku=slug(name, f"x{count}"),
                instance_type=f"{name} x{count}", price=price.amount, price_scope="gpu", currency=price.currency,
            )  # fmt: skip
