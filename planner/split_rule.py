"""When one copy of a model may span several GPUs, and which plans meet the service level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.candidates import Shape
from planner.options import Option
from planner.plan_serving import ServingPlanner
from planner.policy import Policy
from planner.reasons import reason
from planner.request import SERVING, Request

_PINS = ("gpus", "tp", "pp", "dp", "ep")


def split_rule(
    options: list[Option], request: Request, policy: Policy, shapes: Iterable[Shape]
) -> tuple[list[Option], list[Option]]:
    """Which options may be ranked, each with its reason, and which split ones only stand aside as alternatives.

    A copy spans GPUs only if no available single GPU fits it (split_no_fit), if no single GPU meets the service level
    (split_slo), or for the lowest latency (split_latency). A split that the user pins is obeyed and says so
    (split_asked) where none of the three holds.

    Args:
        options: every way to run the workload on the available shapes.
        request: the workload.
        policy: objective and service level.
        shapes: the available shapes, to learn what single GPUs could do where the user pinned a split.
    """
    if request.workload not in SERVING:
        return options, []
    whole = [o for o in options if not o.split]
    split = [o for o in options if o.split]
    stated = bool(split) and pinned(request)
    code = _why_split(_unpinned(request, policy, shapes) if stated else whole, split, policy)
    if stated and not code:
        code = "split_asked"
    marked = [replace(o, reasons=(*o.reasons, reason(code or "split_aside", gpus=o.tp * o.pp))) for o in split]
    allowed, aside = ([*whole, *marked], []) if code else (whole, [o for o in marked if o.meets])
    if any(o.meets for o in allowed):
        return [o for o in allowed if o.meets], aside
    return ([], aside) if policy.service_level_stated else (allowed, aside)


def pinned(request: Request) -> bool:
    """Whether the user says how many GPUs a copy spans."""
    return any(getattr(request, name) is not None for name in _PINS)


def _why_split(whole: list[Option], split: list[Option], policy: Policy) -> str:
    if not whole:
        return "split_no_fit"
    if not any(o.meets for o in whole) and any(o.meets for o in split):
        return "split_slo"
    return "split_latency" if policy.objective == "latency" else ""


def _unpinned(request: Request, policy: Policy, shapes: Iterable[Shape]) -> list[Option]:
    """What single GPUs could do if the split were left open."""
    single = ServingPlanner(replace(request, tp=None, pp=None, dp=None, ep=None, gpus=1), policy)
    return [o for shape in shapes for o in single.options(shape).options if not o.split]
