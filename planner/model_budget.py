"""The parameter budget of a model: how many weights each class of tensor has, from the dimensions alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.attention import CacheGroup
from planner.model_layers import (
    encoder_layers,
    expert_count,
    is_encoder,
    is_state_space,
    layer_kinds,
    mamba_shape,
    moe_layers,
    separate_feed_forward,
    whole,
)

BILLION = 1_000_000_000
_UNGATED = frozenset({"gelu_new", "gelu_fast", "relu", "relu2", "relu_squared"})
# Families whose feed-forward part is two matrices whatever the activation is called (modeling_<type>.py).
_UNGATED_TYPES = frozenset({
    "gpt2", "gpt_neo", "gpt_neox", "gpt_neox_japanese", "gptj", "gpt_bigcode", "codegen", "opt", "bloom", "falcon",
    "phi", "persimmon", "starcoder2", "mpt", "nemotron", "nemotron_h", "xglm", "biogpt",
})  # fmt: skip
# Vision encoders with a gated feed-forward part, and configurations that nest the encoder once more.
_GATED_TOWERS = frozenset({"pixtral", "qwen2_5_vl", "qwen2_5_vl_vision"})
_TOWER_PARTS = ("vision_config", "audio_encoder", "vision_encoder")
_WIDEST_TOWER = 16384

Shape = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class ParameterBudget:
    """Parameters of the whole model by class of tensor, in units of one parameter.

    `attention` holds the projections that tensor parallelism divides, `replicated` those it copies (latent
    down-projections, routers, norms); `state_mixers` the projections of linear-attention and Mamba layers;
    `tower` a vision or audio tower and whatever else the dimensions do not explain.
    """

    embedding: float
    lm_head: float
    attention: float
    kv_projection: float
    replicated: float
    state_mixers: float
    dense_mlp: float
    experts: float
    shared_experts: float
    tower: float

    def total(self) -> float:
        """All parameters."""
        return (
            self.embedding
            + self.lm_head
            + self.attention
            + self.kv_projection
            + self.replicated
            + self.state_mixers
            + self.dense_mlp
            + self.experts
            + self.shared_experts
            + self.tower
        )

    def linear(self) -> float:
        """Parameters of the matrices that a quantiser may touch."""
        return (
            self.attention
            + self.kv_projection
            + self.state_mixers
            + self.dense_mlp
            + self.experts
            + self.shared_experts
        )


def fitted_budget(
    config: Mapping[str, Any], groups: tuple[CacheGroup, ...], shape: Shape
) -> tuple[bool, bool, ParameterBudget]:
    """Gating, tying and the budget; a stated parameter count decides what the configuration leaves open."""
    stated = config.get("params_b")
    tied_options = [False, True]
    if is_encoder(config):
        tied_options = [True]  # no output layer at all, or one that shares the embedding
    elif "tie_word_embeddings" in config or config.get("is_encoder_decoder"):
        tied_options = [bool(config.get("tie_word_embeddings", True))]
    gated_options = _gated_options(config)
    options = [(g, t, _budget(config, groups, shape, g, t)) for g in gated_options for t in tied_options]
    if not stated:
        return options[0]
    target = float(stated) * BILLION
    gated, tied, budget = min(options, key=lambda option: abs(option[2].total() - target))
    return gated, tied, _reconciled(config, budget, target)


def _gated_options(config: Mapping[str, Any]) -> list[bool]:
    if config.get("is_encoder_decoder"):
        return [str(config.get("feed_forward_proj") or "").startswith("gated")]
    if is_encoder(config):
        return [config.get("model_type") == "modernbert" or "glu" in str(config.get("activation_function") or "")]
    activation = str(
        config.get("hidden_act") or config.get("activation_function") or config.get("mlp_hidden_act") or ""
    )
    if activation.casefold() in _UNGATED or config.get("model_type") in _UNGATED_TYPES:
        return [False]
    if activation or config.get("model_type"):
        return [True]
    return [True, False]


def _reconciled(config: Mapping[str, Any], budget: ParameterBudget, target: float) -> ParameterBudget:
    """Make the classes add up to the stated count: what is missing is a tower or experts, what is too much is cut."""
    gap = target - budget.total()
    values = {name: getattr(budget, name) for name in ParameterBudget.__dataclass_fields__}
    active = config.get("active_params_b")
    sparse = active is not None and float(active) * BILLION < 0.95 * target
    if gap < 0:
        name = "experts" if values["experts"] > -gap else "dense_mlp" if values["dense_mlp"] > -gap else ""
        if name:
            values[name] += gap
            return ParameterBudget(**values)
        factor = target / budget.total()
        return ParameterBudget(**{name: value * factor for name, value in values.items()})
    small = gap <= 0.04 * target or (has_tower(config, config) and gap <= 1.5e9)
    name = "tower" if small else "experts" if sparse or values["experts"] else "dense_mlp"
    values[name] += gap
    return ParameterBudget(**values)


def _budget(
    config: Mapping[str, Any], groups: tuple[CacheGroup, ...], shape: Shape, gated: bool, tied: bool
) -> ParameterBudget:
    layers, hidden, heads, head_dim = shape
    vocab = whole(config, "vocab_size", "padded_vocab_size", default=32000)
    attention, kv_projection, replicated = _attention_parameters(config, groups, hidden, heads, head_dim)
    matrices = 3 if gated else 2
    encoder = encoder_layers(config)
    # An encoder in front has self-attention of its own, and every layer of the decoder attends to what it found.
    attention += (encoder + (layers if encoder else 0)) * 4 * hidden * heads * head_dim
    moe = moe_layers(config, layers)
    experts = expert_count(config) if moe else 0
    dense = _mlp_layers(config, layers) - (0 if config.get("dense_and_moe") else moe)
    return ParameterBudget(
        embedding=vocab * hidden,
        lm_head=0 if tied else vocab * hidden,
        attention=attention,
        kv_projection=kv_projection,
        replicated=replicated + 2 * layers * hidden + moe * hidden * experts,
        state_mixers=_state_parameters(config, hidden, heads, head_dim),
        dense_mlp=_dense_parameters(config, max(0, dense) + encoder, matrices, hidden)
        + _latent_projections(config, moe, hidden),
        experts=moe * experts * matrices * _routed_hidden(config, hidden) * expert_width(config) if moe else 0,
        shared_experts=moe * matrices * hidden * shared_width(config) if moe else 0,
        tower=tower_parameters(config),
    )


def _routed_hidden(config: Mapping[str, Any], hidden: int) -> int:
    """Width that the routed experts work on: a latent one where the configuration states it."""
    return whole(config, "moe_latent_size", "routed_expert_hidden_size", default=hidden)


def _latent_projections(config: Mapping[str, Any], moe: int, hidden: int) -> float:
    """Matrices into and out of the latent width of the routed experts."""
    latent = _routed_hidden(config, hidden)
    return 0.0 if latent == hidden else moe * 2 * hidden * latent


def _dense_parameters(config: Mapping[str, Any], layers: int, matrices: int, hidden: int) -> float:
    """Dense feed-forward weights; models from architecture search state a width for each block."""
    blocks = config.get("block_configs")
    if not isinstance(blocks, list):
        return layers * matrices * hidden * dense_width(config, hidden)
    total = 0.0
    for block in blocks:
        feed_forward = block.get("ffn", {}) if isinstance(block, Mapping) else {}
        if feed_forward.get("no_op"):
            continue
        if feed_forward.get("replace_with_linear"):
            total += hidden * hidden
            continue
        width = whole(feed_forward, "intermediate_size") or _multiplied_width(feed_forward, hidden)
        total += matrices * hidden * width
    return total


def _multiplied_width(feed_forward: Mapping[str, Any], hidden: int) -> int:
    """ffn_mult of the DeciLM layout: 2/3 of the multiple of the hidden size, rounded up to 256."""
    width = int(2 * float(feed_forward.get("ffn_mult") or 1) * hidden / 3)
    return -(-width // 256) * 256


def _mlp_layers(config: Mapping[str, Any], layers: int) -> int:
    """Blocks that have a feed-forward part: in pattern-string hybrids only those written as such."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern[:layers].count("-") + pattern[:layers].count("E")
    if separate_feed_forward(config):
        return layer_kinds(config)["none"]
    return 0 if is_state_space(config) else layers


