"""The public SkyPilot catalog: prices that another project collects, per cloud and region, as a second source.

Repository: https://github.com/skypilot-org/skypilot-catalog (catalogs/v8/<cloud>/vms.csv, refreshed every few hours).
Columns used, whose order differs from file to file: InstanceType, AcceleratorName, AcceleratorCount (may be a share),
vCPUs, MemoryGiB, Price and SpotPrice (USD per instance-hour), Region, AvailabilityZone, GpuInfo (for the form factor).

Traps: CPU rows have no accelerator; Price or SpotPrice may be empty or 0.00, which is no price; "A100" means the 40 GB
card there but the name leaves it open; the memory in GpuInfo is per GPU, total or wrong (80 MiB) from file to file and
is not read; one on-demand price stands in a row per zone; Region is the country and the zone the data centre for clouds
that resell by country; the files of some clouds hold euros or only a part of the price (Seeweb, Google) or a data
centre per row by the ten thousand (RunPod) and are left out; Prime Intellect's types begin with its supplier's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from catalog.types import Document
from collectors.contract import Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.readers import changed
from collectors.regions import country_of
from collectors.resale import cloud_slug
from collectors.rows import RowBuilder
from collectors.second_sources import SecondSource, gpu_read, positive

BASE = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
CLOUDS = ("aws", "hyperbolic", "hyperstack", "jarvislabs", "lambda", "nebius", "oci", "primeintellect", "verda")


class SkypilotCatalog(SecondSource):
    """SkyPilot's catalog of nine clouds, under `via`."""

    provider = "skypilot_catalog"
    title = "SkyPilot catalog"
    home_page = "https://github.com/skypilot-org/skypilot-catalog"
    sources = (BASE,)
    columns = (
        "InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region",
    )  # fmt: skip
    gpu_column = "AcceleratorName"
    terms_note = "Collected by the SkyPilot project; a second source to compare with, not the provider's word."
    expect = Expect(min_rows=20, gpus=frozenset({"h100-sxm-80gb", "l4-24gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """One file per cloud."""
        del keys
        return [Request(f"{BASE}/{cloud}/vms.csv", name=cloud) for cloud in CLOUDS]

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per type and region on demand, and one per zone on spot."""
        if not documents:
            raise LayoutChanged(self.provider, "vms.csv", f"no file of {BASE}")
        rows = RowBuilder(self)
        for document in documents:
            if not document.body.strip():
                changed(document, "CSV header", f"empty body from {document.url}")
            self.add_file(rows, document, document.text().splitlines(keepends=True))
        return rows.finish()

    def add_row(self, rows: RowBuilder, document: Document, row: Mapping[str, str]) -> None:
        """The on-demand and the spot offer of one row, if it has an accelerator."""
        instance_type = row["InstanceType"]
        if not row["AcceleratorName"].strip() or not instance_type.strip():
            return
        cloud = urlsplit(document.url).path.split("/")[-2]
        supplier, _, _ = instance_type.partition("__")
        provider = cloud_slug(supplier if cloud == "primeintellect" else cloud)
        region, zone = row["Region"], row.get("AvailabilityZone") or ""
        if len(region) == 2 and region.isupper():
            place: dict[str, Any] = {"region": zone, "country": region}
            zone = ""
        else:
            place = {"region": region, "country": country_of(provider, region)}
        gpu = gpu_read(
            provider, instance_type, row["AcceleratorName"], row["AcceleratorCount"], hint=row.get("GpuInfo", "")
        )
        for column, spot in (("Price", False), ("SpotPrice", True)):
            if positive(row[column]):
                self.add_offer(
                    rows, document, gpu, instance_type, row[column], spot=spot, provider=provider,
                    zone=zone if spot else "", vcpu_count=positive(row["vCPUs"]),
                    memory_gib=positive(row["MemoryGiB"]), **place,
                )  # fmt: skip
