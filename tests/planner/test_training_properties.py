"""What must hold for any training request."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.accelerators import accelerator, accelerators
from planner.estimate import estimate_line
from planner.models import known_models

MODELS = sorted(known_models())
CARDS = sorted(accelerators())
many = settings(max_examples=80, deadline=None)
WAYS = {
    "lora": {},
    "qlora": {"quant": "nf4"},
    "full": {"strategy": "fsdp"},
    "pretrain": {"strategy": "zero1"},
}


def answer(**keys):
    got = estimate_line(keys)
    assert "error" not in got, got
    return got


def has_precision(got):
    return "precision_unsupported" not in {reason["code"] for reason in got["reasons"]}


requests = st.builds(
    dict,
    workload=st.sampled_from(sorted(WAYS)),
    model=st.sampled_from(MODELS),
    gpus=st.sampled_from((1, 2, 4, 8)),
    sequence_length=st.sampled_from((512, 4096, 32_768)),
    micro_batch=st.sampled_from((1, 4)),
    gradient_checkpointing=st.sampled_from(("none", "selective", "full")),
)


@many
@given(requests, st.sampled_from(CARDS))
def test_parts_make_the_sum_and_the_verdict_follows_from_it(request, gpu):
    got = answer(**request, **WAYS[request["workload"]], gpu=gpu, tokens=1e7)
    required, usable = got["required_gib_per_gpu"], got["usable_gib_per_gpu"]
    assert sum(got["breakdown"].values()) == pytest.approx(required, rel=2e-3)
    assert got["headroom_gib_per_gpu"] == pytest.approx(usable - required, abs=0.02 + 1e-3 * required)
    assert got["starts"] is (got["verdict"] != "no")
    if has_precision(got):
        expected = "no" if required > usable else "tight" if required * 1.15 > usable else "fits"
        assert got["verdict"] == expected or abs(required - usable) < 0.01 * usable
    assert 0 < got["mfu"] <= 1
    assert got["hours"] == pytest.approx(1e7 / got["tokens_s_per_gpu"] / got["gpus"] / 3600, rel=1e-3)


@many
@given(requests, st.sampled_from(CARDS), st.sampled_from(CARDS))
def test_a_bigger_card_of_the_same_maker_never_turns_fits_into_no(request, one, other):
    small, big = sorted((accelerator(one), accelerator(other)), key=lambda card: card.memory_gib_usable)
    if small.vendor != big.vendor:
        return
    shared = {**request, **WAYS[request["workload"]]}
    if answer(**shared, gpu=small.gpu)["verdict"] == "fits":
        got = answer(**shared, gpu=big.gpu)
        assert got["verdict"] != "no" or not has_precision(got)
