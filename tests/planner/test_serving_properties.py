"""What must hold for any request."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.accelerators import accelerator
from planner.estimate import estimate_line
from planner.models import known_models

MODELS = ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "google/gemma-3-12b-it", "Qwen/Qwen3.5-27B",
          "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-Linear-48B-A3B-Instruct")  # fmt: skip
GPUS = (
    "rtx-4090-24gb",
    "l40s-48gb",
    "a100-sxm-80gb",
    "h100-sxm-80gb",
    "h200-sxm-141gb",
    "b200-sxm-180gb",
    "mi300x-192gb",
)
BIGGER = (("a100-sxm-40gb", "a100-sxm-80gb"), ("h100-sxm-80gb", "h200-sxm-141gb"), ("mi300x-192gb", "mi325x-256gb"),
          ("rtx-4080-16gb", "rtx-4090-24gb"), ("b200-sxm-180gb", "b300-sxm-288gb"))  # fmt: skip
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers")
RANK = {"no": 0, "tight": 1, "fits": 2}
quick = settings(max_examples=50, deadline=None)


def answer(**keys):
    got = estimate_line({"workload": "serve", **keys})
    assert "error" not in got, got
    return got


@quick
@given(
    st.sampled_from(MODELS),
    st.sampled_from(GPUS),
    st.sampled_from(ENGINES),
    st.integers(512, 100_000),
    st.integers(1, 64),
)
def test_memory_grows_with_context_and_users(model, gpu, engine, context, users):
    shared = {"model": model, "gpu": gpu, "engine": engine}
    base = answer(**shared, context=context, concurrency=users)["required_gib_per_gpu"]
    assert answer(**shared, context=context * 2, concurrency=users)["required_gib_per_gpu"] >= base * 0.9999
    assert answer(**shared, context=context, concurrency=users + 7)["required_gib_per_gpu"] >= base * 0.9999


@quick
@given(st.sampled_from(MODELS), st.sampled_from(GPUS))
def test_memory_grows_with_precision(model, gpu):
    sizes = [
        answer(model=model, gpu=gpu, weights=form)["weights_gib_per_gpu"] for form in ("awq", "fp8", "bf16", "fp32")
    ]
    assert sizes == sorted(sizes)
    caches = [
        answer(model=model, gpu=gpu, kv_cache=form)["breakdown"]["kv_cache_gib"] for form in ("nvfp4", "fp8", "bf16")
    ]
    assert caches == sorted(caches)


@quick
@given(st.sampled_from(sorted(known_models())), st.sampled_from((2, 4, 8)), st.sampled_from(("bf16", "fp8", "awq")))
def test_shards_hold_at_least_the_whole(model, ways, form):
    whole = answer(model=model, gpu="b300-sxm-288gb", weights=form, tp=1, pp=1)["weights_gib_per_gpu"]
    for split in ({"tp": ways, "pp": 1}, {"tp": 1, "pp": ways}):
        part = answer(model=model, gpu="b300-sxm-288gb", weights=form, **split)["weights_gib_per_gpu"]
        assert whole * 0.999 <= part * ways
        assert part <= whole * 1.001


@quick
@given(
    st.sampled_from(MODELS),
    st.sampled_from(BIGGER),
    st.sampled_from(("vllm", "sglang", "llama.cpp")),
    st.integers(1, 8),
    st.integers(1024, 65_536),
    st.integers(1, 32),
)
def test_a_bigger_card_never_turns_yes_into_no(model, pair, engine, gpus, context, users):
    shared = {"model": model, "engine": engine, "gpus": gpus, "context": context, "concurrency": users,
              "weights": "fp16", "engine_version": None if engine != "vllm" else "0.19.0"}  # fmt: skip
    small, big = (answer(**shared, gpu=gpu) for gpu in pair)
    assert RANK[big["verdict"]] >= RANK[small["verdict"]]
    assert big["starts"] >= small["starts"]


LARGER_BATCH = (("a100-sxm-80gb", "h100-sxm-80gb"), ("a100-pcie-80gb", "h100-pcie-80gb"),
                ("a100-sxm-80gb", "h100-nvl-94gb"), ("l40s-48gb", "h100-sxm-80gb"))  # fmt: skip


@quick
@given(
    st.sampled_from(sorted(known_models())),
    st.sampled_from(LARGER_BATCH),
    st.sampled_from(("vllm", "sglang", "tensorrt-llm")),
    st.sampled_from((1, 2, 4, 8)),
    st.integers(1024, 131_072),
    st.integers(1, 128),
)
def test_a_bigger_card_with_larger_engine_defaults_says_which_setting_stands_in_the_way(
    model, pair, engine, gpus, context, users
):
    shared = {"model": model, "engine": engine, "gpus": gpus, "context": context, "concurrency": users,
              "weights": "fp16"}  # fmt: skip
    small, big = (answer(**shared, gpu=gpu) for gpu in pair)
    if small["verdict"] == "fits" and big["verdict"] == "no":
        assert "fits_with_max_batched_tokens" in big["reasons"][-1]["values"]


def test_the_default_batch_of_a_large_card_is_named_when_it_stands_in_the_way():
    shared = {"model": "CohereLabs/c4ai-command-a-03-2025", "gpus": 4, "weights": "fp16", "context": 16384,
              "concurrency": 32}  # fmt: skip
    assert answer(**shared, gpu="a100-pcie-80gb")["verdict"] == "fits"
    bigger = answer(**shared, gpu="h100-pcie-80gb")
    assert bigger["verdict"] == "no"
    assert bigger["reasons"][-1]["values"]["fits_with_max_batched_tokens"] == 2048
    assert bigger["reasons"][-1]["values"]["fits_with_max_sequences"] == 256


@quick
@given(st.sampled_from(sorted(known_models())), st.sampled_from(GPUS), st.integers(2, 200), st.integers(1024, 65_536))
def test_one_user_more_than_the_most_does_not_fit(model, gpu, users, context):
    got = answer(model=model, gpu=gpu, context=context, concurrency=users)
    if any(reason["code"].startswith(("unsupported", "split")) for reason in got["reasons"]):
        return
    assert (got["max_concurrency"] >= users) == (got["required_gib_per_gpu"] <= got["usable_gib_per_gpu"])


def test_a_prefill_chunk_is_shared_by_the_sequences_of_a_step():
    """16 sequences hold their windows and one chunk, not sixteen chunks."""
    shared = {"model": "google/gemma-3-27b-it", "gpu": "h200-sxm-141gb", "context": 131072, "kv_cache": "bf16"}
    one, many = (answer(**shared, concurrency=n)["breakdown"]["kv_cache_gib"] for n in (1, 16))
    full, sliding, window = 10, 52, 1024
    further = 2 * 16 * 128 * 2 * (full * 131072 + sliding * (window - 1)) / 2**30
    assert (many - one) / 15 == pytest.approx(further, rel=0.05)


@quick
@given(
    st.sampled_from(MODELS),
    st.sampled_from(GPUS),
    st.sampled_from(ENGINES),
    st.integers(1, 256),
    st.integers(64, 16_384),
)
def test_no_rate_above_the_bandwidth_and_compute_ceilings(model, gpu, engine, users, length):
    got = answer(model=model, gpu=gpu, engine=engine, concurrency=users, input_tokens=length, output_tokens=length,
                 context=2 * length)  # fmt: skip
    if got["output_tokens_s"] is None:
        return
    spec, card = known_models()[model], accelerator(gpu)
    read_once = got["weights_gib_per_gpu"] * 2**30 * spec.active_params_b / spec.params_b * 0.5
    if users == 1:
        assert got["output_tokens_s"] <= card.memory_bandwidth_gb_s * 1e9 / read_once
    peak = max(card.fp4_tflops or 0, card.fp8_tflops or 0, card.bf16_tflops or 0) * 1e12
    active = spec.active_params_b * 1e9 - spec.budget.embedding
    assert got["output_tokens_s"] <= peak / (2 * max(active * 0.5, 1))
    assert got["tpot_ms"] > 0
    assert got["ttft_ms"] > 0


@quick
@given(st.sampled_from(MODELS), st.sampled_from(GPUS), st.integers(1024, 200_000))
def test_max_context_and_max_concurrency_agree_with_the_verdict(model, gpu, context):
    got = answer(model=model, gpu=gpu, context=context)
    if got["starts"]:
        assert got["max_context"] >= context
        assert got["max_concurrency"] >= 1
    elif not got["reasons"] or got["reasons"][0]["code"] == "kv_exceeds_memory":
        assert got["max_context"] < context
