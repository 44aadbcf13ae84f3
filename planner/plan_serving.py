"""Plans for serve and batch: layouts of a replica on a shape, replicas for the load, and what they use of an offer."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.types import Accelerator
from planner.candidates import Shape
from planner.cost import Usage
from planner.cost_rates import rate
from planner.cost_spot import restarted
from planner.cost_start import cold_start
from planner.model_config import ModelSpec
from planner.options import Option, Outcome
from planner.parallel import Layout, illegal
from planner.policy import DAYS_PER_MONTH, DEFAULT_BATCH_OUTPUT_TOKENS, Policy
from planner.reasons import Reason, reason
from planner.request import Request, RequestError
from planner.serving import ServingCase, ServingFit, split_group
from planner.serving_request import Prepared, prepare
from planner.sizing import Copy, Limits, Load, Replica, size_batch, size_service
from planner.weights import weight_format

_LAYER_SPLIT_ENGINES = frozenset({"llama.cpp", "transformers"})
_MOST_NODES = 8
_FULL_NODE = 8
_MEMORY_CODES = frozenset(
    {"weights_exceed_memory", "activations_exceed_memory", "kv_exceeds_memory", "concurrency_exceeds_memory"}
)
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
    _ready: dict[str, Prepared] = field(default_factory=dict)
    _sized: dict[tuple[Any, ...], Replica] = field(default_factory=dict)

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
            if not replica.fits:
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
            return [stated] if stated <= shape.node_gpus or _spans(shape) else []
        if not self.splits:
            return [1]
        sizes = [2**n for n in range(9) if 2**n <= shape.node_gpus]
        if shape.node_gpus not in sizes:
            sizes.append(shape.node_gpus)
        if _spans(shape):
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
            "disk_gb": _whole_tens(plan_bytes / _GIGA * float(rate("storage_factor"))),
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
                egress_gb=self._egress_gb(ready.case.output_tokens),
                **common,
            )
        return self._job_option(ready, replica, per_instance, instances_each, common)

    def _job_option(
        self, ready: Prepared, replica: Replica, per_instance: int, instances_each: int, common: dict[str, Any]
    ) -> Option:
        requests = self.job_requests(ready.case.output_tokens)
        tokens = requests * ready.case.output_tokens
        rate_instance = (replica.output_tokens_s or 0.0) * per_instance
        hours_one = tokens / rate_instance / 3600 if rate_instance else math.inf
        groups = 1 if not self.policy.deadline_h else max(1, math.ceil(hours_one / self.policy.deadline_h))
        return Option(
            instances=groups * instances_each,
            replicas=groups * per_instance,
            dp=replica.layout.dp * per_instance,
            output_tokens_s=rate_instance * groups,
            hours=hours_one / groups,
            latency_ms=hours_one / groups * 3.6e6,
            work_million_tokens=tokens / 1e6,
            egress_gb=tokens * float(rate("response_bytes_batch")) / _GIGA if self._sized_by_user else None,
            **common,
        )

    @property
    def _sized_by_user(self) -> bool:
        return self.policy.requests is not None or self.policy.requests_s is not None

    def job_requests(self, output_tokens: int) -> int:
        """Requests of a batch job: as stated, or what arrives until the deadline (a day), or a stated default size."""
        if self.policy.requests is not None:
            return self.policy.requests
        if self.policy.requests_s is not None:
            return math.ceil(self.policy.requests_s * 3600 * (self.policy.deadline_h or 24))
        return math.ceil(DEFAULT_BATCH_OUTPUT_TOKENS / output_tokens)

    def _egress_gb(self, output_tokens: int) -> float | None:
        """A month's answers at a stated rate, streamed token by token; None where the rate is unknown."""
        if self.policy.requests_s is None:
            return None
        seconds = self.policy.hours_per_day * 3600 * DAYS_PER_MONTH
        return self.policy.requests_s * seconds * output_tokens * float(rate("response_bytes_stream")) / _GIGA

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
        start = cold_start(offer, option.load_gb)
        stated = self.policy.storage_gb
        spot = offer["purchase_option"] == "spot"
        interruptions = None
        if spot:
            lost_s = (option.latency_ms or 0.0) / 2000 if self.online else 0.0
            interruptions = restarted(offer["interruption_rate"], start.total_s, lost_s, instances=option.instances)
            if not interruptions.feasible:
                return reason("spot_too_interrupted", overhead=interruptions.overhead)
        egress = self.policy.egress_gb if self.policy.egress_gb is not None else option.egress_gb
        return Usage(
            monthly=self.online,
            instances=option.instances,
            hours=self.policy.hours_per_day * DAYS_PER_MONTH if self.online else option.hours or 0.0,
            starts=self.policy.starts_per_day * DAYS_PER_MONTH if self.online else 1.0,
            storage_gb=stated if stated is not None else option.disk_gb,
            storage_shared=stated is not None,
            egress_gb=egress,
            addresses=self.online,
            start=start,
            interruptions=interruptions,
        )

    def _refused(self, ready: Prepared, shape: Shape, misses: list[Replica]) -> Outcome:
        request = self.request
        asked = request.gpus or (ready.layout.gpus if not misses else 1)
        if asked > shape.node_gpus and not _spans(shape):
            return Outcome(refusal=reason("loosely_coupled", gpus=asked, instance_gpus=shape.gpu_count))
        if not misses:
            return Outcome(refusal=reason("link_not_asked", link=shape.link))
        closest = min(misses, key=lambda m: _missing(m.fit))
        blocking = [r for r in closest.fit.reasons if r["code"] not in _MEMORY_CODES]
        chosen = blocking[0] if blocking else closest.fit.reasons[0]
        short = None if blocking else _missing(closest.fit)
        if (
            short is not None
            and shape.node_gpus >= _FULL_NODE
            and not shape.fabric
            and self._more_would_do(ready, shape)
        ):
            chosen = reason("loosely_coupled", gpus=2 * shape.node_gpus, instance_gpus=shape.gpu_count)
        return Outcome(
            refusal={**chosen, "gpus": closest.gpus},
            missing_gib=short,
            usable_gib=closest.fit.memory.usable_gib,
        )

    def _more_would_do(self, ready: Prepared, shape: Shape) -> bool:
        layout = Layout(tp=shape.node_gpus, pp=2, nodes=2)
        return self._replica(ready, shape, layout).fits

    def assumptions(self) -> list[str]:
        """What the fit model assumed for any GPU, then what the plan assumed."""
        first = next(iter(self._ready.values()), None)
        said = (
            [a for a in first.assumptions if not a.startswith(("tp =", "dp =", "pp =", "layers split"))]
            if first
            else []
        )
        if self.online and self.policy.egress_gb is None and self.policy.requests_s is None:
            said.append("egress not counted: neither egress_gb nor requests_s is stated")
        if self.policy.requests_s is not None and self.online:
            said.append(f"replicas are planned at {rate('utilisation'):%} of their measured capacity")
        if not self.online and not self._sized_by_user:
            said.append(f"job of {DEFAULT_BATCH_OUTPUT_TOKENS:,} output tokens (requests not stated)")
        return said

    def remedies(self, shape: Shape) -> list[Reason]:
        """Smaller formats, more GPUs, a shorter context or fewer users that would fit this card."""
        return list(_remedies(self, shape))


