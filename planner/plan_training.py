"""Plans for fine-tuning and pre-training: instances, hours, checkpoints, and spot priced with its interruptions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planner.candidates import FABRIC_GBPS, Shape
from planner.cost import Usage
from planner.cost_spot import checkpointed
from planner.cost_start import cold_start
from planner.model_config import ModelSpec
from planner.models import model_spec
from planner.options import Option, Outcome
from planner.plan_hardware import software_refusal
from planner.policy import Policy
from planner.reasons import Reason, reason
from planner.request import Request
from planner.training import TrainingFit, TrainingRefusal, candidate_fit

_GIB_TO_GB = 2**30 / 1e9
_WEIGHTS_BYTES = 2.0
_STORAGE_FACTOR = 1.2
# Tokens of a job that states no amount of work: a small instruction set for tuning, twenty tokens a parameter for
# pre-training (https://arxiv.org/abs/2203.15556).
DEFAULT_TUNING_TOKENS = 10_000_000
TOKENS_A_PARAMETER = 20
_MOST_NODES = 8


@dataclass(slots=True)
class TrainingPlanner:
    """lora, qlora, full and pretrain."""

    request: Request
    policy: Policy
    _model: ModelSpec | None = None
    _fits: dict[tuple[Any, ...], TrainingFit | TrainingRefusal] = field(default_factory=dict)

    @property
    def model(self) -> ModelSpec:
        """The request's model."""
        if self._model is None:
            self._model = model_spec(self.request)
        return self._model

    @property
    def sized(self) -> Request:
        """The request with an amount of work."""
        request = self.request
        if request.tokens is not None or request.examples is not None:
            return request
        tokens = TOKENS_A_PARAMETER * self.model.params_b * 1e9 if request.workload == "pretrain" else None
        return replace(request, tokens=tokens or DEFAULT_TUNING_TOKENS)

    def options(self, shape: Shape) -> Outcome:
        """The quickest way to run the job on one instance, or on several over a known fabric."""
        refusal = software_refusal(shape.accelerator, self.request)
        if refusal is not None:
            return Outcome(refusal=refusal)
        fits: list[tuple[TrainingFit, int]] = []
        refusals: list[TrainingRefusal | TrainingFit] = []
        for gpus, instances in self._sizes(shape):
            nodes = max(1, math.ceil(gpus / shape.node_gpus))
            found = self._fit(shape, gpus, nodes)
            if isinstance(found, TrainingFit) and found.verdict != "no":
                fits.append((found, instances))
            else:
                refusals.append(found)
        if not fits:
            return self._refused(shape, refusals)
        fit, instances = min(fits, key=lambda item: self._preference(item[0], item[1]))
        return Outcome((self._option(shape, fit, instances),))

    def _preference(self, fit: TrainingFit, instances: int) -> tuple[Any, ...]:
        late = self.policy.deadline_h is not None and (fit.hours or 0.0) > self.policy.deadline_h
        return (late, fit.verdict != "fits", instances * (fit.hours or 0.0), instances, fit.job.gpus)

    def _sizes(self, shape: Shape) -> Iterator[tuple[int, int]]:
        """GPUs of the job and instances that hold them."""
        stated = self.request.gpus
        if stated is not None:
            yield stated, math.ceil(stated / shape.gpu_count)
            return
        sizes = {2**n for n in range(9) if 2**n <= shape.node_gpus} | {shape.node_gpus}
        yield from ((gpus, 1) for gpus in sorted(sizes))
        if shape.nodes > 1:
            yield shape.gpu_count, 1
        elif shape.fabric and shape.node_gpus >= 4:
            yield from ((shape.node_gpus * n, n) for n in (2, 4, _MOST_NODES))

    def _fit(self, shape: Shape, gpus: int, nodes: int) -> TrainingFit | TrainingRefusal:
        link = "nvlink" if shape.link in {"nvlink", "infinity_fabric", "ici"} else "pcie" if shape.link else None
        if self.request.interconnect in {"nvlink", "pcie"} and gpus > 1:
            if self.request.interconnect == "nvlink" and link == "pcie":
                return TrainingRefusal("link_not_asked", {"link": "pcie"})
            link = self.request.interconnect
        rate = self._fabric_gb_s(shape)
        key = (shape.accelerator, gpus, nodes, link, rate if nodes > 1 else None)
        if key not in self._fits:
            self._fits[key] = candidate_fit(
                self.sized, self.model, shape.accelerator, gpus=gpus, nodes=nodes, link=link, fabric_gb_s=rate
            )
        return self._fits[key]

    def _fabric_gb_s(self, shape: Shape) -> float | None:
        """Network of one machine, GB/s; RDMA of an unpublished rate counts as the least that carries a job."""
        if not shape.fabric:
            return None
        return (shape.network_gbps or FABRIC_GBPS) / 8

    def _option(self, shape: Shape, fit: TrainingFit, instances: int) -> Option:
        job = fit.job
        warnings: list[Reason] = []
        if job.nodes > 1 and shape.network_gbps is None:
            warnings.append(reason("fabric_rate_assumed", gbps=FABRIC_GBPS))
        if job.gpus > 1 and not shape.link_known:
            warnings.append(reason("interconnect_assumed", link=shape.link))
        if len(shape.candidates) > 1:
            warnings.append(reason("planned_on_least", gpu=shape.gpu, candidates=list(shape.candidates)))
        weights_gb = self.model.params_b * _WEIGHTS_BYTES
        checkpoint_gb = fit.checkpoints.size_gib * _GIB_TO_GB
        kept_gb = fit.checkpoints.storage_gib * _GIB_TO_GB
        hours = fit.hours or 0.0
        return Option(
            shape=shape,
            verdict=fit.verdict,
            instances=instances,
            replicas=1,
            tp=job.tp,
            pp=job.pp,
            dp=job.dp,
            required_gib=fit.memory.peak,
            usable_gib=fit.usable_gib,
            hours=hours,
            latency_ms=hours * 3.6e6,
            disk_gb=float(math.ceil(weights_gb * _STORAGE_FACTOR + kept_gb)),
            load_gb=weights_gb,
            checkpoint_gb=checkpoint_gb,
            bottleneck=fit.time.bottleneck,
            warnings=tuple(warnings),
            reasons=(
                reason("checkpoints", size_gb=round(checkpoint_gb, 2), write_s=round(fit.checkpoints.write_s, 1)),
            ),
            memory={
                "weights_gib": fit.memory.weights,
                "gradients_gib": fit.memory.gradients,
                "optimizer_gib": fit.memory.optimizer,
                "adapters_gib": fit.memory.adapters,
                "activations_gib": fit.memory.saved_activations,
                "working_gib": fit.memory.working,
                "runtime_gib": fit.memory.runtime,
                "required_gib": fit.memory.peak,
                "usable_gib": fit.usable_gib,
            },
            speed={
                "tokens_s_per_gpu": fit.time.tokens_s_per_gpu,
                "mfu": fit.time.mfu,
                "seconds_per_step": fit.time.seconds_per_step,
                "gpus": float(job.gpus),
                "hours": hours,
                "checkpoint_write_s": fit.checkpoints.write_s,
            },
        )

    def _refused(self, shape: Shape, refusals: list[TrainingRefusal | TrainingFit]) -> Outcome:
        misses = [r for r in refusals if isinstance(r, TrainingFit)]
        if misses:
            fit = min(misses, key=lambda f: f.memory.peak - f.usable_gib)
            short = max(0.0, fit.memory.peak - fit.usable_gib)
            why = reason(
                "training_exceeds_memory",
                required_gib_per_gpu=round(fit.memory.peak, 2),
                usable_gib_per_gpu=round(fit.usable_gib, 2),
                missing_gib_per_gpu=round(short, 2),
            )
            return Outcome(refusal={**why, "gpus": fit.job.gpus}, missing_gib=short, usable_gib=fit.usable_gib)
        first = refusals[0]
        assert isinstance(first, TrainingRefusal)
        if first.code == "fabric_unknown":
            return Outcome(refusal=reason("loosely_coupled", gpus=self.request.gpus, instance_gpus=shape.gpu_count))
        return Outcome(refusal=reason(first.code, **first.values))

    def usage(self, option: Option, offer: Mapping[str, Any]) -> Usage | Reason:
        """The job once: hours, one start, weights and kept checkpoints; on spot, Young's interval and its overhead."""
        start = cold_start(offer, option.load_gb, self.policy.cold_start)
        interruptions = None
        if offer["purchase_option"] == "spot":
            write_s = option.speed["checkpoint_write_s"] if option.speed else 1.0
            interruptions = checkpointed(offer["interruption_rate"], write_s, start.total_s, instances=option.instances)
            if not interruptions.feasible:
                return reason("spot_too_interrupted", overhead=interruptions.overhead)
        stated = self.policy.storage_gb
        return Usage(
            monthly=False,
            instances=option.instances,
            hours=option.hours or 0.0,
            starts=1.0,
            storage_gb=stated if stated is not None else option.disk_gb,
            storage_shared=True,
            egress_gb=self.policy.egress_gb,
            addresses=False,
            start=start,
            interruptions=interruptions,
            disk_survives=interruptions is None and start.kind != "attached_volume",
        )

    def resolved(self) -> dict[str, Any]:
        """The amount of work as planned."""
        return {"tokens": self.sized.tokens}

    def assumptions(self) -> list[str]:
        """The fit model's assumptions for one candidate, and the amount of work where none was stated."""
        fit = next((f for f in self._fits.values() if isinstance(f, TrainingFit)), None)
        said = [f"{name} {value}" for name, value in fit.job.assumptions] if fit else []
        if self.sized is not self.request:
            said.append(f"{self.sized.tokens:,.0f} tokens of training (none stated)")
        said.append(f"weights in 16 bit x {_STORAGE_FACTOR} and the kept checkpoints are stored for the job's duration")
        return said

    def remedies(self, shape: Shape) -> list[Reason]:
        """A lighter method, more GPUs, or a shorter sequence that would fit this card."""
        found: list[Reason] = []
        lighter = {"full": "lora", "lora": "qlora"}.get(self.request.workload)
        if lighter is not None and self._with(shape, workload=lighter):
            found.append(reason("fits_with_workload", workload=lighter))
        if self.request.micro_batch and self.request.micro_batch > 1 and self._with(shape, micro_batch=1):
            found.append(reason("fits_with_micro_batch", micro_batch=1))
        for count in (2, 4, 8):
            if count > shape.gpu_count and self.request.gpus is None:
                wider = replace(shape, gpu_count=count, link=shape.link or "pcie")
                if self.options(wider).options:
                    found.append(reason("fits_on_more_gpus", gpus=count))
                    break
        return found

    def _with(self, shape: Shape, **changes: Any) -> bool:
        return bool(TrainingPlanner(replace(self.request, **changes), self.policy).options(shape).options)
