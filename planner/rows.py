"""A plan as the answer's row: every key of the contract, None where it does not apply."""

from __future__ import annotations

from typing import Any

from planner.answer import rounded
from planner.cost_lines import line_dict
from planner.policy import DAYS_PER_MONTH, Policy
from planner.ranking import Plan
from planner.reasons import Reason, offer_warnings, reason


def row_of(plan: Plan, rank: int, workload: str, policy: Policy) -> dict[str, Any]:
    """The row of one plan. Money is in US dollars; per month for serve, for the whole job otherwise."""
    option, offer, cost = plan.option, plan.offer, plan.priced.cost.exact()
    price = offer["price_usd_hour"]
    return {
        "rank": rank,
        "provider": offer["provider"],
        "via": offer["via"],
        "instance_type": offer["instance_type"],
        "region": offer["region"],
        "country": offer["country"],
        "gpu": offer["gpu"],
        "gpu_count": offer["gpu_count"],
        "purchase_option": offer["purchase_option"],
        "commitment_days": offer["commitment_days"],
        "instances": option.instances,
        "replicas": option.replicas,
        "plan_gpus": option.plan_gpus,
        "tp": option.tp,
        "pp": option.pp,
        "dp": option.dp,
        "verdict": option.verdict,
        "required_gib_per_gpu": rounded(option.required_gib),
        "headroom_gib_per_gpu": rounded(option.headroom_gib),
        "gpu_interconnect": offer["gpu_interconnect"],
        "tpot_ms": rounded(option.tpot_ms),
        "ttft_ms": rounded(option.ttft_ms),
        "output_tokens_s": rounded(option.output_tokens_s),
        "seconds_per_item": rounded(option.seconds_per_item),
        "hours": rounded(plan.hours, 8),
        "price_usd_hour": price,
        "plan_usd_hour": round(price * option.instances, 9),
        "cost_lines": [line_dict(item) for item in cost.lines],
        "cost_compute_usd": float(cost.compute),
        "cost_storage_usd": float(cost.storage),
        "cost_egress_usd": float(cost.egress),
        "cost_total_usd": float(cost.total),
        "cost_usd_month": float(cost.total) if workload == "serve" else None,
        "cost_usd_per_million_tokens": rounded(_per_million(plan, float(cost.total), workload, policy), 7),
        "availability": offer["availability"],
        "observed_at": offer["observed_at"],
        "age_s": offer["age_s"],
        "freshness": offer["freshness"],
        "provenance": offer["provenance"],
        "source_url": offer["source_url"],
        "warnings": [*offer_warnings(offer), *option.warnings, *plan.priced.warnings],
        "reasons": [*plan.reasons, *_of_items(plan, float(cost.total))],
    }


def _of_items(plan: Plan, total: float) -> list[Reason]:
    """Dollars per thousand images, clips or tracks, where the work is counted in such."""
    items = (plan.option.speed or {}).get("items")
    return [reason("cost_per_thousand_items", usd=round(total / items * 1000, 6), items=items)] if items else []


def _per_million(plan: Plan, total: float, workload: str, policy: Policy) -> float | None:
    """Dollars per million output tokens at the mean load: total / (tokens a second x seconds in use) x 10^6."""
    if plan.option.work_million_tokens:
        return total / plan.option.work_million_tokens
    rate = plan.option.output_tokens_s
    if workload != "serve" or not rate:
        return None
    if policy.average_requests_s and policy.requests_s:
        rate *= policy.average_requests_s / policy.requests_s
    seconds = policy.hours_per_day * DAYS_PER_MONTH * 3600
    return total / (rate * seconds) * 1e6
