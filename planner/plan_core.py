"""One plan: shapes, options, offers, ranking, alternatives and what was left out, put together into the answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from catalog.plan_queries import offer_shapes
from catalog.queries import provider_health, surcharges
from catalog.reader import Catalog
from planner.alternatives import alternatives, break_even
from planner.candidates import Candidates, Shape, collect
from planner.cost_extras import surcharge_table
from planner.cost_start import start_assumption
from planner.desk import Ask, Desk
from planner.options import Outcome, WorkloadPlanner
from planner.plan_serving import ServingPlanner
from planner.policy import Policy
from planner.ranking import Plan, pareto
from planner.reasons import Reason, reason
from planner.rejections import RuledOut, rejected, slow_reason
from planner.request import MEDIA, SERVING, Request
from planner.rows import row_of
from planner.split_rule import pinned, split_rule

# Shapes on which splits are tried where single GPUs are enough.
_SPLITS_TRIED = 80


@dataclass(slots=True)
class Result:
    """A plan, ranked, with what an interface needs: the answer, and whether only old prices would have fitted."""

    answer: dict[str, Any]
    plans: list[Plan]
    only_stale: bool = False


def workload_planner(request: Request, policy: Policy) -> WorkloadPlanner:
    """The planner of a workload."""
    if request.workload in SERVING:
        return ServingPlanner(request, policy)
    if request.workload in MEDIA:
        from planner.plan_media import MediaPlanner

        return MediaPlanner(request, policy)
    from planner.plan_training import TrainingPlanner

    return TrainingPlanner(request, policy)


def make_plan(catalog: Catalog, ask: Ask, planner: WorkloadPlanner | None = None) -> Result:
    """Plan a workload on a catalog.

    Args:
        catalog: an open snapshot.
        ask: the workload, the policy and the offer filter.
        planner: how to plan the workload, where not in the usual way.

    Raises:
        RequestError: the workload cannot be read as written.
    """
    found = collect(offer_shapes(catalog, ask.wanted), ask.policy)
    planner = planner or workload_planner(ask.request, ask.policy)
    outcomes = evaluate(planner, found)
    allowed, aside = split_rule(
        [o for _, outcome in outcomes for o in outcome.options], ask.request, ask.policy, found.open
    )
    desk = Desk(catalog, ask, surcharge_table(surcharges(catalog)))
    desk.fetch([*allowed, *aside])
    ruled_out = RuledOut()
    ranked = _frontier(_with_break_even(desk.ranked(planner, allowed, ruled_out)))
    others = desk.ranked(planner, aside, RuledOut())
    workload = ask.request.workload
    shown = ranked[: ask.limit]
    answer = {
        "as_of": catalog.as_of(),
        "workload": workload_echo(ask.request, planner),
        "policy": _policy_echo(ask.policy, [*ranked, *others]),
        "rows": [row_of(p, n, workload, ask.policy) for n, p in enumerate(shown, 1)],
        "alternatives": [
            row_of(p, n, workload, ask.policy)
            for n, p in enumerate(alternatives(desk, found, planner, ranked, others), 1)
        ],
        "rejected": rejected(found, outcomes, allowed, aside, ruled_out, planner, ask.policy, any_ranked=bool(ranked)),
        "providers": _providers(catalog, ask, shown),
        "assumptions": [*planner.assumptions(), *_start_assumptions(ask, [*ranked, *others])],
        "warnings": _warnings(catalog, ask, ranked, found),
    }
    return Result(answer, ranked, only_stale=not ranked and _old_would_fit(found, planner))


def evaluate(planner: WorkloadPlanner, found: Candidates) -> list[tuple[Shape, Outcome]]:
    """Ask the fit model about every shape.

    Single GPUs come first; only where they cannot carry the load, or latency is the objective, all splits are tried.
    Otherwise splits are tried on the cheapest shapes alone, to be shown as alternatives.
    """
    if not isinstance(planner, ServingPlanner) or pinned(planner.request):
        return [(shape, planner.options(shape)) for shape in found.open]
    planner.splits = False
    outcomes = [(shape, planner.options(shape)) for shape in found.open]
    planner.splits = True
    enough = any(o.meets for _, outcome in outcomes for o in outcome.options)
    if not enough or planner.policy.objective == "latency":
        return [(shape, planner.options(shape)) for shape in found.open]
    return _with_cheap_splits(planner, found, outcomes)


def _with_cheap_splits(
    planner: ServingPlanner, found: Candidates, outcomes: list[tuple[Shape, Outcome]]
) -> list[tuple[Shape, Outcome]]:
    """Add split options of the cheapest shapes that hold several GPUs."""
    several = sorted(
        (shape for shape in found.open if shape.gpu_count > 1), key=lambda shape: found.lowest_usd_hour[shape.key]
    )
    split: dict[str, Outcome] = {}
    for shape in several[:_SPLITS_TRIED]:
        outcome = planner.options(shape)
        if outcome.options:
            split[shape.key] = outcome
    return [(shape, split.get(shape.key, outcome)) for shape, outcome in outcomes]


def workload_echo(request: Request, planner: WorkloadPlanner) -> dict[str, Any]:
    """The workload's keys: as stated, and defaults as planned."""
    stated = {f.name: v for f in fields(request) if (v := getattr(request, f.name)) is not None}
    return {**{k: v for k, v in planner.resolved().items() if v is not None}, **stated}


