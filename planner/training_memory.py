"""Peak memory of one GPU in training: sharded states, gathered pieces, activations; the worst of the stages.

Stages: the loss (saved activations + logits), the backward pass of one layer (saved + working set), the optimizer
step. States and sharding follow ZeRO (https://arxiv.org/abs/1910.02054) and
https://github.com/stas00/ml-engineering/tree/master/training/performance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.models import ModelSpec
from planner.training_activations import activations, gib
from planner.training_adapters import adapter_params
from planner.training_formats import (
    BASE_BYTES,
    PAGED_MOMENTS,
    QUANTISED,
    StateBytes,
    adapter_bytes,
    canonical_optimizer,
    state_bytes,
)
from planner.training_job import TrainingJob

# Blocks that the caching allocator keeps beyond what is allocated, as a share of activations: measured reserved over
# allocated memory in single-GPU runs is 1.1 to 1.4 (fitcheck-llm 0.3.1, data/measurements).
FRAGMENTATION = 0.25
# CUDA context, workspaces and communication buffers, GiB; 0.14 measured on T4, 0.5 to 0.9 on A100 and H100
# (https://github.com/stas00/ml-engineering/tree/master/training/performance).
RUNTIME_GIB_OLD = 0.25
RUNTIME_GIB = 1.1
# Copies of adapter gradients and parameters that unfused optimizers make for a step, bytes per parameter.
STEP_BYTES = 14.0
# Layers that are whole on a GPU while one computes: FSDP prefetches one; ZeRO-3 keeps up to 1e9 live parameters.
_GATHERED_LAYERS = {"fsdp": 2.0, "zero3": 4.0}
NCCL_GIB = 0.35
BUCKET_ELEMENTS = 5e8
_FUSED_EXPERT_QUANTISERS = frozenset({"unsloth", "torchtune"})
_SHARDED_GRADS = frozenset({"zero2", "zero3", "fsdp"})
_SHARDED_WEIGHTS = frozenset({"zero3", "fsdp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """GiB on the fullest GPU, and host memory of one node in GiB.

    `weights` holds the base with what a sharded strategy gathers of it; `adapters` their weights, gradients and
    states; `stage` names the stage that sets the peak.
    """

    weights: float
    gradients: float
    optimizer: float
    adapters: float
    saved_activations: float
    working: float
    runtime: float
    peak: float
    stage: str
    host_per_node: float
    experts_kept_16_bit: bool


@dataclass(frozen=True, slots=True)
class _Share:
    """Parameters on one model-parallel rank, before data-parallel sharding."""

    linear: float
    experts: float
    unquantised: float
    layer: float


def training_memory(job: TrainingJob) -> TrainingMemory:
    """Peak memory of the job on its fullest GPU. Pure and fast: no I/O after the tables are loaded."""
    own = _memory(job)
    if not job.adapters or job.base not in QUANTISED:
        return own
    # A quantised base keeps more of the activations; where that outweighs the smaller weights it would be left in
    # 16 bit, so quantising never raises the answer.
    plain = _memory(_with_base(job, "fp16" if job.precision == "fp16" else "bf16"))
    return own if own.peak <= plain.peak else plain


def _with_base(job: TrainingJob, base: str) -> TrainingJob:
    return replace(job, base=base)


def _memory(job: TrainingJob) -> TrainingMemory:
    share = _rank_share(job)
    acts = activations(job)
    runtime = RUNTIME_GIB_OLD if _is_old(job) else RUNTIME_GIB
    kept16 = job.base in {"nf4", "nf4-dq", "int4"} and job.model.is_moe and not _quantises_experts(job)
    if job.adapters:
        weights = _frozen_weights(job, share, kept16)
        trained = adapter_params(job.model, job.lora_rank, job.lora_targets) / (job.tp * job.pp)
        per = adapter_bytes(job.optimizer)
        gradients = optimizer = 0.0
        adapters = _adapter_states(job, per, trained)
        step = STEP_BYTES * trained / _divisor(job, "optimizer")
        unsharded = _frozen_bytes(job, share, kept16) + sum_bytes(per) * trained
    else:
        per = state_bytes(job.regime, job.optimizer, job.precision)
        weights, gradients, optimizer = _full_states(job, share, per)
        adapters = step = 0.0
        trained = share.linear + share.experts + share.unquantised
        unsharded = sum_bytes(per) * trained
    backward = acts.saved + max(acts.layer, acts.loss) * (1 + FRAGMENTATION)
    work = max(backward, step)
    stage = "optimizer" if step > backward else "loss" if acts.loss >= acts.layer else "backward"
    saved = min(acts.saved, work)
    states = weights + gradients + optimizer + adapters
    buffers = _communication_bytes(job, trained, unsharded - states)
    return TrainingMemory(
        weights=gib(weights),
        gradients=gib(gradients),
        optimizer=gib(optimizer),
        adapters=gib(adapters),
        saved_activations=gib(saved),
        working=gib(work - saved),
        runtime=runtime + gib(buffers),
        peak=gib(states + work + buffers) + runtime,
        stage=stage,
        host_per_node=gib(_host_bytes(job, per, share)),
        experts_kept_16_bit=kept16,
    )


def sum_bytes(per: StateBytes) -> float:
    """Weights, gradients and optimizer together, bytes per parameter."""
    return per.weights + per.gradients + per.optimizer


def _communication_bytes(job: TrainingJob, trained: float, spared: float) -> float:
    """Communication buffers of a sharding strategy.

    NCCL takes about 0.35 GiB a GPU (342 to 392 MiB, NVIDIA aiconfigurator); DeepSpeed adds a reduce and an all-gather
    bucket of 5e8 half-precision elements each (https://www.deepspeed.ai/docs/config-json/). Counted at no more than
    half of what sharding spares, so that spreading a job further never raises the answer.
    """
    if job.gpus == 1:
        return 0.0
    bucket = 2 * 2.0 * min(BUCKET_ELEMENTS, trained) if job.strategy in {"zero1", "zero2", "zero3"} else 0.0
    return min(NCCL_GIB * 2**30 + bucket, 0.5 * max(spared, 0.0))


def _is_old(job: TrainingJob) -> bool:
    capability = job.accelerator.compute_capability
    return capability[:1].isdigit() and float(capability) < 8.0


def _quantises_experts(job: TrainingJob) -> bool:
    return job.framework.name in _FUSED_EXPERT_QUANTISERS


def _rank_share(job: TrainingJob) -> _Share:
    budget = job.model.budget
    split = job.tp * job.pp
    experts = budget.experts / (job.pp * max(job.ep, job.tp if job.ep == 1 else job.ep))
    linear = (budget.linear() - budget.experts) / split
    edges = budget.embedding + budget.lm_head
    if job.pp > 1:
        edges = max(budget.embedding, budget.lm_head)
    unquantised = edges / job.tp + (budget.replicated + budget.tower) / split
    layer = _layer_params(job.model) / job.tp
    return _Share(linear=linear, experts=experts, unquantised=unquantised, layer=layer)


def _layer_params(model: ModelSpec) -> float:
    budget = model.budget
    return (budget.total() - budget.embedding - budget.lm_head - budget.tower) / model.layers


def _divisor(job: TrainingJob, state: str) -> float:
    """By how much the strategy divides one kind of state over data-parallel ranks."""
    strategy = job.strategy
    if state == "weights":
        return job.shards if strategy in _SHARDED_WEIGHTS else 1
    if state == "gradients":
        return job.shards if strategy in _SHARDED_GRADS else 1
    return job.shards if strategy in _SHARDED_GRADS or strategy == "zero1" else 1


def _unquantised_bytes(job: TrainingJob) -> float:
    """Bytes per parameter of embedding, head and norms, which no base format quantises."""
    upcast = job.base in QUANTISED and job.framework.quantised_head_upcast and job.precision == "fp16"
    return 4.0 if upcast or job.base == "fp32" else 2.0


def _frozen_bytes(job: TrainingJob, share: _Share, kept16: bool) -> float:
    base = BASE_BYTES[job.base]
    experts = share.experts * (2.0 if kept16 else base)
    return share.linear * base + experts + share.unquantised * _unquantised_bytes(job)


def _frozen_weights(job: TrainingJob, share: _Share, kept16: bool) -> float:
    base, edges = BASE_BYTES[job.base], _unquantised_bytes(job)
    gathered = share.unquantised * edges + _GATHERED_LAYERS.get(job.strategy, 0.0) * share.layer * base
    return _sharded(job, _frozen_bytes(job, share, kept16), gathered)


def _sharded(job: TrainingJob, full: float, gathered: float) -> float:
    """Weights on one GPU: a shard and what is gathered for the working layers, never more than all of them."""
    divisor = _divisor(job, "weights")
    if divisor == 1:
        return full
    resident = 0.0 if job.cpu_offload and job.strategy == "fsdp" else full / divisor
    return min(full, resident + gathered)


def _adapter_states(job: TrainingJob, per: StateBytes, trained: float) -> float:
    weights = per.weights * trained / _divisor(job, "weights")
    gradients = per.gradients * trained / _divisor(job, "gradients")
    optimizer = per.optimizer * trained / _divisor(job, "optimizer")
    if job.cpu_offload:
        optimizer = 0.0
        if job.strategy == "fsdp":
            weights = gradients = 0.0
    return weights + gradients + optimizer


def _full_states(job: TrainingJob, share: _Share, per: StateBytes) -> tuple[float, float, float]:
    dense = share.linear + share.unquantised
    expert_ranks = max(1.0, job.shards * job.tp / job.ep) if job.ep > 1 else float(job.shards)

    def spread(state: str, size: float) -> float:
        divisor = _divisor(job, state)
        experts = expert_ranks if divisor > 1 else 1.0
        return size * (dense / divisor + share.experts / experts)

    gathered = 2.0 * (share.unquantised + _GATHERED_LAYERS.get(job.strategy, 0.0) * share.layer)
    weights = per.weights * (dense + share.experts)
    if _divisor(job, "weights") > 1:
        resident = 0.0 if job.cpu_offload and job.strategy == "fsdp" else spread("weights", per.weights)
        weights = min(weights, resident + gathered)
    gradients = spread("gradients", per.gradients)
    optimizer = spread("optimizer", per.optimizer)
    if job.cpu_offload:
        # Optimizer states and fp32 gradients live in host memory; 16-bit gradients are on their way there.
        optimizer = 0.0
        gradients = 0.0 if job.strategy == "fsdp" else min(gradients, spread("gradients", 2.0))
    return weights, gradients, optimizer


def _host_bytes(job: TrainingJob, per: StateBytes, share: _Share) -> float:
    """Host memory of one node: the checkpoint passes through it once (2 bytes a parameter), and what is offloaded."""
    params = job.model.budget.total()
    trained = adapter_params(job.model, job.lora_rank, job.lora_targets) if job.adapters else params
    per_node = 1.0 / job.nodes
    size = 2.0 * params
    paged = PAGED_MOMENTS.get(canonical_optimizer(job.optimizer), 0.0) * trained * per_node
    if job.cpu_offload:
        offloaded = per.optimizer * trained
        if job.strategy == "fsdp":
            offloaded += (per.weights + per.gradients) * trained
            if job.adapters:
                offloaded += BASE_BYTES[job.base] * share.linear * job.tp * job.pp
        size += offloaded * per_node
    if job.activation_offload:
        size += job.micro_tokens * job.model.layers * 2.0 * job.model.hidden * job.gpus * per_node
    return size + paged