def _attention_parameters(
    config: Mapping[str, Any], groups: tuple[CacheGroup, ...], hidden: int, heads: int, head_dim: int
) -> tuple[float, float, float]:
    """Divided projections, key-value projections, and what every rank holds in full."""
    rank = whole(config, "kv_lora_rank")
    divided = kv = replicated = 0.0
    gate = 2 if config.get("attn_output_gate") else 1
    for group in groups:
        if group.kind == "latent":
            nope = whole(config, "qk_nope_head_dim", default=128)
            rope, value = whole(config, "qk_rope_head_dim"), whole(config, "v_head_dim", default=128)
            query_rank = whole(config, "q_lora_rank")
            query = query_rank * heads * (nope + rope) if query_rank else hidden * heads * (nope + rope)
            divided += group.layers * (query + rank * heads * (nope + value) + heads * value * hidden)
            replicated += group.layers * hidden * (query_rank + rank + rope)
        elif group.kind in {"full", "sliding", "chunked"} and not config.get("compress_ratios"):
            width = group.key_dim
            divided += group.layers * hidden * heads * (width * gate + (group.value_dim or width))
            keys_only = group.kind == "full" and bool(config.get("attention_k_eq_v"))
            kv += group.layers * hidden * group.kv_heads * (width + (0 if keys_only else group.value_dim))
        elif group.kind == "sliding":
            divided += group.layers * _low_rank_attention(config, hidden, heads, head_dim)
            replicated += group.layers * hidden * head_dim
    borrowing = _borrowing_layers(config, groups)
    divided += 2 * borrowing * hidden * heads * head_dim
    if config.get("cross_attention_layers"):
        kv += 2 * borrowing * hidden * whole(config, "num_key_value_heads", default=heads) * head_dim
    return divided, kv, replicated


