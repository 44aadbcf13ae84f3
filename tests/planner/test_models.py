"""Model facts from ids, aliases, configurations and plain dimensions."""

import json

import pytest

from planner.models import known_models, model_spec
from planner.request import RequestError, parse_request


def spec(**keys):
    return model_spec(parse_request({"workload": "serve", **keys}))


def test_every_known_model_explains_its_parameters():
    for model in known_models().values():
        assert model.budget.total() / 1e9 == pytest.approx(model.params_b)
        assert model.active_params_b <= model.params_b * 1.001
        assert model.cache, model.model_id
        assert all(value >= 0 for value in (model.budget.attention, model.budget.experts, model.budget.tower))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("meta-llama/llama-3.1-70b-instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("gemma-3-27b", "google/gemma-3-27b-it"),
        ("DeepSeek-V3", "deepseek-ai/DeepSeek-V3"),
        ("deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2"),
        ("GPT-OSS-120B", "openai/gpt-oss-120b"),
    ],
)
def test_ids_in_any_case_and_short_names(name, expected):
    assert spec(model=name).model_id == expected


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(RequestError) as caught:
        spec(model="meta-llama/Llama-3.1-70B-Instrct")
    assert caught.value.code == "unknown_model"
    assert "meta-llama/Llama-3.1-70B-Instruct" in caught.value.suggestions


def test_plain_dimensions_fill_and_override():
    assert spec(model="Qwen/Qwen3-8B", layers=18).layers == 18
    gpt = spec(
        params_b=1.56, layers=48, hidden=1600, heads=25, kv_heads=25, head_dim=64, vocab=50257, intermediate=6400
    )
    assert gpt.gated_mlp is False
    assert gpt.tie_embeddings is True


def test_total_and_active_parameters_make_a_mixture_of_experts():
    model = spec(params_b=16, active_params_b=2.8, layers=27, hidden=2048, heads=16, intermediate=10944, vocab=102400)
    assert model.is_moe
    assert 0 < model.expert_share < 0.25


def test_size_alone_gives_the_usual_shape():
    model = spec(params_b=7)
    assert model.params_b == pytest.approx(7)
    assert 25 <= model.layers <= 40


def test_no_model_is_an_error():
    with pytest.raises(RequestError, match="needs a model"):
        spec()


def test_a_nested_text_configuration_and_its_tower():
    text = {
        "num_hidden_layers": 64,
        "hidden_size": 5120,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "intermediate_size": 27648,
        "vocab_size": 152064,
    }
    model = spec(model={"model_type": "vl", "text_config": text, "vision_config": {"depth": 32}, "params_b": 33.5})
    assert model.layers == 64
    assert model.has_tower
    assert model.budget.tower > 0.5e9


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "awq"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "group_size": 32}}},
            },
            "int4-g32",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
        ),
    ],
)
def test_the_checkpoint_says_its_own_format(quantization, expected):
    config = {
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "quantization_config": quantization,
    }
    assert spec(model=config).native_format == expected


def test_a_local_folder(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100})
    )
    assert spec(model=str(tmp_path)).layers == 2


def test_a_file_that_is_none(tmp_path):
    broken = tmp_path / "model.gguf"
    broken.write_bytes(b"not a model")
    with pytest.raises(RequestError) as caught:
        spec(model=str(broken))
    assert caught.value.code == "unreadable_model"


@pytest.mark.parametrize("value", [None, "abc", -1, [], {}, 1e18, True, [1, "x"], [[1]], [None], {"weights": None}])
@pytest.mark.parametrize(
    "key",
    ["model_type", "vocab_size", "n_routed_experts", "compress_ratios", "num_key_value_heads", "params_b",
     "active_params_b", "weight_bytes", "expansion_ratio", "layer_types", "block_types", "attn_config",
     "quantization_config", "rope_scaling", "cross_attention_layers", "sliding_window_pattern"],
)  # fmt: skip
def test_odd_values_are_left_out_not_trusted(key, value):
    config = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100, key: value}
    assert spec(model=config).params_b > 0


@pytest.mark.parametrize("name", ["x" * 5000, "~nobody-of-this-name/model", "a\nb", "."])
def test_a_name_that_is_no_path_is_an_error_of_the_request(name):
    with pytest.raises(RequestError):
        model_spec(parse_request({"workload": "serve", "model": name}))


