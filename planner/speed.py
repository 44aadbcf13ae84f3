"""Speed of a serving replica from a few physical terms; coefficients with their sources in `data/speed.csv`.

One decode step = fixed cost per layer + bytes read / (efficiency x bandwidth) + all-reduce latency, and the share of
other requests' prefill that interrupts it. Prefill = arithmetic / (efficiency x peak) + all-reduce + fixed cost.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.datafiles import data_rows
from planner.links import Link, allreduce_us

Coefficients = Mapping[str, float]
_HBM = ("HBM",)
_LOOP_USERS = 256


@functools.cache
def coefficients() -> Coefficients:
    """The fitted coefficients by name (`data/speed.csv`)."""
    return {row["name"]: float(row["value"]) for row in data_rows("speed.csv")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedInputs:
    """What the speed laws need to know of one replica (bytes and parameters are of one tensor-parallel rank).

    `stream_bytes` are read by every decode step, `expert_bytes` only as far as experts are touched. `cache_token_bytes`
    and `cache_windows` (tokens, bytes per token) are read per sequence and context token, `state_bytes` per sequence.
    `gemm_tflops` is the dense peak at the arithmetic that the weights allow, `half_tflops` that of 16 bit.
    """

    engine: str
    memory_type: str
    bandwidth_gb_s: float
    gemm_tflops: float
    half_tflops: float
    activation: str
    layers: int
    moe_layers: int
    state_layers: int
    attention_layers: int
    latent: bool
    indexer: bool
    hidden: int
    attended: tuple[tuple[int, int | None], ...]
    stream_bytes: float
    expert_bytes: float
    expert_share: float
    cache_token_bytes: float
    cache_windows: tuple[tuple[int, float], ...]
    state_bytes: float
    dense_params: float
    expert_params: float
    tp: int
    pp: int
    dp: int
    ep: int
    nodes: int
    link: Link
    eager: bool
    vendor: str
    legacy: bool
    blackwell: bool
    chunk_tokens: int


def touched_share(expert_share: float, tokens: float) -> float:
    """Share of a layer's experts that `tokens` independent tokens use: 1 - (1 - k/E)^tokens."""
    if expert_share >= 1:
        return 1.0
    return 1.0 - math.pow(1.0 - expert_share, tokens)


def bandwidth_efficiency(inputs: SpeedInputs, k: Coefficients) -> float:
    """Share of the printed bandwidth that weight streaming reaches on this kind of memory."""
    share = k["bandwidth_gddr"]
    if inputs.memory_type.startswith(_HBM):
        share = k["bandwidth_hbm_llama.cpp"] if inputs.engine == "llama.cpp" else k["bandwidth_hbm"]
    if inputs.vendor != "NVIDIA":
        share *= k["bandwidth_other_vendor"]
    return share


def _reached(inputs: SpeedInputs, tflops: float, k: Coefficients) -> float:
    """Operations a millisecond at the printed peak, less what kernels of other vendors leave unused."""
    return tflops * 1e9 * (1.0 if inputs.vendor == "NVIDIA" else k["mfu_other_vendor"])


def decode_ms(inputs: SpeedInputs, batch: float, context: float, k: Coefficients | None = None) -> float:
    """Milliseconds of one decode step of `batch` sequences of mean length `context` on one replica.

    Pipeline stages follow one another, each on its own micro-batch of batch / pp sequences.
    """
    k = k or coefficients()
    micro = max(1.0, batch / inputs.pp)
    return (
        fixed_us(inputs, micro, k) / 1e3
        + _overlapped(*_stream_and_arithmetic_ms(inputs, micro, k), k)
        + _cache_ms(inputs, micro, context, k)
        + _decode_allreduce_us(inputs, micro) * k["allreduce"] / 1e3
    )


def decode_terms_ms(
    inputs: SpeedInputs, batch: float, context: float, k: Coefficients | None = None
) -> dict[str, float]:
    """The parts of one decode step in ms: fixed, bandwidth (weights and cache), compute, interconnect.

    Weights and arithmetic overlap; the smaller of the two is what `compute` adds to the stream.
    """
    k = k or coefficients()
    micro = max(1.0, batch / inputs.pp)
    stream, arithmetic = _stream_and_arithmetic_ms(inputs, micro, k)
    both = _overlapped(stream, arithmetic, k)
    share = arithmetic / (stream + arithmetic) if both else 0.0
    return {
        "fixed": fixed_us(inputs, micro, k) / 1e3,
        "bandwidth": both * (1 - share) + _cache_ms(inputs, micro, context, k),
        "compute": both * share,
        "interconnect": _decode_allreduce_us(inputs, micro) * k["allreduce"] / 1e3,
    }


