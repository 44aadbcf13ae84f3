"""Shadeform: cents, one type in several regions, the cloud below, names that hide a memory size."""

import dataclasses
import json

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.resale import cloud_slug
from collectors.shadeform import Shadeform


def kind(shape=(), **fields):
    configuration = {
        "memory_in_gb": 1800, "storage_in_gb": 2800, "vcpus": 208, "num_gpus": 8, "gpu_type": "H100",
        "interconnect": "sxm5", "nvlink": True, "vram_per_gpu_in_gb": 80,
    }  # fmt: skip
    base = {
        "cloud": "lambdalabs", "shade_instance_type": "H100_sxm5x8", "cloud_instance_type": "gpu_8x_h100_sxm5",
        "configuration": configuration | dict(shape), "hourly_price": 3192, "deployment_type": "vm",
        "availability": [{"region": "us-east-1", "available": True, "display_name": "US, Wichita, KS"}],
        "boot_time": {"min_boot_in_sec": 300, "max_boot_in_sec": 600},
    }  # fmt: skip
    return base | fields


def parse(*kinds, body=None):
    fixture = fixture_documents("shadeform")[0]
    text = json.dumps(body if body is not None else {"instance_types": [*kinds]})
    return Shadeform().parse([dataclasses.replace(fixture, body=text.encode())])


def test_cents_of_the_whole_instance():
    (row,) = parse(kind()).rows
    assert (str(row.quote.price), row.quote.price_usd_hour, row.quote.price_usd_gpu_hour) == ("31.92", 31.92, 3.99)
    assert (row.offer.gpu, row.offer.gpu_interconnect, row.offer.boot_time_s) == ("h100-sxm-80gb", "nvlink", 600)


def test_provider_is_the_cloud_below():
    (row,) = parse(kind()).rows
    assert (row.offer.provider, row.offer.via, row.offer.country) == ("lambda_cloud", "shadeform", "US")


@pytest.mark.parametrize(
    ("name", "slug"),
    [("datacrunch", "verda"), ("crusoecloud", "crusoe"), ("Hyperstack", "hyperstack"), ("dc_roan", "dc_roan")],
)
def test_cloud_slugs(name, slug):
    assert cloud_slug(name) == slug


def test_each_region_has_its_own_stock():
    places = [{"region": "a", "available": True}, {"region": "b", "available": False}]
    assert {r.offer.region: r.quote.availability for r in parse(kind(availability=places)).rows} == {
        "a": "available", "b": "unavailable",
    }  # fmt: skip
    (row,) = parse(kind(availability=[])).rows
    assert (row.offer.region, row.quote.availability) == ("", "unknown")


@pytest.mark.parametrize(
    ("shape", "gpu"),
    [
        ({"gpu_type": "A100", "interconnect": "sxm4", "vram_per_gpu_in_gb": 40}, "a100-sxm-40gb"),
        ({"gpu_type": "A100_80G", "interconnect": "sxm4", "vram_per_gpu_in_gb": 80}, "a100-sxm-80gb"),
        ({"gpu_type": "A100_80G", "interconnect": "pcie", "vram_per_gpu_in_gb": 80}, "a100-pcie-80gb"),
        ({"gpu_type": "A6000", "interconnect": "pcie", "vram_per_gpu_in_gb": 48}, "rtx-a6000-48gb"),
    ],
)
def test_names(shape, gpu):
    assert parse(kind(shape)).rows[0].offer.gpu == gpu


@pytest.mark.parametrize("price", [0, None, "N/A"])
def test_placeholders_are_no_prices(price):
    parsed = parse(kind(hourly_price=price), kind(shade_instance_type="other", cloud_instance_type="other"))
    assert [r.offer.instance_type for r in parsed.rows if r.quote.price] == ["other"]


def test_prices_in_dollars_are_refused():
    with pytest.raises(LayoutChanged, match="cents"):
        parse(kind(hourly_price=31.92))


def test_cpu_types_are_left_out_and_incomplete_rows_rejected():
    broken = kind()
    del broken["configuration"]
    parsed = parse(kind(), kind({"num_gpus": 0}, cloud="other", hourly_price=10), broken)
    assert len(parsed.rows) == 1
    assert [(r.reason, r.field) for r in parsed.rejections] == [("field_missing", "configuration")]


@pytest.mark.parametrize(
    ("region", "name", "country"),
    [
        ("paris-france-5", "", "FR"),
        ("newyork-usa-1", "", "US"),
        ("us-west-1", "", "US"),
        ("MON1", "", None),
        ("x", "CA, Montreal", "CA"),
        ("auckland-new-zealand-1", "", "NZ"),
    ],
)
def test_country(region, name, country):
    place = {"region": region, "available": True, "display_name": name}
    assert parse(kind(availability=[place])).rows[0].offer.country == country


def test_the_key_is_sent_where_there_is_one():
    (bare,) = Shadeform().requests({})
    (keyed,) = Shadeform().requests({"SHADEFORM_API_KEY": "topsecret"})
    assert not bare.headers
    assert keyed.headers == {"x-api-key": "topsecret"}
    assert bare.url == keyed.url


@pytest.mark.parametrize(
    "body",
    [{}, {"instance_types": []}, {"instance_types": {}}, {"instance_types": [{"cloud": "x"}]}, {"error": "no key"}],
)
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        parse(body=body)
