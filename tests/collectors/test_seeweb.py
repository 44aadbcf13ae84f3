"""Seeweb: text numbers, plans that are active but nowhere, processor plans, sizes from the page's words, euros."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def test_sizes_of_the_page_cost_a_multiple(parse_page):
    rows = parse_page().rows
    assert {r.offer.gpu_count: r.quote.price for r in rows} == dict.fromkeys((1, 2, 4, 8), Decimal("2.60"))
    assert {(r.quote.currency, r.quote.price_scope, r.quote.price_usd_hour) for r in rows} == {("EUR", "gpu", None)}


def test_the_hourly_figure_is_read_and_not_the_monthly_one(parse_page):
    rows = parse_page(("<div>Hourly Cost", "<div>Monthly cost <b>1,898.00 EUR</b></div><div>Hourly Cost")).rows
    assert {r.quote.price for r in rows} == {Decimal("2.60")}


def test_the_continental_way_of_writing(parse_page):
    assert {r.quote.price for r in parse_page(("2.60 EUR", "€ 2,60")).rows} == {Decimal("2.60")}


def test_active_plans_without_a_region_cannot_be_had(parse, documents):
    rows = {r.offer.instance_type: r for r in parse(documents["plans"]).rows}
    assert rows["ECS2GPU3"].quote.availability == "unavailable"
    assert rows["ECS1GPU7"].quote.availability == "unknown"
    assert rows["ECS3GPU7"].offer.memory_gib == 128
    assert "ECS8" not in rows


def test_a_plan_of_the_api_is_not_listed_again_from_the_page(parse, page_with, api_with):
    api = api_with(lambda d: d["plans"][-1].update(gpu_label="H200", gpu="1"))
    rows = parse(page_with(), api).rows
    assert {r.offer.gpu_count for r in rows if r.offer.instance_type.startswith("NVIDIA")} == {2, 4, 8}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["plans"].clear(),
        lambda d: [x.update(gpu="0") for x in d["plans"]],
        lambda d: [x.pop("hourly_price") for x in d["plans"]],
        lambda d: [x.pop("gpu") for x in d["plans"]],
    ],
)
def test_a_changed_api_is_refused(change, parse, api_with):
    with pytest.raises(LayoutChanged):
        parse(api_with(change))


@pytest.mark.parametrize("change", [("Hourly", "Daily"), ("NVIDIA H200", "SERVER")])
def test_a_changed_page_is_refused(change, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(change)


@pytest.mark.needs_recordings
def test_recorded_plans(parse, recording):
    rows = parse(recording("plans.json")).rows
    assert [
        (r.offer.instance_type, r.offer.region, r.offer.gpu, r.offer.gpu_count, float(r.quote.price)) for r in rows
    ] == [
        ("ECS1GPU7", "it-fr2", "l40s-48gb", 1, 0.85),
        ("ECS1GPU7", "it-mi2", "l40s-48gb", 1, 0.85),
        ("ECS2GPU3", "it-fr2", "a100", 2, 1.98),
        ("ECS1GPU9", "it-fr2", "mi300x-192gb", 1, 1.6),
    ]
