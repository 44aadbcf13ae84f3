"""Image and video generation: parts, stages, offload, quantisation, time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.accelerators import accelerator
from planner.estimate import estimate, estimate_line
from planner.media import candidate_media
from planner.media_models import known_media_models
from planner.request import parse_request

FLUX = "black-forest-labs/FLUX.1-dev"


def ask(**keys: Any) -> dict[str, Any]:
    return estimate(parse_request({"workload": "image", "model": FLUX, "gpu": "h100-sxm-80gb", **keys}))


def peak(**keys: Any) -> float:
    return float(ask(**keys)["peak_gib_per_gpu"])


def seconds(**keys: Any) -> float:
    return float(ask(**keys)["seconds_per_item"])


def test_parts_of_flux_are_resident_without_offload() -> None:
    parts = ask()["breakdown"]
    assert parts["denoiser_gib"] == pytest.approx(11.9e9 * 2 / 2**30, rel=0.01)
    assert parts["text_encoder_gib"] == pytest.approx(4.885e9 * 2 / 2**30, rel=0.01)


def test_offload_modes_in_order() -> None:
    resident, model, group, sequential = (peak(offload=o) for o in ("none", "model", "group", "sequential"))
    assert resident > model > group >= sequential
    fast, moved, streamed = (seconds(offload=o) for o in ("none", "model", "sequential"))
    assert fast < moved < streamed


def test_quantising_the_denoiser_makes_it_smaller() -> None:
    assert peak(quant="nf4") < peak(quant="int8") <= peak()
    assert peak(quant="nf4", text_encoder_quant="nf4") < peak(quant="nf4")


def test_int4_without_a_fused_kernel_is_many_times_slower() -> None:
    assert 5 < seconds(quant="int4") / seconds() < 12


def test_fp8_pays_once_compiled() -> None:
    assert seconds(quant="fp8") > seconds() * 0.95
    assert seconds(quant="fp8", compile=True) < 0.85 * seconds(compile=True)


def test_a_second_card_does_not_pool_memory_but_doubles_the_rate() -> None:
    one, two = ask(gpus=1), ask(gpus=2)
    assert one["required_gib_per_gpu"] == two["required_gib_per_gpu"]
    assert two["items_per_hour"] == pytest.approx(2 * one["items_per_hour"], rel=1e-3)
    assert "gpus_do_not_pool" in {reason["code"] for reason in two["reasons"]}


def test_tiling_cuts_the_decoder_peak() -> None:
    video = {"workload": "video", "model": "hunyuanvideo", "width": 768, "height": 512, "frames": 121}
    whole, tiled = ask(**video), ask(**video, vae_tiling=True)
    assert whole["peak_stage"] == "decoder"
    assert tiled["peak_stage"] != "decoder"
    assert tiled["peak_gib_per_gpu"] < whole["peak_gib_per_gpu"] - 10


def test_guidance_and_steps_multiply_time() -> None:
    assert seconds(steps=56) == pytest.approx(2 * seconds(steps=28), rel=0.05)
    assert seconds(model="stabilityai/sdxl-turbo") < seconds(model="sdxl")


def test_attention_makes_long_clips_grow_faster_than_their_length() -> None:
    video = {"workload": "video", "model": "wan2.1-t2v-14b", "width": 832, "height": 480}
    short, long = (seconds(**video, frames=n) for n in (41, 81))
    assert long > 2.3 * short


def test_stated_minimum_is_a_lower_bound() -> None:
    answer = ask(workload="video", model="wan2.2-t2v-a14b", offload="model")
    assert answer["peak_gib_per_gpu"] >= 74
    assert "stated_minimum" in {reason["code"] for reason in answer["reasons"]}


def test_published_failures_are_no() -> None:
    wan = {"workload": "video", "width": 832, "height": 480, "frames": 81}
    assert ask(**wan, model="Wan-AI/Wan2.1-T2V-14B", gpu="l40s-48gb", offload="model")["verdict"] == "no"
    assert ask(**wan, model="wan2.2-i2v-a14b", gpu="a100-sxm-40gb", offload="model")["verdict"] == "no"
    assert ask(model="flux.2-dev")["verdict"] == "no"
    training = {"task": "lora", "gradient_checkpointing": "none"}
    assert ask(**training, gpu="a100-sxm-40gb")["verdict"] == "no"
    assert ask(**training, gpu="a100-sxm-80gb", batch=2, width=512, height=512)["verdict"] == "no"


def test_a_denoiser_given_by_dimensions() -> None:
    answer = ask(model=None, params_b=12.0, layers=57, hidden=3072, heads=24)
    assert answer["peak_gib_per_gpu"] == pytest.approx(peak(), rel=0.1)
    assert answer["confidence"] == "low"


def test_seconds_become_frames() -> None:
    answer = ask(workload="video", model="wan2.1-1.3b", seconds=5)
    assert answer["seconds_per_item"] == pytest.approx(
        seconds(workload="video", model="wan2.1-1.3b", frames=80), rel=1e-3
    )


def test_items_make_hours() -> None:
    answer = ask(items=1000)
    assert answer["hours"] == pytest.approx(answer["seconds_per_item"] / 3.6, rel=1e-3)


def test_unknown_model_names_the_nearest() -> None:
    answer = estimate_line({"workload": "image", "model": "black-forest-labs/FLUX.1-dave", "gpu": "h100-sxm-80gb"})
    assert answer["error"]["code"] == "unknown_model"
    assert FLUX in answer["error"]["suggestions"]


def test_every_known_model_answers() -> None:
    for name, model in known_media_models().items():
        answer = ask(workload=model.kind, model=name)
        assert answer["peak_gib_per_gpu"] > 1
        assert answer["seconds_per_item"] > 0
        assert model.source.startswith("https://")


def test_candidate_is_the_same_answer() -> None:
    request = parse_request({"workload": "image", "model": FLUX, "gpu": "h100-sxm-80gb"})
    found = candidate_media(request, accelerator("h100-sxm-80gb"))
    assert found.verdict == ask()["verdict"]
    assert found.required_gib == pytest.approx(peak(), rel=1e-3)


@settings(max_examples=40, deadline=None)
@given(
    model=st.sampled_from(sorted(known_media_models())),
    batch=st.sampled_from([1, 2, 4]),
    offload=st.sampled_from(["none", "model", "sequential", "group"]),
    tiling=st.booleans(),
)
def test_bigger_batches_need_more(model: str, batch: int, offload: str, tiling: bool) -> None:
    keys = {"model": model, "offload": offload, "vae_tiling": tiling, "workload": known_media_models()[model].kind}
    assert peak(**keys, batch=2 * batch) >= peak(**keys, batch=batch)
    assert peak(**keys, batch=batch) >= peak(**{**keys, "vae_tiling": True}, batch=batch)


def test_a_narrow_precision_is_a_quantised_denoiser() -> None:
    model = {"model": "black-forest-labs/FLUX.1-dev", "gpu": "h100-sxm-80gb"}
    assert peak(**model, precision="fp8") == peak(**model, quant="fp8") < peak(**model)
    assert estimate_line({"workload": "image", **model, "precision": "bf17"})["error"]["code"] == "bad_value"
