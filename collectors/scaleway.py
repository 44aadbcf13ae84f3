"""Scaleway GPU Instances: the public Instance API, one list of server types per zone and one of their stock.

Documentation: https://www.scaleway.com/en/developers/api/instance/#path-instance-types-list-instance-types
Fields used: `servers` (a dict keyed by type), `gpu`, `gpu_info.gpu_name`, `gpu_info.gpu_memory` (bytes per GPU),
`hourly_price` (EUR per node, before tax), `ncpus`, `ram` (bytes), `scratch_storage_max_size` (bytes),
`network.sum_internet_bandwidth` (bit/s), `arch`, `end_of_service`; `availability` in available, scarce, shortage.

Traps: the pager's Link header is relative and drops the API version, so page numbers come from X-Total-Count; a type
keeps its price while it is in shortage; RENDER-S is billed per hour, the other GPU types per minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.types import Availability, Document
from catalog.units import gib_from_bytes
from collectors.contract import HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.readers import need, read_json
from collectors.rows import GpuRead, RowBuilder

ZONES = ("fr-par-1", "fr-par-2", "nl-ams-1", "nl-ams-2", "nl-ams-3", "pl-waw-1", "pl-waw-2", "pl-waw-3", "it-mil-1")
PAGE_SIZE = 100
_STOCK: Mapping[str, Availability] = {"available": "available", "scarce": "limited", "shortage": "unavailable"}
_HOURLY_BILLED = frozenset({"RENDER-S"})


class Scaleway(Collector):
    """Scaleway: on-demand GPU Instances in EUR."""

    provider = "scaleway"
    title = "Scaleway"
    home_page = "https://www.scaleway.com/en/pricing/gpu/"
    sources = ("https://api.scaleway.com/instance/v1/zones/fr-par-2/products/servers",)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 6 * HOUR_S
    currency = "EUR"
    billing_increment_s = MINUTE_S
    terms_note = "Prices before tax. Public API, no key; addresses and volumes are billed while an instance is off."
    expect = Expect(min_rows=10, gpus=frozenset({"h100-sxm-80gb", "l4-24gb", "l40s-48gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The first page of both lists in every zone."""
        del keys
        for zone in ZONES:
            for listing in ("servers", "servers/availability"):
                yield _page(zone, listing, 1)

    def follow(self, document: Document) -> Iterable[Request]:
        """The next page while X-Total-Count says there is one."""
        zone, listing, page = _place(document)
        total = document.headers.get("x-total-count", "")
        if total.isdigit() and page * PAGE_SIZE < int(total):
            yield _page(zone, listing, page + 1)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per zone and GPU type, with its stock where the zone's stock list was fetched."""
        rows = RowBuilder(self)
        stock: dict[tuple[str, str], str] = {}
        priced: list[tuple[Document, str, Mapping[str, Any]]] = []
        for document in documents:
            zone, listing, _ = _place(document)
            servers = need(document, read_json(document), "servers", kind=dict)
            if listing == "servers":
                priced.append((document, zone, servers))
            else:
                stock.update({(zone, name): str(entry.get("availability")) for name, entry in servers.items()})
        for document, zone, servers in priced:
            for name, server in servers.items():
                if isinstance(server, dict) and server.get("gpu"):
                    _add(rows, document, zone, name, server, stock.get((zone, name)))
        _check_pages(rows, documents)
        return rows.finish()


def _page(zone: str, listing: str, page: int) -> Request:
    return Request(
        f"https://api.scaleway.com/instance/v1/zones/{zone}/products/{listing}?per_page={PAGE_SIZE}&page={page}",
        name=f"{listing.replace('servers/', '')}-{zone}-{page}",
    )


def _place(document: Document) -> tuple[str, str, int]:
    """Zone, list and page number, from the address."""
    parts = urlsplit(document.url)
    zone = parts.path.partition("/zones/")[2].partition("/")[0]
    listing = "servers/availability" if parts.path.rstrip("/").endswith("/availability") else "servers"
    page = parse_qs(parts.query).get("page", ["1"])[0]
    return zone, listing, int(page) if page.isdigit() else 1


def _add(
    rows: RowBuilder, document: Document, zone: str, name: str, server: Mapping[str, Any], stock: str | None
) -> None:
    facts = server.get("gpu_info") or {}
    memory = facts.get("gpu_memory")
    scratch = server.get("scratch_storage_max_size")
    bandwidth = (server.get("network") or {}).get("sum_internet_bandwidth")
    rows.offer(
        document,
        GpuRead(
            label=str(facts.get("gpu_name") or ""),
            count=int(server["gpu"]),
            memory_gb=gib_from_bytes(memory) if memory else None,
        ),
        sku=name,
        instance_type=name,
        price=server.get("hourly_price"),
        quote_kind="api_quote",
        availability=_STOCK.get(stock or "", "unknown"),
        flags=("end_of_service",) if server.get("end_of_service") else (),
        region=zone,
        vcpu_count=server.get("ncpus"),
        memory_gib=gib_from_bytes(server["ram"]) if server.get("ram") else None,
        local_storage_gb=float(scratch) / 1e9 if scratch else None,
        network_gbps=float(bandwidth) / 1e9 if bandwidth else None,
        cpu_arch=server.get("arch"),
        billing_increment_s=HOUR_S if name in _HOURLY_BILLED else MINUTE_S,
    )


def _check_pages(rows: RowBuilder, documents: Sequence[Document]) -> None:
    """A zone whose announced number of types was not fetched makes the run incomplete."""
    seen: dict[tuple[str, str], set[int]] = {}
    totals: dict[tuple[str, str], int] = {}
    for document in documents:
        zone, listing, page = _place(document)
        seen.setdefault((zone, listing), set()).add(page)
        total = document.headers.get("x-total-count", "")
        if total.isdigit():
            totals[zone, listing] = int(total)
    for key, total in totals.items():
        pages = -(-total // PAGE_SIZE)
        missing = sorted(set(range(1, pages + 1)) - seen[key])
        if missing:
            rows.incomplete(f"{key[0]} {key[1]}: page {missing[0]} of {pages} was not fetched")
