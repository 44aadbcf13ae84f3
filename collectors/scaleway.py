"""Scaleway GPU Instances: the public Instance API, one list of server types per zone and one of their stock.

Documentation: https://www.scaleway.com/en/developers/api/instance/#path-instance-types-list-instance-types
Fields used: `servers` (a dict keyed by type), `gpu`, `gpu_info.gpu_name`, `gpu_info.gpu_memory` (bytes per GPU),
`hourly_price` (EUR per node, before tax), `ncpus`, `ram` (bytes), `scratch_storage_max_size` (bytes),
`network.sum_internet_bandwidth` (bit/s), `arch`, `end_of_service`; `availability` in available, scarce, shortage.

Traps: the pager's Link header is relative and drops the API version, so page numbers come from X-Total-Count; a type
keeps its price while it is in shortage; RENDER-S is billed per hour, the other GPU types per minute; most zones sell no
GPU at all, but a run without a GPU in any zone is a changed list, not an empty market.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.types import Availability, Document
from catalog.units import gib_from_bytes
from collectors.contract import HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.listing import as_object, positive, whole_number
from collectors.readers import changed, need, read_json
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
        """The next page while X-Total-Count says there is one, in the server's page size where that is smaller.

        Where the header is missing, a full page has another after it.
        """
        zone, listing, page, size = _place(document)
        listed = len(need(document, read_json(document), "servers", kind=dict))
        total = _total(document)
        if page == 1 and listed and total:
            size = min(size, listed)
        if listed and (page * size < total if total else listed >= size):
            yield _page(zone, listing, page + 1, size)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per zone and GPU type, with its stock where the zone's stock list was fetched."""
        rows = RowBuilder(self)
        stock: dict[tuple[str, str], str] = {}
        priced: list[tuple[Document, str, Mapping[str, Any]]] = []
        for document in documents:
            zone, listing, *_ = _place(document)
            servers = need(document, read_json(document), "servers", kind=dict)
            if listing == "servers":
                priced.append((document, zone, servers))
            else:
                stock.update({(zone, name): _state(entry) for name, entry in servers.items()})
        gpus = 0
        for document, zone, servers in priced:
            if servers and not any("hourly_price" in as_object(server) for server in servers.values()):
                changed(document, "servers/*/hourly_price")
            for name, server in servers.items():
                if "hourly_price" not in as_object(server):
                    rows.reject("field_missing", "hourly_price", "", sample=f"{name} {zone}")
                elif server.get("gpu"):
                    gpus += 1
                    _add(rows, document, zone, name, server, stock.get((zone, name)))
        if not gpus:
            raise LayoutChanged(self.provider, "servers/*/gpu", "no zone lists a type with a GPU")
        _check_pages(rows, documents)
        return rows.finish()


def _page(zone: str, listing: str, page: int, size: int = PAGE_SIZE) -> Request:
    return Request(
        f"https://api.scaleway.com/instance/v1/zones/{zone}/products/{listing}?per_page={size}&page={page}",
        name=f"{listing.replace('servers/', '')}-{zone}-{page}",
    )


def _place(document: Document) -> tuple[str, str, int, int]:
    """Zone, list, page number and asked page size, from the address."""
    parts = urlsplit(document.url)
    zone = parts.path.partition("/zones/")[2].partition("/")[0]
    listing = "servers/availability" if parts.path.rstrip("/").endswith("/availability") else "servers"
    query = parse_qs(parts.query)
    page, size = query.get("page", ["1"])[0], query.get("per_page", [""])[0]
    return zone, listing, int(page) if page.isdigit() else 1, int(size) if size.isdigit() else PAGE_SIZE


def _total(document: Document) -> int:
    """How many types the server says the list has; 0 where it does not say."""
    total = document.headers.get("x-total-count", "")
    return int(total) if total.isdigit() else 0


def _state(entry: object) -> str:
    return str(entry.get("availability")) if isinstance(entry, dict) else ""


def _add(
    rows: RowBuilder, document: Document, zone: str, name: str, server: Mapping[str, Any], stock: str | None
) -> None:
    facts, count = as_object(server.get("gpu_info")), whole_number(server.get("gpu"))
    if count is None:
        rows.reject("gpu_count", "gpu", server.get("gpu"), sample=f"{name} {zone}")
        return
    memory, host_memory = positive(facts.get("gpu_memory")), positive(server.get("ram"))
    scratch = positive(server.get("scratch_storage_max_size"))
    bandwidth = positive(as_object(server.get("network")).get("sum_internet_bandwidth"))
    rows.offer(
        document,
        GpuRead(
            label=" ".join(str(x) for x in (facts.get("gpu_name"), server.get("mig_profile")) if x),
            count=count,
            memory_gb=gib_from_bytes(memory) if memory else None,
        ),
        sku=name,
        instance_type=name,
        price=server.get("hourly_price"),
        quote_kind="api_quote",
        availability=_STOCK.get(stock or "", "unknown"),
        flags=("end_of_service",) if server.get("end_of_service") else (),
        region=zone,
        vcpu_count=positive(server.get("ncpus")),
        memory_gib=gib_from_bytes(host_memory) if host_memory else None,
        local_storage_gb=scratch / 1e9 if scratch else None,
        network_gbps=bandwidth / 1e9 if bandwidth else None,
        cpu_arch=str(server["arch"]) if server.get("arch") else None,
        billing_increment_s=HOUR_S if name in _HOURLY_BILLED else MINUTE_S,
    )


def _check_pages(rows: RowBuilder, documents: Sequence[Document]) -> None:
    """A zone of which fewer types were fetched than the server announced makes the run incomplete.

    Where nothing was announced, the last page fetched must not be full.
    """
    names: dict[tuple[str, str], set[str]] = {}
    totals: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], tuple[int, bool]] = {}
    for document in documents:
        zone, listing, page, size = _place(document)
        servers = read_json(document)["servers"]
        names.setdefault((zone, listing), set()).update(servers)
        totals[zone, listing] = max(totals.get((zone, listing), 0), _total(document))
        last[zone, listing] = max(last.get((zone, listing), (0, False)), (page, len(servers) >= size))
    for (zone, listing), total in totals.items():
        fetched = len(names[zone, listing])
        if fetched < total:
            rows.incomplete(f"{zone} {listing}: {fetched} of {total} types were fetched")
        elif last[zone, listing][1] and not total:
            rows.incomplete(f"{zone} {listing}: the last page fetched is full")
