"""Speech recognition and audio generation: a budget per model, published anchors within 30 %."""

from typing import Any

import pytest

from planner.estimate import estimate, estimate_line
from planner.media_audio import known_audio_models
from planner.request import parse_request

WHISPER = {"task": "transcribe", "precision": "fp16", "gpu": "rtx-3070-ti-8gb", "seconds": 780}


def ask(**keys: Any) -> dict[str, Any]:
    return estimate(parse_request({"workload": "audio", **keys}))


@pytest.mark.parametrize(
    ("keys", "gib"),
    [
        # https://github.com/SYSTRAN/faster-whisper: 13 minutes, large-v2, beam 5, RTX 3070 Ti
        ({**WHISPER, "model": "openai/whisper-large-v2"}, 4.5),
        ({**WHISPER, "model": "openai/whisper-large-v2", "quant": "int8"}, 2.9),
        # makers' statements: https://github.com/ace-step/ACE-Step, YuE, Bark, MusicGen
        ({"model": "ace-step", "gpu": "rtx-4090-24gb", "offload": "model"}, 8.0),
        ({"model": "yue", "gpu": "a100-sxm-80gb", "seconds": 240}, 80.0),
        ({"model": "suno/bark", "gpu": "rtx-4090-24gb"}, 12.0),
        ({"model": "facebook/musicgen-medium", "gpu": "rtx-4090-24gb"}, 16.0),
    ],
)
def test_memory_anchors(keys: dict[str, Any], gib: float) -> None:
    answer = ask(**keys)
    assert answer["peak_gib_per_gpu"] == pytest.approx(gib, rel=0.3)
    assert answer["confidence"] == "low"


@pytest.mark.parametrize(
    ("keys", "seconds"),
    [
        ({**WHISPER, "model": "openai/whisper-large-v2"}, 63.0),
        ({**WHISPER, "model": "openai/whisper-large-v2", "quant": "int8"}, 59.0),
        ({"model": "yue", "gpu": "h800-sxm-80gb", "seconds": 30}, 150.0),
        ({"model": "yue", "gpu": "rtx-4090-24gb", "seconds": 30}, 360.0),
    ],
)
def test_time_anchors(keys: dict[str, Any], seconds: float) -> None:
    assert ask(**keys)["seconds_per_item"] == pytest.approx(seconds, rel=0.3)


def test_each_speech_model_has_its_own_budget() -> None:
    keys = {"gpu": "rtx-3070-8gb", "task": "transcribe", "precision": "fp16", "seconds": 600}
    names = ["tiny", "base", "small", "medium", "large-v3-turbo", "large-v3"]
    peaks = [ask(**keys, model=f"openai/whisper-{name}")["required_gib_per_gpu"] for name in names]
    assert peaks == sorted(peaks)
    assert len(set(peaks)) == len(peaks)


def test_transcription_time_follows_the_minutes() -> None:
    keys = {"gpu": "l4-24gb", "model": "openai/whisper-large-v3", "task": "transcribe"}
    ten, twenty = (ask(**keys, seconds=s)["seconds_per_item"] for s in (600, 1200))
    assert twenty == pytest.approx(2 * ten, rel=1e-3)


def test_turbo_is_faster() -> None:
    keys = {"gpu": "l4-24gb", "task": "transcribe", "seconds": 600}
    turbo, large = (ask(**keys, model=f"openai/whisper-{n}") for n in ("large-v3-turbo", "large-v3"))
    assert turbo["seconds_per_item"] < 0.4 * large["seconds_per_item"]


def test_every_audio_model_answers() -> None:
    for name in known_audio_models():
        answer = ask(model=name, gpu="a100-sxm-80gb")
        assert answer["peak_gib_per_gpu"] > 0.4
        assert answer["seconds_per_item"] > 0


def test_unknown_audio_model() -> None:
    answer = estimate_line({"workload": "audio", "model": "openai/whisper-huge", "gpu": "l4-24gb"})
    assert answer["error"]["code"] == "unknown_model"
    assert answer["error"]["suggestions"]


def test_a_narrow_precision_names_the_weights() -> None:
    plain = {"model": "openai/whisper-large-v3", "seconds": 600}
    eight = estimate_line({"workload": "audio", "gpu": "l4-24gb", **plain, "precision": "int8"})
    half = estimate_line({"workload": "audio", "gpu": "l4-24gb", **plain, "precision": "FP16"})
    assert eight["breakdown"]["weights_gib"] == pytest.approx(half["breakdown"]["weights_gib"] / 2, rel=0.01)
    wrong = estimate_line({"workload": "audio", "gpu": "l4-24gb", **plain, "precision": "bf17"})
    assert "unknown precision 'bf17'; known: bf16" in wrong["error"]["message"]
    assert "bf16" in wrong["error"]["suggestions"]
