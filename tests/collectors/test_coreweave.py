"""CoreWeave: headers decide, footnotes, rows of either class, the narrow-screen block, regions, processors."""

import dataclasses
from decimal import Decimal
from pathlib import Path

import pytest

from collectors.coreweave import CoreWeave
from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded

RECORDINGS = Path(__file__).resolve().parents[2].parent / "shared" / "recordings" / "coreweave"


def page_with(*changes):
    (document,) = fixture_documents("coreweave")
    text = document.text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return dataclasses.replace(document, body=text.encode())


def parse(*changes):
    return CoreWeave().parse([page_with(*changes)])


def price(result, name, option="on_demand", region="north-america"):
    found = [
        r.quote.price
        for r in result.rows
        if (r.offer.instance_type, r.offer.purchase_option, r.offer.region) == (name, option, region)
    ]
    assert len(found) == 1
    return found[0]


def test_rows_of_either_class_are_read():
    result = parse()
    assert price(result, "NVIDIA HGX H100") == Decimal("49.24")
    assert price(result, "NVIDIA HGX B200") == Decimal("68.80")


def test_regions_differ_in_their_spot_prices():
    result = parse()
    assert price(result, "NVIDIA HGX H100", "spot") == Decimal("19.71")
    assert price(result, "NVIDIA HGX H100", "spot", "europe") == Decimal("19.51")


def test_a_footnote_mark_does_not_join_the_count():
    assert {r.offer.gpu_count for r in parse().rows if r.offer.source_sku == "nvidia-gb200-nvl72"} == {4}


def test_contact_sales_and_not_applicable_have_no_price():
    result = parse()
    assert price(result, "NVIDIA HGX B300") is None
    assert not [r for r in result.rows if "GB200" in r.offer.instance_type and r.offer.purchase_option == "spot"]


def test_processor_nodes_and_narrow_screen_labels_are_no_offers_or_meters():
    result = parse()
    assert not [r for r in result.rows if "AMD Genoa" in r.offer.instance_type]
    assert {s.kind for s in result.surcharges} == {"object_storage", "block_storage", "egress"}
    assert not result.rejections


def test_swapped_headers_swap_the_options():
    swapped = parse(("On-Demand Price (Per Hour)", "?"), ("Spot Price (Per Hour)", "On-Demand Price (Per Hour)"),
                    ("?", "Spot Price (Per Hour)"))  # fmt: skip
    assert price(swapped, "NVIDIA HGX H100") == Decimal("19.71")


@pytest.mark.parametrize(
    "change",
    [
        ("GPU Model", "Chip"),
        ("GPU Count", "Size"),
        ("Spot Price (Per Hour)", "Discount"),
        ("table-v2-header", "table-v3-header"),
        ('<div class="table-v2-cell"><div>4^1</div></div>', ""),
        ("w-dyn-item", "item"),
    ],
)
def test_a_changed_table_is_refused(change):
    with pytest.raises(LayoutChanged):
        parse(change)


def test_blocked_and_empty_pages_are_refused():
    page = page_with()
    with pytest.raises(Blocked):
        CoreWeave().parse([dataclasses.replace(page, body=b"<title>Access denied</title>", status=403)])
    for body in (b"", b"<h1>Pricing</h1>", page.body[:1200]):
        with pytest.raises(LayoutChanged):
            CoreWeave().parse([dataclasses.replace(page, body=body)])


@pytest.mark.needs_recordings
def test_recorded_page():
    path = RECORDINGS / "pricing_excerpt.html"
    if not path.is_file():
        pytest.skip("recordings are not here")
    document = read_recorded(path, "coreweave")
    result = CoreWeave().parse([document])
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
