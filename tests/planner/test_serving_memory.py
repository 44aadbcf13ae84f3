"""Memory rules of the engines, against public launch logs of single models."""

import pytest

from catalog.accelerators import accelerator
from planner.engines import engine_rule, parse_version
from planner.estimate import estimate_line
from planner.models import known_models
from planner.parallel import Layout
from planner.serving_memory import CacheNeed, activation_gib, cache_need


def answer(**keys):
    return estimate_line({"workload": "serve", **keys})


def test_versions_choose_their_row():
    assert engine_rule("vllm", "0.19.0").utilization == 0.90
    assert engine_rule("vllm", "0.22").utilization == 0.92
    assert engine_rule("vllm", "0.4.1").chunked_prefill is False
    assert (
        engine_rule("vllm", "2024-11") == engine_rule("vllm", "0.6")
        or engine_rule("vllm", "2024-11").sampler_bytes == 15
    )
    assert engine_rule("vllm", "nightly").sampler_bytes == engine_rule("vllm", "0.24").sampler_bytes
    assert engine_rule("vllm", "0.2.7").fused_experts is False
    assert parse_version("b1691") == (1691,)


def test_an_unstated_version_is_cautious():
    llama = known_models()["meta-llama/Llama-3.1-8B-Instruct"]
    unstated, newest = engine_rule("vllm", None), engine_rule("vllm", "0.24")
    assert activation_gib(llama, unstated, 1, 8192, 1024) > activation_gib(llama, newest, 1, 8192, 1024)


def test_vllm_0_19_on_one_h100():
    """The capacity study of llm-d-planner: weights 14.99, cache 58.11 GiB, 476,016 tokens."""
    got = answer(
        model="meta-llama/Llama-3.1-8B-Instruct",
        gpu="h100-sxm-80gb",
        weights="bf16",
        kv_cache="bf16",
        engine="vllm",
        engine_version="0.19.0",
        memory_utilization=0.95,
        context=8192,
    )
    assert got["weights_gib_per_gpu"] == pytest.approx(14.99, rel=0.01)
    assert got["kv_cache_gib_per_gpu"] == pytest.approx(58.11, rel=0.02)
    assert got["kv_cache_tokens"] == pytest.approx(476_016, rel=0.02)
    assert got["kv_cache_tokens"] % 16 == 0


def test_a_sliding_layer_holds_its_window_and_one_step():
    """Gemma 2 27B in vLLM 0.19: 7.16 sequences of 8,192 tokens in 20.59 GiB, as if every layer were full."""
    gemma = known_models()["google/gemma-2-27b-it"]
    rule = engine_rule("vllm", "0.19.0")
    need = cache_need(gemma, rule, Layout(), 2, 8192)
    assert need.sequence_bytes(8192) == pytest.approx(46 * 2 * 16 * 128 * 2 * 8192)
    short_steps = cache_need(gemma, rule, Layout(), 2, 512)
    assert short_steps.sequence_bytes(8192) < need.sequence_bytes(8192)


def test_the_last_group_of_hybrid_layers_is_padded():
    """Gemma 3 27B: 10 full and 52 sliding layers lie in seven groups of ten (19.53 GiB hold 4.46 sequences)."""
    gemma = known_models()["google/gemma-3-27b-it"]
    need = cache_need(gemma, engine_rule("vllm", "0.19.0"), Layout(), 2, 8192)
    assert need.sequence_bytes(8192) / 2**30 == pytest.approx(19.53 / 4.46, rel=0.01)


def test_longest_context_inverts_the_need():
    need = CacheNeed(1000.0, ((4096, 500.0),), 10_000.0, 16)
    for context in (160, 4096, 65536):
        assert need.longest(need.sequence_bytes(context)) == context
    assert need.longest(5_000.0) == 0


def test_mla_is_not_divided_but_data_parallel_attention_is():
    shared = {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200-sxm-141gb", "gpus": 8, "weights": "fp8", "ep": 8}
    tensor = answer(**shared, tp=8)
    data = answer(**shared, tp=1, dp=8)
    assert tensor["kv_cache_tokens"] == pytest.approx(tensor["kv_cache_gib_per_gpu"] * 2**30 / 70272, rel=0.01)
    assert data["kv_cache_tokens"] > 5 * tensor["kv_cache_tokens"]


def test_sglang_and_tensorrt_rules():
    shared = {"model": "Qwen/Qwen3-32B", "gpu": "h100-sxm-80gb", "gpus": 2, "tp": 2, "weights": "bf16"}
    low = answer(**shared, engine="sglang", memory_utilization=0.7)
    high = answer(**shared, engine="sglang", memory_utilization=0.9)
    assert high["kv_cache_gib_per_gpu"] - low["kv_cache_gib_per_gpu"] == pytest.approx(0.2 * 78, rel=0.05)
    free = answer(**shared, engine="tensorrt-llm")
    assert free["kv_cache_gib_per_gpu"] < 0.9 * (79.2 - free["weights_gib_per_gpu"])


def test_llama_cpp_reports_its_own_sum():
    """Llama 2 7B in F16 with a context of 512: 12.626 GiB as llama.cpp b1691 prints it."""
    got = answer(
        model="meta-llama/Llama-2-7b-chat-hf",
        gpu="rtx-4090-24gb",
        engine="llama.cpp",
        engine_version="b1691",
        weights="fp16",
        context=512,
    )
    assert got["required_gib_per_gpu"] == pytest.approx(12.626, rel=0.01)


def test_gates_are_named():
    codes = {
        "weights_exceed_memory": {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm-80gb"},
        "kv_exceeds_memory": {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "rtx-4090-24gb", "context": 131072},
        "concurrency_exceeds_memory": {
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "gpu": "h100-sxm-80gb",
            "concurrency": 500,
        },
    }
    for code, keys in codes.items():
        got = answer(**keys)
        assert got["verdict"] == "no"
        assert [reason["code"] for reason in got["reasons"]] == [code]
        assert got["reasons"][0]["values"]["missing_gib_per_gpu"] > 0
        assert got["starts"] is (code == "concurrency_exceeds_memory")


def test_unfused_experts_of_old_engines_need_far_more():
    mixtral = known_models()["mistralai/Mixtral-8x7B-Instruct-v0.1"]
    old = activation_gib(mixtral, engine_rule("vllm", "0.2.7"), 2, 32768, 256)
    new = activation_gib(mixtral, engine_rule("vllm", "0.3.0"), 2, 32768, 256)
    assert old > 3 * new


def test_large_cards_take_large_defaults():
    rule = engine_rule("vllm", "0.19.0")
    assert rule.max_sequences(accelerator("h100-sxm-80gb")) == 1024
    assert rule.max_sequences(accelerator("a100-sxm-80gb")) == 256
    assert rule.batched_tokens(accelerator("rtx-4090-24gb"), 32768) == 2048
    assert engine_rule("vllm", "0.4").batched_tokens(accelerator("h100-sxm-80gb"), 32768) == 32768
