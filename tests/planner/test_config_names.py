"""Configurations in the many spellings that models use: what they mean for cache and weights, reckoned by hand."""

import pytest

from planner.config_names import heads_by_layer, longest_context, null_keys, plain_names
from planner.estimate import estimate_line
from planner.models import model_spec
from planner.request import parse_request

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}


def spec(config, **keys):
    return model_spec(parse_request({"workload": "serve", "model": config, **keys}))


def token_bytes(config, context=8192):
    asked = {"workload": "serve", "gpu": "b300-sxm-288gb", "model": config, "context": context, "kv_cache": "bf16"}
    return estimate_line(asked)["kv_bytes_per_token"]


def llama(**changes):
    return {**LLAMA, **changes}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # 2 x layers x KV heads x width x 2 bytes, from nested and renamed keys
        pytest.param(
            {
                "model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "vocab_size": 100352,
                "attn_config": {"kv_n_heads": 8}, "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16,
                                                                 "moe_top_k": 4},
            },
            2 * 40 * 8 * 128 * 2, id="parts",
        ),
        pytest.param({"model_type": "bloom", "n_layer": 30, "n_embed": 4096, "num_attention_heads": 32},
                     2 * 30 * 32 * 128 * 2, id="n_embed"),
        pytest.param({"dim": 4096, "n_layers": 32, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
                      "vocab_size": 32768}, 2 * 32 * 8 * 128 * 2, id="native mistral"),
        pytest.param({"num_transformer_layers": 4, "model_dim": 1280, "head_dim": 64,
                      "num_query_heads": [12, 12, 16, 20], "num_kv_heads": [3, 3, 4, 5]},
                     2 * (3 + 3 + 4 + 5) * 64 * 2, id="heads by layer"),
        pytest.param({**{k: v for k, v in LLAMA.items() if k != "num_key_value_heads"},
                      "num_key_value_heads_per_layer": [4] * 16 + [2] * 16}, 2 * (64 + 32) * 128 * 2, id="searched"),
        # what the classes assume
        pytest.param({"model_type": "gemma3", "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
            "sliding_window": 1024}}, 2 * 4 * 256 * 2 * (5 + 29 * 1024 / 8192), id="gemma-3-4b as saved"),
        pytest.param({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}},
                     2 * 32 * 32 * 128 * 2, id="llava as saved"),
        pytest.param(llama(model_type="mistral", sliding_window=None), 2 * 32 * 8 * 128 * 2, id="window set to null"),
        pytest.param({**LLAMA, "model_type": "gemma3_text", "head_dim": 128, "sliding_window": None},
                     2 * 32 * 8 * 128 * 2, id="null takes no default"),
        # which layers attend, and how far
        pytest.param(llama(num_hidden_layers=64, sliding_window=4096, sliding_window_pattern="LLLG"),
                     2 * 8 * 128 * 2 * (16 + 48 * 0.5), id="letters"),
        pytest.param(llama(num_hidden_layers=24, global_attn_every_n_layers=3, local_attention=128),
                     2 * 8 * 128 * 2 * (8 + 16 * 128 / 8192), id="every third global"),
        pytest.param(llama(layer_types=["local_attention", "full_attention"] * 16, window_size=1024),
                     2 * 8 * 128 * 2 * (16 + 16 * 1024 / 8192), id="local_attention"),
        pytest.param({"model_type": "recurrent_gemma", "num_hidden_layers": 26, "hidden_size": 2560, "head_dim": 256,
                      "num_attention_heads": 10, "num_key_value_heads": 1, "attention_window_size": 2048,
                      "block_types": ["recurrent", "recurrent", "attention"], "lru_width": 2560},
                     2 * 8 * 256 * 2 * 2048 / 8192, id="recurrent blocks"),
        pytest.param({"model_type": "mamba", "num_hidden_layers": 64, "hidden_size": 2560, "state_size": 16}, 0,
                     id="state space alone"),
        pytest.param(llama(mamba_d_ssm=4096, mamba_n_heads=32, mamba_d_head=128, mamba_d_state=128),
                     2 * 32 * 8 * 128 * 2, id="attention beside mamba"),
        pytest.param(llama(layer_group_size=5, num_hidden_layers=32), 2 * (6 + 2) * 8 * 128 * 2, id="groups of layers"),
        pytest.param({"model_type": "longcat_flash", "num_layers": 28, "hidden_size": 6144, "num_attention_heads": 64,
                      "kv_lora_rank": 512, "qk_rope_head_dim": 64, "zero_expert_num": 256, "n_routed_experts": 512,
                      "expert_ffn_hidden_size": 2048, "ffn_hidden_size": 12288, "moe_topk": 12},
                     56 * 576 * 2, id="two attentions a block"),
        pytest.param({"model_type": "step3", "text_config": {
            "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64, "num_attention_groups": 1,
            "head_dim": 256, "intermediate_size": 18432, "vocab_size": 128815}},
            2 * 61 * 256 * 2, id="groups of heads"),
        # layers that borrow
        pytest.param(llama(num_kv_shared_layers=8, sliding_window=1024,
                           layer_types=["sliding_attention"] * 24 + ["full_attention"] * 8),
                     2 * 24 * 8 * 128 * 2 * 1024 / 8192, id="the last layers share"),
        pytest.param({"model_type": "mllama", "text_config": {**LLAMA, "model_type": "mllama_text_model",
                                                              "num_hidden_layers": 40,
                                                              "cross_attention_layers": list(range(3, 40, 5))}},
                     2 * 32 * 8 * 128 * 2, id="cross attention"),
    ],
)  # fmt: skip
def test_cache_bytes_of_one_token(config, expected):
    assert token_bytes(config) == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        # parameter counts of the public model cards
        ({"model_type": "gemma2", "num_hidden_layers": 42, "hidden_size": 3584, "num_attention_heads": 16,
          "num_key_value_heads": 8, "intermediate_size": 14336}, 9.24),
        ({"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32, "vocab_size": 250880}, 7.07),
        ({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25}, 1.56),
        ({"model_type": "cohere", "num_hidden_layers": 40, "hidden_size": 8192, "num_attention_heads": 64,
          "intermediate_size": 22528, "vocab_size": 256000}, 34.98),
        ({"model_type": "ernie4_5_moe", "num_hidden_layers": 28, "hidden_size": 2560, "num_attention_heads": 20,
          "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 12288, "moe_intermediate_size": 1536,
          "moe_num_experts": 64, "moe_k": 6, "moe_layer_start_index": 1, "moe_num_shared_experts": 2,
          "vocab_size": 103424}, 21.8),
        ({"model_type": "hunyuan_v1_moe", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
          "num_key_value_heads": 8, "moe_intermediate_size": [3072] * 32, "num_experts": 64, "moe_topk": [8] * 32,
          "num_shared_expert": [1] * 32, "vocab_size": 128167, "tie_word_embeddings": True}, 80.4),
        ({"model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "vocab_size": 100352,
          "attn_config": {"kv_n_heads": 8}, "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16,
                                                           "moe_top_k": 4}}, 131.6),
        ({"model_type": "step3", "text_config": {
            "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64, "num_attention_groups": 1,
            "head_dim": 256, "intermediate_size": 18432, "moe_intermediate_size": 5120, "moe_num_experts": 48,
            "moe_top_k": 3, "share_expert_dim": 5120, "moe_layers_enum": ",".join(map(str, range(4, 60))),
            "vocab_size": 128815}}, 321),
        ({"model_type": "granitemoehybrid", "num_hidden_layers": 40, "hidden_size": 4096, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 768, "num_local_experts": 72, "num_experts_per_tok": 10,
          "shared_intermediate_size": 1536, "layer_types": (["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4,
          "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "vocab_size": 100352,
          "tie_word_embeddings": True}, 32.2),
        ({"model_type": "mamba", "num_hidden_layers": 64, "hidden_size": 2560, "state_size": 16, "vocab_size": 50280},
         2.77),
    ],
)  # fmt: skip
def test_parameters_from_the_fields(config, billions):
    assert spec(config).params_b == pytest.approx(billions, rel=0.03)


def test_active_parameters_follow_the_experts_of_a_token():
    config = {"model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "vocab_size": 100352,
              "attn_config": {"kv_n_heads": 8}, "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16,
                                                               "moe_top_k": 4}}  # fmt: skip
    assert spec(config).active_params_b == pytest.approx(36, rel=0.03)


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"max_position_embeddings": 32768}, 32768),
        ({"max_position_embeddings": 32768, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                                                             "original_max_position_embeddings": 32768}}, 131072),
        ({"max_position_embeddings": 163840, "rope_scaling": {"type": "yarn", "factor": 40,
                                                              "original_max_position_embeddings": 4096}}, 163840),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                                                              "original_max_position_embeddings": 8192}}, 131072),
        ({"max_seq_len": 8192}, 8192),
        ({}, None),
    ],
)  # fmt: skip
def test_the_longest_context(config, tokens):
    assert longest_context(plain_names(config)) == tokens


