"""What a plan costs on one offer: use, starts, rounding, interruptions, commitment, meters, storage, egress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.cost_extras import Surcharges, address_lines, egress_lines, meter_lines, storage_lines
from planner.cost_lines import Charge, Cost, cost_of
from planner.cost_spot import Interruptions
from planner.cost_start import ColdStart, rounded_up_s
from planner.reasons import Reason, reason

_HOURS_PER_DAY = 24
_MONTH_H = 730.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What is used of an offer, in one month (`monthly`) or for one job.

    `hours` are useful hours of each instance, `starts` its starts. `storage_gb` is per instance unless
    `storage_shared`. `addresses`: whether instances answer the public. `disk_survives` False: what is stored must
    outlive an instance, so its own disk does not count and a volume is paid.
    """

    monthly: bool
    instances: int
    hours: float
    starts: float
    storage_gb: float
    storage_shared: bool
    egress_gb: float | None
    addresses: bool
    start: ColdStart
    interruptions: Interruptions | None = None
    disk_survives: bool = True


@dataclass(frozen=True, slots=True)
class Priced:
    """The cost, what to warn of, and why the offer cannot be used, if so."""

    cost: Cost
    warnings: tuple[Reason, ...]
    refusal: Reason | None = None


def price(offer: Mapping[str, Any], usage: Usage, table: Surcharges) -> Priced:
    """Price one offer.

    Args:
        offer: a row of `catalog.plan_queries.offers_of_shapes`.
        usage: what is used of it.
        table: the catalog's surcharges.
    """
    compute, warnings = _compute_lines(offer, usage)
    hours = sum(charge.quantity for charge in compute)
    meters, assumed = meter_lines(table, offer, hours)
    if assumed:
        warnings.append(reason("meters_assumed"))
    elapsed = _MONTH_H if usage.monthly else usage.hours * (1 + _overhead(usage))
    stored, notes, refusal = storage_lines(
        table,
        offer if usage.disk_survives else {**offer, "local_storage_gb": None},
        need_gb=usage.storage_gb,
        instances=usage.instances,
        hours=elapsed,
        shared=usage.storage_shared,
    )
    out, egress_notes = egress_lines(table, offer, usage.egress_gb)
    addresses = address_lines(table, offer, usage.instances, elapsed) if usage.addresses else []
    cost = cost_of((*compute, *meters, *addresses, *stored, *out))
    return Priced(cost, (*warnings, *notes, *egress_notes), refusal)


def _overhead(usage: Usage) -> float:
    return usage.interruptions.overhead if usage.interruptions else 0.0


def _compute_lines(offer: Mapping[str, Any], usage: Usage) -> tuple[list[Charge], list[Reason]]:
    unit_price = float(offer["price_usd_hour"])
    source = str(offer["source_url"] or offer["provider"])
    instances = usage.instances
    lines: list[Charge] = []
    warnings: list[Reason] = []

    def add(kind: str, hours: float) -> None:
        if hours > 1e-9:
            lines.append(Charge(kind, hours * instances, "instance_hour", unit_price, source))

    add("compute", usage.hours)
    repeated = usage.hours * _overhead(usage)
    add("interruption", repeated)
    committed = offer["purchase_option"] == "reserved" and offer["commitment_days"]
    if committed:
        add("commitment", _idle_commitment(offer, usage, usage.hours + repeated))
        return lines, warnings
    if usage.starts:
        cold_h = usage.starts * usage.start.billed_s / 3600
        add("cold_start", cold_h)
        session_s = (usage.hours + repeated) * 3600 / usage.starts + usage.start.billed_s
        billed_s = rounded_up_s(session_s, offer["billing_increment_s"], offer["minimum_charge_s"])
        add("billing_increment", usage.starts * (billed_s - session_s) / 3600)
        if offer["billing_increment_s"] is None:
            warnings.append(reason("billing_increment_unknown"))
    return lines, warnings


def _idle_commitment(offer: Mapping[str, Any], usage: Usage, used_h: float) -> float:
    """Hours that a reservation bills without use: the rest of the month, or of the shortest term for a job."""
    if usage.monthly:
        return max(0.0, _MONTH_H - used_h)
    return max(0.0, float(offer["commitment_days"]) * _HOURS_PER_DAY - used_h)
