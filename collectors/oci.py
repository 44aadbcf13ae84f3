"""Oracle Cloud Infrastructure: the public price list, and the cost estimator's list of shapes.

Documentation: https://docs.oracle.com/en-us/iaas/Content/Billing/Tasks/signingup_topic-Estimating_Costs.htm#accessing_list_pricing
Price list fields used: `items[]` with `partNumber`, `displayName`, `metricName` ("GPU Per Hour"), `serviceCategory`
("Compute - GPU…"), `currencyCodeLocalizations[].prices[]` (`model`, `value` in USD per GPU-hour, `rangeMin`).
Shape fields used (undocumented, https://www.oracle.com/a/ocom/docs/cloudestimator2/data/shapes.json): `name`, `hidden`,
`status`, `gpuQty`, `bundleMemoryQty` (GB), `allowPreemptible`, `products[]` (`partNumber`, `qty` OCPU, `type.value`).

Traps: GPU shapes carry their price on the product typed "ocpu", per GPU and not per OCPU; CPU and memory are included.
`gpuMemoryQty` is the total for most shapes and per GPU for others, so GPU memory comes from the GPU itself. A10 and
A100 shapes are marked as Arm and are x86. Names may carry a suffix ("BM.GPU.GB200.4 (NVL72)") that the compute API does
not know. OCPU counts and memory are null for the newest shapes; `data/oci-shapes.csv` fills them, and stands in for the
whole shape list where that cannot be had. Cloud@Customer, VMware and Roving Edge rows are other products. Prices are
the same in every commercial region, so offers name none; whether a region has capacity is not public.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar

from catalog.types import Document
from collectors.contract import DAY_S, HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.listing import as_object, positive, whole_number
from collectors.oci_extras import add_extras, dollar_steps
from collectors.readers import changed, need, present_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder
from collectors.specs import spec_rows

PRICES_URL = "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/?currencyCode=USD"
SHAPES_URL = "https://www.oracle.com/a/ocom/docs/cloudestimator2/data/shapes.json"
# https://docs.oracle.com/en-us/iaas/Content/Compute/Concepts/preemptible.htm: half the price of the regular instance.
PREEMPTIBLE_SHARE = Decimal("0.5")
# Oracle, "Announcing Per-Second Billing for Compute": at least a minute of a virtual machine, an hour of bare metal;
# https://the-report.cloud/oracle-announcing-per-second-billing-for-compute-and-autonomous-database
_MINIMUM_S = {"VM": MINUTE_S, "BM": HOUR_S}
_SHAPE_NAME = re.compile(r"^(VM|BM)\.(GPU[\w.-]*?)(?:\.(\d+))?$")
_COMPANY_PREFIX = re.compile(r"^(?:oci|oracle cloud infrastructure)\s*-\s*", re.IGNORECASE)


class Oci(Collector):
    """Oracle Cloud Infrastructure: on-demand and preemptible GPU shapes at list price."""

    provider = "oci"
    title = "Oracle Cloud Infrastructure"
    home_page = "https://www.oracle.com/cloud/price-list/"
    sources = (PRICES_URL, SHAPES_URL)
    kind = "api"
    cadence_s: ClassVar[int] = DAY_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    billing_increment_s = 1
    terms_note = (
        "List prices before tax, the same in every commercial region. Traffic is priced for North America and Europe, "
        "block volumes without performance units. Capacity per region is not public."
    )
    expect = Expect(min_rows=12, gpus=frozenset({"h100-sxm-80gb", "a100-sxm-80gb", "a10-24gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The price list and the shape list."""
        del keys
        yield Request(PRICES_URL, name="products")
        yield Request(SHAPES_URL, name="shapes")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One on-demand offer per GPU shape, and a preemptible one where the shape allows it."""
        rows = RowBuilder(self)
        prices: dict[str, _Price] = {}
        shapes: list[_Shape] = []
        shape_lists = 0
        for document in documents:
            items = need(document, read_json(document), "items", kind=list)
            if not items:
                changed(document, "items", f"empty list in {document.url}")
            if any(isinstance(item, Mapping) and "products" in item for item in items):
                shape_lists += 1
                present_somewhere(document, items, "items", "name", "status", "hidden", "products")
                shapes += [shape for item in items if (shape := _shape(rows, document, item)) is not None]
            else:
                prices |= _prices(document, items)
                add_extras(rows, document, items)
        if not any(price.usd_gpu_hour for price in prices.values()):
            changed(documents[0], "items/currencyCodeLocalizations", "no GPU price in USD; was the price list fetched?")
        if not shapes:
            if shape_lists:
                rows.incomplete("the shape list holds no GPU shape; the built-in table of shapes stands in")
            else:
                rows.note("without the shape list the built-in table of shapes is used")
            shapes = list(_table_shapes(prices))
        _add_all(rows, shapes, prices)
        if not rows.row_count:
            changed(documents[0], "products/partNumber", "no shape names a part that the price list prices")
        return rows.finish()


@dataclass(frozen=True, slots=True)
class _Price:
    """US dollars per GPU-hour of one part number; None where the list shows no usable price."""

    part_number: str
    label: str
    usd_gpu_hour: Decimal | None
    document: Document


@dataclass(frozen=True, slots=True)
class _Shape:
    """One GPU shape; empty fields are filled from the table."""

    name: str
    gpu_count: int | None
    part_number: str
    preemptible: bool
    ocpu_count: float | None
    memory_gib: float | None
    gpu_memory_gb: float | None


def _prices(document: Document, items: Sequence[Any]) -> dict[str, _Price]:
    """Every GPU price of a price list by part number, without an amount where the row shows no usable one."""
    found: dict[str, _Price] = {}
    for item in items:
        if not isinstance(item, Mapping) or not _is_gpu_hour(item):
            continue
        part, name = str(item.get("partNumber")), str(item.get("displayName") or "")
        found[part] = _Price(part, _label(name), _pay_as_you_go(item), document)
    if items and not found:
        changed(document, "items/metricName='GPU Per Hour'")
    return found


def _is_gpu_hour(item: Mapping[str, Any]) -> bool:
    if "metricName" in item:
        category = str(item.get("serviceCategory") or "")
        return item["metricName"] == "GPU Per Hour" and category.startswith("Compute - GPU")
    # The estimator's own product list has neither metric nor category; shapes name the parts they use.
    return item.get("billingModel") == "UCM" and item.get("pricetype") == "HOUR"


def _pay_as_you_go(item: Mapping[str, Any]) -> Decimal | None:
    """The first positive pay-as-you-go price in dollars, by quantity."""
    return next((amount for _, amount in dollar_steps(item) if amount > 0), None)


def _label(display_name: str) -> str:
    """The part of a display name that tells products apart: "OCI- Compute  - GPU - H100" is "GPU - H100"."""
    squeezed = re.sub(r"\s*-\s+", " - ", " ".join(display_name.split()))
    return _COMPANY_PREFIX.sub("", squeezed).removeprefix("Compute - ").strip()


def _shape(rows: RowBuilder, document: Document, item: Any) -> _Shape | None:
    """A GPU shape that is offered, or None for CPU shapes, hidden or retired ones and those without their parts."""
    if not isinstance(item, Mapping) or item.get("hidden") or str(item.get("status") or "ACTIVE") != "ACTIVE":
        return None
    name = re.sub(r"\s*\(.*\)\s*$", "", need(document, item, "name", kind=str)).strip()
    if _SHAPE_NAME.match(name) is None:
        return None
    # Without its status or its mark a shape may be retired or hidden.
    for field, kind in (("products", list), ("status", str), ("hidden", bool)):
        if not isinstance(item.get(field), kind):
            rows.reject("field_missing", field, item.get(field), sample=name)
            return None
    priced = [
        product
        for product in item["products"]
        if isinstance(product, Mapping) and as_object(product.get("type")).get("value") in ("ocpu", "gpu")
    ]
    count, total = whole_number(item.get("gpuQty")), positive(item.get("gpuMemoryQty"))
    return _Shape(
        name=name,
        gpu_count=count or None,
        part_number=str(priced[0].get("partNumber")) if priced else "",
        preemptible=item.get("allowPreemptible") is True,
        ocpu_count=positive(priced[0].get("qty")) if priced else None,
        memory_gib=positive(item.get("bundleMemoryQty")),
        gpu_memory_gb=total / count if total and count else None,
    )


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    return {row["shape"]: row for row in spec_rows("oci-shapes.csv")}


def _table_shapes(prices: Mapping[str, _Price]) -> Iterator[_Shape]:
    parts = {price.label.casefold(): price.part_number for price in prices.values()}
    for name, row in _table().items():
        part = parts.get(row["price_label"].casefold())
        if part is not None:
            yield _Shape(name, int(row["gpu_count"]), part, row["preemptible"] == "true", None, None, None)


def _add_all(rows: RowBuilder, shapes: Sequence[_Shape], prices: Mapping[str, _Price]) -> None:
    used = set()
    for shape in shapes:
        price = prices.get(shape.part_number)
        used.add(shape.part_number)
        if price is None:
            rows.reject("price_missing", "partNumber", shape.part_number, sample=shape.name)
        elif price.usd_gpu_hour is None:
            rows.reject("not_a_price", "currencyCodeLocalizations", shape.part_number, sample=shape.name)
        else:
            _add(rows, shape, price, "on_demand", price.usd_gpu_hour)
            if shape.preemptible:
                _add(rows, shape, price, "spot", price.usd_gpu_hour * PREEMPTIBLE_SHARE)
    for part, price in prices.items():
        # The estimator's own product list has no names; what no shape uses there is CPU time and disks.
        if part not in used and price.label:
            rows.reject("no_shape", "partNumber", part, sample=f"{price.label}: a price that no known shape uses")


def _add(rows: RowBuilder, shape: _Shape, price: _Price, purchase_option: str, usd_gpu_hour: Decimal) -> None:
    matched = _SHAPE_NAME.match(shape.name)
    assert matched is not None
    kind, token, size = matched.groups()
    facts = _facts(shape.name, token)
    same_shape = facts if facts.get("shape") == shape.name else {}
    count = shape.gpu_count or (int(size) if size else None)
    arm = token.startswith(("GPU.GB", "GPU.GH"))
    vcpus = shape.ocpu_count * (1 if arm else 2) if shape.ocpu_count else _number(same_shape.get("vcpu_count"))
    rows.offer(
        price.document,
        GpuRead(
            label=token.removeprefix("GPU").removeprefix("."),
            gpu=facts.get("gpu"),
            count=count,
            memory_gb=None if facts else shape.gpu_memory_gb,
        ),
        sku=shape.name,
        instance_type=shape.name,
        price=usd_gpu_hour,
        price_scope="gpu",
        quote_kind="derived" if purchase_option == "spot" else "list_price",
        purchase_option=purchase_option,
        tenancy="bare_metal" if kind == "BM" else "vm",
        vcpu_count=vcpus,
        memory_gib=shape.memory_gib or _number(same_shape.get("memory_gib")),
        cpu_arch="arm64" if arm else "x86_64",
        gpu_interconnect=same_shape.get("gpu_interconnect") or "unknown",
        rdma=True if same_shape.get("rdma") == "true" else None,
        minimum_charge_s=_MINIMUM_S[kind],
    )


def gpu_of(shape: str) -> GpuRead | None:
    """The GPUs of a shape in the built-in table, or None where it does not hold the shape."""
    facts = _table().get(shape)
    return GpuRead(gpu=facts["gpu"], count=int(facts["gpu_count"])) if facts else None


def _facts(name: str, token: str) -> Mapping[str, str]:
    """The table's row of a shape, or of another size of the same shape family."""
    table = _table()
    family = (row for shape, row in table.items() if (m := _SHAPE_NAME.match(shape)) and m.group(2) == token)
    return table.get(name) or next(family, {})


def _number(text: str | None) -> float | None:
    return float(text) if text else None
