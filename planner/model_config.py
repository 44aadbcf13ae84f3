"""From a flat or nested `config.json` to a `ModelSpec`: dimensions, parameter budget by tensor class, cache groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.attention import CacheGroup
from planner.model_layers import (
    cache_groups,
    expert_count,
    layer_count,
    layer_kinds,
    mamba_shape,
    moe_layers,
    separate_feed_forward,
    whole,
)

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_UNGATED = frozenset({"gelu_new", "gelu_fast", "relu", "relu2", "relu_squared"})
_UNGATED_TYPES = frozenset({"gpt2", "gpt_neox", "gptj", "opt", "bloom", "falcon", "phi", "starcoder2", "mpt"})
_BLOCK_SCALE = 1_000_000_000
_WHOLE_ATTENTION = re.compile(r"(self_attn|linear_attn|attention|\.attn)(\*|\.\*|'|$)|\.q_b?_?proj")
_WHOLE_SHARED = re.compile(r"shared_experts?(\*|\.\*|'|$)")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What the planner knows about one model. Counts are per model, widths in elements, sizes in billions.

    `intermediate` is the dense feed-forward width, `moe_intermediate` that of one expert, `shared_intermediate` the
    summed width of the shared experts of a layer. `layers` counts all blocks, `attention_layers` those that attend.
    `native_format` is the checkpoint's own weight format and `kv_cache_format` the cache format it is tagged with;
    `unquantised` names tensor classes that its quantised builds keep in 16 bit. `weight_bytes` is the true size of the
    checkpoint where it is known.
    """

    model_id: str
    params_b: float
    active_params_b: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    intermediate: int
    moe_intermediate: int = 0
    experts: int = 0
    experts_per_token: int = 0
    shared_intermediate: int = 0
    moe_layers: int = 0
    attention_layers: int = 0
    state_layers: int = 0
    cache: tuple[CacheGroup, ...] = ()
    budget: ParameterBudget
    gated_mlp: bool = True
    tie_embeddings: bool = False
    latent_attention: bool = False
    has_tower: bool = False
    native_format: str = "bf16"
    unquantised: frozenset[str] = frozenset()
    max_context: int | None = None
    weight_bytes: float | None = None
    gguf_type: str | None = None
    model_type: str = ""
    kv_cache_format: str | None = None

    @property
    def is_moe(self) -> bool:
        """Whether some layers route tokens to experts (or active parameters say so)."""
        return self.budget.experts > 0

    @property
    def expert_share(self) -> float:
        """Share of a layer's routed experts that one token uses."""
        if self.experts and self.experts_per_token:
            return self.experts_per_token / self.experts
        routed = self.budget.experts
        if not routed:
            return 1.0
        fixed = self.params_b * _BLOCK_SCALE - routed
        return min(1.0, max(0.01, (self.active_params_b * _BLOCK_SCALE - fixed) / routed))


