"""Gather what the speed laws need to know of one replica."""

from __future__ import annotations

from catalog.types import Accelerator
from planner.engines import EngineRule
from planner.links import link_of
from planner.model_config import ModelSpec
from planner.parallel import Layout
from planner.precision import Support
from planner.serving_memory import CacheNeed
from planner.speed import SpeedInputs
from planner.weights import WeightFormat, WeightPlan


def peak_tflops(gpu: Accelerator, activation: str) -> tuple[float, float]:
    """Dense TFLOPS at the arithmetic of a format, and at 16 bit; formats without units fall back to 16 bit."""
    half = gpu.bf16_tflops or gpu.fp16_tflops or gpu.fp32_tflops or 0.03 * (gpu.memory_bandwidth_gb_s or 300)
    own = {"fp8": gpu.fp8_tflops, "fp4": gpu.fp4_tflops or gpu.fp8_tflops, "int8": gpu.int8_tflops}.get(activation)
    return own or half, half


def speed_inputs(
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
    """Bytes, parameters and peaks of one tensor-parallel rank.

    Args:
        spec: the model.
        gpu: the card.
        layout: the split.
        plan: weights as they lie on the GPUs.
        need: cache bytes on one GPU.
        form: the weight format.
        path: how the engine runs that format here; weight-only paths compute in 16 bit.
        rule: the engine's habits.
        tokens: tokens of one scheduling step.
        graphs: whether CUDA graphs are captured.
        interconnect: the link asked for, None for the card's own.
    """
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
        attended=spec.attended,
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
        link=link_of(gpu, max(1, min(max(tp, layout.ep), layout.gpus // layout.nodes)), interconnect),
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
