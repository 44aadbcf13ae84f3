"""fal: the table is found by its headers, footnotes, floors of contracts, model prices."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def prices(result, option="on_demand"):
    return {r.offer.instance_type: r.quote.price for r in result.rows if r.offer.purchase_option == option}


def test_list_prices(parse_page):
    assert prices(parse_page()) == {
        "B300": Decimal("8.50"), "B200": Decimal("6.25"), "H200": Decimal("4.50"), "H100": Decimal("4.50"),
        "RTX PRO 6000": Decimal("2.99"),
    }  # fmt: skip


def test_the_floor_of_contracts_is_listed_without_a_price(parse_page):
    assert set(prices(parse_page(), "reserved").values()) == {None}


def test_columns_go_by_their_headers(parse_page):
    swapped = parse_page((">List Price<", ">?<"), (">As low as<", ">List Price<"), (">?<", ">As low as<"))
    assert prices(swapped)["H100"] == Decimal("1.89")


def test_a_table_without_the_floor_column_is_read(parse_page):
    assert len(parse_page((">As low as<", "><")).rows) == 5


@pytest.mark.parametrize("change", [(">GPU<", ">Chip<"), (">VRAM<", "><"), (">List Price<", ">Price<")])
def test_a_changed_header_is_refused(change, parse_page):
    with pytest.raises(LayoutChanged, match="List Price"):
        parse_page(change)


def test_a_monthly_price_is_not_taken_for_an_hourly_one(parse_page):
    row = next(r for r in parse_page(("$8.50/h", "$6205/month")).rows if r.offer.instance_type == "B300")
    assert (row.quote.price_unit, row.quote.price_usd_hour) == ("month", 8.5)


@pytest.mark.needs_recordings
def test_recorded_page(parse, recording):
    found = prices(parse(recording("pricing_excerpt.html")))
    assert {k: str(v) for k, v in found.items()} == {
        "B300": "8.50", "B200": "6.25", "H200": "4.50", "H100": "4.50", "RTX PRO 6000": "2.99"
    }  # fmt: skip


def test_an_offer_without_a_price_is_in_the_currency_of_its_row(parse_page):
    result = parse_page(("$4.50/h", "€4.50/h"))
    assert {r.quote.currency for r in result.rows if r.offer.instance_type == "H200"} == {"EUR"}
    assert {r.quote.currency for r in result.rows if r.offer.instance_type == "B300"} == {"USD"}
