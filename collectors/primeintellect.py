"""Prime Intellect: GPUs of many clouds at its own prices (a key with the permission Availability, Read).

Documentation: https://docs.primeintellect.ai/api-reference/availability (`GET /api/v1/availability/gpus`).
Fields used of `items[]`: `cloudId`, `provider` (the cloud below), `gpuType` ("A100_80GB"), `socket` ("SXM4"),
`gpuCount`, `gpuMemory`, `dataCenter`, `region`, `country`, `vcpu.defaultCount`, `memory.defaultCount` (GB), `disk`
(`defaultCount` in GB, `defaultIncludedInPrice`), `security`, `stockStatus`, `isSpot`, `prepaidTime`, `interconnect`
(Gbps), `interconnectType`, `prices` (`onDemand`, `communityPrice`, `isVariable`, `currency`): per hour for the whole
offer. `totalCount` counts the items of all pages.

Traps: prices are for all GPUs of the offer; spot offers carry their price in `onDemand` too; disks are extra unless
they say otherwise; lists of up to 100 items a page, so pages short of `totalCount` make the run incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.types import Availability, Document
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.countries import country_code
from collectors.listing import as_object, positive, whole_items, whole_number
from collectors.readers import need, read_json
from collectors.resale import cloud_slug
from collectors.rows import GpuRead, RowBuilder

URL = "https://api.primeintellect.ai/api/v1/availability/gpus"
PAGE_SIZE = 100
_STOCK: Mapping[str, Availability] = {
    "available": "available", "high": "available", "medium": "available", "low": "limited",
    "unavailable": "unavailable", "none": "unavailable",
}  # fmt: skip


class Primeintellect(Collector):
    """Prime Intellect: on-demand and spot offers of other clouds."""

    provider = "primeintellect"
    title = "Prime Intellect"
    home_page = "https://www.primeintellect.ai/"
    sources = (URL,)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    terms_note = "Resells other clouds at its own prices; disks are billed beside most offers."
    key_env: ClassVar[tuple[str, ...]] = ("PRIME_API_KEY",)
    expect = Expect(min_rows=20, gpus=frozenset({"h100-sxm-80gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The first page."""
        yield _page(1, {"authorization": f"Bearer {keys.get('PRIME_API_KEY', '')}"})

    def follow(self, document: Document) -> Iterable[Request]:
        """The next page while `totalCount` is not reached; the fetcher sends it with the first page's key."""
        total, page = _total(document, read_json(document)), _page_number(document)
        if page * PAGE_SIZE < total:
            yield _page(page + 1, {})

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per cloud, type, GPU count and data centre."""
        rows = RowBuilder(self)
        listed, total = 0, 0
        for document in documents:
            answer = read_json(document)
            items = need(document, answer, "items", kind=list)
            listed, total = listed + len(items), max(total, _total(document, answer))
            if items or _page_number(document) == 1:
                for item in whole_items(rows, document, items, "items", "provider", "gpuType", "gpuCount", "prices"):
                    _add(rows, document, item)
        if listed < total:
            rows.incomplete(f"{listed} of {total} items were fetched")
        return rows.finish()


def _page(number: int, headers: Mapping[str, str]) -> Request:
    return Request(f"{URL}?page={number}&page_size={PAGE_SIZE}", headers=headers, name=f"availability-{number}")


def _page_number(document: Document) -> int:
    number = parse_qs(urlsplit(document.url).query).get("page", ["1"])[0]
    return int(number) if number.isdigit() else 1


def _total(document: Document, answer: Any) -> int:
    return int(need(document, answer, "totalCount", kind=int))


def _add(rows: RowBuilder, document: Document, item: Mapping[str, Any]) -> None:
    count = whole_number(item["gpuCount"])
    if not count or str(item["gpuType"]).upper().startswith("CPU"):
        return
    prices, disk = as_object(item["prices"]), as_object(item.get("disk"))
    community = item.get("security") == "community_cloud"
    price = prices.get("communityPrice") if community else None
    included, size = disk.get("defaultIncludedInPrice") is True, positive(disk.get("defaultCount"))
    flags = {
        "variable_price": prices.get("isVariable") is True,
        "prepaid": bool(item.get("prepaidTime")),
        "disk_not_included": not included and bool(size),
    }
    rows.offer(
        document,
        GpuRead(
            label=f"{item['gpuType'] or ''} {item.get('socket') or ''}".strip() if item["gpuType"] else "",
            count=count,
            memory_gb=positive(item.get("gpuMemory")) if count == 1 else None,
        ),
        sku=f"{item['provider']}/{item.get('cloudId')} x{count}",
        instance_type=str(item.get("cloudId") or item["gpuType"]),
        price=prices.get("onDemand") if price is None else price,
        currency=str(prices.get("currency") or "USD"),
        quote_kind="api_quote",
        purchase_option="spot" if item.get("isSpot") is True else "on_demand",
        flags=[flag for flag, holds in flags.items() if holds],
        availability=_STOCK.get(str(item.get("stockStatus") or "").casefold(), "unknown"),
        provider=cloud_slug(str(item["provider"])),
        via="primeintellect",
        region=str(item.get("dataCenter") or item.get("region") or ""),
        country=country_code(str(item.get("country") or "")),
        tenancy="community" if community else "secure",
        vcpu_count=positive(as_object(item.get("vcpu")).get("defaultCount")),
        memory_gib=positive(as_object(item.get("memory")).get("defaultCount")),
        local_storage_gb=size if included else None,
        network_gbps=positive(item.get("interconnect")),
        rdma=True if "infiniband" in str(item.get("interconnectType") or "").casefold() else None,
    )
