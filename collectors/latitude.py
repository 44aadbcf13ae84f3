"""Latitude.sh bare-metal GPU servers: the plans that the pricing page carries, the same objects as the keyed API's.

Page: https://www.latitude.sh/pricing (Next.js payload, `plansData.servers[]`); API: https://www.latitude.sh/docs/api
(`GET /plans`, `data[]`, key needed). Fields used of `attributes`: `slug`, `name`, `specs.gpu` {`count`, `type`,
`vram_per_gpu` GB, `interconnect`}, `specs.cpu.cores` (all sockets), `specs.memory.total` GB, `specs.drives[]`,
`specs.nics[]`, and `regions[]` {`name` (a country), `locations.in_stock[]`, `stock_level`, `pricing.USD` {`hour`,
`month`, `year`}, `pricing.BRL`}. Prices are of one server.

Traps: CPU plans carry `gpu: {}`; a market without a price reads null in USD and 0 in BRL; a price stands while nothing
is in stock; month and year are prices of their own (365 and 3,066 hours), never derived from the hour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bs4 import BeautifulSoup

from catalog.types import Availability, Document, GpuInterconnect, PriceUnit, PurchaseOption
from catalog.units import decimal_of
from collectors.contract import HOUR_S, Expect
from collectors.countries import country_named
from collectors.listing import as_list, as_object, positive, whole_number
from collectors.pages import storage_gb_in
from collectors.price_page import PricePage
from collectors.readers import changed, flight_text, json_after, need, need_somewhere, read_json
from collectors.regions import country_of
from collectors.rows import GpuRead, RowBuilder

_CURRENCIES = ("USD", "BRL")
_TERMS: tuple[tuple[str, PriceUnit, PurchaseOption, int], ...] = (
    ("hour", "hour", "on_demand", 0),
    ("month", "month", "reserved", 30),
    ("year", "term", "reserved", 365),
)
_STOCK: Mapping[str, Availability] = {
    "high": "available", "medium": "available", "low": "limited", "unavailable": "unavailable",
}  # fmt: skip
_GBPS = re.compile(r"(?:(\d+)\s*[x×]\s*)?(\d+(?:\.\d+)?)\s*Gbps", re.IGNORECASE)


class Latitude(PricePage):
    """Latitude.sh: bare-metal GPU servers by the hour, month and year, per country."""

    provider = "latitude"
    title = "Latitude.sh"
    home_page = page = "https://www.latitude.sh/pricing"
    sources = (page,)
    cadence_s: ClassVar[int] = 6 * HOUR_S
    terms_note = "Prices before tax; 20 TB of traffic per server included (latitude.sh/docs/usage/bandwidth)."
    expect = Expect(min_rows=6, gpus=frozenset({"rtx-pro-6000", "h100"}))

    def is_api(self, document: Document) -> bool:
        """The API is not asked, as it needs a key, but its answer is read where someone recorded one."""
        return document.body.lstrip()[:1] in {b"{", b"["}

    def add_api(self, rows: RowBuilder, document: Document) -> None:
        """The plans of the API's JSON."""
        _add_plans(rows, document, need(document, read_json(document), "data", kind=list))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """The plans of the page's payload."""
        payload = flight_text(soup)
        start = payload.find('"plansData":')
        if start < 0:
            changed(document, "__next_f plansData")
        _add_plans(rows, document, need(document, json_after(payload, start), "servers", kind=list))


def _add_plans(rows: RowBuilder, document: Document, plans: Sequence[Any]) -> None:
    """Offers per plan, country and term; a country without a price once, unpriced."""
    need_somewhere(document, plans, "attributes/slug", "attributes/regions", "attributes/specs/gpu")
    gpus = [plan for plan in plans if _gpu(plan).get("count")]
    need_somewhere(document, gpus, "attributes/specs/gpu/type")
    markets = [market for plan in gpus for market in as_list(plan["attributes"].get("regions"))]
    need_somewhere(document, markets, "name", "pricing/USD/hour")
    for plan in gpus:
        _add_plan(rows, document, plan["attributes"])


def _gpu(plan: object) -> Mapping[str, Any]:
    return as_object(as_object(as_object(as_object(plan).get("attributes")).get("specs")).get("gpu"))


def _add_plan(rows: RowBuilder, document: Document, plan: Mapping[str, Any]) -> None:
    gpu = plan["specs"]["gpu"]
    count = whole_number(gpu.get("count"))
    if not count:
        rows.reject("gpu_count", "specs.gpu.count", gpu.get("count"), sample=plan.get("slug"))
        return
    read = GpuRead(
        label=str(gpu.get("type") or ""), count=count, memory_gb=positive(gpu.get("vram_per_gpu"))
    )  # fmt: skip
    for market in map(as_object, as_list(plan.get("regions"))):
        prices, place = as_object(market.get("pricing")), str(market.get("name") or "")
        currency = next((c for c in _CURRENCIES if decimal_of(as_object(prices.get(c)).get("hour"))), None)
        for key, unit, option, days in _TERMS if currency else _TERMS[:1]:
            price = prices[currency].get(key) if currency else None
            if price is None and option == "reserved":
                continue
            rows.offer(
                document,
                read,
                sku=str(plan.get("slug") or ""),
                instance_type=str(plan.get("name") or plan.get("slug") or ""),
                price=price,
                price_unit=unit,
                currency=currency or "USD",
                availability=_availability(market),
                purchase_option=option,
                commitment_days=days,
                region=place,
                country=country_of("latitude", place) or country_named(place),
                tenancy="bare_metal",
                **_interconnect(gpu.get("interconnect")),
                **_shape(plan["specs"]),
            )


def _availability(market: Mapping[str, Any]) -> Availability:
    stated = _STOCK.get(str(market.get("stock_level") or "").lower())
    in_stock = as_object(market.get("locations")).get("in_stock")
    if in_stock == []:
        return "unavailable"
    return stated or ("available" if in_stock else "unknown")


def _interconnect(stated: object) -> dict[str, Any]:
    """What the plan states; nothing where it states nothing, so that the product decides."""
    words = str(stated or "").lower()
    kind: GpuInterconnect | None = "nvlink" if "nvlink" in words else "pcie" if "pci" in words else None
    return {"gpu_interconnect": kind} if kind else {}


def _shape(specs: Mapping[str, Any]) -> dict[str, Any]:
    drives = [(_how_many(drive), storage_gb_in(str(drive.get("size") or ""))) for drive in _parts(specs, "drives")]
    nics = [(_how_many(nic), _GBPS.search(str(nic.get("type") or ""))) for nic in _parts(specs, "nics")]
    return {
        "vcpu_count": positive(as_object(specs.get("cpu")).get("cores")),
        "memory_gib": positive(as_object(specs.get("memory")).get("total")),
        "local_storage_gb": sum(count * size for count, size in drives if size) or None,
        "network_gbps": sum(count * int(found[1] or 1) * float(found[2]) for count, found in nics if found) or None,
    }


def _parts(specs: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [as_object(part) for part in as_list(specs.get(kind))]


def _how_many(part: Mapping[str, Any]) -> int:
    return whole_number(part.get("count")) or 1