def fixed_us(inputs: SpeedInputs, batch: float, k: Coefficients) -> float:
    """Launch and scheduling cost of a step: per layer by kind, per step, and per sequence in the step."""
    per_layer = k["layer_us"] * inputs.layers + k["moe_layer_us"] * inputs.moe_layers
    per_layer += k["state_layer_us"] * inputs.state_layers
    if inputs.latent:
        per_layer += k["latent_layer_us"] * inputs.attention_layers
    if inputs.indexer:
        per_layer += k["indexer_layer_us"] * inputs.attention_layers
    if inputs.activation in {"fp8", "fp4", "int8"}:
        per_layer += k[f"{inputs.activation}_layer_us"] * (inputs.layers - inputs.moe_layers)
    per_layer *= k[f"engine_{inputs.engine}"] * (k["fixed_blackwell"] if inputs.blackwell else 1.0)
    if inputs.eager:
        per_layer += k["eager_layer_us"] * inputs.layers
    step = k["step_us"] + (k["legacy_step_us"] if inputs.legacy else 0.0)
    return per_layer + step + k[f"sequence_us_{inputs.engine}"] * batch + (inputs.pp - 1) * k["stage_us"]


def _stream_and_arithmetic_ms(inputs: SpeedInputs, batch: float, k: Coefficients) -> tuple[float, float]:
    rate = inputs.bandwidth_gb_s * 1e6 * bandwidth_efficiency(inputs, k)
    stream = inputs.stream_bytes / rate
    tokens = batch * inputs.dp if inputs.ep > inputs.tp else batch
    experts = inputs.expert_bytes * touched_share(inputs.expert_share, tokens) / (rate * k["bandwidth_experts"])
    params = inputs.dense_params + inputs.expert_params * inputs.expert_share
    arithmetic = (
        2
        * params
        * batch
        / (_reached(inputs, inputs.gemm_tflops, k) * k["decode_mfu_moe" if inputs.moe_layers else "decode_mfu_dense"])
    )
    return stream + experts, arithmetic


def _overlapped(stream: float, arithmetic: float, k: Coefficients) -> float:
    """Reading weights and computing with them overlap; near the ridge neither hides the other in full."""
    p = k["overlap"]
    longest = max(stream, arithmetic)
    if longest <= 0:
        return 0.0
    return longest * math.pow(1 + math.pow(min(stream, arithmetic) / longest, p), 1 / p)


def _cache_ms(inputs: SpeedInputs, batch: float, context: float, k: Coefficients) -> float:
    read = inputs.cache_token_bytes * context + 2 * inputs.state_bytes
    for window, per_token in inputs.cache_windows:
        read += per_token * min(context, window)
    return batch * read / (inputs.bandwidth_gb_s * 1e6 * bandwidth_efficiency(inputs, k) * k["bandwidth_cache"])


def _decode_allreduce_us(inputs: SpeedInputs, batch: float) -> float:
    world = max(inputs.tp, inputs.ep)
    if world <= 1:
        return 0.0
    rounds = 2 * inputs.layers if inputs.tp > 1 else 2 * inputs.moe_layers
    return rounds * allreduce_us(
        inputs.link, inputs.engine, world, batch * inputs.hidden, eager=inputs.eager, nodes=inputs.nodes
    )


def prefill_ms(inputs: SpeedInputs, tokens: float, cached: float = 0.0, k: Coefficients | None = None) -> float:
    """Milliseconds to process one prompt of `tokens`, of which `cached` tokens are already in the prefix cache."""
    return sum(prefill_terms_ms(inputs, tokens, cached, k))


