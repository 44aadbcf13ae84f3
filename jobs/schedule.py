"""The scheduler: each provider at its own cadence, in one process per data folder, stopped cleanly.

APScheduler keeps the clock; what is due is worked out from the run state in the store, so that nothing is lost with the
process and no job store has to be kept. Everything is in UTC, at intervals: daylight saving changes nothing.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from catalog.errors import CatalogMissing, ConfigurationError, StoreError
from catalog.home import Home
from catalog.reader import reading
from catalog.writer import writing
from collectors.contract import Collector
from jobs.attempts import other_mode
from jobs.due import ClockWatch, jitter_s, next_due
from jobs.journal import event
from jobs.metrics import Counters, catalog_text, write_file
from jobs.refresh import refresh
from jobs.schedule_once import chosen, deadline_s, only_scheduler, past_attempts, run_once

__all__ = ["LEAVE_SECONDS", "Scheduler", "chosen", "only_scheduler", "run_once", "trigger_of"]

# Several jobs may have to write one after the other.
WRITE_WAIT_SECONDS = 120.0
STOP_SECONDS = 25.0
LEAVE_SECONDS = 28.0
OVERDUE_SPREAD_S = 3.0
_TICK_S = 1.0
_METRICS_EVERY_S = 15.0
_WORKERS = 8
_EVENTS = {EVENT_JOB_MISSED: "missed", EVENT_JOB_MAX_INSTANCES: "overlap", EVENT_JOB_ERROR: "error"}


def utc_now() -> datetime:
    """Aware UTC now."""
    return datetime.now(UTC)


class Scheduler:
    """Runs until told to stop. Make one per data folder and call `run`."""

    def __init__(
        self,
        home: Home,
        picked: Sequence[Collector],
        *,
        counters: Counters | None = None,
        metrics_file: Path | None = None,
        now: Callable[[], datetime] = utc_now,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing runs yet.

        Args:
            home: the data folder.
            picked: whose prices to keep current.
            counters: where runs and events are counted.
            metrics_file: rewritten every 15 s.
            now: aware UTC now.
            steady: a clock that is never set.
        """
        self.stop = threading.Event()
        self.counters = counters or Counters()
        self._home, self._now, self._metrics_file = home, now, metrics_file
        self._collectors = {c.provider: c for c in picked}
        self._clock = ClockWatch(now, steady)
        self._running: dict[str, float] = {}
        self._idle = threading.Condition()
        self._unsaved: list[tuple[datetime, str, str, str]] = []
        self._jobs = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(_WORKERS)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._jobs.add_listener(self._heard, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES | EVENT_JOB_ERROR)

    def run(self) -> bool:
        """Schedule everything and work until `stop` is set.

        Returns:
            True where every job had ended; False where one was left behind after 28 s.

        Raises:
            ConfigurationError: another scheduler runs, or the home holds recorded data.
        """
        with only_scheduler(self._home):
            self._refuse_recorded()
            self._plan_all()
            self._jobs.start()
            wrote = 0.0
            while not self.stop.wait(_TICK_S):
                self.tick()
                if time.monotonic() - wrote >= _METRICS_EVERY_S:
                    self._write_metrics()
                    wrote = time.monotonic()
            return self._leave()

    def _refuse_recorded(self) -> None:
        try:
            with reading(self._home) as catalog:
                other_mode(catalog.mode(), "live", replace_mode=False)
        except CatalogMissing:
            pass

    def _plan_all(self) -> None:
        """One job per provider; the first run when it is due by the store's own record."""
        now, past = self._now(), past_attempts(self._home)
        for c in self._collectors.values():
            due = next_due(c.cadence_s, past.get(c.provider), now)
            overdue = due <= now
            first = due + _spread(OVERDUE_SPREAD_S if overdue else jitter_s(c.cadence_s))
            self._jobs.add_job(
                self._refresh, trigger_of(c, first), args=[c.provider], id=c.provider, name=c.provider,
                next_run_time=first, replace_existing=True, misfire_grace_time=c.cadence_s, coalesce=True,
                max_instances=1,
            )  # fmt: skip
            event("planned", provider=c.provider, first_run=first.isoformat(timespec="seconds"), overdue=overdue)

    def tick(self) -> None:
        """Look at the clock and save what was noticed; called every second."""
        drift = self._clock.jumped_s()
        if drift:
            event("clock_jumped", level=logging.WARNING, seconds=round(drift, 1))
            self._note("", "clock_jumped", f"by {drift:.0f} s: every provider's next run was worked out again")
            self._plan_all()
        self._save_notes()

    def _refresh(self, provider: str) -> None:
        if self.stop.is_set():
            return
        c = self._collectors[provider]
        with self._busy(provider):
            report = refresh(
                self._home, [provider], timeout_s=deadline_s(c), stop=self.stop, write_wait_s=WRITE_WAIT_SECONDS
            )
        self.counters.report(report)
        for result in report.results:
            bad = result.outcome in {"failed", "held"}
            event(
                "refreshed", level=logging.WARNING if bad else logging.INFO, provider=provider, outcome=result.outcome,
                rows=result.row_count, changed=result.changed_count, rejected=result.rejected_count,
                seconds=round(result.seconds, 2), run_id=result.run_id, note=result.note,
            )  # fmt: skip
            if bad and not self.stop.is_set():
                self._retry(c)

    def _retry(self, c: Collector) -> None:
        """After a failure come back sooner than at the next turn, less soon each time."""
        past = past_attempts(self._home).get(c.provider)
        due = next_due(c.cadence_s, past, self._now()) + _spread(30.0)
        job = self._jobs.get_job(c.provider)
        if job is not None and job.next_run_time is not None and due < job.next_run_time:
            job.modify(next_run_time=due)

    @contextmanager
    def _busy(self, provider: str) -> Iterator[None]:
        with self._idle:
            self._running[provider] = time.monotonic()
        try:
            yield
        finally:
            with self._idle:
                self._running.pop(provider, None)
                self._idle.notify_all()

    def _heard(self, heard: JobEvent) -> None:
        kind = _EVENTS[heard.code]
        problem = getattr(heard, "exception", None)
        detail = f"{type(problem).__name__}: {problem}" if problem else ""
        event(f"job_{kind}", level=logging.WARNING, provider=heard.job_id, detail=detail)
        self._note(heard.job_id, kind, detail)

    def _note(self, provider: str, kind: str, detail: str) -> None:
        self.counters.event(provider, kind)
        self._unsaved.append((self._now(), provider, kind, detail[:500]))

    def _save_notes(self) -> None:
        """Keep what the scheduler noticed in the store; while that is busy, they wait here."""
        if not self._unsaved:
            return
        notes = list(self._unsaved)
        try:
            with writing(self._home, 0.0) as writer:
                writer.record_events(notes)
        except StoreError:
            return
        del self._unsaved[: len(notes)]

    def _write_metrics(self) -> None:
        if self._metrics_file is None:
            return
        try:
            write_file(self._metrics_file, self.metrics_text())
        except ConfigurationError as problem:
            event("metrics_not_written", level=logging.ERROR, detail=str(problem))

    def metrics_text(self) -> str:
        """Everything there is to measure, in Prometheus' text format."""
        return catalog_text(self._home) + self.counters.text()

    def _leave(self) -> bool:
        """No new job; every fetch has been told to end; wait for what is being stored."""
        event("stopping", running=", ".join(sorted(self._running)))
        self._jobs.shutdown(wait=False)
        with self._idle:
            ended = self._idle.wait_for(lambda: not self._running, timeout=STOP_SECONDS)
        self._save_notes()
        self._write_metrics()
        event("stopped", level=logging.INFO if ended else logging.ERROR, left_behind=", ".join(sorted(self._running)))
        return ended


def _spread(longest_s: float) -> timedelta:
    """A random wait, so that not everything starts in the same second."""
    return timedelta(seconds=random.uniform(0, longest_s))  # noqa: S311 (no secret)


def trigger_of(c: Collector, first: datetime) -> IntervalTrigger:
    """The provider's cadence from `first` on, in UTC, with jitter."""
    return IntervalTrigger(seconds=c.cadence_s, start_date=first, timezone=UTC, jitter=jitter_s(c.cadence_s))
