"""The fetcher against a real server on loopback: answers, refusals, retries, redirects, conditional requests."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from collectors.contract import Request
from collectors.errors import Blocked, CapExceeded, FetchError, Gone, Retriable
from collectors.http import Pace, Validator

BASE = "https://prices.example"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_document_holds_what_was_asked_and_answered(local_server, local_fetcher):
    local_server.text("/gpus?page=1", b'{"gpus": []}', content_type="application/json", etag='"v1"', set_cookie="a=b")
    request = Request(f"{BASE}/gpus?page=1", name="gpus", headers={"Accept": "application/json"})
    document = local_fetcher().fetch(request)
    assert (document.provider, document.url, document.name, document.status) == ("example", request.url, "gpus", 200)
    assert document.body == b'{"gpus": []}'
    assert document.byte_count == len(document.body)
    assert document.sha256 == hashlib.sha256(document.body).hexdigest()
    assert document.headers == {"content-type": "application/json", "etag": '"v1"'}
    (received,) = local_server.received
    assert received.headers["host"] == "prices.example"
    assert received.headers["accept"] == "application/json"
    assert received.headers["accept-encoding"] == "gzip, deflate"
    assert received.headers["user-agent"].startswith("gpubazaar/")


def test_post_sends_its_body(local_server, local_fetcher):
    local_server.text("/graphql", b"{}")
    document = local_fetcher().fetch(Request(f"{BASE}/graphql", method="POST", body=b'{"query": "x"}'))
    assert local_server.received[0].method == "POST"
    assert local_server.received[0].body == b'{"query": "x"}'
    assert (document.method, document.request_body) == ("POST", '{"query": "x"}')


def test_gzip_is_inflated_and_hashed_decoded(local_server, local_fetcher):
    local_server.route("/a", local_server.gzipped(b"price " * 1000))
    document = local_fetcher().fetch(Request(f"{BASE}/a"))
    assert document.body == b"price " * 1000
    assert document.sha256 == hashlib.sha256(document.body).hexdigest()


def test_truncated_gzip_is_an_error_never_half_a_list(local_server, local_fetcher):
    local_server.route("/a", local_server.gzipped(bytes(range(256)) * 50, keep_bytes=200))
    with pytest.raises(Retriable, match="truncated gzip"):
        local_fetcher().fetch(Request(f"{BASE}/a"))


def test_body_shorter_than_its_length_is_retried(local_server, local_fetcher):
    short = local_server.answer(b"[1, 2")
    local_server.route("/a", type(short)(short.body, content_length=100), local_server.answer(b"[1, 2, 3]"))
    assert local_fetcher().fetch(Request(f"{BASE}/a")).body == b"[1, 2, 3]"
    assert len(local_server.received) == 2


def test_raw_and_decoded_caps(local_server, local_fetcher):
    local_server.text("/big", b"x" * 5000)
    local_server.route("/bomb", local_server.bomb(8))
    with pytest.raises(CapExceeded, match="more than 4000 bytes"):
        local_fetcher(max_raw_bytes=4000).fetch(Request(f"{BASE}/big"))
    with pytest.raises(CapExceeded, match="unpacks to more than 1 MiB"):
        local_fetcher(max_decoded_bytes=1 << 20).fetch(Request(f"{BASE}/bomb"))
    assert len(local_server.received) == 2, "too large is not retried"


def test_unasked_encoding_is_refused(local_server, local_fetcher):
    local_server.text("/a", b"xx", content_encoding="br")
    with pytest.raises(FetchError, match="'br'"):
        local_fetcher().fetch(Request(f"{BASE}/a"))


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_empty_success_is_an_error(local_server, local_fetcher, body):
    local_server.text("/a", body)
    with pytest.raises(FetchError, match="without any content") as caught:
        local_fetcher().fetch(Request(f"{BASE}/a"))
    assert caught.value.status == 200


def test_429_waits_as_long_as_retry_after_says(local_server, local_fetcher):
    local_server.route("/a", local_server.too_many("1"), local_server.answer("ok"))
    assert local_fetcher().fetch(Request(f"{BASE}/a")).body == b"ok"
    first, second = local_server.received
    assert 1.0 <= second.at - first.at < 1.6


def test_retry_after_beyond_the_deadline_is_not_waited_for(local_server, local_fetcher):
    local_server.route("/a", local_server.too_many("3600"), local_server.answer("ok"))
    local_server.text("/b", "ok")
    fetcher = local_fetcher()
    began = time.monotonic()
    with pytest.raises(Retriable, match="asks to wait 3600 s") as caught:
        fetcher.fetch(Request(f"{BASE}/a"))
    assert (caught.value.status, caught.value.retry_after_s) == (429, 3600.0)
    with pytest.raises(Retriable, match="may go out in"):
        fetcher.fetch(Request(f"{BASE}/b"))
    assert time.monotonic() - began < 1
    assert local_server.paths() == ["/a"], "the host asked for silence, so no other address of it is asked either"


def test_retry_after_as_a_date_counts_on_the_servers_clock(local_server, local_fetcher):
    served = datetime(2020, 1, 1, tzinfo=UTC)
    date, later = (format_datetime(t, usegmt=True) for t in (served, served + timedelta(seconds=1)))
    local_server.route("/a", local_server.answer("busy", 503, date=date, retry_after=later), local_server.answer("ok"))
    assert local_fetcher().fetch(Request(f"{BASE}/a")).body == b"ok"
    first, second = local_server.received
    assert 1.0 <= second.at - first.at < 1.6


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_passing_faults_are_tried_three_times(local_server, local_fetcher, status):
    local_server.text("/a", "down", status)
    with pytest.raises(Retriable) as caught:
        local_fetcher().fetch(Request(f"{BASE}/a"))
    assert caught.value.status == status
    assert len(local_server.received) == 3


@pytest.mark.parametrize(
    ("status", "kind"), [(400, FetchError), (401, Blocked), (403, Blocked), (404, Gone), (410, Gone), (422, FetchError)]
)
def test_lasting_refusals_are_not_retried(local_server, local_fetcher, status, kind):
    local_server.text("/a", "no", status)
    with pytest.raises(kind) as caught:
        local_fetcher().fetch(Request(f"{BASE}/a"))
    assert type(caught.value) is kind
    assert len(local_server.received) == 1


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (503, {}, "<html><head><title>Just a moment...</title></head></html>"),
        (403, {"cf_mitigated": "challenge"}, "x"),
        (202, {"x_amzn_waf_action": "challenge"}, ""),
        (200, {}, "<!DOCTYPE html><title>Sorry, too many visitors</title>"),
        (200, {}, "\n<html><title>Attention Required! | Cloudflare</title>"),
    ],
)
def test_challenge_and_busy_pages_are_respected(local_server, local_fetcher, status, headers, body):
    local_server.text("/a", body, status, **headers)
    with pytest.raises(Blocked) as caught:
        local_fetcher().fetch(Request(f"{BASE}/a"))
    assert caught.value.reason == "challenge"
    assert len(local_server.received) == 1


def test_a_data_document_may_speak_of_captchas(local_server, local_fetcher):
    local_server.text("/a", '{"title": "<title>captcha</title>"}')
    assert local_fetcher().fetch(Request(f"{BASE}/a")).status == 200


def test_redirects_stay_on_listed_hosts(local_server, local_fetcher):
    local_server.route("/old", local_server.redirect("/new?x=1"))
    local_server.text("/new?x=1", "ok")
    document = local_fetcher().fetch(Request(f"{BASE}/old"))
    assert (document.url, document.body) == (f"{BASE}/old", b"ok")


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/x",
        "//evil.example/x",
        "http://prices.example/x",
        "http://127.0.0.1:9/x",
        "file:///etc/passwd",
    ],
)
def test_redirect_elsewhere_is_blocked_and_named(local_server, local_fetcher, target):
    local_server.route("/old", local_server.redirect(target))
    with pytest.raises(Blocked, match="redirects to") as caught:
        local_fetcher().fetch(Request(f"{BASE}/old"))
    assert caught.value.reason == "host"
    assert "evil.example" in str(caught.value) or "only plain https" in str(caught.value)
    assert local_server.paths() == ["/old"]


def test_keys_do_not_follow_a_redirect_to_another_listed_host(local_server, local_fetcher):
    local_server.route("/old", local_server.redirect("https://cdn.example/file"))
    local_server.text("/file", "ok")
    fetcher = local_fetcher(
        allowed_hosts=frozenset({"prices.example", "cdn.example"}),
        fetch_map=local_server.fetch_map("prices.example", "cdn.example"),
    )
    fetcher.fetch(Request(f"{BASE}/old", headers={"Authorization": "Bearer abc", "X-Key": "k", "Accept": "text/csv"}))
    first, second = local_server.received
    assert first.headers["authorization"] == "Bearer abc"
    assert "authorization" not in second.headers
    assert "x-key" not in second.headers
    assert (second.headers["host"], second.headers["accept"]) == ("cdn.example", "text/csv")


def test_a_mapped_server_may_redirect_to_itself(local_server, local_fetcher):
    local_server.route("/old", local_server.redirect(f"{local_server.url}/new"))
    local_server.text("/new", "ok")
    assert local_fetcher().fetch(Request(f"{BASE}/old")).body == b"ok"


def test_redirect_loop_ends(local_server, local_fetcher):
    local_server.route("/a", local_server.redirect("/a"))
    with pytest.raises(CapExceeded, match="more than 5 times"):
        local_fetcher().fetch(Request(f"{BASE}/a"))
    assert len(local_server.received) == 6


def test_304_keeps_the_old_hash_and_validator(local_server, local_fetcher):
    def conditional(request):
        if request.headers.get("if-none-match") == '"v1"':
            return local_server.answer(status=304)
        return local_server.answer("prices", etag='"v1"')

    local_server.route("/a", conditional)
    first = local_fetcher().fetch(Request(f"{BASE}/a"))
    validator = Validator.of(first)
    fetcher = local_fetcher(validators={first.url: validator})
    again = fetcher.fetch(Request(f"{BASE}/a"))
    assert (again.status, again.body, again.sha256) == (304, b"", first.sha256)
    assert Validator.of(again) == validator
    assert fetcher.fetch(Request(f"{BASE}/a"), conditional=False).body == b"prices"


def test_304_without_conditions_is_an_error(local_server, local_fetcher):
    local_server.text("/a", b"", 304)
    with pytest.raises(FetchError, match="without conditions"):
        local_fetcher().fetch(Request(f"{BASE}/a"))


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (NOW - timedelta(minutes=15), NOW - timedelta(minutes=15)),
        (NOW + timedelta(minutes=15), NOW),
        (NOW - timedelta(days=3), NOW),
        (None, NOW),
    ],
)
def test_fetched_at_trusts_the_server_within_a_day_and_is_never_in_the_future(
    local_server, local_fetcher, served, expected
):
    headers = {} if served is None else {"date": format_datetime(served, usegmt=True)}
    local_server.text("/a", "ok", **headers)
    assert local_fetcher(clock=lambda: NOW).fetch(Request(f"{BASE}/a")).fetched_at == expected


def test_a_host_off_the_list_is_never_contacted_even_when_mapped(local_server, local_fetcher):
    fetcher = local_fetcher(fetch_map=local_server.fetch_map("prices.example", "other.example"))
    with pytest.raises(Blocked, match=r"other\.example"):
        fetcher.fetch(Request("https://other.example/a"))
    assert local_server.received == []


def test_requests_to_one_host_keep_their_interval(local_server, local_fetcher):
    local_server.text("/a", "ok")
    fetcher = local_fetcher(pace=Pace(0.0, {"prices.example": 0.15}))
    for _ in range(3):
        fetcher.fetch(Request(f"{BASE}/a"))
    times = [request.at for request in local_server.received]
    # From first to last: a busy machine hands one request over late, which shortens the interval behind it.
    assert len(times) == 3
    assert times[-1] - times[0] >= 2 * 0.15 - 0.1


def test_unreachable_server_is_retriable(local_fetcher):
    with pytest.raises(Retriable, match="refused the connection"):
        local_fetcher(fetch_map={BASE: "http://127.0.0.1:1"}).fetch(Request(f"{BASE}/a"))
