"""Koyeb: split prices, totals of memory, the keyed catalog, plan fees, traffic."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.koyeb import Koyeb

DOCUMENTS = {d.name: d for d in fixture_documents("koyeb")}


def parse(*documents):
    return Koyeb().parse(documents)


def api_with(change):
    data = json.loads(DOCUMENTS["instances-0"].body)
    change(data)
    return dataclasses.replace(DOCUMENTS["instances-0"], body=json.dumps(data).encode())


def page_with(old, new):
    assert old in DOCUMENTS["pricing"].text()
    return dataclasses.replace(DOCUMENTS["pricing"], body=DOCUMENTS["pricing"].text().replace(old, new).encode())


def test_a_price_split_over_elements_and_an_instance_of_eight():
    rows = {r.offer.instance_type: r for r in parse(DOCUMENTS["pricing"]).rows}
    eight = rows["8x H100"]
    assert (eight.quote.price, eight.quote.price_usd_gpu_hour, eight.offer.gpu_memory_gb) == (Decimal("20.00"), 2.5, 80)
    assert (eight.offer.vcpu_count, eight.offer.memory_gib) == (120, 1440)
    assert rows["RTX-A6000 x1"].quote.price == Decimal("0.75")


def test_processors_and_plans_are_no_offers_or_meters():
    result = parse(DOCUMENTS["pricing"])
    assert len(result.rows) == 5
    assert {(s.kind, s.price, s.unit) for s in result.surcharges} == {("egress", Decimal("0.02"), "gb")}


def test_regions_and_states_of_the_catalog():
    def change(data):
        data["instances"][2].update(regions=["fra", "was"], status="coming_soon")

    rows = [r for r in parse(api_with(change)).rows if r.offer.gpu == "l4-24gb"]
    assert {(r.offer.region, r.offer.country) for r in rows} == {("fra", "DE"), ("was", "US")}
    assert {r.quote.availability for r in rows} == {"unavailable"}


def test_memory_given_as_a_total_is_divided():
    def change(data):
        data["instances"][2].update(gpu={"name": "L4", "brand": "NVIDIA", "memory": "96GB", "count": 4})

    row = next(r for r in parse(api_with(change)).rows if r.offer.gpu_count == 4)
    assert (row.offer.gpu, row.offer.gpu_memory_gb, row.quote.flags) == ("l4-24gb", 24, ())


def test_a_type_of_the_catalog_is_not_listed_again_from_the_page():
    def change(data):
        data["instances"][2].update(gpu={"name": "L40S", "brand": "NVIDIA", "memory": "48GB", "count": 1})

    rows = [r for r in parse(DOCUMENTS["pricing"], api_with(change)).rows if r.offer.gpu == "l40s-48gb"]
    assert [r.offer.source_sku for r in rows] == ["gpu-nvidia-l4"]


def test_a_catalog_that_stops_early_is_incomplete():
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
def test_a_changed_catalog_is_refused(change):
    with pytest.raises(LayoutChanged):
        parse(api_with(change))


@pytest.mark.parametrize("text", ["0", "", "N/A", "NaN"])
def test_no_price_in_the_catalog(text):
    result = parse(api_with(lambda d: d["instances"][1].update(price_hourly=text)))
    assert not [r for r in result.rows if "4000" in r.offer.instance_type]
    assert [r.reason for r in result.rejections] == ["not_a_price"]


def test_changed_and_blocked_pages_are_refused():
    for page in (page_with("/hour", ""), page_with("$", "")):
        with pytest.raises(LayoutChanged):
            parse(page)
    with pytest.raises(Blocked):
        parse(dataclasses.replace(DOCUMENTS["pricing"], body=b"<title>Just a moment...</title>", status=403))
