"""GPU memory of a serving replica: weights, cache, activations, graphs, and what the engine leaves for the cache.

Three gates decide whether an engine starts: the weights load, one sequence of the full context fits in the cache, and
the activation peak with the captured graphs fits beside them. All sizes are GiB on the fullest GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from catalog.types import Accelerator
from planner.attention import CacheGroup
from planner.engines import EngineRule
from planner.model_config import ModelSpec
from planner.parallel import Layout
from planner.weights import GIB

_HALF = 2
# Captured graphs of routed experts and of latent attention, GiB beyond those of a dense model of as many layers
# (launch logs of vLLM 0.19: 1.1-1.6 GiB against 0.7-1.2).
_GRAPH_MOE_GIB = 0.3
_GRAPH_LATENT_GIB = 0.4
# Engines that allocate as they go report their own sum, without the CUDA context.
_PAGED = frozenset({"full", "sliding", "chunked"})
_OWN_SUM_RULES = frozenset({"allocated"})


@dataclass(frozen=True, slots=True)
class CacheNeed:
    """Bytes on one GPU: growing with every token, held once a window is full, and per sequence whatever its length.

    `lookahead` is the part of each window that holds the tokens of one prefill chunk (vLLM frees what has left the
    window before it allocates, and a step's chunk is divided among its sequences).
    """

    token_bytes: float
    windows: tuple[tuple[int, float], ...]
    state_bytes: float
    page_tokens: int
    lookahead: int = 0

    def further_bytes(self, context: int) -> float:
        """Cache of one more sequence beside the first: the tokens of a prefill chunk are shared by all of a step."""
        page = self.page_tokens
        tokens = context if page <= 1 else -(-context // page) * page
        total = self.token_bytes * tokens + self.state_bytes
        for window, per_token in self.windows:
            total += per_token * min(tokens, window - self.lookahead)
        return total

    def sequences_held(self, available: float, context: int) -> int:
        """How many sequences of `context` tokens fit in `available` bytes."""
        first, further = self.sequence_bytes(context), self.further_bytes(context)
        if not first or available < first:
            return 0
        return 1 + int((available - first) / further) if further else 1

    def sequence_bytes(self, context: int) -> float:
        """Cache of one sequence of `context` tokens, rounded up to whole pages."""
        page = self.page_tokens
        tokens = context if page <= 1 else -(-context // page) * page
        total = self.token_bytes * tokens + self.state_bytes
        for window, per_token in self.windows:
            total += per_token * min(tokens, window)
        return total

    def longest(self, available: float) -> int:
        """The longest context whose cache is at most `available` bytes, in whole pages."""
        room = available - self.state_bytes
        if room <= 0:
            return 0
        start, per_token = 0, self.token_bytes + sum(rate for _, rate in self.windows)
        for window, rate in sorted(self.windows):
            span = (window - start) * per_token
            if span >= room:
                break
            room -= span
            start, per_token = window, per_token - rate
        if per_token <= 0:
            return 10**9
        tokens = start + int(room / per_token)
        return tokens // self.page_tokens * self.page_tokens


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one replica on its fullest GPU, in GiB.

    `available_gib` is what the engine leaves for the cache, `usable_gib` the limit that `required_gib` is held against.
    """

    weights_gib: float
    cache_gib: float
    one_sequence_gib: float
    activations_gib: float
    graphs_gib: float
    context_gib: float
    required_gib: float
    usable_gib: float
    available_gib: float
    visible_gib: float
    lora_gib: float = 0.0

    @property
    def headroom_gib(self) -> float:
        """Usable less required; negative when it does not fit."""
        return self.usable_gib - self.required_gib


def cache_need(
    spec: ModelSpec, rule: EngineRule, layout: Layout, element_bytes: float, batched_tokens: int
) -> CacheNeed:
    """Cache bytes on the fullest GPU under `layout`.

    Engines without chunked prefill have no hybrid allocator either: they keep windowed layers in full.
    """
    stage = math.ceil(spec.layers / layout.pp) / spec.layers if layout.pp > 1 else 1.0
    tp = layout.tp
    growing = state = 0.0
    windows: list[tuple[int, float]] = []
    lookahead = _lookahead(rule, batched_tokens)
    for group in spec.cache:
        per_token = group.token_bytes(element_bytes, tp) * stage
        state += group.sequence_state_bytes(tp) * stage
        window = _held_window(group, rule, lookahead)
        per_token *= _group_padding(spec, group, rule)
        if window is None:
            growing += per_token
        else:
            windows.append((window, per_token))
    return CacheNeed(growing, tuple(windows), state, rule.page_tokens, lookahead if windows else 0)


def _group_padding(spec: ModelSpec, group: CacheGroup, rule: EngineRule) -> float:
    """The hybrid allocator of vLLM deals layers out in groups as large as the smallest kind; the last group is padded.

    Source: _get_kv_cache_groups_uniform_page_size,
    https://github.com/vllm-project/vllm/blob/main/vllm/v1/core/kv_cache_utils.py
    """
    if rule.engine != "vllm" or not rule.chunked_prefill:
        return 1.0
    counts = [g.layers for g in spec.cache if g.kind in _PAGED]
    if len(counts) < 2 or group.kind not in _PAGED:
        return 1.0
    size = max(counts) if max(counts) < min(counts) * 1.25 else min(counts)
    return math.ceil(group.layers / size) * size / group.layers


def _lookahead(rule: EngineRule, batched_tokens: int) -> int:
    return batched_tokens if rule.engine in {"vllm", "llama.cpp"} else 0


def _held_window(group: CacheGroup, rule: EngineRule, lookahead: int) -> int | None:
    if group.window is None or (rule.engine == "vllm" and not rule.chunked_prefill):
        return None
    return group.window + lookahead - (1 if rule.engine == "vllm" and group.kind == "sliding" else 0)


def whole_token_bytes(spec: ModelSpec, element_bytes: float, context: int) -> float:
    """Cache bytes of one token of the whole model before sharding: the mean over a sequence of `context` tokens.

    Per-sequence state of linear-attention layers does not grow with tokens and is not part of it.
    """
    total = 0.0
    for group in spec.cache:
        per_token = group.token_bytes(element_bytes)
        if group.window is not None and context > group.window:
            per_token *= group.window / context
        total += per_token
    return total


def activation_gib(spec: ModelSpec, rule: EngineRule, tp: int, batched_tokens: int, sequences: int) -> float:
    """Peak of the profiling step: the wider of the forward pass over `batched_tokens` and the sampler over `sequences`.

    Forward: 2 bytes x tokens x (k x hidden + 3 x feed-forward width / tp), with the routed experts' buffers of
    top_k x (max(2 x width / tp, hidden) + width / tp) (vllm fused_moe). Sampler: `sampler_bytes` for each logit, on
    every rank in full, since logits are gathered.
    """
    experts = 0.0
    if spec.moe_intermediate:
        width = spec.moe_intermediate / tp
        routed = spec.experts_per_token * (max(2 * width, spec.hidden) + width)
        unfused = 3 * spec.experts * spec.moe_intermediate
        experts = batched_tokens * _HALF * (routed if rule.fused_experts else unfused)
    dense = max(spec.intermediate if spec.budget.dense_mlp else 0, spec.shared_intermediate)
    forward = batched_tokens * _HALF * (rule.hidden_factor * spec.hidden + 3 * dense / tp) + experts
    sampler = sequences * spec.vocab * rule.sampler_bytes + batched_tokens * _HALF * spec.hidden + experts
    return max(forward, sampler) / GIB


def graphs_gib(spec: ModelSpec, rule: EngineRule, layout: Layout) -> float:
    """Memory of captured CUDA graphs: a base that tensor parallelism divides, and a share for each layer."""
    if rule.graph_base_gib == 0 and rule.graph_layer_gib == 0:
        return 0.0
    extra = (_GRAPH_MOE_GIB if spec.is_moe else 0.0) + (_GRAPH_LATENT_GIB if spec.latent_attention else 0.0)
    return rule.graph_base_gib / layout.tp + rule.graph_layer_gib * spec.layers / layout.pp + extra


def memory_of(
    *,
    rule: EngineRule,
    gpu: Accelerator,
    layout: Layout,
    need: CacheNeed,
    weights_gib: float,
    activations_gib: float,
    graphs: float,
    context: int,
    concurrency: float,
    utilization: float | None,
    lora_gib: float = 0.0,
) -> Memory:
    """Compose the memory of one GPU and apply the engine's rule for what is left to the cache.

    Args:
        rule: the engine's habits.
        gpu: the card.
        layout: the split.
        need: cache bytes on this GPU.
        weights_gib: weights on this GPU.
        activations_gib: profiled peak.
        graphs: captured graphs.
        context: tokens of one sequence.
        concurrency: sequences held at once by this GPU's replica.
        utilization: the engine's own fraction where stated.
        lora_gib: adapters held beside the weights.
    """
    world = layout.tp
    context_gib = rule.context_gib + (rule.tensor_parallel_gib if world > 1 else 0.0)
    visible = gpu.memory_gib_usable
    loaded = weights_gib + lora_gib
    if rule.memory_rule == "share_of_card":
        available = (utilization or rule.utilization) * visible - loaded - activations_gib - context_gib
    elif rule.memory_rule == "static_share":
        before = visible - context_gib
        available = (utilization or rule.static_share(visible, world * layout.pp)) * before - loaded
    elif rule.memory_rule == "share_of_free":
        free = visible - loaded - activations_gib - context_gib - graphs
        available = (utilization or rule.utilization) * free if free > 0 else free
    else:
        available = visible * (utilization or rule.utilization) - loaded - activations_gib - context_gib
    counted_context = 0.0 if rule.memory_rule in _OWN_SUM_RULES else context_gib
    overhead = loaded + activations_gib + graphs + counted_context
    limit = visible - (context_gib - counted_context)
    usable = min(limit, overhead + available)
    one = need.sequence_bytes(context) / GIB
    cache = one + need.further_bytes(context) / GIB * max(0.0, concurrency - 1)
    return Memory(
        weights_gib=weights_gib,
        cache_gib=cache,
        one_sequence_gib=one,
        activations_gib=activations_gib,
        graphs_gib=graphs,
        context_gib=counted_context,
        required_gib=overhead + cache,
        usable_gib=usable,
        available_gib=max(0.0, min(available, limit - overhead)),
        visible_gib=visible,
        lora_gib=lora_gib,
    )
