"""What the scheduler and a single turn of it share: who may run, what the store knows of past runs, one turn."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from catalog.errors import CatalogMissing, ConfigurationError, StoreBusy, StoreError
from catalog.home import Home
from catalog.lock import exclusive
from catalog.reader import reading
from collectors.contract import Collector
from collectors.registry import collector, collectors_by_provider
from jobs.due import Attempts
from jobs.journal import event
from jobs.refresh import Report, refresh

FETCH_SECONDS = 60.0
BULK_SECONDS = 900.0


@contextmanager
def only_scheduler(home: Home) -> Iterator[None]:
    """Be the one scheduler of this data folder.

    Raises:
        ConfigurationError: another one runs.
    """
    home.ensure()
    try:
        with exclusive(home.path / "scheduler.lock", 0.0, what="the schedule"):
            yield
    except StoreBusy as problem:
        holder = (home.path / "scheduler.lock").read_text(encoding="ascii", errors="replace").strip()
        raise ConfigurationError(
            f"a scheduler (process {holder or 'unknown'}) already runs for {home.path}, and a second one would fetch "
            "everything twice. Stop that one first, or set GPUBAZAAR_HOME to another folder."
        ) from problem


def past_attempts(home: Home) -> dict[str, Attempts]:
    """What the published catalog says of each provider's runs; empty where nothing is published."""
    try:
        with reading(home) as catalog:
            rows = catalog.rows("SELECT * FROM v_provider_health")
    except CatalogMissing:
        return {}
    except StoreError as problem:
        event("catalog_unreadable", level=logging.ERROR, detail=str(problem))
        return {}
    return {
        r["provider"]: Attempts(r["last_attempt_at"], r["last_success_at"], r["consecutive_failures"] or 0)
        for r in rows
    }


def run_once(home: Home, names: Iterable[str] = (), *, stop: threading.Event | None = None) -> list[Report]:
    """Refresh every provider (or those named) now: quick sources together, then each bulk source on its own.

    Raises:
        ConfigurationError: another scheduler runs, or the home holds recorded data.
        UnknownName: no such provider.
    """
    picked = chosen(names)
    with only_scheduler(home):
        groups = [group for group in _groups(picked) if group]
        return [
            refresh(home, [c.provider for c in group], timeout_s=deadline_s(group[0]), stop=stop)
            for group in groups
            if not (stop and stop.is_set())
        ]


def chosen(names: Iterable[str]) -> list[Collector]:
    """The collectors named, or all of them, bulk sources included."""
    return [collector(n) for n in dict.fromkeys(names)] or list(collectors_by_provider().values())


def deadline_s(c: Collector) -> float:
    """How long one fetch of a provider may take."""
    return FETCH_SECONDS if c.on_demand else min(BULK_SECONDS, float(c.cadence_s))


def _groups(picked: Sequence[Collector]) -> list[list[Collector]]:
    return [[c for c in picked if c.on_demand], *([c] for c in picked if not c.on_demand)]
