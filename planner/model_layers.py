"""Which layers of a model cache what, and which hold experts: read from the fields of `config.json`, never a name.

Every function takes the flat text configuration. Field names are those of Hugging Face transformers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from planner.attention import CacheGroup, compressed, grouped, latent, linear_state, mamba_state, merge

Config = Mapping[str, Any]
_STATE_KINDS = frozenset({"linear_attention", "mamba", "conv"})
_KIND_WORDS: Mapping[str, str] = {
    "full_attention": "full_attention",
    "attention": "full_attention",
    "global_attention": "full_attention",
    "sparse": "full_attention",
    "dense": "full_attention",
    "hybrid": "full_attention",
    "sliding_attention": "sliding_attention",
    "sliding_window_attention": "sliding_attention",
    "local_attention": "sliding_attention",
    "chunked_attention": "chunked_attention",
    "linear_attention": "linear_attention",
    "mamba": "mamba",
    "mamba2": "mamba",
    "recurrent": "mamba",
    "conv": "conv",
    "moe": "none",
    "mlp": "none",
}
_PATTERN_LETTERS = {"M": "mamba", "*": "full_attention"}


def whole(config: Config, *keys: str, default: int = 0) -> int:
    """The first of `keys` that holds a number, as a whole number."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value)
    return default


