"""Voltage Park: two networks of one node, prices without stock, and presets of two meters."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.voltagepark import VoltagePark

COLLECTOR = VoltagePark()


@pytest.fixture
def locations():
    return next(d for d in fixture_documents("voltagepark") if d.name == "bare-metal-locations")


@pytest.fixture
def presets():
    return next(d for d in fixture_documents("voltagepark") if d.name == "instant-deploy-presets")


def changed_json(document, change):
    content = json.loads(document.body)
    change(content)
    return dataclasses.replace(document, body=json.dumps(content).encode())


def location(document, **fields):
    return changed_json(document, lambda c: c["results"][0].update(fields))


def by_network(result):
    return {r.offer.network_option: r for r in result.rows}


def test_asks_for_both_lists(locations, presets):
    assert {(r.name, r.url) for r in COLLECTOR.requests({})} == {
        (locations.name, locations.url), (presets.name, presets.url),
    }  # fmt: skip


def test_the_network_is_a_choice_on_one_product(locations):
    rows = by_network(COLLECTOR.parse([locations]))
    assert set(rows) == {"ethernet", "infiniband"}
    assert len({r.offer.offer_id for r in rows.values()}) == 2
    assert {r.offer.source_sku for r in rows.values()} == {"bare-metal-h100-sxm5-80gb-x8"}
    assert rows["infiniband"].offer.rdma is True
    assert rows["ethernet"].offer.rdma is None


def test_bare_metal_is_priced_per_gpu_and_sold_by_the_node(locations):
    row = by_network(COLLECTOR.parse([locations]))["ethernet"]
    assert (row.quote.price, row.quote.price_scope, row.offer.gpu_count) == (Decimal("1.99"), "gpu", 8)
    assert row.quote.price_usd_hour == pytest.approx(15.92)
    assert row.quote.price_usd_gpu_hour == pytest.approx(1.99)


def test_prices_stand_without_stock(locations):
    row = by_network(COLLECTOR.parse([locations]))["ethernet"]
    assert (row.quote.availability, row.quote.stock_count) == ("unavailable", 0)
    rows = by_network(COLLECTOR.parse([location(locations, gpu_count_ethernet=4, gpu_count_infiniband=17)]))
    assert (rows["ethernet"].quote.availability, rows["ethernet"].quote.stock_count) == ("unavailable", 0)
    assert (rows["infiniband"].quote.availability, rows["infiniband"].quote.stock_count) == ("available", 2)
    unknown = by_network(COLLECTOR.parse([location(locations, gpu_count_ethernet=None)]))["ethernet"]
    assert (unknown.quote.availability, unknown.quote.stock_count) == ("unknown", None)


def test_a_network_without_a_price_is_not_sold_and_zero_is_rejected(locations):
    result = COLLECTOR.parse([location(locations, gpu_price_infiniband=None)])
    assert set(by_network(result)) == {"ethernet"}
    assert not result.rejections
    result = COLLECTOR.parse([location(locations, gpu_price_infiniband="0.00")])
    assert [r.reason for r in result.rejections] == ["not_a_price"]


def test_a_preset_bills_two_meters(presets):
    rows = {r.offer.gpu_count: r for r in COLLECTOR.parse([presets]).rows}
    assert {count: r.quote.price for count, r in rows.items()} == {
        1: Decimal("1.99"), 2: Decimal("3.98"), 4: Decimal("7.96"), 8: Decimal("15.92"),
    }  # fmt: skip
    assert {r.quote.price_scope for r in rows.values()} == {"component"}
    assert rows[8].quote.price_usd_gpu_hour == pytest.approx(1.99)


def test_a_preset_is_offered_where_it_can_be_had(presets):
    def change(content):
        content[0]["location_ids_with_availability"] = ["one", "two"]

    rows = COLLECTOR.parse([changed_json(presets, change)]).rows
    places = {(r.offer.gpu_count, r.offer.region): r.quote.availability for r in rows}
    count = json.loads(presets.body)[0]["resources"]["gpus"]["h100-sxm5-80gb"]["count"]
    assert places[count, "one"] == places[count, "two"] == "available"
    assert sum(v == "unavailable" for v in places.values()) == 3


@pytest.mark.parametrize("rate", ["0", "free", None])
def test_a_preset_without_a_rate_is_rejected(presets, rate):
    result = COLLECTOR.parse([changed_json(presets, lambda c: c[0].update(compute_rate_hourly=rate))])
    assert [r.reason for r in result.rejections] == ["not_a_price"]
    assert len(result.rows) == 3


def test_two_models_in_one_preset_are_not_guessed(presets):
    result = COLLECTOR.parse([changed_json(presets, lambda c: c[0]["resources"]["gpus"].update(h200={"count": 1}))])
    assert [r.reason for r in result.rejections] == ["gpu_ambiguous"]


def test_the_next_page_is_asked_for_and_missed(locations):
    first = changed_json(locations, lambda c: c.update(has_next=True))
    [second] = COLLECTOR.follow(first)
    assert (second.url, second.name) == (f"{locations.url}?offset=1", "bare-metal-locations-1")
    assert list(COLLECTOR.follow(locations)) == []
    assert not COLLECTOR.parse([first]).complete
    assert COLLECTOR.parse([first, dataclasses.replace(locations, url=second.url)]).complete


@pytest.mark.parametrize("key", [b'"results"', b'"gpu_price_ethernet"', b'"specs_per_node"', b'"gpu_model"'])
def test_a_renamed_key_is_a_changed_list(locations, key):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(locations, body=locations.body.replace(key, b'"renamed"'))])


@pytest.mark.parametrize("body", [b"", b'{"results": []}', b'{"results": [', b"[]", b'{"detail": "Not Found"}'])
def test_an_empty_or_cut_answer_is_never_an_empty_success(locations, body):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(locations, body=body)])


@pytest.mark.needs_recordings
def test_recorded_answers(locations, presets, recordings):
    recorded = [
        dataclasses.replace(read_recorded(recordings / name, "voltagepark"), url=document.url)
        for name, document in (("bare_metal_locations.json", locations), ("instant_deploy_presets.json", presets))
    ]
    rows = COLLECTOR.parse(recorded).rows
    assert {(r.offer.tenancy, r.offer.network_option, r.offer.gpu_count, str(r.quote.price)) for r in rows} == {
        ("bare_metal", "ethernet", 8, "1.99"),
        ("bare_metal", "infiniband", 8, "2.49"),
        ("vm", "", 1, "1.990000"),
        ("vm", "", 2, "3.980000"),
        ("vm", "", 4, "7.960000"),
        ("vm", "", 8, "15.920000"),
    }
    assert {r.offer.gpu for r in rows} == {"h100-sxm-80gb"}
    assert {r.quote.availability for r in rows} == {"unavailable"}


def test_an_empty_list_of_presets_does_not_lose_the_nodes(locations, presets):
    result = COLLECTOR.parse([locations, dataclasses.replace(presets, body=b"[]")])
    assert result.rows
    assert not result.complete
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(presets, body=b"[]")])
