"""The plan: which offers run a workload, what they cost in all, and why the others were left out.

The front door for every interface. A service may be planned in two tiers: what users wait for on demand, and what may
wait on cheaper, interruptible hardware.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from catalog.filters import build_filter
from catalog.reader import Catalog
from planner.desk import DEFAULT_LIMIT, Ask
from planner.plan_core import Result, make_plan
from planner.plan_serving import ServingPlanner
from planner.policy import parse_plan_keys, policy_for
from planner.reasons import reason
from planner.request import Request, parse_request

_BATCH_OPTIONS = ("on_demand", "reserved", "scheduled", "spot")
_ROWS_A_TIER = 5


def plan_workload(
    catalog: Catalog,
    workload: Mapping[str, Any],
    *,
    plan_keys: Mapping[str, Any] | None = None,
    filters: Mapping[str, Any] | None = None,
    allow_stale: bool = False,
    limit: int = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Plan from plain values, as programs have them: the answer object of the contract.

    Args:
        catalog: an open snapshot.
        workload: a request with its `workload` key.
        plan_keys: requests_s, ttft_ms_max, budget_usd and the others of `planner.policy.PlanKeys`.
        filters: offer filters by column name.
        allow_stale: rank old prices, too.
        limit: at most so many rows.

    Raises:
        RequestError: a key or value of the workload or the plan that cannot be read.
        ConfigurationError: a filter that cannot be read.
    """
    return plan_in_tiers(
        catalog, ask_of(workload, plan_keys or {}, filters or {}, allow_stale=allow_stale, limit=limit)
    ).answer


def ask_of(
    workload: Mapping[str, Any],
    plan_keys: Mapping[str, Any],
    filters: Mapping[str, Any],
    *,
    allow_stale: bool,
    limit: int,
) -> Ask:
    """Check every key and put the ask together. The workload's own gpu limits the candidates.

    Raises:
        RequestError: a key or value of the workload or the plan that cannot be read.
        ConfigurationError: a filter that cannot be read.
    """
    request = parse_request(workload)
    keys = parse_plan_keys(plan_keys, request.workload)
    given = {**filters, "gpu": (request.gpu,)} if request.gpu is not None else dict(filters)
    wanted = build_filter(given)
    policy = policy_for(request, keys, asked_purchase=wanted.purchase_option, allow_stale=allow_stale)
    return Ask(request, policy, wanted, limit)


def plan_in_tiers(catalog: Catalog, ask: Ask) -> Result:
    """Plan both tiers; without a batch share it is one plan.

    The answer is that of the interactive tier, with `tiers`: for each its share, load, best rows and monthly cost, and
    `tiers_cost_usd_month`, the sum of both first rows (None where one has none).
    """
    share = ask.policy.batch_share
    if not share or ask.request.workload != "serve":
        return make_plan(catalog, ask)
    interactive = _part(ask, 1 - share)
    patient = _patient(_part(ask, share), asked_purchase=bool(ask.wanted.purchase_option))
    front = make_plan(catalog, interactive)
    back = make_plan(catalog, patient, planner=ServingPlanner(patient.request, patient.policy, relaxed=True))
    tiers = [
        _tier("interactive", 1 - share, interactive, front),
        _tier("batch", share, patient, back),
    ]
    costs = [tier["cost_usd_month"] for tier in tiers]
    front.answer["policy"] |= {"batch_share": share, "requests_s": ask.policy.requests_s}
    front.answer["tiers"] = tiers
    front.answer["tiers_cost_usd_month"] = None if None in costs else round(sum(costs), 6)
    front.answer["warnings"].append(reason("two_tiers", interactive_share=round(1 - share, 4), batch_share=share))
    if not back.plans:
        front.plans.clear()
        front.answer["rows"] = []
        front.answer["rejected"] = back.answer["rejected"]
        front.only_stale = back.only_stale
    return front


def _part(ask: Ask, share: float) -> Ask:
    """The ask for a share of the load: users and requests a second."""
    request: Request = ask.request
    if request.concurrency is not None:
        request = replace(request, concurrency=max(1, math.ceil(request.concurrency * share - 1e-9)))
    policy = ask.policy
    if policy.requests_s is not None:
        mean = policy.average_requests_s or policy.requests_s
        policy = replace(policy, requests_s=policy.requests_s * share, average_requests_s=mean * share)
    if policy.egress_gb is not None:
        policy = replace(policy, egress_gb=policy.egress_gb * share)
    return replace(ask, request=request, policy=policy)


def _patient(ask: Ask, *, asked_purchase: bool) -> Ask:
    """The same with everything that the back tier may use: no latency limit, spot."""
    options = ask.policy.purchase_options if asked_purchase else _BATCH_OPTIONS
    policy = replace(
        ask.policy, ttft_ms_max=None, tpot_ms_max=None, service_level_stated=False, purchase_options=options
    )
    return replace(ask, policy=policy)


def _tier(name: str, share: float, ask: Ask, result: Result) -> dict[str, Any]:
    rows = result.answer["rows"]
    return {
        "tier": name,
        "share": round(share, 6),
        "concurrency": ask.request.concurrency,
        "requests_s": ask.policy.requests_s,
        "cost_usd_month": rows[0]["cost_total_usd"] if rows else None,
        "rows": rows[:_ROWS_A_TIER],
    }
