"""robots.txt as RFC 9309 reads it."""

from __future__ import annotations

import pytest

from collectors.http_robots import parse_robots

HOST = "https://a.example"


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Allow: /\nDisallow: /pricing/tables", "/pricing/tables/x", False),
        ("Allow: /\nDisallow: /pricing/tables", "/pricing", True),
        ("Disallow: /\nAllow: /pricing", "/pricing?gpu=h100", True),
        ("Disallow: /\nAllow: /pricing$", "/pricing/x", False),
        ("Disallow: /\nAllow: /pricing$", "/pricing", True),
        ("Disallow: /*?x", "/b?x=1", False),
        ("Disallow: /*?x", "/b", True),
        ("Disallow: /*.json$", "/a/b.json", False),
        ("Disallow: /*.json$", "/a/b.json?x", True),
        ("Disallow: /a*b*c", "/a-b-c-d", False),
        ("Disallow: /a*b*c", "/a-c-b", True),
        ("Disallow: /p\nAllow: /p", "/p", True),
        ("Disallow:", "/x", True),
        ("Disallow: /preise/übersicht", "/preise/%c3%bcbersicht", False),
        ("Disallow: /x # a comment", "/x", False),
        ("Disallow: /", "", False),
    ],
)
def test_the_longest_match_decides(rules, path, allowed):
    assert parse_robots(f"User-agent: *\n{rules}\n", "gpubazaar").allows(HOST + path) is allowed


def test_groups_that_name_us_replace_the_general_one_and_add_up():
    text = """
    Sitemap: https://a.example/map.xml
    User-agent: other
    User-agent: GpuBazaar/9
    Disallow: /a
    Crawl-delay: 3

    User-agent: *
    Disallow: /

    User-agent: gpubazaar
    Disallow: /b
    """
    rules = parse_robots(text, "gpubazaar")
    assert [rules.allows(f"{HOST}/{path}") for path in "abc"] == [False, False, True]
    assert rules.crawl_delay_s == 3.0
    assert not parse_robots(text, "someone").allows(f"{HOST}/c")


def test_an_html_page_or_nothing_closes_nothing():
    for text in ("", "<html><body>Not found: sorry</body></html>", "Disallow: /"):
        assert parse_robots(text, "gpubazaar").allows(f"{HOST}/x")


def test_many_wildcards_stay_quick():
    rules = parse_robots("User-agent: *\nDisallow: /" + "*a" * 2000 + "$\n", "gpubazaar")
    assert rules.allows(f"{HOST}/{'a' * 1999}b")
