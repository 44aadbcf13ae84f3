"""The cache groups of a model: which layers keep what, from the fields of its configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from planner.attention import CacheGroup, compressed, grouped, latent, linear_state, mamba_state, merge
from planner.config_names import heads_by_layer
from planner.model_layers import Config, layer_count, layer_kinds, mamba_shape, whole


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
    by_layer = heads_by_layer(config)
    if by_layer:
        value_dim = whole(config, "v_head_dim", "value_head_dim", default=head_dim)
        return merge(grouped("full", 1, own, head_dim, value_dim) for own in by_layer[:layers] if own)
    kinds = caching_kinds(config)
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


def caching_kinds(config: Config) -> Counter[str]:
    """Layers by kind that keep a cache of their own, less those that borrow or read something else.

    The last `num_kv_shared_layers` reuse the cache of layers below them; cross-layer attention shares one among
    `cla_share_factor` neighbours; `cross_attention_layers` read what an image left, not the text before.
    """
    layers = layer_count(config)
    shared = whole(config, "num_kv_shared_layers")
    if 0 < shared < layers:
        if isinstance(config.get("layer_types"), str):
            return _scaled(layer_kinds(config), (layers - shared) / layers)
        return layer_kinds(config, layers - shared)
    kinds = layer_kinds(config)
    factor = whole(config, "cla_share_factor") if config.get("use_cla") else 0
    if factor > 1:
        return _scaled(kinds, 1 / factor)
    crossing = config.get("cross_attention_layers")
    if isinstance(crossing, list):
        kinds["full_attention"] = max(0, kinds["full_attention"] - len(crossing))
    return kinds


def _scaled(kinds: Counter[str], share: float) -> Counter[str]:
    """The share of the attention layers of each kind, at least one of each."""
    attending = ("full_attention", "sliding_attention", "chunked_attention")
    return Counter({k: max(1, round(n * share)) if n and k in attending else n for k, n in kinds.items()})


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
