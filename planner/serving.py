"""Compose one serving estimate: format and layout legality, memory, capacity and speed of a replica.

`fit_serving` is pure and does no reading beyond the planner's cached data files, so that a planner can call it for
every accelerator, count and layout.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from catalog.types import Accelerator
from planner.attention import CACHE_BYTES
from planner.engines import NEWEST, EngineRule, engine_rule
from planner.links import Link
from planner.model_config import ModelSpec
from planner.parallel import Layout, illegal
from planner.precision import Support, cache_support, engine_support, weight_support
from planner.serving_memory import (
    CacheNeed,
    Memory,
    activation_gib,
    cache_need,
    graphs_gib,
    memory_of,
    whole_token_bytes,
)
from planner.serving_verdict import MEMORY_REASONS, judge, offload_layers, smaller_batch
from planner.speed import Speed, SpeedInputs, decode_terms_ms, prefill_terms_ms, serve_speed
from planner.speed_inputs import speed_inputs
from planner.weights import GIB, WeightFormat, WeightPlan, plan_weights, weight_format

_BLOCK_FP8 = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCase:
    """The workload side of a serving estimate, with every default already filled in.

    `weights` and `kv_cache` are canonical format names. `concurrency` counts users of the whole replica.
    """

    weights: str
    kv_cache: str
    context: int = 8192
    concurrency: int = 1
    input_tokens: int = 6144
    output_tokens: int = 2048
    engine: str = "vllm"
    engine_version: str | None = None
    memory_utilization: float | None = None
    max_batched_tokens: int | None = None
    cuda_graphs: bool = True
    interconnect: str | None = None
    prefix_cache_share: float = 0.0
    speculative_factor: float = 1.0
    lora_adapters: int = 0
    lora_rank: int = 16


@dataclass(frozen=True, slots=True)
class Shard:
    """What of an estimate depends on model, card, split and engine only: memory parts and speed inputs.

    `lean_gib` is what the newest version of the engine would leave to the cache beyond the cautious figures that stand
    for an unstated one; it counts for speed, never for the verdict.
    """

    rule: EngineRule
    plan: WeightPlan
    need: CacheNeed
    activations_gib: float
    graphs_gib: float
    inputs: SpeedInputs
    weight_path: Support
    reasons: tuple[dict[str, Any], ...]
    lean_gib: float


@dataclass(frozen=True, slots=True)
class ServingFit:
    """The answer for one replica; sizes per GPU in GiB, times in ms, rates of the whole replica in tokens a second."""

    starts: bool
    verdict: str
    layout: Layout
    memory: Memory
    plan: WeightPlan
    need: CacheNeed
    kv_bytes_per_token: float
    kv_cache_tokens: int
    max_context: int
    max_concurrency: int
    speed: Speed | None
    bottleneck: str | None
    weight_path: str | None
    reasons: tuple[dict[str, Any], ...]
    link: Link
    rule: EngineRule
    inputs: SpeedInputs


@functools.lru_cache(maxsize=16384)
def shard_of(spec: ModelSpec, gpu: Accelerator, layout: Layout, case: tuple[Any, ...]) -> Shard:
    """Memory parts and speed inputs; `case` is (weights, kv_cache, engine, version, context, batched, graphs, link)."""
    weights, kv_cache, engine, version, context, batched, graphs, interconnect = case
    rule = engine_rule(engine, version)
    form = weight_format(weights)
    runs = engine_support(engine, rule.vendors, rule.minimum_capability, gpu)
    path = weight_support(engine, weights, gpu)
    cache = cache_support(engine, kv_cache, gpu)
    reasons = [support.reason for support in (runs, path, cache) if support.reason]
    if runs.reason:
        reasons = [runs.reason]
    group = split_group(spec, form)
    reasons += illegal(layout, spec, group, engine)
    marlin = (
        weights == "mxfp4" and engine == "vllm" and path.path == "weight_only" and not _has_triton_mxfp4(gpu, version)
    )
    plan = plan_weights(spec, form, layout, engine == "llama.cpp", marlin)
    tokens = batched or rule.batched_tokens(gpu, context)
    if engine == "vllm" and not rule.chunked_prefill:
        tokens = max(tokens, context)
    need = cache_need(spec, rule, layout, CACHE_BYTES[kv_cache], tokens)
    activations = activation_gib(spec, rule, layout.tp, min(tokens, 65536), rule.max_sequences(gpu))
    lean = 0.0
    if version is None:
        newest = engine_rule(engine, NEWEST)
        lean = activations - activation_gib(spec, newest, layout.tp, min(tokens, 65536), newest.max_sequences(gpu))
        lean += (plan.per_gpu - plan_weights(spec, form, layout, engine == "llama.cpp").per_gpu) / GIB
    captured = graphs_gib(spec, rule, layout) if graphs else 0.0
    inputs = speed_inputs(spec, gpu, layout, plan, need, form, path, rule, tokens, graphs, interconnect)
    return Shard(rule, plan, need, activations, captured, inputs, path, tuple(reasons), max(0.0, lean))


def split_group(spec: ModelSpec, form: WeightFormat) -> int:
    """Weights that share a scale along the dimension that tensor parallelism cuts, 0 where any cut is allowed.

    A checkpoint in the format asked for states its own. Otherwise FP8 checkpoints of mixture-of-experts models have
    128 x 128 blocks, dense ones one scale a tensor or channel. MXFP4 kernels pad, so they do not bind.
    """
    stated = spec.scale_group
    if (
        stated is not None
        and form.name != "mxfp4"
        and form.name == (spec.native_format if spec.is_quantised else "fp8")
    ):
        return stated
    if form.name == "fp8":
        return _BLOCK_FP8 if spec.is_moe else 0
    return 0 if form.name == "mxfp4" else form.group


def _has_triton_mxfp4(gpu: Accelerator, version: str | None) -> bool:
    """VLLM runs MXFP4 through Triton on Hopper and CDNA 3 once a release says so, elsewhere through Marlin."""
    return version is not None and gpu.compute_capability in {"9.0", "gfx942"}


def fit_serving(spec: ModelSpec, gpu: Accelerator, layout: Layout, case: ServingCase) -> ServingFit:
    """Estimate one replica.

    Args:
        spec: the model.
        gpu: the card, as many as `layout` says.
        layout: tensor, pipeline, data and expert parallelism.
        case: formats, lengths, load and engine settings.

    Returns:
        The fit. An illegal split or a format that does not run gives verdict `no` with the reasons; its memory
        figures still hold, its speed is None.
    """
    shard = shard_of(
        spec,
        gpu,
        layout,
        (
            case.weights,
            case.kv_cache,
            case.engine,
            case.engine_version,
            case.context if not engine_rule(case.engine, case.engine_version).chunked_prefill else 0,
            case.max_batched_tokens,
            case.cuda_graphs,
            case.interconnect,
        ),
    )
    per_replica = case.concurrency / layout.dp
    lora = lora_gib(spec, case.lora_adapters, case.lora_rank) / layout.tp
    memory_with = functools.partial(
        memory_of,
        rule=shard.rule,
        gpu=gpu,
        layout=layout,
        weights_gib=shard.plan.per_gpu / GIB,
        graphs=shard.graphs_gib,
        context=case.context,
        concurrency=_distinct_sequences(case, max(1.0, per_replica)),
        utilization=case.memory_utilization,
        lora_gib=lora,
    )
    memory = memory_with(need=shard.need, activations_gib=shard.activations_gib)
    reasons = list(shard.reasons)
    starts, verdict = judge(memory, reasons)
    if verdict == "no" and not shard.reasons and case.max_batched_tokens is None and shard.rule.is_large(gpu):
        reasons[-1]["values"].update(smaller_batch(spec, shard.rule, layout, CACHE_BYTES[case.kv_cache], memory_with))
    if not starts and not shard.reasons and case.engine == "llama.cpp":
        reasons[-1]["values"].update(offload_layers(memory, -(-spec.layers // layout.pp)))
    available = memory.available_gib * GIB
    held = shard.need.sequences_held(available, case.context)
    longest = shard.need.longest(available)
    if not spec.cache and starts:  # nothing is kept between steps: the engine's own limits remain
        held, longest = shard.rule.max_sequences(gpu), spec.max_context or longest
    speed = None
    if not shard.reasons and memory.weights_gib < memory.visible_gib and shard.inputs.bandwidth_gb_s:
        speed = serve_speed(
            shard.inputs,
            concurrency=case.concurrency,
            capacity=_running_capacity(case, available + shard.lean_gib * GIB, shard, gpu) * layout.dp,
            input_tokens=case.input_tokens,
            output_tokens=case.output_tokens,
            cached_share=case.prefix_cache_share,
            speculative=case.speculative_factor,
        )
    return ServingFit(
        starts=starts,
        verdict=verdict,
        layout=layout,
        memory=memory,
        plan=shard.plan,
        need=shard.need,
        kv_bytes_per_token=whole_token_bytes(spec, CACHE_BYTES[case.kv_cache], case.context),
        kv_cache_tokens=_capacity_tokens(shard.need, available, case.context) * layout.dp,
        max_context=longest,
        max_concurrency=held * layout.dp,
        speed=speed,
        bottleneck=_bottleneck(shard.inputs, speed, case, verdict, reasons),
        weight_path=shard.weight_path.path,
        reasons=tuple(reasons),
        link=shard.inputs.link,
        rule=shard.rule,
        inputs=shard.inputs,
    )


def _distinct_sequences(case: ServingCase, concurrency: float) -> float:
    """Sequences' worth of cache: a shared prefix is held once."""
    shared = case.prefix_cache_share * case.input_tokens / case.context
    return concurrency - shared * (concurrency - 1)


