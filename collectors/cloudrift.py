"""CloudRift: virtual machines with consumer and workstation GPUs, per variant and data centre.

Documentation: https://cloudrift.ai/docs (POST /api/v1/instance-types/list, selector for virtual machines, no key).
Fields used: `data.instance_types[]` with `name`, `brand_short` and `variants[]`: `name`, `gpu_count`, `cpu_count`,
`logical_cpu_count`, `dram` and `disk` (bytes), `cost_per_hour` (US cents for the whole instance),
`available_nodes_per_dc` (free nodes), `nodes_per_dc` (installed nodes), `available_nodes`.

Traps: prices are cents; installed nodes are not free nodes; a variant without free nodes keeps its price. What is
rented is the variant ("rtx49-10c-kn.4": base name and GPU count), in a data centre.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import gib_from_bytes
from collectors.cents import check_cents, dollars
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.listing import as_list, positive, whole_items, whole_number
from collectors.readers import changed, need, read_json
from collectors.rows import GpuRead, RowBuilder

URL = "https://api.cloudrift.ai/api/v1/instance-types/list"
API_VERSION = "2025-03-21"


class Cloudrift(Collector):
    """CloudRift: on-demand virtual machines, with the free nodes of each data centre."""

    provider = "cloudrift"
    title = "CloudRift"
    home_page = "https://www.cloudrift.ai/pricing"
    sources = (URL,)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    terms_note = "Prices in US cents per instance and hour; the catalogue needs no key."
    expect = Expect(min_rows=5, gpus=frozenset({"rtx-4090-24gb", "rtx-5090-32gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The catalogue of virtual machines."""
        del keys
        selector = {"ByServiceAndLocation": {"services": ["vm"]}}
        body = json.dumps({"version": API_VERSION, "data": {"selector": selector}}).encode()
        yield Request(URL, "POST", {"content-type": "application/json"}, body, "instance-types")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per variant with GPUs and data centre."""
        rows = RowBuilder(self)
        for document in documents:
            types = need(document, read_json(document), "data", "instance_types", kind=list)
            variants = [
                (kind, variant)
                for kind in whole_items(rows, document, types, "data/instance_types", "variants")
                for variant in as_list(kind["variants"])
                if isinstance(variant, Mapping) and whole_number(variant.get("gpu_count"))
            ]
            if not variants:
                changed(document, "data/instance_types/variants", f"no variant with a GPU in {document.url}")
            if not any("cost_per_hour" in variant for _, variant in variants):
                changed(document, "variants/cost_per_hour")
            check_cents(
                document, "variants/cost_per_hour", ((v.get("cost_per_hour"), v["gpu_count"]) for _, v in variants)
            )
            for kind, variant in variants:
                _add_variant(rows, document, kind, variant)
        return rows.finish()


def _add_variant(rows: RowBuilder, document: Document, kind: Mapping[str, Any], variant: Mapping[str, Any]) -> None:
    free = _counts(variant.get("available_nodes_per_dc"))
    installed = _counts(variant.get("nodes_per_dc"))
    places = sorted({*free, *installed})
    name = str(variant.get("name") or kind.get("name"))
    count = int(variant["gpu_count"])
    stock_of = dict.fromkeys(places, 0) | free if free or "available_nodes_per_dc" in variant else {}
    total = whole_number(variant.get("available_nodes"))
    for place in places or [""]:
        nodes = stock_of.get(place) if place else total
        rows.offer(
            document,
            GpuRead(
                label=str(kind.get("brand_short") or kind.get("name") or ""),
                count=count,
                # For several GPUs it is not documented whether this is the sum.
                memory_gb=gib_from_bytes(vram) if count == 1 and (vram := positive(variant.get("vram"))) else None,
            ),
            sku=name,
            instance_type=name,
            price=dollars(variant.get("cost_per_hour")),
            quote_kind="api_quote",
            availability="unknown" if nodes is None else "available" if nodes > 0 else "unavailable",
            stock_count=nodes,
            region=place,
            country="US" if place.startswith("us-") else None,
            vcpu_count=positive(variant.get("logical_cpu_count") or variant.get("cpu_count")),
            memory_gib=gib_from_bytes(ram) if (ram := positive(variant.get("dram"))) else None,
            local_storage_gb=disk / 1e9 if (disk := positive(variant.get("disk"))) else None,
        )


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {}
    numbers = {str(place): whole_number(count) for place, count in value.items()}
    return {place: count for place, count in numbers.items() if count is not None}
