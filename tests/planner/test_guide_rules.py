"""Rules that buying guides give and engineers know by heart: the fit model must not contradict them."""

import pytest

from planner.estimate import estimate_line

SMALL = "meta-llama/Llama-2-7b-chat-hf"
LARGE = "meta-llama/Llama-3.1-70B-Instruct"
EIGHT = "meta-llama/Llama-3.1-8B-Instruct"
THIRTEEN = {"model_type": "llama", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
            "intermediate_size": 13824, "vocab_size": 32000}  # fmt: skip
YES = {"fits", "tight"}


def verdict(workload="serve", **keys):
    got = estimate_line({"workload": workload, **keys})
    assert "error" not in got, got
    return got["verdict"]


def tuning(workload, gpu, gpus=1, model=EIGHT, **keys):
    shared = {"micro_batch": 1, "gradient_checkpointing": "full", "sequence_length": 2048}
    return verdict(workload, model=model, gpu=gpu, gpus=gpus, **{**shared, **keys})


@pytest.mark.parametrize("gpu", ["rtx-4090-24gb", "rtx-3090-24gb", "l4-24gb", "a10-24gb", "a10g-24gb"])
@pytest.mark.parametrize("model", [SMALL, THIRTEEN, "Qwen/Qwen2.5-14B-Instruct"])
@pytest.mark.parametrize(("weights", "engine"), [("awq", "vllm"), ("int8", "vllm"), ("gguf:Q4_K_M", "llama.cpp")])
def test_a_quantised_7b_or_13b_fits_one_24_gb_card(gpu, model, weights, engine):
    assert verdict(model=model, gpu=gpu, weights=weights, engine=engine, context=4096) == "fits"


@pytest.mark.parametrize("gpu", ["a100-sxm-80gb", "h100-sxm-80gb", "h100-pcie-80gb"])
def test_a_70b_in_bf16_needs_more_than_one_80_gb_card(gpu):
    assert verdict(model=LARGE, gpu=gpu, weights="bf16", context=2048) == "no"
    assert verdict(model=LARGE, gpu=gpu, gpus=4, weights="bf16", context=2048) == "fits"


def test_a_70b_in_four_bits_fits_one_80_gb_card_and_in_8_bit_a_141_gb_card():
    assert verdict(model=LARGE, gpu="a100-sxm-80gb", weights="awq") == "fits"
    assert verdict(model=LARGE, gpu="h200-sxm-141gb", weights="fp8") == "fits"


def test_at_long_contexts_the_cache_of_a_70b_outgrows_its_weights():
    shared = {"workload": "serve", "model": LARGE, "gpu": "h100-sxm-80gb", "gpus": 4, "weights": "fp8"}
    short = estimate_line({**shared, "context": 4096, "concurrency": 8})
    long = estimate_line({**shared, "context": 131072, "concurrency": 8})
    assert short["breakdown"]["kv_cache_gib"] < short["breakdown"]["weights_gib"]
    assert long["breakdown"]["kv_cache_gib"] > 2 * long["breakdown"]["weights_gib"]
    assert (short["verdict"], long["verdict"]) == ("fits", "no")


@pytest.mark.parametrize(
    ("model", "gpu", "expected"),
    [
        ("deepseek-ai/DeepSeek-V3", "h100-sxm-80gb", {"no"}),
        ("deepseek-ai/DeepSeek-V3", "h200-sxm-141gb", YES),
        ("Qwen/Qwen3-235B-A22B", "h100-sxm-80gb", YES),
        ("moonshotai/Kimi-K2-Instruct", "h100-sxm-80gb", {"no"}),
        ("moonshotai/Kimi-K2-Instruct", "h200-sxm-141gb", {"no"}),  # its makers start at 16
        ("moonshotai/Kimi-K2-Instruct", "b200-sxm-180gb", YES),
        ("zai-org/GLM-4.6", "h100-sxm-80gb", YES),
    ],
)
def test_a_frontier_mixture_of_experts_in_8_bit_on_one_node_of_eight(model, gpu, expected):
    assert verdict(model=model, gpu=gpu, gpus=8, weights="fp8", context=32768) in expected


@pytest.mark.parametrize("framework", ["transformers", "unsloth", "torchtune"])
def test_qlora_of_a_70b_is_too_much_for_24_gb(framework):
    assert tuning("qlora", "rtx-4090-24gb", model=LARGE, quant="nf4", sequence_length=512, framework=framework) == "no"


@pytest.mark.parametrize("gpu", ["rtx-a6000-48gb", "rtx-6000-ada-48gb"])
def test_qlora_of_a_70b_just_fits_48_gb_with_short_sequences(gpu):
    assert tuning("qlora", gpu, model=LARGE, quant="nf4", sequence_length=512) in YES


def test_qlora_of_a_70b_on_48_gb_with_ecc_needs_lean_kernels():
    lean = {"model": LARGE, "quant": "nf4", "sequence_length": 512, "framework": "unsloth"}
    assert tuning("qlora", "l40s-48gb", **lean) in YES
    assert tuning("qlora", "a100-sxm-80gb", **lean) == "fits"


def test_full_tuning_of_an_8b_needs_the_80_gb_class_or_several_cards():
    assert tuning("full", "rtx-4090-24gb") == "no"
    assert tuning("full", "l40s-48gb", optimizer="paged_adamw_8bit") == "no"
    assert tuning("full", "h100-sxm-80gb", optimizer="paged_adamw_8bit") in YES
    assert tuning("full", "h100-sxm-80gb", 4, strategy="fsdp") == "fits"
    assert tuning("full", "h200-sxm-141gb") in YES


def test_adapters_of_an_8b_fit_consumer_cards():
    assert tuning("lora", "rtx-4090-24gb") in YES
    assert tuning("qlora", "rtx-4080-16gb", quant="nf4") == "fits"
    assert tuning("lora", "rtx-4080-16gb") == "no"


def test_a_second_card_without_a_split_adds_nothing():
    assert verdict(model=LARGE, gpu="a100-sxm-80gb", gpus=2, dp=2, weights="bf16", context=2048) == "no"
    assert verdict(model=LARGE, gpu="a100-sxm-80gb", gpus=2, tp=2, weights="bf16", context=2048) in YES


@pytest.mark.parametrize(
    ("gpu", "precision"), [("a100-sxm-80gb", "fp8"), ("v100-sxm-32gb", "bf16"), ("h100-sxm-80gb", "nvfp4")]
)
def test_training_in_a_precision_that_the_chip_lacks_does_not_start(gpu, precision):
    shared = {"workload": "full", "model": "meta-llama/Llama-3.2-1B-Instruct", "gpus": 8, "strategy": "fsdp"}
    got = estimate_line({**shared, "gpu": gpu, "precision": precision})
    assert (got["starts"], got["verdict"]) == (False, "no")
    assert "precision_unsupported" in {reason["code"] for reason in got["reasons"]}
