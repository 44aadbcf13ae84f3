"""The same things said otherwise give the same rows: encodings, orders, spacing, and words that are no price list."""

import dataclasses
import json

import pytest
from bs4 import BeautifulSoup

from catalog.units import instance_price_hour
from collectors.fixtures import fixture_documents, recorded_providers
from collectors.registry import collectors_by_provider

COLLECTORS = collectors_by_provider()
PROVIDERS = [p for p in recorded_providers() if p in COLLECTORS and COLLECTORS[p].kind != "rates"]
BANNER = '<div class="promo">New: H100 from $1.99/hr! <a href="/sales">Contact us</a></div>'
FOOTER = "<footer><p>B200 and H200 prices from $0.10 per hour. On-demand, spot. Contact us.</p></footer>"
SCRIPT = '<script>var offer = "H100 $1.23/hr";</script><style>.price { color: red }</style>'


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def columns_reversed(body):
    """The page with the columns of every table in the opposite order; tables with spanning cells stay as they are."""
    page = BeautifulSoup(body, "lxml")
    for table in page.find_all("table"):
        if not table.find(attrs={"colspan": True}) and not table.find(attrs={"rowspan": True}):
            for row in table.find_all("tr"):
                for cell in row.find_all(["td", "th"], recursive=False):
                    row.insert(0, cell.extract())
    return str(page).encode()


def as_json(body):
    """The content of a JSON body, or None for any other."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def same(document):
    """Bodies that mean what the document's does, by name."""
    body, text = document.body, document.text()
    if body[:2] == b"PK":
        return
    yield "byte order mark", b"\xef\xbb\xbf" + body
    yield "Windows line ends", text.replace("\r\n", "\n").replace("\n", "\r\n").encode()
    data = as_json(body)
    if data is not None:
        yield "without spaces", json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
        yield "indented, in ASCII", json.dumps(data, indent=4).encode()
        yield "keys reversed", json.dumps(reversed_keys(data)).encode()
    elif body.lstrip()[:1] == b"<":
        yield "as a parser writes it", str(BeautifulSoup(body, "lxml")).encode()
        yield "a banner", text.replace("<body>", f"<body>{BANNER}", 1).encode()
        yield "a footer", text.replace("</body>", f"{FOOTER}</body>", 1).encode()
        yield "a script in the head", text.replace("</head>", f"{SCRIPT}</head>", 1).encode()
        yield "columns reversed", columns_reversed(body)
        yield "comments", text.replace("<tr", "<!-- H100 $9.99/hr --><tr").encode()


def said(rows):
    return {
        r.offer.offer_id: (
            r.quote.price and instance_price_hour(
                r.quote.price, r.quote.price_unit, r.quote.price_scope, r.offer.gpu_count, r.offer.commitment_days
            ), r.quote.currency, r.offer.gpu, r.offer.gpu_count, r.quote.availability,
        )
        for r in rows
    }  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_same_things_said_otherwise_give_the_same_rows(provider):
    collector, documents = COLLECTORS[provider], fixture_documents(provider)
    whole = said(collector.parse(documents).rows)
    for position, document in enumerate(documents):
        for how, body in same(document):
            changed = [*documents]
            changed[position] = dataclasses.replace(document, body=body)
            assert said(collector.parse(changed).rows) == whole, f"{document.name}: {how}"
