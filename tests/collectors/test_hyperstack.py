"""Hyperstack: three tables by heading, names of one card, open terms, announced GPUs, meters per hour."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def prices(result, gpu, option):
    return {
        r.offer.gpu_count: r.quote.price
        for r in result.rows
        if (r.offer.gpu, r.offer.purchase_option) == (gpu, option) and "NVLink" not in r.offer.instance_type
    }


def test_heading_and_header_decide_the_option(parse_page):
    assert prices(parse_page(), "rtx-a6000-48gb", "on_demand")[8] == Decimal("0.50")
    assert prices(parse_page(), "rtx-a6000-48gb", "spot")[8] == Decimal("0.40")
    renamed = parse_page(("Spot VM Pricing", "On-demand once more"))
    assert {r.reason for r in renamed.rejections} == {"duplicate_key"}


def test_one_card_under_two_names(parse_page):
    assert prices(parse_page(), "h100-pcie-80gb", "on_demand")[1] == Decimal("2.50")
    assert prices(parse_page(), "h100-pcie-80gb", "spot")[1] == Decimal("2.00")


def test_bridged_cards_and_modules_are_nodes_of_eight(parse_page):
    counts = {r.offer.instance_type: r.offer.gpu_interconnect for r in parse_page().rows}
    assert counts["NVIDIA H100 NVLink x8"] == "nvlink"
    assert counts["NVIDIA H100 SXM x8"] == "nvlink"
    assert counts["NVIDIA H100 x8"] == "pcie"
    assert "NVIDIA H100 SXM x1" not in counts


def test_a_reservation_without_a_term_has_no_price(parse_page):
    rows = [r for r in parse_page().rows if r.offer.purchase_option == "reserved"]
    assert len(rows) == 12
    assert {r.quote.price for r in rows} == {None}
    assert all("term_not_stated" in r.quote.flags for r in rows)


def test_an_announced_gpu_is_not_obtainable(parse_page):
    row = next(r for r in parse_page().rows if r.offer.gpu == "b300-sxm-288gb")
    assert (row.quote.availability, row.quote.flags) == ("unavailable", ("announced",))


def test_volumes_and_addresses_per_hour(parse_page):
    found = {s.kind: (s.price, s.unit) for s in parse_page().surcharges}
    assert found["block_storage"] == (Decimal("0.000096774") * 730, "gb_month")
    assert found["public_ipv4"] == (Decimal("0.00672043"), "hour")
    assert found["egress"] == (0, "gb")


@pytest.mark.parametrize(
    "changes",
    [
        [("<th>GPU</th>", "<th>Card</th>")],
        [("<th>Pricing Per Hour</th>", "<th>Rate</th>"), ("<th>Starting from (per hour)</th>", "<th>Rate</th>")],
        [("On-Demand GPU Pricing", "Pricing")],
    ],
)
def test_a_changed_page_is_refused(changes, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(*changes)


def test_a_price_without_a_unit_is_rejected(parse_page):
    result = parse_page(("<th>Pricing Per Hour</th>", "<th>Pricing</th>"))
    assert {r.reason for r in result.rejections} == {"unit_missing"}
    assert not [r for r in result.rows if r.quote.price]
