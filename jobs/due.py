"""When a provider is due, and whether the clock can be trusted. Pure functions over a clock that is handed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST_RETRY_S = 300
SKEW = timedelta(minutes=5)
JUMP_S = 60.0


@dataclass(frozen=True, slots=True)
class Attempts:
    """What the store knows of a provider's past runs. Times are aware UTC, None where there was none."""

    last_attempt_at: datetime | None = None
    last_success_at: datetime | None = None
    consecutive_failures: int = 0


def next_due(cadence_s: int, past: Attempts | None, now: datetime) -> datetime:
    """The moment from which a provider should be refreshed; never before `now`.

    A provider never tried is due now, and so is one whose last attempt lies in the future: the clock was set back, and
    its age means nothing. After a failure the wait is 5 minutes, then twice as long each time, up to the cadence.
    """
    if past is None or past.last_attempt_at is None or past.last_attempt_at > now + SKEW:
        return now
    return max(now, past.last_attempt_at + timedelta(seconds=wait_s(cadence_s, past.consecutive_failures)))


def wait_s(cadence_s: int, consecutive_failures: int) -> int:
    """Seconds from one attempt to the next."""
    if consecutive_failures <= 0:
        return cadence_s
    return min(cadence_s, FIRST_RETRY_S << min(consecutive_failures - 1, 20))


def jitter_s(cadence_s: int) -> int:
    """How far a run may be moved, so that not all providers and not all installations ask at the same second."""
    return max(1, min(300, cadence_s // 20))


class ClockWatch:
    """Notices that the wall clock moved otherwise than time passed: it was set, or the machine slept."""

    def __init__(self, wall: Callable[[], datetime], steady: Callable[[], float]) -> None:
        """Start watching.

        Args:
            wall: aware UTC now.
            steady: seconds of a clock that is never set, such as `time.monotonic`.
        """
        self._wall, self._steady = wall, steady
        self._seen = wall(), steady()

    def jumped_s(self) -> float:
        """Seconds by which the wall clock ran ahead of (or, negative, behind) time since the last call; 0 if few."""
        now, tick = self._wall(), self._steady()
        was, ticked = self._seen
        self._seen = now, tick
        drift = (now - was).total_seconds() - (tick - ticked)
        return drift if abs(drift) >= JUMP_S else 0.0
