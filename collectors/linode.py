"""Akamai Cloud (Linode) GPU plans: the public type list, joined with where each plan can be deployed now.

Documentation: https://techdocs.akamai.com/linode-api/reference/get-linode-types and .../get-regions-availability.
Fields used of `/v4/linode/types` (`data`, `page`, `pages`): `id`, `label` ("RTX4000 Ada x1 Small"), `class` "gpu",
`gpus`, `vcpus`, `memory` and `disk` (MiB), `network_out` (Mbit/s), `price.hourly` (USD per instance),
`region_prices[]` {`id`, `hourly`}. `/v4/regions/availability`: `data[]` {`region`, `plan`, `available`}.
`/v4/regions`: `id`, `country`.

Traps: no field names the GPU, the label does, and the label of the oldest family also names the host's memory; the base
price of a GPU plan may read 0 while `region_prices` hold the figure; plans of class "accelerated" (video cards) have
`gpus` 0; `monthly` was a cap and no longer holds for GPU plans (hourly only since 2026-07-01).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from catalog.types import Availability, Document
from catalog.units import decimal_of, gib_from_mib
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.listing import as_list, as_object, positive, whole_number
from collectors.readers import need, need_somewhere, read_json
from collectors.regions import country_of
from collectors.rows import GpuRead, RowBuilder
from collectors.specs import spec_rows

_API = "https://api.linode.com/v4"
_LISTS: Mapping[str, str] = {"types": "linode/types", "availability": "regions/availability", "regions": "regions"}
_PAGE_SIZE = 500
_BYTES_PER_MIB = 2**20


class Linode(Collector):
    """Akamai Cloud: on-demand GPU instances in USD, with region prices."""

    provider = "linode"
    title = "Akamai Cloud (Linode)"
    home_page = "https://www.linode.com/products/gpu/"
    sources = (f"{_API}/linode/types", f"{_API}/regions/availability", f"{_API}/regions")
    kind = "api"
    cadence_s: ClassVar[int] = 6 * HOUR_S
    billing_increment_s = HOUR_S
    terms_note = (
        "Billed by the hour, rounded up, also while powered off. Some plans are shown to approved accounts only."
    )
    expect = Expect(min_rows=8, gpus=frozenset({"rtx-4000-ada-20gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The first page of types, availability and regions."""
        del keys
        for listing in _LISTS:
            yield _page(listing, 1)

    def follow(self, document: Document) -> Iterable[Request]:
        """The next page while `pages` says there is one."""
        content = need(document, read_json(document), kind=dict)
        page, pages = content.get("page"), content.get("pages")
        if isinstance(page, int) and isinstance(pages, int) and page < pages:
            yield _page(_listing(document), page + 1)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per plan and region that is named for it; a plan without a region once."""
        rows = RowBuilder(self)
        stock: dict[str, dict[str, bool]] = {}
        countries: dict[str, str] = {}
        plans: list[tuple[Document, Mapping[str, Any]]] = []
        for document in documents:
            listing, content = _listing(document), need(document, read_json(document), kind=dict)
            data = need(document, content, "data", kind=list)
            if listing == "availability":
                need_somewhere(document, data, "region", "plan", "available")
                for entry in data:
                    if isinstance(entry, dict) and isinstance(entry.get("available"), bool):
                        stock.setdefault(str(entry.get("plan")), {})[str(entry.get("region"))] = entry["available"]
            elif listing == "regions":
                need_somewhere(document, data, "id", "country")
                countries |= {
                    str(r.get("id")): str(r.get("country") or "").upper() for r in data if isinstance(r, dict)
                }
            else:
                need_somewhere(document, data, "id", "label", "gpus", "price/hourly")
                plans += [(document, plan) for plan in data if isinstance(plan, dict) and plan.get("gpus")]
        if not plans:
            raise LayoutChanged(self.provider, "data/*/gpus", "no plan with a GPU in any list")
        for document, plan in plans:
            _add_plan(rows, document, plan, stock.get(str(plan.get("id")), {}), countries)
        _check_pages(rows, documents)
        return rows.finish()


def _page(listing: str, page: int) -> Request:
    return Request(f"{_API}/{_LISTS[listing]}?page_size={_PAGE_SIZE}&page={page}", name=f"{listing}-{page}")


def _listing(document: Document) -> str:
    path = urlsplit(document.url).path.rstrip("/").rpartition("/")[2]
    return path if path in _LISTS else "types"


def _add_plan(
    rows: RowBuilder,
    document: Document,
    plan: Mapping[str, Any],
    stock: Mapping[str, bool],
    countries: Mapping[str, str],
) -> None:
    plan_id, label = str(plan.get("id") or ""), str(plan.get("label") or "")
    base = as_object(plan.get("price")).get("hourly")
    local = {str(p["id"]): p.get("hourly") for p in map(as_object, as_list(plan.get("region_prices"))) if p.get("id")}
    priced = bool(decimal_of(base))
    count = whole_number(plan["gpus"])
    if not count:
        rows.reject("gpu_count", "gpus", plan["gpus"], sample=plan_id)
        return
    regions = list(stock) if priced else [region for region in stock if region in local]
    regions += [region for region in local if region not in stock]
    if priced and not stock:
        regions.insert(0, "")
    if not regions:
        rows.reject("not_a_price", "price.hourly", base, sample=plan_id)
        return
    gpu = next((row["gpu"] for row in spec_rows("linode-families.csv") if plan_id.startswith(row["prefix"])), None)
    memory, disk, network = (positive(plan.get(field)) for field in ("memory", "disk", "network_out"))
    for region in regions:
        rows.offer(
            document,
            GpuRead(label=label, gpu=gpu, count=count),
            sku=plan_id,
            instance_type=plan_id,
            price=local.get(region, base),
            quote_kind="api_quote",
            availability=_availability(stock, region),
            region=region,
            country=countries.get(region) or country_of("linode", region),
            vcpu_count=positive(plan.get("vcpus")),
            memory_gib=gib_from_mib(memory) if memory else None,
            local_storage_gb=disk * _BYTES_PER_MIB / 1e9 if disk else None,
            network_gbps=network / 1000 if network else None,
        )


def _availability(stock: Mapping[str, bool], region: str) -> Availability:
    if region not in stock:
        return "unknown"
    return "available" if stock[region] else "unavailable"


def _check_pages(rows: RowBuilder, documents: Sequence[Document]) -> None:
    """A list of which fewer pages were fetched than it announces makes the run incomplete."""
    seen: dict[str, set[int]] = {}
    announced: dict[str, int] = {}
    for document in documents:
        listing, content = _listing(document), read_json(document)
        if isinstance(content.get("page"), int) and isinstance(content.get("pages"), int):
            seen.setdefault(listing, set()).add(content["page"])
            announced[listing] = max(announced.get(listing, 1), content["pages"])
    for listing, pages in announced.items():
        if len(seen[listing]) < pages:
            missing = next(page for page in range(1, pages + 1) if page not in seen[listing])
            rows.incomplete(f"{listing}: page {missing} of {pages} was not fetched")
