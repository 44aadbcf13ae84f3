"""The serving fit model against public measurements beside the checkout; skipped where they are absent."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog.accelerators import accelerator
from planner.estimate import estimate_line

pytestmark = pytest.mark.needs_shared
TRUTH = Path(__file__).parents[3] / "shared" / "truth" / "serving.jsonl"
# Launches that failed in graph capture, in profiling of an old build, or for a cache layout of one early release;
# what the request says does not show it. The second is inside the error band and answered "tight".
KNOWN_FALSE_STARTS = {
    "st0111",  # a 27B hybrid in NVFP4 on a 32 GB card dies in graph capture at every memory limit
    "sm0604",  # vLLM 0.4.1, 33B at a context of 16,384 on two 48 GB cards: the profiling peak decided
    "sm0757+sm0758+sm0759",  # vLLM 0.22, the first release with a compressed cache
}

Case = dict[str, Any]
Pair = tuple[Case, Case]


@pytest.fixture(scope="module")
def answers() -> list[Pair]:
    if not TRUTH.exists():
        pytest.skip(f"{TRUTH} is absent")
    cases = [json.loads(line) for line in TRUTH.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(case, estimate_line(case["request"])) for case in cases if case["use"]]


def ratios(answers: list[Pair], metric: str, keep: Callable[[Case], bool] = lambda case: True) -> list[float]:
    """Answer over truth; a value that was not answered is 0."""
    return [
        float(answer.get(metric) or 0) / case["expect"][metric]
        for case, answer in answers
        if metric in case["expect"] and keep(case)
    ]


def errors(found: list[float]) -> list[float]:
    return [abs(ratio - 1) for ratio in found if ratio > 0]


def within(found: list[float], share: float) -> float:
    return sum(abs(ratio - 1) <= share for ratio in found) / len(found)


def data_centre_nvidia(case: Case) -> bool:
    card = accelerator(case["request"]["gpu"])
    return card.vendor == "NVIDIA" and card.segment == "datacenter"


@pytest.mark.parametrize(
    "metric",
    ["weights_gib_per_gpu", "required_gib_per_gpu", "kv_cache_gib_per_gpu", "kv_cache_tokens", "kv_bytes_per_token",
     "tpot_ms", "ttft_ms", "output_tokens_s"],
)  # fmt: skip
def test_at_most_a_twentieth_is_left_unanswered(answers: list[Pair], metric: str) -> None:
    found = ratios(answers, metric)
    assert sum(ratio <= 0 for ratio in found) <= 0.05 * len(found)


def test_weights(answers: list[Pair]) -> None:
    found = errors(ratios(answers, "weights_gib_per_gpu"))
    assert statistics.median(found) <= 0.01
    assert statistics.fmean(found) <= 0.04


@pytest.mark.parametrize("metric", ["kv_cache_gib_per_gpu", "kv_cache_tokens", "kv_bytes_per_token"])
def test_cache_capacity(answers: list[Pair], metric: str) -> None:
    found = ratios(answers, metric)
    assert statistics.median(errors(found)) <= 0.04
    assert within(found, 0.10) >= 0.80


def test_what_failed_is_not_said_to_start(answers: list[Pair]) -> None:
    wrong = {
        case["id"]
        for case, answer in answers
        if (case["expect"].get("starts") is False and answer["starts"])
        or (case["expect"].get("verdict") == "no" and answer["verdict"] == "fits")
    }
    assert wrong <= KNOWN_FALSE_STARTS
    assert len(wrong) <= 4


def test_what_ran_is_seldom_refused(answers: list[Pair]) -> None:
    ran = [answer["verdict"] for case, answer in answers if case["expect"].get("verdict") == "fits"]
    assert ran.count("no") <= 0.08 * len(ran)
    assert ran.count("tight") <= 0.15 * len(ran)
    started = [answer["starts"] for case, answer in answers if case["expect"].get("starts") is True]
    assert started.count(False) <= 0.08 * len(started)


def test_roomy_runs_fit(answers: list[Pair]) -> None:
    roomy = [
        answer["verdict"]
        for case, answer in answers
        if case["expect"].get("verdict") == "fits"
        and case["expect"].get("required_gib_per_gpu", 1e9) <= 0.85 * answer["usable_gib_per_gpu"]
    ]
    assert roomy.count("fits") >= 0.80 * len(roomy)


def test_time_per_token(answers: list[Pair]) -> None:
    nvidia = ratios(answers, "tpot_ms", data_centre_nvidia)
    others = ratios(answers, "tpot_ms", lambda case: not data_centre_nvidia(case))
    assert statistics.fmean(errors(nvidia)) <= 0.22
    assert statistics.fmean(errors(others)) <= 0.30
    assert within(nvidia + others, 0.30) >= 0.75
    assert 0.9 <= statistics.median(nvidia + others) <= 1.1


def test_time_to_first_token(answers: list[Pair]) -> None:
    assert statistics.fmean(errors(ratios(answers, "ttft_ms"))) <= 0.40


def test_throughput(answers: list[Pair]) -> None:
    assert statistics.fmean(errors(ratios(answers, "output_tokens_s"))) <= 0.35
