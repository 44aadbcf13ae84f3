"""How much, how long and how often a collector may fetch: limits, and the pace per host."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectors.http_body import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

ROBOTS_MAX_BYTES = MIB // 2
"""RFC 9309, section 2.5, asks a crawler to read at least 500 KiB of robots.txt."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one request.

    Attributes:
        connect_s: longest wait for a connection.
        read_s: longest silence between two reads.
        total_s: deadline of the whole request: waiting for its turn, DNS, redirects, retries and waits between them.
        max_raw_bytes: cap on the bytes received, compressed.
        max_decoded_bytes: cap on the bytes after inflating, and after dropping lines where only some are kept.
        max_sieved_bytes: cap on the bytes received where only some lines are kept.
        max_redirects: hops that are followed.
        attempts: tries in all, 1 = no retry.
        retry_wait_s: first wait before a retry; it doubles each time and varies by up to as much again.
        respect_robots: read robots.txt first; for pages made for people, not for published APIs.
    """

    connect_s: float = 5.0
    read_s: float = 15.0
    total_s: float = 60.0
    max_raw_bytes: int = 64 * MIB
    max_decoded_bytes: int = 256 * MIB
    max_sieved_bytes: int = 4096 * MIB
    max_redirects: int = 5
    attempts: int = 3
    retry_wait_s: float = 0.5
    respect_robots: bool = False


class Pace:
    """A minimum interval between requests to one host. Safe to share between the fetchers of several threads."""

    def __init__(self, interval_s: float = 0.2, per_host_s: Mapping[str, float] | None = None) -> None:
        """Set the interval for every host, and longer or shorter ones for hosts that publish theirs."""
        self._interval_s = interval_s
        self._per_host_s = dict(per_host_s or {})
        self._next: dict[str, float] = {}
        self._lock = threading.Lock()

    def reserve(self, host: str, longest_s: float) -> tuple[float, bool]:
        """Seconds until this host's turn, and whether that is within `longest_s`; only then the turn is taken."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next.get(host, now))
            taken = turn - now <= longest_s
            if taken:
                self._next[host] = turn + self._per_host_s.get(host, self._interval_s)
            return turn - now, taken

    def hold(self, host: str, seconds: float) -> None:
        """No request to `host` for so long: what its Retry-After asks."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)

    def slow_down(self, host: str, interval_s: float) -> None:
        """Raise the interval of `host` to what its robots.txt asks; never lowers it."""
        with self._lock:
            self._per_host_s[host] = max(self._per_host_s.get(host, self._interval_s), interval_s)