def layer_count(config: Config) -> int:
    """Blocks of the model; a list of their kinds stands in for a missing number."""
    stated = whole(config, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    listed = config.get("layers_block_type") or config.get("layer_types")
    return stated or (len(listed) if isinstance(listed, list) else 0)


def separate_feed_forward(config: Config) -> bool:
    """Whether feed-forward parts are blocks of their own in the list of layer kinds."""
    listed = config.get("layers_block_type") or config.get("layer_types")
    if isinstance(listed, str):
        return " moe" in listed or " mlp" in listed
    return isinstance(listed, list) and any(kind in {"moe", "mlp"} for kind in listed)


def layer_kinds(config: Config) -> Counter[str]:
    """How many layers are of which kind: full, sliding or chunked attention, linear attention, mamba, conv, none."""
    layers = layer_count(config)
    for detect in (_listed, _pattern_string, _binary_pattern, _counted_hybrid, _periodic, _windowed):
        found = detect(config, layers)
        if found is not None:
            return found
    return Counter({"full_attention": layers})


def _listed(config: Config, layers: int) -> Counter[str] | None:
    listed = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(listed, str):
        return Counter({_KIND_WORDS[kind]: int(n) for n, kind in re.findall(r"(\d+) (\w+)", listed)})
    if not isinstance(listed, list) or not listed:
        return None
    kinds = Counter(_KIND_WORDS.get(str(kind), "full_attention") for kind in listed[:layers])
    if not config.get("sliding_window") and kinds["sliding_attention"]:
        kinds["full_attention"] += kinds.pop("sliding_attention")
    return kinds


def _pattern_string(config: Config, layers: int) -> Counter[str] | None:
    pattern = config.get("hybrid_override_pattern")
    if not isinstance(pattern, str):
        return None
    return Counter(_PATTERN_LETTERS.get(letter, "none") for letter in pattern[:layers])


def _binary_pattern(config: Config, layers: int) -> Counter[str] | None:
    """Lists of 0 and 1: 1 is a sliding layer in hybrid_layer_pattern, full attention in attn_type_list."""
    sliding = config.get("hybrid_layer_pattern")
    if isinstance(sliding, list):
        return Counter("sliding_attention" if flag else "full_attention" for flag in sliding[:layers])
    kinds = config.get("attn_type_list")
    if isinstance(kinds, list):
        return Counter("full_attention" if flag else "linear_attention" for flag in kinds[:layers])
    return None


def _counted_hybrid(config: Config, layers: int) -> Counter[str] | None:
    linear = config.get("linear_attn_config")
    if isinstance(linear, Mapping):
        full = len(linear.get("full_attn_layers") or ())
        state = len(linear.get("kda_layers") or ()) or layers - full
        return Counter({"full_attention": layers - state, "linear_attention": state})
    for key, kind in (("attn_layer_indices", "mamba"), ("full_attn_idxs", "conv")):
        indices = config.get(key)
        if isinstance(indices, list):
            return Counter({"full_attention": len(indices), kind: layers - len(indices)})
    return None


def _periodic(config: Config, layers: int) -> Counter[str] | None:
    every = whole(config, "full_attention_interval")
    if every:
        return Counter({"full_attention": layers // every, "linear_attention": layers - layers // every})
    every = whole(config, "attn_layer_period")
    if every:
        offset = whole(config, "attn_layer_offset")
        full = sum(1 for i in range(layers) if i % every == offset)
        return Counter({"full_attention": full, "mamba": layers - full})
    if whole(config, "attention_chunk_size"):
        return _chunked(config, layers)
    if not whole(config, "sliding_window"):
        return None
    every = whole(config, "sliding_window_pattern", "_sliding_window_pattern")
    if not every and config.get("model_type") in {"gemma3_text", "gemma3"}:
        every = 6
    if not every and config.get("model_type") == "gemma2":
        every = 2
    if not every and config.get("model_type") == "cohere2":
        every = 4
    if every > 1:
        return Counter({"full_attention": layers // every, "sliding_attention": layers - layers // every})
    return None


def _chunked(config: Config, layers: int) -> Counter[str]:
    no_rope = config.get("no_rope_layers")
    if isinstance(no_rope, list) and no_rope:
        chunked = sum(1 for flag in no_rope[:layers] if flag)
    else:
        chunked = layers - layers // whole(config, "no_rope_layer_interval", default=4)
    return Counter({"full_attention": layers - chunked, "chunked_attention": chunked})


def _windowed(config: Config, layers: int) -> Counter[str] | None:
    """A window on every layer (early Mistral), or above max_window_layers (Qwen2, where it is off by default)."""
    if not whole(config, "sliding_window") or config.get("use_sliding_window") is False:
        return None
    if "max_window_layers" in config:
        if not config.get("use_sliding_window"):
            return None
        full = min(layers, whole(config, "max_window_layers"))
        return Counter({"full_attention": full, "sliding_attention": layers - full})
    return Counter({"sliding_attention": layers})


def cache_groups(config: Config, heads: int, kv_heads: int, head_dim: int) -> tuple[CacheGroup, ...]:
    """The cache of all layers, grouped.

    Args:
        config: flat text configuration.
        heads: attention heads.
        kv_heads: key-value heads of an ordinary layer.
        head_dim: width of one head.
    """
    layers = layer_count(config)
    ratios = config.get("compress_ratios")
    if isinstance(ratios, list):
        return _compressed_groups(config, ratios[:layers], head_dim)
    blocks = config.get("block_configs")
    if isinstance(blocks, list):
        return _searched_blocks(blocks, heads, head_dim)
    kinds = layer_kinds(config)
    _drop_shared(config, kinds, layers)
    groups: list[CacheGroup] = []
    rank = whole(config, "kv_lora_rank")
    if rank:
        indexer = whole(config, "index_head_dim")
        groups.append(latent(kinds["full_attention"], rank, whole(config, "qk_rope_head_dim"), indexer))
    else:
        groups.append(_global_group(config, kinds["full_attention"], kv_heads, head_dim))
    groups.extend(_local_groups(config, kinds, kv_heads, head_dim))
    groups.extend(_state_groups(config, kinds, heads, head_dim))
    return merge(groups)


def _drop_shared(config: Config, kinds: Counter[str], layers: int) -> None:
    """Layers that reuse the cache of an earlier layer keep none of their own."""
    shared = whole(config, "num_kv_shared_layers")
    factor = whole(config, "cla_share_factor") if config.get("use_cla") else 0
    if shared <= 0 and factor <= 1:
        return
    kept = (layers - shared) / layers if shared > 0 else 1 / factor
    for kind in ("full_attention", "sliding_attention", "chunked_attention"):
        if kinds[kind]:
            kinds[kind] = max(1, round(kinds[kind] * kept))


def _global_group(config: Config, layers: int, kv_heads: int, head_dim: int) -> CacheGroup:
    key_dim = whole(config, "global_head_dim", default=head_dim)
    value_dim = whole(config, "v_head_dim", "value_head_dim", default=key_dim)
    heads = whole(config, "num_global_key_value_heads", default=kv_heads)
    return grouped("full", layers, heads, key_dim, value_dim)


def _local_groups(config: Config, kinds: Counter[str], kv_heads: int, head_dim: int) -> list[CacheGroup]:
    key_dim = whole(config, "swa_head_dim", default=head_dim)
    value_dim = whole(config, "swa_v_head_dim", "v_head_dim", "value_head_dim", default=key_dim)
    heads = whole(config, "swa_num_key_value_heads", default=kv_heads)
    window = whole(config, "sliding_window")
    chunk = whole(config, "attention_chunk_size")
    return [
        grouped("sliding", kinds["sliding_attention"], heads, key_dim, value_dim, window),
        grouped("chunked", kinds["chunked_attention"], heads, key_dim, value_dim, chunk),
    ]


def _state_groups(config: Config, kinds: Counter[str], heads: int, head_dim: int) -> list[CacheGroup]:
    groups = []
    if kinds["linear_attention"]:
        linear = config.get("linear_attn_config")
        linear = linear if isinstance(linear, Mapping) else {}
        value_heads = whole(config, "linear_num_value_heads") or whole(linear, "num_heads", default=heads)
        key_heads = whole(config, "linear_num_key_heads") or value_heads
        key_dim = whole(config, "linear_key_head_dim") or whole(linear, "head_dim", default=head_dim)
        value_dim = whole(config, "linear_value_head_dim") or key_dim
        conv = whole(config, "linear_conv_kernel_dim") or whole(linear, "short_conv_kernel_size", default=4)
        groups.append(linear_state(kinds["linear_attention"], value_heads, key_heads, key_dim, value_dim, conv))
    if kinds["mamba"]:
        inner, state, conv, state_groups = mamba_shape(config)
        groups.append(mamba_state(kinds["mamba"], inner, state, conv, state_groups))
    if kinds["conv"]:
        width = whole(config, "conv_dim", "hidden_size")
        groups.append(mamba_state(kinds["conv"], width, 0, whole(config, "conv_L_cache", default=3)))
    return groups


def mamba_shape(config: Config) -> tuple[int, int, int, int]:
    """Inner width, state size, convolution length and groups of a Mamba layer."""
    hidden = whole(config, "hidden_size")
    heads = whole(config, "mamba_num_heads", "mamba_n_heads")
    inner = heads * whole(config, "mamba_head_dim", "mamba_d_head") if heads else 0
    inner = inner or hidden * whole(config, "mamba_expand", "expand", default=2)
    state = whole(config, "ssm_state_size", "mamba_d_state", "state_size", default=16)
    conv = whole(config, "conv_kernel", "mamba_d_conv", default=4)
    return inner, state, conv, whole(config, "n_groups", "mamba_n_groups") if heads else 0


def _compressed_groups(config: Config, ratios: list[int], head_dim: int) -> tuple[CacheGroup, ...]:
    """Ratio 0 keeps only the sliding window; the others keep compressed entries and an indexer beside it.

    All compressed layers share one page size, that of the smallest ratio, so each costs as much as that one
    (vLLM 0.25 on DeepSeek-V4-Flash: half the tokens that the ratios alone would give,
    https://github.com/vllm-project/recipes/issues/762).
    """
    window = whole(config, "sliding_window", default=128)
    indexer = whole(config, "index_head_dim")
    compressing = [ratio for ratio in ratios if ratio]
    groups = [CacheGroup("sliding", len(ratios), 1, head_dim, 0, window)]
    if compressing:
        groups.append(compressed(len(compressing), head_dim, min(compressing), indexer))
    return merge(groups)


def _searched_blocks(blocks: list[Any], heads: int, head_dim: int) -> tuple[CacheGroup, ...]:
    """Models from architecture search: each block states its own group size, or has no attention."""
    groups = []
    for block in blocks:
        attention = block.get("attention", {}) if isinstance(block, Mapping) else {}
        if attention.get("no_op") or attention.get("replace_with_linear"):
            continue
        own = whole(attention, "num_key_value_heads") or heads // max(
            1, whole(attention, "n_heads_in_group", default=1)
        )
        groups.append(grouped("full", 1, own, head_dim, head_dim))
    return merge(groups)


def moe_layers(config: Config, layers: int) -> int:
    """Layers whose feed-forward part is routed experts."""
    if not expert_count(config):
        return 0
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern[:layers].count("E")
    listed = config.get("layer_types")
    if isinstance(listed, str) and " moe" in listed:
        return int(re.findall(r"(\d+) moe", listed)[0])
    kinds = config.get("layers_block_type")
    if isinstance(kinds, list) and "moe" in kinds:
        return kinds[:layers].count("moe")
    frequency = config.get("moe_layer_freq")
    if isinstance(frequency, list):
        return sum(1 for flag in frequency[:layers] if flag)
    explicit = config.get("moe_layers")
    if isinstance(explicit, list) and explicit:
        return len(explicit)
    first = whole(config, "first_k_dense_replace", "num_dense_layers")
    step = max(1, whole(config, "decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period", default=1))
    dense = config.get("mlp_only_layers")
    skipped = len(dense) if isinstance(dense, list) else 0
    return max(0, (layers - first) // step - skipped)


def expert_count(config: Config) -> int:
    """Routed experts of one layer, 0 for a dense model."""
    return whole(config, "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
