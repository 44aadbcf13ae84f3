"""Who is refreshing what: two refreshes of one provider at the same time share one result.

Each provider under way is marked by an flock on `<home>/refreshing/<provider>.lock`. The kernel releases it when its
holder ends, however it ends; that the file exists means nothing.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import StoreError
from catalog.home import Home

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Flight:
    """Providers this refresh may fetch, and those that another one is fetching right now."""

    mine: tuple[str, ...]
    others: tuple[str, ...]


@contextmanager
def claimed(home: Home, providers: Iterable[str]) -> Iterator[Flight]:
    """Claim every provider that nobody else is refreshing, for the body of the with statement.

    Raises:
        StoreError: the data folder cannot be written.
    """
    held: dict[str, int] = {}
    others: list[str] = []
    try:
        for provider in providers:
            descriptor = _taken(_file(home, provider))
            if descriptor is None:
                others.append(provider)
            else:
                held[provider] = descriptor
        yield Flight(tuple(held), tuple(others))
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def landed(home: Home, provider: str, deadline: float, stop: threading.Event | None = None) -> bool:
    """Wait until nobody refreshes this provider any more; False where that did not happen in time.

    Args:
        home: the data folder.
        provider: whose refresh to wait for.
        deadline: on the clock of `time.monotonic`.
        stop: ends the wait.
    """
    while True:
        descriptor = _taken(_file(home, provider))
        if descriptor is not None:
            os.close(descriptor)
            return True
        if time.monotonic() >= deadline or (stop is not None and stop.is_set()):
            return False
        time.sleep(_POLL_S)


def _file(home: Home, provider: str) -> Path:
    return home.path / "refreshing" / f"{provider}.lock"


def _taken(path: Path) -> int | None:
    """The descriptor of the lock once held, or None where another process or thread holds it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise StoreError(
            f"cannot write in the data folder {path.parent.parent}: {problem.strerror}. "
            "Make it writable, or choose another one with GPUBAZAAR_HOME."
        ) from problem
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
