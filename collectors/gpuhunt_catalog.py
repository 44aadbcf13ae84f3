"""The public gpuhunt catalog of the dstack project, as a second source.

Client and layout: https://github.com/dstackai/gpuhunt. Each provider is published by itself: `<provider>/version` names
the newest version, `<provider>/<version>/catalog.zip` holds `<provider>.csv` with the columns instance_name, location,
price (USD per instance-hour), cpu, memory (GB), gpu_count, gpu_name, gpu_memory (GB per GPU), spot, flags.

Traps: gpu_name has no form factor and gpu_memory is not always per GPU; prices are rounded; rows of the calendar mode
carry a flag and look like on demand (left out); the Google file does not agree with the Billing Catalog even so, and
the RunPod file has a row per data centre and size: both are left out. CPU types have gpu_count 0.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from catalog.types import Document
from collectors.contract import Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.readers import changed
from collectors.regions import country_of
from collectors.resale import cloud_slug
from collectors.rows import RowBuilder
from collectors.second_sources import SecondSource, gpu_read, positive

BASE = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
PROVIDERS = ("aws", "azure", "lambdalabs", "nebius", "oci", "verda")
_VERSION = re.compile(r"[\w.-]{1,40}")
_MAX_CSV_BYTES = 256 * 2**20


class GpuhuntCatalog(SecondSource):
    """gpuhunt's catalogs of six clouds, under `via`."""

    provider = "gpuhunt_catalog"
    title = "gpuhunt catalog"
    home_page = "https://github.com/dstackai/gpuhunt"
    sources = (BASE,)
    columns = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot")
    gpu_column = "gpu_count"
    terms_note = "Collected by the dstack project; a second source to compare with, not the provider's word."
    expect = Expect(min_rows=5, gpus=frozenset({"h200-sxm-141gb", "h100-sxm-80gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The version of each provider's catalog."""
        del keys
        return [Request(f"{BASE}/{name}/version", name=f"{name}-version") for name in PROVIDERS]

    def follow(self, document: Document) -> Iterable[Request]:
        """The catalog that a version names."""
        if not _is_version(document):
            return []
        version = document.text().strip()
        if not _VERSION.fullmatch(version):
            changed(document, "version", f"not a version name at {document.url}")
        name = _provider(document)
        return [Request(f"{BASE}/{name}/{version}/catalog.zip", name=f"{name}-catalog")]

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per type, location and purchase option."""
        rows = RowBuilder(self)
        catalogs = [d for d in documents if not _is_version(d)]
        if not catalogs:
            raise LayoutChanged(self.provider, "catalog.zip", f"no catalog among the documents of {BASE}")
        for document in catalogs:
            self.add_file(rows, document, _lines(document))
        missing = {_provider(d) for d in documents if _is_version(d)} - {_provider(d) for d in catalogs}
        if missing:
            rows.incomplete(f"no catalog was fetched for {', '.join(sorted(missing))}")
        return rows.finish()

    def add_row(self, rows: RowBuilder, document: Document, row: Mapping[str, str]) -> None:
        """The offer of one row, unless it is of a CPU type or of the calendar mode."""
        if not positive(row["gpu_count"]) or "calendar" in row.get("flags", ""):
            return
        spot = {"true": True, "false": False}.get(row["spot"].casefold())
        name, provider = row["instance_name"], cloud_slug(_provider(document))
        if spot is None:
            rows.reject("field_unreadable", "spot", row["spot"], sample=name)
            return
        self.add_offer(
            rows, document, gpu_read(provider, name, row["gpu_name"], row["gpu_count"], memory=row["gpu_memory"]),
            name, row["price"], spot=spot, provider=provider, region=row["location"],
            country=country_of(provider, row["location"]), vcpu_count=positive(row["cpu"]),
            memory_gib=positive(row["memory"]),
        )  # fmt: skip


def _is_version(document: Document) -> bool:
    return urlsplit(document.url).path.endswith("/version")


def _provider(document: Document) -> str:
    return urlsplit(document.url).path.split("/")[2]


def _lines(document: Document) -> Iterator[str]:
    """The lines of the CSV file in the archive, read as a stream."""
    try:
        with zipfile.ZipFile(io.BytesIO(document.body)) as archive:
            names = [i for i in archive.infolist() if i.filename.endswith(".csv")]
            if len(names) != 1 or names[0].file_size > _MAX_CSV_BYTES:
                changed(document, "catalog.zip/*.csv", f"not one CSV file of a plausible size in {document.url}")
            with archive.open(names[0]) as stream:
                yield from io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")
    except zipfile.BadZipFile as problem:
        changed(document, "catalog.zip", f"not a whole zip archive at {document.url}: {problem}")
