"""Vultr: the public plan lists of Cloud GPU and Bare Metal, with their regions and what each region can deploy.

Documentation: https://www.vultr.com/api/#tag/plans (no key needed; 30 requests per second).
Fields used of `/v2/plans` and `/v2/plans-metal`: `id`, `gpu_type`, `gpu_count` (number or text such as "1/8"),
`gpu_vram_gb` (GB, TOTAL of the plan), `vcpu_count` or `cpu_threads`, `ram` (MiB), `disk` (GB each), `disk_count`,
`hourly_cost`, `hourly_cost_preemptible` (USD per plan), `location_cost.{region}` (the same fields for one region),
`locations`, `deploy_ondemand`, `deploy_preemptible`; `meta.total`, `meta.links.next` (a cursor). `/v2/regions`: `id`,
`country`. `/v2/regions/{id}/availability`: `available_plans`, the only true stock.

Traps: a price stands although a plan cannot be deployed or has no location, and locations may be blank text; vdm plans
carry no GPU field, so their id is read, and where an id lies a reviewed table corrects it; A16, A40 and A100 are sold
in slices whose memory is the slice's; a free plan costs 0; `monthly_cost` is a cap (672 or 730 hours), not an offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from catalog.types import Availability, Document, PurchaseOption
from catalog.units import gib_from_mib
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.listing import as_list, as_object, positive
from collectors.readers import need, need_somewhere, read_json
from collectors.regions import country_of
from collectors.rows import RowBuilder
from collectors.vultr_gpus import gpu_of

_API = "https://api.vultr.com/v2"


@dataclass(slots=True)
class _Places:
    """What the region documents say: country by region, deployable plans by region."""

    countries: dict[str, str] = field(default_factory=dict)
    deployable: dict[str, frozenset[str]] = field(default_factory=dict)


class Vultr(Collector):
    """Vultr: on-demand and preemptible GPU plans, whole cards, slices and bare metal."""

    provider = "vultr"
    title = "Vultr"
    home_page = "https://www.vultr.com/products/cloud-gpu/"
    sources = (
        f"{_API}/plans?type=all&per_page=500",
        f"{_API}/plans-metal?per_page=500",
        f"{_API}/regions?per_page=500",
    )
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 6 * HOUR_S
    billing_increment_s = HOUR_S
    terms_note = (
        "Billed by the hour up to a monthly cap, also while stopped; tax excluded; GPU plans may need account approval."
    )
    expect = Expect(min_rows=10, gpus=frozenset({"a100", "a40-48gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """Both plan lists and the regions."""
        del keys
        for url, name in zip(self.sources, ("plans", "plans-metal", "regions"), strict=True):
            yield Request(url, name=name)

    def follow(self, document: Document) -> Iterable[Request]:
        """The next page of a list, and from the regions what each of them can deploy."""
        content = need(document, read_json(document), kind=dict)
        cursor = _next_cursor(content)
        if cursor:
            parts = urlsplit(document.url)
            query = {**dict(parse_qsl(parts.query)), "cursor": cursor}
            page = re.sub(r"\W", "", cursor)[-12:]
            yield Request(urlunsplit(parts._replace(query=urlencode(query))), name=f"{_listing(document)}-{page}")
        if _listing(document) == "regions":
            for region in _regions(document):
                yield Request(f"{_API}/regions/{region}/availability", name=f"availability-{region}")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per plan, purchase option and region; a plan without any region once, as unavailable."""
        rows = RowBuilder(self)
        places = _Places()
        lists: list[tuple[Document, str, list[Any]]] = []
        for document in documents:
            listing, content = _listing(document), read_json(document)
            if listing == "availability":
                region = urlsplit(document.url).path.split("/")[-2]
                plans = need(document, content, "available_plans", kind=list)
                places.deployable[region] = frozenset(map(str, plans))
            elif listing == "regions":
                places.countries.update(_regions(document))
            else:
                key = listing.replace("-", "_")
                plans = need(document, content, key, kind=list)
                if plans or as_object(content.get("meta")).get("total") != 0:  # a list may say itself that it is empty
                    need_somewhere(document, plans, "id", "hourly_cost", "locations")
                lists.append((document, key, plans))
        gpus = sum(_add_plan(rows, document, plan, places) for document, _, plans in lists for plan in plans)
        if not gpus:
            raise LayoutChanged(self.provider, "plans/*/gpu_type", "no plan with a GPU in any list")
        _check_pages(rows, lists)
        return rows.finish()


