"""Verda: node totals as text, two sources of one market, stock per place, and the page's structured data."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.verda import Verda

COLLECTOR = Verda()


@pytest.fixture
def documents():
    return {d.name: d for d in fixture_documents("verda")}


def with_json(document, change):
    content = json.loads(document.body)
    change(content)
    return dataclasses.replace(document, body=json.dumps(content).encode())


def record(content, name):
    return next(r for r in content if r["instance_type"] == name)


def rows_of(result, name):
    return {(r.offer.purchase_option, r.offer.region): r for r in result.rows if r.offer.instance_type == name}


def test_stock_is_asked_for_with_a_token_only():
    assert [r.name for r in COLLECTOR.requests({})] == ["instance-types", "pricing"]
    keyed = list(COLLECTOR.requests({"VERDA_ACCESS_TOKEN": "abc"}))
    assert [r.name for r in keyed][2:] == ["instance-availability-on-demand", "instance-availability-spot"]
    assert keyed[2].headers == {"Authorization": "Bearer abc"}
    assert not any("abc" in r.url for r in keyed)


def test_memory_total_is_divided_and_price_is_of_the_node(documents):
    row = rows_of(COLLECTOR.parse([documents["instance-types"]]), "4B300.120V")["on_demand", ""]
    assert (row.offer.gpu, row.offer.gpu_count, row.offer.gpu_memory_gb) == ("b300-sxm-288gb", 4, 288)
    assert "memory_mismatch" not in row.quote.flags
    assert row.quote.price_usd_gpu_hour == pytest.approx(27.96 / 4)


def test_without_stock_nothing_is_said_of_places_or_availability(documents):
    result = COLLECTOR.parse([documents["instance-types"]])
    assert {(r.offer.region, r.quote.availability) for r in result.rows} == {("", "unknown")}


def test_stock_joins_by_option_and_place(documents):
    result = COLLECTOR.parse(list(documents.values()))
    h200 = rows_of(result, "1H200.141S.44V")
    assert set(h200) == {("on_demand", "FIN-02")}
    a100 = rows_of(result, "1A100.22V")
    assert set(a100) == {(o, p) for o in ("on_demand", "spot") for p in ("FIN-01", "FIN-03")}
    assert {r.quote.availability for r in a100.values()} == {"available"}
    [nowhere] = [r for key, r in rows_of(result, "1H100.80S.30V").items() if key[0] == "spot"]
    assert (nowhere.offer.region, nowhere.quote.availability) == ("", "unavailable")
    assert nowhere.quote.price == Decimal("1.70")


def test_zero_is_a_rejection_and_null_is_no_price(documents):
    result = COLLECTOR.parse([documents["instance-types"]])
    assert ("not_a_price", "0") in {(r.reason, r.value) for r in result.rejections}
    assert set(rows_of(result, "1RTX6000ADA.10V")) == {("on_demand", "")}
    sold_out = rows_of(result, "8B200.240V")
    assert sold_out["on_demand", ""].quote.price is None
    assert sold_out["spot", ""].quote.price == Decimal("13.69")
    assert not [r for r in result.rows if r.offer.tenancy == "serverless"]


def test_gpus_without_a_name_are_rejected_and_cpu_nodes_ignored(documents):
    result = COLLECTOR.parse([documents["instance-types"]])
    assert ("gpu_unnamed", "2X.20V") in {(r.reason, r.sample) for r in result.rejections}
    assert not {"2X.20V", "CPU.8V.32G"} & {r.offer.instance_type for r in result.rows}


def test_a_local_disk_is_read_and_a_volume_of_any_size_is_none(documents):
    result = COLLECTOR.parse([documents["instance-types"]])
    disks = {r.offer.instance_type: r.offer.local_storage_gb for r in result.rows}
    assert (disks["1V100.6V"], disks["1A100.22V"]) == (225, None)


def test_serverless_prices_of_the_list_are_serverless_offers(documents):
    listed = with_json(
        documents["instance-types"],
        lambda c: record(c, "1B200.30V").update(serverless_price="5.379", serverless_spot_price="2.69"),
    )
    rows = [r for r in COLLECTOR.parse([listed, documents["pricing"]]).rows if r.offer.tenancy == "serverless"]
    assert {(r.offer.instance_type, r.offer.purchase_option) for r in rows} == {
        ("1B200.30V", "on_demand"), ("1B200.30V", "spot"),
    }  # fmt: skip


def test_the_page_adds_only_what_the_list_lacks(documents):
    both = COLLECTOR.parse([documents["instance-types"], documents["pricing"]])
    from_page = [r for r in both.rows if r.quote.source_url == "https://verda.com/pricing"]
    assert {r.offer.source_sku for r in from_page} == {
        "104x B300 SXM6 268GB instant cluster",
        "8x B200 SXM6 180GB serverless continuous",
        "1x B300 SXM6 268GB serverless spot",
    }
    [cluster] = [r for r in from_page if r.offer.variant == "instant_cluster"]
    assert (cluster.offer.gpu_count, cluster.quote.price_usd_gpu_hour) == (104, 7.5)


def test_the_page_alone_holds_the_instances_too(documents):
    result = COLLECTOR.parse([documents["pricing"]])
    rows = {r.offer.source_sku: r for r in result.rows}
    assert rows["1x GB300 SXM6 288GB spot"].quote.price == Decimal("4.31")
    assert rows["1x GB300 SXM6 288GB spot"].offer.purchase_option == "spot"
    twin = rows["1x B200 CC SXM6 180GB on-demand"]
    assert (twin.offer.variant, twin.quote.price) == ("confidential", Decimal("6.232"))
    assert "gpu_unnamed" in {r.reason for r in result.rejections}
    assert not [r for r in result.rows if "CPU" in r.offer.source_sku]


def test_a_repeated_name_at_another_price_is_rejected(documents):
    page = documents["pricing"]
    before, mark, after = page.body.rpartition(b'"name": "1x GB300 SXM6 288GB on-demand"')
    assert mark in before, "the page states this name twice"
    changed = before + mark + after.replace(b"8.62", b"9.99", 1)
    result = COLLECTOR.parse([dataclasses.replace(page, body=changed)])
    assert "duplicate_key" in {r.reason for r in result.rejections}
    [kept] = [r for r in result.rows if r.offer.source_sku == "1x GB300 SXM6 288GB on-demand"]
    assert kept.quote.price == Decimal("8.62")


def test_an_unknown_unit_is_a_rejection_and_a_month_is_no_hour(documents):
    page = documents["pricing"]
    monthly = COLLECTOR.parse([dataclasses.replace(page, body=page.body.replace(b'"hour"', b'"month"'))])
    assert {r.quote.price_unit for r in monthly.rows} == {"month"}
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(page, body=page.body.replace(b'"hour"', b'"fortnight"'))])


@pytest.mark.parametrize("key", [b'"price_per_hour"', b'"number_of_gpus"', b'"instance_type"', b'"spot_price"'])
def test_a_renamed_key_is_a_changed_list(documents, key):
    listed = documents["instance-types"]
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(listed, body=listed.body.replace(key, b'"renamed"'))])


def test_one_broken_record_costs_one_row(documents):
    listed = with_json(documents["instance-types"], lambda c: record(c, "1B300.30V").pop("price_per_hour"))
    result = COLLECTOR.parse([listed])
    assert rows_of(result, "1B300.30V")["on_demand", ""].quote.price is None
    assert len(result.rows) > 15


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b"", b'[{"instance_type": "1H100', b'{"code": "unauthorized_request", "message": "x"}']
)
def test_an_empty_or_cut_list_is_never_an_empty_success(documents, body):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(documents["instance-types"], body=body)])


def test_a_list_of_cpu_nodes_alone_is_a_changed_list(documents):
    listed = with_json(documents["instance-types"], lambda c: [r["gpu"].update(number_of_gpus=0) for r in c])
    with pytest.raises(LayoutChanged, match="neither"):
        COLLECTOR.parse([listed])


def test_a_challenge_page_is_blocked_and_a_page_without_data_changed(documents):
    page = documents["pricing"]
    challenge = b"<html><head><title>Just a moment...</title></head><body></body></html>"
    with pytest.raises(Blocked):
        COLLECTOR.parse([dataclasses.replace(page, body=challenge)])
    with pytest.raises(LayoutChanged, match=r"ld\+json"):
        COLLECTOR.parse([dataclasses.replace(page, body=b"<html><body><h1>Pricing</h1></body></html>")])


@pytest.mark.needs_recordings
def test_recorded_answers(recordings):

    def recorded(name, url):
        return dataclasses.replace(read_recorded(recordings / name, "verda"), url=url)

    listed = recorded("instance-types_trimmed.json", "https://api.datacrunch.io/v1/instance-types?currency=usd")
    stock = recorded(
        "instance-availability_spot.json", "https://api.datacrunch.io/v1/instance-availability?is_spot=true"
    )
    rows = {(r.offer.instance_type, r.offer.purchase_option): r for r in COLLECTOR.parse([listed, stock]).rows}
    assert len(rows) == 6
    checked = {
        ("1H100.80S.30V", "on_demand"): ("3.95", "h100-sxm-80gb", 1, "unknown", ""),
        ("1H100.80S.30V", "spot"): ("1.70", "h100-sxm-80gb", 1, "unavailable", ""),
        ("2A6000.20V", "on_demand"): ("1.98", "rtx-a6000-48gb", 2, "unknown", ""),
        ("2A6000.20V", "spot"): ("0.70", "rtx-a6000-48gb", 2, "available", "FIN-01"),
        ("1V100.6V", "on_demand"): ("0.89", "v100", 1, "unknown", ""),
        ("1V100.6V", "spot"): ("0.25", "v100", 1, "available", "FIN-01"),
    }
    for key, (price, gpu, count, availability, region) in checked.items():
        row = rows[key]
        assert (row.quote.price, row.offer.gpu, row.offer.gpu_count) == (Decimal(price), gpu, count)
        assert (row.quote.availability, row.offer.region) == (availability, region)
    page = recorded("pricing_jsonld_excerpt.html", "https://verda.com/pricing")
    prices = {r.offer.source_sku: r.quote.price for r in COLLECTOR.parse([page]).rows}
    assert prices == {
        "1x GB300 SXM6 288GB on-demand": Decimal("8.62"), "1x GB300 SXM6 288GB spot": Decimal("4.31"),
        "1x B300 SXM6 268GB on-demand": Decimal("7.5"), "1x B300 SXM6 268GB spot": Decimal("3.75"),
        "1x B200 SXM6 180GB on-demand": Decimal("6.11"), "1x B200 SXM6 180GB spot": Decimal("3.055"),
    }  # fmt: skip
