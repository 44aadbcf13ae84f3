"""Fetching and parsing several providers side by side, each on its own: one that fails or hangs costs no other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from catalog.errors import CatalogMissing, ConfigurationError, GpuBazaarError, StoreError
from catalog.home import Home
from catalog.queries import known_documents
from catalog.reader import Catalog, reading
from collectors.contract import Collector
from collectors.errors import Cancelled, CredentialsMissing
from collectors.http import Pace, Validator
from jobs.collect import Collected, KnownDocuments, collect_live, collect_recorded

Source = Literal["live", "recorded"]
Announce = Callable[[str, str], None]

MAX_WORKERS = 8
# After its deadline a fetch gets this long to report why it did not finish, and after being stopped this long to end.
REPORT_S = 2.0
STOP_S = 3.0
_log = logging.getLogger("gpubazaar.refresh")


@dataclass(slots=True)
class Attempt:
    """One provider on its way: what it was asked, and what came of it."""

    collector: Collector
    started_at: datetime
    finished_at: datetime | None = None
    future: Future[Collected] | None = None
    failure: str = ""
    skipped: bool = False
    cancelled: bool = False
    known: KnownDocuments = field(default_factory=KnownDocuments)

    @property
    def collected(self) -> Collected | None:
        """What it brought home; None where it failed."""
        return self.future.result() if self.future and not self.failure else None


def prepare(home: Home, picked: Sequence[Collector], source: Source, *, replace_mode: bool) -> list[Attempt]:
    """Refuse a home of the other kind, and remember what the last run knew, before anything is fetched.

    Raises:
        ConfigurationError: the home holds the other kind of data.
    """
    attempts = [Attempt(c, datetime.now(UTC)) for c in picked]
    try:
        with reading(home) as catalog:
            if not other_mode(catalog.mode(), source, replace_mode=replace_mode):
                for attempt in attempts:
                    attempt.known = _known(catalog, attempt.collector.provider)
    except CatalogMissing:
        pass  # nothing known yet: everything is fetched in full
    except StoreError as problem:
        _log.warning("no snapshot can be read, everything is fetched in full: %s", problem)
    return attempts


def _known(catalog: Catalog, provider: str) -> KnownDocuments:
    digest, states = known_documents(catalog, provider)
    validators = {s["url"]: Validator(s["etag"] or "", s["last_modified"] or "", s["sha256"]) for s in states}
    return KnownDocuments(digest, validators)


def other_mode(mode: str | None, source: Source, *, replace_mode: bool) -> bool:
    """Whether the home's data is of the other kind and shall be replaced.

    Raises:
        ConfigurationError: it is of the other kind, and nobody said that it may be replaced.
    """
    if mode in {None, source}:
        return False
    if replace_mode:
        return True
    flag = "--replace-live" if source == "recorded" else "--replace-recorded"
    raise ConfigurationError(
        f"this home holds {mode} data, and a home is live or recorded, never both. Choose another folder with "
        f"GPUBAZAAR_HOME, or pass {flag} to `gpubazaar refresh` to replace what is there."
    )


def pace_for(picked: Iterable[Collector]) -> Pace:
    """One pace for all, at each host the slowest that a collector of it declares."""
    per_host: dict[str, float] = {}
    for c in picked:
        for host in c.allowed_hosts():
            per_host[host] = max(per_host.get(host, 0.0), c.host_interval_s)
    return Pace(per_host_s=per_host)


def collect(
    attempts: Sequence[Attempt], source: Source, deadline: float, say: Announce, stop: threading.Event | None
) -> None:
    """Run every provider in its own thread; what has not ended a little after the deadline counts as failed.

    Args:
        attempts: filled in place.
        source: the network or the fixtures.
        deadline: on the clock of `time.monotonic`.
        say: told when a provider starts.
        stop: ends all fetches soon after it is set.
    """
    halt = threading.Event()
    pace = pace_for(a.collector for a in attempts)
    pool = ThreadPoolExecutor(max_workers=min(MAX_WORKERS, max(1, len(attempts))), thread_name_prefix="refresh")

    def run(attempt: Attempt) -> Collected:
        say(attempt.collector.provider, "started")
        attempt.started_at = datetime.now(UTC)
        try:
            if source == "recorded":
                return collect_recorded(attempt.collector, known_hash=attempt.known.document_hash)
            return collect_live(attempt.collector, known=attempt.known, deadline=deadline, pace=pace, stop=halt)
        finally:
            attempt.finished_at = datetime.now(UTC)

    try:
        for attempt in attempts:
            attempt.future = pool.submit(run, attempt)
        _await([a.future for a in attempts if a.future], deadline + REPORT_S, halt, stop)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for attempt in attempts:
        _settle(attempt)


def _await(
    futures: Sequence[Future[Collected]], deadline: float, halt: threading.Event, stop: threading.Event | None
) -> None:
    """Wait for all, until the deadline or until told to stop; then tell the fetchers, and wait a little longer."""
    pending = set(futures)
    while pending and time.monotonic() < deadline and not (stop and stop.is_set()):
        _, pending = wait(pending, timeout=min(0.2, max(0.0, deadline - time.monotonic())))
    if pending:
        halt.set()
        for future in pending:
            future.cancel()
        wait(pending, timeout=STOP_S)


def _settle(attempt: Attempt) -> None:
    """Turn an attempt's exception into words. The one place where any error of a provider is caught."""
    future = attempt.future
    if future is None or future.cancelled() or not future.done():
        attempt.failure = "did not finish in time"
        attempt.cancelled = future is None or future.cancelled()
        return
    problem = future.exception()
    if problem is None:
        return
    attempt.failure = str(problem)
    attempt.skipped = isinstance(problem, CredentialsMissing)
    attempt.cancelled = isinstance(problem, Cancelled)
    if not isinstance(problem, GpuBazaarError):
        _log.error("unexpected error in %s", attempt.collector.provider, exc_info=problem)
        attempt.failure = f"unexpected {type(problem).__name__}: {problem}"
