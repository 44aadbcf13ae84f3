"""Exchange rates of the European Central Bank: direction, exactness, and lists that are not whole."""

import dataclasses
from decimal import Decimal

import pytest

from collectors.ecb import Ecb
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents

COLLECTOR = Ecb()


@pytest.fixture
def daily():
    [document] = fixture_documents("ecb")
    return document


def rates(document):
    return {r.currency: r for r in COLLECTOR.parse([document]).rates}


def replaced(document, old, new):
    assert old in document.body
    return dataclasses.replace(document, body=document.body.replace(old, new))


def test_the_request_is_the_fixture():
    assert [r.name for r in COLLECTOR.requests({})] == ["eurofxref-daily"]


def test_rates_are_dollars_per_unit_of_the_day(daily):
    found = rates(daily)
    assert {r.day for r in found.values()} == {"2026-10-06"}
    assert found["EUR"].usd_per_unit == Decimal("1.1269")
    # 1.1269 dollars and 108.6615 rupees per euro: a rupee is a bit more than a cent.
    assert found["INR"].usd_per_unit == Decimal("0.01037074")
    assert found["CHF"].usd_per_unit == Decimal("1.20408163")
    assert found["BRL"].usd_per_unit == Decimal("0.20126449")
    assert "USD" not in found
    assert len(found) == 29


def test_other_quotes_and_attribute_order_are_the_same_list(daily):
    turned = replaced(daily, b"<Cube currency='CHF' rate='0.9359'/>", b'<Cube rate="0.9359" currency="CHF"/>')
    assert rates(turned) == rates(daily)


def test_a_rate_that_is_none_is_left_out(daily):
    for bad in (b"N/A", b"0", b"-1"):
        assert "CHF" not in rates(replaced(daily, b"0.9359", bad))


def test_no_dollar_rate_is_a_changed_list(daily):
    with pytest.raises(LayoutChanged, match="USD"):
        COLLECTOR.parse([replaced(daily, b"'USD'", b"'XXX'")])


@pytest.mark.parametrize(
    ("old", "new"), [(b"time=", b"date="), (b"</gesmes:Envelope>", b""), (b"<gesmes:subject>", b"<html>")]
)
def test_another_shape_is_a_changed_list(daily, old, new):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([replaced(daily, old, new)])


def test_an_empty_or_html_answer_is_a_changed_list(daily):
    for body in (b"", b"<!doctype html><html><body>Maintenance</body></html>"):
        with pytest.raises(LayoutChanged):
            COLLECTOR.parse([dataclasses.replace(daily, body=body)])
