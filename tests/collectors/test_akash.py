"""Akash: which statistic is the price, models nobody bids for, names and memory."""

import dataclasses
import json

import pytest

from collectors.akash import Akash
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded


def model(**fields):
    base = {
        "vendor": "nvidia", "model": "h100", "ram": "80Gi", "interface": "sxm5",
        "availability": {"total": 16, "available": 3}, "providerAvailability": {"total": 2, "available": 1},
        "price": {"currency": "USD", "min": 1.2, "max": 4, "avg": 2.5, "weightedAverage": 2.4, "med": 2.3},
    }  # fmt: skip
    return base | fields


def parse(*models, body=None):
    fixture = fixture_documents("akash")[0]
    text = json.dumps(body if body is not None else {"availability": {}, "models": [*models]})
    return Akash().parse([dataclasses.replace(fixture, body=text.encode())])


def test_the_median_is_the_price_and_not_the_minimum():
    (row,) = parse(model()).rows
    assert (row.quote.price_usd_hour, row.quote.quote_kind, row.quote.flags) == (2.3, "market", ())
    assert (row.offer.gpu, row.offer.gpu_count) == ("h100-sxm-80gb", 1)
    assert (row.quote.availability, row.quote.stock_count) == ("available", 3)


@pytest.mark.parametrize(
    ("price", "taken"),
    [({"min": 1, "avg": 2.5, "weightedAverage": 2.4, "med": None}, 2.4), ({"min": 1, "avg": 2.5}, 2.5)],
)
def test_the_next_best_statistic(price, taken):
    assert parse(model(price=price)).rows[0].quote.price_usd_hour == taken


def test_the_minimum_alone_is_flagged():
    assert parse(model(price={"min": 1})).rows[0].quote.flags == ("from_price",)


def test_nobody_bids():
    (row,) = parse(model(price=None, availability={"total": 8, "available": 0})).rows
    assert (row.quote.price, row.quote.availability) == (None, "unavailable")
    assert "no_bids" in row.quote.flags


@pytest.mark.parametrize("price", [{"med": 0}, {"med": None}, {"med": "NaN"}, {}])
def test_no_price_in_the_price(price):
    parsed = parse(model(price=price), model(model="t4", ram="16Gi", interface="pcie"))
    assert [r.reason for r in parsed.rejections] == ["not_a_price"]
    assert [r.offer.gpu for r in parsed.rows] == ["t4-16gb"]


@pytest.mark.parametrize(
    ("name", "ram", "interface", "gpu"),
    [("a100", "80Gi", "sxm4", "a100-sxm-80gb"), ("a100", "40Gi", "pcie", "a100-pcie-40gb"),
     ("rtx4090", "24Gi", "pcie", "rtx-4090-24gb"), ("v100", "32Gi", "PCIe", "v100-pcie-32gb"),
     ("pro6000se", "96Gi", "PCIe", "rtx-pro-6000-blackwell-server-96gb")],
)  # fmt: skip
def test_names(name, ram, interface, gpu):
    assert parse(model(model=name, ram=ram, interface=interface)).rows[0].offer.gpu == gpu


def test_unknown_names_are_kept_and_listed():
    parsed = parse(model(model="gtx1050ti", ram="4Gi", interface="pcie"))
    assert parsed.unmapped == ("gtx1050ti 4GB pcie",)
    assert parsed.rows[0].offer.gpu is None


@pytest.mark.parametrize(
    "body", [{}, {"models": []}, {"models": {}}, {"models": [{"vendor": "nvidia"}]}, {"models": [model(price=2.3)]}]
)
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        parse(body=body)


@pytest.mark.needs_recordings
def test_public_shape(recordings):
    path = recordings / "v1_gpu-prices_shape_example.json"
    parsed = Akash().parse([read_recorded(path, "akash")])
    raw = json.loads(path.read_bytes())["models"]
    assert [None if r.quote.price is None else float(r.quote.price) for r in parsed.rows] == [
        m["price"] and m["price"]["med"] for m in raw
    ]
    assert [r.quote.stock_count for r in parsed.rows] == [m["availability"]["available"] for m in raw]
