"""Crusoe: headings decide between on-demand and spot, form factors from tags, sections, words instead of prices."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def priced(result, option="on_demand"):
    return {
        (r.offer.gpu, r.offer.gpu_count): r.quote.price
        for r in result.rows
        if r.offer.purchase_option == option and r.quote.price
    }


def test_form_factor_tags_part_two_products_of_one_name(parse_page):
    found = priced(parse_page())
    assert found["a100-sxm-80gb", 8] == Decimal("2.30")
    assert found["a100-pcie-80gb", 1] == Decimal("2.00")


def test_the_heading_decides_what_a_column_is(parse_page):
    assert not priced(parse_page(), "spot")
    assert priced(
        parse_page(("On-demand<", "?<"), ("Current spot<", "On-demand<"), ("?<", "Current spot<")), "spot"
    ) == priced(parse_page())


def test_the_inference_section_is_another_product(parse_page):
    assert not {Decimal("5.50"), Decimal("6.00")} & set(priced(parse_page()).values())


def test_nodes_carry_their_wiring_and_single_gpus_none(parse_page):
    by_sku = {r.offer.source_sku: r.offer for r in parse_page().rows}
    node = by_sku["nvidia-h100-80gb-hgx-x8"]
    assert (node.gpu_interconnect, node.network_option, node.rdma) == ("nvlink", "infiniband", True)
    single = by_sku["nvidia-l40s-48gb-x1"]
    assert (single.gpu_interconnect, single.network_option, single.rdma) == ("none", "", None)


def test_a_unit_in_the_cell_goes_before_the_heading(parse_page):
    row = next(
        r for r in parse_page(("$3.45/GPU-hr", "$27.60/hr")).rows if r.offer.gpu == "mi300x-192gb" and r.quote.price
    )
    assert row.quote.price_unit == "hour"
    by_month = parse_page(("$3.45/GPU-hr", "$2518.50/GPU-month")).rows
    monthly = next(r for r in by_month if r.offer.gpu == "mi300x-192gb" and r.offer.purchase_option == "on_demand")
    assert (monthly.quote.price_unit, monthly.quote.price_usd_gpu_hour) == ("month", pytest.approx(3.45))


@pytest.mark.parametrize(
    "change",
    [
        ("GPU instances pricing", "Accelerators"),
        ("On-demand<", "Price<"),
        ("Current spot<", "Deal<"),
        ("pricing_gpu-item", "gpu-item"),
        ('<span class="pricing-rich">$4.29/GPU-hr</span>', ""),
    ],
)
def test_a_changed_page_is_refused(change, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(change)


@pytest.mark.needs_recordings
def test_recorded_page(parse, recording):
    result = parse(recording("pricing_excerpt.html"))
    by_hand = {
        ("h200-sxm-141gb", 8): "4.29", ("h100-sxm-80gb", 8): "3.90", ("a100-sxm-80gb", 8): "2.30",
        ("a100-pcie-80gb", 4): "2.00", ("l40s-48gb", 10): "1.50", ("mi300x-192gb", 8): "3.45",
    }  # fmt: skip
    found = priced(result)
    assert {key: str(found[key]) for key in by_hand} == by_hand
    assert len({r.offer.gpu for r in result.rows}) == 9
