"""Price pages: what holds for every provider of the family, without a test of its own."""

import dataclasses

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.price_page import PricePage
from collectors.registry import collector, collectors_by_provider

PAGES = sorted(name for name, c in collectors_by_provider().items() if isinstance(c, PricePage))
KEYED = [name for name in PAGES if collector(name).api]


@pytest.mark.parametrize("title", ["Just a moment...", "Access denied", "Attention Required!"])
@pytest.mark.parametrize("provider", PAGES)
def test_a_challenge_is_blocked(parse, page_with, title):
    body = f"<html><head><title>{title}</title></head><body></body></html>".encode()
    for status in (200, 403, 503):
        with pytest.raises(Blocked):
            parse(dataclasses.replace(page_with(), body=body, status=status))


@pytest.mark.parametrize("provider", PAGES)
def test_a_page_without_its_list_is_never_an_empty_success(parse, page_with):
    page = page_with()
    for body in (b"", b"<h1>Pricing</h1>", b"<html><h1>Pricing</h1><div id='root'></div></html>", page.body[:150]):
        with pytest.raises(LayoutChanged):
            parse(dataclasses.replace(page, body=body))


@pytest.mark.parametrize("provider", PAGES)
def test_the_page_is_the_only_request_without_a_key(provider, page_with):
    page = page_with()
    assert [(r.name, r.url, dict(r.headers)) for r in collector(provider).requests({})] == [(page.name, page.url, {})]


@pytest.mark.parametrize("provider", KEYED)
def test_a_key_opens_the_api_and_stands_in_a_header_only(provider, documents):
    asked = collector(provider)
    page, api = asked.requests({asked.optional_key_env[0]: "a secret"})
    assert not page.headers
    assert [value.removeprefix("Bearer ") for value in api.headers.values()] == ["a secret"]
    assert (api.url, asked.is_api(documents[api.name])) == (documents[api.name].url, True)


@pytest.mark.parametrize("provider", KEYED)
def test_the_api_is_read_before_the_page_in_any_order(parse, documents):
    assert parse(*documents.values()) == parse(*reversed(documents.values()))
