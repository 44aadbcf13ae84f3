"""JarvisLabs: the public price page, and with a key the API's list of GPUs with their free devices.

Documentation: https://jarvislabs.ai/pricing, https://docs.jarvislabs.ai (the API behind the official client:
GET https://backendn.jarvislabs.net/misc/server_meta)
Page fields: cards "H100 SXM Hopper - 80 GB $2.69 /hr" (USD per GPU-hour).
API fields: `server_meta[]` {gpu_type, region, num_free_devices, effective_num_free_devices, price_per_hour and
spot_price (USD per GPU-hour), vram ("24" or "141 GB", per GPU), cpus_per_gpu, ram_per_gpu (GB), num_gpus (most per
instance, as text), workload_type (container, vm or null)}.

Traps: the same GPU stands once per workload type; spot is sold for containers only, whatever price a VM row shows;
names differ in their hyphens; the page has a twin in INR under another address; processor machines share both lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import MINUTE_S, Expect
from collectors.listing import positive
from collectors.meters import STORAGE
from collectors.pages import gpu_memory_gb_in, possible_gpus
from collectors.readers import need, need_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder
from collectors.serverless import ServerlessPage

API = "https://backendn.jarvislabs.net/misc/server_meta"
SIZES = (1, 2, 4, 8)


class JarvisLabs(ServerlessPage):
    """JarvisLabs: GPU VMs and containers in USD, billed per minute."""

    provider = "jarvislabs"
    title = "JarvisLabs"
    home_page = page = "https://jarvislabs.ai/pricing"
    api = API
    api_name = "server_meta"
    sources = (page, API)
    billing_increment_s = MINUTE_S
    tenancy = "vm"
    meters = STORAGE
    page_unit = "hour"
    optional_key_env = ("JARVISLABS_API_KEY",)
    terms_note = "A paused instance is billed for its storage only."
    expect = Expect(min_rows=4, gpus=frozenset({"l4-24gb"}))

    def add_api(self, rows: RowBuilder, document: Document) -> None:
        """Offers per server row and size."""
        servers = need(document, read_json(document), "server_meta", kind=list)
        need_somewhere(document, servers, "gpu_type", "price_per_hour", "spot_price", "region", "workload_type")
        for server in servers:
            label = str(server.get("gpu_type") or "")
            rows.covered |= possible_gpus(label, gpu_memory_gb_in(str(server.get("vram") or "")), 1)
            largest = int(decimal_of(server.get("num_gpus")) or 1)
            for count in SIZES:
                if count <= largest:
                    _add_server(rows, document, server, label, count)


def _add_server(rows: RowBuilder, document: Document, server: Mapping[str, Any], label: str, count: int) -> None:
    workload = str(server.get("workload_type") or "")
    common: dict[str, Any] = {
        "sku": f"{label} x{count}",
        "instance_type": f"{label} x{count}",
        "variant": workload,
        "region": str(server.get("region") or ""),
        "vcpu_count": _times(server.get("cpus_per_gpu"), count),
        "memory_gib": _times(server.get("ram_per_gpu"), count),
        "price_scope": "gpu",
        "quote_kind": "api_quote",
        "tenancy": "vm",
    }
    gpu = GpuRead(label=label, count=count, memory_gb=gpu_memory_gb_in(str(server.get("vram") or "")))
    free = server.get("effective_num_free_devices", server.get("num_free_devices"))
    rows.offer(document, gpu, price=server.get("price_per_hour", "missing"), **_stock(free, count), **common)
    if workload == "container" and server.get("spot_price") is not None:
        free = server.get("spot_num_free_devices", free)
        rows.offer(
            document, gpu, price=server["spot_price"], purchase_option="spot", **_stock(free, count), **common
        )  # fmt: skip


def _times(per_gpu: Any, count: int) -> float | None:
    number = positive(per_gpu)
    return number * count if number else None


def _stock(free: Any, count: int) -> dict[str, Any]:
    """Free devices of a region are no promise of one machine with that many: several at once count as limited."""
    if not isinstance(free, int):
        return {}
    state = "unavailable" if free < count else "available" if count == 1 else "limited"
    return {"availability": state, "stock_count": free // count}
