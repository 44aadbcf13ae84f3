"""Memory of training: states, sharding, activations, and the orderings that must always hold."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.accelerators import accelerator
from planner.estimate import estimate
from planner.models import model_spec
from planner.request import RequestError, parse_request
from planner.training_activations import activations
from planner.training_adapters import adapter_params, target_modules
from planner.training_formats import canonical_optimizer, state_bytes
from planner.training_frameworks import frameworks
from planner.training_job import TrainingJob, resolve_job
from planner.training_memory import training_memory

GIB = 2**30
LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"


def job_of(**keys: Any) -> TrainingJob:
    raw = {"workload": "full", "model": LLAMA_8B, "gpu": "h100-sxm-80gb", "gpus": 8, "precision": "bf16", **keys}
    request = parse_request(raw)
    return resolve_job(request, model_spec(request), accelerator(raw["gpu"]))


def peak(**keys: Any) -> float:
    return training_memory(job_of(**keys)).peak


def verdict(**keys: Any) -> str:
    raw = {"workload": "qlora", "gpus": 1, "sequence_length": 512, "micro_batch": 1, **keys}
    return str(estimate(parse_request(raw))["verdict"])


@pytest.mark.parametrize(
    ("regime", "optimizer", "total"),
    [
        ("mixed18", "adamw", 18),
        ("mixed16", "adamw", 16),
        ("amp32", "adamw", 16),
        ("pure16", "adamw", 8),
        ("pure16", "adamw_8bit", 6),
        ("mixed16", "adamw_8bit", 10),
        ("mixed16", "lion", 12),
        ("mixed16", "adafactor", 12),
        ("mixed16", "paged_adamw", 8),
    ],
)
def test_bytes_per_parameter(regime: Any, optimizer: str, total: float) -> None:
    row = state_bytes(regime, optimizer, "bf16")
    assert row.weights + row.gradients + row.optimizer == total


def test_fp32_training_holds_sixteen_bytes() -> None:
    row = state_bytes("pure16", "adamw", "fp32")
    assert (row.weights, row.gradients, row.optimizer) == (4, 4, 8)


def test_optimizer_spellings() -> None:
    assert canonical_optimizer("adamw_torch_fused") == "adamw"
    assert canonical_optimizer("paged-adamw-8bit") == "paged_adamw_8bit"


def test_unknown_optimizer_names_the_nearest() -> None:
    with pytest.raises(Exception, match="adamww") as caught:
        canonical_optimizer("adamww")
    assert "adamw" in caught.value.suggestions  # type: ignore[attr-defined]


def test_adapter_parameters_are_rank_times_inputs_and_outputs() -> None:
    model = job_of().model
    attention = 16 * 32 * ((4096 + 4096) * 2 + (4096 + 1024) * 2)
    feed_forward = 16 * 32 * 3 * (4096 + 14336)
    assert adapter_params(model, 16, "q,k,v,o") == attention
    assert adapter_params(model, 16, "all") == attention + feed_forward
    assert adapter_params(model, 32, "q_proj,v_proj") == 2 * adapter_params(model, 16, "q,v")


def test_lora_targets_are_checked() -> None:
    assert target_modules("c_attn,o_proj") == ("q", "k", "v", "o")
    with pytest.raises(Exception, match="unknown LoRA target"):
        target_modules("q,nonsense")


def test_zero3_states_are_eighteen_bytes_over_the_gpus() -> None:
    memory = training_memory(job_of(strategy="zero3", gpus=8))
    states = memory.weights + memory.gradients + memory.optimizer
    assert states >= 18 * 8.03e9 / 8 / GIB
    assert states <= 18 * 8.03e9 / 8 / GIB + 8


def test_nf4_leaves_embedding_and_head_in_16_bit() -> None:
    memory = training_memory(job_of(workload="qlora", gpus=1, lora_rank=8))
    edges = 2 * 128256 * 4096 * 2.0
    blocks = (8.03e9 - 2 * 128256 * 4096) * 0.5625
    assert memory.weights == pytest.approx((edges + blocks) / GIB, rel=0.02)


def test_fused_experts_are_not_quantised_unless_the_framework_does() -> None:
    keys = {"workload": "qlora", "model": "Qwen/Qwen3-30B-A3B", "gpus": 1}
    plain = training_memory(job_of(**keys))
    unsloth = training_memory(job_of(**keys, framework="unsloth"))
    assert plain.experts_kept_16_bit
    assert not unsloth.experts_kept_16_bit
    assert plain.weights > 2.5 * unsloth.weights


def test_flash_attention_removes_the_quadratic_term() -> None:
    short = [activations(job_of(sequence_length=2048, flash_attention=flag)).layer for flag in (True, False)]
    long = [activations(job_of(sequence_length=4096, flash_attention=flag)).layer for flag in (True, False)]
    assert long[0] == pytest.approx(2 * short[0])
    assert long[1] - long[0] == pytest.approx(4 * (short[1] - short[0]))


def test_chunked_loss_shrinks_the_logits() -> None:
    keys = {"workload": "lora", "gpus": 1, "sequence_length": 8192}
    assert activations(job_of(**keys, chunked_loss=True)).loss < 0.4 * activations(job_of(**keys)).loss


def test_activation_offload_moves_saved_inputs_to_the_host() -> None:
    kept = training_memory(job_of(workload="lora", gpus=1, sequence_length=16384))
    moved = training_memory(job_of(workload="lora", gpus=1, sequence_length=16384, activation_offload=True))
    assert moved.peak < kept.peak
    assert moved.host_per_node > kept.host_per_node


def test_cpu_offload_asks_the_host_for_what_the_gpu_spares() -> None:
    there = training_memory(job_of(strategy="zero3"))
    away = training_memory(job_of(strategy="zero3", cpu_offload=True))
    assert away.optimizer == 0
    assert away.peak < there.peak
    assert away.host_per_node >= 12 * 8.03e9 / GIB


def test_gradient_accumulation_costs_no_memory() -> None:
    assert peak(grad_accum=16) == peak(grad_accum=1)


def test_the_peak_is_a_stage_not_the_sum() -> None:
    job = job_of(workload="lora", gpus=1, sequence_length=8192)
    acts = activations(job)
    assert acts.peak == acts.saved + max(acts.layer, acts.loss)
    assert training_memory(job).stage in {"loss", "backward", "optimizer"}


def test_qlora_of_a_70b_needs_48_gb() -> None:
    assert verdict(model=LLAMA_70B, gpu="rtx-4090-24gb") == "no"
    assert verdict(model=LLAMA_70B, gpu="a100-sxm-40gb") == "no"
    assert verdict(model=LLAMA_70B, gpu="rtx-a6000-48gb") in {"tight", "fits"}
    assert verdict(model=LLAMA_70B, gpu="a100-sxm-80gb") == "fits"


def test_full_tuning_of_an_8b_needs_80_gb_or_several_gpus() -> None:
    one = {"workload": "full", "model": LLAMA_8B, "sequence_length": 2048, "micro_batch": 1, "precision": "bf16"}
    for small in ("rtx-4090-24gb", "rtx-a6000-48gb", "a100-sxm-40gb"):
        assert verdict(**one, gpu=small) == "no"
    assert verdict(**one, gpu="h100-sxm-80gb", framework="torchtune") in {"fits", "tight"}
    assert verdict(**one, gpu="h100-sxm-80gb", gpus=8) == "fits"


SHAPES = st.fixed_dictionaries(
    {
        "model": st.sampled_from([LLAMA_8B, LLAMA_70B, "Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.2-1B-Instruct",
                                  "Qwen/Qwen3-30B-A3B", "google/gemma-3-12b-it"]),
        "sequence_length": st.sampled_from([256, 1024, 4096, 32768]),
        "micro_batch": st.sampled_from([1, 2, 8]),
        "framework": st.sampled_from(sorted({f.name for f in frameworks().values()})),
        "gradient_checkpointing": st.sampled_from(["none", "selective", "full"]),
        "flash_attention": st.booleans(),
        "optimizer": st.sampled_from(["adamw", "adamw_8bit", "lion", "paged_adamw_8bit"]),
    }
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(keys=SHAPES)
def test_qlora_at_most_lora_at_most_full(keys: dict[str, Any]) -> None:
    one = {**keys, "gpus": 1}
    qlora, lora, full = (peak(**one, workload=w) for w in ("qlora", "lora", "full"))
    assert qlora <= lora <= full


@settings(max_examples=60, deadline=None)
@given(keys=SHAPES, gpus=st.sampled_from([2, 4, 8, 64]), method=st.sampled_from(["lora", "qlora", "full"]))
def test_more_sharding_means_less(keys: dict[str, Any], gpus: int, method: str) -> None:
    several = {**keys, "gpus": gpus, "workload": method}
    zero1, zero2, zero3 = (peak(**several, strategy=s) for s in ("zero1", "zero2", "zero3"))
    assert zero3 <= zero2 + 1e-9
    assert zero2 <= zero1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(keys=SHAPES, method=st.sampled_from(["lora", "qlora", "full"]))
def test_more_checkpointing_means_less(keys: dict[str, Any], method: str) -> None:
    base = {k: v for k, v in keys.items() if k != "gradient_checkpointing"}
    none, selective, full = (
        peak(**base, workload=method, gradient_checkpointing=c) for c in ("none", "selective", "full")
    )
    assert full <= selective <= none


@settings(max_examples=60, deadline=None)
@given(
    keys=SHAPES,
    method=st.sampled_from(["lora", "qlora", "full"]),
    strategy=st.sampled_from([None, "ddp", "zero1", "zero2", "zero3", "fsdp"]),
)
def test_more_gpus_never_need_more_each(keys: dict[str, Any], method: str, strategy: str | None) -> None:
    peaks = [peak(**keys, workload=method, strategy=strategy, gpus=n) for n in (1, 2, 4, 8, 16, 64)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(peaks))


@settings(max_examples=40, deadline=None)
@given(keys=SHAPES, method=st.sampled_from(["lora", "full"]))
def test_splitting_the_model_never_needs_more_each(keys: dict[str, Any], method: str) -> None:
    heads = job_of(**keys, workload=method).model.heads
    ways = [tp for tp in (1, 2, 4, 8) if heads % tp == 0]
    layouts = [peak(**{**keys, "framework": "megatron"}, workload=method, gpus=8, tp=tp) for tp in ways]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(layouts))


def test_longer_sequences_and_bigger_batches_need_more() -> None:
    assert peak(sequence_length=8192) > peak(sequence_length=4096)
    assert peak(micro_batch=4) > peak(micro_batch=2)


def test_a_job_can_be_rebuilt_with_another_card() -> None:
    job = job_of()
    assert training_memory(replace(job, accelerator=accelerator("a100-sxm-80gb"))).peak == training_memory(job).peak


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"model": "Qwen/Qwen2.5-32B-Instruct", "gpus": 12, "tp": 6}, "tp = 6 does not divide the 40 attention heads"),
        ({"model": "meta-llama/Llama-3.2-1B-Instruct", "gpus": 32, "pp": 32}, "pp = 32 stages are more than"),
        ({"model": "Qwen/Qwen3-30B-A3B", "gpus": 24, "ep": 24}, "ep = 24 does not divide the 128 experts"),
        ({"gpus": 8, "ep": 8}, "a model without experts"),
    ],
)
def test_splits_that_no_trainer_makes_are_refused(keys: dict[str, Any], word: str) -> None:
    with pytest.raises(RequestError, match=word):
        job_of(**keys)


def test_fp32_activations_take_twice_the_room() -> None:
    keys = {"model": "meta-llama/Llama-3.2-1B-Instruct", "micro_batch": 8, "gpus": 1}
    half, full = (training_memory(job_of(**keys, precision=p)) for p in ("bf16", "fp32"))
    assert full.saved_activations == pytest.approx(2 * half.saved_activations)
    assert full.peak > half.peak


def test_an_unknown_framework_is_named() -> None:
    notes = dict(job_of(framework="unslot").assumptions)
    assert notes["framework"] == "plain: unslot is not known here"
    assert "framework" not in dict(job_of(framework="unsloth").assumptions)