def _policy_echo(policy: Policy, plans: list[Plan]) -> dict[str, Any]:
    """The policy with its defaults; the disk is that of the first plan, since it follows from the weights."""
    echo = policy.as_dict()
    if echo["storage_gb"] is None and plans:
        echo["storage_gb"] = plans[0].option.disk_gb
    return echo


def _with_break_even(plans: list[Plan]) -> list[Plan]:
    """Say of every reservation after how many months it costs less than the same GPU on demand, or the best of all."""
    on_demand = [p for p in plans if p.offer["purchase_option"] == "on_demand"]
    if not on_demand or len(on_demand) == len(plans):
        return plans
    by_gpu: dict[tuple[str, str], Plan] = {}
    for plan in on_demand:
        by_gpu.setdefault((plan.offer["provider"], plan.option.shape.gpu), plan)
    return [
        p.because(*break_even(p, by_gpu.get((p.offer["provider"], p.option.shape.gpu), on_demand[0])))
        if p.offer["purchase_option"] == "reserved"
        else p
        for p in plans
    ]


def _start_assumptions(ask: Ask, plans: list[Plan]) -> list[str]:
    """The rates of a start, where anything starts: every job, and a service that scales to zero."""
    starts = ask.request.workload != "serve" or any(r["code"] == "cold_start" for p in plans for r in p.reasons)
    return [start_assumption(ask.policy.cold_start)] if starts else []


def _frontier(plans: list[Plan]) -> list[Plan]:
    """Mark the plans that nothing beats in both cost and speed."""
    best = pareto(plans)
    return [p.because(reason("pareto")) if id(p) in best else p for p in plans]


def _old_would_fit(found: Candidates, planner: WorkloadPlanner) -> bool:
    """Whether prices too old to rank are all that stands between the user and a plan."""
    return any(planner.options(shape).options for shape in found.stale)


def _providers(catalog: Catalog, ask: Ask, shown: list[Plan]) -> list[dict[str, Any]]:
    """The state of every provider behind a row or a filter, and of every one whose last refresh went wrong.

    Where there is no row, the state of all of them: one of them may be the reason.
    """
    present = {p.offer["provider"] for p in shown} | {p.offer["via"] for p in shown} | set(ask.wanted.provider)
    return [
        {name: row[name] for name in ("provider", "outcome", "last_success_at", "age_s", "freshness", "note")}
        for row in provider_health(catalog)
        if not shown or row["provider"] in present or row["outcome"] in {"failed", "held", "partial"}
    ]


def _warnings(catalog: Catalog, ask: Ask, ranked: list[Plan], found: Candidates) -> list[Reason]:
    warnings: list[Reason] = [reason("catalog", text=text) for text in catalog.warnings]
    kinds = sorted({p.offer["provenance"] for p in ranked} - {"live"})
    if kinds:
        warnings.append(reason("prices_not_live", provenance=kinds))
    present = {p.offer["via"] or p.offer["provider"] for p in ranked}
    warnings += [
        reason("provider_trouble", provider=row["provider"], outcome=row["outcome"], note=row["note"])
        for row in provider_health(catalog)
        if row["outcome"] in {"failed", "held"} and row["provider"] in present
    ]
    if ranked and not ranked[0].option.meets:
        warnings.append(slow_reason(ranked[0].option, ask.policy) | {"code": "default_service_level_missed"})
    if found.sold_out:
        gpus = sorted({str(row["gpu"]) for row in found.sold_out})
        warnings.append(reason("scarce_supply", gpus=gpus, offers=sum(r["offer_count"] for r in found.sold_out)))
    if len(ranked) > ask.limit:
        warnings.append(reason("rows_cut", shown=ask.limit, rows=len(ranked)))
    if ranked and any(p.offer["currency"] != "USD" for p in ranked[: ask.limit]):
        warnings.append(reason("currency_converted"))
    warnings.append(reason("taxes_not_included"))
    return warnings
