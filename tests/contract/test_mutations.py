"""A changed source never becomes a wrong price: every provider's documents, systematically damaged.

Keys renamed, lists emptied, bodies truncated, table headers renamed, columns and tables removed. Allowed outcomes: an
error that names the place, or fewer rows with the rest untouched. Never allowed: an empty success, another price, GPU
or count for the same offer, or an offer at a price that the source does not state.
"""

import dataclasses
import json
import random
from decimal import Decimal

import pytest
from bs4 import BeautifulSoup

from catalog.errors import GpuBazaarError
from catalog.units import instance_price_hour
from catalog.validate import check_rows
from collectors.fixtures import fixture_documents, recorded_providers
from collectors.registry import collectors_by_provider

COLLECTORS = collectors_by_provider()
PROVIDERS = [p for p in recorded_providers() if p in COLLECTORS and COLLECTORS[p].kind != "rates"]
MOST_PER_DOCUMENT = 40
# Large documents are damaged less often: the same keys repeat in them.
MOST_BYTES = 400_000


def hourly(row):
    quote, offer = row.quote, row.offer
    if quote.price is None:
        return None
    return instance_price_hour(quote.price, quote.price_unit, quote.price_scope, offer.gpu_count, offer.commitment_days)


def facts(row):
    offer = row.offer
    return (hourly(row), row.quote.currency, offer.gpu, offer.gpu_count, offer.gpu_fraction)


def keyed_by_name(value):
    """A dict of alike records: its keys are data (instance names), not fields."""
    return len(value) > 2 and all(isinstance(v, dict) for v in value.values())


def key_names(value, found=None):
    found = {} if found is None else found
    if isinstance(value, dict):
        for key, item in value.items():
            if not keyed_by_name(value):
                found[key] = found.get(key, 0) + 1
            key_names(item, found)
    elif isinstance(value, list):
        for item in value:
            key_names(item, found)
    return found


def renamed(value, old, new):
    if isinstance(value, dict):
        return {new if k == old else k: renamed(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v, old, new) for v in value]
    return value


def emptied(value, target):
    if value is target:
        return type(value)()
    if isinstance(value, dict):
        return {k: emptied(v, target) for k, v in value.items()}
    if isinstance(value, list):
        return [emptied(v, target) for v in value]
    return value


def containers(value, found):
    if isinstance(value, (dict, list)) and value:
        items = list(value.values()) if isinstance(value, dict) else value
        if all(isinstance(i, dict) for i in items):
            found.append(value)
        for item in items:
            containers(item, found)
    return found


def json_mutations(data):
    for key in key_names(data):
        yield f"key {key} renamed", json.dumps(renamed(data, key, f"{key}_v2")).encode()
    for index, target in enumerate(containers(data, [])):
        yield f"container {index} emptied", json.dumps(emptied(data, target)).encode()


def page_mutations(body):
    soup = BeautifulSoup(body, "lxml")
    for number, _ in enumerate(soup.find_all("table")):
        copy = BeautifulSoup(body, "lxml")
        copy.find_all("table")[number].decompose()
        yield f"table {number} removed", str(copy).encode()
    for number, _ in enumerate(soup.find_all("th")):
        copy = BeautifulSoup(body, "lxml")
        cell = copy.find_all("th")[number]
        cell.string = "Renamed"
        yield f"header {number} renamed", str(copy).encode()
        copy = BeautifulSoup(body, "lxml")
        copy.find_all("th")[number].decompose()
        yield f"header {number} removed", str(copy).encode()
    for number, table in enumerate(soup.find_all("table")):
        if table.find(attrs={"colspan": True}) or table.find(attrs={"rowspan": True}):
            continue  # the nth cell of a row is not the nth column there
        for column in range(len(table.find("tr").find_all(["td", "th"], recursive=False)) if table.find("tr") else 0):
            copy = BeautifulSoup(body, "lxml")
            for row in copy.find_all("table")[number].find_all("tr"):
                cells = row.find_all(["td", "th"], recursive=False)
                if column < len(cells):
                    cells[column].decompose()
            yield f"column {column} of table {number} removed", str(copy).encode()
    for name in sorted({a for node in soup.find_all(True) for a in node.attrs if a.startswith("data-") or a == "id"}):
        copy = BeautifulSoup(body, "lxml")
        for node in copy.find_all(attrs={name: True}):
            del node[name]
        yield f"attribute {name} removed", str(copy).encode()
    for name in sorted({c for node in soup.find_all(class_=True) for c in node["class"]}):
        copy = BeautifulSoup(body, "lxml")
        for node in copy.find_all(class_=name):
            node["class"] = [f"{c}-v2" if c == name else c for c in node["class"]]
        yield f"class {name} renamed", str(copy).encode()


def mutations(document):
    body = document.body
    yield "truncated", body[: len(body) // 2]
    yield "truncated near the end", body[: len(body) * 9 // 10]
    yield "emptied", b""
    yield "an error page", b"<html><head><title>Just a moment...</title></head><body><h1>Busy</h1></body></html>"
    try:
        data = json.loads(body)
    except ValueError:
        if body.lstrip()[:1] == b"<":
            yield from page_mutations(body)
        return
    yield from json_mutations(data)


def chosen(document, rng):
    every = list(mutations(document)) if len(document.body) <= MOST_BYTES else list(mutations(document))[:6]
    return every[:4] + rng.sample(every[4:], min(MOST_PER_DOCUMENT, len(every) - 4))


def same_or_vaguer(before, now):
    """The same price and count, and the same GPU or a less certain name of it."""
    price, currency, gpu, count, fraction = before
    price_now, currency_now, gpu_now, count_now, fraction_now = now
    close = price is not None and price_now is not None and abs(price - price_now) <= Decimal("0.0001") * price
    vaguer = gpu_now is None or (gpu is not None and gpu.startswith(gpu_now))
    return close and vaguer and (currency, count, fraction) == (currency_now, count_now, fraction_now)


def faults_of(rows, whole):
    """What the rows of a damaged document say that the whole document does not."""
    by_id = {r.offer.offer_id: facts(r) for r in whole}
    every = list(by_id.values())
    if not rows:
        yield "empty success"
    for r in rows:
        now = facts(r)
        if hourly(r) is None:
            continue
        before = by_id.get(r.offer.offer_id)
        name = f"{r.offer.instance_type} {r.offer.region}"
        if before is not None and before[0] is not None and not same_or_vaguer(before, now):
            yield f"{name} was {before}, now {now}"
        if before is None and not any(same_or_vaguer(known, now) for known in every):
            yield f"new {name}: {now}"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_damage_never_becomes_a_wrong_price(provider):
    collector = COLLECTORS[provider]
    documents = fixture_documents(provider)
    whole = check_rows(collector.parse(documents).rows).rows
    rng = random.Random(provider)
    faults = []
    for position, document in enumerate(documents):
        for what, body in chosen(document, rng):
            changed = [*documents]
            changed[position] = dataclasses.replace(document, body=body)
            try:
                result = collector.parse(changed)
            except GpuBazaarError:
                continue
            rows = check_rows(result.rows).rows
            faults += [f"{document.name}: {what}: {fault}" for fault in faults_of(rows, whole)]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:12])
