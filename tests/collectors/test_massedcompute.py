"""Massed Compute: rows of a streamed payload, each there twice, with doubled dollar signs and references."""

import dataclasses
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.massedcompute import MassedCompute

COLLECTOR = MassedCompute()


@pytest.fixture
def page(page_with):
    return page_with()


def replaced(page, old, new, count=-1):
    old, new = (text.replace('"', '\\"').encode() for text in (old, new))
    assert old in page.body
    return dataclasses.replace(page, body=page.body.replace(old, new, count))


def rows(document):
    return {r.offer.source_sku: r for r in COLLECTOR.parse([document]).rows}


def test_each_row_counts_once(page):
    result = COLLECTOR.parse([page])
    assert len(result.rows) == 8
    assert not result.rejections


def test_the_price_is_of_the_machine_and_its_dollar_sign_single(page):
    row = rows(page)["B300 SXM6-x8"]
    assert (row.quote.price, row.quote.price_scope, row.quote.currency) == (Decimal("52.80"), "instance", "USD")
    assert row.quote.price_usd_gpu_hour == pytest.approx(6.6)


def test_the_nvlink_twin_is_another_offer(page):
    found = rows(page)
    assert found["H200 NVL (141GB) NVLink-x4"].offer.gpu_interconnect == "nvlink"
    assert found["H200 NVL (141GB)-x1"].offer.gpu_interconnect == "none"
    assert {r.offer.gpu for key, r in found.items() if key.startswith("H200")} == {"h200-nvl-141gb"}


def test_cells_that_are_not_part_of_the_page_stay_empty(page):
    offer = rows(page)["H100 (80GB)-x1"].offer
    assert (offer.vcpu_count, offer.memory_gib, offer.local_storage_gb) == (None, None, None)


def test_references_that_are_part_of_the_page_are_followed(page):
    body = page.body.replace(b'"1a:[', b'"4a:\\"20\\"\\n4b:\\"128 GB\\"\\n4c:[\\"1250\\"]\\n1a:[')
    assert body != page.body
    offer = rows(dataclasses.replace(page, body=body))["H100 (80GB)-x1"].offer
    assert (offer.vcpu_count, offer.memory_gib, offer.local_storage_gb) == (20, 128, 1250)


def test_the_count_beside_the_price_may_stand_first(page):
    rate = '["$","em","rate",{"children":["$$52.80",["$","sub","unit",{"children":"/hr"}]]}]'
    count = '["$","em","gpus",{"children":["×",8]}]'
    first = replaced(page, f"{rate},{count}", f"{count},{rate}")
    assert rows(first)["B300 SXM6-x8"] == rows(page)["B300 SXM6-x8"]


def test_a_missing_cell_never_moves_the_others(page):
    offer = rows(replaced(page, '["$","dd","vcpu",{"children":280}],', ""))["B300 SXM6-x8"].offer
    assert (offer.vcpu_count, offer.memory_gib, offer.local_storage_gb) == (None, 2800, None)


def test_on_request_is_listed_without_a_price(page):
    row = rows(page)["GB300 NVL72-x72"]
    assert (row.quote.price, row.quote.price_usd_hour) == (None, None)
    assert "on_request" in row.quote.flags


def test_sold_out_is_unavailable_and_unpriced(page):
    sold_out = replaced(page, '"$$52.80",["$","sub","unit",{"children":"/hr"}]', '"Sold out"')
    row = rows(sold_out)["B300 SXM6-x8"]
    assert (row.quote.price, row.quote.availability) == (None, "unavailable")


@pytest.mark.parametrize("price", ["$$0.00", "$L9", "—", "N/A"])
def test_what_is_no_price_is_rejected(page, price):
    result = COLLECTOR.parse([replaced(page, '"$$52.80",["$","sub","unit",{"children":"/hr"}]', f'"{price}"')])
    assert [r.reason for r in result.rejections] == ["not_a_price"]
    assert len(result.rows) == 7


def test_two_prices_for_one_row_are_not_guessed(page):
    result = COLLECTOR.parse([replaced(page, '"$$52.80"', '"$$25.80"', 1)])
    assert [(r.reason, r.sample) for r in result.rejections] == [("price_ambiguous", "B300 SXM6 x8")]


def test_the_unit_is_read_and_its_absence_rejected(page):
    monthly = COLLECTOR.parse([replaced(page, '"/hr"', '"/mo"')])
    assert {r.quote.price_unit for r in monthly.rows if r.quote.price} == {"month"}
    result = COLLECTOR.parse([replaced(page, '"/hr"', '""')])
    assert {r.reason for r in result.rejections} == {"unit_unknown"}
    assert not [r for r in result.rows if r.quote.price]


def test_another_currency_is_read_from_the_price(page):
    result = COLLECTOR.parse([replaced(page, "$$", "EUR ")])
    assert {r.quote.currency for r in result.rows if r.quote.price} == {"EUR"}
    assert {r.quote.price_usd_hour for r in result.rows} == {None}


@pytest.mark.parametrize(("old", "new"), [("-x ", "-by "), ("self.__next_f.push", "self.__other.push")])
def test_another_payload_is_a_changed_page(page, old, new):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([replaced(page, old, new)])


@pytest.mark.needs_recordings
def test_recorded_page(recording):
    found = rows(recording("pricing_rsc_excerpt.html"))
    checked = {
        "B300 SXM6-x8": ("52.80", 280, 2800, 6000),
        "B200 SXM6-x8": ("43.46", 280, 2800, 6000),
        "RTX PRO 6000 Blackwell (96GB)-x1": ("2.19", 16, 144, 725),
        "H200 NVL (141GB)-x1": ("3.62", 16, 180, 750),
        "H200 NVL (141GB) NVLink-x4": ("15.28", 62, 720, 3000),
        "RTX PRO 4500 Blackwell (32GB)-x1": ("0.92", 16, 74, 700),
    }
    assert found.keys() == checked.keys()
    for sku, (price, vcpu, memory, storage) in checked.items():
        offer = found[sku].offer
        assert found[sku].quote.price == Decimal(price)
        assert (offer.vcpu_count, offer.memory_gib, offer.local_storage_gb) == (vcpu, memory, storage)