def test_a_context_beyond_it_is_said():
    config = llama(max_position_embeddings=8192)
    got = estimate_line({"workload": "serve", "gpu": "h100-sxm-80gb", "model": config, "context": 32768})
    assert any("beyond the model's own 8192" in said for said in got["assumptions"])


def test_nulls_are_found_at_any_depth():
    assert null_keys({"a": None, "text_config": {"b": None, "c": 1}}) == {"a", "b"}
    assert heads_by_layer({"num_kv_heads": [1, "x"]}) is None


def quantised(**quantization):
    return spec(llama(quantization_config=quantization))


@pytest.mark.parametrize(
    ("quantization", "form"),
    [
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "awq"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, "fp8"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, "mxfp4"),
        ({"quant_method": "torchao", "quant_type": "int8_weight_only"}, "int8"),
        ({"quant_method": "w8a8_int8"}, "int8"),
        ({"quant_method": "eetq"}, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": False, "load_in_4bit": True}, "int4"),
        ({"quant_method": "gptq", "bits": 3}, "int3"),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 8}}}, "int8"),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"},
          "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}}}, "int4"),
    ],
)  # fmt: skip
def test_quantisers_by_their_own_words(quantization, form):
    assert quantised(**quantization).native_format == form


def test_the_scale_group_is_the_checkpoint_s():
    assert quantised(quant_method="fp8", weight_block_size=[128, 128]).scale_group == 128
    assert quantised(quant_method="fp8").scale_group == 0
    assert quantised(quant_method="awq", bits=4, group_size=64).scale_group == 64
    assert quantised(quant_method="gptq", bits=4, group_size=-1).scale_group == 0
    assert spec(LLAMA).scale_group is None


