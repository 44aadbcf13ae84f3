"""Speed of training: arithmetic, links, pipeline, job length and checkpoints."""

from typing import Any

import pytest

from catalog.accelerators import accelerator
from planner.estimate import estimate, estimate_line
from planner.models import model_spec
from planner.request import parse_request
from planner.training import TrainingFit, TrainingRefusal, candidate_fit
from planner.training_checkpoints import checkpoint_interval_h
from planner.training_job import TrainingJob, resolve_job
from planner.training_time import attention_flops, compute_params, training_time

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"


def request_of(**keys: Any) -> dict[str, Any]:
    return {"workload": "full", "model": LLAMA_8B, "gpu": "h100-sxm-80gb", "gpus": 8, "precision": "bf16", **keys}


def job_of(**keys: Any) -> TrainingJob:
    raw = request_of(**keys)
    request = parse_request(raw)
    return resolve_job(request, model_spec(request), accelerator(raw["gpu"]))


def codes(**keys: Any) -> set[str]:
    return {reason["code"] for reason in estimate(parse_request(request_of(**keys)))["reasons"]}


def test_the_embedding_lookup_is_no_arithmetic() -> None:
    assert compute_params(job_of()) == pytest.approx(8.03e9 - 128256 * 4096, rel=0.01)


def test_attention_is_causal_and_quadratic() -> None:
    short, long = attention_flops(job_of(sequence_length=2048)), attention_flops(job_of(sequence_length=4096))
    assert short == pytest.approx(32 * 4 * 1024 * 4096)
    assert long == pytest.approx(2 * short)


def test_mfu_and_tflops_agree_and_stay_below_the_peak() -> None:
    speed = training_time(job_of(sequence_length=4096, micro_batch=4))
    assert speed.tflops_per_gpu == pytest.approx(speed.mfu * 989)
    assert 0.1 < speed.mfu < 0.8


def test_full_recompute_costs_a_forward_pass() -> None:
    none = training_time(job_of(gradient_checkpointing="none")).compute_s
    full = training_time(job_of(gradient_checkpointing="full")).compute_s
    assert full / none == pytest.approx(4 / 3, rel=0.05)


def test_frozen_weights_need_no_weight_gradients() -> None:
    keys = {"gpus": 1, "gradient_checkpointing": "none", "framework": "megatron"}
    full, lora = (training_time(job_of(**keys, workload=w)).compute_s for w in ("full", "lora"))
    assert lora / full == pytest.approx(2 / 3, rel=0.05)


def test_unpacking_a_quantised_base_costs_most_at_short_sequences() -> None:
    def ratio(length: int) -> float:
        keys = {"gpus": 1, "sequence_length": length, "gpu": "a100-sxm-80gb"}
        lora, qlora = (training_time(job_of(**keys, workload=w)).tokens_s_per_gpu for w in ("lora", "qlora"))
        return lora / qlora

    assert 1.0 < ratio(8192) < ratio(512) < 1.6


def test_accumulation_changes_the_step_not_the_rate_on_one_gpu() -> None:
    one, eight = (training_time(job_of(gpus=1, grad_accum=n)) for n in (1, 8))
    assert eight.seconds_per_step == pytest.approx(8 * one.seconds_per_step)
    assert eight.tokens_s_per_gpu == pytest.approx(one.tokens_s_per_gpu)


def test_pcie_is_slower_than_nvlink_for_a_sharded_job() -> None:
    fast, slow = (training_time(job_of(interconnect=i, micro_batch=1)).tokens_s_per_gpu for i in ("nvlink", "pcie"))
    assert slow < fast
    assert "interconnect_bound" in codes(interconnect="pcie", micro_batch=1, sequence_length=512)


def test_more_micro_batches_fill_the_pipeline() -> None:
    few, many = (training_time(job_of(framework="megatron", pp=4, grad_accum=n)).mfu for n in (4, 64))
    assert many > few


def test_fp8_is_faster_and_attains_less_of_its_peak() -> None:
    keys = {"framework": "megatron", "sequence_length": 4096, "micro_batch": 2}
    bf16, fp8 = (training_time(job_of(**keys, precision=p)) for p in ("bf16", "fp8"))
    assert fp8.tokens_s_per_gpu > 1.2 * bf16.tokens_s_per_gpu
    assert fp8.mfu < bf16.mfu


def test_hours_from_tokens_or_examples() -> None:
    by_tokens = estimate(parse_request(request_of(tokens=1e9)))
    by_examples = estimate(parse_request(request_of(examples=250_000, tokens_per_example=2000, epochs=2)))
    assert by_tokens["hours"] == pytest.approx(by_examples["hours"])
    assert by_tokens["hours"] == pytest.approx(1e9 / by_tokens["tokens_s_per_gpu"] / 8 / 3600, rel=1e-3)
    assert estimate(parse_request(request_of()))["hours"] is None


def test_checkpoint_holds_weights_and_states_or_adapters_only() -> None:
    full = estimate(parse_request(request_of()))["checkpoint_gib"]
    lora = estimate(parse_request(request_of(workload="lora")))["checkpoint_gib"]
    assert full == pytest.approx(14 * 8.03e9 / 2**30, rel=0.01)
    assert lora < 1


