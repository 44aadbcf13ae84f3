"""One request on the wire, in the worker thread: its turn, redirects, retries, and a bounded body."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import stamina

from collectors.errors import Blocked, CapExceeded, FetchError, Retriable, scrub
from collectors.http_answer import REDIRECTS, Answer, check_answer, retry_after_s
from collectors.http_body import read_body
from collectors.http_limits import ROBOTS_MAX_BYTES, FetchLimits, Pace
from collectors.http_robots import Robots
from collectors.line_sieve import LineSieve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from collectors.http_targets import Targets
    from collectors.http_worker import Job
    from collectors.line_sieve import KeepLines

PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "range"})
"""Request headers that never carry a key."""

_ERROR_BODY_BYTES = 1 << 18

# Retries are reported in errors and run records; without a logging set-up they must not print on stderr.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class _ScrubbedUrls(logging.Filter):
    """httpx logs every address at INFO, keys in the query included."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(scrub(str(a)) if isinstance(a, httpx.URL) else a for a in record.args)
        return True


logging.getLogger("httpx").addFilter(_ScrubbedUrls())
# Its DEBUG log shows raw response headers: cookies, and redirects with their keys.
logging.getLogger("httpcore").setLevel(logging.INFO)


@dataclass(frozen=True, slots=True)
class Hop:
    """One request as it is sent, with what must not show in messages."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    secrets: tuple[str, ...]
    max_decoded_bytes: int
    keep: KeepLines | None = None

    @property
    def shown(self) -> str:
        """The address for messages."""
        return scrub(self.url, self.secrets)


@dataclass(frozen=True, slots=True)
class Rules:
    """What all requests of one fetcher share."""

    limits: FetchLimits
    targets: Targets
    pace: Pace
    robots: Robots
    agent: str
    clock: Callable[[], datetime]


class Exchange:
    """Gets the answer to one request. Lives in the worker thread, as long as one job."""

    def __init__(self, rules: Rules, client: httpx.Client, job: Job[Any]) -> None:
        """Keep the fetcher's rules, the thread's client, and the job that knows deadline and cancellation."""
        self._rules = rules
        self._client = client
        self._job = job

    def answer(self, first: Hop, *, robots: bool, allow_empty: bool = False) -> Answer:
        """A usable answer (2xx with a body, or 304), after redirects and retries; errors as `Fetcher.fetch`."""
        answer: Answer | None = None
        for attempt in stamina.retry_context(
            on=self._wait_before_retry,
            attempts=self._rules.limits.attempts,
            timeout=None,
            wait_initial=self._rules.limits.retry_wait_s,
            wait_jitter=self._rules.limits.retry_wait_s,
            wait_max=self._rules.limits.total_s,
        ):
            with attempt:
                answer = self._follow_redirects(first, robots=robots)
                check_answer(answer, first.shown, first.secrets, allow_empty=allow_empty)
        assert answer is not None
        return answer

    def _wait_before_retry(self, problem: Exception) -> bool | float:
        """Whether to retry: True after stamina's back-off, a number after that many seconds, False not at all."""
        if not isinstance(problem, Retriable) or self._job.cancelled.is_set():
            return False
        self._job.last_problem = str(problem)
        wait_s = problem.retry_after_s
        if wait_s is None:
            return self._job.remaining_s() > self._rules.limits.retry_wait_s
        return max(wait_s, self._rules.limits.retry_wait_s) if wait_s < self._job.remaining_s() else False

    def _follow_redirects(self, first: Hop, *, robots: bool) -> Answer:
        targets = self._rules.targets
        hop, host = first, targets.host_of(first.url)
        for _ in range(self._rules.limits.max_redirects + 1):
            if robots:
                self._rules.robots.check(hop.url, host, self._robots_txt)
            answer = self._send(hop, host)
            location = answer.headers.get("location", "")
            if answer.status not in REDIRECTS or not location:
                return answer
            url = targets.redirected(hop.url, location)
            previous, host = host, targets.host_of(url, came_from=hop.shown)
            hop = _redirected(hop, url, answer.status, same_host=host == previous)
        raise CapExceeded(f"{first.shown} redirects more than {self._rules.limits.max_redirects} times", first.url)

    def _robots_txt(self, url: str) -> bytes:
        hop = Hop("GET", url, {}, None, (), ROBOTS_MAX_BYTES)
        return self.answer(hop, robots=False, allow_empty=True).body

    def _send(self, hop: Hop, host: str) -> Answer:
        self._wait_for_turn(hop, host)
        timeout = self._timeout()
        headers = dict(hop.headers) | {
            # A byte range counts in the encoded form (RFC 9110, section 14.1.2): ask for the plain one.
            "accept-encoding": "identity" if "range" in hop.headers else "gzip, deflate",
            "user-agent": self._rules.agent,
            "host": host,
        }
        address = self._rules.targets.send_to(hop.url)
        # `from None`: the library's own messages can quote header values.
        try:
            with self._client.stream(
                hop.method, address, headers=headers, content=hop.body, timeout=timeout
            ) as response:
                answer = self._read(response, hop)
        except httpx.TimeoutException as problem:
            self._job.check()
            raise Retriable(f"{hop.shown}: {_waited_for(problem, timeout)}", hop.url, None, hop.secrets) from None
        except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError):
            message = f"{hop.shown} cannot be asked: its address or a header, such as a key, has a forbidden character"
            raise FetchError(message, hop.url, None, hop.secrets) from None
        except (httpx.HTTPError, OSError) as problem:
            self._job.check()
            raise Retriable(f"{hop.shown} {_plainly(problem, host)}", hop.url, None, hop.secrets) from None
        if answer.status in {429, 503} and (asked_s := retry_after_s(answer)) is not None:
            self._rules.pace.hold(host, asked_s)
        return answer

    def _wait_for_turn(self, hop: Hop, host: str) -> None:
        wait_s, in_time = self._rules.pace.reserve(host, self._job.remaining_s())
        if not in_time:
            message = f"{hop.shown}: the next request to {host} may go out in {wait_s:.0f} s, after the deadline"
            raise Retriable(message, hop.url, retry_after_s=wait_s)
        self._job.pause(wait_s)

    def _timeout(self) -> httpx.Timeout:
        left_s = max(self._job.remaining_s(), 0.001)
        limits = self._rules.limits
        return httpx.Timeout(min(limits.read_s, left_s), connect=min(limits.connect_s, left_s))

    def _read(self, response: httpx.Response, hop: Hop) -> Answer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        usable = 200 <= status < 300
        length = headers.get("content-length", "")
        try:
            body = read_body(
                self._watched(response.iter_raw()),
                url=hop.shown,
                encoding=headers.get("content-encoding", ""),
                expected_bytes=int(length) if length.isdecimal() and usable and hop.method != "HEAD" else None,
                max_raw_bytes=self._max_raw_bytes(hop) if usable else _ERROR_BODY_BYTES,
                max_decoded_bytes=hop.max_decoded_bytes if usable else _ERROR_BODY_BYTES,
                sieve=LineSieve(hop.keep) if hop.keep and usable else None,
            )
        except FetchError:
            self._job.check()
            if usable:
                raise
            body = b""  # the status of an error answer counts, not its text
        return Answer(status, headers, body, self._rules.clock())

    def _max_raw_bytes(self, hop: Hop) -> int:
        limits = self._rules.limits
        # A server may ignore a byte range and send the whole file: no more is read of it than was asked for.
        asked = range_bytes(hop.headers.get("range", ""))
        allowed = limits.max_sieved_bytes if hop.keep else limits.max_raw_bytes
        return min(asked, allowed) if asked else allowed

    def _watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks; ends with an error at the deadline or when the caller gave up, however slowly they drip."""
        for chunk in chunks:
            self._job.check()
            yield chunk


def range_bytes(header: str) -> int | None:
    """How many bytes a Range header of one closed range, such as `bytes=0-99`, asks for; None for any other."""
    found = re.fullmatch(r"bytes=(\d+)-(\d+)", header)
    return max(0, int(found[2]) - int(found[1]) + 1) if found else None


def _redirected(hop: Hop, url: str, status: int, *, same_host: bool) -> Hop:
    """The next hop. Keys never go to another host, and neither does a request body."""
    method, body, headers = hop.method, hop.body, dict(hop.headers)
    if status == 303 or (status in {301, 302} and method == "POST"):
        method, body = "GET", None
        headers.pop("content-type", None)
    if not same_host:
        headers = {name: value for name, value in headers.items() if name in PLAIN_HEADERS}
        if body is not None:
            message = f"{hop.shown} redirects a {method} with a body to {scrub(url)}; not sent there"
            raise Blocked(message, hop.url, status, hop.secrets, reason="host")
    return Hop(method, url, headers, body, hop.secrets, hop.max_decoded_bytes, hop.keep)


def _plainly(problem: Exception, host: str) -> str:
    """Why a connection failed, in words that say what to look at."""
    text = str(problem) or type(problem).__name__
    low = text.casefold()
    if any(
        mark in low for mark in ("name or service not known", "name resolution", "nodename nor servname", "getaddrinfo")
    ):
        return f"cannot be reached: no network, or the name {host} does not resolve"
    if "refused" in low:
        return f"cannot be reached: {host} refused the connection"
    if "unreachable" in low:
        return f"cannot be reached: no route to {host}"
    if "certificate" in low:
        return f"cannot be trusted: {text}"
    return f"cannot be fetched: {text}"


def _waited_for(problem: httpx.TimeoutException, timeout: httpx.Timeout) -> str:
    if isinstance(problem, httpx.ConnectTimeout):
        return f"no connection within {timeout.connect:g} s"
    return f"no data for {timeout.read:g} s"