@pytest.mark.parametrize(
    ("model", "weights", "tp", "legal"),
    [
        # 29,568 / 128 is odd; the published 4-bit builds are padded to 29,696 (github.com/QwenLM/Qwen3-VL issue 231)
        ("Qwen/Qwen2.5-72B-Instruct", "awq", 4, True),
        # the same width, not padded: https://github.com/vllm-project/vllm/issues/21695
        (llama(num_hidden_layers=80, hidden_size=8192, num_attention_heads=64, intermediate_size=29568,
               quantization_config={"quant_method": "awq", "bits": 4, "group_size": 128}), "native", 2, False),
        (llama(intermediate_size=29568, quantization_config={"quant_method": "awq", "bits": 4, "group_size": 64}),
         "native", 2, True),
        ("zai-org/GLM-4.5-Air", "fp8", 2, True),
        ("Qwen/Qwen3-235B-A22B", "fp8", 8, False),
    ],
)  # fmt: skip
def test_shared_scales_bind_the_split(model, weights, tp, legal):
    asked = {"workload": "serve", "gpu": "h200-sxm-141gb", "gpus": tp, "tp": tp, "model": model, "weights": weights}
    illegal = [reason for reason in estimate_line(asked)["reasons"] if reason["code"] == "split_illegal"]
    assert (not illegal) == legal


@pytest.mark.parametrize(
    ("model", "limit"), [("meta-llama/Llama-2-7b-chat-hf", 4096), ("Qwen/Qwen2.5-7B-Instruct", 32768)]
)
def test_known_models_have_the_positions_of_their_configuration(model, limit):
    asked = {"workload": "serve", "gpu": "h100-sxm-80gb", "model": model}
    assert not any("beyond" in said for said in estimate_line({**asked, "context": limit})["assumptions"])
    assert any("beyond" in said for said in estimate_line({**asked, "context": limit + 1})["assumptions"])
