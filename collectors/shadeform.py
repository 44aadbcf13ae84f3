"""Shadeform: instances of many clouds at the clouds' own prices, with the stock of each region.

Documentation: https://docs.shadeform.ai/api-reference/instances/instances-types (`GET /v1/instances/types`; the
documented key is sent where there is one, the list also comes without).
Fields used of `instance_types[]`: `cloud`, `shade_instance_type`, `cloud_instance_type`, `hourly_price` (US cents for
the whole instance), `deployment_type` (vm, container, baremetal), `availability[]` (`region`, `available`,
`display_name` "US, Wichita, KS"), `boot_time.max_boot_in_sec`, and `configuration`: `gpu_type` ("A100_80G"),
`num_gpus`, `vram_per_gpu_in_gb`, `interconnect` ("pcie", "sxm5"), `nvlink`, `vcpus`, `memory_in_gb`, `storage_in_gb`.

Traps: prices are cents; one type stands for all its regions, some of them sold out; "A100" is the 40 GB card unless the
memory says otherwise. The provider of each row is the cloud below; Shadeform itself is named in `via`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog.types import Document
from collectors.cents import check_cents, dollars
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.countries import country_code, country_named
from collectors.listing import as_list, as_object, positive, whole_items, whole_number
from collectors.readers import need, present_somewhere, read_json
from collectors.resale import cloud_slug
from collectors.rows import GpuRead, RowBuilder

URL = "https://api.shadeform.ai/v1/instances/types"
_TENANCIES = {"baremetal": "bare_metal", "bare_metal": "bare_metal"}


class Shadeform(Collector):
    """Shadeform: on-demand instances of other clouds."""

    provider = "shadeform"
    title = "Shadeform"
    home_page = "https://www.shadeform.ai/instances"
    sources = (URL,)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    terms_note = "Resells other clouds at their direct price; stock is per region."
    optional_key_env: ClassVar[tuple[str, ...]] = ("SHADEFORM_API_KEY",)
    expect = Expect(min_rows=20, gpus=frozenset({"rtx-a6000-48gb", "h100-sxm-80gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """All instance types, sold-out ones included."""
        key = keys.get("SHADEFORM_API_KEY", "")
        yield Request(URL, headers={"x-api-key": key} if key else {}, name="instance-types")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per instance type and region."""
        rows = RowBuilder(self)
        for document in documents:
            listed = need(document, read_json(document), "instance_types", kind=list)
            types = whole_items(rows, document, listed, "instance_types", "cloud", "hourly_price", "configuration")
            check_cents(
                document, "instance_types/hourly_price",
                ((kind["hourly_price"], as_object(kind["configuration"]).get("num_gpus")) for kind in types),
            )  # fmt: skip
            shapes = [kind["configuration"] for kind in types]
            present_somewhere(document, shapes, "instance_types/configuration", "num_gpus", "gpu_type")
            for kind in types:
                _add_type(rows, document, kind)
        return rows.finish()


def _add_type(rows: RowBuilder, document: Document, kind: Mapping[str, Any]) -> None:
    shape = as_object(kind["configuration"])
    count = whole_number(shape.get("num_gpus"))
    if count is not None and count == 0:
        return  # a CPU instance
    if count is None:
        rows.reject("gpu_count", "num_gpus", shape.get("num_gpus"), sample=kind.get("shade_instance_type"))
        return
    places = [place for place in as_list(kind.get("availability")) if isinstance(place, Mapping)]
    own = str(kind.get("cloud_instance_type") or kind.get("shade_instance_type") or "")
    boot = whole_number(as_object(kind.get("boot_time")).get("max_boot_in_sec"))
    linked = shape.get("nvlink")
    interconnect = "nvlink" if linked is True else "pcie" if linked is False else "unknown"
    for place in places or [{}]:
        region, available = str(place.get("region") or kind.get("region") or ""), place.get("available")
        rows.offer(
            document,
            GpuRead(
                label=f"{shape.get('gpu_type') or ''} {shape.get('interconnect') or ''}".strip(),
                count=count,
                memory_gb=positive(shape.get("vram_per_gpu_in_gb")),
                per_card=True,
            ),
            sku=f"{kind['cloud']}/{own}",
            instance_type=str(kind.get("shade_instance_type") or own),
            price=dollars(kind["hourly_price"]),
            quote_kind="api_quote",
            availability="unknown" if available is None else "available" if available else "unavailable",
            provider=cloud_slug(str(kind["cloud"])),
            via="shadeform",
            region=region,
            country=_country(region, str(place.get("display_name") or "")),
            tenancy=_TENANCIES.get(str(kind.get("deployment_type")), "vm"),
            vcpu_count=positive(shape.get("vcpus")),
            memory_gib=positive(shape.get("memory_in_gb")),
            local_storage_gb=positive(shape.get("storage_in_gb")),
            gpu_interconnect=interconnect if count and count > 1 else "unknown",
            boot_time_s=boot or None,
        )


def _country(region: str, display_name: str) -> str | None:
    """From "US, Wichita, KS", or from a region id such as "paris-france-5", "newyork-usa-1" or "us-west-1"."""
    head = display_name.split(",", maxsplit=1)[0]
    words = region.split("-")
    parts = [*(words[start:-1] for start in range(1, len(words) - 1)), words[:1]]
    named = (country_named(" ".join(part)) for part in parts)
    return country_code(head) or next((code for code in named if code), None)
