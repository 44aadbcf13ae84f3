"""Walking pages: complete, or said not to be; never for ever."""

from __future__ import annotations

import json
import threading
import time

import pytest

from collectors.contract import Request
from collectors.crawl import fetch_all
from collectors.errors import Cancelled, FetchError, Retriable
from collectors.http import Validator

BASE = "https://prices.example"


def next_link(document):
    link = json.loads(document.body).get("next")
    return [] if link is None else [Request(f"{BASE}{link}" if link else "")]


def page(local_server, path, rows, following=None):
    local_server.text(path, json.dumps({"rows": rows, "next": following}))


def requests(*paths):
    return [Request(f"{BASE}{path}", name=path) for path in paths]


def bodies(found):
    return [json.loads(document.body)["rows"] for document in found.documents]


def test_pages_are_walked_to_the_end_whichever_way_it_is_marked(local_server, local_fetcher):
    page(local_server, "/p1", [1, 2], "/p2")
    page(local_server, "/p2", [3], "")
    found = fetch_all(local_fetcher(), requests("/p1"), next_link, max_documents=10)
    assert (bodies(found), found.complete, found.notes) == ([[1, 2], [3]], True, ())


def test_growing_next_links_with_repeating_content_end_the_walk(local_server, local_fetcher):
    local_server.text("/p", '{"rows": [1], "next": "/p?t=A"}')
    repeated = '{"rows": [2], "next": "%s"}'
    links = ["/p?t=A", "/p?=A&t=A", "/p?=A&=A&t=A"]
    for link in links:
        local_server.text(link, repeated % "/p?=A&t=A")
    found = fetch_all(local_fetcher(), requests("/p"), next_link, max_documents=50)
    assert (bodies(found), found.complete) == ([[1], [2]], False)
    assert "repeats the content" in found.notes[0]
    assert len(local_server.received) == 3


def test_a_next_link_to_itself_ends_the_walk(local_server, local_fetcher):
    page(local_server, "/p", [1], "/p")
    found = fetch_all(local_fetcher(), requests("/p"), next_link, max_documents=50)
    assert (bodies(found), found.complete) == ([[1]], False)
    assert "links back to itself" in found.notes[0]
    assert len(local_server.received) == 1


def test_the_cap_with_a_next_link_still_set_is_incomplete(local_server, local_fetcher):
    for number in range(20):
        page(local_server, f"/p{number}", [number], f"/p{number + 1}")
    found = fetch_all(local_fetcher(), requests("/p0"), next_link, max_documents=3)
    assert (bodies(found), found.complete) == ([[0], [1], [2]], False)
    assert found.notes == ("stopped after 3 documents with more to fetch",)
    assert len(local_server.received) == 3


def test_the_cap_reached_by_the_last_page_is_complete(local_server, local_fetcher):
    page(local_server, "/p0", [0], "/p1")
    page(local_server, "/p1", [1])
    assert fetch_all(local_fetcher(), requests("/p0"), next_link, max_documents=2).complete


def test_siblings_may_be_alike_and_shared_links_are_fetched_once(local_server, local_fetcher):
    local_server.text("/index", '{"rows": []}')
    for region in "abc":
        local_server.text(f"/{region}", '{"rows": ["none here"]}')
    local_server.text("/detail", '{"rows": ["detail"]}')

    def follow(document):
        if document.name == "/index":
            return requests("/a", "/b", "/c")
        return requests("/detail") if document.name in {"/a", "/b", "/c"} else []

    found = fetch_all(local_fetcher(), requests("/index"), follow, max_documents=50)
    assert found.complete
    assert [document.name for document in found.documents] == ["/index", "/a", "/b", "/c", "/detail"]


def test_one_failing_page_leaves_the_rest_and_is_named(local_server, local_fetcher):
    local_server.route(
        "/a", local_server.too_many("0"), local_server.too_many("0"), local_server.answer('{"rows": ["a"]}')
    )
    local_server.text("/b", "down", 503)
    page(local_server, "/c", ["c"])
    found = fetch_all(local_fetcher(), requests("/a", "/b", "/c"), max_documents=50)
    assert (bodies(found), found.complete) == ([["a"], ["c"]], False)
    assert len(found.notes) == 1
    assert "/b answers 503" in found.notes[0]


def test_a_link_off_the_hosts_is_not_followed_and_makes_the_set_incomplete(local_server, local_fetcher):
    page(local_server, "/p1", [1])
    found = fetch_all(
        local_fetcher(), requests("/p1"), lambda _: [Request("https://evil.example/p2")], max_documents=50
    )
    assert (bodies(found), found.complete) == ([[1]], False)
    assert "evil.example" in found.notes[0]


