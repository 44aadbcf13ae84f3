"""Row checks: what cannot be true is rejected, what is odd is flagged, nothing is silently changed."""

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal as D

import pytest

from catalog.types import Offer, OfferRow, Quote
from catalog.validate import band_of, bands, check_rows

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def row(price="2.5", *, count=1, option="on_demand", usd=..., **offer_fields):
    offer = Offer(
        provider="p", source_sku=f"sku{count}", instance_type="t", gpu="h100-sxm-80gb", gpu_count=count,
        purchase_option=option, **offer_fields,
    )  # fmt: skip
    amount = None if price is None else D(price)
    hourly = (
        float(amount) if usd is ... and amount is not None and amount.is_finite() else (None if usd is ... else usd)
    )
    per_gpu = None if hourly is None else hourly / count
    return OfferRow(offer, Quote(offer.offer_id, NOW, amount, "USD", price_usd_hour=hourly, price_usd_gpu_hour=per_gpu))


@pytest.mark.parametrize("price", ["0", "-1", "NaN", "Infinity"])
def test_what_is_no_price_is_rejected(price):
    checked = check_rows([row(price)])
    assert not checked.rows
    assert checked.rejections[0].reason == "not_a_price"


def test_no_price_is_kept_as_none():
    assert check_rows([row(None)]).rows[0].quote.price is None


@pytest.mark.parametrize("price", ["379803229.09", "0.0001"])
def test_a_price_out_of_the_band_is_rejected_with_its_value(price):
    checked = check_rows([row(price)])
    assert [r.reason for r in checked.rejections] == ["price_out_of_band"]
    assert checked.rejections[0].field == "price_usd_gpu_hour"


def test_a_price_without_an_exchange_rate_is_kept():
    assert check_rows([row("100", usd=None)]).rows


@pytest.mark.parametrize(
    ("price", "currency", "kept"),
    [("787500", "EUR", False), ("0.0001", "EUR", False), ("2.8", "EUR", True), ("229", "INR", True),
     ("22900000", "INR", False), ("500000", "CLP", True)],
)  # fmt: skip
def test_without_an_exchange_rate_only_what_no_rate_can_explain_is_refused(price, currency, kept):
    foreign = row(price, usd=None)
    foreign = OfferRow(foreign.offer, dataclasses.replace(foreign.quote, currency=currency))
    checked = check_rows([foreign])
    assert bool(checked.rows) is kept
    assert [r.reason for r in checked.rejections] == ([] if kept else ["price_out_of_band"])


def test_spot_is_compared_in_its_own_currency():
    rows = [row("3.0", usd=None), row("3.0", option="spot", usd=None)]
    euros = [OfferRow(r.offer, dataclasses.replace(r.quote, currency="EUR")) for r in rows]
    assert check_rows(euros).rows[1].quote.flags == ("spot_not_discounted",)
    assert check_rows([rows[0], euros[1]]).rows[1].quote.flags == ()


def test_spot_not_below_on_demand_is_flagged():
    on_demand, spot = row("3.0"), row("3.0", option="spot")
    flags = {r.offer.purchase_option: r.quote.flags for r in check_rows([on_demand, spot]).rows}
    assert flags == {"on_demand": (), "spot": ("spot_not_discounted",)}
    assert check_rows([on_demand, row("1.0", option="spot")]).rows[1].quote.flags == ()


def test_eight_gpus_below_half_of_eight_times_one_are_flagged():
    checked = check_rows([row("3.0", count=1), row("10.0", count=8)])
    assert checked.rows[1].quote.flags == ("price_not_monotonic",)
    assert check_rows([row("3.0", count=1), row("22.0", count=8)]).rows[1].quote.flags == ()


def test_zero_gpus_and_negative_memory_are_rejected():
    checked = check_rows([row(count=0, usd=None), row(gpu_memory_gb=-1.0)])
    assert [r.reason for r in checked.rejections] == ["gpu_count", "not_positive"]


@pytest.mark.parametrize(
    ("gpu", "usd_gpu_hour"),
    [
        ("p4-8gb", 0.60),  # Google Cloud's list price, twenty times the market's
        ("p40-24gb", 2.07),  # Azure ND6s
        ("k80-12gb", 0.0375),  # Google Cloud spot
        ("rtx-3090-24gb", 1.5),
    ],
)
def test_a_gpu_of_which_few_prices_are_known_has_a_wide_band(gpu: str, usd_gpu_hour: float):
    band = band_of(gpu)
    assert band.min_usd_gpu_hour <= usd_gpu_hour <= band.max_usd_gpu_hour


@pytest.mark.parametrize("gpu", sorted(set(bands()) - {"*"}))
def test_a_band_is_narrow_enough_to_catch_a_wrong_unit(gpu: str):
    band = band_of(gpu)
    assert 0.005 <= band.min_usd_gpu_hour < band.max_usd_gpu_hour <= 110
    assert band.max_usd_gpu_hour / band.min_usd_gpu_hour < 730 * 10  # some room beyond the hours of a month
