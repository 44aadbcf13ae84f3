"""CoreWeave: headers decide, footnotes, rows of either class, the narrow-screen block, regions, processors."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def price(result, name, option="on_demand", region="north-america"):
    found = [
        r.quote.price
        for r in result.rows
        if (r.offer.instance_type, r.offer.purchase_option, r.offer.region) == (name, option, region)
    ]
    assert len(found) == 1
    return found[0]


def test_rows_of_either_class_are_read(parse_page):
    result = parse_page()
    assert price(result, "NVIDIA HGX H100") == Decimal("49.24")
    assert price(result, "NVIDIA HGX B200") == Decimal("68.80")


def test_regions_differ_in_their_spot_prices(parse_page):
    result = parse_page()
    assert price(result, "NVIDIA HGX H100", "spot") == Decimal("19.71")
    assert price(result, "NVIDIA HGX H100", "spot", "europe") == Decimal("19.51")


def test_a_footnote_mark_does_not_join_the_count(parse_page):
    assert {r.offer.gpu_count for r in parse_page().rows if r.offer.source_sku == "nvidia-gb200-nvl72"} == {4}


def test_contact_sales_and_not_applicable_have_no_price(parse_page):
    result = parse_page()
    assert price(result, "NVIDIA HGX B300") is None
    assert not [r for r in result.rows if "GB200" in r.offer.instance_type and r.offer.purchase_option == "spot"]


def test_processor_nodes_and_narrow_screen_labels_are_no_offers_or_meters(parse_page):
    result = parse_page()
    assert not [r for r in result.rows if "AMD Genoa" in r.offer.instance_type]
    assert {s.kind for s in result.surcharges} == {"object_storage", "block_storage", "egress"}
    assert not result.rejections


def test_swapped_headers_swap_the_options(parse_page):
    swapped = parse_page(("On-Demand Price (Per Hour)", "?"), ("Spot Price (Per Hour)", "On-Demand Price (Per Hour)"),
                    ("?", "Spot Price (Per Hour)"))  # fmt: skip
    assert price(swapped, "NVIDIA HGX H100") == Decimal("19.71")


@pytest.mark.parametrize(
    "change",
    [
        ("GPU Model", "Chip"),
        ("GPU Count", "Size"),
        ("Spot Price (Per Hour)", "Discount"),
        ("Spot Price (Per Hour)", "Spot Price"),
        ("table-v2-header", "table-v3-header"),
        ('<span class="table-v2-cell">4^1</span>', ""),
        ("w-dyn-item", "item"),
    ],
)
def test_a_changed_table_is_refused(change, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(change)


def test_the_header_states_the_unit(parse_page):
    [row, *_] = [r for r in parse_page(("(Per Hour)", "(Per Day)")).rows if r.quote.price]
    assert (row.quote.price_unit, row.quote.price_usd_hour) == ("day", float(row.quote.price) / 24)


@pytest.mark.needs_recordings
def test_recorded_page(parse, recording):
    document = recording("pricing_excerpt.html")
    result = parse(document)
    by_hand = [
        ("NVIDIA GB200 NVL72", "on_demand", "42.00", 4),
        ("NVIDIA HGX B300", "spot", "35.84", 8),
        ("NVIDIA HGX B200", "on_demand", "68.80", 8),
        ("NVIDIA HGX B200", "spot", "34.11", 8),
        ("NVIDIA HGX H100", "on_demand", "49.24", 8),
        ("NVIDIA HGX H100", "spot", "19.71", 8),
        ("NVIDIA HGX H100 (inference, single GPU)", "on_demand", "6.16", 1),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "spot", "11.09", 8),
    ]
    for name, option, amount, count in by_hand:
        assert str(price(result, name, option)) == amount
        assert {r.offer.gpu_count for r in result.rows if r.offer.instance_type == name} == {count}
        assert f"${amount}" in document.text()
    assert len(result.rows) == 16