def _listing(document: Document) -> str:
    """plans, plans-metal, regions or availability."""
    return urlsplit(document.url).path.rstrip("/").rpartition("/")[2]


def _regions(document: Document) -> dict[str, str]:
    """Region id to country."""
    regions = need(document, read_json(document), "regions", kind=list)
    need_somewhere(document, regions, "id", "country")
    return {str(r["id"]): str(r.get("country") or "") for r in regions if isinstance(r, dict) and r.get("id")}


def _next_cursor(content: Mapping[str, Any]) -> str:
    """The cursor of the next page; blank or null on the last one."""
    return str(as_object(as_object(content.get("meta")).get("links")).get("next") or "")


def _check_pages(rows: RowBuilder, lists: Sequence[tuple[Document, str, list[Any]]]) -> None:
    """A list whose next page was not fetched, or with fewer plans than `meta.total`, makes the run incomplete."""
    for key in dict.fromkeys(key for _, key, _ in lists):
        mine = [(read_json(document), document.url, plans) for document, listed, plans in lists if listed == key]
        fetched = {dict(parse_qsl(urlsplit(url).query)).get("cursor", "") for _, url, _ in mine}
        if any(_next_cursor(content) not in fetched | {""} for content, _, _ in mine):
            rows.incomplete(f"{key}: a next page was named and not fetched")
        totals = [as_object(content.get("meta")).get("total") for content, _, _ in mine]
        total = max((t for t in totals if isinstance(t, int)), default=0)
        count = len({str(plan.get("id")) for _, _, plans in mine for plan in plans if isinstance(plan, dict)})
        if count < total:
            rows.incomplete(f"{key}: {count} of {total} plans were fetched")


def _add_plan(rows: RowBuilder, document: Document, plan: Any, places: _Places) -> bool:
    """Add a plan's offers. Returns whether it is a GPU plan."""
    if not isinstance(plan, dict) or not plan.get("id"):
        return False
    gpu = gpu_of(rows, plan)
    if gpu is None:
        return False
    locations = [str(place) for place in as_list(plan.get("locations")) if place] or [""]
    options: tuple[tuple[PurchaseOption, str, str], ...] = (
        ("on_demand", "hourly_cost", "deploy_ondemand"),
        ("spot", "hourly_cost_preemptible", "deploy_preemptible"),
    )
    for option, price_field, flag in options:
        allowed = plan.get(flag)
        if option == "spot" and (allowed is False or not plan.get(price_field)):
            continue  # 0 is how the list writes "not sold as preemptible"
        for region in locations:
            local = as_object(as_object(plan.get("location_cost")).get(region))
            rows.offer(
                document,
                gpu,
                sku=str(plan["id"]),
                instance_type=str(plan["id"]),
                price=local.get(price_field, plan.get(price_field)),
                quote_kind="api_quote",
                availability=_availability(str(plan["id"]), region, allowed, places),
                purchase_option=option,
                tenancy="bare_metal" if _listing(document) == "plans-metal" else "vm",
                region=region,
                country=places.countries.get(region) or country_of("vultr", region),
                **_shape(plan),
            )
    return True


def _availability(plan: str, region: str, allowed: object, places: _Places) -> Availability:
    if not region or allowed is False:
        return "unavailable"
    if region in places.deployable:
        return "available" if plan in places.deployable[region] else "unavailable"
    return "available" if allowed is True else "unknown"


def _shape(plan: Mapping[str, Any]) -> dict[str, Any]:
    ram, disk = positive(plan.get("ram")), positive(plan.get("disk"))
    return {
        "vcpu_count": positive(plan.get("vcpu_count")) or positive(plan.get("cpu_threads")),
        "memory_gib": gib_from_mib(ram) if ram else None,
        "local_storage_gb": disk * (positive(plan.get("disk_count")) or 1) if disk else None,
    }
