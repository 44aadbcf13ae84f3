"""The order of plans: what fits before what is tight, policy before money, then the objective.

Two rules of the guides cut across cost. At equal memory (per GPU and in all) cards with HBM stand before cards with
GDDR for serving, because bandwidth decides decode speed. Copies that span GPUs stand on NVLink-class machines before
PCIe. Both carry a reason, so that nobody wonders why a dearer row is above.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from planner.cost import Priced
from planner.options import Option
from planner.policy import Policy
from planner.reasons import Reason, has, reason
from planner.request import SERVING

_VERDICTS = {"fits": 0, "tight": 1}
# QLoRA starts on cards of 24 to 48 GB; anything bigger has to be needed.
_SMALL_CARD_GB = 48.0
_COST_OBJECTIVES = frozenset({"cost", "balanced"})


@dataclass(frozen=True, slots=True)
class Plan:
    """An option on one offer, with its cost; `reasons` grow while plans are ranked."""

    option: Option
    offer: dict[str, Any]
    priced: Priced
    hours: float | None
    reasons: tuple[Reason, ...] = field(default=())

    @property
    def total(self) -> float:
        """Total cost, dollars, as compared; the row has the exact sum."""
        return self.priced.cost.approximate

    @property
    def latency_ms(self) -> float | None:
        """What a user waits for: the end of a job with its cold start, or one answer of a service."""
        return self.option.latency_ms if self.hours is None else self.hours * 3.6e6

    def because(self, *more: Reason) -> Plan:
        """The plan with further reasons, each code once."""
        new = [r for r in more if not has(list(self.reasons), r["code"])]
        return replace(self, reasons=(*self.reasons, *new)) if new else self


def metric(plan: Plan, objective: str) -> float:
    """What an objective minimises: dollars, milliseconds, or their product; throughput is maximised."""
    cost = plan.total
    latency = plan.latency_ms if plan.latency_ms is not None else math.inf
    if objective == "latency":
        return latency
    if objective == "throughput":
        return -(
            plan.option.output_tokens_s or (3600 / plan.option.seconds_per_item if plan.option.seconds_per_item else 0)
        )
    if objective == "balanced":
        return cost * latency if math.isfinite(latency) else cost
    return cost


def rank(plans: Iterable[Plan], workload: str, policy: Policy) -> list[Plan]:
    """All plans in order, best first, each with the reasons for its place."""
    pool = list(plans)
    keys = {id(p): metric(p, policy.objective) for p in pool}
    if workload == "serve":
        pool, keys = _bandwidth_first(pool, keys)

    def order(plan: Plan) -> tuple[Any, ...]:
        option, offer = plan.option, plan.offer
        return (
            not option.meets,
            _VERDICTS.get(option.verdict, 2),
            *_workload_class(plan, workload, policy),
            keys[id(plan)],
            not option.shape.hbm,
            not option.native,
            plan.total,
            option.plan_gpus,
            offer["availability"] != "available",
            offer["age_s"],
            offer["provider"],
            offer["offer_id"],
        )

    return [_with_class_reason(p, workload, policy) for p in sorted(pool, key=order)]


def _workload_class(plan: Plan, workload: str, policy: Policy) -> tuple[int, ...]:
    """Coarse classes that stand before cost. A measured latency decides by itself which link is the better one."""
    if workload in SERVING:
        if policy.objective == "latency":
            return ()
        return (1 if plan.option.split and plan.option.shape.link == "pcie" else 0,)
    if workload == "pretrain":
        order = {"reserved": 0, "scheduled": 0, "on_demand": 1, "spot": 2}
        return (order.get(plan.offer["purchase_option"], 1),)
    if workload == "qlora" and policy.objective in _COST_OBJECTIVES:
        return (0 if _is_small(plan.option) else 1,)
    return ()


def _is_small(option: Option) -> bool:
    return option.plan_gpus == 1 and option.shape.accelerator.memory_gb <= _SMALL_CARD_GB


def _with_class_reason(plan: Plan, workload: str, policy: Policy) -> Plan:
    option = plan.option
    if workload in SERVING and option.split and option.shape.link != "pcie":
        return plan.because(reason("linked_gpus", link=option.shape.link))
    if workload == "pretrain" and plan.offer["purchase_option"] in {"reserved", "scheduled"}:
        return plan.because(reason("reserved_first"))
    if workload == "qlora" and policy.objective in _COST_OBJECTIVES and _is_small(option):
        return plan.because(reason("small_card_first", memory_gb=option.shape.accelerator.memory_gb))
    return plan


def _bandwidth_first(pool: list[Plan], keys: dict[int, float]) -> tuple[list[Plan], dict[int, float]]:
    """Put GDDR plans behind every HBM plan of equal memory and verdict that really has more bandwidth."""
    groups: dict[tuple[Any, ...], list[Plan]] = defaultdict(list)
    for plan in pool:
        o = plan.option
        groups[(o.meets, o.verdict, o.split, o.plan_gpus, round(o.shape.accelerator.memory_gb))].append(plan)
    ranked: list[Plan] = []
    new_keys: dict[int, float] = {}
    for members in groups.values():
        fast = [p for p in members if p.option.shape.hbm]
        slow = [p for p in members if not p.option.shape.hbm]
        for plan in fast:
            beaten = [p for p in slow if _bandwidth(p) < _bandwidth(plan)]
            kept = plan.because(_bandwidth_reason(plan, beaten)) if beaten else plan
            new_keys[id(kept)] = keys[id(plan)]
            ranked.append(kept)
        for plan in slow:
            ahead = [p for p in fast if _bandwidth(p) > _bandwidth(plan)]
            floor = max((keys[id(p)] for p in ahead), default=-math.inf)
            own = keys[id(plan)]
            kept = plan
            if floor >= own:
                kept = plan.because(reason("bandwidth_behind", memory_type=plan.option.shape.accelerator.memory_type))
            new_keys[id(kept)] = max(own, floor)
            ranked.append(kept)
    return ranked, new_keys


def _bandwidth(plan: Plan) -> float:
    return plan.option.shape.accelerator.memory_bandwidth_gb_s or 0.0


def _bandwidth_reason(plan: Plan, beaten: list[Plan]) -> Reason:
    accelerator = plan.option.shape.accelerator
    return reason(
        "bandwidth",
        memory_type=accelerator.memory_type,
        bandwidth_gb_s=accelerator.memory_bandwidth_gb_s,
        over=sorted({p.option.shape.gpu for p in beaten}),
    )


def pareto(plans: list[Plan]) -> set[int]:
    """Ids of plans that no other plan beats in both cost and latency."""
    timed = [p for p in plans if p.latency_ms is not None]
    frontier: set[int] = set()
    fastest = math.inf
    for plan in sorted(timed, key=lambda p: (p.total, p.latency_ms or math.inf)):
        latency = plan.latency_ms or math.inf
        if latency < fastest:
            frontier.add(id(plan))
            fastest = latency
    return frontier
