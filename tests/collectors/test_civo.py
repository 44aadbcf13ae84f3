"""Civo: hourly beside monthly figures, commitments by block, sizes without an on-demand price, units of memory."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def prices(result, name):
    return {r.offer.commitment_days: r.quote.price for r in result.rows if r.offer.instance_type == name}


def test_commitments_stand_beside_the_on_demand_price(parse_page):
    assert prices(parse_page(), "NVIDIA L40S 48GB Small") == {
        0: Decimal("1.29"), 182: Decimal("1.19"), 365: Decimal("1.09"), 730: Decimal("0.99"), 1095: Decimal("0.89")
    }  # fmt: skip


def test_a_size_that_is_only_committed_has_no_on_demand_offer(parse_page):
    assert set(prices(parse_page(), "NVIDIA B200 Extra Large")) == {365, 730, 1095}


def test_the_hidden_monthly_figure_is_not_the_price(parse_page):
    assert max(r.quote.price for r in parse_page().rows) < 40


def test_prices_are_of_the_instance(parse_page):
    row = next(r for r in parse_page().rows if r.offer.instance_type == "NVIDIA H100 SXM Extra Large")
    assert (row.offer.gpu_count, row.quote.price_usd_hour, row.quote.price_usd_gpu_hour) == (8, 23.92, 2.99)


def test_memory_in_terabytes(parse_page):
    assert {r.offer.memory_gib for r in parse_page().rows if "B200" in r.offer.instance_type} == {2560}


def test_the_name_of_a_size_stands_on_either_side_of_its_detail(parse_page):
    detail = '<em class="product-detail">1 x NVIDIA L40S - 48GB</em>'
    result = parse_page((f"{detail} Small", f"Small {detail}"))
    assert prices(result, "NVIDIA L40S 48GB Small") == prices(parse_page(), "NVIDIA L40S 48GB Small") != {}


def test_a_size_without_a_count_is_rejected(parse_page):
    result = parse_page(("8 x NVIDIA B200 - 180GB", "NVIDIA B200"))
    assert [(r.reason, r.value) for r in result.rejections] == [("gpu_count", "NVIDIA B200")]


@pytest.mark.parametrize(
    "change",
    [
        ('id="nvidia-gpus"', 'id="gpus"'),
        ('data-title="On-demand price"', 'data-title="Price"'),
        ('data-title="Commitment price"', 'data-title="Deal"'),
        ('data-option="hourly"', 'data-option="h"'),
        ("product-detail", "detail"),
    ],
)
def test_a_changed_page_is_refused(change, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(change)


@pytest.mark.needs_recordings
def test_recorded_page(parse, recording):
    result = parse(recording("pricing_excerpt.html"))
    assert len(result.rows) == 15
    by_hand = {
        "NVIDIA L40S 48GB Small": [1.29, 1.19, 1.09, 0.99, 0.89],
        "NVIDIA L40S 48GB Medium": [2.58, 2.38, 2.18, 1.98, 1.78],
        "NVIDIA L40S 48GB Large": [5.16, 4.76, 4.36, 3.96, 3.56],
    }
    for name, amounts in by_hand.items():
        assert [float(p) for p in prices(result, name).values()] == amounts
