"""The whole arithmetic of one plan: memory, speed, cost line by line with prices, their source and age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.candidates import Shape
from planner.cost_lines import CostLine
from planner.explain import explain_lines
from planner.ranking import Plan
from planner.request import MEDIA, SERVING, parse_request

_HOUR_S = 3600
_DAY_S = 86_400


def explain_plan(plan: Plan, answer: Mapping[str, Any]) -> list[str]:
    """Lines of text, in English: figures and sources read the same in any language.

    Args:
        plan: the plan.
        answer: the whole answer, for its policy.
    """
    details = _details(plan, answer["workload"])
    return [*_head(plan), *_memory(plan), *details, *_speed(plan), *_cost(plan), *_policy(answer["policy"])]


def _head(plan: Plan) -> Iterator[str]:
    option, offer = plan.option, plan.offer
    place = ", ".join(str(v) for v in (offer["region"], offer["country"]) if v)
    yield f"{offer['provider']} {offer['instance_type']}{f' ({place})' if place else ''}, {offer['purchase_option']}"
    yield (
        f"  {option.instances} instance(s) x {option.shape.gpu_count} {option.shape.gpu} = {option.plan_gpus} GPU(s); "
        f"{option.replicas} copies of tp {option.tp} x pp {option.pp}: {option.verdict}"
    )


def _memory(plan: Plan) -> Iterator[str]:
    memory = plan.option.memory
    if not memory:
        return
    yield "memory of the fullest GPU, GiB"
    for name, value in memory.items():
        if name not in {"required_gib", "usable_gib"} and value:
            yield f"  {value:10.2f}  {name.removesuffix('_gib').replace('_', ' ')}"
    room = memory["usable_gib"] - memory["required_gib"]
    yield f"  {memory['required_gib']:10.2f}  required, of {memory['usable_gib']:.2f} usable: {room:.2f} to spare"


def _details(plan: Plan, workload: Mapping[str, Any]) -> list[str]:
    """The fit model's own arithmetic for one copy; a slice or an open GPU name has none of its own."""
    option, shape = plan.option, plan.option.shape
    if shape.fraction < 1 or len(shape.candidates) > 1 or workload["workload"] in MEDIA:
        return []
    gpus = option.tp * option.pp
    changes: dict[str, Any] = {"gpu": shape.candidates[0], "interconnect": shape.interconnect if gpus > 1 else None}
    if workload["workload"] in SERVING:
        nodes = -(-gpus // shape.node_gpus)
        changes |= {"tp": option.tp, "pp": option.pp, "gpus": None, "nodes": nodes, "concurrency": option.users}
    else:
        total = int((option.speed or {}).get("gpus", 1))
        changes |= {"gpus": total, "nodes": -(-total // shape.node_gpus), "interconnect": _word(shape)}
    return explain_lines(replace(parse_request(workload), **changes))


def _word(shape: Shape) -> str | None:
    return "pcie" if shape.link == "pcie" else "nvlink" if shape.link else None


def _speed(plan: Plan) -> Iterator[str]:
    option = plan.option
    if not option.speed:
        return
    per = f" at {option.users} user(s) a copy" if option.users else ""
    yield f"speed{per}, limited by {option.bottleneck or 'nothing'}"
    for name, value in option.speed.items():
        yield f"  {value:10.2f}  {name.replace('_', ' ')}"
    if option.output_tokens_s:
        yield f"  {option.output_tokens_s:10.2f}  output tokens s, all copies"


def _cost(plan: Plan) -> Iterator[str]:
    offer, cost = plan.offer, plan.priced.cost.exact()
    age = offer["age_s"]
    told = f"{age / _DAY_S:.1f} days" if age > 2 * _DAY_S else f"{age / _HOUR_S:.1f} h"
    yield (
        f"cost: {offer['price_usd_hour']:.6g} USD an hour and instance, seen {told} ago ({offer['freshness']}, "
        f"{offer['provenance']}; {offer['source_url']})"
    )
    for item in cost.lines:
        yield _line(item)
    yield f"  {cost.total:14.6f}  USD in all = {cost.compute} compute + {cost.storage} storage + {cost.egress} egress"


def _line(item: CostLine) -> str:
    product = f"{item.quantity:f} {item.unit} x {item.unit_price_usd:f}"
    return f"  {item.cost_usd:14.6f}  {item.kind.replace('_', ' ')}: {product} ({item.source})"


def _policy(policy: Mapping[str, Any]) -> Iterator[str]:
    stated = ", ".join(f"{name} {value}" for name, value in policy.items() if value not in (None, False, []))
    yield f"policy: {stated}"
