"""Weight bytes by format and their division over GPUs."""

import pytest

from planner.estimate import estimate_line
from planner.model_config import spec_from_config
from planner.models import known_models, model_spec
from planner.parallel import Layout
from planner.request import parse_request
from planner.weights import GIB, UnknownFormat, known_formats, plan_weights, weight_format

LLAMA_8B = known_models()["meta-llama/Llama-3.1-8B-Instruct"]
GPT_OSS = known_models()["openai/gpt-oss-120b"]
DEEPSEEK = known_models()["deepseek-ai/DeepSeek-V3"]


def gib(model, form, layout=None, **keys):
    return plan_weights(model, weight_format(form), layout or Layout(), **keys).per_gpu / GIB


def test_every_listed_format_has_a_rule():
    for name in known_formats()[1:]:
        form = weight_format(name)
        assert 0 < form.body <= 4
        assert form.embedding >= form.body / 2
    with pytest.raises(UnknownFormat):
        weight_format("int7")


@pytest.mark.parametrize(
    ("form", "loaded_gib", "source"),
    [
        ("bf16", 14.96, "https://github.com/vllm-project/vllm/pull/10511"),
        ("fp8", 8.49, "launch log of vLLM 0.19: embedding and output layer stay in 16 bit"),
        ("gguf:Q4_K_M", 4.58, "file size as llama.cpp prints it"),
    ],
)
def test_an_8b_model_weighs_what_engines_print(form, loaded_gib, source):
    assert source
    assert gib(LLAMA_8B, form) == pytest.approx(loaded_gib, rel=0.01)


def test_mxfp4_kernels_pad():
    assert gib(GPT_OSS, "mxfp4") == pytest.approx(64.38, rel=0.01)  # Triton, vLLM 0.11
    assert gib(GPT_OSS, "mxfp4", marlin=True) == pytest.approx(
        65.97, rel=0.01
    )  # github.com/vllm-project/vllm/issues/23278


def test_attention_kept_in_16_bit_shows():
    meta_405b = known_models()["meta-llama/Llama-3.1-405B-Instruct"]
    assert gib(meta_405b, "fp8", Layout(tp=8)) == pytest.approx(57.75, rel=0.03)


def test_shards_add_up_to_the_whole_but_for_copies_and_padding():
    for tp in (2, 4, 8):
        whole = plan_weights(LLAMA_8B, weight_format("bf16"), Layout())
        part = plan_weights(LLAMA_8B, weight_format("bf16"), Layout(tp=tp))
        assert whole.total <= part.per_gpu * tp <= whole.total * 1.01


def test_kv_projections_are_copied_beyond_the_kv_heads():
    narrow = spec_from_config(
        "t",
        {
            "num_hidden_layers": 4,
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "num_key_value_heads": 2,
            "vocab_size": 64 * 8,
            "intermediate_size": 4096,
        },
    )
    form = weight_format("bf16")
    at_2, at_8 = (plan_weights(narrow, form, Layout(tp=tp)) for tp in (2, 8))
    copied = narrow.budget.kv_projection * 2 * (8 / 2 - 1)
    assert at_8.per_gpu * 8 - at_2.per_gpu * 2 == pytest.approx(copied + narrow.budget.replicated * 2 * 6, rel=0.01)


def test_the_fullest_pipeline_stage_counts():
    quarter = plan_weights(LLAMA_8B, weight_format("bf16"), Layout(pp=4))
    assert quarter.per_gpu > quarter.total / 4
    assert quarter.per_gpu / GIB == pytest.approx(4.26, rel=0.01)  # launch log of vLLM 0.19, pp 4


def test_expert_ranks_divide_the_experts_only():
    tp = plan_weights(DEEPSEEK, weight_format("fp8"), Layout(tp=1, dp=8, ep=8))
    whole = plan_weights(DEEPSEEK, weight_format("fp8"), Layout())
    assert tp.experts == pytest.approx(whole.experts / 8)
    assert tp.stream == pytest.approx(whole.stream)


def test_a_known_byte_count_wins_over_the_rules():
    spec = spec_from_config(
        "t",
        {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128, "weight_bytes": 1e6},
    )
    assert plan_weights(spec, weight_format("bf16"), Layout()).total == pytest.approx(1e6)
    assert plan_weights(spec, weight_format("fp8"), Layout()).total != pytest.approx(1e6)


def test_llama_cpp_leaves_the_embedding_in_host_memory():
    all_on_card = gib(LLAMA_8B, "fp16")
    offloaded = gib(LLAMA_8B, "fp16", host_embedding=True)
    assert all_on_card - offloaded == pytest.approx(LLAMA_8B.budget.embedding * 2 / GIB)


@pytest.mark.parametrize(
    ("model", "form", "gib"),
    [
        # published files; rows of 29,568, 1,408, 896 and 576 are no whole number of 256-weight blocks
        ({"model": "Qwen/Qwen2.5-72B-Instruct"}, "gguf:Q4_K_M", 44.2),
        ({"model": "zai-org/GLM-4.5-Air"}, "gguf:Q4_K_M", 67.9),
        ({"model": {"model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14,
                    "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936,
                    "tie_word_embeddings": True}}, "gguf:Q6_K", 0.471),
        # whole rows: nothing is widened
        ({"model": "Qwen/Qwen3-8B"}, "gguf:Q4_K_M", 4.68),
        ({"model": "meta-llama/Llama-3.2-3B-Instruct"}, "gguf:Q4_K_M", 1.88),
        # experts in MXFP4, the rest in Q8_0, nothing padded
        ({"model": "openai/gpt-oss-120b"}, "mxfp4", 59.0),
    ],
)  # fmt: skip
def test_sizes_of_published_gguf_files(model, form, gib):
    got = estimate_line({"workload": "serve", "gpu": "mi355x-288gb", "engine": "llama.cpp", "weights": form, **model})
    spec = model_spec(parse_request({"workload": "serve", **model}))
    rule = weight_format(form if form.startswith("gguf") else "gguf:MXFP4")
    on_host = 0 if spec.tie_embeddings else spec.budget.embedding * rule.embedding / GIB
    assert got["weights_gib_per_gpu"] + on_host == pytest.approx(gib, rel=0.05)
