"""What else could be done: split plans that the rules set aside, smaller formats, a commitment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from catalog.plan_queries import offer_shapes
from planner.candidates import Candidates, Shape, collect, shape_of
from planner.desk import Desk
from planner.options import WorkloadPlanner
from planner.plan_remedies import smaller_formats
from planner.plan_serving import ServingPlanner
from planner.policy import DAYS_PER_MONTH
from planner.ranking import Plan
from planner.reasons import Reason, reason
from planner.rejections import RuledOut
from planner.request import RequestError

_SPLITS_SHOWN = 3
_FORMATS_SHOWN = 2
_LONGEST_COMMITMENT_DAYS = 1096
_LEAST_CONTEXT = 2048
_ONE_SIZE_UP = 1.4
_MUCH_DEARER = 2.0
_NEIGHBOURS_SHOWN = 3
_OFFERS_A_SHAPE = 4


def alternatives(
    desk: Desk, found: Candidates, planner: WorkloadPlanner, ranked: list[Plan], aside: list[Plan]
) -> list[Plan]:
    """Plans that are not ranked, each with the reason that says what is different and what it saves a month or job."""
    best = ranked[0] if ranked else None
    return [
        *_split(aside),
        *_formats(desk, found, planner, best),
        *_smaller_load(desk, found, planner, best),
        *_larger(ranked),
        *_neighbours(desk, found, planner, ranked),
        *_commitment(desk, found, planner, best),
    ]


def _split(aside: list[Plan]) -> list[Plan]:
    """The cheapest split plans, one per GPU and split."""
    shown: dict[tuple[str, int], Plan] = {}
    for plan in aside:
        shown.setdefault((plan.option.shape.gpu, plan.option.tp * plan.option.pp), plan)
    return list(shown.values())[:_SPLITS_SHOWN]


def _saved(best: Plan | None, plan: Plan) -> float | None:
    return round(best.total - plan.total, 2) if best is not None else None


def _formats(desk: Desk, found: Candidates, planner: WorkloadPlanner, best: Plan | None) -> Iterator[Plan]:
    """Cheaper plans in weight formats and cache types that the user did not pin."""
    if not isinstance(planner, ServingPlanner) or not found.open:
        return
    request = planner.request
    current = planner.ready(found.open[0]).case
    changes: list[dict[str, Any]] = []
    if request.weights in {None, "native", "auto"}:
        changes += [{"weights": name} for name in smaller_formats(current.weights)[:3]]
    if request.kv_cache in {None, "auto"} and current.kv_cache in {"bf16", "fp16"}:
        changes.append({"kv_cache": "fp8"})
    shapes = _cheaper_shapes(desk, found, best)
    shown = 0
    cheapest = best
    for change in changes:
        plan = _cheapest_with(desk, shapes, planner, change)
        if plan is None or (cheapest is not None and plan.total >= cheapest.total and change.keys() == {"weights"}):
            continue
        if best is not None and plan.total >= best.total:
            continue
        cheapest = plan
        name, value = next(iter(change.items()))
        saved = _saved(best, plan)
        gib = None
        if best is not None and best.option.required_gib and plan.option.required_gib:
            gib = round(best.option.required_gib - plan.option.required_gib, 2)
        yield plan.because(
            reason(f"alternative_{name}", value=value, saves_usd=saved, saves_gib_per_gpu=gib),
            reason("quality_risk", format=value),
        )
        shown += 1
        if shown >= _FORMATS_SHOWN:
            return


def _smaller_load(desk: Desk, found: Candidates, planner: WorkloadPlanner, best: Plan | None) -> Iterator[Plan]:
    """What half the context, or half the users, would cost: where the load is what makes the plan dear."""
    if not isinstance(planner, ServingPlanner) or best is None or not planner.online:
        return
    request, case = planner.request, planner.ready(best.option.shape).case
    shapes = _cheaper_shapes(desk, found, best)
    if request.input_tokens is None and request.output_tokens is None and case.context > _LEAST_CONTEXT:
        plan = _cheapest_with(desk, shapes, planner, {"context": case.context // 2})
        if plan is not None and plan.total < best.total:
            yield plan.because(reason("alternative_context", value=case.context // 2, saves_usd=_saved(best, plan)))
    if request.concurrency is not None and request.concurrency > 1:
        plan = _cheapest_with(desk, shapes, planner, {"concurrency": request.concurrency // 2})
        if plan is not None and plan.total < best.total:
            yield plan.because(
                reason("alternative_users", value=request.concurrency // 2, saves_usd=_saved(best, plan))
            )


def _larger(ranked: list[Plan]) -> Iterator[Plan]:
    """One size up: the cheapest ranked plan with clearly more room than the first."""
    if not ranked or ranked[0].option.usable_gib is None:
        return
    first = ranked[0]
    room = (first.option.usable_gib or 0.0) * _ONE_SIZE_UP
    for plan in ranked[1:]:
        if plan.total > _MUCH_DEARER * first.total:
            return
        if (plan.option.usable_gib or 0.0) >= room and plan.option.instances <= first.option.instances:
            headroom = plan.option.headroom_gib or 0.0
            more = round(plan.total - first.total, 2)
            yield plan.because(
                reason("alternative_larger", headroom_gib_per_gpu=round(headroom, 1), costs_more_usd=more)
            )
            return


def _neighbours(desk: Desk, found: Candidates, planner: WorkloadPlanner, ranked: list[Plan]) -> Iterator[Plan]:
    """Other GPUs where the one that was asked for is sold out."""
    ask = desk.ask
    if ranked or not found.sold_out or not ask.wanted.gpu:
        return
    wider = replace(ask, wanted=replace(ask.wanted, gpu=()))
    around = Desk(desk.catalog, wider, desk.table)
    shapes = collect(offer_shapes(desk.catalog, wider.wanted), ask.policy).open
    options = [o for shape in shapes for o in planner.options(shape).options if not o.split and o.meets]
    around.fetch(options, per_terms=1)
    shown: set[str] = set()
    for plan in around.ranked(planner, options, RuledOut()):
        gpu = plan.option.shape.gpu
        if gpu not in shown and len(shown) < _NEIGHBOURS_SHOWN:
            shown.add(gpu)
            yield plan.because(
                reason("alternative_neighbour", instead_of=sorted({str(r["gpu"]) for r in found.sold_out}))
            )


def _cheaper_shapes(desk: Desk, found: Candidates, best: Plan | None) -> list[Shape]:
    """Shapes that one instance of could cost less than the best plan: the others cannot be a cheaper alternative."""
    if best is None:
        return found.open
    hours = desk.ask.policy.hours_per_day * DAYS_PER_MONTH if best.hours is None else 0.0
    return [shape for shape in found.open if found.lowest_usd_hour[shape.key] * hours < best.total]


def _cheapest_with(desk: Desk, shapes: list[Shape], planner: ServingPlanner, change: dict[str, Any]) -> Plan | None:
    """The best single-GPU plan under one change of the request."""
    try:
        request = replace(planner.request, **change)
        variant = ServingPlanner(request, planner.policy, splits=False)
        options = [o for shape in shapes for o in variant.options(shape).options if not o.split and o.meets]
    except RequestError:
        return None
    desk.fetch(options, per_terms=1)
    plans = desk.ranked(variant, options, RuledOut(), per_shape=_OFFERS_A_SHAPE)
    return plans[0] if plans else None


def _commitment(desk: Desk, found: Candidates, planner: WorkloadPlanner, best: Plan | None) -> Iterator[Plan]:
    """The cheapest plan that commits longer than asked, and after how many months it wins."""
    if not found.too_long or desk.ask.request.workload not in {"serve", "pretrain"}:
        return
    longer = replace(desk.ask.policy, max_commitment_days=_LONGEST_COMMITMENT_DAYS, purchase_options=("reserved",))
    shapes = {s.key: s for row in found.too_long if (s := shape_of(row)) is not None}
    options = [o for shape in shapes.values() for o in planner.options(shape).options if o.meets]
    desk.fetch(options, per_terms=5)
    plans = desk.ranked(planner, options, RuledOut(), longer)
    if not plans:
        return
    plan = plans[0]
    if best is not None and plan.total >= best.total:
        return
    days = plan.offer["commitment_days"]
    yield plan.because(reason("alternative_commitment", commitment_days=days, saves_usd=_saved(best, plan)),
                       *break_even(plan, best))  # fmt: skip


def break_even(plan: Plan, on_demand: Plan | None) -> list[Reason]:
    """Months of use after which a whole commitment costs less than renting on demand: term cost / monthly cost."""
    if on_demand is None or plan.hours is not None or not plan.offer["commitment_days"] or on_demand.total <= 0:
        return []
    months = plan.offer["commitment_days"] * 24 / 730
    even = plan.total * months / on_demand.total
    return [
        reason(
            "commitment_break_even",
            months=round(even, 2),
            term_months=round(months, 2),
            wins=even <= months,
            commitment_days=plan.offer["commitment_days"],
        )
    ]
