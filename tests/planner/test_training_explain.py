"""The explanation carries the numbers of the answer, and sources."""

import pytest

from planner.estimate import estimate
from planner.media_explain import explain_media
from planner.request import parse_request
from planner.training_explain import explain_training


@pytest.mark.parametrize("workload", ["lora", "qlora", "full", "pretrain"])
def test_training_lines_hold_the_answer(workload: str) -> None:
    request = parse_request({"workload": workload, "model": "meta-llama/Llama-3.1-8B-Instruct",
                             "gpu": "h100-sxm-80gb", "gpus": 8, "tokens": 1e9})  # fmt: skip
    text = "\n".join(explain_training(request))
    answer = estimate(request)
    assert f"{answer['peak_gib_per_gpu']:.2f} GiB of" in text
    assert f"{answer['hours']:.2f} h" in text
    assert text.count("https://") >= 4


@pytest.mark.parametrize(
    ("workload", "model"), [("image", "flux"), ("video", "wan2.1-14b"), ("audio", "openai/whisper-large-v3")]
)
def test_media_lines_hold_the_answer(workload: str, model: str) -> None:
    request = parse_request({"workload": workload, "model": model, "gpu": "h100-sxm-80gb"})
    text = "\n".join(explain_media(request))
    answer = estimate(request)
    assert f"{answer['peak_gib_per_gpu']:.2f} GiB" in text
    assert f"{answer['seconds_per_item']:.4g} s" in text
    assert "https://" in text
