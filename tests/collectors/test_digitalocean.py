"""DigitalOcean: totals of eight, tables by heading, memory totals, sold-out sizes, both sources at once."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged


def by_name(result):
    return {(r.offer.instance_type, r.offer.purchase_option): r for r in result.rows}


def test_rows_of_eight_are_totals(parse_page):
    rows = by_name(parse_page())
    eight = rows["NVIDIA H100 (8x)", "on_demand"]
    assert (eight.offer.gpu_count, eight.quote.price_usd_hour, eight.quote.price_usd_gpu_hour) == (8, 35.28, 4.41)
    assert rows["AMD MI355X (8x)", "spot"].quote.price_usd_gpu_hour == 4.5


def test_contract_gpus_have_no_price(parse_page):
    rows = by_name(parse_page())
    assert rows["NVIDIA B300 (8x)", "reserved"].quote.price is None


def test_documented_products_behind_open_names(parse_page):
    gpus = {r.offer.instance_type: r.offer.gpu for r in parse_page().rows}
    assert gpus["NVIDIA RTX 4000"] == "rtx-4000-ada-20gb"
    assert gpus["NVIDIA RTX 6000"] == "rtx-6000-ada-48gb"
    assert gpus["NVIDIA H200 (8x)"] == "h200-sxm-141gb"


def test_memory_of_the_api_is_a_total(parse, documents):
    row = next(r for r in parse(documents["sizes"]).rows if r.offer.instance_type == "gpu-mi300x8-1536gb")
    assert row.offer.gpu_memory_gb == 192
    assert row.offer.gpu_interconnect == "infinity_fabric"
    assert "memory_mismatch" not in row.quote.flags


def test_a_size_without_regions_is_sold_out_but_listed(parse, api_with, documents):
    row = next(r for r in parse(documents["sizes"]).rows if r.offer.instance_type == "gpu-mi300x1-192gb")
    assert (row.offer.region, row.quote.availability, row.quote.price) == ("", "unavailable", Decimal("2.59"))
    gone = parse(api_with(lambda d: d["sizes"][1].update(available=False)))
    assert {r.quote.availability for r in gone.rows if r.offer.instance_type == "gpu-h100x8-640gb"} == {"unavailable"}


def test_with_both_sources_a_droplet_is_listed_once(parse, documents):
    rows = by_name(parse(*documents.values()))
    assert ("NVIDIA H100 (8x)", "on_demand") not in rows
    assert ("gpu-h100x8-640gb", "on_demand") in rows
    assert ("NVIDIA H200 (8x)", "on_demand") in rows


def test_a_list_that_stops_early_is_incomplete(parse, api_with, documents):
    assert not parse(api_with(lambda d: d["meta"].update(total=147))).complete
    assert parse(*documents.values()).complete


def test_a_size_without_a_price_or_count_is_rejected(parse, api_with):
    def change(data):
        data["sizes"][1].pop("price_hourly")
        data["sizes"][2]["gpu_info"].pop("count")

    result = parse(api_with(change))
    assert {r.offer.instance_type for r in result.rows} == {"gpu-mi300x1-192gb"}
    assert {r.reason for r in result.rejections} == {"not_a_price", "gpu_count"}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("sizes"),
        lambda d: [s.pop("price_hourly") for s in d["sizes"]],
        lambda d: [s["gpu_info"].pop("count") for s in d["sizes"][1:]],
        lambda d: [s.pop("gpu_info", None) for s in d["sizes"]],
    ],
)
def test_a_changed_api_is_refused(change, parse, api_with):
    with pytest.raises(LayoutChanged):
        parse(api_with(change))


@pytest.mark.parametrize(
    "changes",
    [
        [("<th>GPU</th>", "<th>Card</th>")],
        [("<th>Price per hour</th>", "<th>Cost</th>")],
        [(">On-Demand<", ">A<"), (">Spot<", ">B<"), (">Contract<", ">C<")],
    ],
)
def test_a_changed_page_is_refused(changes, parse_page):
    with pytest.raises(LayoutChanged):
        parse_page(*changes)


def test_one_table_with_other_headers_makes_the_run_partial(parse_page, page_with):
    _, spot, after = page_with().text().partition('id="spot"')
    result = parse_page((spot + after, spot + after.replace("<th>GPU<", "<th>Card<", 1)))
    assert not result.complete
    assert "Spot" in result.notes[0]
    assert {r.offer.purchase_option for r in result.rows} == {"on_demand", "reserved"}


def test_a_price_without_a_unit_is_rejected(parse_page):
    result = parse_page(("Price per hour", "Price"))
    assert not [r for r in result.rows if r.quote.price]
    assert {r.reason for r in result.rejections} == {"unit_missing"}


@pytest.mark.needs_recordings
def test_recorded_sizes(parse, recording):
    result = parse(recording("sizes_trimmed.json"))
    found = {
        r.offer.instance_type: (r.offer.gpu, r.offer.gpu_count, str(r.quote.price), r.offer.region) for r in result.rows
    }
    assert found == {
        "gpu-h100x8-640gb": ("h100-sxm-80gb", 8, "23.92", "nyc1"),
        "gpu-mi300x8-1536gb": ("mi300x-192gb", 8, "15.92", "nyc1"),
    }
    assert not result.complete
