"""Koyeb: serverless GPU instances from the public price page, and with a token the catalog API's instances.

Documentation: https://www.koyeb.com/pricing, https://www.koyeb.com/docs/reference/instances,
https://developer.koyeb.com (GET /v1/catalog/instances)
Page fields: cards "RTX-A6000 vRAM 48GB … $ 0.75 /hour" (USD per instance-hour).
API fields: `instances[]` {id, display_name, vcpu, memory, disk, price_per_second, price_hourly, price_monthly
(decimal strings per instance), regions[], status, gpu {name, brand, memory, count}}, `count`.

Traps: prices are decimal strings; the price per second is the hourly one rounded to six decimals, so the hourly one is
read; GPU memory is the instance's total in places; processor instances share the list; a type may be listed before it
can be used (status). Where both sources show a type, the API's rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import HOUR_S, Expect, Parsed, Request
from collectors.meters import STORAGE
from collectors.pages import gpu_memory_gb_in, memory_gib_in, per_gpu_memory_gb, possible_gpus, storage_gb_in
from collectors.readers import changed, need, need_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder
from collectors.serverless import ServerlessPage

API = "https://app.koyeb.com/v1/catalog/instances"
KEY = "KOYEB_TOKEN"
PAGE_SIZE = 100


class Koyeb(ServerlessPage):
    """Koyeb: serverless GPU instances in USD, billed per second."""

    provider = "koyeb"
    title = "Koyeb"
    home_page = "https://www.koyeb.com/pricing"
    page = "https://www.koyeb.com/pricing"
    sources = ("https://www.koyeb.com/pricing", API)
    extra_hosts = ("koyeb.com",)
    cadence_s: ClassVar[int] = 6 * HOUR_S
    scope = "instance"
    meters = STORAGE
    optional_key_env = (KEY,)
    terms_note = "Plan fees come on top (Pro 29 USD a month with 10 USD of compute)."
    expect = Expect(min_rows=3, gpus=frozenset({"l40s-48gb", "rtx-a6000-48gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The price page, and the first part of the catalog where there is a token."""
        yield from super().requests({})
        if token := keys.get(KEY):
            yield _part(0, {"Authorization": f"Bearer {token}"})

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """API rows per region, then the page's cards that the API does not cover."""
        rows = RowBuilder(self)
        covered: set[tuple[str, int]] = set()
        for document in documents:
            if _is_api(document):
                covered |= _add_instances(rows, document)
        for document in documents:
            if not _is_api(document):
                self.add_page(rows, document, covered)
        if not rows.row_count:
            changed(documents[0], "a GPU with a price per unit of time", f"none in {self.page}")
        return rows.finish()


def _is_api(document: Document) -> bool:
    return "/catalog/instances" in document.url or document.body.lstrip().startswith(b"{")


def _part(offset: int, headers: Mapping[str, str]) -> Request:
    return Request(f"{API}?limit={PAGE_SIZE}&offset={offset}", headers=headers, name=f"instances-{offset}")


def _add_instances(rows: RowBuilder, document: Document) -> set[tuple[str, int]]:
    body = read_json(document)
    instances = need(document, body, "instances", kind=list)
    need_somewhere(document, instances, "id", "price_hourly", "gpu/name", "gpu/count", "regions")
    covered: set[tuple[str, int]] = set()
    for entry in instances:
        gpu = entry.get("gpu") or {}
        count = int(decimal_of(gpu.get("count")) or 0)
        if count:
            covered |= _add_instance(rows, document, entry, gpu, count)
    if not covered:
        changed(document, "instances[].gpu.count", f"no GPU instances at {document.url}")
    total = decimal_of(body.get("count"))
    if total is not None and total > len(instances):
        rows.incomplete(f"{len(instances)} of {total} instances in {document.url}")
    return covered


def _add_instance(
    rows: RowBuilder, document: Document, entry: Mapping[str, Any], gpu: Mapping[str, Any], count: int
) -> set[tuple[str, int]]:
    label = f"{gpu.get('brand') or ''} {gpu.get('name') or entry.get('display_name') or ''}".strip()
    memory = per_gpu_memory_gb(label, gpu_memory_gb_in(str(gpu.get("memory") or "")), count)
    name = str(entry.get("id") or label)
    obtainable = str(entry.get("status") or "").casefold() in {"available", "", "active"}
    for region in [str(r) for r in entry.get("regions") or []] or [""]:
        rows.offer(
            document, GpuRead(label=label, count=count, memory_gb=memory), sku=name, instance_type=name,
            price=entry.get("price_hourly", "missing"), region=region,
            availability="unknown" if obtainable else "unavailable", tenancy="serverless", quote_kind="api_quote",
            vcpu_count=float(vcpu) if (vcpu := decimal_of(entry.get("vcpu"))) else None,
            memory_gib=memory_gib_in(str(entry.get("memory") or "")),
            local_storage_gb=storage_gb_in(str(entry.get("disk") or "")),
        )  # fmt: skip
    return possible_gpus(label, memory, count)
