"""Prices as pages write them, exact amounts, and what they come to per hour."""

import math
from decimal import Decimal as D

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.units import decimal_of, gpu_price_hour, hours_in, instance_price_hour, number_in, read_price, unit_in


@pytest.mark.parametrize(
    ("text", "amount", "currency", "unit", "scope"),
    [
        ("$10.00", "10.00", "USD", None, None),
        ("$0.00122 /s", "0.00122", "USD", "second", None),
        ("0,75 EUR/h ex. VAT", "0.75", "EUR", "hour", None),
        ("1.50 EUR/hour ex. VAT", "1.50", "EUR", "hour", None),
        ("1.234,56 EUR/Monat", "1234.56", "EUR", "month", None),
        ("EUR 2,488.00 / month", "2488.00", "EUR", "month", None),
        ("12 345,67 €/month", "12345.67", "EUR", "month", None),
        ("$$52.80", "52.80", "USD", None, None),
        ("$2 .0000/ 1 hour", "2.0000", "USD", "hour", None),
        ("$88.490000119 / 1 hour", "88.490000119", "USD", "hour", None),
        ("₹351 / GPU-hr", "351", "INR", "hour", "gpu"),
        ("$3.40 /GPU/hour", "3.40", "USD", "hour", "gpu"),
        ("$2.50/hr per GPU", "2.50", "USD", "hour", "gpu"),
        ("$0.10833 per minute", "0.10833", "USD", "minute", None),
        ("$1,234", "1234", "USD", None, None),
        ("2.99", "2.99", None, None, None),
    ],
)
def test_price_texts(text, amount, currency, unit, scope):
    price = read_price(text)
    assert (price.amount, price.currency, price.unit, price.scope) == (D(amount), currency, unit, scope)
    assert not price.lower_bound


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        "N/A",
        "-",
        "—",
        "Contact us",
        "Contact sales",
        "Sold out",
        "coming soon",
        "$0",
        "0.00",
        "$-1.50",
        "free",
    ],
)
def test_not_a_price(text):
    assert read_price(text) is None


@pytest.mark.parametrize(
    "text",
    ["Available in 3 weeks", "5 left", "Q2 2027", "Min. 8 GPUs", "24/7 support", "3 month minimum", "See note 2",
     "Waitlist (120)", "Back on 12 Dec", "Launching 2027", "$--", "USD —", "ABC 4/h"],
)  # fmt: skip
def test_a_number_among_other_words_is_no_price(text):
    assert read_price(text) is None


@pytest.mark.parametrize(
    ("text", "amount"),
    [("8 GPUs for $24/h", "24"), ("$2.99 2", "2.99"), ("$2.99[1]", "2.99"), ("$2.99 (1)", "2.99"),
     ("$3.99 100", "3.99"), ("1.10/GPU-hr", "1.10"), ("from 2.49 per GPU per hour", "2.49"),
     ("CHF 1'234.50 / month", "1234.50"), ("2.60/hr USD", "2.60"), ("EUR / hour: 2.60", "2.60"),
     ("USD2.49/hr", "2.49"), ("Rs.219/hr", "219"), ("$.79/hr", "0.79"), ("H100 80 $2.49/hr", "2.49"),
     ("2.49 per chip hour", "2.49"), ("2.49 per machine per hour", "2.49"), ("$2.49/hr ($1,817/mo)", "2.49")],
)  # fmt: skip
def test_the_number_beside_the_currency_is_the_price(text, amount):
    found = read_price(text)
    assert found is not None
    assert found.amount == D(amount)


def test_from_is_a_lower_bound():
    assert read_price("from $2.49").lower_bound
    assert read_price("Starting at $2.49/hr").lower_bound
    assert read_price("As low as $1.10").lower_bound


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "NaN", "Infinity", None, True, "", "abc", "N/A*"])
def test_decimal_of_refuses_what_is_no_number(value):
    assert decimal_of(value) is None


@pytest.mark.parametrize(
    ("value", "exact"), [("1.890000", "1.890000"), (6.6198, "6.6198"), (60, "60"), (D("1E-8"), "1E-8")]
)
def test_decimal_of_is_exact(value, exact):
    assert decimal_of(value) == D(exact)


@given(st.decimals(min_value="0.0001", max_value="99999", places=4))
@settings(max_examples=80, deadline=None)
def test_a_number_reads_back_in_both_ways_of_writing(amount):
    english = f"{amount:,.4f}"
    continental = english.replace(",", " ").replace(".", ",")
    assert number_in(f"${english} / hour") == amount
    assert number_in(f"{continental} EUR") == amount


@pytest.mark.parametrize(
    ("price", "unit", "scope", "count", "days", "hourly"),
    [
        ("6.6198", "hour", "instance", 2, 0, "6.6198"),
        ("3.49", "hour", "gpu", 8, 0, "27.92"),
        ("0.11033", "minute", "instance", 2, 0, "6.6198"),
        ("0.001097", "second", "gpu", 1, 0, "3.9492"),
        ("2.4", "day", "instance", 1, 0, "0.1"),
        ("730", "month", "instance", 1, 0, "1"),
        ("8760", "term", "instance", 1, 365, "1"),
        ("26280", "term", "gpu", 4, 1095, "4"),
    ],
)
def test_hourly(price, unit, scope, count, days, hourly):
    assert instance_price_hour(D(price), unit, scope, count, days).quantize(D("0.0000001")) == D(hourly)


