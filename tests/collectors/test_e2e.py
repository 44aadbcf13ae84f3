"""E2E Networks: two lists in two currencies, commitments per month and per year, tabs, words instead of prices."""

import dataclasses
from decimal import Decimal

import pytest

from collectors.e2e import E2e
from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents


def page_with(*changes):
    (document,) = fixture_documents("e2e")
    text = document.text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return dataclasses.replace(document, body=text.encode())


def parse(*changes):
    return E2e().parse([page_with(*changes)])


def test_the_rupee_list_is_no_conversion():
    rows = [r for r in parse().rows if r.offer.gpu == "l4-24gb" and r.offer.purchase_option == "on_demand"]
    assert {(r.quote.currency, r.quote.price) for r in rows} == {("USD", Decimal("0.57")), ("INR", Decimal(49))}
    assert {(r.offer.region, r.offer.country) for r in rows} == {("india", "IN")}
    assert len({r.offer.offer_id for r in rows}) == 2


def test_a_year_pays_for_the_year_and_a_month_for_the_month():
    rows = {
        r.offer.commitment_days: r.quote for r in parse().rows if r.offer.gpu == "l40s-48gb" and not r.offer.variant
    }
    assert (rows[365].price_unit, rows[365].price_usd_hour) == ("term", pytest.approx(0.75))
    assert (rows[30].price_unit, rows[30].price_usd_hour) == ("month", pytest.approx(626.70 / 730))


def test_columns_go_by_their_headers():
    swapped = parse((">Monthly<", ">?<"), (">Annually<", ">Monthly<"), (">?<", ">Annually<"))
    found = next(r for r in swapped.rows if r.offer.gpu == "l4-24gb" and r.offer.commitment_days == 30)
    assert found.quote.price == Decimal("3766.80")


def test_several_gpus_in_a_tab_are_not_guessed():
    result = parse((">1x<", ">8x<"))
    assert {r.quote.currency for r in result.rows} == {"INR"}
    assert {r.reason for r in result.rejections} == {"scope_unknown"}


def test_a_rupee_price_without_a_unit_is_rejected():
    result = parse(('"unitText": "hour"', '"unitText": ""'))
    assert {r.reason for r in result.rejections} == {"unit_missing"}
    assert {r.quote.currency for r in result.rows} == {"USD"}


@pytest.mark.parametrize("words", ["Contact Sales", "-", "Coming soon", "N/A"])
def test_words_are_no_price(words):
    rows = parse(("$0.57", words)).rows
    assert not [
        r
        for r in rows
        if r.offer.gpu == "l4-24gb" and not r.offer.commitment_days and not r.offer.variant and r.quote.price
    ]


def test_broken_structured_data_costs_only_its_own_list():
    assert {r.quote.currency for r in parse(('"@context"', "@context")).rows} == {"USD"}


@pytest.mark.parametrize(
    "changes",
    [
        [("<th>GPU</th><th>GPU Memory</th>", "<th>Card</th><th>Memory</th>")],
        [("<th>GPU</th>", "<th>Card</th>")],
        [("Hourly", "Price")],
        [("Annually", "Price")],
    ],
)
def test_a_changed_page_is_refused(changes):
    with pytest.raises(LayoutChanged):
        parse(*changes)


def test_blocked_and_empty_pages_are_refused():
    with pytest.raises(Blocked):
        E2e().parse([dataclasses.replace(page_with(), body=b"<title>Just a moment...</title>", status=503)])
    for body in (b"", b"<h1>Pricing</h1>"):
        with pytest.raises(LayoutChanged):
            E2e().parse([dataclasses.replace(page_with(), body=body)])
