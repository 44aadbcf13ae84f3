"""Salad: containers on private and data-centre machines, priced by GPU class and priority (needs a key).

Documentation: https://docs.salad.com/reference/saladcloud-api (`GET /organizations/{org}/gpu-classes`) and
https://docs.salad.com/container-engine/explanation/billing-pricing/billing (per second, vCPU and memory included).
Fields used of `items[]`: `id`, `name` ("RTX 4090 (24 GB)"), `gpu_class_type` (community, secure), `gpu_count`,
`is_high_demand`, `prices[]` (`priority`: high, medium, low, batch; `price`: USD per GPU and hour, as text).

Traps: prices are text. Every node can be interrupted: high priority is kept as on demand and flagged, the lower ones,
which give way to it, as spot. A class in high demand is limited; nothing says that a class is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog.types import Document
from collectors.contract import DAY_S, HOUR_S, Collector, Expect, Parsed, Request
from collectors.listing import as_list, whole_items, whole_number
from collectors.readers import need, present_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder

BASE = "https://api.salad.com/api/public/organizations"
PRIORITIES = ("high", "medium", "low", "batch")


class Salad(Collector):
    """Salad: container GPUs by class and priority."""

    provider = "salad"
    title = "Salad"
    home_page = "https://salad.com/pricing"
    sources = (f"{BASE}/",)
    kind = "api"
    cadence_s: ClassVar[int] = 6 * HOUR_S
    max_age_s: ClassVar[int] = DAY_S
    billing_increment_s = 1
    terms_note = "No charge while a container is allocated or downloaded. Nodes can be interrupted at any time."
    key_env: ClassVar[tuple[str, ...]] = ("SALAD_API_KEY", "SALAD_ORGANIZATION")
    expect = Expect(min_rows=5, gpus=frozenset({"rtx-4090-24gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The GPU classes of the organisation."""
        yield Request(
            f"{BASE}/{keys.get('SALAD_ORGANIZATION', '')}/gpu-classes",
            headers={"salad-api-key": keys.get("SALAD_API_KEY", "")},
            name="gpu-classes",
        )

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per class and priority."""
        rows = RowBuilder(self)
        for document in documents:
            items = need(document, read_json(document), "items", kind=list)
            classes = whole_items(rows, document, items, "items", "name", "prices")
            prices = [price for item in classes for price in as_list(item["prices"])]
            present_somewhere(document, prices, "items/prices", "priority", "price")
            for item in classes:
                for price in as_list(item["prices"]):
                    _add(rows, document, item, price)
        return rows.finish()


def _add(rows: RowBuilder, document: Document, item: Mapping[str, Any], price: object) -> None:
    if not isinstance(price, Mapping) or str(price.get("priority")) not in PRIORITIES:
        rows.reject("priority_unknown", "priority", price, sample=item["name"])
        return
    priority = str(price["priority"])
    rows.offer(
        document,
        GpuRead(label=str(item["name"]), count=whole_number(item.get("gpu_count")) or 1),
        sku=str(item.get("id") or item["name"]),
        instance_type=str(item["name"]),
        variant=f"{priority}-priority",
        # A missing price is not "on request" here.
        price=price.get("price") or "",
        price_scope="gpu",
        quote_kind="api_quote",
        purchase_option="on_demand" if priority == "high" else "spot",
        flags=("interruptible",),
        availability="limited" if item.get("is_high_demand") is True else "unknown",
        tenancy="secure" if item.get("gpu_class_type") == "secure" else "community",
    )
