"""Verda (until 2025 DataCrunch): the instance-types API, its stock with a token, and the pricing page's JSON-LD.

Documentation: https://api.verda.com/v1/docs (the old host api.datacrunch.io answers the same).
Fields used of `/v1/instance-types`, a bare array: `instance_type`, `gpu.description` ("1x H100 SXM5 80GB"),
`gpu.number_of_gpus`, `gpu_memory.size_in_gigabytes` (GB, TOTAL of the node), `cpu.number_of_cores`,
`memory.size_in_gigabytes`, `storage.size_in_gigabytes`, `currency`, and `price_per_hour`, `spot_price`,
`serverless_price`, `serverless_spot_price` (text, per node and hour). `/v1/instance-availability?is_spot=` needs a
token: `[{location_code, availabilities: [instance_type]}]`.
Page: `script[type="application/ld+json"]`, `@graph` nodes of type Offer: `name` "8x B200 SXM6 180GB serverless
continuous", `price` (all GPUs of the row), `priceCurrency`, `priceSpecification.unitText`.

Two sources: whether the list answers without a token is reported both ways. Where it does, it wins for instances (and
for serverless where it states those prices); the page then adds what the list lacks, such as instant clusters.
Traps: CPU nodes in the same list; memory labels that change (262, later 268 GB of one B300); "CC" confidential twins
at another price; duplicate and blank names on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.types import Availability, Document, PurchaseOption, Tenancy
from catalog.units import unit_in
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.json_ld import nodes_of_type
from collectors.listing import as_object, positive, whole_number
from collectors.readers import changed, need, need_somewhere, read_html, read_json
from collectors.rows import GpuRead, RowBuilder

_API = "https://api.datacrunch.io/v1"
_TOKEN = "VERDA_ACCESS_TOKEN"  # noqa: S105 - the name of the variable, not a secret
_PRICES: tuple[tuple[str, PurchaseOption, Tenancy], ...] = (
    ("price_per_hour", "on_demand", "vm"),
    ("spot_price", "spot", "vm"),
    ("serverless_price", "on_demand", "serverless"),
    ("serverless_spot_price", "spot", "serverless"),
)
_OFFER_NAME = re.compile(
    r"^(?P<label>(?P<count>\d+)x\s.+?)\s+"
    r"(?P<tier>serverless continuous|serverless spot|instant cluster|on-demand|spot)$",
    re.IGNORECASE,
)
_TIERS: Mapping[str, tuple[PurchaseOption, Tenancy, str]] = {
    "on-demand": ("on_demand", "vm", ""),
    "spot": ("spot", "vm", ""),
    "instant cluster": ("on_demand", "vm", "instant_cluster"),
    "serverless continuous": ("on_demand", "serverless", ""),
    "serverless spot": ("spot", "serverless", ""),
}
_Stock = Mapping[bool, Mapping[str, frozenset[str]]]
"""Is it spot? -> location -> instance types that can be had there."""


class Verda(Collector):
    """Verda: on-demand and spot instances, serverless containers and instant clusters."""

    provider = "verda"
    title = "Verda (DataCrunch)"
    home_page = "https://verda.com/pricing"
    sources = (f"{_API}/instance-types?currency=usd", "https://verda.com/pricing")
    extra_hosts = ("api.verda.com", "datacrunch.io", "www.verda.com")
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 6 * HOUR_S
    billing_increment_s = 1
    terms_note = "Prepaid balance, billed by the second (datacrunch.io/pricing, read 2026-06-21). Stock needs a token."
    optional_key_env = (_TOKEN,)
    expect = Expect(min_rows=10, gpus=frozenset({"h100-sxm-80gb", "b200-sxm-180gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The type list and the page; with an access token also where each type can be had now."""
        token = keys.get(_TOKEN)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        yield Request(self.sources[0], headers=headers, name="instance-types")
        yield Request(self.sources[1], name="pricing")
        if token:
            for spot in ("false", "true"):
                url = f"{_API}/instance-availability?is_spot={spot}"
                yield Request(
                    url, headers=headers, name=f"instance-availability-{'spot' if spot == 'true' else 'on-demand'}"
                )

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """Offers of the list per place with stock, then what only the page has."""
        rows = RowBuilder(self)
        stock: dict[bool, dict[str, frozenset[str]]] = {}
        kinds: set[tuple[Tenancy, str]] = set()
        pages: list[Document] = []
        lists: list[Document] = []
        for document in documents:
            path = urlsplit(document.url).path.rstrip("/")
            if path.endswith("/instance-availability"):
                spot = parse_qs(urlsplit(document.url).query).get("is_spot", ["false"])[0].lower() == "true"
                stock[spot] = _stock(document)
            elif path.endswith("/instance-types"):
                lists.append(document)
            else:
                pages.append(document)
        for document in lists:
            for record in _records(document):
                kinds |= _add_type(rows, document, record, stock)
        for document in pages:
            _add_page(rows, document, kinds)
        if not rows.row_count:
            raise LayoutChanged(self.provider, "gpu.number_of_gpus", "neither the list nor the page holds a GPU")
        return rows.finish()


