"""Cache bytes per attention kind, from configuration fields alone."""

import pytest

from planner.attention import cache_format, grouped, latent, linear_state
from planner.model_config import spec_from_config

LLAMA = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def growing(config, element_bytes=2.0, tp=1):
    spec = spec_from_config("test", config)
    return sum(g.token_bytes(element_bytes, tp) for g in spec.cache if g.window is None)


@pytest.mark.parametrize(("kv_heads", "expected"), [(32, 524288), (8, 131072), (1, 16384)])
def test_mha_gqa_and_mqa_count_their_own_heads(kv_heads, expected):
    assert growing({**LLAMA, "num_key_value_heads": kv_heads}) == expected


def test_multi_query_flag_means_one_kv_head():
    config = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    assert growing({**config, "multi_query": True}) == 2 * 32 * 128 * 2


def test_kv_heads_are_divided_down_to_one_then_copied():
    group = grouped("full", 1, 4, 128, 128)
    assert group.token_bytes(2, 2) == group.token_bytes(2) / 2
    assert group.token_bytes(2, 8) == group.token_bytes(2) / 4


def test_a_latent_cache_is_the_same_on_every_rank():
    group = latent(61, 512, 64)
    assert group.token_bytes(2) == 70272
    assert group.token_bytes(2, 8) == 70272


def test_a_sparse_indexer_adds_its_keys_and_scale():
    mla = {**LLAMA, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert growing({**mla, "index_head_dim": 128}) - growing(mla) == 32 * 132


def test_keys_and_values_of_different_width():
    assert growing({**LLAMA, "head_dim": 192, "v_head_dim": 128}) == 32 * 8 * (192 + 128) * 2


@pytest.mark.parametrize(
    ("extra", "full", "windowed"),
    [
        ({"model_type": "gemma3_text", "sliding_window": 1024}, 5, 27),
        ({"model_type": "gemma2", "sliding_window": 4096}, 16, 16),
        ({"sliding_window": 4096, "sliding_window_pattern": 4}, 8, 24),
        ({"model_type": "mistral", "sliding_window": 4096}, 0, 32),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 28}, 32, 0),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}, 28, 4),
        ({"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 16}, 16, 16),
        ({"attention_chunk_size": 8192}, 8, 24),
        ({"sliding_window": 128, "hybrid_layer_pattern": [0, 1, 1, 1] * 8}, 8, 24),
    ],
)
def test_windowed_layers_are_found_by_field(extra, full, windowed):
    spec = spec_from_config("test", {**LLAMA, **extra})
    assert sum(g.layers for g in spec.cache if g.window is None) == full
    assert sum(g.layers for g in spec.cache if g.window is not None) == windowed


@pytest.mark.parametrize(
    ("extra", "attending", "state"),
    [
        ({"full_attention_interval": 4}, 8, 24),
        ({"layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 8}, 8, 24),
        ({"attn_layer_period": 8, "attn_layer_offset": 4}, 4, 28),
        ({"hybrid_override_pattern": "M-M*" * 8}, 8, 16),
        ({"attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1] * 4}, 4, 28),
        ({"attn_layer_indices": [9, 18, 27]}, 3, 29),
        ({"linear_attn_config": {"full_attn_layers": [4, 8], "kda_layers": list(range(30))}}, 2, 30),
    ],
)
def test_hybrids_keep_a_state_instead_of_tokens(extra, attending, state):
    spec = spec_from_config("test", {**LLAMA, **extra})
    assert spec.attention_layers - spec.state_layers == attending or spec.attention_layers == attending
    assert spec.state_layers == state
    assert growing({**LLAMA, **extra}) == attending * 8 * 256 * 2


def test_linear_state_is_a_matrix_for_each_value_head_and_the_tail_of_the_convolution():
    group = linear_state(1, 48, 16, 128, 128, 4)
    assert group.state_bytes == 48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2


def test_layers_that_share_a_cache_keep_none_of_their_own():
    assert growing({**LLAMA, "num_kv_shared_layers": 16}) == growing(LLAMA) / 2
    assert growing({**LLAMA, "use_cla": True, "cla_share_factor": 2}) == growing(LLAMA) / 2


def test_searched_blocks_state_their_own_groups():
    blocks = [{"attention": {"n_heads_in_group": 8}}, {"attention": {"no_op": True}}] * 16
    assert growing({**LLAMA, "block_configs": blocks}) == 16 * 4 * 256 * 2


@pytest.mark.parametrize(
    ("name", "bytes_per_value"), [("q8_0", 34 / 32), ("q4_0", 18 / 32), ("nvfp4", 9 / 16), ("fp8", 1)]
)
def test_quantised_caches(name, bytes_per_value):
    from planner.attention import CACHE_BYTES

    assert CACHE_BYTES[cache_format(name)] == bytes_per_value


def test_cache_format_names():
    assert cache_format("Float16") == "fp16"
    assert cache_format("int3") is None
