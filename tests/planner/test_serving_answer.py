"""The answer object, its assumptions and its errors."""

import json

import pytest

from planner.estimate import estimate_line
from planner.explain import explain_lines
from planner.request import parse_request

KEYS = {
    "workload", "model", "gpu", "gpus", "starts", "verdict", "required_gib_per_gpu", "usable_gib_per_gpu",
    "headroom_gib_per_gpu", "breakdown", "bottleneck", "confidence", "assumptions", "reasons", "weights_gib_per_gpu",
    "kv_bytes_per_token", "kv_cache_gib_per_gpu", "kv_cache_tokens", "max_context", "max_concurrency", "tpot_ms",
    "ttft_ms", "output_tokens_s", "output_tokens_s_per_gpu",
}  # fmt: skip
PLAIN = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm-80gb"}


def test_keys_and_json():
    got = estimate_line({**PLAIN, "id": "x1"})
    assert got.keys() >= KEYS
    assert got["id"] == "x1"
    assert json.loads(json.dumps(got)) == got
    parts = sum(got["breakdown"].values())
    assert parts == pytest.approx(got["required_gib_per_gpu"], rel=1e-3)
    assert got["usable_gib_per_gpu"] - got["required_gib_per_gpu"] == pytest.approx(
        got["headroom_gib_per_gpu"], rel=1e-2
    )


def test_defaults_are_echoed():
    said = " ".join(estimate_line(PLAIN)["assumptions"])
    for word in ("context 8192", "concurrency 1", "input_tokens 6144, output_tokens 2048", "vllm", "kv_cache bf16"):
        assert word in said


def test_batch_answers_as_serve_does():
    serve, batch = estimate_line(PLAIN), estimate_line({**PLAIN, "workload": "batch"})
    assert batch["output_tokens_s"] == serve["output_tokens_s"]
    assert batch["workload"] == "batch"


def test_a_family_is_planned_on_the_least_of_its_kin():
    family = estimate_line({**PLAIN, "gpu": "h100"})
    assert family["gpu"] == "h100"
    assert any("h100-pcie-80gb" in line and "h100-sxm-80gb" in line for line in family["assumptions"])
    assert family["confidence"] == "low"
    for gpu in ("h100-pcie-80gb", "h100-sxm-80gb", "h100-nvl-94gb"):
        assert family["output_tokens_s"] <= estimate_line({**PLAIN, "gpu": gpu})["output_tokens_s"]


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"gpu": None}, "missing_key"),
        ({"gpu": "h1000-sxm"}, "unknown_gpu"),
        ({"model": "Qwen/Qwen9-1000B"}, "unknown_model"),
        ({"weights": "fp7"}, "unknown_format"),
        ({"kv_cache": "fp7"}, "unknown_kv_cache"),
        ({"gpus": 4, "tp": 3}, "inconsistent_layout"),
        ({"contxt": 4096}, "unknown_key"),
    ],
)
def test_faults_come_back_inline(keys, code):
    got = estimate_line({**PLAIN, **keys, "id": 7})
    assert got["id"] == 7
    assert got["error"]["code"] == code
    assert got["error"]["message"]


def test_illegal_and_unsupported_are_answers_not_faults():
    split = estimate_line({**PLAIN, "gpus": 3, "tp": 3})
    assert (split["starts"], split["verdict"]) == (False, "no")
    assert split["reasons"][0]["code"] == "split_illegal"
    assert split["tpot_ms"] is None
    fp8 = estimate_line({**PLAIN, "gpu": "v100-sxm-32gb", "weights": "fp8"})
    assert fp8["reasons"][0]["code"] == "unsupported_format"
    assert fp8["reasons"][0]["values"]["nearest"]


def test_fall_backs_are_named():
    assert any(
        "fp16" in line for line in estimate_line({**PLAIN, "gpu": "v100-sxm-32gb", "weights": "bf16"})["assumptions"]
    )
    assert any(
        "weight-only" in line for line in estimate_line({**PLAIN, "gpu": "a100", "weights": "fp8"})["assumptions"]
    )


def test_adapters_take_memory():
    plain, adapted = estimate_line(PLAIN), estimate_line({**PLAIN, "lora_adapters": 8, "lora_rank": 64})
    assert adapted["breakdown"]["lora_gib"] > 1
    assert adapted["kv_cache_tokens"] < plain["kv_cache_tokens"]


def test_the_explanation_shows_the_arithmetic_of_the_answer():
    request = {**PLAIN, "concurrency": 4}
    got = estimate_line(request)
    text = "\n".join(explain_lines(parse_request(request)))
    assert f"= {got['required_gib_per_gpu']:.3f} GiB" in text
    assert f"{got['kv_bytes_per_token']:.0f} bytes a token" in text
    for part in ("weights:", "cache:", "graphs:", "decode step", "prefill of", "data/speed.csv"):
        assert part in text


