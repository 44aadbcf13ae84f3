"""From a flat or nested `config.json` to a `ModelSpec`: dimensions, parameter budget by tensor class, cache groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.attention import CacheGroup
from planner.checkpoint_format import native_format, scale_group, tagged_cache, unquantised_classes
from planner.config_names import heads_by_layer, longest_context, null_keys, plain_names
from planner.model_budget import (
    BILLION,
    ParameterBudget,
    dense_width,
    expert_width,
    fitted_budget,
    has_tower,
    shared_width,
)
from planner.model_cache import cache_groups
from planner.model_layers import expert_count, is_encoder, layer_count, moe_layers, whole

_MUST_BE_TEXT = frozenset({"model_type", "native_format", "gguf_type", "hidden_act"})
_MUST_BE_NUMBERS = frozenset({"compress_ratios", "hybrid_layer_pattern", "attn_type_list"})
_MUST_BE_ONE_NUMBER = frozenset({"params_b", "active_params_b", "weight_bytes", "expansion_ratio"})
_MUST_BE_WORDS = frozenset({"layer_types", "layers_block_type", "block_types"})
_LARGEST = 1e16
_SIZES = ("num_hidden_layers", "n_layer", "hidden_size", "n_embd", "num_attention_heads", "n_head")
_NESTED = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
    "llm_cfg",
    "language_model",
    "text_model",
    "thinker_config",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What the planner knows about one model. Counts are per model, widths in elements, sizes in billions.

    `intermediate` is the dense feed-forward width, `moe_intermediate` that of one expert, `shared_intermediate` the
    summed width of the shared experts of a layer. `layers` counts all blocks, `attention_layers` those that attend.
    `native_format` is the checkpoint's own weight format and `kv_cache_format` the cache format it is tagged with;
    `unquantised` names tensor classes that its quantised builds keep in 16 bit. `weight_bytes` is the true size of the
    checkpoint where it is known; `scale_group` how many of its weights share a scale where it is stated (0: no blocks);
    `quantised_intermediate` the padded feed-forward width of its published 4-bit builds (0: not padded). `attended`
    lists, for the layers of each cache group, their summed query and value width (layers x heads x (query + value) / 2)
    and how many tokens they attend at most (None: all before).
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
    scale_group: int | None = None
    quantised_intermediate: int = 0
    attended: tuple[tuple[int, int | None], ...] = ()

    @property
    def is_moe(self) -> bool:
        """Whether some layers route tokens to experts (or active parameters say so)."""
        return self.budget.experts > 0

    @property
    def is_quantised(self) -> bool:
        """Whether the checkpoint itself holds fewer than 16 bits a weight."""
        return self.native_format not in {"bf16", "fp16", "fp32"}

    @property
    def expert_share(self) -> float:
        """Share of a layer's routed experts that one token uses."""
        if self.experts and self.experts_per_token:
            return self.experts_per_token / self.experts
        routed = self.budget.experts
        if not routed:
            return 1.0
        fixed = self.params_b * BILLION - routed
        return min(1.0, max(0.01, (self.active_params_b * BILLION - fixed) / routed))


