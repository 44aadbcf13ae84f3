"""Where options meet offers: the offers of each shape, priced and ranked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.filters import OfferFilter
from catalog.plan_queries import offers_of_shapes
from catalog.reader import Catalog
from planner.candidates import exclusion
from planner.cost import Usage, price
from planner.cost_extras import Surcharges
from planner.cost_rates import start_habit
from planner.options import Option, WorkloadPlanner
from planner.policy import HOURS_PER_MONTH, Policy
from planner.ranking import Plan, rank
from planner.reasons import Reason, reason
from planner.rejections import RuledOut
from planner.request import Request

DEFAULT_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Ask:
    """Everything that a plan depends on beside the catalog."""

    request: Request
    policy: Policy
    wanted: OfferFilter
    limit: int = DEFAULT_LIMIT


@dataclass(slots=True)
class Desk:
    """The offers and surcharges of one plan; each shape's offers are fetched once."""

    catalog: Catalog
    ask: Ask
    table: Surcharges
    _offers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def fetch(self, options: Iterable[Option], per_terms: int | None = None) -> None:
        """Fetch the offers of these options' shapes, as far as they are not here yet."""
        keys = sorted({o.shape.key for o in options} - self._offers.keys())
        if not keys:
            return
        self._offers.update({key: [] for key in keys})
        limit = per_terms or self.ask.limit
        for row in offers_of_shapes(self.catalog, keys, self.ask.wanted, per_terms=limit):
            self._offers[row["shape_key"]].append(row)

    def ranked(
        self,
        planner: WorkloadPlanner,
        options: Iterable[Option],
        ruled_out: RuledOut,
        policy: Policy | None = None,
        per_shape: int | None = None,
    ) -> list[Plan]:
        """Every option on every admitted offer of its shape, best first.

        Args:
            planner: the workload.
            options: ways to run it.
            ruled_out: collects what money, time or disk rules out.
            policy: another policy than the asked one, for alternatives.
            per_shape: only so many of each shape's offers, the lowest hourly prices first.
        """
        rules = policy or self.ask.policy
        plans: list[Plan] = []
        for option in options:
            for offer in self._offers.get(option.shape.key, [])[:per_shape]:
                if exclusion(offer, rules) is not None:
                    continue
                plan = _plan(planner, option, offer, self.table)
                if isinstance(plan, dict):
                    ruled_out.add(plan)
                    continue
                why, distance = _limit_broken(plan, rules)
                if why is None:
                    plans.append(plan)
                else:
                    ruled_out.add(why, plan, distance)
        return rank(plans, self.ask.request.workload, rules)


def _plan(planner: WorkloadPlanner, option: Option, offer: dict[str, Any], table: Surcharges) -> Plan | Reason:
    stock = offer["stock_count"]
    if stock is not None and option.instances > stock:
        return reason("stock_too_small", instances=option.instances, stock=stock)
    usage = planner.usage(option, offer)
    if not isinstance(usage, Usage):
        return usage
    priced = price(offer, usage, table)
    if priced.refusal is not None:
        return priced.refusal
    reasons = list(option.reasons)
    hours = None
    overhead = usage.interruptions
    if overhead is not None:
        reasons.append(
            reason(
                "spot_priced_with_interruptions",
                overhead_share=overhead.overhead,
                mean_hours=round(overhead.mean_hours, 1),
                checkpoint_interval_h=overhead.interval_h,
                rate_stated=overhead.rate_stated,
            )
        )
    if not usage.monthly:
        hours = usage.hours * (1 + (overhead.overhead if overhead else 0.0)) + usage.start.total_s / 3600
    elif usage.starts:
        if start_habit(offer["provider"]).stopped_billed:
            warnings = (*priced.warnings, reason("stopped_is_billed"))
            priced = replace(priced, warnings=warnings)
        reasons.append(_cold_reason(option, usage, offer))
    return Plan(option, offer, priced, hours, tuple(reasons))


def _cold_reason(option: Option, usage: Usage, offer: Mapping[str, Any]) -> Reason:
    """What a scale to zero is felt as: the slowest answers with and without a cold start."""
    speed = option.speed or {}
    warm_ms = (option.ttft_ms or 0.0) + speed.get("prefill_ms", 0.0) * max(0, (option.users or 1) - 1)
    start = usage.start
    return reason(
        "cold_start",
        kind=start.kind,
        cold_start_s=round(start.total_s, 1),
        boot_s=start.boot_s,
        image_s=round(start.image_s, 1),
        load_s=round(start.load_s, 1),
        ttft_p99_ms_warm=round(warm_ms),
        ttft_p99_ms_cold=round(warm_ms + start.total_s * 1000),
        always_on_usd=round(offer["price_usd_hour"] * option.instances * HOURS_PER_MONTH, 2),
    )


def _limit_broken(plan: Plan, policy: Policy) -> tuple[Reason | None, float]:
    """The first of the user's limits that a plan breaks, and by which factor."""
    if policy.deadline_h is not None and plan.hours is not None and plan.hours > policy.deadline_h:
        why = reason("deadline_missed", hours=round(plan.hours, 2), deadline_h=policy.deadline_h)
        return why, plan.hours / policy.deadline_h
    total = plan.total
    if policy.budget_usd is not None and total > policy.budget_usd:
        return reason(
            "over_budget", cost_total_usd=round(total, 2), budget_usd=policy.budget_usd
        ), total / policy.budget_usd
    return None, 0.0
