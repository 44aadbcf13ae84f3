"""Refresh: providers side by side, isolated from each other, one run record each, one publish at the end.

Fetching and parsing need no lock. Afterwards one writer stores every run in its own transaction (exchange rates first,
because the price bands of the others are in dollars) and publishes a snapshot. A provider that fails or is held keeps
its last good rows.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from catalog.errors import CatalogMissing, ConfigurationError, GpuBazaarError
from catalog.home import Home
from catalog.queries import known_documents
from catalog.reader import Catalog, reading
from catalog.types import Outcome
from catalog.writer import ProviderFacts, Writer, writing
from collectors.contract import Collector
from collectors.errors import CredentialsMissing
from collectors.fixtures import recorded_providers
from collectors.http import Pace, Validator
from collectors.registry import collector, collectors_by_provider
from jobs.collect import Collected, KnownDocuments, collect_live, collect_recorded
from jobs.store_run import RunClock, store

Source = Literal["live", "recorded"]
Announce = Callable[[str, str], None]

MAX_WORKERS = 8
WRITE_SECONDS = 30.0
_log = logging.getLogger("gpubazaar.refresh")


@dataclass(frozen=True, slots=True)
class ProviderResult:
    """How one provider's refresh ended; `note` is in plain words."""

    provider: str
    outcome: Outcome
    note: str
    row_count: int = 0
    rejected_count: int = 0
    unmapped_count: int = 0
    changed_count: int = 0
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """How a refresh ended, provider by provider."""

    results: tuple[ProviderResult, ...]
    snapshot: Path | None
    as_of: datetime

    @property
    def troubled(self) -> bool:
        """Whether a provider failed or was held; one skipped for want of a key is no trouble."""
        return any(r.outcome in {"failed", "held"} for r in self.results)


@dataclass(slots=True)
class _Attempt:
    """One provider on its way: what it was asked, and what came of it."""

    collector: Collector
    started_at: datetime
    future: Future[Collected] | None = None
    failure: str = ""
    skipped: bool = False
    known: KnownDocuments = field(default_factory=KnownDocuments)


def chosen_collectors(names: Iterable[str], source: Source) -> list[Collector]:
    """The collectors to run: those named, or all that a person may wait for.

    Raises:
        UnknownName: a provider that does not exist.
    """
    wanted = list(dict.fromkeys(names))
    if wanted:
        return [collector(name) for name in wanted]
    everything = collectors_by_provider().values()
    if source == "recorded":
        recorded = set(recorded_providers())
        return [c for c in everything if c.provider in recorded]
    return [c for c in everything if c.on_demand]


def refresh(
    home: Home,
    names: Iterable[str] = (),
    *,
    source: Source = "live",
    timeout_s: float = 60.0,
    replace_mode: bool = False,
    announce: Announce | None = None,
    stop: threading.Event | None = None,
) -> Report:
    """Refresh providers and publish.

    Args:
        home: where the catalog lies.
        names: providers; all where empty (bulk sources only from fixtures or by name).
        source: the network, or the recorded fixtures.
        timeout_s: for fetching all of them; the write that follows has its own bound.
        replace_mode: forget live data for recorded data or the other way round, instead of refusing.
        announce: called with (provider, what happens) for a progress display.
        stop: ends the fetches early; what has arrived is still stored.

    Raises:
        UnknownName: no such provider.
        ConfigurationError: the home holds the other kind of data.
        StoreBusy: another process is writing and does not finish.
    """
    picked = chosen_collectors(names, source)
    say = announce or _silent
    attempts = _prepare(home, picked, source, replace_mode)
    deadline = time.monotonic() + timeout_s
    _collect(attempts, source, deadline, say, stop)
    with writing(home, timeout_s=max(seconds_left(deadline), WRITE_SECONDS)) as writer:
        _claim(writer, source, replace_mode)
        writer.set_providers(_facts(c) for c in collectors_by_provider().values())
        results = [_store(writer, attempt, source, say) for attempt in _rates_first(attempts)]
        snapshot = writer.publish()
    order = [c.provider for c in picked]
    return Report(tuple(sorted(results, key=lambda r: order.index(r.provider))), snapshot, datetime.now(UTC))


def _silent(provider: str, what: str) -> None:
    del provider, what


