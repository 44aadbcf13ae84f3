"""Plans for serve and batch: layouts of a replica on a shape, replicas for the load, and what they use of an offer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planner.candidates import Shape
from planner.cost import Usage
from planner.cost_rates import rate
from planner.cost_start import working_hours
from planner.options import Option, Outcome
from planner.parallel import Layout
from planner.plan_layouts import layouts, spans
from planner.plan_remedies import remedies_for
from planner.plan_use import answers_gb_month, job_requests, memory_parts, sized_by_user, speed_parts, usage_of
from planner.policy import DEFAULT_BATCH_OUTPUT_TOKENS, Policy
from planner.reasons import Reason, reason
from planner.request import Request
from planner.serving import ServingCase, ServingFit, split_group
from planner.serving_request import Prepared, prepare
from planner.serving_verdict import MEMORY_REASONS
from planner.sizing import Copy, Limits, Load, Replica, size_batch, size_service
from planner.weights import weight_format

_MOST_NODES = 8
_FULL_NODE = 8
_GIGA = 1e9


@dataclass(slots=True)
class ServingPlanner:
    """Serve and batch. `relaxed` plans the part of a service that may wait: no latency limit, spot allowed.

    `splits` False asks for single-GPU copies only; a layout that the user pins is obeyed all the same.
    """

    request: Request
    policy: Policy
    relaxed: bool = False
    splits: bool = True
    _ready: dict[str, Prepared] = field(default_factory=dict, init=False)
    _sized: dict[tuple[Any, ...], Replica] = field(default_factory=dict, init=False)

    @property
    def online(self) -> bool:
        """Whether it is a service (as against a job)."""
        return self.request.workload == "serve"

    def ready(self, shape: Shape) -> Prepared:
        """The request with its defaults, for one GPU: format fall-backs depend on it."""
        slug = shape.accelerator.gpu
        found = self._ready.get(slug)
        if found is None:
            stated = self.request
            found = prepare(replace(stated, gpu=slug, gpus=stated.gpus, interconnect=None))
            self._ready[slug] = found
        return found

    def load(self) -> Load:
        """Peak load: stated users, or a rate; one user where neither is stated."""
        users = self.request.concurrency
        if users is None and self.policy.requests_s is None:
            users = 1
        return Load(users, self.policy.requests_s)

    def limits(self) -> Limits:
        """The service level of the policy."""
        if self.relaxed or not self.online:
            return Limits()
        return Limits(self.policy.ttft_ms_max, self.policy.tpot_ms_max)

    def options(self, shape: Shape) -> Outcome:
        """The best single-GPU copy and the best split copy on this shape, as far as either fits."""
        ready = self.ready(shape)
        singles: list[Option] = []
        splits: list[Option] = []
        misses: list[Replica] = []
        for layout in self._layouts(ready, shape):
            replica = self._replica(ready, shape, layout)
            if not replica.fits or replica.fit.speed is None:
                misses.append(replica)
                continue
            option = self._option(shape, ready, replica)
            (splits if option.split else singles).append(option)
        kept = [best(found, self.policy.objective) for found in (singles, splits) if found]
        if kept:
            return Outcome(tuple(kept))
        return self._refused(ready, shape, misses)

    def _layouts(self, ready: Prepared, shape: Shape) -> Iterator[Layout]:
        request = self.request
        if any(v is not None for v in (request.tp, request.pp, request.dp, request.ep)):
            if ready.layout.gpus <= shape.node_gpus or shape.fabric:
                yield replace(ready.layout, nodes=math.ceil(ready.layout.gpus / shape.node_gpus))
            return
        spec, engine = ready.spec, ready.case.engine
        group = split_group(spec, weight_format(ready.case.weights))
        for gpus in self._sizes(shape):
            if gpus > 1 and request.interconnect == "nvlink" and shape.link == "pcie":
                return
            yield from layouts(gpus, shape.node_gpus, shape.link, spec, group, engine)

    def _sizes(self, shape: Shape) -> list[int]:
        """GPUs of one copy: as stated; else powers of two within one machine, then whole machines over a fabric."""
        if self.request.gpus is not None:
            stated = self.request.gpus
            return [stated] if stated <= shape.node_gpus or spans(shape) else []
        if not self.splits:
            return [1]
        sizes = [2**n for n in range(9) if 2**n <= shape.node_gpus]
        if shape.node_gpus not in sizes:
            sizes.append(shape.node_gpus)
        if spans(shape):
            sizes += [shape.node_gpus * n for n in (2, 4, _MOST_NODES)]
        return sizes

    def _replica(self, ready: Prepared, shape: Shape, layout: Layout) -> Replica:
        case = self._case(ready, shape, layout)
        key = (shape.accelerator, layout, case)
        found = self._sized.get(key)
        if found is None:
            copy = Copy(ready.spec, shape.accelerator, layout, case)
            if self.online:
                found = size_service(copy, self.load(), self.limits())
            else:
                found = size_batch(copy, self.request.concurrency)
            self._sized[key] = found
        return found

    def _case(self, ready: Prepared, shape: Shape, layout: Layout) -> ServingCase:
        link = None
        if layout.gpus > 1:
            link = "pcie" if self.request.interconnect == "pcie" else shape.interconnect
        return replace(ready.case, interconnect=link)

    def _option(self, shape: Shape, ready: Prepared, replica: Replica) -> Option:
        if replica.gpus > shape.node_gpus:
            each = replica.gpus // shape.node_gpus
            per_instance, instances_each = max(1, shape.nodes // each), max(1, math.ceil(each / shape.nodes))
        else:
            per_instance, instances_each = (shape.node_gpus // replica.gpus) * shape.nodes, 1
        fit, layout = replica.fit, replica.layout
        plan_bytes = fit.plan.total
        common: dict[str, Any] = {
            "shape": shape,
            "verdict": fit.verdict,
            "tp": layout.tp,
            "pp": layout.pp,
            "split": layout.tp * layout.pp > 1,
            "required_gib": fit.memory.required_gib,
            "usable_gib": fit.memory.usable_gib,
            "tpot_ms": fit.speed.tpot_ms if fit.speed else None,
            "ttft_ms": fit.speed.ttft_ms if fit.speed else None,
            "disk_gb": float(math.ceil(plan_bytes / _GIGA * float(rate("storage_factor")))),
            "load_gb": plan_bytes / _GIGA,
            "bottleneck": fit.bottleneck,
            "memory": memory_parts(fit),
            "speed": speed_parts(fit),
            "users": replica.users,
            "native": fit.weight_path == "native",
            "warnings": self._warnings(shape, replica),
        }
        answer_ms = None
        if fit.speed:
            answer_ms = fit.speed.ttft_ms + (ready.case.output_tokens - 1) * fit.speed.tpot_ms
        if self.online:
            instances = math.ceil(replica.replicas / per_instance) * instances_each
            return Option(
                instances=instances,
                replicas=replica.replicas,
                dp=layout.dp * min(replica.replicas, per_instance),
                meets=replica.meets,
                output_tokens_s=replica.output_tokens_s,
                latency_ms=answer_ms,
                egress_gb=answers_gb_month(self.policy, ready.case.output_tokens),
                **common,
            )
        return self._job_option(ready, replica, per_instance, instances_each, common)

    def _job_option(
        self, ready: Prepared, replica: Replica, per_instance: int, instances_each: int, common: dict[str, Any]
    ) -> Option:
        requests = job_requests(self.policy, ready.case.output_tokens)
        tokens = requests * ready.case.output_tokens
        rate_instance = (replica.output_tokens_s or 0.0) * per_instance
        hours_one = tokens / rate_instance / 3600 if rate_instance else math.inf
        deadline = self.policy.deadline_h
        left_h = working_hours(deadline, common["load_gb"], self.policy.cold_start) if deadline else math.inf
        groups = max(1, math.ceil(hours_one / left_h)) if math.isfinite(left_h) else 1
        return Option(
            instances=groups * instances_each,
            replicas=groups * per_instance,
            dp=replica.layout.dp * per_instance,
            output_tokens_s=rate_instance * groups,
            hours=hours_one / groups,
            latency_ms=hours_one / groups * 3.6e6,
            work_million_tokens=tokens / 1e6,
            egress_gb=tokens * float(rate("response_bytes_batch")) / _GIGA if sized_by_user(self.policy) else None,
            **common,
        )

    def _warnings(self, shape: Shape, replica: Replica) -> tuple[Reason, ...]:
        found: list[Reason] = []
        if replica.layout.gpus > 1 and not shape.link_known:
            found.append(reason("interconnect_assumed", link=shape.link))
        if replica.fit.weight_path == "weight_only":
            found.append(reason("weight_only_format", gpu=shape.gpu))
        if len(shape.candidates) > 1:
            found.append(reason("planned_on_least", gpu=shape.gpu, candidates=list(shape.candidates)))
        return tuple(found)

    def usage(self, option: Option, offer: Mapping[str, Any]) -> Usage | Reason:
        """A month of service at its duty, or the job once."""
        return usage_of(self.policy, option, offer, online=self.online)

    def _refused(self, ready: Prepared, shape: Shape, misses: list[Replica]) -> Outcome:
        request = self.request
        asked = request.gpus or (ready.layout.gpus if not misses else 1)
        if asked > shape.node_gpus and not spans(shape):
            return Outcome(refusal=reason("loosely_coupled", gpus=asked, instance_gpus=shape.gpu_count))
        if not misses:
            return Outcome(refusal=reason("link_not_asked", link=shape.link))
        closest = min(misses, key=lambda m: _missing(m.fit))
        blocking = [r for r in closest.fit.reasons if r["code"] not in MEMORY_REASONS]
        known = [*blocking, *closest.fit.reasons, reason("speed_unknown", gpu=shape.gpu)]
        chosen = known[0]
        short = _missing(closest.fit) if chosen["code"] in MEMORY_REASONS else None
        alone = self.splits and short is not None and shape.node_gpus >= _FULL_NODE and not shape.fabric
        if alone and self._more_would_do(ready, shape):
            chosen = reason("loosely_coupled", gpus=2 * shape.node_gpus, instance_gpus=shape.gpu_count)
            short = None
        return Outcome(
            refusal={**chosen, "gpus": closest.gpus},
            missing_gib=short,
            usable_gib=closest.fit.memory.usable_gib,
        )

    def _more_would_do(self, ready: Prepared, shape: Shape) -> bool:
        layout = Layout(tp=shape.node_gpus, pp=2, nodes=2)
        return self._replica(ready, shape, layout).fits

    def resolved(self) -> dict[str, Any]:
        """The workload's figures as planned, defaults filled in."""
        first = next(iter(self._ready.values()), None)
        if first is None:
            return {}
        case = first.case
        return {
            "weights": case.weights,
            "kv_cache": case.kv_cache,
            "context": case.context,
            "concurrency": self.load().users if self.online else self.request.concurrency,
            "input_tokens": case.input_tokens,
            "output_tokens": case.output_tokens,
            "engine": case.engine,
        }

    def assumptions(self) -> list[str]:
        """What the fit model assumed, then what the plan assumed."""
        said = self._common_assumptions()
        if self.online and self.policy.egress_gb is None and self.policy.requests_s is None:
            said.append("egress not counted: neither egress_gb nor requests_s is stated")
        if self.policy.requests_s is not None and self.online:
            said.append(f"replicas are planned at {rate('utilisation'):.0%} of their measured capacity")
        if not self.online and not sized_by_user(self.policy):
            said.append(f"job of {DEFAULT_BATCH_OUTPUT_TOKENS:,} output tokens (requests not stated)")
        return said

    def _common_assumptions(self) -> list[str]:
        """What the fit model assumed for every GPU alike; what it says of single ones belongs to their rows."""
        prepared = list(self._ready.values())
        if not prepared:
            return []
        common = set(prepared[0].assumptions).intersection(*(p.assumptions for p in prepared[1:]))
        about_split = ("tp =", "dp =", "pp =", "layers split")
        return [a for a in prepared[0].assumptions if a in common and not a.startswith(about_split)]

    def remedies(self, shape: Shape) -> list[Reason]:
        """Smaller formats, more GPUs, a shorter context or fewer users that would fit this card."""
        return list(remedies_for(self, shape))


def best(options: list[Option], objective: str) -> Option:
    """Of the ways to run on one shape: those that meet the service level, then fewest instances, then the fastest."""

    def key(o: Option) -> tuple[Any, ...]:
        latency = o.latency_ms if o.latency_ms is not None else math.inf
        rank = 0 if o.verdict == "fits" else 1
        if objective == "latency":
            return (not o.meets, rank, latency, o.instances)
        if o.hours is not None:
            return (rank, o.instances * o.hours, o.tp * o.pp)
        return (not o.meets, o.instances, rank, o.tp * o.pp, latency)

    return min(options, key=key)


def _missing(fit: ServingFit) -> float:
    return max(0.0, fit.memory.required_gib - fit.memory.usable_gib)
