"""The one HTTP client of all collectors: polite, bounded in time and size, and confined to the collector's hosts.

Proxies, NO_PROXY and SSL_CERT_FILE are taken from the environment, as curl does, because platform teams sit behind
them; mapped loopback servers are reached directly. Redirects are followed here, hop by hop, so that the allow-list sees
each one. Cookies are not kept.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Self

import httpx

from catalog.errors import ConfigurationError
from catalog.types import Document
from collectors.errors import Cancelled, FetchError, scrub
from collectors.http_answer import fetched_at, kept_headers
from collectors.http_exchange import PLAIN_HEADERS, Exchange, Hop, Rules
from collectors.http_limits import FetchLimits, Pace
from collectors.http_robots import Robots
from collectors.http_targets import Targets, fetch_map_from
from collectors.http_worker import Job, Worker

if TYPE_CHECKING:
    import ssl
    import threading
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from collectors.contract import Request

__all__ = ["FetchLimits", "Fetcher", "Pace", "Validator", "default_user_agent", "fetch_map_from"]


@cache
def default_user_agent() -> str:
    """`gpubazaar/<version> (+<home page>)`, both from the installed distribution."""
    try:
        metadata = importlib.metadata.metadata("gpubazaar")
    except importlib.metadata.PackageNotFoundError:
        return "gpubazaar/dev"
    links = (entry.partition(",") for entry in metadata.get_all("Project-URL") or ())
    home = next((link.strip() for label, _, link in links if label.strip().lower() == "homepage"), "")
    return f"gpubazaar/{metadata['Version']}" + (f" (+{home})" if home else "")


@dataclass(frozen=True, slots=True)
class Validator:
    """What the last run knew about a document: asks the server whether it changed since."""

    etag: str = ""
    last_modified: str = ""
    sha256: str = ""

    @classmethod
    def of(cls, document: Document) -> Self:
        """The validator to keep, under `document.url`, for the next run; a 304 carries its predecessor's over."""
        return cls(
            document.headers.get("etag", ""), document.headers.get("last-modified", ""), document.sha256
        )  # fmt: skip

    def conditions(self) -> dict[str, str]:
        """Request headers; none where the server gave neither tag nor date."""
        pairs = (("if-none-match", self.etag), ("if-modified-since", self.last_modified))
        return {name: value for name, value in pairs if value}


class Fetcher:
    """Fetches the documents of one provider. A context manager for one thread; make one per provider and run."""

    def __init__(
        self,
        *,
        provider: str,
        allowed_hosts: frozenset[str],
        limits: FetchLimits | None = None,
        validators: Mapping[str, Validator] | None = None,
        fetch_map: Mapping[str, str] | None = None,
        user_agent: str | None = None,
        pace: Pace | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        stop: threading.Event | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            provider: name for documents and messages.
            allowed_hosts: hosts that requests and redirects may reach.
            limits: bounds of each request.
            validators: by `Document.url` of the last run; they make GET requests conditional.
            fetch_map: as `fetch_map_from` gives it.
            user_agent: `default_user_agent()` by default.
            pace: shared between fetchers to keep the interval per host over all of them.
            clock: aware UTC now, for `fetched_at`.
            stop: once set, a running fetch ends within a second and later ones do not start.
        """
        self.provider = provider
        agent = user_agent or default_user_agent()
        pace = pace or Pace()
        self._rules = Rules(
            limits=limits or FetchLimits(),
            targets=Targets(provider, allowed_hosts, fetch_map),
            pace=pace,
            robots=Robots(agent, pace),
            agent=agent,
            clock=clock,
        )
        self._validators = dict(validators or {})
        self._stop = stop
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Work that was left behind closes its own when it ends."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def fetch(self, request: Request, *, conditional: bool = True, until: float | None = None) -> Document:
        """The document at `request.url`, inflated.

        `Document.url` is the requested address (not the mapped one, not the redirected one) with key-like parameters
        redacted. A 304 gives a document with status 304, an empty body and the old sha256.

        Args:
            request: what to fetch.
            conditional: send this address's validator; False forces a full answer.
            until: a further deadline on the clock of `time.monotonic`, such as the whole run's.

        Raises:
            Retriable: time-outs, broken or truncated answers, 408, 425, 429, 5xx, after the retries.
            Blocked: 401, 403, 407, 451, a challenge or busy page, robots.txt, a host off the allow-list.
            Gone: 404, 410.
            CapExceeded: too large, or too many redirects.
            Cancelled: `stop` was set.
            FetchError: any other answer, or an empty one.
        """
        shown = scrub(request.url, _secrets(request))
        if self._stop is not None and self._stop.is_set():
            raise Cancelled(f"{shown}: stopped", shown)
        deadline = time.monotonic() + self._rules.limits.total_s
        validator = self._validator(request) if conditional else None
        work = partial(self._document, request, validator)
        job: Job[Document] = Job(work, shown, deadline if until is None else min(deadline, until))
        if self._worker is None or not self._worker.usable:
            self._worker = Worker(self._client(), f"fetch-{self.provider}")
        return self._worker.run(job, self._stop)

    def _validator(self, request: Request) -> Validator | None:
        return self._validators.get(scrub(request.url)) if request.method.upper() == "GET" else None

    def _client(self) -> httpx.Client:
        try:
            return httpx.Client(
                verify=_ssl_context(),
                follow_redirects=False,
                mounts={f"all://{f'[{h}]' if ':' in h else h}": None for h in self._rules.targets.loopback_hosts},
            )
        except (ImportError, ValueError, httpx.InvalidURL) as problem:
            raise ConfigurationError(
                f"the proxy settings of the environment cannot be used ({scrub(str(problem))}); "
                "check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY"
            ) from problem

    def _document(
        self, request: Request, validator: Validator | None, client: httpx.Client, job: Job[Document]
    ) -> Document:
        """Runs in the worker thread."""
        client.cookies.clear()
        conditions = validator.conditions() if validator else {}
        first = Hop(
            method=request.method.upper(),
            url=request.url,
            headers={name.lower(): value for name, value in request.headers.items()} | conditions,
            body=request.body,
            secrets=_secrets(request),
            max_decoded_bytes=self._rules.limits.max_decoded_bytes,
            keep=request.keep,
        )
        answer = Exchange(self._rules, client, job).answer(first, robots=self._rules.limits.respect_robots)
        headers = kept_headers(answer.headers)
        sha256 = hashlib.sha256(answer.body).hexdigest()
        if answer.status == 304:
            if validator is None or not conditions:
                raise FetchError(f"{first.shown} answers 304 to a request without conditions", request.url, 304)
            kept = {"etag": validator.etag, "last-modified": validator.last_modified}
            headers = {name: value for name, value in kept.items() if value} | headers
            sha256 = validator.sha256
        return Document(
            provider=self.provider,
            url=scrub(request.url),
            body=answer.body,
            fetched_at=fetched_at(answer),
            method=first.method,
            status=answer.status,
            headers=headers,
            sha256=sha256,
            byte_count=len(answer.body),
            name=request.name,
            request_body=(request.body or b"").decode("utf-8", errors="replace"),
        )


def _secrets(request: Request) -> tuple[str, ...]:
    """Values of all headers that can carry a key, whole and word by word."""
    values = [value for name, value in request.headers.items() if name.lower() not in PLAIN_HEADERS]
    return tuple(dict.fromkeys([*values, *(word for value in values for word in value.split())]))


@cache
def _ssl_context() -> ssl.SSLContext:
    """Loading the certificates takes tens of milliseconds; once is enough for all providers."""
    return httpx.create_ssl_context()
