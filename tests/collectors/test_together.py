"""Together: which of three like tables, terms in headers, invalid markup, a hidden twin, dashes."""

import dataclasses
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def prices(result, gpu):
    return {r.offer.commitment_days: r.quote.price for r in result.rows if r.offer.gpu == gpu and r.quote.price}


def test_the_cluster_tables_are_read_and_not_dedicated_inference(parse_page):
    found = prices(parse_page(), "h100-sxm-80gb")
    assert found == {0: Decimal("3.99"), 7: Decimal("3.69"), 31: Decimal("3.45"), 91: Decimal("3.19")}
    assert Decimal("5.49") not in {r.quote.price for r in parse_page().rows}


def test_the_hidden_twin_adds_nothing_and_a_differing_one_is_reported(parse_page, parse, page_with):
    assert not parse_page().rejections
    text = page_with().text()
    twin = text.rindex("$3.99")
    differing = text[:twin] + "$4.99" + text[twin + 5 :]
    result = parse(dataclasses.replace(page_with(), body=differing.encode()))
    assert [r.reason for r in result.rejections] == ["duplicate_key"]


def test_a_cell_over_four_columns_is_on_request_in_each(parse_page):
    rows = [r for r in parse_page().rows if r.offer.gpu == "gb200-186gb"]
    assert {r.offer.commitment_days for r in rows} == {7, 31, 91, 181}
    assert {r.quote.price for r in rows} == {None}


def test_reservations_are_paid_up_front(parse_page):
    assert {r.offer.upfront for r in parse_page().rows if r.offer.purchase_option == "reserved"} == {"all"}


@pytest.mark.parametrize(
    "changes",
    [
        [(">GPU Clusters<", ">Compute<")],
        [("All prices per gpu per hour", ""), (">Hourly<", ">On-demand<")],
        [(">Hourly<", ">Cost<"), (">On-demand<", ">Now<"), ("days", "spans"), (">Reserved<", ">Later<")],
        [(">Hardware", ">Product")],
        [('<th colspan="4">Reserved</th>', "")],
        [('<th rowspan="2">On-demand</th>', "")],
    ],
)
def test_a_changed_page_is_refused(changes, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(*changes)


def test_the_header_states_the_unit(parse_page):
    result = parse_page(("per gpu per hour", "per gpu per day"))
    reserved = [r for r in result.rows if r.offer.commitment_days and r.quote.price]
    assert reserved
    assert {r.quote.price_unit for r in reserved} == {"day"}


@pytest.mark.needs_recordings
def test_recorded_page(parse, recording):
    result = parse(recording("pricing_excerpt.html"))
    found = {r.offer.gpu: (str(r.quote.price), r.quote.price_usd_gpu_hour) for r in result.rows}
    assert found == {
        "b200-sxm-180gb": ("8.19", 8.19), "h100-sxm-80gb": ("3.99", 3.99), "h200-sxm-141gb": ("5.99", 5.99)
    }  # fmt: skip


def test_a_reserved_column_without_a_unit_loses_only_its_cells(parse_page):
    result = parse_page(("All prices per gpu per hour", ""), (">On-demand<", ">On-demand per hour<"))
    assert {r.offer.commitment_days for r in result.rows if r.quote.price} <= {0}
    assert {r.reason for r in result.rejections} >= {"unit_missing"}
