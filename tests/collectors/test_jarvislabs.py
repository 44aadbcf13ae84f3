"""JarvisLabs: free devices, spot of containers, workload twins, text numbers, both sources at once."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def test_spot_is_sold_for_containers_only(parse, documents):
    spot = [r for r in parse(documents["server_meta"]).rows if r.offer.purchase_option == "spot"]
    assert {(r.offer.gpu, r.offer.variant) for r in spot} == {("l4-24gb", "container")}
    assert {r.quote.price for r in spot} == {Decimal("0.29")}


def test_free_devices_bound_the_sizes(parse, documents):
    stock = {
        r.offer.gpu_count: (r.quote.availability, r.quote.stock_count)
        for r in parse(documents["server_meta"]).rows
        if (r.offer.gpu, r.offer.variant) == ("l4-24gb", "vm")
    }
    assert stock == {1: ("available", 3), 2: ("limited", 1), 4: ("unavailable", 0), 8: ("unavailable", 0)}


def test_a_missing_number_of_gpus_means_single_ones(parse, api_with):
    api = api_with(lambda d: [s.pop("num_gpus") for s in d["server_meta"]])
    assert {r.offer.gpu_count for r in parse(api).rows} == {1}


def test_a_null_spot_price_and_an_unknown_region(parse, api_with):
    def change(data):
        data["server_meta"][0].update(spot_price=None, region="mars-01")

    rows = parse(api_with(change)).rows
    assert not [r for r in rows if r.offer.purchase_option == "spot"]
    assert {r.offer.country for r in rows if r.offer.region == "mars-01"} == {None}


def test_the_page_adds_what_the_api_does_not_list(parse, documents):
    rows = parse(*documents.values()).rows
    page = {r.offer.instance_type for r in rows if r.offer.region == "" and r.offer.gpu_count == 1}
    assert page == {"NVIDIA H200 SXM x1", "NVIDIA H100 SXM x1", "NVIDIA A100 40GB x1", "NVIDIA A30 x1"}


def test_processor_machines_are_no_offers_or_meters(parse, documents):
    result = parse(documents["pricing"])
    assert Decimal("0.10") not in {r.quote.price for r in result.rows}
    assert {s.kind for s in result.surcharges} == {"block_storage", "egress"}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("server_meta"),
        lambda d: d["server_meta"].clear(),
        lambda d: [s.pop("price_per_hour") for s in d["server_meta"]],
        lambda d: [s.pop("gpu_type") for s in d["server_meta"]],
    ],
)
def test_a_changed_api_is_refused(change, parse, api_with):
    with pytest.raises(LayoutChanged):
        parse(api_with(change))


def test_a_price_without_its_unit_on_the_card_needs_the_page_to_name_it(parse_page):
    with pytest.raises(LayoutChanged):
        parse_page((" /hr", ""))
    named = parse_page((" /hr", ""), ("GPU instances", "GPUs, per hour"))
    assert {r.quote.price_unit for r in named.rows} == {"hour"}


def test_zero_is_no_price(parse, api_with):
    result = parse(api_with(lambda d: d["server_meta"][2].update(price_per_hour=0)))
    assert not [r for r in result.rows if r.offer.instance_type.startswith("A100")]
    assert {r.reason for r in result.rejections} == {"not_a_price"}


@pytest.mark.needs_recordings
def test_recorded_servers(parse, recording):
    rows = parse(recording("server_meta.json")).rows
    single = {
        (r.offer.instance_type, r.offer.region, r.offer.variant, r.offer.purchase_option): float(r.quote.price)
        for r in rows
        if r.offer.gpu_count == 1
    }
    assert single == {
        ("L4 x1", "india-noida-01", "container", "on_demand"): 0.44,
        ("L4 x1", "india-noida-01", "container", "spot"): 0.29,
        ("L4 x1", "india-noida-01", "vm", "on_demand"): 0.44,
        ("A100-80GB x1", "india-noida-01", "vm", "on_demand"): 1.49,
        ("RTX-PRO6000 x1", "india-chennai-01", "vm", "on_demand"): 1.89,
        ("RTX PRO 6000 x1", "india-noida-01", "vm", "on_demand"): 1.89,
        ("H100 x1", "europe-01", "", "on_demand"): 2.99,
        ("H100 x1", "unknown-region", "vm", "on_demand"): 2.99,
    }
