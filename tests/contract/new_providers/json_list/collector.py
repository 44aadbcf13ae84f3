"""Acme, a pretend provider with a JSON list: `offers[]` {id, gpu, gpu_count, usd_per_hour (per instance), region}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from catalog.types import Document
from collectors.contract import Collector, Expect, Parsed, Request
from collectors.listing import whole_items, whole_number
from collectors.readers import need, read_json
from collectors.rows import GpuRead, RowBuilder


class AcmeList(Collector):
    """Acme: GPU instances in USD."""

    provider = "acme_json_list"
    title = "Acme"
    home_page = "https://acme.invalid/"
    sources = ("https://acme.invalid/v1/offers",)
    kind = "api"
    expect = Expect(min_rows=4, gpus=frozenset({"h100-sxm-80gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The list."""
        del keys
        yield Request(self.sources[0], name="offers")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per entry."""
        rows = RowBuilder(self)
        for document in documents:
            offers = need(document, read_json(document), "offers", kind=list)
            for offer in whole_items(
                rows, document, offers, "offers", "id", "gpu", "gpu_count", "usd_per_hour", "region"
            ):
                rows.offer(
                    document, GpuRead(label=str(offer["gpu"]), count=whole_number(offer["gpu_count"]) or 0),
                    sku=str(offer["id"]), instance_type=str(offer["id"]), price=offer["usd_per_hour"],
                    region=str(offer["region"]), country="DE",
                )  # fmt: skip
        return rows.finish()