def test_a_term_needs_a_commitment():
    with pytest.raises(ValueError, match="commitment_days"):
        hours_in("term", 0)


def test_price_per_whole_gpu_of_a_slice():
    assert math.isclose(gpu_price_hour(D("0.454"), 1, D("0.16667")), 2.72394, rel_tol=1e-5)
    assert gpu_price_hour(D(1), 0, D(1)) is None


def test_of_two_prices_side_by_side_none_is_taken_and_a_range_is_a_lower_bound():
    for text in ("$3.99 $2.99/h", "$3.99/h $2.99/h", "$3.99 per GPU $2.99 per GPU", "3,99 € 2,99 €"):
        assert read_price(text) is None
    month_beside = read_price("$2.99/h $2,182/mo")
    assert month_beside is not None
    assert (month_beside.amount, month_beside.unit) == (D("2.99"), "hour")
    low = read_price("$2.99 – $3.49/h")
    assert low is not None
    assert (low.amount, low.unit, low.lower_bound) == (D("2.99"), "hour", True)
    exact = read_price("$2.99/h, 1-year")
    assert exact is not None
    assert not exact.lower_bound


@pytest.mark.parametrize(
    ("text", "currency"),
    [("R$ 12,50/h", "BRL"), ("CA$3.99/hr", "CAD"), ("A$4.10 per hour", "AUD"), ("US$2.99/h", "USD"), ("$2.99/h", "USD"),
     ("HK$20/h", "HKD"), ("from $2.99/h", "USD")],
)  # fmt: skip
def test_other_dollars_are_not_us_dollars(text, currency):
    found = read_price(text)
    assert found is not None
    assert found.currency == currency


@pytest.mark.parametrize(
    ("text", "currency"),
    [("Rs. 249/hr", "INR"), ("CN¥26.60/h", "CNY"), ("26.60元/h", "CNY"), ("RMB 26.6 per hour", "CNY"),
     ("25,00 SEK/h", "SEK"), ("9,99 zł/h", "PLN"), ("¥450/h", "JPY"), ("₩4,200/h", "KRW"),
     ("0,75 Euro/h", "EUR"), ("Euro 0,75 pro Stunde", "EUR")],
)  # fmt: skip
def test_currencies_by_sign_code_and_word(text, currency):
    found = read_price(text)
    assert found is not None
    assert found.currency == currency


@pytest.mark.parametrize(
    ("text", "unit"),
    [("$1,800/H100/mo", "month"), ("$60 per H100 day", "day"), ("$0.50/M60/hr", "hour"), ("$2.49/MI300X-hr", "hour"),
     ("$2.49/hr per H100", "hour")],
)  # fmt: skip
def test_no_letter_of_a_gpus_name_is_a_unit(text, unit):
    found = read_price(text)
    assert found is not None
    assert (found.unit, found.scope) == (unit, "gpu")


@pytest.mark.parametrize(
    ("text", "unit"),
    [("$2.49/hr1", "hour"), ("$2.49/h2", "hour"), ("$2.49/hour¹", "hour"), ("$1,800/mo3", "month"),
     ("$2.49 per hour2", "hour")],
)  # fmt: skip
def test_a_footnote_behind_a_unit_changes_nothing(text, unit):
    found = read_price(text)
    assert found is not None
    assert (found.unit, found.scope, found.other_measure) == (unit, None, None)


@pytest.mark.parametrize(
    ("text", "unit"), [("Hourly", "hour"), ("Monthly price", "month"), ("$2 /month, billed hourly", "month")]
)
def test_units_as_adverbs(text, unit):
    assert unit_in(text) == unit


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("$3.90/GPU-hr", None),
        ("$2 .0000/ 1 hour", None),
        ("$3.90 per accelerator hour", None),
        ("$2.49 per H100 hour", None),
        ("$2.49/MI300X-hr", None),
        ("0,75 EUR/h ex. VAT", None),
        ("$1.99/hr (8 GPUs per node)", None),
        ("3,90 €/GPU/Std.", None),
        ("3,90 €/GPUh", None),
        ("$0.80/L4/hr", None),
        ("$2.49/1x H100/hr", None),
        ("$2.49/hr billed annually", None),
        ("$2.49/hr - on demand", None),
        ("$2.49/GPU-hr *billed per minute", None),
        ("$1.99/GPU/hr for 8 GPUs", None),
        ("$24/hr for 8 GPUs", "8"),
        ("$24.00/hr (8x H100 SXM)", "8"),
        ("8x NVIDIA H100: $24/hr", "8"),
        ("$250 weekly", "weekly"),
        ("$250 (per week)", "week"),
        ("$31.20/node-hr", "node"),
        ("$31.20 per node per hour", "node"),
        ("$24.00 per instance hour", "instance"),
        ("$31.20/8 GPUs/hr", "8"),
        ("$31.20 per 8xGPU hour", "8"),
        ("$650/wk", "wk"),
        ("$26,280 / year", "year"),
        ("$0.39 per 10 min", "10"),
        ("$0.10/GB/month", "gb"),
    ],
)
def test_what_else_a_price_is_for(text, measure):
    price = read_price(text)
    assert price is not None
    assert price.other_measure == measure
