"""Koyeb: split prices, totals of memory, the keyed catalog, plan fees, traffic."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def test_a_price_split_over_elements_and_an_instance_of_eight(parse, documents):
    rows = {r.offer.instance_type: r for r in parse(documents["pricing"]).rows}
    eight = rows["8x H100"]
    assert (eight.quote.price, eight.quote.price_usd_gpu_hour, eight.offer.gpu_memory_gb) == (Decimal("20.00"), 2.5, 80)
    assert (eight.offer.vcpu_count, eight.offer.memory_gib) == (120, 1440)
    assert rows["RTX-A6000 x1"].quote.price == Decimal("0.75")


def test_processors_and_plans_are_no_offers_or_meters(parse, documents):
    result = parse(documents["pricing"])
    assert len(result.rows) == 5
    assert {(s.kind, s.price, s.unit) for s in result.surcharges} == {("egress", Decimal("0.02"), "gb")}


def test_regions_and_states_of_the_catalog(parse, api_with):
    def change(data):
        data["instances"][2].update(regions=["fra", "was"], status="coming_soon")

    rows = [r for r in parse(api_with(change)).rows if r.offer.gpu == "l4-24gb"]
    assert {(r.offer.region, r.offer.country) for r in rows} == {("fra", "DE"), ("was", "US")}
    assert {r.quote.availability for r in rows} == {"unavailable"}


def test_memory_given_as_a_total_is_divided(parse, api_with):
    def change(data):
        data["instances"][2].update(gpu={"name": "L4", "brand": "NVIDIA", "memory": "96GB", "count": 4})

    row = next(r for r in parse(api_with(change)).rows if r.offer.gpu_count == 4)
    assert (row.offer.gpu, row.offer.gpu_memory_gb, row.quote.flags) == ("l4-24gb", 24, ())


def test_a_type_of_the_catalog_is_not_listed_again_from_the_page(parse, api_with, documents):
    def change(data):
        data["instances"][2].update(gpu={"name": "L40S", "brand": "NVIDIA", "memory": "48GB", "count": 1})

    rows = [r for r in parse(documents["pricing"], api_with(change)).rows if r.offer.gpu == "l40s-48gb"]
    assert [r.offer.source_sku for r in rows] == ["gpu-nvidia-l4"]


def test_a_catalog_that_stops_early_is_incomplete(parse, api_with):
    assert not parse(api_with(lambda d: d.update(count=150))).complete


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("instances"),
        lambda d: d["instances"].clear(),
        lambda d: [i.pop("price_hourly") for i in d["instances"]],
        lambda d: [i.update(gpu=None) for i in d["instances"]],
    ],
)
def test_a_changed_catalog_is_refused(change, parse, api_with):
    with pytest.raises(LayoutChanged):
        parse(api_with(change))


@pytest.mark.parametrize("text", ["0", "", "N/A", "NaN"])
def test_no_price_in_the_catalog(text, parse, api_with):
    result = parse(api_with(lambda d: d["instances"][1].update(price_hourly=text)))
    assert not [r for r in result.rows if "4000" in r.offer.instance_type]
    assert [r.reason for r in result.rejections] == ["not_a_price"]


@pytest.mark.parametrize("change", [("/hour", ""), ("$", "")])
def test_a_changed_page_is_refused(change, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(change)
