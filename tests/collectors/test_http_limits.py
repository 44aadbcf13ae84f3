"""The fetch map, the allow-list, the pace per host and robots.txt."""

from __future__ import annotations

import pytest

from catalog.errors import ConfigurationError
from collectors.contract import Request
from collectors.errors import Blocked, FetchError
from collectors.http import Pace, fetch_map_from
from collectors.http_targets import Targets

BASE = "https://prices.example"


def test_fetch_map_reads_several_entries():
    text = "https://a.example=http://127.0.0.1:8001, https://B.example:8443=http://localhost:8002/b/,"
    assert fetch_map_from(text) == {
        "https://a.example": "http://127.0.0.1:8001",
        "https://b.example:8443": "http://localhost:8002/b",
    }
    assert fetch_map_from("https://a.example=http://[::1]:80") == {"https://a.example": "http://[::1]:80"}
    assert fetch_map_from("") == {}


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example",
        "a.example=http://127.0.0.1:1",
        "http://a.example=http://127.0.0.1:1",
        "https://a.example/path=http://127.0.0.1:1",
        "https://a.example=http://10.0.0.1:1",
        "https://a.example=http://evil.example",
        "https://a.example=http://127.0.0.1.evil.example:1",
        "https://a.example=http://user@evil.example",
        "https://a.example=https://127.0.0.1:1",
        "https://a.example=http://127.0.0.1:99999",
        "https://a.example=http://127.0.0.1:1,https://a.example=http://127.0.0.1:2",
    ],
)
def test_fetch_map_takes_loopback_targets_only(text):
    with pytest.raises(ConfigurationError, match="GPUBAZAAR_FETCH_MAP"):
        fetch_map_from(text)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/",
        "https://a.example:8443/",
        "https://sub.a.example/",
        "https://a.example.evil.example/",
        "https://a.example./",
        "https://user:pw@a.example/",
        "https://a.example@evil.example/",
    ],
)
def test_only_the_listed_host_itself_passes(url):
    with pytest.raises(Blocked) as caught:
        Targets("p", frozenset({"a.example"})).host_of(url)
    assert caught.value.reason == "host"
    assert ":pw@" not in str(caught.value)


def test_listed_hosts_pass():
    targets = Targets("p", frozenset({"A.example", "b.example:8443"}))
    assert targets.host_of("https://a.EXAMPLE/x") == "a.example"
    assert targets.host_of("https://a.example:443/x") == "a.example"
    assert targets.host_of("https://b.example:8443/x") == "b.example:8443"


@pytest.mark.parametrize("url", ["", "prices", "https://", "https://[x/", "https://a.example:port/"])
def test_what_is_no_address_is_said_so(url):
    with pytest.raises(FetchError, match="not an address"):
        Targets("p", frozenset({"a.example"})).host_of(url)


def test_pace_spaces_turns_and_obeys_a_longer_wait():
    pace = Pace(2.0, {"slow.example": 9.0})
    assert pace.reserve("a.example", 60) == (0.0, True)
    assert pace.reserve("a.example", 60)[0] == pytest.approx(2.0, abs=0.1)
    assert pace.reserve("a.example", 60)[0] == pytest.approx(4.0, abs=0.1)
    assert pace.reserve("slow.example", 60) == (0.0, True)
    wait_s, taken = pace.reserve("slow.example", 5)
    assert not taken
    assert wait_s == pytest.approx(9.0, abs=0.1)
    pace.hold("b.example", 30)
    assert pace.reserve("b.example", 60)[0] == pytest.approx(30.0, abs=0.1)


def test_robots_close_a_path_and_are_read_once(local_server, local_fetcher):
    local_server.text("/robots.txt", "User-agent: *\nDisallow: /pricing/tables\n\nUser-agent: other\nDisallow: /\n")
    local_server.text("/pricing", "<html>ok</html>")
    fetcher = local_fetcher(respect_robots=True)
    for _ in range(2):
        assert fetcher.fetch(Request(f"{BASE}/pricing")).status == 200
    with pytest.raises(Blocked, match=r"robots\.txt closes /pricing/tables/x") as caught:
        fetcher.fetch(Request(f"{BASE}/pricing/tables/x"))
    assert caught.value.reason == "robots"
    assert local_server.paths() == ["/robots.txt", "/pricing", "/pricing"]


def test_robots_may_address_us_by_name_and_ask_for_a_slower_pace(local_server, local_fetcher):
    local_server.text(
        "/robots.txt", "User-agent: gpubazaar\nCrawl-delay: 7\nDisallow: /a\n\nUser-agent: *\nDisallow:\n"
    )
    local_server.text("/b", "ok")
    fetcher = local_fetcher(respect_robots=True)
    with pytest.raises(Blocked, match="robots"):
        fetcher.fetch(Request(f"{BASE}/a"))
    fetcher.fetch(Request(f"{BASE}/b"))
    with pytest.raises(FetchError, match="may go out in 7 s"):
        fetcher.fetch(Request(f"{BASE}/b"))


@pytest.mark.parametrize(("status", "allowed"), [(401, False), (403, False), (404, True), (500, True)])
def test_robots_that_cannot_be_read(local_server, local_fetcher, status, allowed):
    local_server.text("/robots.txt", "", status)
    local_server.text("/a", "ok")
    fetcher = local_fetcher(respect_robots=True)
    if allowed:
        assert fetcher.fetch(Request(f"{BASE}/a")).status == 200
    else:
        with pytest.raises(Blocked, match="robots"):
            fetcher.fetch(Request(f"{BASE}/a"))


def test_robots_are_not_read_for_apis_and_an_empty_one_closes_nothing(local_server, local_fetcher):
    local_server.text("/robots.txt", "")
    local_server.text("/a", "ok")
    local_fetcher().fetch(Request(f"{BASE}/a"))
    local_fetcher(respect_robots=True).fetch(Request(f"{BASE}/a"))
    assert local_server.paths() == ["/a", "/robots.txt", "/a"]


def test_a_mapped_server_is_reached_past_the_environments_proxy(local_server, local_fetcher, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    local_server.text("/a", "ok")
    assert local_fetcher().fetch(Request(f"{BASE}/a")).body == b"ok"


def test_the_environments_proxy_is_used_for_everything_else(local_fetcher, monkeypatch, local_server):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", local_server.url)
    with pytest.raises(FetchError, match="cannot be fetched"):
        local_fetcher(fetch_map={}, attempts=1).fetch(Request(f"{BASE}/a"))
    assert local_server.connects == ["prices.example:443"]


def test_a_proxy_setting_that_cannot_be_used_is_explained(local_fetcher, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://user:secret@127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        local_fetcher().fetch(Request(f"{BASE}/a"))
    assert "secret" not in str(caught.value)
