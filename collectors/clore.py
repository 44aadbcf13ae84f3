"""Clore.ai: whole servers of a marketplace, rented by the day, paid in coins or dollars.

Documentation: https://docs.clore.ai/dev/clore.ai-api (`GET /v1/marketplace`; the documented header is not required).
Fields used of `servers[]`: `id`, `rented`, `reliability`, `price.usd` (`on_demand_usd`, `on_demand_clore`,
`on_demand_btc`, `spot`; USD), `price.on_demand` and `price.spot` by coin ("bitcoin", "CLORE-Blockchain",
"USD-Blockchain"), and `specs`: `gpu` ("2x NVIDIA GeForce RTX 3080"), `gpuram` (GB per GPU), `cpus` ("16/32": cores and
threads), `ram` (GB), `disk` ("SSD 512.0GB"), `net.cc` (country), `net.up` and `net.down` (Mbit/s).

Traps: every price is per DAY. A server may be priced in coins alone; such a price is kept in its coin, with no dollar
value. `gpu_array` with different models is a mixed server and is not offered here. The renter's fee is not included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.countries import country_code
from collectors.listing import as_object, positive
from collectors.pages import storage_gb_in
from collectors.readers import changed, need, present_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder

URL = "https://api.clore.ai/v1/marketplace"
LOW_RELIABILITY = Decimal("0.9")
COINS = {"CLORE-Blockchain": "CLORE", "bitcoin": "BTC"}
_OPTIONS = (("on_demand", "on_demand"), ("spot", "spot"))


class Clore(Collector):
    """Clore.ai: on-demand and spot prices of whole servers."""

    provider = "clore"
    title = "Clore.ai"
    home_page = "https://clore.ai/marketplace"
    sources = (URL,)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    host_interval_s: ClassVar[float] = 1.0
    terms_note = "Prices per day for the whole server; the renter pays a fee of up to 5 % on top. Hosts are private."
    expect = Expect(min_rows=5)

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The whole marketplace in one answer."""
        del keys
        yield Request(URL, name="marketplace")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per server, purchase option and, without a price in dollars, coin."""
        rows = RowBuilder(self)
        for document in documents:
            servers = need(document, read_json(document), "servers", kind=list)
            if not servers:
                changed(document, "servers", f"empty list in {document.url}")
            if not any(isinstance(server, Mapping) and {"specs", "price"} <= server.keys() for server in servers):
                changed(document, "servers/specs")
            for server in servers:
                if isinstance(server, Mapping) and server.get("id") is not None:
                    _add_server(rows, document, server)
                else:
                    rows.reject("server_unnamed", "id", None)
            present_somewhere(document, servers, "servers", "id")
            present_somewhere(document, (as_object(server).get("specs") for server in servers), "servers/specs", "gpu")
        return rows.finish()


def _add_server(rows: RowBuilder, document: Document, server: Mapping[str, Any]) -> None:
    specs = as_object(server.get("specs"))
    models = set(_flat(server.get("gpu_array")))
    if len(models) > 1:
        rows.reject("mixed_gpus", "gpu_array", sorted(models), sample=server["id"])
        return
    prices = list(_prices(as_object(server.get("price"))))
    if not prices:
        rows.reject("not_a_price", "price", server.get("price"), sample=server["id"])
    reliability = decimal_of(server.get("reliability"))
    low = reliability is not None and reliability < LOW_RELIABILITY
    network = as_object(specs.get("net"))
    speeds = [speed for key in ("up", "down") if (speed := positive(network.get(key)))]
    for option, amount, currency in prices:
        rows.offer(
            document,
            GpuRead(label=str(specs.get("gpu") or ""), memory_gb=positive(specs.get("gpuram")), per_card=True),
            sku=f"server-{server['id']}",
            instance_type=str(specs.get("gpu") or ""),
            variant=f"server-{server['id']}" + ("" if currency == "USD" else f"-paid-in-{currency.casefold()}"),
            price=amount,
            price_unit="day",
            currency=currency,
            quote_kind="market",
            purchase_option=option,
            flags=("low_reliability",) if low else (),
            availability="unavailable" if server.get("rented") else "available",
            stock_count=0 if server.get("rented") else 1,
            country=country_code(str(network.get("cc") or "")),
            tenancy="community",
            vcpu_count=_threads(specs.get("cpus")),
            memory_gib=positive(specs.get("ram")),
            local_storage_gb=storage_gb_in(str(specs.get("disk") or "")),
            network_gbps=min(speeds) / 1000 if speeds else None,
        )


def _prices(price: Mapping[str, Any]) -> Iterator[tuple[str, object, str]]:
    """Purchase option, amount per day and currency: dollars where the server has them, else each coin it takes."""
    dollars = as_object(price.get("usd"))
    for option, key in _OPTIONS:
        coins = as_object(price.get(key))
        in_dollars = (
            dollars.get("on_demand_usd" if option == "on_demand" else "spot"),
            coins.get("USD-Blockchain"),
            *([dollars.get("on_demand_clore"), dollars.get("on_demand_btc")] if option == "on_demand" else []),
        )
        amount = next((found for value in in_dollars if (found := decimal_of(value)) is not None and found > 0), None)
        if amount is not None:
            yield option, amount, "USD"
            continue
        for coin, currency in COINS.items():
            amount = decimal_of(coins.get(coin))
            if amount is not None and amount > 0:
                yield option, amount, currency


def _flat(value: object) -> Iterator[str]:
    """The names in a list that may be nested."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _flat(part)


def _threads(cpus: object) -> float | None:
    """The threads of "16/32" (cores and threads)."""
    return positive(str(cpus or "").rpartition("/")[2])
