"""Google's Cloud Billing Catalog: what a SKU is a component of, and its exact price per hour.

Documentation: https://docs.cloud.google.com/billing/docs/reference/rest/v1/services.skus/list
A machine's price is vCPUs x core + GiB x RAM + GPUs x GPU + GiB x local SSD, each a SKU of its own per region and
consumption model. The model stands in `usageType` (OnDemand, Preemptible, Commit1Yr, Commit3Yr) and in the description,
which goes first: some spot slices say OnDemand. GPU names change by region and date (H100 "Mega", "Plus").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from catalog.units import HOURS_PER_MONTH, decimal_of

Model = Literal["on_demand", "spot", "calendar", "commit_1y", "commit_3y"]

_SKIPPED = re.compile(
    r"Sole Tenancy|Reserved|Premium|Custom|suspended|DWS Defined Duration|Virtual Workstation|\bvWS\b|vGPU|Extended",
    re.IGNORECASE,
)
_MODELS: Mapping[str, Model] = {
    "OnDemand": "on_demand",
    "Preemptible": "spot",
    "Commit1Yr": "commit_1y",
    "Commit3Yr": "commit_3y",
}
_PREFIX = re.compile(
    r"^(?:Spot Preemptible |Preemptible |Commitment v\d+: |Commitment: |DWS Calendar Mode )+", re.IGNORECASE
)
_HOST = re.compile(r"^(.+?) (?:Predefined )?(?:Instance )?(Core|Cpu|Ram|Memory)\b", re.IGNORECASE)
_GPU = re.compile(r"^(?:Nvidia )?(?:Tesla )?(.+?)(?: GPU)?(?: (?:running|attached|in)\b|$)", re.IGNORECASE)
_SLICE = re.compile(r"Nvidia (\w+) \(1 gpu slice\)", re.IGNORECASE)
_GPU_ALIASES: Mapping[str, str] = {"h100-80gb-plus": "h100-80gb-mega", "h100-mega-80gb": "h100-80gb-mega"}
_UNIT_HOURS: Mapping[str, Decimal] = {"h": Decimal(1), "GiBy.h": Decimal(1), "GiBy.mo": HOURS_PER_MONTH}


@dataclass(frozen=True, slots=True)
class Component:
    """One priced component. `part` is core, ram, ssd or gpu; `name` the host family or the GPU, '' for ssd.

    `hourly` is the price per vCPU, GiB or GPU for an hour, exact, in `currency`; None where the SKU states no price.
    """

    part: Literal["core", "ram", "gpu", "ssd"]
    name: str
    model: Model
    regions: tuple[str, ...]
    hourly: Decimal | None
    currency: str
    unit: str


def in_force(sku: Mapping[str, Any], at: datetime) -> Mapping[str, Any]:
    """The SKU without the prices of its timeline that begin after an instant; one that states no time is in force."""
    timeline = sku.get("pricingInfo")
    if not isinstance(timeline, list):
        return sku
    return {**sku, "pricingInfo": [info for info in timeline if not _begins_after(_object(info), at)]}


def _begins_after(info: Mapping[str, Any], at: datetime) -> bool:
    try:
        begins = datetime.fromisoformat(str(info.get("effectiveTime")))
    except ValueError:
        return False
    return (begins if begins.tzinfo else begins.replace(tzinfo=UTC)) > at


def unit_price(sku: Mapping[str, Any]) -> Mapping[str, Any]:
    """The amount of a SKU's last tier: `units`, `nanos` and `currencyCode`; empty where it states none."""
    return _object(_last(_expression(sku).get("tieredRates")).get("unitPrice"))


def unit_of(sku: Mapping[str, Any]) -> str:
    """What a SKU's price is per, such as "h", "GiBy.h", "GiBy.mo" or "GiBy"."""
    return str(_expression(sku).get("usageUnit", ""))


def regions_of(sku: Mapping[str, Any]) -> tuple[str, ...]:
    """The regions in which a SKU is sold; "global" is one of them."""
    regions = sku.get("serviceRegions")
    return tuple(region for region in regions if isinstance(region, str)) if isinstance(regions, list) else ()


def price_steps(sku: Mapping[str, Any]) -> list[tuple[Decimal, Decimal, str]]:
    """A SKU's tiers as (from quantity, price, currency), in order; none where one of them is not fully stated."""
    steps, rates = [], _expression(sku).get("tieredRates")
    for rate in rates if isinstance(rates, list) else ():
        money = _object(_object(rate).get("unitPrice"))
        start, price = decimal_of(_object(rate).get("startUsageAmount")), _amount(money)
        if start is None or price is None:
            return []
        steps.append((start, price, str(money.get("currencyCode", "USD"))))
    return sorted(steps)


def read_sku(sku: Mapping[str, Any]) -> Component | None:
    """The component that a SKU prices, or None for one that no GPU machine is made of."""
    description = str(sku["description"])
    category = sku["category"]
    model = _MODELS.get(str(category["usageType"]))
    if model is None or _SKIPPED.search(description):
        return None
    if "spot preemptible" in description.casefold():
        model = "spot"
    elif "calendar mode" in description.casefold():
        model = "calendar"
    found = _part(_PREFIX.sub("", description), str(category.get("resourceGroup", "")))
    if found is None:
        return None
    unit, money = unit_of(sku), unit_price(sku)
    part, name = found
    return Component(
        part,
        name,
        model,
        regions_of(sku),
        _hourly(money, unit),
        str(money.get("currencyCode", "USD")),
        unit,
    )


def _part(text: str, group: str) -> tuple[Literal["core", "ram", "gpu", "ssd"], str] | None:
    if text.casefold().startswith(("ssd backed local storage", "local ssd")):
        return "ssd", ""
    sliced = _SLICE.search(text)
    if sliced:
        return "gpu", f"{sliced.group(1).casefold()}-slice"
    host = _HOST.match(text)
    if host and group != "GPU":
        part: Literal["core", "ram"] = "core" if host.group(2).casefold() in ("core", "cpu") else "ram"
        return part, host.group(1).casefold().replace(" ", "")
    gpu = _GPU.match(text) if group == "GPU" or " GPU" in text else None
    if gpu:
        name = "-".join(gpu.group(1).casefold().split())
        return "gpu", _GPU_ALIASES.get(name, name)
    return None


def _expression(sku: Mapping[str, Any]) -> Mapping[str, Any]:
    """The newest pricing expression of a chronological list."""
    return _object(_last(_object(sku).get("pricingInfo")).get("pricingExpression"))


def _last(items: Any) -> Mapping[str, Any]:
    return _object(items[-1]) if isinstance(items, list) and items else {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _hourly(money: Mapping[str, Any], unit: str) -> Decimal | None:
    amount, hours = _amount(money), _UNIT_HOURS.get(unit)
    return amount / hours if amount and hours and amount > 0 else None


def _amount(money: Mapping[str, Any]) -> Decimal | None:
    """A price. Both its parts must be stated, zeros too: without its nanos 3.11 would read as 3."""
    units, nanos = decimal_of(money.get("units")), decimal_of(money.get("nanos"))
    return None if units is None or nanos is None or min(units, nanos) < 0 else units + nanos / Decimal(10**9)
