"""What must hold for any image, video or audio request."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.accelerators import accelerators
from planner.estimate import estimate_line

PICTURES = ("black-forest-labs/FLUX.1-dev", "black-forest-labs/FLUX.2-dev", "Qwen/Qwen-Image",
            "stabilityai/stable-diffusion-xl-base-1.0")  # fmt: skip
VIDEOS = ("Wan-AI/Wan2.2-T2V-A14B-Diffusers", "hunyuanvideo-community/HunyuanVideo", "genmo/mochi-1-preview")
SOUNDS = ("openai/whisper-large-v3", "facebook/musicgen-medium", "ACE-Step/ACE-Step-v1-3.5B")
many = settings(max_examples=60, deadline=None)


def answer(**keys):
    got = estimate_line(keys)
    assert "error" not in got, got
    return got


def holds_together(got):
    required, usable = got["required_gib_per_gpu"], got["usable_gib_per_gpu"]
    assert sum(got["breakdown"].values()) == pytest.approx(required, rel=2e-3)
    assert all(part >= 0 for part in got["breakdown"].values())
    assert got["headroom_gib_per_gpu"] == pytest.approx(usable - required, abs=0.02 + 1e-3 * required)
    assert got["starts"] is (got["verdict"] != "no")
    if got["verdict"] == "tight":
        assert required <= usable * 1.0001 <= required * 1.15 * 1.001
    assert got["seconds_per_item"] > 0


@many
@given(
    st.sampled_from(PICTURES + VIDEOS),
    st.sampled_from(sorted(accelerators())),
    st.sampled_from(("none", "model", "sequential", "group")),
    st.sampled_from(("none", "fp8", "int8", "nf4")),
    st.sampled_from((None, "int8", "nf4")),
    st.sampled_from((512, 1024, 1536)),
)
def test_parts_make_the_sum_for_pictures_and_videos(model, gpu, offload, quant, encoder, size):
    workload = {"workload": "video", "frames": 49} if model in VIDEOS else {"workload": "image"}
    holds_together(
        answer(**workload, model=model, gpu=gpu, offload=offload, quant=quant, text_encoder_quant=encoder,
               width=size, height=size)
    )  # fmt: skip


@many
@given(st.sampled_from(SOUNDS), st.sampled_from(sorted(accelerators())), st.sampled_from((30, 600, 3600)))
def test_parts_make_the_sum_for_sound(model, gpu, seconds):
    task = "transcribe" if "whisper" in model else "generate"
    holds_together(answer(workload="audio", model=model, gpu=gpu, seconds=seconds, task=task))


def test_an_encoder_read_in_four_bits_does_not_pass_through_the_card_in_16():
    """12B encoder of 44.7 GiB in 16 bit: with nf4 it never is there, while the denoiser arrives whole."""
    shared = {"workload": "image", "model": "black-forest-labs/FLUX.2-dev", "gpu": "h200-sxm-141gb", "quant": "fp8"}
    plain, lean = answer(**shared), answer(**shared, text_encoder_quant="nf4")
    assert plain["peak_stage"] == lean["peak_stage"] == "loading"
    assert plain["required_gib_per_gpu"] == pytest.approx(105.4, abs=0.5)
    assert lean["required_gib_per_gpu"] == pytest.approx(60.0 + 13.2 + 0.16 + 0.5, abs=0.5)
