"""What is billed beside the instance: storage, egress, addresses, CPU and memory meters of serverless offers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.cost_lines import Charge
from planner.cost_rates import rate
from planner.reasons import Reason, reason

HOURS_PER_MONTH = 730.0
_GB_PER_UNIT = {"gb": 1.0, "gib": 2**30 / 1e9, "tb": 1000.0}
Meter = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Surcharges:
    """A catalog's surcharges by provider, kind and region; `dearest` of each provider and kind over its regions."""

    rows: Mapping[tuple[str, str, str], Meter]
    dearest: Mapping[tuple[str, str], Meter]

    def find(self, provider: str, kind: str, region: str) -> Meter | None:
        """The surcharge of a region, else the provider's general one, else its dearest of another region.

        A region whose traffic or storage nobody published is not free: what is known of the provider stands in.
        """
        exact = self.rows.get((provider, kind, region)) or self.rows.get((provider, kind, ""))
        return exact or self.dearest.get((provider, kind))


def surcharge_table(rows: Iterable[Meter]) -> Surcharges:
    """Index surcharges; of several products of one kind the cheapest counts."""
    table: dict[tuple[str, str, str], Meter] = {}
    dearest: dict[tuple[str, str], Meter] = {}
    for row in rows:
        if row["price_usd"] is None:
            continue
        key = (row["provider"], row["kind"], row["region"] or "")
        held = table.get(key)
        if held is None or row["price_usd"] < held["price_usd"]:
            table[key] = row
    for (provider, kind, _), row in table.items():
        held = dearest.get((provider, kind))
        if held is None or row["price_usd"] > held["price_usd"]:
            dearest[(provider, kind)] = row
    return Surcharges(table, dearest)


def storage_lines(
    table: Surcharges,
    offer: Mapping[str, Any],
    *,
    need_gb: float,
    instances: int,
    hours: float,
    shared: bool,
) -> tuple[list[Charge], list[Reason], Reason | None]:
    """Disk for weights and data: included where the instance's own disk holds it, else a volume for `hours`.

    Args:
        table: surcharges.
        offer: the offer's row.
        need_gb: gigabytes, per instance unless `shared`.
        instances: how many instances keep a copy.
        hours: how long the volumes exist; a month is 730.
        shared: the size is that of all instances together.

    Returns:
        lines, warnings, and the reason for which the offer cannot be used at all, if any.
    """
    if need_gb <= 0:
        return [], [], None
    local = offer["local_storage_gb"]
    copies = 1 if shared else instances
    if local is not None and local * (instances if shared else 1) >= need_gb:
        return [Charge("block_storage", need_gb * copies, "gb_month", 0.0, "included disk")], [], None
    meter = table.find(offer["provider"], "block_storage", offer["region"])
    if meter is None:
        if local is not None and offer["tenancy"] != "serverless":
            return [], [], reason("disk_too_small", need_gb=need_gb, disk_gb=local)
        return [], [reason("storage_price_unknown", need_gb=need_gb * copies)], None
    months, source = hours / HOURS_PER_MONTH, _source(meter)
    parts = billed(meter, need_gb * copies) or [(0.0, float(meter["price_usd"]))]
    return [Charge("block_storage", gb * months, "gb_month", price, source) for gb, price in parts], [], None


def egress_lines(
    table: Surcharges, offer: Mapping[str, Any], egress_gb: float | None
) -> tuple[list[Charge], list[Reason]]:
    """Traffic beyond what is included, at the price of each tier."""
    if not egress_gb:
        return [], []
    meter = table.find(offer["provider"], "egress", offer["region"])
    if meter is None:
        return [], [reason("egress_price_unknown", egress_gb=egress_gb)]
    gb_per_unit = _GB_PER_UNIT.get(meter["unit"])
    if gb_per_unit is None:
        return [], [reason("egress_price_unknown", egress_gb=egress_gb)]
    unit, source = meter["unit"], _source(meter)
    return [Charge("egress", n, unit, price, source) for n, price in billed(meter, egress_gb / gb_per_unit)], []


def billed(meter: Meter, amount: float, months: float = 1.0) -> list[tuple[float, float]]:
    """What of an amount is paid: (quantity, US dollars each) beyond what is included, tier by tier.

    Args:
        meter: `included_quantity` and the bounds of `tiers` are per month; tier prices are in the meter's own currency.
        amount: quantity in the meter's unit.
        months: the time in which it accrues, for meters that count time; less than one month still includes all of it.

    Tiers that begin at zero are counted from the first paid unit; where they begin with the included quantity or
    beyond it, as in price lists whose first step is free, their bounds count it.
    """
    span = max(months, 1.0)
    usd, free = float(meter["price_usd"]), float(meter["included_quantity"] or 0) * span
    to_usd = usd / float(meter["price"]) if meter["price"] else 1.0
    steps = sorted((float(t["from_quantity"]) * span, float(t["price"]) * to_usd) for t in meter["tiers"] or ())
    if not steps or steps[0][0] < free or not free:
        amount, free = max(amount - free, 0.0), 0.0
    if not steps or steps[0][0] > free:
        steps = [(free, usd), *steps]
    starts, prices = [start for start, _ in steps], [price for _, price in steps]
    ends = [*starts[1:], math.inf]
    parts = zip(starts, ends, prices, strict=True)
    return [(min(amount, end) - start, price) for start, end, price in parts if amount > start]


def address_lines(table: Surcharges, offer: Mapping[str, Any], instances: int, hours: float) -> list[Charge]:
    """One public IPv4 address for each instance that answers users; what is included, an account has once."""
    meter = table.find(offer["provider"], "public_ipv4", offer["region"])
    if meter is None or not meter["price_usd"]:
        return []
    months = hours / HOURS_PER_MONTH
    quantity = months * instances if meter["unit"].endswith("month") else hours * instances
    unit, source = f"address_{meter['unit']}", _source(meter)
    return [Charge("public_ipv4", n, unit, price, source) for n, price in billed(meter, quantity, months)]


def meter_lines(table: Surcharges, offer: Mapping[str, Any], instance_hours: float) -> tuple[list[Charge], bool]:
    """CPU and memory of a serverless offer whose provider bills them apart; True where sizes were assumed."""
    if offer["tenancy"] != "serverless":
        return [], False
    lines: list[Charge] = []
    assumed = False
    for kind, unit, column, default in (
        ("cpu", "core_hour", "vcpu_count", "serverless_cores"),
        ("memory", "gib_hour", "memory_gib", "serverless_memory_gib"),
    ):
        meter = table.find(offer["provider"], kind, offer["region"])
        if meter is None:
            continue
        size = offer[column]
        if size is None:
            size, assumed = rate(default) * offer["gpu_count"], True
        lines.append(Charge(kind, float(size) * instance_hours, unit, meter["price_usd"], _source(meter)))
    return lines, assumed


def _source(meter: Meter) -> str:
    return str(meter["source_url"] or meter["provider"])