def test_young_interval() -> None:
    assert checkpoint_interval_h(60, 24) == pytest.approx(0.894, rel=0.01)


def test_several_nodes_say_what_they_assume() -> None:
    found = codes(gpus=16, nodes=2)
    assert {"fabric_assumed", "needs_shared_storage"} <= found
    assert "fabric_assumed" not in codes(gpus=8)
    said = estimate(parse_request(request_of(gpus=16)))["assumptions"]
    assert "nodes 2" in said
    assert any(line.startswith("fabric 400 GB/s") for line in said)


def test_a_candidate_on_an_unknown_fabric_is_refused() -> None:
    request = parse_request(request_of())
    model, card = model_spec(request), accelerator("h100-sxm-80gb")
    refused = candidate_fit(request, model, card, gpus=16, nodes=2)
    assert isinstance(refused, TrainingRefusal)
    assert refused.code == "fabric_unknown"
    slow = candidate_fit(request, model, card, gpus=16, nodes=2, fabric_gb_s=12.5)
    fast = candidate_fit(request, model, card, gpus=16, nodes=2, fabric_gb_s=400.0)
    assert isinstance(slow, TrainingFit)
    assert isinstance(fast, TrainingFit)
    assert slow.time.tokens_s_per_gpu < fast.time.tokens_s_per_gpu


def test_a_layout_that_does_not_divide_is_an_error() -> None:
    answer = estimate_line(request_of(gpus=8, tp=3))
    assert answer["error"]["code"] == "bad_layout"


def test_an_ambiguous_card_is_planned_on_its_weakest_kind() -> None:
    family = estimate(parse_request(request_of(gpu="a100")))
    small = estimate(parse_request(request_of(gpu="a100-pcie-40gb")))
    assert family["usable_gib_per_gpu"] <= small["usable_gib_per_gpu"]
    assert family["gpu"] == "a100"
    assert "gpu_ambiguous" in {reason["code"] for reason in family["reasons"]}


def test_answer_has_the_public_keys() -> None:
    answer = estimate(parse_request(request_of(tokens=1e9)))
    assert {
        "workload", "model", "gpu", "gpus", "starts", "verdict", "required_gib_per_gpu", "usable_gib_per_gpu",
        "headroom_gib_per_gpu", "breakdown", "bottleneck", "confidence", "assumptions", "reasons", "peak_gib_per_gpu",
        "tokens_s_per_gpu", "tflops_per_gpu", "mfu", "seconds_per_step", "hours", "checkpoint_gib",
    } <= set(answer)  # fmt: skip
    parts = sum(answer["breakdown"].values())
    assert parts == pytest.approx(answer["required_gib_per_gpu"], rel=1e-3)
    assert answer["verdict"] in {"fits", "tight", "no"}
    assert answer["starts"] is (answer["verdict"] != "no")


def test_precision_a_card_lacks_is_said() -> None:
    assert "precision_unsupported" in codes(gpu="t4-16gb", precision="bf16", workload="qlora", gpus=1)
    assert "precision_unsupported" in codes(gpu="a100-sxm-80gb", precision="fp8")


@pytest.mark.parametrize(
    ("keys", "published"),
    [
        # https://github.com/pytorch/torchtitan/blob/main/docs/performance.md, not compiled; H100 with 96 GB at 2.4 TB/s
        ({"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "a100-sxm-80gb", "gpus": 64}, 2973),
        ({"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "a100-sxm-80gb", "gpus": 64, "checkpointing": "full"},
         331),
        ({"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm-96gb", "gpus": 8, "micro_batch": 2}, 5762),
        ({"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm-96gb", "gpus": 128, "micro_batch": 2}, 5605),
        ({"model": "meta-llama/Llama-3.1-405B-Instruct", "gpu": "h100-sxm-96gb", "gpus": 128, "tp": 8,
          "micro_batch": 2, "checkpointing": "full"}, 109),
    ],
)  # fmt: skip
def test_modules_run_one_by_one_without_adapters(keys, published):
    request = {"workload": "pretrain", "framework": "torchtitan", "strategy": "fsdp", "sequence_length": 8192,
               "precision": "bf16", "micro_batch": 1, **keys}  # fmt: skip
    request["gradient_checkpointing"] = request.pop("checkpointing", "selective")
    assert estimate(parse_request(request))["tokens_s_per_gpu"] == pytest.approx(published, rel=0.15)


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp8", "fp32"])
@pytest.mark.parametrize("framework", ["plain", "transformers", "unsloth", "torchtune", "litgpt"])
def test_training_all_weights_is_never_faster_than_adapters(precision, framework):
    keys = {"model": "Qwen/Qwen3-8B", "gpu": "h100-sxm-80gb", "precision": precision, "framework": framework}
    rates = [estimate(parse_request({"workload": w, **keys}))["tokens_s_per_gpu"] for w in ("lora", "full")]
    assert rates[0] >= rates[1]


def test_no_share_of_peak_above_it_in_fp32():
    keys = {"workload": "full", "model": "Qwen/Qwen3-14B", "gpu": "tpu-v5e-16gb", "gpus": 16, "framework": "maxtext",
            "sequence_length": 32768, "precision": "fp32", "gradient_checkpointing": "none"}  # fmt: skip
    assert estimate(parse_request(keys))["mfu"] < 1
