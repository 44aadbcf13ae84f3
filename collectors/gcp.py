"""Google Cloud: the accelerator price page without a key, and the Billing Catalog API with one.

Page: https://cloud.google.com/products/compute/pricing/accelerator-optimized, one region (us-central1), columns
Machine type | GPU | Components | Price | DWS Flex-start | DWS Calendar Mode | Current Spot | CUD 1 and 3 years; a cell
reads "$88.49 / 1 hour" for the whole machine or "N/A".
API: https://docs.cloud.google.com/billing/docs/reference/rest/v1/services.skus/list, components per region
(`gcp_skus`), added up per machine type (`gcp_machines`); a free API key is enough. Where both price the same, the
API's sum is kept.

Traps: class names are generated and the Price header carries a tooltip, so columns are found by their words; group rows
hold a name only; cells may be malformed ("$2 .0000/ 1 hour"); the page prints 275 GiB for a disk of 375; a machine with
a list price is not always sold on demand; host, GPU and bundled disks are separate SKUs, and a machine with one of them
missing has no price; one missing SKU must not stop the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from catalog.names import resolve
from catalog.types import Document, PriceScope, PriceUnit
from catalog.units import read_price
from collectors.contract import DAY_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.gcp_extras import add_extras
from collectors.gcp_machines import Machine, machine, machines
from collectors.gcp_page import CALENDAR, COMMIT_1, COMMIT_3, ON_DEMAND, SPOT, Way, machine_lines
from collectors.gcp_skus import Component, Model, in_force, read_sku, unit_price
from collectors.listing import as_object
from collectors.readers import changed, need, need_somewhere, present_somewhere, read_json
from collectors.rows import RowBuilder

PAGE = "https://cloud.google.com/products/compute/pricing/accelerator-optimized"
API = "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus"
KEY = "GCP_BILLING_API_KEY"
PAGE_REGION = "us-central1"


_MODEL_WAYS: Mapping[Model, Way] = {
    "on_demand": ON_DEMAND,
    "spot": SPOT,
    "calendar": CALENDAR,
    "commit_1y": COMMIT_1,
    "commit_3y": COMMIT_3,
}


@dataclass(slots=True)
class _Components:
    """Prices per hour by part, name, model and region, with the document that holds the GPU's."""

    prices: dict[tuple[str, str, Model, str], Component] = field(default_factory=dict)
    documents: dict[tuple[str, Model, str], Document] = field(default_factory=dict)
    ambiguous: set[tuple[str, str, Model, str]] = field(default_factory=set)

    def add(self, document: Document, component: Component) -> None:
        for region in component.regions:
            key = (component.part, component.name, component.model, region)
            if self.prices.setdefault(key, component).hourly != component.hourly:
                self.ambiguous.add(key)
            if component.part == "gpu":
                self.documents[component.name, component.model, region] = document

    def drop_ambiguous(self) -> list[tuple[str, str, Model, str]]:
        for key in self.ambiguous:
            del self.prices[key]
        return sorted(self.ambiguous)

    def of(self, part: str, name: str, model: Model, region: str) -> Component | None:
        return self.prices.get((part, name, model, region))