def prefill_terms_ms(
    inputs: SpeedInputs, tokens: float, cached: float = 0.0, k: Coefficients | None = None
) -> tuple[float, float, float]:
    """The parts of `prefill_ms`: arithmetic (with the weights read beside it), all-reduce, fixed cost."""
    k = k or coefficients()
    fresh = max(1.0, tokens - cached)
    share = inputs.expert_share
    linear = 2 * fresh * (inputs.dense_params + inputs.expert_params * share)
    reach = (tokens + cached) / 2
    attention = sum(width * (reach if limit is None else min(reach, limit)) for width, limit in inputs.attended)
    attention *= 4 * fresh / inputs.tp
    moe = inputs.moe_layers > 0 or inputs.expert_params > 0
    name = f"prefill_mfu_moe_{inputs.activation}" if moe else f"prefill_mfu_{inputs.activation}"
    arithmetic = linear / (_reached(inputs, inputs.gemm_tflops, k) * k[name])
    arithmetic += attention / (_reached(inputs, inputs.half_tflops, k) * k["prefill_mfu_attention"])
    rate = inputs.bandwidth_gb_s * 1e6 * bandwidth_efficiency(inputs, k)
    weights = (inputs.stream_bytes + inputs.expert_bytes * touched_share(share, fresh) / k["bandwidth_experts"]) / rate
    chunks = max(1.0, fresh / inputs.chunk_tokens)
    world = max(inputs.tp, inputs.ep)
    reduce_us = 0.0
    if world > 1:
        rounds = 2 * inputs.layers if inputs.tp > 1 else 2 * inputs.moe_layers
        size = fresh / chunks * inputs.hidden
        reduce_us = chunks * rounds * allreduce_us(inputs.link, inputs.engine, world, size, nodes=inputs.nodes)
    fixed = k["prefill_layer_us"] * (inputs.layers + inputs.moe_layers) * k[f"engine_{inputs.engine}"] * chunks
    return math.hypot(arithmetic, weights * chunks), reduce_us * k["prefill_allreduce"] / 1e3, fixed / 1e3


def _pipeline_share(inputs: SpeedInputs, fresh: float) -> float:
    """Share of one prompt's prefill time when its chunks follow each other through the pipeline stages."""
    chunks = max(1.0, math.ceil(fresh / inputs.chunk_tokens))
    return (chunks + inputs.pp - 1) / (chunks * inputs.pp)


def _burst_share(engine: str, concurrency: float, k: Coefficients) -> float:
    """Share of the closed-loop rate that is left beyond `_LOOP_USERS` users.

    So many requests arrive as a burst: while it ramps up and while its longest answers end, the engine is part idle.
    """
    if concurrency <= _LOOP_USERS:
        return 1.0
    return 1.0 / (1.0 + k[f"burst_{engine}"] * math.log2(concurrency / _LOOP_USERS))


@dataclass(frozen=True, slots=True)
class Speed:
    """Times of one request and the rate of the whole replica at a concurrency."""

    tpot_ms: float
    ttft_ms: float
    output_tokens_s: float
    step_ms: float
    prefill_ms: float
    running: float


def serve_speed(
    inputs: SpeedInputs,
    *,
    concurrency: float,
    capacity: float,
    input_tokens: int,
    output_tokens: int,
    cached_share: float = 0.0,
    speculative: float = 1.0,
    k: Coefficients | None = None,
) -> Speed:
    """Closed loop of `concurrency` users, each sending the next request when the last is answered.

    At most `capacity` sequences run at once; the rest wait. Each request's prefill interrupts the decode of those that
    run beside it: running x prefill / output_tokens is added to the time per token, scaled by `interference`.
    """
    k = k or coefficients()
    running = max(1.0, min(concurrency, capacity) / inputs.dp)
    context = input_tokens + output_tokens / 2
    step = decode_ms(inputs, running, context, k) / speculative
    cached = input_tokens * cached_share
    prefill = prefill_ms(inputs, input_tokens, cached, k)
    alone = prefill * _pipeline_share(inputs, input_tokens - cached)
    blocked = k["interference"] * (running - 1) * prefill / min(running, inputs.pp) / max(1, output_tokens)
    tpot = step + blocked
    # The requests of a closed loop meet in a queue in front of prefill; it is emptied one prompt after the other.
    queue = k[f"queue_{inputs.engine}"] * min(running - 1, k["queue_longest"])
    ttft = (
        k[f"ttft_base_{inputs.engine}"]
        + alone * (1 + queue)
        + k[f"wait_steps_{inputs.engine}"] * step * min(1, running - 1)
    )
    cycle = ttft + max(0, output_tokens - 1) * tpot
    rate = running * output_tokens / cycle * 1e3 * inputs.dp * _burst_share(inputs.engine, concurrency / inputs.dp, k)
    waiting = max(0.0, concurrency / inputs.dp - running)
    if waiting:
        ttft += waiting / running * cycle / 2
    return Speed(tpot, ttft, rate, step, prefill, running * inputs.dp)
