"""Providers whose recorded documents are served by a local server, so that a live refresh can be watched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from catalog.home import Home
from collectors.fixtures import fixture_documents
from collectors.http import Pace

HOSTS = {
    "scaleway": "https://api.scaleway.com", "ecb": "https://www.ecb.europa.eu", "nebius": "https://nebius.com",
    "azure": "https://prices.azure.com",
}  # fmt: skip


def path_of(url: str) -> str:
    """The path and query of an address as a client sends them."""
    parts = urlsplit(url)
    query = quote(parts.query, safe="%/?:@!$&'()*+,;=-._~")
    return parts.path + (f"?{query}" if query else "")


class Served:
    """Routes the recorded documents of providers; `edit` changes one at the source."""

    def __init__(self, server: Any, home: Home) -> None:
        self.server, self.home = server, home
        self.bodies: dict[str, dict[str, bytes]] = {}

    def provider(self, *names: str) -> None:
        for name in names:
            self.bodies[name] = {path_of(d.url): d.body for d in fixture_documents(name)}
            self.restore(name)

    def restore(self, name: str) -> None:
        for path, body in self.bodies[name].items():
            self.server.text(path, body)

    def answer_all(self, name: str, *answers: Any) -> None:
        """The same answers on every route of a provider."""
        for path in self.bodies[name]:
            self.server.route(path, *answers)

    def edit(self, name: str, containing: str, change: Callable[[bytes], bytes]) -> None:
        found = [path for path in self.bodies[name] if containing in path]
        assert found, containing
        for path in found:
            self.bodies[name][path] = change(self.bodies[name][path])
        self.restore(name)

    def edit_json(self, name: str, containing: str, change: Callable[[Any], None]) -> None:
        def changed(body: bytes) -> bytes:
            document = json.loads(body)
            change(document)
            return json.dumps(document).encode()

        self.edit(name, containing, changed)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def served(local_server: Any, home: Home, monkeypatch: pytest.MonkeyPatch) -> Served:
    """Served providers; the fetch map and the home are in the environment, and nobody waits between requests."""
    from collectors.http_limits import FetchLimits

    mapping = ",".join(f"{host}={local_server.url}" for host in HOSTS.values())
    monkeypatch.setenv("GPUBAZAAR_FETCH_MAP", mapping)
    monkeypatch.setenv("GPUBAZAAR_HOME", str(home.path))
    monkeypatch.setattr("jobs.attempts.pace_for", lambda picked: Pace(0.0))
    monkeypatch.setattr(
        "jobs.collect.FetchLimits",
        lambda **given: FetchLimits(**({"retry_wait_s": 0.01, "connect_s": 2.0, "read_s": 1.0} | given)),
    )
    return Served(local_server, home)
