"""Latitude.sh: one payload of page and API, markets without a price, and terms that are read, never derived."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.latitude import Latitude
from collectors.readers import flight_text, json_after, read_html

COLLECTOR = Latitude()


@pytest.fixture
def page(page_with):
    return page_with()


def plans_of(page):
    text = flight_text(read_html(page))
    return json.loads(json.dumps(json_after(text, text.index("plansData"))["servers"], default=float))


def answer(page, change=lambda plans: None):
    """The same plans as the API answers them, changed."""
    plans = plans_of(page)
    change(plans)
    body = json.dumps({"data": plans, "meta": {}}).encode()
    return dataclasses.replace(page, url="https://api.latitude.sh/plans?filter[gpu]=true", body=body)


def attributes(plans, slug):
    return next(p["attributes"] for p in plans if p["attributes"]["slug"] == slug)


def market(plans, slug, name):
    return next(r for r in attributes(plans, slug)["regions"] if r["name"] == name)


def gpu(plans, slug):
    return attributes(plans, slug)["specs"]["gpu"]


def rows(*documents):
    return {(r.offer.source_sku, r.offer.region, r.offer.commitment_days): r for r in COLLECTOR.parse(documents).rows}


def test_page_and_api_give_the_same_offers(page):
    ours, theirs = rows(page), rows(answer(page))
    assert ours.keys() == theirs.keys()
    assert {k: r.quote.price for k, r in ours.items()} == {k: r.quote.price for k, r in theirs.items()}


def test_each_term_is_read_and_never_derived(page):
    found = rows(page)
    hour, month, year = (found["g3-h100-small", "United States", days] for days in (0, 30, 365))
    assert (hour.quote.price, month.quote.price, year.quote.price) == (Decimal("3.37"), 1230, 10332)
    assert (hour.quote.price_unit, month.quote.price_unit, year.quote.price_unit) == ("hour", "month", "term")
    assert year.quote.price_usd_hour == pytest.approx(10332 / 8760)


def test_prices_are_of_the_server(page):
    row = rows(page)["g4-rtx6kpro-large", "Australia", 0]
    assert (row.quote.price_usd_hour, row.quote.price_usd_gpu_hour, row.offer.country) == (66, 8.25, "AU")
    assert (row.offer.local_storage_gb, row.offer.network_gbps) == (15200, 200)


def test_a_market_without_a_price_is_unpriced_and_not_zero(page):
    result = COLLECTOR.parse([page])
    [row] = [r for r in result.rows if r.offer.region == "United Kingdom"]
    assert (row.quote.price, row.quote.price_usd_hour, row.quote.availability) == (None, None, "unavailable")
    assert row.offer.country == "GB"
    assert not [r for r in result.rows if r.quote.price is not None and r.quote.price <= 0]


def test_another_currency_stands_in_only_where_dollars_are_missing(page):
    def change(plans):
        market(plans, "g4-rtx6kpro-large", "Japan")["pricing"] = {
            "USD": {"hour": None, "month": None, "year": None},
            "BRL": {"hour": 260, "month": 94900, "year": None},
        }

    found = rows(answer(page, change))
    row = found["g4-rtx6kpro-large", "Japan", 0]
    assert (row.quote.price, row.quote.currency) == (Decimal(260), "BRL")
    assert ("g4-rtx6kpro-large", "Japan", 365) not in found
    assert {r.quote.currency for k, r in found.items() if k[1] == "United States"} == {"USD"}


def test_stock_level_and_places_in_stock(page):
    def change(plans):
        market(plans, "g4-rtx6kpro-large", "Australia").update(stock_level="high")
        market(plans, "g4-rtx6kpro-large", "Japan").update(stock_level="low", locations={"in_stock": []})
        market(plans, "g4-rtx6kpro-large", "Netherlands").update(stock_level="new word", locations={})

    found = rows(answer(page, change))
    states = {region: r.quote.availability for (slug, region, days), r in found.items() if slug[:2] == "g4"}
    assert states == {
        "United States": "limited",
        "Australia": "available",
        "Japan": "unavailable",
        "United Kingdom": "unavailable",
        "Netherlands": "unknown",
    }


def test_cpu_plans_are_left_out_and_a_stated_interconnect_kept(page):
    assert {slug for slug, _, _ in rows(page)} == {"g4-rtx6kpro-large", "g3-h100-small"}
    linked = answer(page, lambda p: gpu(p, "g4-rtx6kpro-large").update(interconnect="NVLink"))
    assert rows(linked)["g4-rtx6kpro-large", "Japan", 0].offer.gpu_interconnect == "nvlink"


def test_an_unnamed_gpu_costs_its_own_rows(page):
    result = COLLECTOR.parse([answer(page, lambda p: gpu(p, "g3-h100-small").update(type=""))])
    assert "gpu_unnamed" in {r.reason for r in result.rejections}
    assert {r.offer.source_sku for r in result.rows} == {"g4-rtx6kpro-large"}


@pytest.mark.parametrize("key", [b"plansData", b"pricing", b"regions", b"specs", b"slug", b"servers"])
def test_a_renamed_key_is_a_changed_page(page, key):
    body = page.body.replace(b'\\"' + key + b'\\"', b'\\"renamed\\"')
    assert body != page.body
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(page, body=body)])


def test_emptied_cut_and_gpu_less_lists_are_changed_pages(page):
    for change in (lambda p: p.clear(), lambda p: [x["attributes"]["specs"].update(gpu={}) for x in p]):
        with pytest.raises(LayoutChanged):
            COLLECTOR.parse([answer(page, change)])
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(page, body=page.body[: len(page.body) // 2])])


@pytest.mark.needs_recordings
def test_recorded_page(recording, recordings):
    found = rows(recording("pricing_flight_excerpt.html"))
    raw = json.loads((recordings / "plans_decoded.json").read_bytes())["plansData"]["servers"]
    compared = 0
    for plan in (p["attributes"] for p in raw if p["attributes"]["specs"]["gpu"]):
        for region in plan["regions"]:
            for key, days in (("hour", 0), ("month", 30), ("year", 365)):
                price = region["pricing"]["USD"][key]
                if price is not None:
                    assert float(found[plan["slug"], region["name"], days].quote.price) == price
                    compared += 1
    assert compared == 15
    assert len(found) == 16
    assert found["g4-rtx6kpro-large", "United Kingdom", 0].quote.price is None
    assert found["g4-rtx6kpro-large", "Japan", 365].quote.price == 159432


def test_a_country_by_another_of_its_names(page):
    def renamed(plans):
        for plan in plans:
            for market in plan["attributes"]["regions"]:
                market["name"] = {"United States": "USA", "United Kingdom": "Great Britain"}.get(
                    market["name"], market["name"]
                )

    assert "US" in {r.offer.country for r in COLLECTOR.parse([answer(page, renamed)]).rows if r.offer.region == "USA"}
    assert None not in {r.offer.country for r in COLLECTOR.parse([answer(page, renamed)]).rows}