def test_the_explanation_of_what_cannot_be_built_has_no_speed():
    text = "\n".join(explain_lines(parse_request({**PLAIN, "gpus": 3, "tp": 3})))
    assert "speed: not computed" in text


def test_more_gpus_than_a_machine_holds_span_several():
    model = {"workload": "serve", "model": "deepseek-ai/DeepSeek-V3", "weights": "fp8", "tp": 16, "gpus": 16}
    spread = estimate_line({**model, "gpu": "h100-sxm-80gb"})
    assert spread["starts"] is True
    assert any("2 machines" in line for line in spread["assumptions"])
    assert spread["confidence"] == "low"
    rack = estimate_line({**model, "gpu": "gb200-186gb"})
    assert not any("machines" in line for line in rack["assumptions"])
    assert any("ARM host" in line for line in rack["assumptions"])


def test_llama_cpp_says_how_many_layers_would_stay_on_the_card():
    got = estimate_line({"workload": "serve", "model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "rtx-4090-24gb",
                         "engine": "llama.cpp", "weights": "gguf:Q4_K_M", "context": 4096})  # fmt: skip
    assert (got["starts"], got["verdict"]) == (False, "no")
    assert [reason["code"] for reason in got["reasons"]] == ["weights_exceed_memory"]
    assert 30 <= got["reasons"][0]["values"]["layers_on_gpu"] <= 45


@pytest.mark.parametrize(
    ("name", "gib", "gb_s"),
    [
        ("H100 MIG 1g.10gb", 10, 3350 / 8),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40, 2039 / 2),
        ("nvidia-h200-1g.18gb", 18, 4800 / 8),
        ("NVIDIA A10-12Q", 12, 300),
    ],
)
def test_a_slice_has_its_own_memory_and_its_share_of_bandwidth(name, gib, gb_s):
    small = {"workload": "serve", "model": "Qwen/Qwen3-0.6B", "gpu": name, "context": 1024}
    got = estimate_line(small)
    assert got["usable_gib_per_gpu"] < gib
    assert got["output_tokens_s"] < gb_s * 1e9 / (got["weights_gib_per_gpu"] * 2**30)
    assert any(name in text and "of a GPU" in text for text in got["assumptions"])
    assert estimate_line({**small, "model": "Qwen/Qwen3-32B"})["verdict"] == "no"


def test_a_slice_of_unstated_size_is_asked_back():
    got = estimate_line({"workload": "serve", "model": "Qwen/Qwen3-0.6B", "gpu": "H100 MIG"})
    assert "unstated size" in got["error"]["message"]


def test_what_does_not_run_is_not_short_of_memory():
    small = {"workload": "serve", "model": "meta-llama/Llama-3.2-1B-Instruct", "context": 2048}
    for keys in (
        {"engine": "tensorrt-llm", "gpu": "mi300x-192gb"},
        {"engine": "llama.cpp", "weights": "awq", "gpu": "l4-24gb"},
        {"tp": 3, "gpus": 3, "gpu": "l4-24gb"},
    ):
        got = estimate_line({**small, **keys})
        assert (got["verdict"], got["bottleneck"]) == ("no", None)
    too_big = estimate_line(
        {**small, "model": "Qwen/Qwen3-32B", "engine": "tensorrt-llm", "gpu": "radeon-rx-7900-xtx-24gb"}
    )
    assert too_big["bottleneck"] == "capacity"
    unfit = estimate_line({"workload": "lora", "model": "Qwen/Qwen3-0.6B", "gpu": "t4-16gb", "precision": "bf16"})
    assert (unfit["verdict"], unfit["bottleneck"]) == ("no", None)


def test_an_encoder_is_bound_by_the_engines_limits_alone():
    config = {"model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
              "intermediate_size": 4096, "vocab_size": 30522, "max_position_embeddings": 512}  # fmt: skip
    got = estimate_line({"workload": "serve", "model": config, "gpu": "l4-24gb", "context": 512})
    assert got["verdict"] == "fits"
    assert got["kv_bytes_per_token"] == 0
    assert got["max_context"] == 512
    assert got["max_concurrency"] == 256


@pytest.mark.parametrize(
    ("model", "form", "gib"),
    [
        ("google/gemma-3-4b-it", "gguf:Q4_K_M", 2.31),  # https://github.com/ggml-org/llama.cpp/pull/22790
        ("google/gemma-3-12b-it", "gguf:Q8_0", 11.65),
        ("google/gemma-3-27b-it", "gguf:Q4_K_M", 15.4),
    ],
)
def test_llama_cpp_loads_the_image_tower_only_for_images(model, form, gib):
    asked = {"workload": "serve", "model": model, "gpu": "l40s-48gb", "engine": "llama.cpp", "weights": form}
    text, images = estimate_line(asked), estimate_line({**asked, "images_per_request": 1})
    assert text["weights_gib_per_gpu"] == pytest.approx(gib, rel=0.04)
    assert images["weights_gib_per_gpu"] > text["weights_gib_per_gpu"] + 0.7
    assert any("mmproj" in said for said in text["assumptions"])
