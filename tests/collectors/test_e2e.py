"""E2E Networks: two lists in two currencies, commitments per month and per year, tabs, words instead of prices."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def test_the_rupee_list_is_no_conversion(parse_page):
    rows = [r for r in parse_page().rows if r.offer.gpu == "l4-24gb" and r.offer.purchase_option == "on_demand"]
    assert {(r.quote.currency, r.quote.price) for r in rows} == {("USD", Decimal("0.57")), ("INR", Decimal(49))}
    assert {(r.offer.region, r.offer.country) for r in rows} == {("india", "IN")}
    assert len({r.offer.offer_id for r in rows}) == 2


def test_a_year_pays_for_the_year_and_a_month_for_the_month(parse_page):
    rows = {
        r.offer.commitment_days: r.quote
        for r in parse_page().rows
        if r.offer.gpu == "l40s-48gb" and not r.offer.variant
    }
    assert (rows[365].price_unit, rows[365].price_usd_hour) == ("term", pytest.approx(0.75))
    assert (rows[30].price_unit, rows[30].price_usd_hour) == ("month", pytest.approx(626.70 / 730))


def test_columns_go_by_their_headers(parse_page):
    swapped = parse_page((">Monthly<", ">?<"), (">Annually<", ">Monthly<"), (">?<", ">Annually<"))
    found = next(r for r in swapped.rows if r.offer.gpu == "l4-24gb" and r.offer.commitment_days == 30)
    assert found.quote.price == Decimal("3766.80")


def test_several_gpus_in_a_tab_are_not_guessed(parse_page):
    result = parse_page((">1x<", ">8x<"))
    assert {r.quote.currency for r in result.rows} == {"INR"}
    assert {r.reason for r in result.rejections} == {"scope_unknown"}


def test_a_rupee_price_without_a_unit_is_rejected(parse_page):
    result = parse_page(('"unitText": "hour"', '"unitText": ""'))
    assert {r.reason for r in result.rejections} == {"unit_missing"}
    assert {r.quote.currency for r in result.rows} == {"USD"}


@pytest.mark.parametrize("words", ["Contact Sales", "-", "Coming soon", "N/A"])
def test_words_are_no_price(words, parse_page):
    rows = parse_page(("$0.57", words)).rows
    assert not [
        r
        for r in rows
        if r.offer.gpu == "l4-24gb" and not r.offer.commitment_days and not r.offer.variant and r.quote.price
    ]


def test_broken_structured_data_costs_only_its_own_list(parse_page):
    assert {r.quote.currency for r in parse_page(('"@context"', "@context")).rows} == {"USD"}


@pytest.mark.parametrize(
    "changes",
    [
        [("<th>GPU</th><th>GPU Memory</th>", "<th>Card</th><th>Memory</th>")],
        [("<th>GPU</th>", "<th>Card</th>")],
        [("Hourly", "Price")],
        [("Annually", "Price")],
    ],
)
def test_a_changed_page_is_refused(changes, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(*changes)
