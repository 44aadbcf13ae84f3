"""Why offers were left out: counts by reason, and the nearest miss with what would make it fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.candidates import Candidates, Shape
from planner.options import Option, Outcome, WorkloadPlanner
from planner.policy import Policy
from planner.ranking import Plan
from planner.reasons import Reason, reason


@dataclass(slots=True)
class RuledOut:
    """Offers that fit and were left out for money, time or disk: counts, and the closest of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    closest: dict[str, tuple[float, Plan, Reason]] = field(default_factory=dict)

    def add(self, why: Reason, plan: Plan | None = None, distance: float = 0.0) -> None:
        """Count a plan that was left out, and keep it if it is the closest of its reason."""
        code = str(why["code"])
        self.counts[code] += 1
        if plan is not None and (code not in self.closest or distance < self.closest[code][0]):
            self.closest[code] = (distance, plan, why)


def rejected(
    found: Candidates,
    outcomes: Iterable[tuple[Shape, Outcome]],
    ranked_options: Iterable[Option],
    aside: Iterable[Option],
    ruled_out: RuledOut,
    planner: WorkloadPlanner,
    policy: Policy,
    *,
    any_ranked: bool,
) -> dict[str, Any]:
    """The `rejected` object of the answer: {"counts": {reason: offers}, "nearest": {…} or None}."""
    counts: Counter[str] = Counter(found.rejected)
    kept = {o.shape.key for o in ranked_options}
    split_only = {o.shape.key for o in aside}
    misses: list[tuple[float, Shape, Outcome]] = []
    slow: list[Option] = []
    for shape, outcome in outcomes:
        number = found.offer_counts[shape.key]
        if outcome.refusal is not None:
            counts[str(outcome.refusal["code"])] += number
            if outcome.missing_gib is not None and outcome.usable_gib:
                misses.append((outcome.missing_gib / outcome.usable_gib, shape, outcome))
        elif shape.key in kept:
            continue
        elif shape.key in split_only:
            counts["split_not_needed"] += number
        else:
            counts["service_level_missed"] += number
            slow += outcome.options
    counts.update(ruled_out.counts)
    ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    nearest = _nearest(misses, slow, ruled_out, planner, policy, any_ranked=any_ranked)
    return {"counts": ordered, "nearest": nearest}


def _nearest(
    misses: list[tuple[float, Shape, Outcome]],
    slow: list[Option],
    ruled_out: RuledOut,
    planner: WorkloadPlanner,
    policy: Policy,
    *,
    any_ranked: bool,
) -> dict[str, Any] | None:
    """What came closest: a fitting plan that broke a limit of the user, else the card with the least memory short."""
    if (ruled_out.closest and not any_ranked) or (ruled_out.closest and not misses):
        _, plan, why = min(ruled_out.closest.values(), key=lambda item: item[0])
        return {**_place(plan.option.shape), **_offer(plan.offer), "reason": why, "remedies": _cost_remedies(plan)}
    if slow and not misses:
        option = min(slow, key=lambda o: (o.tpot_ms or 0) / (policy.tpot_ms_max or 1))
        return {**_place(option.shape), "reason": slow_reason(option, policy), "remedies": []}
    if not misses:
        return None
    _, shape, outcome = min(misses, key=lambda item: (item[0], item[1].gpu_count, item[1].key))
    return {
        **_place(shape),
        "missing_gib_per_gpu": round(outcome.missing_gib or 0.0, 2),
        "reason": outcome.refusal,
        "remedies": planner.remedies(shape),
    }


def slow_reason(option: Option, policy: Policy) -> Reason:
    """How far an option is from the service level."""
    return reason(
        "service_level_missed",
        tpot_ms=round(option.tpot_ms or 0, 1),
        tpot_ms_max=policy.tpot_ms_max,
        ttft_ms=round(option.ttft_ms or 0),
        ttft_ms_max=policy.ttft_ms_max,
    )


def _place(shape: Shape) -> dict[str, Any]:
    return {"gpu": shape.gpu, "gpu_count": shape.gpu_count, "gpu_memory_gb": shape.accelerator.memory_gb}


def _offer(offer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: offer[name] for name in ("provider", "instance_type", "region", "purchase_option")}


def _cost_remedies(plan: Plan) -> list[Reason]:
    hours = plan.hours
    found = [reason("costs", cost_total_usd=round(plan.total, 2))]
    return [*found, reason("takes", hours=round(hours, 2))] if hours is not None else found