def spec_from_config(name: str, raw: Mapping[str, Any]) -> ModelSpec:
    """Build the facts of a model from its configuration.

    Args:
        name: what to call the model.
        raw: keys of `config.json` (a nested text_config is flattened), plus optional `params_b`, `active_params_b`,
            `weight_bytes`, `native_format`.

    Raises:
        ValueError: layers, hidden size or heads are missing, so nothing can be said.
    """
    config = flatten(raw)
    layers = layer_count(config)
    hidden = whole(config, "hidden_size", "n_embd", "d_model", "dim")
    if layers <= 0 or hidden <= 0:
        return _by_size_alone(name, config)
    heads = whole(config, "num_attention_heads", "n_head", "num_heads", "n_heads") or max(1, hidden // 128)
    kv_heads = _kv_heads(config, heads)
    latent_rank = whole(config, "kv_lora_rank")
    head_dim = whole(config, "head_dim", "kv_channels", "attention_head_dim") or max(1, hidden // heads)
    groups = cache_groups(config, heads, kv_heads, head_dim)
    attention_layers = sum(g.layers for g in groups if g.kind not in {"state", "compressed"})
    gated, tied, budget = _fitted_budget(config, groups, (layers, hidden, heads, head_dim))
    params = budget.total()
    moe = moe_layers(config, layers)
    per_token = whole(
        config, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k_experts", "experts_per_token"
    )
    share = per_token / expert_count(config) if moe and per_token else 1.0
    active = config.get("active_params_b")
    return ModelSpec(
        model_id=name,
        params_b=params / _BLOCK_SCALE,
        active_params_b=float(active) if active else (params - budget.experts * (1 - share)) / _BLOCK_SCALE,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=whole(config, "vocab_size", "padded_vocab_size", default=32000),
        intermediate=_dense_width(config, hidden),
        moe_intermediate=_expert_width(config) if moe else 0,
        experts=expert_count(config) if moe else 0,
        experts_per_token=per_token if moe else 0,
        shared_intermediate=_shared_width(config) if moe else 0,
        moe_layers=moe,
        attention_layers=attention_layers,
        state_layers=sum(g.layers for g in groups if g.kind == "state"),
        cache=groups,
        budget=budget,
        gated_mlp=gated,
        tie_embeddings=tied,
        latent_attention=bool(latent_rank),
        has_tower=_has_tower(raw, config),
        native_format=native_format(config),
        unquantised=_unquantised(config),
        max_context=whole(config, "max_position_embeddings", "n_positions", "seq_length") or None,
        weight_bytes=float(config["weight_bytes"]) if config.get("weight_bytes") else None,
        gguf_type=config.get("gguf_type"),
        model_type=str(config.get("model_type") or ""),
        kv_cache_format=_tagged_cache(config),
    )


def flatten(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The text configuration with the outer keys that it does not state itself."""
    flat = dict(raw)
    for key in _NESTED:
        inner = raw.get(key)
        if isinstance(inner, Mapping):
            flat.update({k: v for k, v in flatten(inner).items() if v is not None})
    return flat


def native_format(config: Mapping[str, Any]) -> str:
    """The weight format of the checkpoint, from quantization_config or the stored data type."""
    stated = config.get("native_format")
    if isinstance(stated, str):
        return stated
    if config.get("expert_dtype") == "fp4":
        return "mxfp4"
    quant = config.get("quantization_config")
    if isinstance(quant, Mapping):
        return _quantised_format(quant)
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    return {"float16": "fp16", "float32": "fp32", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}.get(dtype, "bf16")


def _quantised_format(quant: Mapping[str, Any]) -> str:
    method = str(quant.get("quant_method") or quant.get("quant_algo") or "").casefold()
    bits = whole(quant, "bits", "weight_bits", "w_bit", default=4)
    text = str(quant).casefold()
    if "nvfp4" in text:
        return "nvfp4"
    if method in {"fp8", "fbgemm_fp8", "mxfp4", "mxfp8"} or "fp8" in method:
        return "fp8" if "fp8" in method else method
    if method in {"awq", "gptq"}:
        return method if bits == 4 else "int8"
    if method == "compressed-tensors":
        return _compressed_tensors_format(quant, text)
    return "int8" if bits == 8 or "load_in_8bit': true" in text else "int4"


def _compressed_tensors_format(quant: Mapping[str, Any], text: str) -> str:
    if "mxfp4" in text:
        return "mxfp4"
    if "'type': 'float'" in text and "'num_bits': 8" in text:
        return "fp8"
    groups = quant.get("config_groups")
    weights: Mapping[str, Any] = {}
    if isinstance(groups, Mapping) and groups:
        weights = next(iter(groups.values())).get("weights") or {}
    if whole(weights, "num_bits", default=8) == 8:
        return "int8"
    return "int4-g32" if whole(weights, "group_size", default=128) == 32 else "int4"


def _unquantised(config: Mapping[str, Any]) -> frozenset[str]:
    """Tensor classes that quantised builds of this checkpoint keep in 16 bit (`attention_fp8`: in 8 bit)."""
    kept = {"attention_fp8"} if config.get("expert_dtype") == "fp4" else set()
    if "attention" in str(config.get("fp8_unquantised", "")):
        kept.update({"attention", "edge_layers"})
    quant = config.get("quantization_config")
    if isinstance(quant, Mapping):
        skipped = str(quant.get("modules_to_not_convert") or quant.get("ignore") or quant.get("exclude_modules") or "")
        if _WHOLE_ATTENTION.search(skipped):
            kept.add("attention")
        if _WHOLE_SHARED.search(skipped):
            kept.add("shared_experts")
    if config.get("native_format") == "int4-g32":
        kept.update({"attention", "shared_experts", "dense_mlp"})
    return frozenset(kept)


def _tagged_cache(config: Mapping[str, Any]) -> str | None:
    """The cache format that a quantised checkpoint asks for (ModelOpt kv_cache_quant_algo, kv_cache_scheme)."""
    quant = config.get("quantization_config")
    if not isinstance(quant, Mapping):
        return None
    scheme = quant.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and whole(scheme, "num_bits") == 8:
        return "fp8" if scheme.get("type") == "float" else "int8"
    algorithm = str(quant.get("kv_cache_quant_algo") or "").casefold()
    return algorithm if algorithm in {"fp8", "nvfp4", "int8"} else None


def _has_tower(raw: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    return any(key in raw or key in config for key in ("vision_config", "audio_config", "vision_tower", "visual"))


def _kv_heads(config: Mapping[str, Any], heads: int) -> int:
    if config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    return (
        whole(config, "num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num")
        or heads
    )


def _dense_width(config: Mapping[str, Any], hidden: int) -> int:
    stated = whole(config, "intermediate_size_mlp", "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
    return stated or (0 if expert_count(config) else 4 * hidden)


def _expert_width(config: Mapping[str, Any]) -> int:
    return whole(config, "moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size", "ffn_dim")


def _shared_width(config: Mapping[str, Any]) -> int:
    stated = whole(config, "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    count = whole(config, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
    if not stated and config.get("model_type", "").startswith("llama4"):
        count = 1
    return stated or count * _expert_width(config)


Shape = tuple[int, int, int, int]


def _fitted_budget(
    config: Mapping[str, Any], groups: tuple[CacheGroup, ...], shape: Shape
) -> tuple[bool, bool, ParameterBudget]:
    """Gating, tying and the budget; a stated parameter count decides what the configuration leaves open."""
    stated = config.get("params_b")
    tied_options = [bool(config["tie_word_embeddings"])] if "tie_word_embeddings" in config else [False, True]
    gated_options = _gated_options(config)
    options = [(g, t, _budget(config, groups, shape, g, t)) for g in gated_options for t in tied_options]
    if not stated:
        return options[0]
    target = float(stated) * _BLOCK_SCALE
    gated, tied, budget = min(options, key=lambda option: abs(option[2].total() - target))
    return gated, tied, _reconciled(config, budget, target)


def _gated_options(config: Mapping[str, Any]) -> list[bool]:
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
    sparse = active is not None and float(active) * _BLOCK_SCALE < 0.95 * target
    if gap < 0:
        name = "experts" if values["experts"] > -gap else "dense_mlp" if values["dense_mlp"] > -gap else ""
        if name:
            values[name] += gap
            return ParameterBudget(**values)
        factor = target / budget.total()
        return ParameterBudget(**{name: value * factor for name, value in values.items()})
    small = gap <= 0.04 * target or (_has_tower(config, config) and gap <= 1.5e9)
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
        dense_mlp=_dense_parameters(config, max(0, dense), matrices, hidden) + _latent_projections(config, moe, hidden),
        experts=moe * experts * matrices * _routed_hidden(config, hidden) * _expert_width(config) if moe else 0,
        shared_experts=moe * matrices * hidden * _shared_width(config) if moe else 0,
        tower=0.0,
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
        return layers * matrices * hidden * _dense_width(config, hidden)
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
    return layers


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
    return divided, kv, replicated


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
        total += kinds["mamba"] * (hidden * (2 * inner + 2 * groups * state) + inner * hidden)
    return total


def _by_size_alone(name: str, config: Mapping[str, Any]) -> ModelSpec:
    """A model of which only the parameter count is known takes the usual shape of that size.

    Layers and hidden size follow the common dense family: hidden = 128 x layers, 12 x layers x hidden^2 parameters.
    """
    size = config.get("params_b")
    if not size:
        msg = "needs layers and hidden size (num_hidden_layers, hidden_size), or at least params_b"
        raise ValueError(msg)
    layers = max(4, round((float(size) * _BLOCK_SCALE / 12 / 128**2) ** (1 / 3)))
    hidden = 128 * layers
    heads = max(1, hidden // 128)
    shaped = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": 8 if heads % 8 == 0 else heads,
        "intermediate_size": int(3.5 * hidden),
        "vocab_size": 128256,
    }
    return spec_from_config(name, {**shaped, **{k: v for k, v in config.items() if v is not None}})
