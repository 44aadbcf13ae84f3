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
from planner.links import Link, link_of
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
from planner.speed import Speed, SpeedInputs, decode_terms_ms, prefill_terms_ms, serve_speed
from planner.weights import GIB, WeightFormat, WeightPlan, plan_weights, weight_format

# The model's error band: a verdict closer to the limit than this is `tight`.
TIGHT_GIB = 1.5
TIGHT_SHARE = 0.025
_FP16_KINDS = frozenset({"bf16", "fp32"})
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
    bottleneck: str
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
    newest = engine_rule(engine, version or NEWEST)
    lean = activations - activation_gib(spec, newest, layout.tp, min(tokens, 65536), newest.max_sequences(gpu))
    captured = graphs_gib(spec, rule, layout) if graphs else 0.0
    inputs = _speed_inputs(spec, gpu, layout, plan, need, form, path, rule, tokens, graphs, interconnect)
    return Shard(rule, plan, need, activations, captured, inputs, path, tuple(reasons), max(0.0, lean))


def split_group(spec: ModelSpec, form: WeightFormat) -> int:
    """Weights that share a scale along the dimension that tensor parallelism cuts, 0 where any cut is allowed.

    FP8 checkpoints of mixture-of-experts models have 128 x 128 blocks; dense ones one scale a tensor or channel.
    MXFP4 kernels pad, so they do not bind.
    """
    if form.name == "fp8":
        return _BLOCK_FP8 if spec.is_moe else 0
    return 0 if form.name == "mxfp4" else form.group


def _has_triton_mxfp4(gpu: Accelerator, version: str | None) -> bool:
    """VLLM runs MXFP4 through Triton on Hopper and CDNA 3 once a release says so, elsewhere through Marlin."""
    return version is not None and gpu.compute_capability in {"9.0", "gfx942"}


def peak_tflops(gpu: Accelerator, activation: str) -> tuple[float, float]:
    """Dense TFLOPS at the arithmetic of a format, and at 16 bit; formats without units fall back to 16 bit."""
    half = gpu.bf16_tflops or gpu.fp16_tflops or gpu.fp32_tflops or 0.03 * (gpu.memory_bandwidth_gb_s or 300)
    own = {"fp8": gpu.fp8_tflops, "fp4": gpu.fp4_tflops or gpu.fp8_tflops, "int8": gpu.int8_tflops}.get(activation)
    return own or half, half