def _running_capacity(case: ServingCase, available: float, shard: Shard, gpu: Accelerator) -> float:
    """Sequences that run at once: what the cache holds of the lengths really used, at most the engine's own limit.

    A running sequence has given back what lies outside its windows.
    """
    mean = max(1, min(case.context, case.input_tokens + case.output_tokens // 2))
    inputs = shard.inputs
    used = inputs.cache_token_bytes * mean + inputs.state_bytes
    used += sum(rate * min(mean, window) for window, rate in inputs.cache_windows)
    held = available * inputs.pp / used if used else 1e9
    limit = 1e9 if shard.rule.memory_rule == "allocated" else max(shard.rule.max_sequences(gpu), 256)
    return max(1.0, min(held, limit))


def _capacity_tokens(need: CacheNeed, available: float, context: int) -> int:
    """Tokens that the cache holds: pages where every token costs the same, else whole sequences' worth of context."""
    if not need.windows and not need.state_bytes:
        if not need.token_bytes:
            return 0
        return int(available / need.token_bytes) // need.page_tokens * need.page_tokens
    return int(available / need.sequence_bytes(context) * context)


def _bottleneck(
    inputs: SpeedInputs, speed: Speed | None, case: ServingCase, verdict: str, reasons: list[dict[str, Any]]
) -> str | None:
    """What limits the run; None where it is not run at all although the memory would do (engine, format, split)."""
    if verdict == "no":
        return "capacity" if any(reason["code"] in MEMORY_REASONS for reason in reasons) else None
    if speed is None:
        return "capacity"
    terms = decode_terms_ms(inputs, speed.running / inputs.dp, case.input_tokens + case.output_tokens / 2)
    arithmetic, reduced, _ = prefill_terms_ms(inputs, case.input_tokens, case.input_tokens * case.prefix_cache_share)
    blocked = max(0.0, speed.tpot_ms - speed.step_ms) / (arithmetic + reduced)
    terms["compute"] += blocked * arithmetic
    terms["interconnect"] += blocked * reduced
    return max(("bandwidth", "compute", "interconnect"), key=lambda name: terms[name])


def lora_gib(spec: ModelSpec, adapters: int, rank: int) -> float:
    """Adapters of `rank` on every linear projection of attention and dense feed-forward, in 16 bit."""
    if not adapters:
        return 0.0
    width = spec.heads * spec.head_dim
    kv_width = spec.kv_heads * spec.head_dim
    ends = 2 * (spec.hidden + width) + 2 * (spec.hidden + kv_width)
    if spec.budget.dense_mlp:
        ends += (3 if spec.gated_mlp else 2) * (spec.hidden + spec.intermediate)
    return adapters * rank * spec.layers * ends * 2 / GIB
