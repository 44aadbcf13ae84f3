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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog.types import Availability, Document, GpuInterconnect, PriceUnit, PurchaseOption
from catalog.units import decimal_of
from collectors.contract import DAY_S, HOUR_S, Collector, Expect, Parsed, Request
from collectors.pages import storage_gb_in
from collectors.readers import changed, flight_text, json_after, need, need_somewhere, read_html, read_json
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


class Latitude(Collector):
    """Latitude.sh: bare-metal GPU servers by the hour, month and year, per country."""

    provider = "latitude"
    title = "Latitude.sh"
    home_page = "https://www.latitude.sh/pricing"
    sources = ("https://www.latitude.sh/pricing",)
    kind = "page"
    cadence_s: ClassVar[int] = 6 * HOUR_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    terms_note = "Prices before tax; 20 TB of traffic per server included (latitude.sh/docs/usage/bandwidth)."
    expect = Expect(min_rows=6, gpus=frozenset({"rtx-pro-6000", "h100"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The pricing page."""
        del keys
        yield Request(self.sources[0], name="pricing")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """Offers per plan, country and term; a country without a price once, unpriced."""
        rows = RowBuilder(self)
        for document in documents:
            plans = _plans(document)
            need_somewhere(document, plans, "attributes/slug", "attributes/regions", "attributes/specs/gpu")
            gpus = [plan for plan in plans if _gpu(plan).get("count")]
            need_somewhere(document, gpus, "attributes/specs/gpu/type")
            markets = [market for plan in gpus for market in plan["attributes"].get("regions") or []]
            need_somewhere(document, markets, "name", "pricing/USD/hour")
            for plan in gpus:
                _add_plan(rows, document, plan["attributes"])
        return rows.finish()


def _plans(document: Document) -> list[Any]:
    """The plan objects, from the API's JSON or out of the page's payload."""
    if document.body.lstrip()[:1] in (b"{", b"["):
        plans = need(document, read_json(document), "data", kind=list)
        return list(plans)
    payload = flight_text(read_html(document))
    start = payload.find('"plansData":')
    if start < 0:
        changed(document, "__next_f plansData")
    return list(need(document, json_after(payload, start), "servers", kind=list))


def _gpu(plan: object) -> Mapping[str, Any]:
    attributes = plan.get("attributes") if isinstance(plan, dict) else None
    gpu = ((attributes or {}).get("specs") or {}).get("gpu")
    return gpu if isinstance(gpu, dict) else {}


def _add_plan(rows: RowBuilder, document: Document, plan: Mapping[str, Any]) -> None:
    gpu = plan["specs"]["gpu"]
    count, memory = decimal_of(gpu.get("count")), decimal_of(gpu.get("vram_per_gpu"))
    if count is None:
        rows.reject("gpu_count", "specs.gpu.count", gpu.get("count"), sample=plan.get("slug"))
        return
    read = GpuRead(
        label=str(gpu.get("type") or ""), count=int(count), memory_gb=float(memory) if memory else None
    )  # fmt: skip
    for market in (m for m in plan.get("regions") or [] if isinstance(m, dict)):
        prices = market.get("pricing") or {}
        currency = next((c for c in _CURRENCIES if decimal_of((prices.get(c) or {}).get("hour"))), None)
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
                region=str(market.get("name") or ""),
                tenancy="bare_metal",
                gpu_interconnect=_interconnect(gpu.get("interconnect")),
                **_shape(plan["specs"]),
            )


def _availability(market: Mapping[str, Any]) -> Availability:
    stated = _STOCK.get(str(market.get("stock_level") or "").lower())
    in_stock = (market.get("locations") or {}).get("in_stock")
    if in_stock == []:
        return "unavailable"
    return stated or ("available" if in_stock else "unknown")


def _interconnect(stated: object) -> GpuInterconnect:
    words = str(stated or "").lower()
    return "nvlink" if "nvlink" in words else "pcie" if "pci" in words else "unknown"


def _shape(specs: Mapping[str, Any]) -> dict[str, Any]:
    memory = decimal_of((specs.get("memory") or {}).get("total"))
    drives = [
        (int(drive.get("count") or 1), storage_gb_in(str(drive.get("size") or "")))
        for drive in specs.get("drives") or []
    ]
    nics = [(int(nic.get("count") or 1), _GBPS.search(str(nic.get("type") or ""))) for nic in specs.get("nics") or []]
    return {
        "vcpu_count": (specs.get("cpu") or {}).get("cores"),
        "memory_gib": float(memory) if memory else None,
        "local_storage_gb": sum(count * size for count, size in drives if size) or None,
        "network_gbps": sum(count * int(found[1] or 1) * float(found[2]) for count, found in nics if found) or None,
    }
