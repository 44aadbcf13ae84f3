"""Salad: text prices per priority, interruptible nodes."""

import dataclasses
import json

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.salad import Salad


def gpu_class(**fields):
    prices = [{"priority": "high", "price": "0.30"}, {"priority": "batch", "price": "0.16"}]
    base = {
        "id": "a1", "name": "RTX 4090 (24 GB)", "gpu_class_type": "community", "gpu_count": 1, "prices": prices,
        "is_high_demand": False,
    }  # fmt: skip
    return base | fields


def parse(*items, body=None):
    fixture = fixture_documents("salad")[0]
    text = json.dumps(body if body is not None else {"items": [*items]})
    return Salad().parse([dataclasses.replace(fixture, body=text.encode())])


def test_high_priority_is_on_demand_and_lower_ones_are_spot():
    rows = parse(gpu_class()).rows
    assert [(r.offer.purchase_option, r.offer.variant, str(r.quote.price)) for r in rows] == [
        ("on_demand", "high-priority", "0.30"), ("spot", "batch-priority", "0.16"),
    ]  # fmt: skip
    assert all("interruptible" in r.quote.flags for r in rows)
    assert len({r.offer.offer_id for r in rows}) == 2


def test_several_gpus_are_priced_each():
    assert parse(gpu_class(gpu_count=2)).rows[0].quote.price_usd_hour == 0.6


def test_demand_and_tenancy():
    row = parse(gpu_class(is_high_demand=True, gpu_class_type="secure")).rows[0]
    assert (row.quote.availability, row.offer.tenancy) == ("limited", "secure")
    assert parse(gpu_class()).rows[0].quote.availability == "unknown"


@pytest.mark.parametrize("price", ["0", None, "", "N/A", "free"])
def test_placeholders_are_no_prices(price):
    parsed = parse(gpu_class(prices=[{"priority": "high", "price": price}]))
    assert not parsed.rows
    assert [r.reason for r in parsed.rejections] == ["not_a_price"]


def test_unknown_priorities_are_rejected():
    parsed = parse(gpu_class(prices=[{"priority": "urgent", "price": "1"}, "x"]))
    assert [r.reason for r in parsed.rejections] == ["priority_unknown", "priority_unknown"]


@pytest.mark.parametrize("body", [{}, {"items": []}, {"items": {}}, {"items": [{"id": "x"}]}, []])
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        parse(body=body)