def _speed_inputs(
    spec: ModelSpec,
    gpu: Accelerator,
    layout: Layout,
    plan: WeightPlan,
    need: CacheNeed,
    form: WeightFormat,
    path: Support,
    rule: EngineRule,
    tokens: int,
    graphs: bool,
    interconnect: str | None,
) -> SpeedInputs:
    native = path.path == "native" and rule.engine != "llama.cpp"
    activation = form.activation if native and form.activation in {"fp8", "fp4", "int8"} else "bf16"
    gemm, half = peak_tflops(gpu, activation)
    budget = spec.budget
    tp = layout.tp
    expert_ranks = layout.ep if layout.ep > 1 else tp
    dense = spec.budget.total() - budget.embedding - budget.experts - budget.tower
    if spec.tie_embeddings:
        dense += budget.embedding
    stages = layout.pp
    return SpeedInputs(
        engine=rule.engine,
        memory_type=gpu.memory_type,
        bandwidth_gb_s=gpu.memory_bandwidth_gb_s or 0.0,
        gemm_tflops=gemm,
        half_tflops=half,
        activation=activation,
        layers=spec.layers,
        moe_layers=spec.moe_layers or (spec.layers if spec.is_moe else 0),
        state_layers=spec.state_layers,
        attention_layers=spec.attention_layers or spec.layers,
        latent=spec.latent_attention,
        indexer=any(g.indexer_dim for g in spec.cache),
        hidden=spec.hidden,
        attention_width=spec.heads * spec.head_dim,
        stream_bytes=plan.stream,
        expert_bytes=plan.experts,
        expert_share=spec.expert_share,
        cache_token_bytes=need.token_bytes * stages,
        cache_windows=tuple((_read_window(spec, window), rate * stages) for window, rate in need.windows),
        state_bytes=need.state_bytes * stages,
        dense_params=dense / tp,
        expert_params=budget.experts / expert_ranks,
        tp=tp,
        pp=layout.pp,
        dp=layout.dp,
        ep=layout.ep,
        nodes=layout.nodes,
        link=link_of(gpu, max(1, layout.gpus // layout.nodes), interconnect),
        eager=not graphs or rule.engine == "transformers",
        vendor=gpu.vendor,
        blackwell=gpu.architecture.startswith(("Blackwell", "Rubin")) and gpu.segment == "datacenter",
        legacy=rule.engine == "vllm" and not rule.chunked_prefill,
        chunk_tokens=max(512, min(tokens, 16384)),
    )


def _read_window(spec: ModelSpec, held: int) -> int:
    """Attention reads the window itself, not the chunk that is kept beside it."""
    windows = [g.window for g in spec.cache if g.window is not None]
    return max((w for w in windows if w <= held), default=held)


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
    memory = memory_of(
        rule=shard.rule,
        gpu=gpu,
        layout=layout,
        need=shard.need,
        weights_gib=shard.plan.per_gpu / GIB,
        activations_gib=shard.activations_gib,
        graphs=shard.graphs_gib,
        context=case.context,
        concurrency=_distinct_sequences(case, max(1.0, per_replica)),
        utilization=case.memory_utilization,
        lora_gib=lora,
    )
    reasons = list(shard.reasons)
    starts, verdict = _judge(memory, reasons)
    available = memory.available_gib * GIB
    one = shard.need.sequence_bytes(case.context)
    held = int(available / one) if one else 0
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
        max_context=shard.need.longest(available),
        max_concurrency=held * layout.dp,
        speed=speed,
        bottleneck=_bottleneck(shard.inputs, speed, case, verdict),
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
    """Sequences that run at once: what the cache holds of the lengths really used, at most the engine's own limit."""
    mean = max(1, min(case.context, case.input_tokens + case.output_tokens // 2))
    used = shard.need.sequence_bytes(mean)
    held = available / used if used else 1e9
    limit = 1e9 if shard.rule.memory_rule == "allocated" else max(shard.rule.max_sequences(gpu), 256)
    return max(1.0, min(held, limit))


def _capacity_tokens(need: CacheNeed, available: float, context: int) -> int:
    """Tokens that the cache holds: pages where every token costs the same, else whole sequences' worth of context."""
    if not need.windows and not need.state_bytes:
        if not need.token_bytes:
            return 0
        return int(available / need.token_bytes) // need.page_tokens * need.page_tokens
    return int(available / need.sequence_bytes(context) * context)


def _judge(memory: Memory, reasons: list[dict[str, Any]]) -> tuple[bool, str]:
    """Apply the three gates and the band; appends the memory reasons."""
    room = memory.usable_gib
    fixed = memory.required_gib - memory.cache_gib
    band = max(TIGHT_GIB, TIGHT_SHARE * memory.visible_gib)
    blocked = bool(reasons)
    if memory.weights_gib + memory.lora_gib > room:
        reasons.append(_short("weights_exceed_memory", memory.weights_gib, room))
    elif fixed > room:
        reasons.append(_short("activations_exceed_memory", fixed, room))
    elif fixed + memory.one_sequence_gib > room:
        reasons.append(_short("kv_exceeds_memory", fixed + memory.one_sequence_gib, room))
    elif memory.required_gib > room:
        reasons.append(_short("concurrency_exceeds_memory", memory.required_gib, room))
        return not blocked, "tight" if not blocked and -memory.headroom_gib < band / 2 else "no"
    elif not blocked:
        return True, "fits" if memory.headroom_gib >= band else "tight"
    return False, "no"


def _short(code: str, required: float, usable: float) -> dict[str, Any]:
    values = {
        "required_gib_per_gpu": round(required, 2),
        "usable_gib_per_gpu": round(usable, 2),
        "missing_gib_per_gpu": round(required - usable, 2),
    }
    return {"code": code, "values": values}


def _bottleneck(inputs: SpeedInputs, speed: Speed | None, case: ServingCase, verdict: str) -> str:
    if verdict == "no" or speed is None:
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


def halved(weights: str) -> str:
    """The 16-bit format that stands in for bf16 where only fp16 runs."""
    return "fp16" if weights in _FP16_KINDS else weights