def _remedies(planner: ServingPlanner, shape: Shape) -> Iterator[Reason]:
    request, ready = planner.request, planner.ready(shape)
    for weights in smaller_formats(ready.case.weights):
        if _fits_with(planner, shape, weights=weights):
            yield reason("fits_with_weights", weights=weights)
            break
    if ready.case.kv_cache in {"bf16", "fp16"} and _fits_with(planner, shape, kv_cache="fp8"):
        yield reason("fits_with_kv_cache", kv_cache="fp8")
    spread = ServingPlanner(replace(request, gpus=None), planner.policy)
    for count in (2, 4, 8):
        wider = replace(shape, gpu_count=count, link=shape.link or _own_link(shape.accelerator))
        if spread.options(wider).options:
            yield reason("fits_on_more_gpus", gpus=count)
            break
    for divisor in (2, 4, 8):
        if request.concurrency and request.concurrency >= divisor:
            users = request.concurrency // divisor
            if _fits_with(planner, shape, concurrency=users):
                yield reason("fits_with_fewer_users", concurrency=users)
                break
    for divisor in (2, 4, 8):
        context = ready.case.context // divisor
        if context >= 1024 and _fits_with(planner, shape, context=context, input_tokens=None, output_tokens=None):
            yield reason("fits_with_shorter_context", context=context)
            break


