"""Clore.ai: prices per day, coins, rented and mixed servers."""

import dataclasses
import json

import pytest

from collectors.clore import Clore
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents


def server(**fields):
    specs = {
        "gpu": "2x NVIDIA GeForce RTX 4090", "gpuram": 24, "cpus": "16/32", "ram": 128.5, "disk": "SSD 512.0GB",
        "net": {"cc": "DE", "up": 900, "down": 1200},
    }  # fmt: skip
    base = {
        "id": 7, "rented": False, "reliability": 0.99, "specs": specs,
        "price": {"on_demand": {"bitcoin": 0.0001}, "spot": {}, "usd": {"on_demand_usd": 12.0, "spot": 6.0}},
    }  # fmt: skip
    return base | fields


def parse(*servers, body=None):
    fixture = fixture_documents("clore")[0]
    text = json.dumps(body if body is not None else {"servers": [*servers]})
    return Clore().parse([dataclasses.replace(fixture, body=text.encode())])


def prices(parsed):
    return {(r.offer.purchase_option, r.quote.currency): r.quote.price_usd_hour for r in parsed.rows}


def test_prices_are_per_day():
    parsed = parse(server())
    assert prices(parsed) == {("on_demand", "USD"): 0.5, ("spot", "USD"): 0.25}
    row = parsed.rows[0]
    assert (row.quote.price_unit, row.quote.price_usd_gpu_hour) == ("day", 0.25)
    assert (row.offer.gpu_count, row.offer.vcpu_count, row.offer.memory_gib) == (2, 32, 128.5)
    assert (row.offer.local_storage_gb, row.offer.country, row.offer.network_gbps) == (512, "DE", 0.9)


def test_stable_coin_prices_are_dollars():
    parsed = parse(server(price={"on_demand": {"USD-Blockchain": 24, "CLORE-Blockchain": 900}, "spot": {}}))
    assert prices(parsed) == {("on_demand", "USD"): 1.0}


def test_coins_have_no_dollar_value_here():
    parsed = parse(server(price={"on_demand": {"bitcoin": 0.0001, "CLORE-Blockchain": 60}, "spot": None}))
    assert prices(parsed) == {("on_demand", "BTC"): None, ("on_demand", "CLORE"): None}
    assert len({r.offer.offer_id for r in parsed.rows}) == 2


@pytest.mark.parametrize(
    "price", [{}, None, {"usd": {"on_demand_usd": 0, "spot": None}}, {"on_demand": {"bitcoin": 0}}]
)
def test_no_price_is_rejected(price):
    parsed = parse(server(price=price), server(id=8))
    assert [r.reason for r in parsed.rejections] == ["not_a_price"]
    assert {r.offer.source_sku for r in parsed.rows} == {"server-8"}


def test_rented_servers_stay_listed():
    row = parse(server(rented=True)).rows[0]
    assert (row.quote.availability, row.quote.stock_count, row.quote.price_usd_hour) == ("unavailable", 0, 0.5)


def test_mixed_servers_are_rejected_and_uniform_ones_are_not():
    assert [r.reason for r in parse(server(gpu_array=[["RTX 4090"], ["RTX 3090"]])).rejections] == ["mixed_gpus"]
    assert parse(server(gpu_array=[["RTX 4090"], "RTX 4090"])).rows


def test_unreliable_hosts_are_flagged():
    assert parse(server(reliability=0.5)).rows[0].quote.flags == ("low_reliability",)


def test_servers_of_one_kind_are_not_compared_with_each_other():
    first, second = parse(server(id=1), server(id=2)).rows[::2]
    assert first.offer.variant != second.offer.variant


@pytest.mark.parametrize(
    "body", [{}, {"servers": []}, {"servers": {}}, {"servers": [{"id": 1}]}, {"servers": [{"id": 1, "price": {}}]}, []]
)
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        parse(body=body)