def spec_from_config(name: str, raw: Mapping[str, Any]) -> ModelSpec:
    """Build the facts of a model from its configuration.

    Args:
        name: what to call the model.
        raw: keys of `config.json` (a nested text_config is flattened), plus optional `params_b`, `active_params_b`,
            `weight_bytes`, `native_format`.

    Raises:
        ValueError: layers, hidden size or heads are missing, so nothing can be said.
    """
    flat = flatten(raw)
    _check_sizes(flat)
    config = plain_names(usable(flat), null_keys(raw))
    layers = layer_count(config)
    hidden = whole(config, "hidden_size", "n_embd", "d_model", "dim")
    if layers <= 0 or hidden <= 0:
        return _by_size_alone(name, config)
    heads = _query_heads(config, hidden)
    kv_heads = _kv_heads(config, heads)
    latent_rank = whole(config, "kv_lora_rank")
    head_dim = whole(config, "head_dim", "kv_channels", "attention_head_dim") or max(1, hidden // heads)
    groups = cache_groups(config, heads, kv_heads, head_dim)
    attention_layers = sum(g.layers for g in groups if g.kind not in {"state", "compressed"})
    gated, tied, budget = fitted_budget(config, groups, (layers, hidden, heads, head_dim))
    params = budget.total()
    moe = moe_layers(config, layers)
    per_token = whole(
        config, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k_experts", "experts_per_token"
    )
    share = per_token / expert_count(config) if moe and per_token else 1.0
    active = config.get("active_params_b")
    return ModelSpec(
        model_id=name,
        params_b=params / BILLION,
        active_params_b=float(active) if active else (params - budget.experts * (1 - share)) / BILLION,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=whole(config, "vocab_size", "padded_vocab_size", default=32000),
        intermediate=dense_width(config, hidden),
        moe_intermediate=expert_width(config) if moe else 0,
        experts=expert_count(config) if moe else 0,
        experts_per_token=per_token if moe else 0,
        shared_intermediate=shared_width(config) if moe else 0,
        moe_layers=moe,
        attention_layers=attention_layers,
        state_layers=sum(g.layers for g in groups if g.kind == "state"),
        cache=() if is_encoder(config) else groups,
        budget=budget,
        gated_mlp=gated,
        tie_embeddings=tied,
        latent_attention=bool(latent_rank),
        has_tower=has_tower(raw, config),
        native_format=native_format(config),
        unquantised=unquantised_classes(config),
        max_context=longest_context(config),
        weight_bytes=float(config["weight_bytes"]) if config.get("weight_bytes") else None,
        gguf_type=config.get("gguf_type"),
        model_type=str(config.get("model_type") or ""),
        kv_cache_format=tagged_cache(config),
        scale_group=scale_group(config),
        quantised_intermediate=whole(config, "quantised_intermediate_size"),
        attended=_attended(config, groups, heads),
    )


def _check_sizes(flat: Mapping[str, Any]) -> None:
    """Sizes that nothing can be said without must be sizes where they are stated; a parameter count stands in."""
    if usable({"params_b": flat.get("params_b")}):
        return
    for key in _SIZES:
        value = flat.get(key)
        if value is None or isinstance(value, list):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LARGEST:
            msg = f"{key} must be a number above zero, got {value!r}"
            raise ValueError(msg)


def usable(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without values that cannot be sizes: negative numbers, empty vocabularies, odd types."""
    kept = {}
    for key, value in config.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or (number and (value < 0 or value > _LARGEST)):
            continue
        if key in _MUST_BE_TEXT and not isinstance(value, str):
            continue
        if key in _MUST_BE_NUMBERS and not (
            isinstance(value, list) and all(isinstance(entry, int) and entry >= 0 for entry in value)
        ):
            continue
        if (key == "vocab_size" and not value) or (key in _MUST_BE_ONE_NUMBER and not number):
            continue
        if key in _MUST_BE_WORDS and isinstance(value, list) and not all(isinstance(entry, str) for entry in value):
            continue
        kept[key] = value
    return kept


def flatten(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The text configuration with the outer keys that it does not state itself."""
    flat = dict(raw)
    for key in _NESTED:
        inner = raw.get(key)
        if isinstance(inner, Mapping):
            flat.update({k: v for k, v in flatten(inner).items() if v is not None})
    return flat


def _attended(
    config: Mapping[str, Any], groups: tuple[CacheGroup, ...], heads: int
) -> tuple[tuple[int, int | None], ...]:
    """Width and reach of attention by cache group; a sparse indexer limits the reach to its top k."""
    sparse = whole(config, "index_topk") or None
    found: list[tuple[int, int | None]] = []
    for group in groups:
        if group.kind == "latent":
            query = whole(config, "qk_nope_head_dim", default=128) + whole(config, "qk_rope_head_dim")
            width = (query + whole(config, "v_head_dim", default=128)) // 2
            found.append((group.layers * heads * width, sparse))
        elif group.kind == "compressed":
            found.append((group.layers * heads * group.key_dim, sparse))
        elif group.kind != "state":
            found.append(
                (group.layers * heads * (group.key_dim + (group.value_dim or group.key_dim)) // 2, group.window)
            )
    return tuple(found)


def _query_heads(config: Mapping[str, Any], hidden: int) -> int:
    """Query heads of a layer; the widest layer's where every layer has its own."""
    listed = config.get("num_query_heads")
    if isinstance(listed, list) and listed and all(isinstance(n, int) and n > 0 for n in listed):
        return int(max(listed))
    return whole(config, "num_attention_heads", "n_head", "num_heads", "n_heads") or max(1, hidden // 128)


def _kv_heads(config: Mapping[str, Any], heads: int) -> int:
    listed = heads_by_layer(config)
    if listed:
        return max([1, *listed])
    if config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    return (
        whole(config, "num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num")
        or heads
    )


def _by_size_alone(name: str, config: Mapping[str, Any]) -> ModelSpec:
    """A model of which only the parameter count is known takes the usual shape of that size.

    Layers and hidden size follow the common dense family: hidden = 128 x layers, 12 x layers x hidden^2 parameters.
    """
    size = config.get("params_b")
    if not size:
        msg = "needs layers and hidden size (num_hidden_layers, hidden_size), or at least params_b"
        raise ValueError(msg)
    layers = max(4, round((float(size) * BILLION / 12 / 128**2) ** (1 / 3)))
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
    missing = {key: value for key, value in shaped.items() if whole(config, key) <= 0}
    return spec_from_config(name, {**{k: v for k, v in config.items() if v is not None}, **missing})
