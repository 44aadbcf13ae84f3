"""CloudRift: cents, free against installed nodes, data centres."""

import dataclasses
import json

import pytest

from collectors.cloudrift import Cloudrift
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded


def variant(**fields):
    base = {
        "name": "rtx49.2", "cpu_count": 8, "logical_cpu_count": 16, "gpu_count": 2, "dram": 68719476736,
        "vram": 51539607552, "disk": 1099511627776, "cost_per_hour": 78, "available_nodes": 1,
        "available_nodes_per_dc": {"us-east": 0, "eu-west": 1}, "nodes_per_dc": {"us-east": 5, "eu-west": 2},
    }  # fmt: skip
    return base | fields


def parse(*variants, body=None):
    body = body or {"data": {"instance_types": [{"name": "rtx49", "brand_short": "RTX 4090", "variants": [*variants]}]}}
    fixture = fixture_documents("cloudrift")[0]
    return Cloudrift().parse([dataclasses.replace(fixture, body=json.dumps(body).encode())])


def test_cents_per_instance():
    row = parse(variant()).rows[0]
    assert str(row.quote.price) == "0.78"
    assert (row.quote.price_usd_hour, row.quote.price_usd_gpu_hour) == (0.78, 0.39)
    assert (row.offer.vcpu_count, row.offer.memory_gib) == (16, 64)


def test_installed_nodes_are_not_free_nodes():
    stock = {r.offer.region: (r.quote.availability, r.quote.stock_count) for r in parse(variant()).rows}
    assert stock == {"us-east": ("unavailable", 0), "eu-west": ("available", 1)}


def test_a_data_centre_missing_from_the_free_list_has_none():
    rows = parse(variant(available_nodes_per_dc={})).rows
    assert {r.quote.availability for r in rows} == {"unavailable"}


def test_without_a_free_list_stock_is_unknown():
    one = variant()
    del one["available_nodes_per_dc"]
    assert {r.quote.availability for r in parse(one).rows} == {"unknown"}


@pytest.mark.parametrize(("price", "reason"), [(0, "not_a_price"), ("N/A", "not_a_price"), (-5, "not_a_price")])
def test_bad_prices_are_rejected(price, reason):
    parsed = parse(variant(cost_per_hour=price, nodes_per_dc={}, available_nodes_per_dc={}), variant(name="good"))
    assert [r.reason for r in parsed.rejections] == [reason]
    assert {r.offer.instance_type for r in parsed.rows} == {"good"}


def test_prices_in_dollars_are_refused():
    with pytest.raises(LayoutChanged, match="cents"):
        parse(variant(cost_per_hour=0.78))


def test_cpu_variants_are_left_out():
    assert all(r.offer.gpu_count for r in parse(variant(), variant(name="cpu", gpu_count=0)).rows)


@pytest.mark.parametrize(
    "body",
    [{}, {"data": {}}, {"data": {"instance_types": []}}, {"data": {"instance_types": [{"name": "x"}]}},
     {"data": {"instance_types": [{"name": "x", "variants": [{"name": "x.1", "gpu_count": 1}]}]}},
     {"data": {"instance_types": [{"name": "x", "variants": [variant(gpu_count=0)]}]}}],
)  # fmt: skip
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        parse(body=body)


def test_truncated_body_is_refused():
    fixture = fixture_documents("cloudrift")[0]
    with pytest.raises(LayoutChanged):
        Cloudrift().parse([dataclasses.replace(fixture, body=fixture.body[:-30])])


@pytest.mark.needs_recordings
def test_public_shape(recordings):
    path = recordings / "instance-types_list_shape_example.json"
    with pytest.raises(LayoutChanged, match="cents"):
        Cloudrift().parse([read_recorded(path, "cloudrift")])  # its invented price of 0.85 is written in dollars
    body = json.loads(path.read_bytes())
    body["data"]["instance_types"][0]["variants"][0]["cost_per_hour"] *= 100
    rows = parse(body=body).rows
    assert {r.offer.region: r.quote.stock_count for r in rows} == {"dc-1": 3, "dc-2": 2}
    assert {r.quote.price_usd_hour for r in rows} == {0.85}
    assert rows[0].offer.memory_gib == 64
