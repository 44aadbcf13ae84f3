"""Nebius: header-pinned columns, lower bounds, words instead of prices, host memory, several chips in one row."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.nebius import Nebius


def page_with(*changes):
    (document,) = fixture_documents("nebius")
    text = document.text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return dataclasses.replace(document, body=text.encode())


def parse(document):
    return Nebius().parse([document])


def prices(result, option):
    return {r.offer.instance_type: r.quote.price for r in result.rows if r.offer.purchase_option == option}


def test_the_header_decides_which_column_is_preemptible():
    swapped = page_with(
        ("Preemptible, GPU-hour", "?"), ("On-demand, GPU-hour", "Preemptible, GPU-hour"), ("?", "On-demand, GPU-hour")
    )
    assert prices(parse(page_with()), "spot")["NVIDIA HGX B300 x1"] == Decimal("4.30")
    assert prices(parse(swapped), "on_demand")["NVIDIA HGX B300 x1"] == Decimal("4.30")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("On-demand, GPU-hour", "Preemptible, GPU-hour"),
        ("GPU-hour", "price"),
        ("GPU-hour", "node-hour"),
        ('[\\"Item\\",\\"Preemptible', '[\\"Name\\",\\"Preemptible'),
        ("highlight-table-block", "table-block"),
        ("self.__next_f.push([1,", "self.__next_g.push([1,"),
    ],
)
def test_a_changed_header_or_script_is_refused(old, new):
    with pytest.raises(LayoutChanged):
        parse(page_with((old, new)))


def test_a_cut_payload_and_an_empty_table_are_refused():
    (document,) = fixture_documents("nebius")
    with pytest.raises(LayoutChanged):
        parse(dataclasses.replace(document, body=document.body[: document.body.index(b"GPU-hour")]))
    start = document.text().index(',[\\"NVIDIA L40S with AMD CPU')
    end = document.text().index("]]", start)
    assert document.text().rindex("NVIDIA") < end, "the rows of the table of GPUs are the last of the page"
    with pytest.raises(LayoutChanged, match=r"content\[1:\]"):
        parse(dataclasses.replace(document, body=(document.text()[:start] + document.text()[end + 1 :]).encode()))
    with pytest.raises(Blocked):
        parse(dataclasses.replace(document, body=b"<title>Just a moment...</title>", status=403))


def test_a_price_in_two_pieces_of_the_payload_is_whole():
    result = parse(page_with())
    assert "$2.45" not in page_with().text()
    assert prices(result, "spot")["NVIDIA HGX H200 x1"] == Decimal("2.45")


def test_lower_bounds_are_flagged():
    rows = [r for r in parse(page_with()).rows if r.offer.gpu == "l40s-48gb"]
    assert len(rows) == 4
    assert all(r.quote.flags == ("from_price",) for r in rows)


@pytest.mark.parametrize("words", ["Contact us", "coming soon", "Sold out", "N/A", "––", "-", ""])
def test_words_are_never_a_price(words):
    rows = parse(page_with(("$7.85", words))).rows
    assert not [
        r for r in rows if "B300" in r.offer.instance_type and r.offer.purchase_option == "on_demand" and r.quote.price
    ]
    assert not [r for r in rows if r.quote.price == 0]


def test_an_amount_that_makes_no_sense_is_rejected_with_its_text():
    result = parse(page_with(("$7.85", "seven")))
    assert ("not_a_price", "seven") in {(r.reason, r.value) for r in result.rejections}


def test_host_memory_is_not_gpu_memory():
    rows = parse(page_with()).rows
    assert {r.offer.gpu_memory_gb for r in rows if r.offer.gpu == "b200-sxm-180gb"} == {180}
    assert {r.offer.memory_gib for r in rows if r.offer.instance_type == "NVIDIA HGX B200 x8"} == {1792}


def test_two_chips_in_one_row_are_a_rejection():
    assert [r.value for r in parse(page_with()).rejections] == ["NVIDIA HGX B300 / B200"]


def test_storage_and_traffic_are_surcharges_per_gb():
    found = {s.kind: (s.price, s.unit) for s in parse(page_with()).surcharges}
    assert found["egress"] == (0, "gb")
    assert found["public_ipv4"] == (0, "month")
    price, unit = found["block_storage"]
    assert unit == "gb_month"
    assert float(price) == pytest.approx(0.053 / 1.073741824)
    assert float(found["object_storage"][0]) == pytest.approx(0.0147 / 1.073741824)


def test_keys_of_a_block_may_come_in_any_order():
    table = {"content": [["Item", "Price", "Unit"], ["Object storage: Standard (volume)", "$0.0147", "GiB/month"]],
             "style": {"justify": ["left"]}}  # fmt: skip
    gpus = {"content": [["Item", "vCPUs", "RAM, GB", "On-demand, GPU-hour"], ["NVIDIA HGX H100", "16", "200", "$3.85"]]}
    blocks = [{"title": "GPU", "table": gpus, "type": "highlight-table-block"},
              {"table": table, "title": "Storage", "type": "highlight-table-block"}]  # fmt: skip
    chunk = json.dumps([1, json.dumps({"blocks": blocks})])
    page = f"<html><body><script>self.__next_f.push({chunk})</script></body></html>"
    document = dataclasses.replace(page_with(), body=page.encode())
    result = parse(document)
    assert {r.offer.gpu for r in result.rows} == {"h100-sxm-80gb"}
    assert [s.kind for s in result.surcharges] == ["object_storage"]


@pytest.mark.needs_recordings
def test_recorded_page(recordings):
    path = recordings / "prices_excerpt.html"
    document = read_recorded(path, "nebius")
    result = parse(document)
    by_hand = [
        ("NVIDIA HGX B300 x1", "4.30", "7.85"),
        ("NVIDIA HGX B200 x8", "3.95", "7.15"),
        ("NVIDIA HGX H200 x8", "2.45", "4.50"),
        ("NVIDIA HGX H100 x1", "2.15", "3.85"),
        ("NVIDIA RTX PRO 6000 x1", "0.95", "1.80"),
        ("NVIDIA L40S with Intel CPU x1", "0.90", "1.82"),
    ]
    for name, spot, on_demand in by_hand:
        assert str(prices(result, "spot")[name]) == spot
        assert str(prices(result, "on_demand")[name]) == on_demand
        assert f"${spot}" in document.text()
    assert len(result.rows) == 26
    assert not result.rejections
