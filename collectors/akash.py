"""Akash: what providers of the open marketplace ask for one GPU, as statistics over their bids.

Documentation: https://console-api.akash.network/v1/swagger (`GET /v1/gpu-prices`, no key, cached for 15 minutes).
Fields used: `models[]` with `vendor`, `model` ("h100"), `ram` ("80Gi"), `interface` ("sxm5", "pcie"),
`availability.{total,available}` (GPUs), `price` with `currency`, `med`, `weightedAverage`, `avg`, `min` in USD per GPU
and hour, or null where nobody bid.

Traps: the prices are computed from bids of the last 14 days (31 where there are none) for deployments with a single GPU
and a small bundle; they are no list prices and no order book, so each row is one GPU at the median and marked as market
data. The minimum is taken only where nothing better is given, and flagged. Free GPUs are not always on one node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.listing import as_object, whole_items, whole_number
from collectors.readers import changed, need, read_json
from collectors.rows import GpuRead, RowBuilder

URL = "https://console-api.akash.network/v1/gpu-prices"
STATISTICS = ("med", "weightedAverage", "avg", "min")
_RAM = re.compile(r"^(\d+)\s*Gi?B?$", re.IGNORECASE)


class Akash(Collector):
    """Akash: single GPUs at the median of recent bids."""

    provider = "akash"
    title = "Akash Network"
    home_page = "https://akash.network/pricing/gpus/"
    sources = (URL,)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    terms_note = "Statistics over bids for single-GPU deployments; the price of a lease is the bid that is accepted."
    expect = Expect(min_rows=10, gpus=frozenset({"rtx-4090-24gb", "h100-sxm-80gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The price list of all models."""
        del keys
        yield Request(URL, name="gpu-prices")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per GPU model, memory and interface."""
        rows = RowBuilder(self)
        for document in documents:
            models = need(document, read_json(document), "models", kind=list)
            whole = whole_items(rows, document, models, "models", "model", "ram", "interface", "price")
            priced = [model["price"] for model in whole if model["price"] is not None]
            if priced and not any(isinstance(price, Mapping) for price in priced):
                changed(document, "models/price", f"is {type(priced[0]).__name__}, expected an object or null")
            for model in whole:
                _add(rows, document, model)
        return rows.finish()


def _add(rows: RowBuilder, document: Document, model: Mapping[str, Any]) -> None:
    name, ram, interface = (str(model.get(key) or "").strip() for key in ("model", "ram", "interface"))
    size = _RAM.match(ram)
    price, flags = _price(model)
    free = whole_number(as_object(model.get("availability")).get("available"))
    label = " ".join(part for part in (name, f"{size.group(1)}GB" if size else "", interface) if part)
    rows.offer(
        document,
        GpuRead(label=label, count=1, memory_gb=float(size.group(1)) if size else None),
        sku="-".join(part.casefold() for part in (name, ram, interface) if part),
        instance_type=f"1x {label}",
        price=price,
        currency=str(as_object(model.get("price")).get("currency") or "USD"),
        quote_kind="market",
        flags=flags,
        availability="unknown" if free is None else "available" if free > 0 else "unavailable",
        stock_count=free,
        tenancy="community",
    )


def _price(model: Mapping[str, Any]) -> tuple[object, list[str]]:
    """The best statistic that is given, and what is odd about it; None where nobody bid."""
    stated = model.get("price")
    if stated is None:
        return None, ["no_bids"]
    for statistic in STATISTICS:
        amount = decimal_of(as_object(stated).get(statistic))
        if amount is not None:
            return amount, ["from_price"] if statistic == "min" else []
    return "no statistic", []
