"""What is billed beside the instance: storage, egress, addresses, CPU and memory meters of serverless offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from planner.cost_lines import CostLine, exact, line
from planner.cost_rates import rate
from planner.reasons import Reason, reason

HOURS_PER_MONTH = Decimal(730)
Meter = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Surcharges:
    """A catalog's surcharges by provider, kind and region."""

    rows: Mapping[tuple[str, str, str], Meter]

    def find(self, provider: str, kind: str, region: str) -> Meter | None:
        """The surcharge of a region, else the provider's general one; None where nothing is known."""
        return self.rows.get((provider, kind, region)) or self.rows.get((provider, kind, ""))


def surcharge_table(rows: Iterable[Meter]) -> Surcharges:
    """Index surcharges; of several products of one kind the cheapest counts."""
    table: dict[tuple[str, str, str], Meter] = {}
    for row in rows:
        if row["price_usd"] is None:
            continue
        key = (row["provider"], row["kind"], row["region"] or "")
        held = table.get(key)
        if held is None or row["price_usd"] < held["price_usd"]:
            table[key] = row
    return Surcharges(table)


def storage_lines(
    table: Surcharges,
    offer: Mapping[str, Any],
    *,
    need_gb: float,
    instances: int,
    hours: Decimal,
    shared: bool,
) -> tuple[list[CostLine], list[Reason], Reason | None]:
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
        return [line("block_storage", need_gb * copies, "gb_month", 0, "included disk")], [], None
    meter = table.find(offer["provider"], "block_storage", offer["region"])
    if meter is None:
        if local is not None and offer["tenancy"] != "serverless":
            return [], [], reason("disk_too_small", need_gb=need_gb, disk_gb=local)
        return [], [reason("storage_price_unknown", need_gb=need_gb * copies)], None
    billable = max(Decimal(str(need_gb)) * copies - Decimal(meter["included_quantity"] or 0), Decimal(0))
    months = hours / HOURS_PER_MONTH
    return [line("block_storage", billable * months, "gb_month", meter["price_usd"], _source(meter))], [], None


def egress_lines(
    table: Surcharges, offer: Mapping[str, Any], egress_gb: float | None
) -> tuple[list[CostLine], list[Reason]]:
    """Traffic beyond what is included, at the price of each tier."""
    if not egress_gb:
        return [], []
    meter = table.find(offer["provider"], "egress", offer["region"])
    if meter is None:
        return [], [reason("egress_price_unknown", egress_gb=egress_gb)]
    per_gb = {"gb": Decimal(1), "gib": Decimal(2**30) / Decimal(10**9), "tb": Decimal(1000)}.get(meter["unit"])
    if per_gb is None:
        return [], [reason("egress_price_unknown", egress_gb=egress_gb)]
    billable = max(Decimal(str(egress_gb)) / per_gb - Decimal(meter["included_quantity"] or 0), Decimal(0))
    unit = meter["unit"]
    return [line("egress", amount, unit, price, _source(meter)) for amount, price in _tiered(meter, billable)], []


def _tiered(meter: Meter, amount: Decimal) -> list[tuple[Decimal, Decimal]]:
    """Split an amount over the tiers; tier prices are in the meter's own currency."""
    usd = exact(meter["price_usd"])
    tiers = sorted(meter["tiers"] or [], key=lambda t: t["from_quantity"])
    if not tiers:
        return [(amount, usd)]
    native = Decimal(meter["price"])
    to_usd = Decimal(str(meter["price_usd"])) / native if native else _rate_of_free(meter)
    starts = [Decimal(t["from_quantity"]) for t in tiers]
    prices = [Decimal(t["price"]) * to_usd for t in tiers]
    if starts[0] > 0:
        starts, prices = [Decimal(0), *starts], [usd, *prices]
    parts: list[tuple[Decimal, Decimal]] = []
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else None
        part = (amount if end is None else min(amount, end)) - start
        if part > 0:
            parts.append((part, prices[index]))
    return parts


def _rate_of_free(meter: Meter) -> Decimal:
    """The exchange rate of a meter whose first price is zero: only known for dollars."""
    return Decimal(1) if meter["currency"] == "USD" else Decimal(str(meter.get("usd_per_unit") or 1))


def address_lines(table: Surcharges, offer: Mapping[str, Any], instances: int, hours: Decimal) -> list[CostLine]:
    """One public IPv4 address for each instance that answers users."""
    meter = table.find(offer["provider"], "public_ipv4", offer["region"])
    if meter is None or not meter["price_usd"]:
        return []
    months = hours / HOURS_PER_MONTH
    quantity = months * instances if meter["unit"].endswith("month") else hours * instances
    return [line("public_ipv4", quantity, f"address_{meter['unit']}", meter["price_usd"], _source(meter))]


def meter_lines(table: Surcharges, offer: Mapping[str, Any], instance_hours: Decimal) -> tuple[list[CostLine], bool]:
    """CPU and memory of a serverless offer whose provider bills them apart; True where sizes were assumed."""
    if offer["tenancy"] != "serverless":
        return [], False
    lines: list[CostLine] = []
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
        lines.append(line(kind, Decimal(str(size)) * instance_hours, unit, meter["price_usd"], _source(meter)))
    return lines, assumed


def _source(meter: Meter) -> str:
    return str(meter["source_url"] or meter["provider"])
