"""Compare the serving fit model with aiconfigurator_core 0.12 on the same public measurements.

    python benchmarks/accuracy.py ../shared/truth/serving.jsonl [--python /other/venv/bin/python]

`--python` names an interpreter that has aiconfigurator_core installed; without it this one is tried. Only rows that
both answer are compared; rows measured in the tool's own repository, on which its tables were calibrated, are shown
apart. Verdicts: a false fit is a launch that failed and is said to fit, a false no one that ran and is refused.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from planner.estimate import estimate_line

METRICS = ("weights_gib_per_gpu", "kv_cache_gib_per_gpu", "kv_cache_tokens", "tpot_ms", "ttft_ms", "output_tokens_s")
OWN_REPOSITORY = "ai-dynamo/aiconfigurator"
WORKER = Path(__file__).with_name("aiconfigurator_answers.py")

Case = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, help="measurements as requests with expected answers, JSON lines")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with aiconfigurator_core 0.12")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    cases = [case for case in cases if case["use"]]
    started = time.perf_counter()
    ours = [estimate_line(case["request"]) for case in cases]
    spent = time.perf_counter() - started
    print(f"{len(cases)} requests answered in {spent:.2f} s ({len(cases) / spent:.0f} a second)")
    why = missing(options.python)
    if why:
        print(f"aiconfigurator_core is not compared: {why}")
        theirs: list[Case] = [{} for _ in cases]
    else:
        theirs = other_answers(options.python, cases)
    print_numbers(cases, ours, theirs)
    print_verdicts(cases, ours, theirs)
    return 0


def missing(python: str) -> str:
    """Why the other tool cannot run in `python`; '' if it can."""
    try:
        probe = [python, "-c", "import aiconfigurator_core.sdk.memory"]
        done = subprocess.run(probe, capture_output=True, text=True, timeout=120, check=False)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def other_answers(python: str, cases: list[Case]) -> list[Case]:
    """The tool's answers in the order of the cases; a fault is an answer without figures."""
    lines = "".join(json.dumps(case["request"]) + "\n" for case in cases)
    done = subprocess.run([python, str(WORKER)], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def print_numbers(cases: list[Case], ours: list[Case], theirs: list[Case]) -> None:
    print(f"\n{'metric':22}{'rows from':18}{'both':>6}{'ours med%':>11}{'MAPE%':>8}{'theirs med%':>13}{'MAPE%':>8}"
          f"{'ours alone':>12}{'MAPE%':>8}")  # fmt: skip
    for metric in METRICS:
        for place in ("elsewhere", "its repository"):
            both: list[tuple[float, float]] = []
            alone: list[float] = []
            for case, mine, other in zip(cases, ours, theirs, strict=True):
                truth = case["expect"].get(metric)
                inside = OWN_REPOSITORY in case["source_url"]
                if truth is None or not mine.get(metric) or inside != (place == "its repository"):
                    continue
                error = abs(mine[metric] / truth - 1)
                if other.get(metric):
                    both.append((error, abs(other[metric] / truth - 1)))
                else:
                    alone.append(error)
            if both or alone:
                print(row(metric, place, both, alone))


def row(metric: str, place: str, both: list[tuple[float, float]], alone: list[float]) -> str:
    cells = f"{metric:22}{place:18}{len(both):>6}"
    for side, width in ((0, 11), (1, 13)):
        errors = [pair[side] for pair in both]
        cells += f"{percent(statistics.median(errors) if errors else None):>{width}}"
        cells += f"{percent(statistics.fmean(errors) if errors else None):>8}"
    return cells + f"{len(alone):>12}{percent(statistics.fmean(alone) if alone else None):>8}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def print_verdicts(cases: list[Case], ours: list[Case], theirs: list[Case]) -> None:
    print(f"\n{'verdicts':22}{'rows':>6}{'false fits':>12}{'false no':>10}{'tight':>8}")
    compared = [
        (case["expect"]["verdict"], mine.get("verdict"), other.get("verdict"))
        for case, mine, other in zip(cases, ours, theirs, strict=True)
        if "verdict" in case["expect"]
    ]
    shared = [entry for entry in compared if entry[2]]
    for name, rows, side in (("ours, all", compared, 1), ("ours, both answer", shared, 1), ("theirs", shared, 2)):
        false_fits = sum(entry[0] == "no" and entry[side] == "fits" for entry in rows)
        false_no = sum(entry[0] == "fits" and entry[side] == "no" for entry in rows)
        tight = sum(entry[side] == "tight" for entry in rows)
        print(f"{name:22}{len(rows):>6}{false_fits:>12}{false_no:>10}{tight:>8}")


if __name__ == "__main__":
    sys.exit(main())