def _borrowing_layers(config: Mapping[str, Any], groups: tuple[CacheGroup, ...]) -> int:
    """Layers that attend to a cache that is not their own, and so have query and output projections only."""
    if not (config.get("num_kv_shared_layers") or config.get("use_cla") or config.get("cross_attention_layers")):
        return 0
    kinds = layer_kinds(config)
    attending = kinds["full_attention"] + kinds["sliding_attention"] + kinds["chunked_attention"]
    return max(0, attending - sum(g.layers for g in groups if g.kind in {"full", "sliding", "chunked"}))


def _low_rank_attention(config: Mapping[str, Any], hidden: int, heads: int, head_dim: int) -> float:
    """Query and output of compressed attention: both through low ranks, the output in groups of heads."""
    query_rank = whole(config, "q_lora_rank", default=hidden // 4)
    output_rank, groups = whole(config, "o_lora_rank", default=hidden // 8), whole(config, "o_groups", default=8)
    query = hidden * query_rank + query_rank * heads * head_dim
    return query + heads * head_dim * output_rank + groups * output_rank * hidden


def _state_parameters(config: Mapping[str, Any], hidden: int, heads: int, head_dim: int) -> float:
    kinds = layer_kinds(config)
    total = 0.0
    if kinds["linear_attention"]:
        value_heads = whole(config, "linear_num_value_heads", default=heads)
        key_heads = whole(config, "linear_num_key_heads", default=value_heads)
        key_dim = whole(config, "linear_key_head_dim", default=head_dim)
        value_dim = whole(config, "linear_value_head_dim", default=key_dim)
        width = 2 * key_heads * key_dim + 2 * value_heads * value_dim + 2 * value_heads
        total += kinds["linear_attention"] * hidden * (width + value_heads * value_dim)
    if kinds["mamba"]:
        inner, state, _, groups = mamba_shape(config)
        if not groups and state > 1:
            # Mamba-1 makes its step size and B, C from the input: ranks of hidden / 16 and 2 x state.
            total += kinds["mamba"] * inner * (2 * (hidden // 16) + 3 * state)
        total += kinds["mamba"] * (hidden * (2 * inner + 2 * groups * state) + inner * hidden)
    return total


def tower_parameters(config: Mapping[str, Any]) -> float:
    """Weights of vision and audio towers, from the sizes that their own part of the configuration states.

    Each layer has four square attention matrices and a feed-forward part of two matrices (three where gated); a merger
    joins `spatial_merge_size` squared patches into one token of the text model. Patch embeddings are negligible.
    """
    parts = (config.get(key) for key in ("vision_config", "audio_config", "visual", "vision_tower"))
    return sum(_tower(part) for part in parts if isinstance(part, Mapping))


def _tower(part: Mapping[str, Any]) -> float:
    inner = next((v for k in _TOWER_PARTS if isinstance(v := part.get(k), Mapping)), None)
    if inner is not None:
        return _tower(inner)
    width = whole(part, "embed_dim", "d_model", "hidden_size", "width")
    layers = whole(part, "depth", "encoder_layers", "num_hidden_layers", "layers", "num_layers")
    layers += whole(part, "num_global_layers")
    if not 0 < width <= _WIDEST_TOWER or layers <= 0:
        return 0.0
    ratio = part.get("mlp_ratio")
    stated = whole(part, "encoder_ffn_dim", "intermediate_size", "mlp_hidden_dim")
    feed_forward = stated or int(width * (float(ratio) if isinstance(ratio, int | float) else 4.0))
    gated = part.get("hidden_act") == "silu" or part.get("model_type") in _GATED_TOWERS
    total = layers * (4.0 * width**2 + (3 if gated else 2) * width * feed_forward)
    merged = width * whole(part, "spatial_merge_size", default=1) ** 2
    out = whole(part, "out_hidden_size") or (whole(part, "hidden_size") if "embed_dim" in part else 0)
    mergers = 1 + len(part.get("deepstack_visual_indexes") or ())
    return total + (mergers * (merged**2 + merged * out) if out else 0.0)


def has_tower(raw: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether the configuration shows a vision or audio tower."""
    return any(key in raw or key in config for key in ("vision_config", "audio_config", "vision_tower", "visual"))


def dense_width(config: Mapping[str, Any], hidden: int) -> int:
    """Width of a dense feed-forward layer; four times the hidden size where nothing is stated."""
    stated = whole(config, "intermediate_size_mlp", "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
    return stated or (0 if expert_count(config) else int(float(config.get("expansion_ratio") or 4) * hidden))


def expert_width(config: Mapping[str, Any]) -> int:
    """Width of one routed expert."""
    return whole(
        config, "moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size", "ffn_dim", "ffn_hidden_size"
    )


def shared_width(config: Mapping[str, Any]) -> int:
    """Summed width of the shared experts of a layer, 0 where there are none."""
    stated = whole(
        config,
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        "share_expert_dim",
    )
    count = whole(config, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
    if not stated and config.get("model_type", "").startswith("llama4"):
        count = 1
    return stated or count * expert_width(config)
