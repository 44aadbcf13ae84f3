"""What Google Cloud bills beside the machine: disks, external addresses and traffic to the internet.

Same SKU list as the machines (https://docs.cloud.google.com/billing/docs/reference/rest/v1/services.skus/list), all
of them `usageType` OnDemand. SKUs used: `Balanced PD Capacity` and `SSD backed PD Capacity`, " in <place>" behind some,
per GiBy.mo; `External IP Charge on a Standard VM`, region "global", per h; resource group PremiumInternetEgress (the
default network tier), `Network Internet Data Transfer Out from <origin> to <destination>` (once "Egress"), per GiBy.
The first step of the last two is free: hours or GiB of each account and month
(https://cloud.google.com/vpc/network-pricing). GiB become decimal GB here.
Traps: regional disks, snapshots, VPN and standard-tier traffic are named much alike; `Storage PD Capacity` is the disk
that newer GPU machines cannot boot from; traffic has a price per destination, of which the cheapest, that of the
origin's own continent, is kept; an address that no machine uses costs more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from catalog.types import Document, Tier
from collectors.gcp_skus import price_steps, regions_of, unit_of
from collectors.meters import gb_of, per_gb
from collectors.rows import RowBuilder

Steps = Sequence[tuple[Decimal, Decimal, str]]

_DISK = re.compile(r"(?:Balanced|SSD backed) PD Capacity(?: in .+)?")
_ADDRESS = "External IP Charge on a Standard VM"
_TRAFFIC = re.compile(r"Network Internet (?:Data Transfer Out|Egress) from .+ to .+")
_TRAFFIC_GROUP = "PremiumInternetEgress"


def add_extras(rows: RowBuilder, document: Document, skus: Iterable[Mapping[str, Any]]) -> None:
    """Add the surcharges among the SKUs of one page; a page without any adds none."""
    traffic: dict[str, Steps] = {}
    for sku in skus:
        category, steps, unit = sku["category"], price_steps(sku), unit_of(sku)
        paid = [step for step in steps if step[1] > 0]
        if category["usageType"] != "OnDemand" or not paid:
            continue
        start, price, currency = paid[0]
        description = str(sku["description"])
        if _DISK.fullmatch(description) and unit == "GiBy.mo":
            for region in regions_of(sku):
                rows.surcharge(document, "block_storage", per_gb(price), "gb_month", region=region, currency=currency)
        elif description == _ADDRESS and unit == "h":
            rows.surcharge(document, "public_ipv4", price, "hour", currency=currency, included_quantity=start or None)
        elif category.get("resourceGroup") == _TRAFFIC_GROUP and _TRAFFIC.fullmatch(description) and unit == "GiBy":
            for region in regions_of(sku):
                traffic[region] = min(traffic.get(region, paid), paid, key=_prices)
    for region, cheapest in traffic.items():
        start, price, currency = cheapest[0]
        rows.surcharge(
            document, "egress", per_gb(price), "gb", region=region, currency=currency,
            included_quantity=gb_of(start), tiers=tuple(Tier(gb_of(s), per_gb(p)) for s, p, _ in cheapest),
        )  # fmt: skip


def _prices(steps: Steps) -> list[Decimal]:
    return [price for _, price, _ in steps]
