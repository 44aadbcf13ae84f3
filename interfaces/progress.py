"""Progress of a refresh: a live line on a terminal, nothing at all where standard error is not one."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self


class Progress:
    """Shows how many providers have finished and which are still under way."""

    def __init__(self) -> None:
        self._status: object | None = None
        self._running: dict[str, None] = {}
        self._done = 0

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(file=sys.stderr).status("refreshing")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from rich.status import Status

        if isinstance(self._status, Status):
            self._status.stop()

    def announce(self, provider: str, what: str) -> None:
        """Take one event of the refresh."""
        if what == "started":
            self._running[provider] = None
        elif self._running.pop(provider, "") is None:
            self._done += 1
        self._show()

    def _show(self) -> None:
        from rich.status import Status

        if isinstance(self._status, Status):
            names = ", ".join(list(self._running)[:6])
            more = f" and {len(self._running) - 6} more" if len(self._running) > 6 else ""
            self._status.update(f"{self._done} done, fetching {names}{more}" if names else f"{self._done} done")