def _prepare(home: Home, picked: Sequence[Collector], source: Source, replace_mode: bool) -> list[_Attempt]:
    """Refuse a home of the other kind, and remember what the last run knew, before anything is fetched."""
    now = datetime.now(UTC)
    attempts = [_Attempt(c, now) for c in picked]
    try:
        with reading(home) as catalog:
            if not _other_mode(catalog.mode(), source, replace_mode):
                for attempt in attempts:
                    attempt.known = _known(catalog, attempt.collector.provider)
    except CatalogMissing:
        pass  # nothing known yet: everything is fetched in full
    return attempts


def _known(catalog: Catalog, provider: str) -> KnownDocuments:
    digest, states = known_documents(catalog, provider)
    validators = {s["url"]: Validator(s["etag"] or "", s["last_modified"] or "", s["sha256"]) for s in states}
    return KnownDocuments(digest, validators)


def _other_mode(mode: str | None, source: Source, replace_mode: bool) -> bool:
    """Whether the home's data is of the other kind and shall be replaced."""
    if mode in {None, source}:
        return False
    if replace_mode:
        return True
    flag = "--replace-live" if source == "recorded" else "--replace-recorded"
    raise ConfigurationError(
        f"this home holds {mode} data, and a home is live or recorded, never both. Choose another folder with "
        f"GPUBAZAAR_HOME, or pass {flag} to replace what is there."
    )


def _claim(writer: Writer, source: Source, replace_mode: bool) -> None:
    if _other_mode(writer.mode, source, replace_mode):
        writer.clear()
    writer.set_mode(source)


def _collect(
    attempts: Sequence[_Attempt], source: Source, deadline: float, say: Announce, stop: threading.Event | None
) -> None:
    """Run every provider in its own thread; what has not ended a little after the deadline counts as failed."""
    halt = stop or threading.Event()
    pace = Pace()
    pool = ThreadPoolExecutor(max_workers=min(MAX_WORKERS, max(1, len(attempts))), thread_name_prefix="refresh")

    def run(attempt: _Attempt) -> Collected:
        say(attempt.collector.provider, "started")
        if source == "recorded":
            return collect_recorded(attempt.collector, known_hash=attempt.known.document_hash)
        return collect_live(attempt.collector, known=attempt.known, deadline=deadline, pace=pace, stop=halt)

    try:
        for attempt in attempts:
            attempt.future = pool.submit(run, attempt)
        _, late = wait([a.future for a in attempts if a.future], timeout=seconds_left(deadline) + 2.0)
        if late:
            halt.set()
            wait(late, timeout=3.0)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for attempt in attempts:
        _settle(attempt)


def _settle(attempt: _Attempt) -> None:
    """Turn an attempt's exception into words. The one place where any error of a provider is caught."""
    future = attempt.future
    if future is None or not future.done() or future.cancelled():
        attempt.failure = "did not finish in time"
        return
    problem = future.exception()
    if problem is None:
        return
    if isinstance(problem, CredentialsMissing):
        attempt.skipped = True
        attempt.failure = str(problem)
    elif isinstance(problem, GpuBazaarError):
        attempt.failure = str(problem)
    else:
        _log.error("unexpected error in %s", attempt.collector.provider, exc_info=problem)
        attempt.failure = f"unexpected {type(problem).__name__}: {problem}"


def _rates_first(attempts: Iterable[_Attempt]) -> list[_Attempt]:
    return sorted(attempts, key=lambda a: a.collector.kind != "rates")


def _store(writer: Writer, attempt: _Attempt, source: Source, say: Announce) -> ProviderResult:
    clock = RunClock(_run_id(attempt), attempt.started_at, datetime.now(UTC), source)
    collected = attempt.future.result() if attempt.future and not attempt.failure else None
    stored = store(writer, attempt.collector, collected, clock, failure=attempt.failure, skipped=attempt.skipped)
    say(attempt.collector.provider, stored.run.outcome)
    run = stored.run
    return ProviderResult(
        run.provider, run.outcome, run.reason, run.row_count, run.rejected_count, run.unmapped_count,
        stored.changed_count, run.run_id,
    )  # fmt: skip


def seconds_left(deadline: float) -> float:
    """Seconds until a deadline on the clock of `time.monotonic`, at least 0."""
    return max(0.0, deadline - time.monotonic())


def _run_id(attempt: _Attempt) -> str:
    return f"{attempt.collector.provider}-{attempt.started_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def _facts(c: Collector) -> ProviderFacts:
    return ProviderFacts(
        c.provider, c.title, c.home_page, c.kind, c.cadence_s, c.max_age_s, c.on_demand, c.currency, c.counted,
        c.terms_note,
    )  # fmt: skip
