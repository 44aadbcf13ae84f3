"""When providers are due, under clocks that behave and clocks that do not."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.registry import collector
from jobs.due import Attempts, ClockWatch, jitter_s, next_due, wait_s
from jobs.schedule import trigger_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = 3600


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("past", "seconds"),
    [
        (None, 0),
        (Attempts(), 0),
        (Attempts(ago(600), ago(600)), 3000),
        (Attempts(ago(HOUR), ago(HOUR)), 0),
        (Attempts(ago(9 * HOUR), ago(9 * HOUR)), 0),
        (Attempts(ago(0), ago(9 * HOUR), 1), 300),
        (Attempts(ago(0), ago(9 * HOUR), 3), 1200),
        (Attempts(ago(0), ago(9 * HOUR), 50), HOUR),
        (Attempts(ago(-7200), ago(-7200)), 0),  # the clock was set back: two hours in the future
        (Attempts(ago(-60), ago(-60)), 3660),  # clocks of two machines differ a little
    ],
)
def test_next_due(past: Attempts | None, seconds: float) -> None:
    assert (next_due(HOUR, past, NOW) - NOW).total_seconds() == seconds


@settings(max_examples=50, deadline=None)
@given(st.integers(60, 10**6), st.integers(0, 100), st.integers(-(10**6), 10**6))
def test_a_provider_is_never_due_in_the_past_nor_later_than_a_cadence(cadence: int, failures: int, age: int) -> None:
    due = next_due(cadence, Attempts(ago(age), None, failures), NOW)
    assert NOW <= due <= NOW + timedelta(seconds=cadence + 300)
    assert 0 < wait_s(cadence, failures) <= cadence
    assert 1 <= jitter_s(cadence) <= 300


class Clock:
    def __init__(self) -> None:
        self.wall, self.steady = NOW, 1000.0

    def passes(self, wall_s: float, steady_s: float) -> None:
        self.wall += timedelta(seconds=wall_s)
        self.steady += steady_s


@pytest.mark.parametrize(
    ("wall", "steady", "jump"),
    [(1, 1, 0), (3600, 3600, 0), (31, 1, 0), (28_800, 1, 28_799), (-7200, 1, -7201), (3601, 1, 3600)],
)
def test_clock_watch_tells_sleep_and_set_clocks_from_time_passing(wall: float, steady: float, jump: float) -> None:
    clock = Clock()
    watch = ClockWatch(lambda: clock.wall, lambda: clock.steady)
    clock.passes(wall, steady)
    assert watch.jumped_s() == pytest.approx(jump)
    clock.passes(1, 1)
    assert watch.jumped_s() == 0


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Asia/Kolkata"])
@pytest.mark.parametrize("day", [datetime(2026, 3, 7, 12, tzinfo=UTC), datetime(2026, 10, 31, 12, tzinfo=UTC)])
def test_daylight_saving_moves_no_run(zone: str, day: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    scaleway = collector("scaleway")
    trigger = trigger_of(scaleway, day)
    fired, last = [], None
    now = day
    for _ in range(60):
        last = trigger.get_next_fire_time(last, now)
        assert last is not None
        assert last.utcoffset() == timedelta(0)
        fired.append(last)
        now = last
    gaps = [(b - a).total_seconds() for a, b in itertools.pairwise(fired)]
    slack = jitter_s(scaleway.cadence_s)
    assert all(scaleway.cadence_s <= gap <= scaleway.cadence_s + slack for gap in gaps)
