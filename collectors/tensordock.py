"""TensorDock: virtual machines put together from a GPU and the vCPUs, memory and disk around it (needs a key).

Documentation: https://dashboard.tensordock.com/api/docs (`GET /api/v2/locations`).
Fields used of `data.locations[]`: `id`, `city`, `stateprovince`, `country`, and `gpus[]`: `v0Name` ("h100-sxm5-80gb"),
`displayName`, `max_count`, `price_per_hr` (USD per GPU), `resources.{max_vcpus,max_ram_gb,max_storage_gb}`,
`pricing.{per_vcpu_hr,per_gb_ram_hr,per_gb_storage_hr}` (USD).

Traps: the GPU's price alone rents nothing, so a price is that of a fixed bundle (per GPU 8 vCPUs and 32 GB of memory,
100 GB of disk per machine, less where the location has less) and says so in vcpu_count, memory_gib and
local_storage_gb; without the component prices there is no offer. Without a key the list is empty with status 200 since
July 2026: an empty list is a failure, not a lack of supply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import HOURS_PER_MONTH, decimal_of
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.countries import country_code
from collectors.listing import as_list, as_object, whole_items, whole_number
from collectors.readers import need, present_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder

URL = "https://dashboard.tensordock.com/api/v2/locations"
SIZES = (1, 2, 4, 8)
VCPUS_PER_GPU = Decimal(8)
MEMORY_GB_PER_GPU = Decimal(32)
DISK_GB = Decimal(100)
COMPONENTS = ("per_vcpu_hr", "per_gb_ram_hr", "per_gb_storage_hr")


class Tensordock(Collector):
    """TensorDock: on-demand machines of a fixed bundle per GPU."""

    provider = "tensordock"
    title = "TensorDock"
    home_page = "https://www.tensordock.com/cloud-gpus"
    sources = (URL,)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    billing_increment_s = 1
    terms_note = "Prices are for 8 vCPUs and 32 GB per GPU and 100 GB of disk; other bundles cost accordingly."
    key_env: ClassVar[tuple[str, ...]] = ("TENSORDOCK_API_KEY",)
    expect = Expect(min_rows=4)

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """All locations."""
        yield Request(URL, headers={"authorization": f"Bearer {keys.get('TENSORDOCK_API_KEY', '')}"}, name="locations")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per location, GPU and size."""
        rows = RowBuilder(self)
        disk_priced: set[str] = set()
        for document in documents:
            listed = need(document, read_json(document), "data", "locations", kind=list)
            locations = whole_items(rows, document, listed, "data/locations", "id", "gpus")
            every = [gpu for location in locations for gpu in as_list(location["gpus"])]
            present_somewhere(document, every, "gpus", "price_per_hr", "max_count", "pricing")
            present_somewhere(document, (as_object(gpu).get("pricing") for gpu in every), "gpus/pricing", *COMPONENTS)
            for location in locations:
                for gpu in as_list(location["gpus"]):
                    _add_gpu(rows, document, location, gpu, disk_priced)
        return rows.finish()


def _add_gpu(
    rows: RowBuilder, document: Document, location: Mapping[str, Any], gpu: Any, disk_priced: set[str]
) -> None:
    if not isinstance(gpu, Mapping) or not {"price_per_hr", "max_count"} <= gpu.keys():
        rows.reject("field_missing", "price_per_hr", "", sample=gpu)
        return
    sku = f"{location['id']}/{gpu.get('v0Name') or gpu.get('displayName')}"
    resources, pricing = as_object(gpu.get("resources")), as_object(gpu.get("pricing"))
    each, (vcpu, memory, disk) = decimal_of(gpu["price_per_hr"]), (decimal_of(pricing.get(key)) for key in COMPONENTS)
    if each is None or each <= 0:
        rows.reject("not_a_price", "price_per_hr", gpu["price_per_hr"], sample=sku)
        return
    if vcpu is None or memory is None or disk is None:
        rows.reject("component_missing", "pricing", pricing, sample=sku)
        return
    place = ", ".join(str(location.get(key)) for key in ("city", "stateprovince") if location.get(key))
    if place not in disk_priced:
        disk_priced.add(place)
        rows.surcharge(
            document, "block_storage", disk * HOURS_PER_MONTH, "gb_month", region=place, included_quantity=DISK_GB
        )
    largest = whole_number(gpu["max_count"]) or 0
    for count in (size for size in SIZES if size <= max(largest, 1)):
        vcpus = _within(count * VCPUS_PER_GPU, resources.get("max_vcpus"))
        memory_gb = _within(count * MEMORY_GB_PER_GPU, resources.get("max_ram_gb"))
        disk_gb = _within(DISK_GB, resources.get("max_storage_gb"))
        rows.offer(
            document,
            GpuRead(label=str(gpu.get("displayName") or gpu.get("v0Name") or ""), count=count),
            sku=f"{sku} x{count}",
            instance_type=f"{count}x {gpu.get('v0Name') or gpu.get('displayName')}",
            price=count * each + vcpus * vcpu + memory_gb * memory + disk_gb * disk,
            price_scope="component",
            quote_kind="api_quote",
            availability="available" if largest >= count else "unavailable",
            region=place,
            country=country_code(str(location.get("country") or "")),
            vcpu_count=float(vcpus),
            memory_gib=float(memory_gb),
            local_storage_gb=float(disk_gb),
        )


def _within(wanted: Decimal, limit: object) -> Decimal:
    """The wanted amount, or the limit where that is stated and lower."""
    most = decimal_of(limit)
    return wanted if most is None or most <= 0 else min(wanted, most)