def _fits_with(planner: ServingPlanner, shape: Shape, **changes: Any) -> bool:
    try:
        other = ServingPlanner(replace(planner.request, **changes), planner.policy, splits=planner.splits)
        return bool(other.options(shape).options)
    except RequestError:
        return False


def smaller_formats(weights: str) -> tuple[str, ...]:
    """Weight formats that take less room than this one, largest first."""
    order = ("bf16", "fp8", "int8", "awq", "nvfp4", "gguf:Q4_K_M")
    if weights in {"bf16", "fp16", "fp32"}:
        return order[1:]
    return order[3:] if weights in {"fp8", "int8"} else ()


def _own_link(accelerator: Accelerator) -> str:
    return "nvlink" if "nvlink" in accelerator.link.casefold() else "pcie"


def _spans(shape: Shape) -> bool:
    """Whether one copy may span machines of this shape: whole machines, joined by a known fabric."""
    return shape.fabric and shape.node_gpus >= 4


@functools.lru_cache(maxsize=4096)
def layouts(gpus: int, node_gpus: int, link: str, spec: ModelSpec, group: int, engine: str) -> tuple[Layout, ...]:
    """Ways to spread one copy over `gpus`: the widest legal tensor split; over PCIe, pipelines too."""
    if gpus == 1:
        return (Layout(),)
    nodes = max(1, gpus // node_gpus)
    if engine in _LAYER_SPLIT_ENGINES:
        return (Layout(pp=gpus, nodes=nodes),)
    inside = gpus // nodes
    widths = [tp for tp in range(inside, 0, -1) if inside % tp == 0]
    legal = [
        layout for tp in widths if not illegal(layout := Layout(tp=tp, pp=gpus // tp, nodes=nodes), spec, group, engine)
    ]
    return tuple(legal[:1] if link != "pcie" else legal[:3])


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


def _whole_tens(gigabytes: float) -> float:
    """Volumes are sized in tens of gigabytes: a download needs room to finish."""
    return math.ceil(gigabytes / 10 - 1e-9) * 10.0


def memory_parts(fit: ServingFit) -> dict[str, float]:
    """Memory of the fullest GPU by part, GiB."""
    memory = fit.memory
    return {
        "weights_gib": memory.weights_gib,
        "kv_cache_gib": memory.cache_gib,
        "activations_gib": memory.activations_gib,
        "graphs_gib": memory.graphs_gib,
        "context_gib": memory.context_gib,
        "lora_gib": memory.lora_gib,
        "required_gib": memory.required_gib,
        "usable_gib": memory.usable_gib,
    }


def speed_parts(fit: ServingFit) -> dict[str, float] | None:
    """Times of one replica at its load, ms, and its rate."""
    if fit.speed is None:
        return None
    speed = fit.speed
    return {
        "step_ms": speed.step_ms,
        "prefill_ms": speed.prefill_ms,
        "tpot_ms": speed.tpot_ms,
        "ttft_ms": speed.ttft_ms,
        "output_tokens_s": speed.output_tokens_s,
        "running": speed.running,
    }
