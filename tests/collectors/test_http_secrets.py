"""Keys never reach a message, an address that is kept, or a log line."""

from __future__ import annotations

import logging
import traceback

import pytest

from collectors.contract import Request
from collectors.errors import CredentialsMissing, FetchError, LayoutChanged, scrub

BASE = "https://prices.example"
KEY = "s3cr3t-value-42"


@pytest.mark.parametrize(
    "text",
    [
        f"GET https://a.example/x?key={KEY}",
        f"https://a.example/x?page=2&api_key={KEY}&sku=h100",
        f"https://a.example/x?API-KEY={KEY}#top",
        f"https://a.example/x?access_token={KEY}",
        f"https://a.example/x?X-Amz-Signature={KEY}",
        f"https://user:{KEY}@a.example/x",
        f"Authorization: Bearer {KEY}",
        f"{{'authorization': '{KEY}'}}",
        f"X-API-Key={KEY}",
        f"sent Bearer {KEY} to it",
    ],
)
def test_scrub_removes_the_value_and_keeps_the_rest(text):
    clean = scrub(text)
    assert KEY not in clean
    assert "REDACTED" in clean
    assert clean.split(KEY)[0][:4] == text[:4]


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example/x?page=2&$skiptoken=abc&keyword=h100&sort=key#token",
        "https://a.example/x?pageToken=abc&nextToken=def",
        "the key GPU, token bucket, authority",
    ],
)
def test_scrub_leaves_what_is_no_secret(text):
    assert scrub(text) == text


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500, 302])
def test_no_failure_shows_the_key(local_server, local_fetcher, status, caplog):
    caplog.set_level(logging.DEBUG)
    path = f"/a?key={KEY}&page=1"
    headers = {"location": f"https://evil.example/?token={KEY}"} if status == 302 else {}
    body = "" if status == 200 else f'{{"error": "bad key {KEY}"}}'
    local_server.text(path, body, status, **headers)
    request = Request(f"{BASE}{path}", headers={"Authorization": f"Bearer {KEY}", "X-Whatever": KEY})
    with pytest.raises(FetchError) as caught:
        local_fetcher().fetch(request)
    assert local_server.received[0].path == path, "the server still gets the key"
    assert local_server.received[0].headers["authorization"] == f"Bearer {KEY}"
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown + repr(caught.value) + caught.value.url + caplog.text
    assert "page=1" in caught.value.url or status == 302


def test_the_document_keeps_an_address_without_the_key(local_server, local_fetcher, caplog):
    caplog.set_level(logging.INFO)
    local_server.text(f"/a?key={KEY}&page=1", "ok")
    document = local_fetcher().fetch(Request(f"{BASE}/a?key={KEY}&page=1"))
    assert document.url == f"{BASE}/a?key=REDACTED&page=1"
    assert "HTTP Request" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize("bad", [f"{KEY}\n", f"{KEY}é"])
def test_a_key_that_cannot_be_a_header_is_reported_without_it(local_fetcher, bad):
    with pytest.raises(FetchError, match="forbidden character") as caught:
        local_fetcher().fetch(Request(f"{BASE}/a", headers={"Authorization": bad}))
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_messages_say_what_where_and_what_next():
    changed = LayoutChanged("coreweave", "table.gpu-pricing", url="https://a.example/p?key=abcdef")
    assert str(changed).startswith(
        "coreweave: the page changed: table.gpu-pricing: not found in https://a.example/p?key="
    )
    assert "abcdef" not in str(changed)
    missing = CredentialsMissing("lambda", ("LAMBDA_API_KEY",))
    assert "LAMBDA_API_KEY" in str(missing)
    assert missing.names == ("LAMBDA_API_KEY",)
