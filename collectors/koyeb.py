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

from collections.abc import Mapping
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import HOUR_S, Expect
from collectors.meters import STORAGE
from collectors.pages import gpu_memory_gb_in, memory_gib_in, per_gpu_memory_gb, possible_gpus, storage_gb_in
from collectors.readers import changed, need, need_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder
from collectors.serverless import ServerlessPage

API = "https://app.koyeb.com/v1/catalog/instances"


class Koyeb(ServerlessPage):
    """Koyeb: serverless GPU instances in USD, billed per second."""

    provider = "koyeb"
    title = "Koyeb"
    home_page = page = "https://www.koyeb.com/pricing"
    api = f"{API}?limit=100&offset=0"
    api_name = "instances-0"
    sources = (page, API)
    extra_hosts = ("koyeb.com",)
    cadence_s: ClassVar[int] = 6 * HOUR_S
    scope = "instance"
    meters = STORAGE
    optional_key_env = ("KOYEB_TOKEN",)
    terms_note = "Plan fees come on top (Pro 29 USD a month with 10 USD of compute)."
    expect = Expect(min_rows=3, gpus=frozenset({"l40s-48gb", "rtx-a6000-48gb"}))

    def add_api(self, rows: RowBuilder, document: Document) -> None:
        """One offer per instance and region."""
        body = read_json(document)
        instances = need(document, body, "instances", kind=list)
        need_somewhere(document, instances, "id", "price_hourly", "gpu/name", "gpu/count", "regions")
        for entry in instances:
            gpu = entry.get("gpu") or {}
            count = int(decimal_of(gpu.get("count")) or 0)
            if count:
                _add_instance(rows, document, entry, gpu, count)
        if not rows.covered:
            changed(document, "instances[].gpu.count", f"no GPU instances at {document.url}")
        total = decimal_of(body.get("count"))
        if total is not None and total > len(instances):
            rows.incomplete(f"{len(instances)} of {total} instances in {document.url}")


def _add_instance(
    rows: RowBuilder, document: Document, entry: Mapping[str, Any], gpu: Mapping[str, Any], count: int
) -> None:
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
    rows.covered |= possible_gpus(label, memory, count)
