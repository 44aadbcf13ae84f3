"""Voltage Park: bare-metal nodes per location and network, and presets of virtual machines, from its public API.

Documentation: https://cloud-api.voltagepark.com/api/v1/redoc (both lists answer without a token).
Fields used of `/bare-metal/locations` (`results`, `has_next`): `id`, `gpu_price_ethernet` and `gpu_price_infiniband`
(text, US dollars per GPU and hour; the list names no currency, the price page does), `gpu_count_*` (GPUs free now),
`specs_per_node` {`gpu_model`, `gpu_count`, `cpu_count`, `ram_gb`, `storage_gb`}. `/instant-deploy-presets/`, a bare
array: `resources` {`gpus.{model}.count`, `vcpu_count`, `ram_gb`, `storage_gb`}, `compute_rate_hourly` and
`storage_rate_hourly` (text, per virtual machine; both are billed), `location_ids_with_availability`.

Traps: one pair of prices is a choice of network, not of tier; bare metal is priced per GPU and sold by the node; prices
stand while every count is 0; location ids are bare UUIDs, so no country is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.types import Availability, Document
from catalog.units import decimal_of
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.listing import as_list, as_object, positive, whole_number
from collectors.readers import changed, need, need_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder

_API = "https://cloud-api.voltagepark.com/api/v1"
_NETWORKS = ("ethernet", "infiniband")


class VoltagePark(Collector):
    """Voltage Park: on-demand bare metal by network option, and virtual machines."""

    provider = "voltagepark"
    title = "Voltage Park"
    home_page = "https://www.voltagepark.com/pricing"
    sources = (f"{_API}/bare-metal/locations", f"{_API}/instant-deploy-presets/")
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 6 * HOUR_S
    terms_note = "Unauthenticated dashboard API; older documentation asks for two days in advance on bare metal."
    expect = Expect(min_rows=2, gpus=frozenset({"h100-sxm-80gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """Both lists."""
        del keys
        yield Request(self.sources[0], name="bare-metal-locations")
        yield Request(self.sources[1], name="instant-deploy-presets")

    def follow(self, document: Document) -> Iterable[Request]:
        """The next page of locations while `has_next` says there is one."""
        content = read_json(document)
        if isinstance(content, dict) and content.get("has_next"):
            offset = _offset(document) + len(need(document, content, "results", kind=list))
            yield Request(f"{self.sources[0]}?offset={offset}", name=f"bare-metal-locations-{offset}")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """Two offers per location, one per network, and one per preset and location that has it."""
        rows = RowBuilder(self)
        more, ends = False, set[int]()
        for document in documents:
            content = read_json(document)
            if content == []:
                rows.incomplete(f"{document.url} lists nothing")
                continue
            if isinstance(content, list):
                need_somewhere(document, content, "resources/gpus", "compute_rate_hourly", "storage_rate_hourly")
                for preset in content:
                    _add_preset(rows, document, preset if isinstance(preset, dict) else {})
                continue
            locations = need(document, content, "results", kind=list)
            prices = [f"gpu_price_{network}" for network in _NETWORKS]
            need_somewhere(document, locations, "id", "specs_per_node/gpu_model", *prices)
            for location in locations:
                _add_location(rows, document, location if isinstance(location, dict) else {})
            more = more or bool(content.get("has_next"))
            ends.add(0 if content.get("has_next") else 1)
        if more and 1 not in ends:
            rows.incomplete("bare-metal/locations: has_next is true and the next page was not fetched")
        if not rows.row_count:
            raise LayoutChanged(self.provider, "results/*/specs_per_node", "no node and no preset could be read")
        return rows.finish()


def _offset(document: Document) -> int:
    offset = parse_qs(urlsplit(document.url).query).get("offset", ["0"])[0]
    return int(offset) if offset.isdigit() else 0


def _add_location(rows: RowBuilder, document: Document, location: Mapping[str, Any]) -> None:
    specs = as_object(location.get("specs_per_node"))
    model, per_node = str(specs.get("gpu_model") or ""), whole_number(specs.get("gpu_count"))
    if not per_node:
        rows.reject("gpu_count", "specs_per_node.gpu_count", specs.get("gpu_count"), sample=location.get("id"))
        return
    for network in _NETWORKS:
        price, free = location.get(f"gpu_price_{network}"), whole_number(location.get(f"gpu_count_{network}"))
        if price is None:
            continue  # a location without this network
        rows.offer(
            document,
            GpuRead(label=model, count=per_node),
            sku=f"bare-metal-{model}-x{per_node}",
            instance_type=f"{model} x{per_node} bare metal",
            price=price,
            price_scope="gpu",
            quote_kind="api_quote",
            availability=_availability(None if free is None else free >= per_node),
            stock_count=None if free is None else free // per_node,
            region=str(location.get("id") or ""),
            tenancy="bare_metal",
            network_option=network,
            rdma=True if network == "infiniband" else None,
            **_shape(specs, "cpu_count"),
        )


def _add_preset(rows: RowBuilder, document: Document, preset: Mapping[str, Any]) -> None:
    resources = as_object(preset.get("resources"))
    gpus = resources.get("gpus")
    if not isinstance(gpus, dict) or len(gpus) != 1:
        rows.reject("gpu_ambiguous", "resources.gpus", gpus, sample=preset.get("id"))
        return
    [(model, held)] = gpus.items()
    count = whole_number(as_object(held).get("count"))
    compute, storage = decimal_of(preset.get("compute_rate_hourly")), decimal_of(preset.get("storage_rate_hourly"))
    if not count or compute is None or compute <= 0 or storage is None or storage < 0:
        rows.reject("not_a_price", "compute_rate_hourly", preset.get("compute_rate_hourly"), sample=preset.get("id"))
        return
    if "location_ids_with_availability" not in preset:
        changed(document, "location_ids_with_availability")
    places = [str(place) for place in as_list(preset["location_ids_with_availability"])]
    shape = _shape(resources, "vcpu_count")
    sku = f"vm-{model}-x{count}-{resources.get('vcpu_count')}c-{resources.get('ram_gb')}g"
    for place in places or [""]:
        rows.offer(
            document,
            GpuRead(label=str(model), count=count),
            sku=sku,
            instance_type=f"{model} x{count} VM",
            price=compute + storage,
            price_scope="component",
            quote_kind="api_quote",
            availability=_availability(bool(place)),
            region=place,
            tenancy="vm",
            **shape,
        )


def _availability(can_be_had: bool | None) -> Availability:
    return "unknown" if can_be_had is None else "available" if can_be_had else "unavailable"


def _shape(specs: Mapping[str, Any], cpu: str) -> dict[str, Any]:
    return {
        "vcpu_count": positive(specs.get(cpu)),
        "memory_gib": positive(specs.get("ram_gb")),
        "local_storage_gb": positive(specs.get("storage_gb")),
    }