def test_a_size_with_an_unreadable_shape_still_gives_the_usual_one():
    assert spec(model={"hidden_size": {"a": 1}, "num_hidden_layers": "x", "params_b": 7}).params_b == pytest.approx(7)


DECODER = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100}


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        # published parameter counts, from the fields of the published config.json alone
        ({"model_type": "gpt_bigcode", "n_layer": 40, "n_embd": 6144, "n_head": 48, "n_inner": 24576,
          "multi_query": True, "vocab_size": 49152}, 15.5),
        ({"model_type": "nemotron_h", "num_hidden_layers": 52, "hidden_size": 4096, "num_attention_heads": 32,
          "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 21504, "vocab_size": 131072,
          "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", "mamba_num_heads": 128,
          "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "tie_word_embeddings": False}, 8.1),
        ({"model_type": "lfm2", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32,
          "num_key_value_heads": 8, "block_ff_dim": 12288, "vocab_size": 65536,
          "layer_types": ["full_attention" if i in {2, 5, 8, 10, 12, 14} else "conv" for i in range(16)]}, 1.0),
        ({"model_type": "recurrent_gemma", "num_hidden_layers": 38, "hidden_size": 4096, "num_attention_heads": 16,
          "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 24576, "vocab_size": 256000,
          "lru_width": 4096}, 8.6),
        ({"model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
          "intermediate_size": 4096, "vocab_size": 30522, "hidden_act": "gelu"}, 0.335),
        ({"model_type": "xlm-roberta", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
          "intermediate_size": 4096, "vocab_size": 250002, "hidden_act": "gelu"}, 0.568),
        ({"model_type": "modernbert", "num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16,
          "intermediate_size": 2624, "vocab_size": 50368, "hidden_activation": "gelu"}, 0.395),
        ({"model_type": "t5", "d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_heads": 16, "num_layers": 24,
          "num_decoder_layers": 24, "vocab_size": 32128, "is_encoder_decoder": True, "feed_forward_proj": "relu"},
         0.738),
        ({"model_type": "t5", "d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_heads": 64, "num_layers": 24,
          "num_decoder_layers": 24, "vocab_size": 32128, "is_encoder_decoder": True, "tie_word_embeddings": False,
          "feed_forward_proj": "gated-gelu"}, 11.3),
        ({"model_type": "m2m_100", "d_model": 2048, "encoder_layers": 24, "decoder_layers": 24,
          "decoder_attention_heads": 16, "decoder_ffn_dim": 8192, "vocab_size": 256206, "is_encoder_decoder": True},
         3.34),
        ({"model_type": "qwen2_5_vl", "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28,
          "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": False,
          "vision_config": {"depth": 32, "hidden_size": 1280, "num_heads": 16, "intermediate_size": 3420,
                            "hidden_act": "silu", "out_hidden_size": 3584, "spatial_merge_size": 2}}, 8.29),
        ({"model_type": "qwen2_vl", "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28,
          "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": False,
          "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "hidden_size": 3584,
                            "spatial_merge_size": 2}}, 8.29),
        ({"model_type": "qwen2_audio",
          "text_config": {"model_type": "qwen2", "num_hidden_layers": 32, "hidden_size": 4096,
                          "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 156032},
          "audio_config": {"d_model": 1280, "encoder_layers": 32, "encoder_ffn_dim": 5120}}, 8.4),
    ],
)  # fmt: skip
def test_parameters_follow_from_the_fields_of_every_architecture(config, billions):
    assert spec(model=config).params_b == pytest.approx(billions, rel=0.04)


def test_an_encoder_keeps_no_cache_and_a_decoder_of_the_same_shape_does():
    assert spec(model={**DECODER, "model_type": "roberta"}).cache == ()
    assert spec(model={**DECODER, "type_vocab_size": 2}).cache == ()
    assert spec(model={**DECODER, "type_vocab_size": 2, "is_decoder": True}).cache
    assert spec(model=DECODER).cache


@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "num_attention_heads"])
@pytest.mark.parametrize("value", [0, -4, "many", True, {}])
def test_sizes_that_are_none_are_named(key, value):
    with pytest.raises(RequestError, match=f"{key} must be a number above zero"):
        spec(model={**DECODER, key: value})


def test_active_parameters_are_a_part_of_all():
    with pytest.raises(RequestError, match="active_params_b 70 is more than all parameters, params_b 7"):
        spec(params_b=7, active_params_b=70, layers=32, hidden=4096, heads=32)
