"""Which layers of a model are of which kind, and which hold experts: by the fields of `config.json`, never a name.

Every function takes the flat text configuration. Field names are those of Hugging Face transformers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]
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
_ENCODERS = frozenset({
    "albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "modernbert", "mpnet",
    "nomic_bert", "roberta", "roformer", "xlm-roberta",
})  # fmt: skip
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


def layer_kinds(config: Config, first: int | None = None) -> Counter[str]:
    """How many layers are of which kind: full, sliding or chunked attention, linear attention, mamba, conv, none.

    Args:
        config: flat text configuration.
        first: count only so many layers from the bottom; None counts all.
    """
    layers = layer_count(config) if first is None else first
    if is_state_space(config):
        return Counter({"mamba": layers})
    for detect in (_listed, _block_cycle, _pattern_string, _binary_pattern, _counted_hybrid, _periodic, _windowed):
        found = detect(config, layers)
        if found is not None:
            return found
    if whole(config, "mamba_d_ssm"):
        # Falcon-H1: attention heads and a state-space mixer side by side in every layer.
        return Counter({"full_attention": layers, "mamba": layers})
    return Counter({"full_attention": layers})


def is_state_space(config: Config) -> bool:
    """Whether the model is Mamba alone: its configuration has a state and no attention heads."""
    return whole(config, "state_size") > 0 and "num_attention_heads" not in config


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


def _block_cycle(config: Config, layers: int) -> Counter[str] | None:
    """A short list of block kinds that repeats; its attention is local where a window is stated (RecurrentGemma)."""
    cycle = config.get("block_types")
    if not isinstance(cycle, list) or not cycle:
        return None
    kinds = Counter(_KIND_WORDS.get(str(cycle[i % len(cycle)]), "full_attention") for i in range(layers))
    if whole(config, "sliding_window"):
        kinds["sliding_attention"] += kinds.pop("full_attention", 0)
    return kinds


def _pattern_string(config: Config, layers: int) -> Counter[str] | None:
    letters = config.get("sliding_window_pattern")
    if isinstance(letters, str) and letters and set(letters) <= {"L", "G"} and whole(config, "sliding_window"):
        words = {"L": "sliding_attention", "G": "full_attention"}
        return Counter(words[letters[i % len(letters)]] for i in range(layers))
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
    every = whole(config, "layer_group_size")
    if every > 1:
        # Ring-linear: the last layer of every group attends, and so does what is left over at the end.
        full = layers // every + layers % every
        return Counter({"full_attention": full, "linear_attention": layers - full})
    if whole(config, "attention_chunk_size"):
        return _chunked(config, layers)
    if not whole(config, "sliding_window"):
        return None
    every = whole(config, "global_attn_every_n_layers")
    if every > 1:
        full = -(-layers // every)
        return Counter({"full_attention": full, "sliding_attention": layers - full})
    every = whole(config, "_sliding_window_pattern", "sliding_window_pattern")
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


def mamba_shape(config: Config) -> tuple[int, int, int, int]:
    """Inner width, state size, convolution length and groups of a Mamba layer."""
    hidden = whole(config, "hidden_size")
    if whole(config, "lru_width"):
        # A real-gated linear recurrent unit keeps one number a channel.
        return whole(config, "lru_width"), 1, whole(config, "conv1d_width", default=4), 0
    heads = whole(config, "mamba_num_heads", "mamba_n_heads")
    inner = heads * whole(config, "mamba_head_dim", "mamba_d_head") if heads else 0
    inner = whole(config, "mamba_d_ssm") or inner or hidden * whole(config, "mamba_expand", "expand", default=2)
    state = whole(config, "ssm_state_size", "mamba_d_state", "state_size", default=16)
    conv = whole(config, "conv_kernel", "mamba_d_conv", default=4)
    return inner, state, conv, whole(config, "n_groups", "mamba_n_groups") if heads else 0


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
    numbered = config.get("moe_layers_enum")
    if isinstance(numbered, str) and numbered:
        return sum(1 for number in numbered.split(",") if number.strip().isdigit() and int(number) < layers)
    every = whole(config, "expert_layer_period")
    if every:
        return sum(1 for i in range(layers) if i % every == whole(config, "expert_layer_offset"))
    first = whole(config, "first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
    last = whole(config, "moe_layer_end_index", default=layers - 1)
    layers = min(layers, last + 1)
    step = max(1, whole(config, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", default=1))
    dense = config.get("mlp_only_layers")
    skipped = len(dense) if isinstance(dense, list) else 0
    return max(0, (layers - first) // step - skipped)


def is_encoder(config: Config) -> bool:
    """Whether the model only encodes (BERT and its kin, for embeddings and reranking): it keeps no cache of tokens.

    Token types belong to that family; `is_decoder` turns one of them into a decoder.
    """
    if config.get("is_decoder") or config.get("is_encoder_decoder"):
        return False
    return config.get("model_type") in _ENCODERS or whole(config, "type_vocab_size") > 0


def encoder_layers(config: Config) -> int:
    """Layers of the encoder in front of the decoder, 0 where there is none."""
    if not config.get("is_encoder_decoder"):
        return 0
    return whole(config, "encoder_layers", "num_encoder_layers", "num_layers") or layer_count(config)


def expert_count(config: Config) -> int:
    """Routed experts of one layer, 0 for a dense model."""
    return whole(config, "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
