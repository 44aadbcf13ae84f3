"""The scheduler as a process: alone, recovering what is overdue, stopped cleanly; its events, metrics and logs."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apscheduler.events import EVENT_JOB_MISSED, JobExecutionEvent

from catalog.errors import ConfigurationError
from catalog.reader import reading
from collectors.registry import collector
from jobs.metrics import Counters, catalog_text
from jobs.metrics import served as serve_metrics
from jobs.refresh import refresh
from jobs.schedule import Scheduler, run_once

MAIN = "from interfaces.cli import main; main()"


@contextmanager
def scheduler_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "schedule", "--log-format", "json", *arguments],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ), cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_until(process: subprocess.Popen[str], event: str, provider: str = "") -> list[dict[str, Any]]:
    """Log lines up to the first of that event."""
    assert process.stderr is not None
    found = []
    for line in process.stderr:
        if line.startswith("{"):
            found.append(json.loads(line))
            if found[-1]["event"] == event and provider in {"", found[-1].get("provider")}:
                return found
    raise AssertionError(f"ended without {event}: {found}")


def test_overdue_providers_run_at_start_and_sigterm_ends_cleanly(served: Any, tmp_path: Path) -> None:
    served.provider("nebius")
    metrics = tmp_path / "gpubazaar.prom"
    with scheduler_process("nebius", "--metrics-file", str(metrics), "--metrics-port", "0") as process:
        lines = lines_until(process, "refreshed", "nebius")
        planned = next(line for line in lines if line["event"] == "planned")
        assert planned["overdue"] is True
        assert lines[-1]["outcome"] == "ok"
        assert lines[-1]["rows"] > 0

        second = subprocess.run(
            [sys.executable, "-c", MAIN, "schedule", "nebius"],
            capture_output=True, text=True, env=dict(os.environ), timeout=60, check=False,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert second.returncode == 2
        assert f"process {process.pid}" in second.stderr
        assert "already runs" in second.stderr
        with pytest.raises(ConfigurationError, match="already runs"):
            run_once(served.home, ["nebius"])

        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - began < 5
    assert 'gpubazaar_provider_freshness{provider="nebius",freshness="fresh"} 1' in metrics.read_text()
    with reading(served.home) as catalog:
        assert catalog.rows("SELECT outcome FROM v_provider_health WHERE provider = 'nebius'")[0]["outcome"] == "ok"


def test_sigterm_during_a_hanging_fetch_leaves_at_once_and_calls_it_no_failure(served: Any) -> None:
    served.provider("nebius", "ecb")
    refresh(served.home, ["nebius", "ecb"], timeout_s=20)
    served.answer_all("nebius", served.server.hang())
    asked = len(served.server.received)
    with scheduler_process("nebius") as process:
        lines_until(process, "planned")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
    assert len(served.server.received) == asked  # it was not overdue

    with scheduler_process("scaleway") as process:  # never tried: overdue
        served.provider("scaleway")
        served.answer_all("scaleway", served.server.hang())
        lines_until(process, "planned")
        while not any("scaleway" in r.path or "/instance/" in r.path for r in served.server.received):
            time.sleep(0.05)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert time.monotonic() - began < 8
    with reading(served.home) as catalog:
        state = catalog.rows("SELECT * FROM v_provider_health WHERE provider = 'scaleway'")[0]
    assert state["outcome"] == "never"


def test_a_recorded_home_is_not_scheduled(served: Any) -> None:
    refresh(served.home, ["ecb"], source="recorded")
    with pytest.raises(ConfigurationError, match="recorded data"):
        Scheduler(served.home, [collector("ecb")]).run()


def test_what_the_scheduler_notices_is_counted_and_kept(served: Any) -> None:
    served.provider("ecb")
    refresh(served.home, ["ecb"], timeout_s=20)
    wall, steady = [datetime.now(UTC)], [100.0]
    scheduler = Scheduler(served.home, [collector("ecb")], now=lambda: wall[0], steady=lambda: steady[0])
    scheduler._heard(JobExecutionEvent(EVENT_JOB_MISSED, "ecb", "default", wall[0]))
    scheduler.tick()
    wall[0] -= timedelta(hours=3)  # someone sets the clock back
    steady[0] += 1
    scheduler.tick()
    assert scheduler._unsaved == []
    text = scheduler.metrics_text()
    assert 'gpubazaar_scheduler_events_total{provider="ecb",event="missed"} 1' in text
    assert 'event="clock_jumped"' in text
    job = scheduler._jobs.get_job("ecb")
    assert job is not None
    assert job.misfire_grace_time == collector("ecb").cadence_s
    assert job.max_instances == 1
    assert job.coalesce is True
    assert job.trigger.start_date - wall[0] < timedelta(seconds=30)  # its age means nothing now: due at once
    refresh(served.home, ["ecb"], timeout_s=20)
    with reading(served.home) as catalog:
        kept = catalog.rows("SELECT provider, event FROM scheduler_events ORDER BY event")
    assert [(k["provider"], k["event"]) for k in kept] == [("", "clock_jumped"), ("ecb", "missed")]


def test_metrics_are_prometheus_text_on_loopback_only(served: Any) -> None:
    assert "gpubazaar_up 0" in catalog_text(served.home)
    served.provider("ecb", "nebius")
    counters = Counters()
    counters.report(refresh(served.home, ["ecb", "nebius"], timeout_s=20))
    with (
        serve_metrics(0, lambda: catalog_text(served.home) + counters.text()) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer,
    ):
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    assert "gpubazaar_up 1" in text
    assert 'gpubazaar_runs_total{provider="nebius",outcome="ok"} 1' in text
    named = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE")}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            float(value)
            assert name.partition("{")[0] in named


def test_a_job_that_does_not_end_is_left_behind(served: Any) -> None:
    """Whatever a job does, the process is gone soon after its last deadline, and what was published stays."""
    served.provider("ecb", "nebius")
    refresh(served.home, ["ecb"], timeout_s=20)
    script = (
        "import sys, time, jobs.schedule as s\n"
        "s.STOP_SECONDS, s.LEAVE_SECONDS = 1.0, 3.0\n"
        "def stuck(*a, **k):\n"
        '    print(\'{"event": "stuck"}\', file=sys.stderr, flush=True)\n'
        "    time.sleep(120)\n"
        "s.refresh = stuck\n"
        "from interfaces.cli import main\n"
        "sys.argv = ['gpubazaar', 'schedule', 'nebius', '--log-format', 'json']\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ),
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    with process:
        lines_until(process, "stuck")
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert process.wait(timeout=15) == 1
        assert time.monotonic() - began < 8
        process.communicate()
    with reading(served.home) as catalog:
        assert catalog.rows("SELECT outcome FROM v_provider_health WHERE provider = 'ecb'")[0]["outcome"] == "ok"


def test_a_job_that_overlaps_itself_runs_once_and_is_counted(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served.provider("ecb")
    report = refresh(served.home, ["ecb"], timeout_s=20)
    calls: list[float] = []

    def slow(*_: Any, **__: Any) -> Any:
        calls.append(time.monotonic())
        time.sleep(2.4)
        return report

    monkeypatch.setattr("jobs.schedule.refresh", slow)
    monkeypatch.setattr("jobs.schedule.jitter_s", lambda cadence_s: 0)
    monkeypatch.setattr("jobs.schedule.OVERDUE_SPREAD_S", 0.0)
    ecb = collector("ecb")
    monkeypatch.setattr(type(ecb), "cadence_s", 1)
    scheduler = Scheduler(served.home, [ecb])
    threading.Timer(4.0, scheduler.stop.set).start()
    assert scheduler.run() is True
    assert 1 <= len(calls) <= 3
    assert all(b - a >= 2.3 for a, b in itertools.pairwise(calls))
    assert 'gpubazaar_scheduler_events_total{provider="ecb",event="overlap"}' in scheduler.metrics_text()
