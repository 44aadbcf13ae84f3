"""TensorDock: prices of a bundle, the drained list, limits of a location."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.tensordock import Tensordock


def gpu(**fields):
    base = {
        "price_per_hr": 2, "max_count": 2,
        "pricing": {"per_gb_storage_hr": 0.0001, "per_gb_ram_hr": 0.002, "per_vcpu_hr": 0.01},
        "resources": {"max_storage_gb": 2000, "max_ram_gb": 400, "max_vcpus": 96},
        "displayName": "RTX A6000 48GB", "v0Name": "rtxa6000-pcie-48gb",
    }  # fmt: skip
    return base | fields


def parse(*gpus, body=None):
    place = {"id": "loc-1", "city": "Oslo", "stateprovince": "", "country": "Norway", "gpus": [*gpus]}
    fixture = fixture_documents("tensordock")[0]
    text = json.dumps(body if body is not None else {"data": {"locations": [place]}})
    return Tensordock().parse([dataclasses.replace(fixture, body=text.encode())])


def test_a_price_is_that_of_the_whole_bundle():
    row = parse(gpu()).rows[1]
    assert row.quote.price == 2 * 2 + 16 * Decimal("0.01") + 64 * Decimal("0.002") + 100 * Decimal("0.0001")
    assert (row.offer.gpu_count, row.offer.vcpu_count, row.offer.memory_gib, row.offer.local_storage_gb) == (
        2,
        16,
        64,
        100,
    )
    assert (row.quote.price_scope, row.offer.country, row.offer.region) == ("component", "NO", "Oslo")


def test_the_bundle_stays_within_the_location():
    row = parse(gpu(resources={"max_vcpus": 6, "max_ram_gb": 20, "max_storage_gb": 50})).rows[0]
    assert (row.offer.vcpu_count, row.offer.memory_gib, row.offer.local_storage_gb) == (6, 20, 50)


def test_sizes_up_to_what_is_free():
    assert [r.offer.gpu_count for r in parse(gpu(max_count=5)).rows] == [1, 2, 4]
    (row,) = parse(gpu(max_count=0)).rows
    assert row.quote.availability == "unavailable"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"price_per_hr": 0}, "not_a_price"),
        ({"price_per_hr": None}, "not_a_price"),
        ({"pricing": {}}, "component_missing"),
        ({"pricing": {"per_vcpu_hr": None, "per_gb_ram_hr": 1, "per_gb_storage_hr": 1}}, "component_missing"),
    ],
)
def test_half_a_price_is_no_price(fields, reason):
    parsed = parse(gpu(**fields), gpu(v0Name="other"))
    assert [r.reason for r in parsed.rejections] == [reason]
    assert {r.offer.instance_type for r in parsed.rows} == {"1x other", "2x other"}


def test_disks_are_priced_once_per_location():
    (disk,) = parse(gpu(), gpu(v0Name="other")).surcharges
    assert (disk.region, disk.unit, disk.price) == ("Oslo", "gb_month", Decimal("0.0730"))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": {}},
        {"data": {"locations": []}},
        {"data": {"locations": [{"id": "x"}]}},
        {"data": {"locations": [{"id": "x", "gpus": [{"v0Name": "y"}]}]}},
    ],
)
def test_drained_and_changed_lists_are_refused(body):
    with pytest.raises(LayoutChanged):
        parse(body=body)


@pytest.mark.needs_recordings
def test_public_example(recordings):
    path = recordings / "v2_locations_doc_example.json"
    parsed = Tensordock().parse([read_recorded(path, "tensordock")])
    raw = json.loads(path.read_bytes())["data"]["locations"][0]["gpus"][0]
    assert [r.offer.gpu_count for r in parsed.rows] == [1, 2, 4, 8]
    assert raw["price_per_hr"] == 2.2
    assert parsed.rows[0].quote.price_usd_hour == pytest.approx(2.2 + 8 * 0.003 + 32 * 0.002 + 100 * 0.00005)
    assert parsed.rows[3].offer.memory_gib == 256, "8 x 32 is within the 300 GB of the location"