class Gcp(Collector):
    """Google Compute Engine machines with GPUs: on demand, spot, flex-start, calendar and commitments."""

    provider = "gcp"
    title = "Google Cloud"
    home_page = "https://cloud.google.com/compute/gpus-pricing"
    sources = (PAGE, API)
    kind = "page"
    cadence_s: ClassVar[int] = DAY_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    billing_increment_s = 1
    minimum_charge_s = MINUTE_S
    optional_key_env = (KEY,)
    terms_note = (
        "Without a key the price page of one region; with a free API key every region from the Billing Catalog."
    )
    expect = Expect(min_rows=20, gpus=frozenset({"h100-sxm-80gb", "a100-sxm-40gb", "h200-sxm-141gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The page, and with a key the first page of the SKU list."""
        yield Request(PAGE, name="accelerator-optimized")
        if keys.get(KEY):
            yield Request(_skus_url(""), headers={"X-Goog-Api-Key": keys[KEY]}, name="skus-1")

    def follow(self, document: Document) -> Iterable[Request]:
        """The next page of the SKU list while a token is given."""
        if not _is_skus(document):
            return []
        token = need(document, read_json(document), kind=dict).get("nextPageToken")
        return [Request(_skus_url(str(token)), name=f"skus-{str(token)[:12]}")] if token else []

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per machine type, region and way of buying that is really sold."""
        rows = RowBuilder(self)
        known: set[tuple[str, str, Way]] = set()
        skus = [d for d in documents if _is_skus(d)]
        if skus:
            _add_composed(rows, _components(rows, skus), known)
        for document in documents:
            if not _is_skus(document):
                _add_page(rows, document, known)
        result = rows.finish()
        if not result.rows and not result.rejections:
            raise LayoutChanged(self.provider, "skus[] or table", "no GPU machine in any document")
        return result


def _skus_url(token: str) -> str:
    query = {"currencyCode": "USD", "pageSize": "5000", **({"pageToken": token} if token else {})}
    return f"{API}?{urlencode(query)}"


def _is_skus(document: Document) -> bool:
    return (urlsplit(document.url).hostname or "").startswith("cloudbilling.")


def _components(rows: RowBuilder, documents: Sequence[Document]) -> _Components:
    """Every component price; one that two SKUs give differently has none."""
    found = _Components()
    asked = {dict(parse_qsl(urlsplit(d.url).query)).get("pageToken", "") for d in documents}
    named: set[object] = set()
    for document in documents:
        content = read_json(document)
        skus = need(document, content, "skus", kind=list)
        if not skus:
            changed(document, "skus[]", f"empty at {document.url}")
        token = content.get("nextPageToken")
        if token and token not in asked:
            rows.incomplete("the next page of the SKU list was not fetched")
        elif token and token in named:
            rows.incomplete("two pages of the SKU list name the same page as the next one")
        named.add(token)
        skus = [in_force(sku, document.fetched_at) if isinstance(sku, Mapping) else sku for sku in skus]
        # One SKU without them is rejected; a key that no SKU has is another layout.
        present_somewhere(document, map(unit_price, skus), "skus[].unitPrice", "units", "nanos")
        need_somewhere(document, skus, "description", "category/usageType")
        for sku in skus:
            if not _is_described(sku):
                rows.reject("field_missing", "description, category.usageType", "", sample=sku)
        skus = [sku for sku in skus if _is_described(sku)]
        for sku in skus:
            component = read_sku(sku)
            if component is not None and component.hourly is None:
                rows.reject("component_price", "pricingExpression", component.unit, sample=sku["description"])
            elif component is not None:
                found.add(document, component)
        add_extras(rows, document, skus)
    for part, name, model, region in found.drop_ambiguous():
        rows.reject("price_ambiguous", f"{part} {name}".strip(), model, sample=region)
    if not found.documents:
        changed(documents[0], "skus[].category.resourceGroup", "no GPU among the SKUs")
    return found


def _is_described(sku: object) -> bool:
    category = sku.get("category") if isinstance(sku, Mapping) else None
    stated = (sku.get("description"), as_object(category).get("usageType")) if isinstance(sku, Mapping) else ()
    return bool(stated) and all(isinstance(text, str) for text in stated)


def _add_composed(rows: RowBuilder, found: _Components, known: set[tuple[str, str, Way]]) -> None:
    places: dict[str, list[tuple[Model, str]]] = defaultdict(list)
    for name, model, region in found.documents:
        places[name].append((model, region))
    for name in sorted(set(places) - {m.gpu_sku for m in machines()}):
        if resolve(name).gpu is None:
            rows.unmapped(name)
        else:
            rows.note(f"no machine type is known for the GPU of the SKU {name}")
    missing: dict[tuple[str, str, Model], list[str]] = defaultdict(list)
    for shape in machines():
        for model, region in places.get(shape.gpu_sku, []):
            way = _MODEL_WAYS[model]
            if way == ON_DEMAND and not shape.sold_on_demand:
                continue
            priced = _sum(found, shape, model, region)
            if isinstance(priced, str):
                missing[shape.gpu_sku, priced, model].append(region)
                continue
            _offer(rows, found.documents[shape.gpu_sku, model, region], shape, way, region, priced, scope="component")
            known.add((shape.sku, region, way))
    for (gpu, part, model), regions in missing.items():
        rows.reject("component_missing", part, model, sample=f"{gpu} in {', '.join(sorted(set(regions)))}")


def _sum(found: _Components, shape: Machine, model: Model, region: str) -> tuple[Decimal, str] | str:
    """The machine's price per hour and currency, or the name of the component that has no price."""
    parts: list[tuple[str, str, Decimal]] = [("gpu", shape.gpu_sku, Decimal(shape.gpu.count or 1))]
    if shape.host_sku:
        parts += [
            ("core", shape.host_sku, Decimal(shape.vcpu_count)),
            ("ram", shape.host_sku, Decimal(str(shape.memory_gib))),
        ]
    if shape.host_sku and shape.local_ssd_gib:
        parts.append(("ssd", "", Decimal(shape.local_ssd_gib)))
    total, currencies = Decimal(0), set()
    for part, name, quantity in parts:
        component = found.of(part, name, model, region)
        if component is None or component.hourly is None:
            return f"{part} {name}".strip()
        total += quantity * component.hourly
        currencies.add(component.currency)
    return (total, currencies.pop()) if len(currencies) == 1 else "currency"


def _add_page(rows: RowBuilder, document: Document, known: set[tuple[str, str, Way]]) -> None:
    for line in machine_lines(document):
        shape = machine(line.machine_type)
        if shape is None:
            rows.reject("type_unknown", "Machine type", line.machine_type)
            rows.unmapped(line.machine_type)
            continue
        if line.gpu_count != shape.gpu.count:
            rows.reject("gpu_count", "Components", line.gpu_count, sample=line.machine_type)
            continue
        if line.gpu_label and shape.gpu.gpu not in resolve(line.gpu_label).gpu_candidates:
            rows.reject("gpu_mismatch", "GPU", line.gpu_label, sample=f"{line.machine_type}: {shape.gpu.gpu}")
            continue
        for way, text in line.cells:
            if (way == ON_DEMAND and not shape.sold_on_demand) or (shape.sku, PAGE_REGION, way) in known:
                continue
            price = read_price(text)
            if price is None or price.unit is None or price.currency is None:
                rows.reject("not_a_price", "price", text, sample=f"{line.machine_type} {way.option}")
                continue
            _offer(rows, document, shape, way, PAGE_REGION, (price.amount, price.currency), unit=price.unit)


def _offer(
    rows: RowBuilder,
    document: Document,
    shape: Machine,
    way: Way,
    region: str,
    priced: tuple[Decimal, str],
    *,
    unit: PriceUnit = "hour",
    scope: PriceScope = "instance",
) -> None:
    amount, currency = priced
    rows.offer(
        document,
        shape.gpu,
        sku=shape.sku + way.suffix,
        instance_type=shape.machine_type,
        price=amount,
        price_unit=unit,
        price_scope=scope,
        currency=currency,
        quote_kind="market" if way.option == "spot" else "list_price",
        region=region,
        purchase_option=way.option,
        commitment_days=way.days,
        **shape.fields,
    )
