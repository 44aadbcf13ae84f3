"""Figures for monitoring, in Prometheus' text format: from the published catalog, and of this process.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4). Written to a file for the
textfile collector of node_exporter, or served on the loopback address.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.errors import ConfigurationError, StoreError
from catalog.queries import provider_health
from catalog.reader import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalog.home import Home
    from jobs.refresh import Report

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FRESHNESS = ("fresh", "aging", "stale", "expired", "never")
_Sample = tuple[Mapping[str, str], float]


class Counters:
    """What this process did since it started. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: Counter[tuple[str, str]] = Counter()
        self._events: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, float] = {}

    def report(self, report: Report) -> None:
        """Count the runs of a refresh."""
        with self._lock:
            for result in report.results:
                self._runs[result.provider, result.outcome] += 1
                self._seconds[result.provider] = result.seconds

    def event(self, provider: str, event: str) -> None:
        """Count something the scheduler noticed: a missed run, an overlap, an error, a jump of the clock."""
        with self._lock:
            self._events[provider, event] += 1

    def text(self) -> str:
        """The counters in text format."""
        with self._lock:
            runs: list[_Sample] = [({"provider": p, "outcome": o}, n) for (p, o), n in sorted(self._runs.items())]
            events: list[_Sample] = [({"provider": p, "event": e}, n) for (p, e), n in sorted(self._events.items())]
            seconds: list[_Sample] = [({"provider": p}, s) for p, s in sorted(self._seconds.items())]
        return (
            _family("gpubazaar_runs_total", "counter", "Refreshes of this process by outcome.", runs)
            + _family("gpubazaar_scheduler_events_total", "counter", "Missed, overlapping or failed jobs.", events)
            + _family("gpubazaar_last_run_seconds", "gauge", "How long the last fetch took.", seconds)
        )


def catalog_text(home: Home) -> str:
    """The state of the published catalog in text format; only `gpubazaar_up 0` where there is none."""
    try:
        with reading(home) as catalog:
            health = provider_health(catalog)
            snapshot = catalog.path.stat()
    except (StoreError, OSError):
        return _family("gpubazaar_up", "gauge", "Whether a catalog can be read.", [({}, 0)])
    return (
        _family("gpubazaar_up", "gauge", "Whether a catalog can be read.", [({}, 1)])
        + _family("gpubazaar_snapshot_bytes", "gauge", "Size of the published catalog.", [({}, snapshot.st_size)])
        + _family("gpubazaar_snapshot_timestamp_seconds", "gauge", "When it was published.", [({}, snapshot.st_mtime)])
        + _health_text(health)
    )


def _health_text(health: Sequence[Mapping[str, Any]]) -> str:
    tried = [h for h in health if h["last_attempt_at"] is not None]
    good = [h for h in health if h["last_success_at"] is not None]

    def per_provider(rows: Sequence[Mapping[str, Any]], value: Callable[[Mapping[str, Any]], float]) -> list[_Sample]:
        return [({"provider": row["provider"]}, value(row)) for row in rows]

    states: list[_Sample] = [
        ({"provider": h["provider"], "freshness": name}, float(h["freshness"] == name))
        for h in health
        for name in _FRESHNESS
    ]
    return "".join(
        (
            _family("gpubazaar_provider_rows", "gauge", "Offers of the last good run.",
                    per_provider(health, lambda h: h["row_count"])),
            _family("gpubazaar_provider_rejected_rows", "gauge", "Rows refused in the last good run.",
                    per_provider(health, lambda h: h["rejected_count"])),
            _family("gpubazaar_provider_unmapped_rows", "gauge", "GPU names outside the table.",
                    per_provider(health, lambda h: h["unmapped_count"])),
            _family("gpubazaar_provider_last_attempt_timestamp_seconds", "gauge", "Last refresh, however it ended.",
                    per_provider(tried, lambda h: h["last_attempt_at"].timestamp())),
            _family("gpubazaar_provider_last_success_timestamp_seconds", "gauge", "Date of the newest good data.",
                    per_provider(good, lambda h: h["last_success_at"].timestamp())),
            _family("gpubazaar_provider_max_age_seconds", "gauge", "Age up to which the data counts as fresh.",
                    per_provider(health, lambda h: h["max_age_s"])),
            _family("gpubazaar_provider_freshness", "gauge", "1 for the state the provider is in.", states),
        )
    )  # fmt: skip


def _family(name: str, kind: str, help_text: str, samples: Sequence[_Sample]) -> str:
    if not samples:
        return ""
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        shown = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
        lines.append(f"{name}{{{shown}}} {value!r}" if shown else f"{name} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def write_file(path: Path, text: str) -> None:
    """Replace the metrics file in one step, so that a scraper never sees half of it.

    Raises:
        ConfigurationError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as problem:
        raise ConfigurationError(f"cannot write the metrics file {path}: {problem.strerror}") from problem


@contextmanager
def served(port: int, text: Callable[[], str]) -> Iterator[int]:
    """Serve `GET /metrics` on 127.0.0.1 for the body of the with statement; yields the port (a free one for 0).

    Raises:
        ConfigurationError: the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.partition("?")[0] in {"/metrics", "/"}
            body = text().encode() if found else b"see /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Scrapes are no news."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as problem:
        raise ConfigurationError(f"cannot serve metrics on 127.0.0.1:{port}: {problem.strerror}") from problem
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=2)
