"""Refresh: providers side by side, isolated from each other, one run record each, one publish at the end.

Fetching and parsing need no lock. Afterwards one writer stores every run in its own transaction (exchange rates first,
because the price bands of the others are in dollars) and publishes a snapshot. A provider that fails or is held keeps
its last good rows. A provider that another process is refreshing is not fetched twice: its result is shared.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from catalog.errors import CatalogMissing, StoreBusy
from catalog.home import Home
from catalog.queries import provider_health
from catalog.reader import reading
from catalog.types import Outcome
from catalog.writer import ProviderFacts, Writer, writing
from collectors.contract import Collector
from collectors.fixtures import recorded_providers
from collectors.registry import collector, collectors_by_provider
from jobs.attempts import Announce, Attempt, Source, collect, other_mode, prepare
from jobs.flight import claimed, landed
from jobs.store_run import RunClock, accept, store

WRITE_SECONDS = 10.0
STOPPED = "stopped before it finished"
UNFINISHED = "another process was refreshing it and did not finish"
# A result that another process fetched so shortly before we asked is as good as one of our own.
SHARED_AGE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class ProviderResult:
    """How one provider's refresh ended; `note` is in plain words. `shared`: another process had begun it before."""

    provider: str
    outcome: Outcome
    note: str
    row_count: int = 0
    rejected_count: int = 0
    unmapped_count: int = 0
    changed_count: int = 0
    run_id: str = ""
    seconds: float = 0.0
    shared: bool = False


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
    write_wait_s: float = WRITE_SECONDS,
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
        write_wait_s: how long to wait for another writer at least, when fetching has used up the time.

    Raises:
        UnknownName: no such provider.
        ConfigurationError: the home holds the other kind of data.
        StoreBusy: another process is writing, or refreshing the same providers, and does not finish.
        StoreError: the data folder cannot be written.
    """
    picked = chosen_collectors(names, source)
    say = announce or _silent
    deadline = time.monotonic() + timeout_s
    asked_at = datetime.now(UTC)
    home.ensure()
    results: list[ProviderResult] = []
    snapshot = None
    with claimed(home, (c.provider for c in picked)) as flight:
        mine = [c for c in picked if c.provider in flight.mine]
        if mine:
            attempts = prepare(home, mine, source, replace_mode=replace_mode)
            collect(attempts, source, deadline, say, stop)
            wait_s = max(seconds_left(deadline), write_wait_s)
            results, snapshot = _write(home, attempts, source, wait_s, say, replace_mode=replace_mode)
    shared = _await_others(home, flight.others, asked_at, deadline, stop, alone=not flight.mine)
    orphans = [r.provider for r in shared if r.note == UNFINISHED]
    if orphans and seconds_left(deadline) > 1 and not (stop and stop.is_set()):
        # The other process ended without a result: it is our turn.
        again = refresh(
            home, orphans, source=source, timeout_s=seconds_left(deadline), replace_mode=replace_mode,
            announce=announce, stop=stop, write_wait_s=write_wait_s,
        )  # fmt: skip
        shared = [*(r for r in shared if r.provider not in orphans), *again.results]
        snapshot = again.snapshot or snapshot
    results += shared
    order = [c.provider for c in picked]
    return Report(tuple(sorted(results, key=lambda r: order.index(r.provider))), snapshot, datetime.now(UTC))


def accept_held(home: Home, provider: str, run_id: str, *, timeout_s: float = WRITE_SECONDS) -> Report:
    """Publish a held run's rows after a person looked at them.

    Raises:
        UnknownName: no such provider, or no rows of such a run are kept.
        StoreBusy: another process is writing and does not finish.
    """
    found = collector(provider)
    with writing(home, timeout_s=timeout_s) as writer:
        stored = accept(writer, found.provider, run_id, datetime.now(UTC))
        snapshot = writer.publish()
    run = stored.run
    result = ProviderResult(
        run.provider, run.outcome, run.reason, run.row_count, changed_count=stored.changed_count, run_id=run.run_id
    )
    return Report((result,), snapshot, datetime.now(UTC))


def _silent(provider: str, what: str) -> None:
    del provider, what


def _write(
    home: Home, attempts: Sequence[Attempt], source: Source, wait_s: float, say: Announce, *, replace_mode: bool
) -> tuple[list[ProviderResult], Path | None]:
    stopped = [a for a in attempts if a.cancelled]
    finished = sorted((a for a in attempts if not a.cancelled), key=lambda a: a.collector.kind != "rates")
    results = [ProviderResult(a.collector.provider, "skipped", STOPPED) for a in stopped]
    if not finished:
        return results, None
    with writing(home, timeout_s=wait_s) as writer:
        brought = any(a.collected is not None for a in finished)
        if other_mode(writer.mode, source, replace_mode=replace_mode):
            if not brought:  # there is nothing to put in the place of what is stored
                failed = [ProviderResult(a.collector.provider, "failed", a.failure) for a in finished]
                return [*results, *failed], None
            writer.clear()
        if brought:
            writer.set_mode(source)
        writer.set_providers(_facts(c) for c in collectors_by_provider().values())
        results += [_store(writer, attempt, source, say) for attempt in finished]
        snapshot = writer.publish()
    return results, snapshot


def _store(writer: Writer, attempt: Attempt, source: Source, say: Announce) -> ProviderResult:
    finished_at = attempt.finished_at or datetime.now(UTC)
    clock = RunClock(_run_id(attempt), attempt.started_at, finished_at, source)
    stored = store(
        writer, attempt.collector, attempt.collected, clock, failure=attempt.failure, skipped=attempt.skipped
    )
    say(attempt.collector.provider, stored.run.outcome)
    run = stored.run
    return ProviderResult(
        run.provider, run.outcome, run.reason, run.row_count, run.rejected_count, run.unmapped_count,
        stored.changed_count, run.run_id, (finished_at - attempt.started_at).total_seconds(),
    )  # fmt: skip


def _await_others(
    home: Home, providers: Sequence[str], asked_at: datetime, deadline: float, stop: threading.Event | None, *,
    alone: bool,
) -> list[ProviderResult]:  # fmt: skip
    """The results of providers that another process was refreshing when this refresh began.

    Raises:
        StoreBusy: none of the providers asked for was free, and one did not end in time.
    """
    late = [p for p in providers if not landed(home, p, deadline, stop)]
    if late and alone:
        raise StoreBusy(
            f"{', '.join(late)} in {home.path}: another process is refreshing and did not finish in time. "
            "Its result will be used when it has; try again then."
        )
    found = _published(home, providers)
    results = []
    for provider in providers:
        row = found.get(provider)
        tried_at = row["last_attempt_at"] if row else None
        if provider in late or row is None or tried_at is None or tried_at < asked_at - SHARED_AGE:
            results.append(ProviderResult(provider, "failed", UNFINISHED, shared=True))
            continue
        note = "; ".join(filter(None, (row["note"], "shared with another refresh")))
        counts = row["row_count"], row["rejected_count"], row["unmapped_count"]
        results.append(ProviderResult(provider, row["outcome"], note, *counts, shared=True))
    return results


def _published(home: Home, providers: Sequence[str]) -> dict[str, dict[str, Any]]:
    if not providers:
        return {}
    try:
        with reading(home) as catalog:
            return {row["provider"]: row for row in provider_health(catalog, providers)}
    except CatalogMissing:
        return {}


def seconds_left(deadline: float) -> float:
    """Seconds until a deadline on the clock of `time.monotonic`, at least 0."""
    return max(0.0, deadline - time.monotonic())


def _run_id(attempt: Attempt) -> str:
    return f"{attempt.collector.provider}-{attempt.started_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def _facts(c: Collector) -> ProviderFacts:
    return ProviderFacts(
        c.provider, c.title, c.home_page, c.kind, c.cadence_s, c.max_age_s, c.on_demand, c.currency, c.counted,
        c.terms_note,
    )  # fmt: skip
