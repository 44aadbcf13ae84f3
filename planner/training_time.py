"""Training speed: seconds per token of one GPU from arithmetic, memory traffic, launches, links and the pipeline.

time per micro-batch = linear FLOPs / (peak x attained share) + attention FLOPs / (peak x attained share)
+ element-wise traffic / memory bandwidth + kernel launches + exposed communication, times the pipeline bubble.
FLOPs: 2 per parameter and token forward, 2 for input gradients, 2 for weight gradients (not for frozen weights), 2 for
a full recompute (https://arxiv.org/abs/2205.05198, https://arxiv.org/abs/2204.02311 appendix B).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.training_efficiency import Efficiency, attention_share, efficiency, peak_tflops, routing_seconds
from planner.training_job import TrainingJob
from planner.training_links import Links, communication_seconds, links

_TERA = 1e12
_GIGA = 1e9
_LATENT_HEAD_WIDTH = (128 + 64 + 128) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTime:
    """Speed of a job. Seconds are of one micro-batch unless named otherwise.

    `tflops_per_gpu` and `mfu` follow the framework's own convention: 6 FLOPs per active parameter and token (4 with
    frozen weights) plus attention, over the dense peak of the stated precision.
    """

    compute_s: float
    memory_s: float
    launch_s: float
    communication_s: float
    bubble: float
    seconds_per_step: float
    tokens_s_per_gpu: float
    tflops_per_gpu: float
    mfu: float
    links: Links
    bottleneck: str


def compute_params(job: TrainingJob) -> float:
    """Active parameters that multiply: everything a token passes through except the input embedding's lookup."""
    budget = job.model.budget
    active = job.model.active_params_b * _GIGA
    lookup = budget.embedding if budget.lm_head else 0.0
    return max(active - lookup, 0.2 * active)


def attention_flops(job: TrainingJob) -> float:
    """Causal attention FLOPs per token, forward: 2 x keys seen x query width, over all layers."""
    model = job.model
    # Latent attention multiplies 128 + 64 wide keys and 128 wide values per head (https://arxiv.org/abs/2412.19437).
    width = model.heads * (_LATENT_HEAD_WIDTH if model.latent_attention else model.head_dim)
    total = 0.0
    for group in model.cache:
        if group.kind == "state":
            continue
        seen = job.sequence_length / 2
        if group.window:
            seen = min(seen, float(group.window))
        total += group.layers * 4.0 * seen / group.compress_ratio * width
    return total


def training_time(job: TrainingJob) -> TrainingTime:
    """Speed of the job. Pure and fast: no I/O after the tables are loaded."""
    table = efficiency(job.accelerator)
    net = links(job)
    passes = 1.0 if job.checkpointing == "full" else 0.15 if job.checkpointing == "selective" else 0.0
    backward = 1.0 if job.adapters else 2.0
    peak = peak_tflops(job.accelerator, job.precision) * _TERA
    half_peak = peak if job.precision == "fp32" else peak_tflops(job.accelerator, "bf16") * _TERA
    split = job.tp * job.pp
    tokens = job.micro_tokens
    linear = 2.0 * compute_params(job) * (1 + passes + backward) * tokens / split
    attention = attention_flops(job) * (1 + passes + 2.5) * tokens / split
    share = table.matmul_share(job)
    compute = linear / (peak * share) + attention / (half_peak * attention_share(job, table))
    memory = _elementwise_seconds(job, table, passes) + _dequantise_seconds(job, table, passes)
    memory += routing_seconds(job, table)
    launch = table.launch_s(job) * job.model.layers / job.pp * (1 + 0.5 * passes)
    communication = communication_seconds(job, net)
    busy = compute + memory + launch + communication.per_micro_batch
    bubble = _bubble(job)
    step = (busy * job.micro_batches * bubble + communication.per_step) * _straggling(job)
    tokens_s = job.step_tokens / step / job.gpus
    useful = _useful_flops(job)
    parts = {"compute": compute, "bandwidth": memory + launch, "interconnect": communication.per_micro_batch}
    return TrainingTime(
        compute_s=compute,
        memory_s=memory,
        launch_s=launch,
        communication_s=communication.per_micro_batch + communication.per_step / job.micro_batches,
        bubble=bubble,
        seconds_per_step=step,
        tokens_s_per_gpu=tokens_s,
        tflops_per_gpu=tokens_s * useful / _TERA,
        mfu=tokens_s * useful / peak,
        links=net,
        bottleneck=max(parts, key=lambda name: parts[name]),
    )


def _useful_flops(job: TrainingJob) -> float:
    """FLOPs per token that count for MFU: no recomputation; full attention unless the framework halves it."""
    attention = attention_flops(job) * 3.0 * (1.0 if job.framework.causal_flops else 2.0)
    per_param = 4.0 if job.adapters else 6.0
    params = compute_params(job) if job.framework.causal_flops else job.model.active_params_b * _GIGA
    return per_param * params + attention * per_param / 6.0


def _elementwise_seconds(job: TrainingJob, table: Efficiency, passes: float) -> float:
    """Norms, activations, residuals, rotary embedding: bytes per token, layer and channel over memory bandwidth."""
    size = table.elementwise_bytes(job) * job.model.hidden * job.model.layers * (2 + passes) / 2
    return job.micro_tokens / (job.tp * job.pp) * size / table.bandwidth


def _dequantise_seconds(job: TrainingJob, table: Efficiency, passes: float) -> float:
    """A quantised base is unpacked to 16 bit in every pass: read the codes, write and read back 16-bit weights."""
    if not job.quantised:
        return 0.0
    return (2 + passes) * 4.6 * job.model.budget.linear() / (job.tp * job.pp) / table.bandwidth


def _straggling(job: TrainingJob) -> float:
    """Every step waits for the slowest rank: about 1.5 % per doubling beyond 64 GPUs.

    MPT-7B falls from 46 % MFU on 8 H100 to 42 % on 512 (https://github.com/mosaicml/llm-foundry), GPT-175B from 47 % on
    96 to 42 % on 4,608 (https://github.com/NVIDIA/Megatron-LM).
    """
    return 1.0 + 0.015 * max(0.0, math.log2(job.gpus / 64))


def _bubble(job: TrainingJob) -> float:
    """1F1B with two model chunks a stage: (stages - 1) / (2 x micro-batches) idle on top of the work."""
    return 1.0 + (job.pp - 1) / (2.0 * max(job.micro_batches, 1))
