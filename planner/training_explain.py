"""The arithmetic of a training estimate, line by line, each with its rule and source."""

from __future__ import annotations

from planner.accelerator_choice import choose
from planner.models import model_spec
from planner.request import Request, RequestError
from planner.training import TrainingFit, fit_training
from planner.training_activations import activations, gib, layer_token_bytes
from planner.training_adapters import adapter_params
from planner.training_efficiency import attention_share, efficiency, peak_tflops
from planner.training_formats import BASE_BYTES, adapter_bytes, state_bytes
from planner.training_job import resolve_job
from planner.training_memory import FRAGMENTATION
from planner.training_time import attention_flops, compute_params

_ZERO = "https://arxiv.org/abs/1910.02054"
_ACTIVATIONS = "https://arxiv.org/abs/2205.05198"
_LORA = "https://arxiv.org/abs/2106.09685"
_QLORA = "https://arxiv.org/abs/2305.14314"
_PRACTICE = "https://github.com/stas00/ml-engineering/tree/master/training/performance"


def explain_training(request: Request) -> list[str]:
    """The lines behind `planner.training.estimate_training` for the same request.

    Raises:
        RequestError: as `estimate_training`.
    """
    if request.gpu is None:
        raise RequestError("missing_key", "a training estimate needs a gpu: a slug or an alias")
    accelerator, _ = choose(request.gpu)
    fit = fit_training(resolve_job(request, model_spec(request), accelerator))
    return [*_states(fit), *_activations(fit), *_peak(fit), *_speed(fit), *_job(fit)]


def _states(fit: TrainingFit) -> list[str]:
    job, memory = fit.job, fit.memory
    params = job.model.params_b
    lines = [f"model: {job.model.model_id}, {params:.3g}B parameters, {job.model.active_params_b:.3g}B active"]
    if job.adapters:
        trained = adapter_params(job.model, job.lora_rank, job.lora_targets)
        per = adapter_bytes(job.optimizer)
        lines.append(
            f"base: {job.base} at {BASE_BYTES[job.base]:.3g} bytes a parameter, embedding and head in 16 bit "
            f"= {memory.weights:.2f} GiB a GPU [{_QLORA}]"
        )
        lines.append(
            f"adapters: rank {job.lora_rank} x (inputs + outputs) of {job.lora_targets} = {trained / 1e6:.1f}M, "
            f"{per.weights:g} + {per.gradients:g} + {per.optimizer:g} bytes each = {memory.adapters:.2f} GiB [{_LORA}]"
        )
        return lines
    per = state_bytes(job.regime, job.optimizer, job.precision)
    lines.append(
        f"states: {per.weights:g} weights + {per.gradients:g} gradients + {per.optimizer:g} optimizer bytes "
        f"a parameter ({job.regime}, {job.optimizer}) [{_PRACTICE}]"
    )
    lines.append(
        f"sharding: {job.strategy} over {job.shards} ranks, tp {job.tp}, pp {job.pp}, ep {job.ep}: "
        f"{memory.weights:.2f} + {memory.gradients:.2f} + {memory.optimizer:.2f} GiB a GPU [{_ZERO}]"
    )
    return lines


def _activations(fit: TrainingFit) -> list[str]:
    job = fit.job
    acts = activations(job)
    return [
        (
            f"one layer keeps {layer_token_bytes(job):.0f} bytes a token without recomputation; checkpointing "
            f"{job.checkpointing}: {gib(acts.saved):.2f} GiB saved for {job.micro_tokens:.0f} tokens [{_ACTIVATIONS}]"
        ),
        (
            f"backward of one layer: {gib(acts.layer):.2f} GiB; loss over {job.model.vocab} entries, "
            f"{job.framework.logits_bytes:g} bytes each in {job.framework.loss_chunks} chunk(s): "
            f"{gib(acts.loss):.2f} GiB [{job.framework.source}]"
        ),
    ]


def _peak(fit: TrainingFit) -> list[str]:
    memory = fit.memory
    return [
        (
            f"peak in stage {memory.stage}: states + saved + working set x {1 + FRAGMENTATION:g} (allocator) "
            f"+ {memory.runtime:.2f} GiB runtime = {memory.peak:.2f} GiB of {fit.usable_gib:.2f} GiB: {fit.verdict}"
        ),
    ]


def _speed(fit: TrainingFit) -> list[str]:
    job, speed = fit.job, fit.time
    table = efficiency(job.accelerator)
    return [
        (
            f"arithmetic: {compute_params(job) / 1e9:.3g}B multiplying parameters, attention "
            f"{attention_flops(job) / 1e9:.3g} GFLOP a token forward; {table.matmul_share(job):.0%} of "
            f"{peak_tflops(job.accelerator, job.precision):g} TFLOP/s in linear layers, "
            f"{attention_share(job, table):.0%} in attention = {speed.compute_s:.4g} s a micro-batch [{table.source}]"
        ),
        (
            f"memory traffic {speed.memory_s:.4g} s, launches {speed.launch_s:.4g} s, exposed communication "
            f"{speed.communication_s:.4g} s over {speed.links.kind} at {speed.links.collective_gb_s:.4g} GB/s, "
            f"pipeline x {speed.bubble:.3g}"
        ),
        (
            f"step of {job.step_tokens:.0f} tokens: {speed.seconds_per_step:.4g} s = {speed.tokens_s_per_gpu:.4g} "
            f"tokens/s a GPU, {speed.tflops_per_gpu:.4g} TFLOP/s, MFU {speed.mfu:.1%}"
        ),
    ]


def _job(fit: TrainingFit) -> list[str]:
    kept = fit.checkpoints
    lines = [
        (
            f"checkpoint {kept.size_gib:.2f} GiB, {kept.write_s:.0f} s to write; one each {kept.interval_h:.2f} h "
            "(Young, doi:10.1145/361147.361115; 50,000 GPU-hours a failure, https://arxiv.org/abs/2407.21783)"
        )
    ]
    if fit.hours is not None and fit.job.total_tokens:
        lines.append(f"job: {fit.job.total_tokens:.4g} tokens on {fit.job.gpus} GPUs = {fit.hours:.2f} h")
    return lines
