"""Blocking work in a thread that can be left behind: the caller comes back at its deadline or when told to stop.

A name look-up cannot be interrupted, and neither can a read before its time-out. So the blocking calls run in one
daemon thread, which owns the HTTP client and all its sockets. When the caller gives up, that thread finishes by itself
at its next time-out, closes its client, and never keeps the process alive.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from collectors.errors import Cancelled, FetchError, Retriable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import httpx

Result = TypeVar("Result")

_POLL_S = 0.05
_GRACE_S = 0.25
"""After the deadline the thread gets this long to report the exact reason itself."""


class Job(Generic[Result]):
    """One piece of blocking work and what came of it. Used as a context in the worker thread."""

    def __init__(self, work: Callable[[httpx.Client, Job[Result]], Result], url: str, until: float) -> None:
        """Prepare.

        Args:
            work: called in the worker thread with the client and this job.
            url: what is being fetched, for messages.
            until: deadline on the clock of `time.monotonic`.
        """
        self.work = work
        self.url = url
        self.until = until
        self.last_problem = ""
        self.cancelled = threading.Event()
        self.done = threading.Event()
        self.result: Result | None = None
        self._problem: BaseException | None = None

    def __enter__(self) -> Job[Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Hand an error over to the waiting thread, which raises it; nothing is lost and nothing is hidden."""
        self._problem = problem
        self.done.set()
        return True

    def remaining_s(self) -> float:
        """Seconds to the deadline, never below zero."""
        return max(0.0, self.until - time.monotonic())

    def check(self) -> None:
        """Raise where the caller has given up or the deadline has passed."""
        if self.cancelled.is_set():
            raise Cancelled(f"{self.url}: stopped", self.url)
        if time.monotonic() >= self.until:
            raise self.too_late()

    def pause(self, seconds: float) -> None:
        """Wait; ends early, with an error, where the caller gives up."""
        self.cancelled.wait(seconds)
        self.check()

    def too_late(self) -> FetchError:
        """The error for a passed deadline, with what went wrong before it."""
        before = f"; before that: {self.last_problem}" if self.last_problem else ""
        return Retriable(f"{self.url} is not finished at its deadline{before}", self.url)

    def outcome(self) -> Result:
        """The result, or the error that the work ended with."""
        problem, self._problem = self._problem, None
        if problem is None:
            return cast("Result", self.result)
        try:
            raise problem
        finally:
            del problem  # breaks the cycle error -> traceback -> this frame -> error


class Worker:
    """One daemon thread with one HTTP client. After a job was left behind, `usable` is False: take a new one."""

    def __init__(self, client: httpx.Client, name: str) -> None:
        """Start the thread, which owns `client` from here on."""
        self.usable = True
        self._client = client
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, job: Job[Result], stop: threading.Event | None) -> Result:
        """Do a job, waiting at most until its deadline or until `stop` is set.

        Raises:
            Cancelled: `stop` was set.
            Retriable: the deadline passed.
        """
        self._jobs.put(job)
        try:
            while not job.done.wait(_POLL_S):
                if stop is not None and stop.is_set():
                    raise Cancelled(f"{job.url}: stopped", job.url)
                if time.monotonic() > job.until + _GRACE_S:
                    raise job.too_late()
        finally:
            if not job.done.is_set():
                job.cancelled.set()
                self.usable = False
                self._jobs.put(None)
        return job.outcome()

    def close(self) -> None:
        """Close the client in its own thread; waits for it only where that thread is idle."""
        if self.usable:
            self.usable = False
            self._jobs.put(None)
            self._thread.join(timeout=1.0)

    def _serve(self) -> None:
        with self._client as client:
            while (job := self._jobs.get()) is not None:
                with job:
                    job.result = job.work(client, job)
                del job
