"""fal: the table is found by its headers, footnotes, floors of contracts, model prices."""

import dataclasses
from decimal import Decimal
from pathlib import Path

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.fal import Fal
from collectors.fixtures import fixture_documents, read_recorded

RECORDING = Path(__file__).resolve().parents[2].parent / "shared" / "recordings" / "fal" / "pricing_excerpt.html"


def page_with(*changes):
    (document,) = fixture_documents("fal")
    text = document.text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return dataclasses.replace(document, body=text.encode())


def parse(*changes):
    return Fal().parse([page_with(*changes)])


def test_blocked_and_empty_pages_are_refused():
    page = page_with()
    with pytest.raises(Blocked):
        Fal().parse([dataclasses.replace(page, body=b"<title>Just a moment...</title>", status=403)])
    for body in (b"", b"<h1>Pricing</h1>", page.body[:150]):
        with pytest.raises(LayoutChanged):
            Fal().parse([dataclasses.replace(page, body=body)])


def prices(result, option="on_demand"):
    return {r.offer.instance_type: r.quote.price for r in result.rows if r.offer.purchase_option == option}


def test_list_prices():
    assert prices(parse()) == {
        "B300": Decimal("8.50"), "B200": Decimal("6.25"), "H200": Decimal("4.50"), "H100": Decimal("4.50"),
        "RTX PRO 6000": Decimal("2.99"),
    }  # fmt: skip


def test_the_floor_of_contracts_is_listed_without_a_price():
    assert set(prices(parse(), "reserved").values()) == {None}


def test_columns_go_by_their_headers():
    swapped = parse((">List Price<", ">?<"), (">As low as<", ">List Price<"), (">?<", ">As low as<"))
    assert prices(swapped)["H100"] == Decimal("1.89")


def test_a_table_without_the_floor_column_is_read():
    assert len(parse((">As low as<", "><")).rows) == 5


@pytest.mark.parametrize("change", [(">GPU<", ">Chip<"), (">VRAM<", "><"), (">List Price<", ">Price<")])
def test_a_changed_header_is_refused(change):
    with pytest.raises(LayoutChanged, match="List Price"):
        parse(change)


def test_a_monthly_price_is_not_taken_for_an_hourly_one():
    row = next(r for r in parse(("$8.50/h", "$6205/month")).rows if r.offer.instance_type == "B300")
    assert (row.quote.price_unit, row.quote.price_usd_hour) == ("month", 8.5)


@pytest.mark.needs_recordings
def test_recorded_page():
    if not RECORDING.is_file():
        pytest.skip("recordings are not here")
    found = prices(Fal().parse([read_recorded(RECORDING, "fal")]))
    assert {k: str(v) for k, v in found.items()} == {
        "B300": "8.50", "B200": "6.25", "H200": "4.50", "H100": "4.50", "RTX PRO 6000": "2.99"
    }  # fmt: skip
