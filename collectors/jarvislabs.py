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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import MINUTE_S, Expect, Parsed, Request
from collectors.meters import STORAGE
from collectors.pages import gpu_memory_gb_in, possible_gpus
from collectors.readers import changed, need, need_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder
from collectors.serverless import ServerlessPage

API = "https://backendn.jarvislabs.net/misc/server_meta"
KEY = "JARVISLABS_API_KEY"
SIZES = (1, 2, 4, 8)


class JarvisLabs(ServerlessPage):
    """JarvisLabs: GPU VMs and containers in USD, billed per minute."""

    provider = "jarvislabs"
    title = "JarvisLabs"
    home_page = "https://jarvislabs.ai/pricing"
    page = "https://jarvislabs.ai/pricing"
    sources = ("https://jarvislabs.ai/pricing", API)
    billing_increment_s = MINUTE_S
    tenancy = "vm"
    meters = STORAGE
    page_unit = "hour"
    optional_key_env = (KEY,)
    terms_note = "A paused instance is billed for its storage only."
    expect = Expect(min_rows=4, gpus=frozenset({"l4-24gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The price page, and the list with free devices where there is a key."""
        yield from super().requests({})
        if key := keys.get(KEY):
            yield Request(API, headers={"Authorization": f"Bearer {key}"}, name="server_meta")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """API rows per region and size, then the page's GPUs that the API does not list."""
        rows = RowBuilder(self)
        covered: set[tuple[str, int]] = set()
        for document in documents:
            if _is_api(document):
                covered |= _add_servers(rows, document)
        for document in documents:
            if not _is_api(document):
                self.add_page(rows, document, covered)
        if not rows.row_count:
            changed(documents[0], "a GPU with a price per unit of time", f"none in {self.page}")
        return rows.finish()


def _is_api(document: Document) -> bool:
    return "/server_meta" in document.url or document.body.lstrip().startswith(b"{")


def _add_servers(rows: RowBuilder, document: Document) -> set[tuple[str, int]]:
    """Every server row; returns the GPUs that they can be."""
    servers = need(document, read_json(document), "server_meta", kind=list)
    need_somewhere(document, servers, "gpu_type", "price_per_hour", "spot_price", "region", "workload_type")
    listed: set[tuple[str, int]] = set()
    for server in servers:
        label = str(server.get("gpu_type") or "")
        listed |= possible_gpus(label, gpu_memory_gb_in(str(server.get("vram") or "")), 1)
        largest = int(decimal_of(server.get("num_gpus")) or 1)
        for count in SIZES:
            if count <= largest:
                _add_server(rows, document, server, label, count)
    return listed


def _add_server(rows: RowBuilder, document: Document, server: Mapping[str, Any], label: str, count: int) -> None:
    workload = str(server.get("workload_type") or "")
    common: dict[str, Any] = {
        "sku": f"{label} x{count}",
        "instance_type": f"{label} x{count}",
        "variant": workload,
        "region": str(server.get("region") or ""),
        "vcpu_count": server["cpus_per_gpu"] * count if server.get("cpus_per_gpu") else None,
        "memory_gib": float(server["ram_per_gpu"]) * count if server.get("ram_per_gpu") else None,
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


def _stock(free: Any, count: int) -> dict[str, Any]:
    """Free devices of a region are no promise of one machine with that many: several at once count as limited."""
    if not isinstance(free, int):
        return {}
    state = "unavailable" if free < count else "available" if count == 1 else "limited"
    return {"availability": state, "stock_count": free // count}