def test_nothing_at_all_raises_the_first_error(local_server, local_fetcher):
    local_server.text("/a", "")
    local_server.text("/b", "down", 500)
    with pytest.raises(FetchError, match="without any content"):
        fetch_all(local_fetcher(), requests("/a", "/b"), max_documents=50)
    with pytest.raises(FetchError, match="made no request"):
        fetch_all(local_fetcher(), [], max_documents=50)


def test_the_walks_own_deadline_holds(local_server, local_fetcher):
    page(local_server, "/a", [1])
    local_server.route("/b", local_server.hang())
    page(local_server, "/c", [3])
    began = time.monotonic()
    found = fetch_all(local_fetcher(), requests("/a", "/b", "/c"), max_documents=50, deadline=began + 0.5)
    assert time.monotonic() - began < 1.3
    assert (bodies(found), found.complete) == ([[1]], False)
    with pytest.raises(Retriable, match="the time was up"):
        fetch_all(local_fetcher(), requests("/c"), max_documents=50, deadline=began)


def test_stop_ends_the_walk_with_what_is_there(local_server, local_fetcher):
    stop = threading.Event()
    page(local_server, "/a", [1], "/b")
    page(local_server, "/b", [2])

    def follow(document):
        stop.set()
        return next_link(document)

    found = fetch_all(local_fetcher(stop=stop), requests("/a"), follow, max_documents=50)
    assert (bodies(found), found.complete) == ([[1]], False)
    with pytest.raises(Cancelled):
        fetch_all(local_fetcher(stop=stop), requests("/a"), max_documents=50)
    assert local_server.paths() == ["/a"]


def test_unchanged_is_the_whole_set_or_none_of_it(local_server, local_fetcher):
    def tagged(body, tag):
        def give(request):
            same = request.headers.get("if-none-match") == tag
            return local_server.answer(status=304) if same else local_server.answer(body, etag=tag)

        return give

    local_server.route("/a", tagged('{"rows": ["a"]}', '"a1"'))
    local_server.route("/b", tagged('{"rows": ["b"]}', '"b1"'))
    first = fetch_all(local_fetcher(), requests("/a", "/b"), max_documents=50)
    known = {document.url: Validator.of(document) for document in first.documents}
    again = fetch_all(local_fetcher(validators=known), requests("/a", "/b"), max_documents=50)
    assert again.unchanged
    assert again.complete

    local_server.route("/b", tagged('{"rows": ["b2"]}', '"b2"'))
    changed = fetch_all(local_fetcher(validators=known), requests("/a", "/b"), max_documents=50)
    assert not changed.unchanged
    assert changed.complete
    assert bodies(changed) == [["a"], ["b2"]], "a parser gets every document in full"

    with_pages = fetch_all(local_fetcher(validators=known), requests("/a"), next_link, max_documents=50)
    assert bodies(with_pages) == [["a"]], "an unchanged first page says nothing about the pages behind it"


def test_the_pages_of_one_host_are_asked_for_with_the_first_pages_headers(local_server, local_fetcher):
    page(local_server, "/a", [1], "/b")
    page(local_server, "/b", [2])
    keyed = Request(f"{BASE}/a", headers={"X-Api-Key": "a-secret-value"})
    fetch_all(local_fetcher(), [keyed], next_link, max_documents=50)
    assert [r.headers.get("x-api-key") for r in local_server.received] == ["a-secret-value"] * 2


def test_a_key_is_not_carried_to_another_host(local_server, local_fetcher):
    page(local_server, "/a", [1])
    page(local_server, "/b", [2])
    keyed = Request(f"{BASE}/a", headers={"X-Api-Key": "a-secret-value"})

    def follow(document):
        return [Request(f"{BASE.replace('https', 'http')}/b")] if document.url.endswith("/a") else []

    fetch_all(local_fetcher(), [keyed], follow, max_documents=50)
    assert [r.headers.get("x-api-key") for r in local_server.received][1:] in ([], [None])


def test_an_optional_document_that_fails_is_noted_and_the_list_is_still_whole(local_server, local_fetcher):
    page(local_server, "/p", [1])
    wanted = [*requests("/p"), Request(f"{BASE}/extras", name="extras", optional=True)]
    found = fetch_all(local_fetcher(), wanted, max_documents=10)
    assert (bodies(found), found.complete) == ([[1]], True)
    assert any("/extras" in note for note in found.notes)


def test_a_set_of_optional_documents_alone_that_all_fail_is_an_error(local_fetcher):
    with pytest.raises(FetchError, match="extras"):
        fetch_all(local_fetcher(), [Request(f"{BASE}/extras", optional=True)], max_documents=10)
