"""The speed laws keep to physics."""

import pytest

from planner.estimate import estimate_line
from planner.speed import coefficients, touched_share


def answer(**keys):
    return estimate_line({"workload": "serve", **keys})


LLAMA_70B = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "weights": "fp8",
    "input_tokens": 1024,
    "output_tokens": 1024,
}


def test_every_coefficient_is_positive_and_sourced():
    from planner.datafiles import data_rows

    for row in data_rows("speed.csv"):
        assert float(row["value"]) > 0, row
        assert row["source"], row
    for name, value in coefficients().items():
        if name.startswith(("bandwidth_", "prefill_mfu", "decode_mfu")):
            assert value <= 1, name


def test_experts_touched_grow_from_the_routed_share_to_all():
    assert touched_share(8 / 256, 1) == pytest.approx(8 / 256)
    assert touched_share(8 / 256, 32) == pytest.approx(1 - (1 - 8 / 256) ** 32)
    assert touched_share(8 / 256, 1e4) == pytest.approx(1)
    assert touched_share(1.0, 3) == 1


def test_more_bandwidth_is_faster_for_a_model_that_streams():
    h100 = answer(**LLAMA_70B, gpu="h100-sxm-80gb", gpus=2, tp=2)
    h200 = answer(**LLAMA_70B, gpu="h200-sxm-141gb", gpus=2, tp=2)
    assert h200["tpot_ms"] < h100["tpot_ms"]


def test_tensor_parallelism_shortens_a_step_by_less_than_its_width():
    one = answer(**LLAMA_70B, gpu="h200-sxm-141gb")
    four = answer(**LLAMA_70B, gpu="h200-sxm-141gb", gpus=4, tp=4)
    assert one["tpot_ms"] / 4 < four["tpot_ms"] < one["tpot_ms"]


def test_replicas_over_pcie_beat_a_split():
    """Prompts of 8,192 tokens: all-reduce over PCIe 4 costs more than a fourth of the weights saves."""
    shared = {"model": "Qwen/Qwen3-8B", "gpu": "l40s-48gb", "gpus": 4, "input_tokens": 8192, "output_tokens": 128}
    split = answer(**shared, concurrency=32, context=8320, tp=4)
    copies = answer(**shared, concurrency=32, context=8320, tp=1, dp=4)
    stages = answer(**shared, concurrency=32, context=8320, tp=1, pp=4)
    assert copies["output_tokens_s"] > split["output_tokens_s"]
    assert stages["output_tokens_s"] > split["output_tokens_s"]


def test_concurrency_raises_the_rate_and_the_time_per_token():
    rates, times = [], []
    for users in (1, 4, 16, 64):
        got = answer(**LLAMA_70B, gpu="h200-sxm-141gb", gpus=4, tp=4, concurrency=users)
        rates.append(got["output_tokens_s"])
        times.append(got["tpot_ms"])
    assert rates == sorted(rates)
    assert times == sorted(times)


def test_a_shared_prefix_shortens_the_first_token():
    plain = answer(**LLAMA_70B, gpu="h200-sxm-141gb", concurrency=8)
    cached = answer(**LLAMA_70B, gpu="h200-sxm-141gb", concurrency=8, prefix_cache_share=0.8)
    assert cached["ttft_ms"] < plain["ttft_ms"]
    assert cached["breakdown"]["kv_cache_gib"] < plain["breakdown"]["kv_cache_gib"]
    assert any("prefix" in line for line in cached["assumptions"])


def test_accepted_drafts_divide_the_step():
    plain = answer(**LLAMA_70B, gpu="h200-sxm-141gb")
    fast = answer(**LLAMA_70B, gpu="h200-sxm-141gb", speculative_factor=2.0)
    assert fast["tpot_ms"] == pytest.approx(plain["tpot_ms"] / 2, rel=0.01)
    assert any("speculative" in line for line in fast["assumptions"])


def test_images_lengthen_the_prompt():
    shared = {"model": "google/gemma-3-27b-it", "gpu": "h100-sxm-80gb", "input_tokens": 512, "output_tokens": 128}
    assert answer(**shared, images_per_request=4)["ttft_ms"] > answer(**shared)["ttft_ms"]


def test_pcie_makes_the_link_the_limit():
    got = answer(**LLAMA_70B, gpu="l40s-48gb", gpus=8, tp=8, concurrency=32)
    assert got["bottleneck"] == "interconnect"
    assert answer(**LLAMA_70B, gpu="h200-sxm-141gb")["bottleneck"] == "bandwidth"


def test_a_card_without_published_bandwidth_gets_memory_but_no_speed():
    got = answer(model="Qwen/Qwen3-8B", gpu="max-1100-48gb", engine="llama.cpp", weights="gguf:Q4_K_M")
    assert got["weights_gib_per_gpu"] > 4
    assert got["confidence"] == "low"
