"""What Azure bills beside the machine: managed disks, public addresses and traffic to the internet.

Same API and items as the machines (https://learn.microsoft.com/rest/api/cost-management/retail-prices). Meters used:
`E30 LRS Disk` (standard SSD, 1,024 GiB) and `P10 LRS Disk` (premium SSD, 128 GiB), priced per disk and "1/Month"
whatever is stored, here by the decimal GB; `Standard IPv4 Static Public IP` per "1 Hour"; `Standard Data Transfer Out`
of the product "Rtn Preference: MGN" (the default routing) per "1 GB" in steps of `tierMinimumUnits`, of which the first
costs nothing.
Traps: meters named alike (`… Disk Mount`, `… Disk Operations`, another routing preference) are other things.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from catalog.types import Document, Tier
from catalog.units import decimal_of
from collectors.meters import per_gb
from collectors.rows import RowBuilder

DISKS_GIB: Mapping[str, int] = {"E30 LRS Disk": 1024, "P10 LRS Disk": 128}
ADDRESS = "Standard IPv4 Static Public IP"
TRAFFIC = "Standard Data Transfer Out"
ROUTING = "Rtn Preference: MGN"
FILTER = (
    "(serviceName eq 'Storage' and (skuName eq 'E30 LRS' or skuName eq 'P10 LRS')) or "
    f"(serviceName eq 'Virtual Network' and meterName eq '{ADDRESS}') or "
    f"(serviceName eq 'Bandwidth' and productName eq '{ROUTING}' and meterName eq '{TRAFFIC}')"
)


def add_extras(rows: RowBuilder, document: Document, items: Iterable[Mapping[str, Any]]) -> None:
    """Add the surcharges among the items of one page; other items are left alone."""
    steps: dict[tuple[str, str], list[Tier]] = defaultdict(list)
    for item in items:
        meter, unit, amount = str(item.get("meterName")), item.get("unitOfMeasure"), decimal_of(item.get("retailPrice"))
        if item.get("type") != "Consumption" or amount is None or item.get("isPrimaryMeterRegion") is False:
            continue
        region, currency = str(item.get("armRegionName") or ""), str(item.get("currencyCode") or "USD")
        if meter in DISKS_GIB and unit == "1/Month":
            per_gigabyte = per_gb(amount / DISKS_GIB[meter])
            rows.surcharge(document, "block_storage", per_gigabyte, "gb_month", region=region, currency=currency)
        elif meter == ADDRESS and unit == "1 Hour":
            rows.surcharge(document, "public_ipv4", amount, "hour", region=region, currency=currency)
        elif meter == TRAFFIC and item.get("productName") == ROUTING and unit == "1 GB":
            start = decimal_of(item.get("tierMinimumUnits"))
            if start is not None:
                steps[region, currency].append(Tier(start, amount))
    for (region, currency), tiers in steps.items():
        paid = sorted((t for t in tiers if t.price > 0), key=lambda t: t.from_quantity)
        if paid:
            rows.surcharge(
                document, "egress", paid[0].price, "gb", region=region, currency=currency,
                included_quantity=paid[0].from_quantity or Decimal(0), tiers=tuple(paid),
            )  # fmt: skip
