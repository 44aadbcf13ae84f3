"""A changed source never becomes a wrong price: every provider's documents, systematically damaged.

Keys renamed, lists emptied, bodies truncated, table headers renamed, columns and tables removed; and in one place only:
a key renamed in one record, a value of another kind, a cell or element gone, a table moved, a number cut in the middle.
Allowed outcomes: an error that names the place, or fewer rows with the rest untouched. Never allowed: a crash, an empty
success, another price, GPU or count for the same offer, or an offer at a price that the source does not state.
"""

import copy
import dataclasses
import json
import random
import re
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
MOST_PLACES_PER_DOCUMENT = 25
# Their prices are sums: a component that the source states as free makes another, stated price.
SUMS = {"gcp", "tensordock", "voltagepark"}
# They list the same things in several currencies and read the first that states a price.
CURRENCY_LISTS = {"exoscale": ("usd", "eur", "chf")}
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


def places(value, at=()):
    """The path of every value in a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key), item
        yield from places(item, (*at, key))


def edited(data, path, change):
    """A copy in which `change(container, key)` was done at one place."""
    data = copy.deepcopy(data)
    container = data
    for step in path[:-1]:
        container = container[step]
    change(container, path[-1])
    return json.dumps(data).encode()


def put(value):
    return lambda container, key: container.__setitem__(key, value)


def json_places(data, rng, odd):
    """One record's key renamed, one value null or of another kind."""
    named = [(path, value) for path, value in places(data) if isinstance(path[-1], str)]
    for path, _ in rng.sample(named, min(MOST_PLACES_PER_DOCUMENT, len(named))):
        yield f"{path} renamed", edited(data, path, lambda o, key: o.__setitem__(f"{key}_v2", o.pop(key)))
        yield f"{path} null", edited(data, path, put(None))
    numbers = [path for path, value in named if isinstance(value, (int, float)) and not isinstance(value, bool)]
    for path in rng.sample(numbers, min(MOST_PLACES_PER_DOCUMENT, len(numbers))):
        value = rng.choice(odd)
        yield f"{path} = {value!r}", edited(data, path, put(value))


def page_places(body, rng):
    """One cell or element removed, one table moved, one tag renamed everywhere."""

    def soup():
        return BeautifulSoup(body, "lxml")

    def without(node, page):
        node.decompose()
        return str(page).encode()

    for number, _ in enumerate(soup().find_all("table")):
        for last in (True, False):
            page = soup()
            table = page.find_all("table")[number].extract()
            (page.body.append if last else lambda moved, to=page.body: to.insert(0, moved))(table)
            yield f"table {number} moved to the {'end' if last else 'front'}", str(page).encode()
    cells = len(soup().find_all(["td", "th"]))
    for number in rng.sample(range(cells), min(MOST_PLACES_PER_DOCUMENT, cells)):
        page = soup()
        yield f"cell {number} removed", without(page.find_all(["td", "th"])[number], page)
    count = len(soup().body.find_all(True))
    for number in rng.sample(range(count), min(MOST_PLACES_PER_DOCUMENT, count)):
        page = soup()
        yield f"element {number} removed", without(page.body.find_all(True)[number], page)
    for tag in sorted({node.name for node in soup().body.find_all(True)}):
        page = soup()
        for node in page.body.find_all(tag):
            node.name = f"x-{tag}"
        yield f"tag {tag} renamed", str(page).encode()


def text_places(text, rng):
    """A text cut in the middle of a number, and anywhere."""
    cuts = [found.start() + length for found in re.finditer(r"\d+\.\d{2,}", text) for length in range(2, len(found[0]))]
    anywhere = range(1, len(text))
    for cut in (
        *rng.sample(cuts, min(MOST_PLACES_PER_DOCUMENT, len(cuts))),
        *rng.sample(anywhere, min(8, len(anywhere))),
        *(len(text) - last for last in (1, 2, 3, 8) if last < len(text)),
    ):
        yield f"cut at {cut}: …{text[max(0, cut - 12) : cut]}", text[:cut].encode()


def csv_columns(text):
    lines = [line.split(",") for line in text.splitlines()]
    if '"' in text or len({len(line) for line in lines}) != 1:
        return
    for column, name in enumerate(lines[0]):
        head = ",".join([*lines[0][:column], f"{name}_v2", *lines[0][column + 1 :]])
        yield f"column {name} renamed", "\n".join([head, *map(",".join, lines[1:])]).encode()
        kept = (",".join(line[:column] + line[column + 1 :]) for line in lines)
        yield f"column {name} removed", "\n".join(kept).encode()


def damaged_places(document, rng):
    """Damage in one place of a document."""
    body = document.body
    if body[:2] == b"PK":
        return
    text = body.decode("utf-8", errors="replace")
    yield from text_places(text, rng)
    try:
        data = json.loads(body)
    except ValueError:
        page = body.lstrip()[:1] == b"<" and b"<?xml" not in body[:10]
        yield from page_places(body, rng) if page else csv_columns(text)
        return
    odd = [-1, "abc", "", [], {}, True, "NaN", *([] if document.provider in SUMS else [0])]
    yield from json_places(data, rng, odd)


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


