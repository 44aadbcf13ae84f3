"""The training and media model against public measurements beside the checkout; skipped where they are absent."""

import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.estimate import estimate_line

pytestmark = pytest.mark.needs_shared
TRUTH = Path(__file__).parents[3] / "shared" / "truth" / "training.jsonl"
ADAPTERS = {"lora", "qlora"}
TRAINING = {"lora", "qlora", "full", "pretrain"}
PICTURES = {"image", "video"}
SPEED = ("tokens_s_per_gpu", "tflops_per_gpu", "mfu", "seconds_per_step")

Case = dict[str, Any]
Pair = tuple[Case, dict[str, Any]]


@pytest.fixture(scope="module")
def answers() -> list[Pair]:
    if not TRUTH.exists():
        pytest.skip(f"{TRUTH} is absent")
    cases = [json.loads(line) for line in TRUTH.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(case, estimate_line(case["request"])) for case in cases if case["use"]]


def errors(answers: list[Pair], groups: set[str], metrics: tuple[str, ...]) -> list[float]:
    found = []
    for case, answer in answers:
        if case["group"] not in groups:
            continue
        for metric in metrics:
            if metric in case["expect"]:
                found.append(abs(answer[metric] / case["expect"][metric] - 1))
    assert found, f"no case of {groups} has {metrics}"
    return found


def test_every_case_is_answered(answers: list[Pair]) -> None:
    refused = [case["id"] for case, answer in answers if "error" in answer]
    assert refused == []


@pytest.mark.parametrize(
    ("groups", "metrics", "limit"),
    [
        (ADAPTERS, ("peak_gib_per_gpu",), 0.12),
        ({"full", "pretrain"}, ("peak_gib_per_gpu",), 0.15),
        (PICTURES, ("peak_gib_per_gpu",), 0.18),
        (TRAINING, SPEED, 0.20),
        (PICTURES, ("seconds_per_item",), 0.30),
    ],
)
def test_mean_error(answers: list[Pair], groups: set[str], metrics: tuple[str, ...], limit: float) -> None:
    assert statistics.fmean(errors(answers, groups, metrics)) <= limit


def test_no_run_that_failed_is_said_to_start(answers: list[Pair]) -> None:
    failed = [(c, a) for c, a in answers if c["expect"].get("verdict") == "no" or c["expect"].get("starts") is False]
    assert len(failed) >= 8
    assert [c["id"] for c, a in failed if a["starts"] or a["verdict"] != "no"] == []


def started(answers: list[Pair], verdict: str) -> Iterator[bool]:
    """Whether each run whose measured peak lies below the card's memory got this verdict."""
    for case, answer in answers:
        measured = case["expect"].get("peak_gib_per_gpu")
        if measured is not None and measured < answer["usable_gib_per_gpu"]:
            yield answer["verdict"] == verdict


@pytest.mark.parametrize(("verdict", "share"), [("no", 0.10), ("tight", 0.20)])
def test_runs_that_started_are_rarely_refused(answers: list[Pair], verdict: str, share: float) -> None:
    hits = list(started(answers, verdict))
    assert len(hits) > 100
    assert sum(hits) / len(hits) <= share


@pytest.mark.parametrize("source", ["llm-foundry", "QwenLM", "fitcheck", "LLaMA-Factory", "diffusers-torchao"])
def test_no_source_is_off_as_a_whole(answers: list[Pair], source: str) -> None:
    """Peak memory, or speed where a source has none, is not biased by more than 15 % in any larger block."""
    block = [(c, a) for c, a in answers if source in c["source_url"]]
    pick: Callable[[Case], str] = lambda c: "peak_gib_per_gpu" if "peak_gib_per_gpu" in c["expect"] else "mfu"  # noqa: E731
    ratios = [a[pick(c)] / c["expect"][pick(c)] for c, a in block if pick(c) in c["expect"]]
    assert statistics.median(ratios) == pytest.approx(1.0, abs=0.15)
