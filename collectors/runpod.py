"""RunPod: pods in the secure and the community cloud, on demand and spot, and instant clusters.

Documentation: https://docs.runpod.io/sdks/graphql/manage-pods (GraphQL, no key needed; to be retired early in 2027),
https://docs.runpod.io/api-reference-v2/catalog/list-gpu-types (its successor, with a free key),
https://docs.runpod.io/pods/pricing (storage, traffic, billing by the second).
Fields used of `gpuTypes[]`: `id`, `displayName`, `memoryInGb`, `secureCloud`, `communityCloud`, `securePrice`,
`communityPrice`, `secureSpotPrice`, `communitySpotPrice`, `clusterPrice` (all USD per GPU and hour), `minPodGpuCount`,
`maxGpuCountSecureCloud`, `maxGpuCountCommunityCloud`, `nodeGroupDatacenters[].id`, and `lowestPrice` for one cloud and
GPU count: `stockStatus` (High, Medium, Low, null), `minVcpu`, `minMemory` (GB), `minimumBidPrice`.

Traps: a cloud that does not offer a type still shows a price, 0 or 0.5, so the cloud's flag decides; where an answer
has no flags, exactly 0.5 is not taken. All of `lowestPrice` null means no stock, not an error. A bid equal to the
on-demand price is no spot offer; a spot price above on-demand means one of the two is wrong, and neither is taken. The
two clouds are two products. The catalogue of REST v2 has no spot prices. `oneWeekPrice` to `sixMonthPrice` are
documented with two different meanings and are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from catalog.names import resolve
from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.listing import as_list, as_object, positive, whole_items
from collectors.readers import changed, need, present_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder
from collectors.runpod_stock import CLOUDS, Cloud, availability_of, graphql_query, pod_sizes, stock_of

GRAPHQL_URL = "https://api.runpod.io/graphql"
CATALOG_URL = "https://api.runpod.io/v2/catalog/gpus?include=AVAILABILITY&product=POD"
PRICING_URL = "https://docs.runpod.io/pods/pricing.md"
PLACEHOLDER = Decimal("0.5")
# A few per cent are the market; more is two figures in each other's place.
SWAP_MARGIN = Decimal("1.1")

_DISK_PRICE = re.compile(r"disk volumes?\W.{0,200}?\$([\d.]+) per GB per month on running", re.IGNORECASE)
_FREE_TRAFFIC = re.compile(r"no additional fees for data ingress or egress", re.IGNORECASE)


class Runpod(Collector):
    """RunPod: prices per GPU times the GPU counts that a type is rented in."""

    provider = "runpod"
    title = "RunPod"
    home_page = "https://www.runpod.io/pricing"
    sources = (GRAPHQL_URL, CATALOG_URL, PRICING_URL)
    kind = "api"
    cadence_s: ClassVar[int] = 30 * MINUTE_S
    max_age_s: ClassVar[int] = 2 * HOUR_S
    billing_increment_s = 1
    terms_note = "An hour of credit is needed to start. Storage of stopped pods is billed at twice the running rate."
    optional_key_env: ClassVar[tuple[str, ...]] = ("RUNPOD_API_KEY",)
    expect = Expect(min_rows=40, gpus=frozenset({"h100-sxm-80gb", "rtx-4090-24gb", "a100-sxm-80gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """GraphQL for everybody; the REST catalogue beside it where there is a key."""
        body = json.dumps({"query": graphql_query()}).encode()
        yield Request(GRAPHQL_URL, "POST", {"content-type": "application/json"}, body, "gpu-types")
        key = keys.get("RUNPOD_API_KEY", "")
        if key:
            yield Request(CATALOG_URL, headers={"authorization": f"Bearer {key}"}, name="catalog-gpus")
        yield Request(PRICING_URL, name="pricing", optional=True)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """Offers per GPU type, cloud, GPU count and purchase option; the REST catalogue adds what GraphQL lacks."""
        rows = RowBuilder(self)
        catalogs: list[tuple[Document, Any]] = []
        known: set[tuple[str, Cloud]] = set()
        for document in documents:
            if document.url.split("?")[0].endswith(("pricing.md", "/pods/pricing")):
                _add_surcharges(rows, document)
                continue
            answer = read_json(document)
            if isinstance(answer, Mapping) and "gpus" in answer:
                catalogs.append((document, answer))
                continue
            for gpu in _gpu_types(rows, document, answer):
                known |= {(str(gpu["id"]), cloud) for cloud in CLOUDS if _add_cloud(rows, document, gpu, cloud)}
                _add_cluster(rows, document, gpu)
        for document, answer in catalogs:
            for gpu in _listed(rows, document, need(document, answer, "gpus", kind=list), "gpus", "price"):
                _add_from_catalog(rows, document, gpu, known)
        return rows.finish()


def _gpu_types(rows: RowBuilder, document: Document, answer: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(answer, Mapping) and answer.get("errors") and not answer.get("data"):
        changed(document, "data/gpuTypes", f"the query was refused: {str(answer['errors'])[:200]}")
    types = need(document, answer, "data", "gpuTypes", kind=list)
    present_somewhere(document, types, "data/gpuTypes", "securePrice", "communityPrice")
    yield from _listed(rows, document, types, "data/gpuTypes")


def _listed(
    rows: RowBuilder, document: Document, items: Sequence[Any], path: str, *fields: str
) -> Iterator[Mapping[str, Any]]:
    """The objects of a list that have an id and the other fields; the rest is rejected."""
    for item in whole_items(rows, document, items, path, "id", *fields):
        if isinstance(item["id"], str) and item["id"].strip():
            yield item
        else:
            rows.reject("gpu_unnamed", "id", item["id"])


def _add_cloud(rows: RowBuilder, document: Document, gpu: Mapping[str, Any], cloud: Cloud) -> bool:
    """Add the pods of one type in one cloud; True where the type is offered there."""
    full, spot = decimal_of(gpu.get(f"{cloud}Price")), decimal_of(gpu.get(f"{cloud}SpotPrice"))
    flag = gpu.get(f"{cloud}Cloud")
    if flag is False or (flag is None and not full):
        return False
    if flag is None and full == PLACEHOLDER:
        rows.reject("placeholder_price", f"{cloud}Price", full, sample=gpu["id"])
        return False
    if full is None or full <= 0:
        rows.reject("not_a_price", f"{cloud}Price", gpu.get(f"{cloud}Price"), sample=gpu["id"])
        return False
    if spot is not None and spot > full * SWAP_MARGIN:
        rows.reject("prices_look_swapped", f"{cloud}SpotPrice", f"{spot} on spot, {full} on demand", sample=gpu["id"])
        return False
    if spot is None or spot <= 0:
        spot = decimal_of((stock_of(gpu, cloud, 1) or {}).get("minimumBidPrice"))
    for count in pod_sizes(gpu, cloud):
        _add_pod(rows, document, gpu, cloud, count, "on_demand", full)
        if spot is not None and 0 < spot < full:
            _add_pod(rows, document, gpu, cloud, count, "spot", spot)
    return True


def _add_pod(
    rows: RowBuilder, document: Document, gpu: Mapping[str, Any], tenancy: str, count: int, option: str, price: Decimal
) -> None:
    cloud: Cloud = "secure" if tenancy == "secure" else "community"
    stock = {"availability": gpu["availability"]} if "availability" in gpu else stock_of(gpu, cloud, count)
    if "price" in gpu and count > 1:
        stock = None  # the catalogue was asked for one GPU
    _add(
        rows, document, gpu, count, price,
        sku=f"{gpu['id']} x{count}",
        purchase_option=option,
        tenancy=tenancy,
        availability="unknown" if tenancy == "serverless" else availability_of(stock),
        vcpu_count=positive((stock or {}).get("minVcpu")) if count == 1 or f"{cloud}{count}" in gpu else None,
        memory_gib=positive((stock or {}).get("minMemory")) if count == 1 or f"{cloud}{count}" in gpu else None,
    )  # fmt: skip


def _add(
    rows: RowBuilder, document: Document, gpu: Mapping[str, Any], count: int, price: object, **fields: Any
) -> None:
    memory = positive(gpu.get("memoryInGb", gpu.get("memory")))
    rows.offer(
        document,
        GpuRead(label=_label(gpu), count=count, memory_gb=memory),
        instance_type=f"{count}x {gpu['id']}",
        price=price,
        price_scope="gpu",
        quote_kind="api_quote",
        **fields,
    )


def _label(gpu: Mapping[str, Any]) -> str:
    """The id, or the display name where only that names one product ("NVIDIA H200" is "H200 SXM")."""
    names = [str(gpu["id"]), str(gpu.get("displayName") or gpu.get("name") or "")]
    found = [(name, resolve(name)) for name in names if name]
    exact = [name for name, product in found if product.gpu and not product.gpu_ambiguous]
    return exact[0] if exact else next((name for name, product in found if product.gpu), names[0])


def _add_cluster(rows: RowBuilder, document: Document, gpu: Mapping[str, Any]) -> None:
    """Add the node of an instant cluster in each data centre that has them."""
    price = decimal_of(gpu.get("clusterPrice"))
    places = [place for place in as_list(gpu.get("nodeGroupDatacenters")) if isinstance(place, Mapping)]
    if price is None or price <= 0 or not places:
        return
    count = pod_sizes(gpu, "secure")[-1:]
    stock = stock_of(gpu, "secure", count[0]) if count else None
    if not stock or stock.get("minVcpu") is None:
        rows.reject("no_stock", "lowestPrice", stock, sample=f"{gpu['id']} cluster")
        return
    for place in places:
        _add(
            rows, document, gpu, count[0], price,
            sku=f"{gpu['id']} x{count[0]} cluster",
            purchase_option="on_demand",
            tenancy="secure",
            region=str(place.get("id") or ""),
            network_option="instant_cluster",
            availability=availability_of(stock),
            vcpu_count=positive(stock.get("minVcpu")),
            memory_gib=positive(stock.get("minMemory")),
        )  # fmt: skip


def _add_from_catalog(
    rows: RowBuilder, document: Document, gpu: Mapping[str, Any], known: set[tuple[str, Cloud]]
) -> None:
    prices = as_object(gpu.get("price"))
    for cloud in CLOUDS:
        price = decimal_of(prices.get(cloud))
        if gpu.get(cloud) is not True or (str(gpu["id"]), cloud) in known:
            continue
        if price is None or price <= 0:
            rows.reject("not_a_price", f"price.{cloud}", prices.get(cloud), sample=gpu["id"])
            continue
        for count in pod_sizes(gpu, cloud):
            _add_pod(rows, document, gpu, cloud, count, "on_demand", price)
    serverless = decimal_of(prices.get("serverless"))
    if serverless is not None and serverless > 0:
        _add_pod(rows, document, gpu, "serverless", 1, "on_demand", serverless)


def _add_surcharges(rows: RowBuilder, document: Document) -> None:
    """Storage and traffic of the pricing page; a sentence that is not found is noted and changes no offer."""
    text = " ".join(re.sub(r"<[^>]+>|[\\*]", " ", document.text()).split())
    disk = _DISK_PRICE.search(text)
    if disk:
        rows.surcharge(document, "block_storage", disk.group(1), "gb_month")
    if _FREE_TRAFFIC.search(text):
        rows.surcharge(document, "egress", 0, "gb")
        rows.surcharge(document, "ingress", 0, "gb")
    if not disk:
        rows.note(f"no price of disk volumes found in {document.url}")