def faults_of(rows, whole, stated):
    """What the rows of a damaged document say that the whole document does not, nor `stated` (facts in its lists)."""
    by_id = {r.offer.offer_id: facts(r) for r in whole}
    every = list(by_id.values())
    if not rows:
        yield "empty success"
    for r in rows:
        now = facts(r)
        if hourly(r) is None or now in stated:
            continue
        before = by_id.get(r.offer.offer_id)
        name = f"{r.offer.instance_type} {r.offer.region}"
        if before is not None and before[0] is not None and not same_or_vaguer(before, now):
            yield f"{name} was {before}, now {now}"
        if before is None and not any(same_or_vaguer(known, now) for known in every):
            yield f"new {name}: {now}"


def in_one_currency(provider, documents):
    """The documents with the list of one currency only, for each of a provider's currencies."""
    for currency in CURRENCY_LISTS.get(provider, ()):
        kept = []
        for document in documents:
            data = json.loads(document.body)
            one = {key: value for key, value in data.items() if key not in CURRENCY_LISTS[provider] or key == currency}
            kept.append(dataclasses.replace(document, body=json.dumps(one).encode()))
        yield kept


def faults_in(provider, damage):
    """What a provider's collector makes of its documents, each damaged in turn in every way of `damage(document)`."""
    collector, documents = COLLECTORS[provider], fixture_documents(provider)
    whole = check_rows(collector.parse(documents).rows).rows
    stated = {facts(r) for d in in_one_currency(provider, documents) for r in check_rows(collector.parse(d).rows).rows}
    for position, document in enumerate(documents):
        for what, body in damage(document):
            changed = [*documents]
            changed[position] = dataclasses.replace(document, body=body)
            try:
                result = collector.read(changed)
            except GpuBazaarError:
                continue
            rows = check_rows(result.rows).rows
            yield from (f"{document.name}: {what}: {fault}" for fault in faults_of(rows, whole, stated))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("damage", [chosen, damaged_places])
def test_damage_never_becomes_a_wrong_price(damage, provider):
    rng = random.Random(provider)
    faults = list(faults_in(provider, lambda document: damage(document, rng)))
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:12])


PAGES = {p: [d for d in fixture_documents(p) if d.body.lstrip()[:1] == b"<"] for p in PROVIDERS}
HOUR = r"(?i)\b(hours?|hr|hrs|hourly|h)\b(?![-_/\w])"
LABELS = {
    "a month": (HOUR, "month", lambda row: row.quote.price_unit == "hour"),
    "a day": (HOUR, "day", lambda row: row.quote.price_unit == "hour"),
    "a week": (HOUR, "week", lambda row: row.quote.price_unit == "hour"),
    "euros": (r"\$(?![A-Za-z])|\bUSD\b", "EUR ", lambda row: row.quote.currency == "USD"),
}


@pytest.mark.parametrize("provider", [provider for provider, pages in PAGES.items() if pages])
@pytest.mark.parametrize("label", LABELS)
def test_another_label_is_never_read_as_the_old_unit(label, provider):
    pattern, word, as_before = LABELS[label]
    collector, pages = COLLECTORS[provider], PAGES[provider]
    relabelled = [dataclasses.replace(page, body=re.sub(pattern, word, page.text()).encode()) for page in pages]
    before = {r.offer.offer_id: r.quote.price for r in collector.parse(pages).rows if r.quote.price and as_before(r)}
    try:
        rows = collector.read(relabelled).rows
    except GpuBazaarError:
        return
    kept = [r.offer.instance_type for r in rows if as_before(r) and r.quote.price == before.get(r.offer.offer_id, 0)]
    assert kept == []


@pytest.mark.parametrize(
    ("provider", "label", "per_node"),
    [
        ("crusoe", "/GPU-hr", "/node-hr"),
        ("crusoe", "/GPU-hr", "/hr per node"),
        ("crusoe", "/GPU-hr", ""),
        ("hyperstack", "Pricing Per Hour", "Pricing Per Node Per Hour"),
        ("together", "per gpu per hour", "per node per hour"),
        ("e2e", "Hourly", "Hourly per node"),
        ("fal", "List Price", "List Price / node"),
    ],
)
def test_a_price_per_node_is_never_read_as_one_per_gpu(provider, label, per_node):
    collector, [page] = COLLECTORS[provider], PAGES[provider]
    assert label in page.text()
    relabelled = dataclasses.replace(page, body=page.text().replace(label, per_node).encode())
    before = {r.offer.offer_id for r in collector.parse([page]).rows if r.quote.price and r.quote.currency == "USD"}
    try:
        rows = collector.read([relabelled]).rows
    except GpuBazaarError:
        return
    assert not {r.offer.offer_id for r in rows if r.quote.price} & before
