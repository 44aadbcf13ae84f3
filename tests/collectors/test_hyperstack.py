"""Hyperstack: three tables by heading, names of one card, open terms, announced GPUs, meters per hour."""

import dataclasses
from decimal import Decimal

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.hyperstack import Hyperstack


def page_with(*changes):
    (document,) = fixture_documents("hyperstack")
    text = document.text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return dataclasses.replace(document, body=text.encode())


def parse(*changes):
    return Hyperstack().parse([page_with(*changes)])


def test_blocked_and_empty_pages_are_refused():
    page = page_with()
    with pytest.raises(Blocked):
        Hyperstack().parse([dataclasses.replace(page, body=b"<title>Just a moment...</title>", status=403)])
    for body in (b"", b"<h1>Pricing</h1>", page.body[:150]):
        with pytest.raises(LayoutChanged):
            Hyperstack().parse([dataclasses.replace(page, body=body)])


def prices(result, gpu, option):
    return {
        r.offer.gpu_count: r.quote.price
        for r in result.rows
        if (r.offer.gpu, r.offer.purchase_option) == (gpu, option) and "NVLink" not in r.offer.instance_type
    }


def test_heading_and_header_decide_the_option():
    assert prices(parse(), "rtx-a6000-48gb", "on_demand")[8] == Decimal("0.50")
    assert prices(parse(), "rtx-a6000-48gb", "spot")[8] == Decimal("0.40")
    renamed = parse(("Spot VM Pricing", "On-demand once more"))
    assert {r.reason for r in renamed.rejections} == {"duplicate_key"}


def test_one_card_under_two_names():
    assert prices(parse(), "h100-pcie-80gb", "on_demand")[1] == Decimal("2.50")
    assert prices(parse(), "h100-pcie-80gb", "spot")[1] == Decimal("2.00")


def test_bridged_cards_and_modules_are_nodes_of_eight():
    counts = {r.offer.instance_type: r.offer.gpu_interconnect for r in parse().rows}
    assert counts["NVIDIA H100 NVLink x8"] == "nvlink"
    assert counts["NVIDIA H100 SXM x8"] == "nvlink"
    assert counts["NVIDIA H100 x8"] == "pcie"
    assert "NVIDIA H100 SXM x1" not in counts


def test_a_reservation_without_a_term_has_no_price():
    rows = [r for r in parse().rows if r.offer.purchase_option == "reserved"]
    assert len(rows) == 12
    assert {r.quote.price for r in rows} == {None}
    assert all("term_not_stated" in r.quote.flags for r in rows)


def test_an_announced_gpu_is_not_obtainable():
    row = next(r for r in parse().rows if r.offer.gpu == "b300-sxm-288gb")
    assert (row.quote.availability, row.quote.flags) == ("unavailable", ("announced",))


def test_volumes_and_addresses_per_hour():
    found = {s.kind: (s.price, s.unit) for s in parse().surcharges}
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
def test_a_changed_page_is_refused(changes):
    with pytest.raises(LayoutChanged):
        parse(*changes)


def test_a_price_without_a_unit_is_rejected():
    result = parse(("<th>Pricing Per Hour</th>", "<th>Pricing</th>"))
    assert {r.reason for r in result.rejections} == {"unit_missing"}
    assert not [r for r in result.rows if r.quote.price]
