"""A scriptable HTTP server on loopback, for tests that must see real sockets."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from collectors.http import Fetcher


@dataclass(frozen=True, slots=True)
class Answer:
    """One scripted response.

    `content_length` overrides the header, `drip_s` sends a byte at a time with that pause, `hang` says nothing until
    the test ends, `hang_in_body` goes silent after the body that was sent.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_length: int | None = None
    drip_s: float = 0.0
    hang: bool = False
    hang_in_body: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it reached the server. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what many tests are about; anything else is printed as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LocalServer:
    """Routes are paths with their query; each holds answers given in turn, of which the last repeats."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.connects: list[str] = []
        self._routes: dict[str, list[Answer | Callable[[Received], Answer]]] = {}
        self._calls: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fetch_map(self, *hosts: str) -> dict[str, str]:
        """A fetch map that sends the given https hosts here."""
        return {f"https://{host}": self.url for host in hosts}

    def route(self, path: str, *answers: Answer | Callable[[Received], Answer]) -> None:
        self._routes[path] = list(answers)

    def text(self, path: str, body: str | bytes, status: int = 200, **headers: str) -> None:
        """The same plain answer each time; underscores in header names stand for hyphens."""
        self.route(path, self.answer(body, status, **headers))

    @staticmethod
    def answer(body: str | bytes = b"", status: int = 200, **headers: str) -> Answer:
        raw = body.encode() if isinstance(body, str) else body
        return Answer(raw, status, {name.replace("_", "-"): value for name, value in headers.items()})

    @staticmethod
    def gzipped(body: bytes, *, keep_bytes: int | None = None) -> Answer:
        """A gzip answer; with `keep_bytes` cut short there, the length header telling the cut size."""
        return Answer(gzip.compress(body)[:keep_bytes], headers={"content-encoding": "gzip"})

    @staticmethod
    def bomb(decoded_mib: int) -> Answer:
        """A small gzip answer that inflates to that many MiB of zeros."""
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        block = bytes(1 << 20)
        packed = b"".join([packer.compress(block) for _ in range(decoded_mib)] + [packer.flush()])
        return Answer(packed, headers={"content-encoding": "gzip"})

    @staticmethod
    def redirect(location: str, status: int = 302) -> Answer:
        return Answer(status=status, headers={"location": location})

    @staticmethod
    def too_many(retry_after: str | None = None) -> Answer:
        return Answer(b"slow down", 429, {} if retry_after is None else {"retry-after": retry_after})

    @staticmethod
    def hang() -> Answer:
        return Answer(hang=True)

    @staticmethod
    def drip(body: bytes, pause_s: float) -> Answer:
        return Answer(body, drip_s=pause_s)

    def paths(self) -> list[str]:
        return [request.path for request in self.received]

    def next_answer(self, request: Received) -> Answer:
        with self._lock:
            self.received.append(request)
            script = self._routes.get(request.path)
            if script is None:
                return Answer(b"no such route", 404)
            step = script[min(self._calls[request.path], len(script) - 1)]
            self._calls[request.path] += 1
        return step if isinstance(step, Answer) else step(request)

    def wait(self, seconds: float) -> bool:
        """Pause in a handler; True once the test is over."""
        return self._closing.wait(seconds)

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=2)


def _handler(server: LocalServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else head and body of an answer are 40 ms apart

        def do_GET(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.command, self.path, headers, self.rfile.read(size), time.monotonic())
            try:
                self.send_answer(server.next_answer(request))
            except ConnectionError:
                self.close_connection = True

        do_POST = do_GET

        def do_CONNECT(self) -> None:
            """Notes what a client wanted of a proxy, and declines."""
            server.connects.append(self.path)
            self.send_answer(Answer(b"no proxy here", 502))

        def send_answer(self, answer: Answer) -> None:
            if answer.hang:
                server.wait(30)
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != 304:
                length = len(answer.body) if answer.content_length is None else answer.content_length
                self.send_header("content-length", str(length))
                self.close_connection = length != len(answer.body)
            self.end_headers()
            self.send_body(answer)
            if answer.hang_in_body:
                server.wait(30)

        def send_body(self, answer: Answer) -> None:
            if not answer.drip_s:
                self.wfile.write(answer.body)
                return
            for byte in answer.body:
                self.wfile.write(bytes([byte]))
                if server.wait(answer.drip_s):
                    self.close_connection = True
                    return

        def send_response(self, code: int, message: str | None = None) -> None:
            """As the base class without its automatic Date and Server headers: a test scripts those it needs."""
            self.send_response_only(code, message)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    return Handler


class MirrorServer(LocalServer):
    """Answers as one host did: documents by path, query in any order, and request body."""

    def __init__(self, documents: Iterable[Any]) -> None:
        self._documents = {_asked(d.method, d.url, d.request_body or ""): d for d in documents}
        super().__init__()

    def next_answer(self, request: Received) -> Answer:
        """The document that was recorded for this request, or 404."""
        document = self._documents.get(_asked(request.method, request.path, request.body.decode()))
        return Answer(document.body, document.status, document.headers) if document else Answer(status=404)


def _asked(method: str, url: str, body: str) -> tuple[object, ...]:
    parts = urlsplit(url)
    return method, unquote(parts.path), tuple(sorted(parse_qsl(parts.query, keep_blank_values=True))), body


@pytest.fixture
def mirrored() -> Iterator[Callable[[Iterable[Any]], str]]:
    """`mirrored(documents)`: serves documents, each host by a server of its own; returns the fetch map."""
    servers: list[MirrorServer] = []

    def serve(documents: Iterable[Any]) -> str:
        by_host = defaultdict(list)
        for document in documents:
            parts = urlsplit(document.url)
            by_host[f"{parts.scheme}://{parts.netloc}"].append(document)
        for found in by_host.values():
            servers.append(MirrorServer(found))
        return ",".join(f"{host}={server.url}" for host, server in zip(by_host, servers, strict=True))

    yield serve
    for server in servers:
        server.close()


@pytest.fixture
def local_server() -> Iterator[LocalServer]:
    """A running `LocalServer`: script it with `route`, read `received` afterwards."""
    server = LocalServer()
    yield server
    server.close()


@pytest.fixture
def local_fetcher(local_server: LocalServer) -> Iterator[Callable[..., Fetcher]]:
    """Makes fetchers whose host `prices.example` is the local server; keywords replace `Fetcher`'s arguments.

    Keywords of `FetchLimits` are accepted too; without them it is quick to retry and to give up.
    """
    from collectors.http import Fetcher, FetchLimits, Pace

    quick = FetchLimits(connect_s=2, read_s=2, total_s=5, retry_wait_s=0.01)
    made: list[Fetcher] = []
    names = {item.name for item in fields(FetchLimits)}

    def make(**given: Any) -> Fetcher:
        limits = replace(quick, **{name: given.pop(name) for name in names & given.keys()})
        arguments = {
            "provider": "example",
            "allowed_hosts": frozenset({"prices.example"}),
            "limits": limits,
            "fetch_map": local_server.fetch_map("prices.example"),
            "pace": Pace(0.0),
        }
        fetcher = Fetcher(**(arguments | given))
        made.append(fetcher)
        return fetcher

    yield make
    for fetcher in made:
        fetcher.close()


_MAY_SKIP_IN_CI = ("needs_recordings", "needs_shared")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """In CI a skipped test is a failure, except for tests on material that only lies beside some checkouts."""
    report = yield
    allowed = any(item.get_closest_marker(name) for name in _MAY_SKIP_IN_CI)
    if os.environ.get("GPUBAZAAR_CI") == "1" and report.skipped and not allowed and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def recorded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home filled once from every fixture; tests read it and never write to it."""
    from catalog.home import Home
    from jobs.refresh import refresh

    path = tmp_path_factory.mktemp("recorded")
    refresh(Home(path), source="recorded")
    return path


@pytest.fixture
def run_cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed command in its own process, as a user does: `run_cli("offers", "--gpu", "h100", home=…)`."""

    def run(*arguments: str, home: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {
            **os.environ, "GPUBAZAAR_HOME": str(home or tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "PYTHONWARNINGS": "error::ResourceWarning", "COLUMNS": "80", **environment,
        }  # fmt: skip
        return subprocess.run(
            [sys.executable, "-c", "from interfaces.cli import main; main()", *arguments],
            capture_output=True, text=True, env=settings, cwd=Path(__file__).parents[1], timeout=120, check=False,
        )  # fmt: skip

    return run
