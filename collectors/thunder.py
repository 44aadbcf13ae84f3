"""Thunder Compute: GPU instances in prototyping and production mode.

Documentation: https://www.thundercompute.com/docs (the API of the provider's own command line, port 8443, no key).
Documents: `/v1/pricing` = `pricing` with USD per instance and hour under "<gpu>_x<count>_<mode>", beside the component
prices `additional_vcpus` (per vCPU-hour), `disk_gb` (per GB-hour); `/v1/specs` = `specs` under the same keys
(`displayName`, `vramGB` per GPU, `gpuCount`, `mode`, `vcpuOptions`, `ramPerVCPUGiB`, `storageGB.min`); `/v1/status` =
`specs` with a stock word per key.

Traps: component prices stand among the instances' keys; the key "a100xl" is the A100 with 80 GB. The price covers the
smallest vCPU option and the first 100 GB of disk. More disk is a surcharge; more vCPUs are another shape, so their
price is no meter on the instance and is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from catalog.types import Availability, Document
from catalog.units import HOURS_PER_MONTH, decimal_of
from collectors.contract import HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.listing import as_list, as_object, positive, whole_number
from collectors.readers import changed, need, read_json
from collectors.rows import GpuRead, RowBuilder

BASE = "https://api.thundercompute.com:8443/v1"
INCLUDED_DISK_GB = Decimal(100)
"""https://www.thundercompute.com/pricing: 4 vCPU, 32 GB of memory and 100 GB of disk are in the price."""
_KEY = re.compile(r"^(?P<gpu>[a-z0-9]+)_x(?P<count>\d+)_(?P<mode>[a-z]+)$")
_LABELS = {"a6000": "RTX A6000", "a100xl": "A100 80GB", "a100": "A100 40GB", "t4": "T4"}
_STOCK: Mapping[str, Availability] = {
    "available": "available", "high": "available", "medium": "available", "low": "limited", "limited": "limited",
    "unavailable": "unavailable", "none": "unavailable", "out_of_stock": "unavailable", "sold_out": "unavailable",
}  # fmt: skip


class Thunder(Collector):
    """Thunder Compute: on-demand instances in USD."""

    provider = "thunder"
    title = "Thunder Compute"
    home_page = "https://www.thundercompute.com/pricing"
    sources = (f"{BASE}/pricing", f"{BASE}/specs", f"{BASE}/status")
    extra_hosts: ClassVar[tuple[str, ...]] = ("api.thundercompute.com:8443",)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    billing_increment_s = MINUTE_S
    terms_note = "Billed per minute while running; no traffic fee. Prototyping GPUs are attached over the network."
    expect = Expect(min_rows=4, gpus=frozenset({"rtx-a6000-48gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """Prices, specifications and stock."""
        del keys
        for name in ("pricing", "specs", "status"):
            yield Request(f"{BASE}/{name}", name=name)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per key; specifications and stock are added where their documents are there."""
        rows = RowBuilder(self)
        answers = [(document, read_json(document)) for document in documents]
        specs: dict[str, Any] = {}
        stock: dict[str, Any] = {}
        for document, answer in answers:
            if document.url.rstrip("/").endswith("/specs"):
                specs |= need(document, answer, "specs", kind=dict)
            elif document.url.rstrip("/").endswith("/status"):
                stock |= need(document, answer, "specs", kind=dict)
        for document, answer in answers:
            if document.url.rstrip("/").endswith("/pricing"):
                _add_prices(rows, document, need(document, answer, "pricing", kind=dict), specs, stock)
        return rows.finish()


def _add_prices(
    rows: RowBuilder, document: Document, prices: Mapping[str, Any], specs: Mapping[str, Any], stock: Mapping[str, Any]
) -> None:
    instances = {key: found for key in prices if (found := _KEY.match(key))}
    if not instances:
        changed(document, "pricing/<gpu>_x<count>_<mode>")
    for key, found in instances.items():
        _add(rows, document, key, found, prices[key], as_object(specs.get(key)), stock.get(key))
    disk = decimal_of(prices.get("disk_gb"))
    if disk is not None:
        rows.surcharge(
            document, "block_storage", disk * HOURS_PER_MONTH, "gb_month", included_quantity=INCLUDED_DISK_GB
        )


def _add(
    rows: RowBuilder,
    document: Document,
    key: str,
    found: re.Match[str],
    price: object,
    spec: Mapping[str, Any],
    stock: object,
) -> None:
    name = str(spec.get("displayName") or _LABELS.get(found["gpu"], found["gpu"].upper()))
    count = whole_number(spec.get("gpuCount")) or int(found["count"])
    options = [number for option in as_list(spec.get("vcpuOptions")) if (number := positive(option))]
    ram_per_vcpu = positive(spec.get("ramPerVCPUGiB"))
    rows.offer(
        document,
        GpuRead(label=name, count=count, memory_gb=positive(spec.get("vramGB"))),
        sku=key,
        instance_type=key,
        price=price,
        quote_kind="api_quote",
        availability="unknown" if stock is None else _STOCK.get(_word(stock), "unknown"),
        vcpu_count=min(options, default=None),
        memory_gib=min(options) * ram_per_vcpu if options and ram_per_vcpu else None,
        local_storage_gb=positive(as_object(spec.get("storageGB")).get("min")),
        gpu_interconnect="nvlink" if count > 1 and "nvlink" in name.casefold() else "unknown",
    )


def _word(stock: object) -> str:
    status = stock.get("status") if isinstance(stock, Mapping) else stock
    return str(status).strip().casefold().replace(" ", "_").replace("-", "_")