def _records(document: Document) -> list[Mapping[str, Any]]:
    records = read_json(document)
    if not isinstance(records, list):
        changed(document, "$", f"expected a list of instance types in {document.url}")
    need_somewhere(
        document, records, "instance_type", "gpu/number_of_gpus", "gpu/description", *(p for p, *_ in _PRICES[:2])
    )
    return [record for record in records if isinstance(record, dict) and isinstance(record.get("gpu"), dict)]


def _stock(document: Document) -> dict[str, frozenset[str]]:
    places = read_json(document)
    if not isinstance(places, list):
        changed(document, "$", f"expected a list of locations in {document.url}")
    return {
        str(need(document, place, "location_code", kind=str)): frozenset(
            map(str, need(document, place, "availabilities", kind=list))
        )
        for place in places
    }


def _add_type(
    rows: RowBuilder, document: Document, record: Mapping[str, Any], stock: _Stock
) -> set[tuple[Tenancy, str]]:
    """Every price of one type. Returns the kinds of offer that the list has priced."""
    gpus = record["gpu"].get("number_of_gpus")
    if not gpus:
        return set()
    name = str(record.get("instance_type") or "")
    count = whole_number(gpus)
    if not name or not count:
        rows.reject("record_incomplete", "number_of_gpus" if name else "instance_type", gpus, sample=name)
        return set()
    total = _number(record, "gpu_memory")
    gpu = GpuRead(
        label=str(record["gpu"].get("description") or record.get("name") or record.get("model") or ""),
        count=count,
        memory_gb=total / count if total else None,
    )
    kinds: set[tuple[Tenancy, str]] = set()
    for field, option, tenancy in _PRICES:
        price = record.get(field)
        if price is None and field != "price_per_hour":
            continue
        places = _places(name, stock if tenancy == "vm" else {}, option == "spot")
        for region, availability in places:
            row = rows.offer(
                document,
                gpu,
                sku=name,
                instance_type=name,
                price=price,
                currency=str(record.get("currency") or "usd").upper(),
                quote_kind="api_quote",
                availability=availability,
                purchase_option=option,
                tenancy=tenancy,
                region=region,
                vcpu_count=positive(as_object(record.get("cpu")).get("number_of_cores")),
                memory_gib=_number(record, "memory"),
                local_storage_gb=_number(record, "storage"),
            )
            if row:
                kinds.add((tenancy, ""))
    return kinds


def _places(name: str, stock: _Stock, spot: bool) -> list[tuple[str, Availability]]:
    """Where a type can be had; one place without a name where stock is unknown or nowhere."""
    if spot not in stock:
        return [("", "unknown")]
    found: list[tuple[str, Availability]] = [
        (place, "available") for place, names in stock[spot].items() if name in names
    ]
    return found or [("", "unavailable")]


def _number(record: Mapping[str, Any], field: str) -> float | None:
    return positive(as_object(record.get(field)).get("size_in_gigabytes"))


def _add_page(rows: RowBuilder, document: Document, known: set[tuple[Tenancy, str]]) -> None:
    """Offers of the page's structured data whose kind the list does not have."""
    offers = nodes_of_type(document, read_html(document), "Offer")
    if not offers:
        changed(document, 'script[type="application/ld+json"] @graph Offer')
    for offer in offers:
        name = " ".join(str(offer.get("name") or "").split())
        found = _OFFER_NAME.match(name)
        if not found:
            if not name or re.match(r"\d+x\s", name):
                rows.reject("tier_unknown" if name else "gpu_unnamed", "name", name, sample=offer.get("price"))
            continue
        option, tenancy, variant = _TIERS[found["tier"].lower()]
        if (tenancy, variant) in known:
            continue
        if " CC " in found["label"]:
            variant = "confidential"
        specification = as_object(offer.get("priceSpecification"))
        stated = str(specification.get("unitText") or "")
        unit = unit_in(f"per {stated}")
        if unit is None:
            rows.reject("unit_unknown", "unitText", stated, sample=name)
            continue
        rows.offer(
            document,
            GpuRead(label=found["label"], count=int(found["count"])),
            sku=name,
            instance_type=found["label"],
            price=offer.get("price"),
            price_unit=unit,
            currency=str(offer.get("priceCurrency") or ""),
            purchase_option=option,
            tenancy=tenancy,
            variant=variant,
        )
