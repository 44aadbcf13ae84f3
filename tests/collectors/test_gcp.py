"""Google Cloud: prices added up from SKUs, the page's columns by their words, and machines not sold on demand."""

import dataclasses
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.types import Document
from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.gcp import API, KEY, PAGE, Gcp
from collectors.gcp_machines import machines

COLLECTOR = Gcp()
FETCHED_AT = datetime(2026, 11, 30, tzinfo=UTC)
N1_VCPU_LIMITS = {  # https://docs.cloud.google.com/compute/docs/gpus#general-purpose-gpus
    "t4": {1: 48, 2: 48, 4: 96}, "v100": {1: 12, 2: 24, 4: 48, 8: 96},
    "p100": {1: 16, 2: 32, 4: 96}, "p4": {1: 24, 2: 48, 4: 96},
}  # fmt: skip


def sku(description, price, unit="h", usage="OnDemand", group="CPU", region="us-central1", currency="USD"):
    whole, part = divmod(Decimal(price), 1)
    money = {"currencyCode": currency, "units": str(int(whole)), "nanos": int(part * 10**9)}
    tiers = [{"startUsageAmount": 0, "unitPrice": money}]
    return {
        "description": description, "category": {"resourceGroup": group, "usageType": usage},
        "serviceRegions": [region], "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": tiers}}],
    }  # fmt: skip


def gpu(description, price, **fields):
    return sku(description, price, group="GPU", **fields)


def ram(description, price, **fields):
    return sku(description, price, unit="GiBy.h", group="RAM", **fields)


def skus(*items, token="", asked=""):
    url = f"{API}?currencyCode=USD&pageSize=5000" + (f"&pageToken={asked}" if asked else "")
    return Document("gcp", url, json.dumps({"skus": list(items), "nextPageToken": token}).encode(), FETCHED_AT)


def parse(*items):
    return COLLECTOR.parse([skus(*items)])


def read(result):
    return {(r.offer.source_sku, r.offer.region, r.offer.purchase_option): r.quote.price for r in result.rows}


A2 = (sku("A2 Instance Core running in Iowa", "0.05"), ram("A2 Instance Ram running in Iowa", "0.004"))
A100 = gpu("Nvidia Tesla A100 GPU running in Iowa", "3.11")


def page():
    [document] = [d for d in fixture_documents("gcp") if d.name == "accelerator-optimized"]
    return document


def test_the_key_goes_into_a_header_and_only_with_a_key():
    assert [r.name for r in COLLECTOR.requests({})] == ["accelerator-optimized"]
    keyed = list(COLLECTOR.requests({KEY: "not-to-be-seen"}))[1]
    assert "not-to-be-seen" not in keyed.url
    assert "not-to-be-seen" in keyed.headers.values()


def test_pages_follow_the_token_and_end_with_an_empty_one():
    [following] = COLLECTOR.follow(skus(*A2, token="abc+/="))
    assert "pageToken=abc%2B%2F%3D" in following.url
    assert not list(COLLECTOR.follow(skus(*A2)))
    assert not list(COLLECTOR.follow(page()))
    assert COLLECTOR.parse([skus(*A2, token="t1"), skus(A100, asked="t1")]).complete
    assert not COLLECTOR.parse([skus(*A2, A100, token="t1")]).complete


def test_a_price_is_host_plus_gpu():
    prices = read(parse(*A2, A100))
    assert prices["a2-highgpu-1g", "us-central1", "on_demand"] == Decimal("4.05")
    assert prices["a2-highgpu-8g", "us-central1", "on_demand"] == 8 * Decimal("4.05")
    assert not [s for s, _, _ in prices if "ultra" in s]


def test_bundled_disks_are_part_of_the_price():
    card = gpu("Nvidia Tesla A100 80GB GPU running in Iowa", "4.5")
    disk = sku("SSD backed Local Storage in Iowa", "0.073", unit="GiBy.mo", group="LocalSSD")
    without = parse(*A2, card)
    assert not without.rows
    assert [(r.reason, r.field) for r in without.rejections] == [("component_missing", "ssd")]
    price = read(parse(*A2, card, disk))["a2-ultragpu-1g", "us-central1", "on_demand"]
    assert price == Decimal(12) * Decimal("0.05") + 170 * Decimal("0.004") + Decimal("4.5") + 375 * Decimal("0.0001")


@pytest.mark.parametrize(
    "name", ["Nvidia H100 80GB Mega GPU", "Nvidia H100 80GB Plus GPU", "Nvidia H100 Mega 80GB GPU"]
)
def test_one_gpu_under_its_three_names(name):
    result = parse(
        sku("A3Plus Instance Core running in Iowa", "0.03"), ram("A3Plus Instance Ram running in Iowa", "0.003"),
        sku("SSD backed Local Storage in Iowa", "0.08", unit="GiBy.mo", group="LocalSSD"),
        gpu(f"{name} running in Iowa", "10.3"),
    )  # fmt: skip
    [row] = result.rows
    assert (row.offer.instance_type, row.offer.gpu, row.offer.gpu_count) == ("a3-megagpu-8g", "h100-sxm-80gb", 8)


def test_a_slice_pays_for_the_machine_and_its_words_go_before_usage_type():
    result = parse(
        gpu("A4 Nvidia B200 (1 gpu slice) running in Iowa", "16.11"),
        gpu("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Iowa", "4.9542"),
        gpu("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) in Iowa", "11.2775"),
    )
    assert read(result) == {
        ("a4-highgpu-8g", "us-central1", "spot"): Decimal("39.6336"),
        ("a4-highgpu-8g/calendar", "us-central1", "scheduled"): Decimal("90.22"),
    }


def test_other_models_and_machines_are_not_components():
    noise = [
        sku("A2 Sole Tenancy Instance Core running in Iowa", "9"), sku("Custom A2 Instance Core running in Iowa", "9"),
        gpu("Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs running in Iowa", "9"),
        gpu("Reserved Nvidia Tesla A100 GPU in Iowa in Calendar Mode", "9"),
        sku("E2 Instance Core running in Iowa", "9"), gpu("Nvidia Tesla T4 Virtual Workstation GPU", "9"),
    ]  # fmt: skip
    assert read(parse(*A2, A100, *noise)) == read(parse(*A2, A100))


def test_spot_and_commitments_use_their_own_components():
    result = parse(
        *A2, A100,
        sku("Spot Preemptible A2 Instance Core running in Iowa", "0.01", usage="Preemptible"),
        ram("Spot Preemptible A2 Instance Ram running in Iowa", "0.001", usage="Preemptible"),
        gpu("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Iowa", "1", usage="Preemptible"),
        sku("Commitment v1: A2 Cpu in Iowa for 1 Year", "0.03", usage="Commit1Yr"),
        ram("Commitment v1: A2 Ram in Iowa for 1 Year", "0.003", usage="Commit1Yr"),
        gpu("Commitment v1: Nvidia Tesla A100 GPU running in Iowa for 1 Year", "2", usage="Commit1Yr"),
        gpu("Commitment v1: Nvidia Tesla A100 GPU running in Iowa for 3 Year", "1.5", usage="Commit3Yr"),
    )  # fmt: skip
    prices = read(result)
    assert prices["a2-highgpu-1g", "us-central1", "spot"] == Decimal("1.205")
    [committed] = [r for r in result.rows if r.offer.commitment_days and r.offer.source_sku == "a2-highgpu-1g"]
    assert (committed.offer.commitment_days, committed.quote.price) == (365, Decimal("2.615"))
    assert [(r.reason, r.value) for r in result.rejections] == [("component_missing", "commit_3y")]


def test_a_missing_component_stops_its_family_only():
    other = gpu("Nvidia H100 80GB GPU running in Iowa", "9.8")
    result = parse(*A2, A100, sku("A3 Instance Core running in Iowa", "0.04"), other)
    assert {r.offer.gpu for r in result.rows} == {"a100-sxm-40gb"}
    assert [(r.reason, r.field) for r in result.rejections] == [("component_missing", "ram a3")]


def test_units_zeros_and_contradictions_give_no_price():
    for odd in (gpu("Nvidia Tesla A100 GPU running in Iowa", "3.11", unit="d"), gpu(A100["description"], "0")):
        result = COLLECTOR.parse([skus(*A2, odd, gpu("Nvidia L4 GPU running in Iowa", "0.56"))])
        assert not result.rows
        assert "component_price" in {r.reason for r in result.rejections}
    result = parse(*A2, A100, gpu("Nvidia Tesla A100 GPU running in Iowa", "2.9"))
    assert not result.rows
    assert "price_ambiguous" in {r.reason for r in result.rejections}


@pytest.mark.parametrize("part", ["units", "nanos"])
@pytest.mark.parametrize("amount", [None, "", "x", -1])
def test_half_of_the_money_or_a_negative_part_is_no_price(part, amount):
    odd = gpu("Nvidia Tesla A100 GPU running in Iowa", "3.11")
    odd["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"][part] = amount
    result = parse(*A2, odd, gpu("Nvidia L4 GPU running in Iowa", "0.56"))
    assert not result.rows
    assert "component_price" in {r.reason for r in result.rejections}


@pytest.mark.parametrize("broken", ["x", None, [], [None], ["x"], [{"pricingExpression": "x"}]])
def test_odd_pricing_is_rejected_not_a_crash(broken):
    result = parse(*A2, {**A100, "pricingInfo": broken}, gpu("Nvidia L4 GPU running in Iowa", "0.56"))
    assert not result.rows
    assert "component_price" in {r.reason for r in result.rejections}


def test_a_new_gpu_is_seen():
    assert parse(*A2, A100, gpu("Nvidia X990 512GB GPU running in Iowa", "20")).unmapped == ("x990-512gb",)


def test_n1_attachments_stay_inside_the_documented_limits():
    attached = [m for m in machines() if m.variant]
    assert len(attached) == 13
    for m in attached:
        assert m.vcpu_count <= N1_VCPU_LIMITS[m.gpu_sku][m.gpu.count]
    result = parse(
        sku("N1 Predefined Instance Core running in Iowa", "0.03"),
        ram("N1 Predefined Instance Ram running in Iowa", "0.004"),
        gpu("Nvidia Tesla T4 GPU running in Iowa", "0.35"),
    )  # fmt: skip
    assert {(r.offer.instance_type, r.offer.variant, r.offer.gpu_count) for r in result.rows} == {
        ("n1-standard-8", "1x-nvidia-tesla-t4", 1),
        ("n1-standard-16", "2x-nvidia-tesla-t4", 2),
        ("n1-standard-32", "4x-nvidia-tesla-t4", 4),
    }


def test_the_page_offers_what_is_sold():
    result = COLLECTOR.parse([page()])
    options = {(r.offer.instance_type, r.offer.purchase_option) for r in result.rows}
    assert ("a4-highgpu-8g", "on_demand") not in options
    assert ("a3-ultragpu-8g", "on_demand") not in options
    assert ("a3-highgpu-8g", "on_demand") in options
    assert not result.rejections


def test_the_sum_of_skus_goes_before_the_page():
    result = COLLECTOR.parse([page(), skus(*A2, A100)])
    [row] = [r for r in result.rows if (r.offer.source_sku, r.offer.purchase_option) == ("a2-highgpu-1g", "on_demand")]
    assert (row.quote.price, row.quote.price_scope) == (Decimal("4.05"), "component")
    assert not result.rejections


def test_columns_are_found_by_their_words():
    text = page().text()
    cut = text.rindex("<th", 0, text.index("DWS Flex-start"))
    renamed = dataclasses.replace(page(), body=text.replace("Machine type", "Shape").encode())
    missing = dataclasses.replace(page(), body=(text[:cut] + text[text.index("</th>", cut) + 5 :]).encode())
    unpriced = dataclasses.replace(page(), body=text.replace("<div>Price (USD)<", "<div>Amount<").encode())
    for document in (renamed, unpriced):
        with pytest.raises(LayoutChanged, match="Machine type"):
            COLLECTOR.parse([document])
    with pytest.raises(LayoutChanged, match=r"Machine type|no header"):
        COLLECTOR.parse([missing])


def test_a_row_short_of_a_cell_is_rejected():
    text = page().text()
    start = text.index("<b>a3-highgpu-8g</b>")
    cut = text.index("<td", text.index("$88.490000119", start))
    short = dataclasses.replace(page(), body=(text[:cut] + text[text.index("</td>", cut) + 5 :]).encode())
    result = COLLECTOR.parse([short])
    assert "a3-highgpu-8g" not in {r.offer.instance_type for r in result.rows}
    assert [r.reason for r in result.rejections] == ["gpu_count"]


def tiered(description, steps, unit, **fields):
    """A SKU with a price per step, given as (from quantity, price)."""
    stepped = sku(description, "0", unit=unit, **fields)
    rates = [sku("", price)["pricingInfo"][0]["pricingExpression"]["tieredRates"][0] for _, price in steps]
    for rate, (start, _) in zip(rates, steps, strict=True):
        rate["startUsageAmount"] = start
    stepped["pricingInfo"][0]["pricingExpression"]["tieredRates"] = rates
    return stepped


def test_disks_addresses_and_traffic_are_surcharges_by_the_decimal_gigabyte():
    premium = {"unit": "GiBy", "group": "PremiumInternetEgress"}
    result = parse(
        *A2, A100,
        sku("Balanced PD Capacity in Frankfurt", "0.12", unit="GiBy.mo", group="SSD", region="europe-west3"),
        sku("Regional Balanced PD Capacity in Frankfurt", "0.24", unit="GiBy.mo", group="SSD", region="europe-west3"),
        sku("Storage PD Capacity", "0.04", unit="GiBy.mo", group="PDStandard"),
        tiered("External IP Charge on a Standard VM", [(0, "0"), (744, "0.005")], "h", region="global"),
        sku("Static Ip Charge", "0.01", group="IpAddress"),
        sku("Network Internet Data Transfer Out from Americas to China", "0.23", **premium),
        tiered(
            "Network Internet Data Transfer Out from Americas to Americas",
            [(0, "0"), (1, "0.12"), (1024, "0.11")], **premium,
        ),
        sku("Network Internet Egress from Americas to Australia", "0.19", **premium),
        sku("Network Vpn Internet Data Transfer Out from Americas to Americas", "0.01", **premium),
        sku("Network Standard Data Transfer Out to Internet from Iowa", "0.085", unit="GiBy"),
    )  # fmt: skip
    assert [(s.kind, s.price, s.unit, s.region, s.included_quantity) for s in result.surcharges] == [
        ("block_storage", Decimal("0.111758708954"), "gb_month", "europe-west3", None),  # 0.12 x 10^9 / 2^30
        ("public_ipv4", Decimal("0.005"), "hour", "", 744),
        ("egress", Decimal("0.111758708954"), "gb", "us-central1", Decimal("1.074")),
    ]
    assert [(t.from_quantity, t.price) for t in result.surcharges[-1].tiers] == [
        (Decimal("1.074"), Decimal("0.111758708954")), (Decimal("1099.512"), Decimal("0.102445483208")),
    ]  # fmt: skip


@pytest.mark.parametrize("unit", ["GiBy", "TiBy.mo", "GBy.mo"])
def test_a_disk_by_another_unit_is_no_surcharge(unit):
    assert not parse(*A2, A100, sku("SSD backed PD Capacity", "0.17", unit=unit, group="SSD")).surcharges


def test_a_half_stated_price_of_a_disk_is_no_surcharge():
    disk = sku("SSD backed PD Capacity", "3.11", unit="GiBy.mo", group="SSD")
    del disk["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["nanos"]
    assert not parse(*A2, A100, disk).surcharges
    spot = sku("SSD backed PD Capacity", "0.1", unit="GiBy.mo", group="SSD", usage="Preemptible")
    assert not parse(*A2, A100, spot).surcharges


def test_changed_units_and_words_are_rejected_not_read():
    month = dataclasses.replace(page(), body=page().body.replace(b"$88.490000119 / 1 hour", b"$64597.70 / 1 month"))
    [row] = [r for r in COLLECTOR.parse([month]).rows if r.quote.price == Decimal("64597.70")]
    assert row.quote.price_unit == "month"
    for words in (b"$88.490000119", b"Contact sales", b"$0 / 1 hour"):
        changed = dataclasses.replace(page(), body=page().body.replace(b"$88.490000119 / 1 hour", words))
        assert [r.reason for r in COLLECTOR.parse([changed]).rejections] == ["not_a_price"]


def test_busy_empty_and_truncated_answers_are_never_an_empty_success():
    busy = b"<html><head><title>Just a moment...</title></head><body></body></html>"
    with pytest.raises(Blocked):
        COLLECTOR.parse([dataclasses.replace(page(), body=busy)])
    for document in (
        dataclasses.replace(page(), body=b""),
        dataclasses.replace(page(), body=page().body[:900]),
        dataclasses.replace(skus(*A2), body=b'{"skus": []}'),
        dataclasses.replace(skus(*A2), body=b'{"items": []}'),
        dataclasses.replace(skus(*A2, A100), body=skus(*A2, A100).body[:-30]),
        skus(*A2),
    ):
        with pytest.raises(LayoutChanged):
            COLLECTOR.parse([document])
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([])


@pytest.mark.needs_recordings
def test_the_recorded_page_reads_as_a_person_reads_it(recordings):
    name = "accelerator-optimized_pricing_us-central1_2026-10_trimmed.html"
    document = dataclasses.replace(read_recorded(recordings / name, "gcp"), url=PAGE)
    result = COLLECTOR.parse([document])
    assert not result.rejections
    assert len(result.rows) == 35
    prices = {
        (r.offer.source_sku, r.offer.purchase_option, r.offer.commitment_days): r.quote.price for r in result.rows
    }
    by_hand = {
        ("a4-highgpu-8g/flex-start", "scheduled", 0): "64.4400",
        ("a4-highgpu-8g/calendar", "scheduled", 0): "90.22",
        ("a4-highgpu-8g", "spot", 0): "39.6336",
        ("a4-highgpu-8g", "reserved", 365): "88.9272",
        ("a4-highgpu-8g", "reserved", 1095): "56.7072",
        ("a3-ultragpu-8g", "spot", 0): "50.874449096",
        ("a3-ultragpu-8g/flex-start", "scheduled", 0): "42.4",
        ("a3-megagpu-8g", "on_demand", 0): "93.400712807",
        ("a3-megagpu-8g/calendar", "scheduled", 0): "44",
        ("a3-highgpu-8g", "on_demand", 0): "88.490000119",
        ("a3-highgpu-8g", "reserved", 1095): "38.864383195",
        ("a2-ultragpu-1g", "on_demand", 0): "5.06879789",
        ("a2-ultragpu-8g", "on_demand", 0): "40.550383123",
        ("a2-ultragpu-8g/flex-start", "scheduled", 0): "19.2",
        ("a2-highgpu-1g/flex-start", "scheduled", 0): "2",
        ("a2-highgpu-1g", "spot", 0): "2.20401",
        ("a2-highgpu-1g", "reserved", 365): "2.31420704",
    }
    assert {k: prices[k] for k in by_hand} == {k: Decimal(v) for k, v in by_hand.items()}
    assert ("a2-ultragpu-8g", "reserved", 365) not in prices


def test_a_machine_beside_another_gpu_than_its_own_is_rejected():
    document = page()
    swapped = dataclasses.replace(document, body=document.text().replace("Nvidia H200", "Nvidia B200").encode())
    assert swapped.body != document.body
    result = COLLECTOR.parse([swapped])
    assert [(r.reason, r.value) for r in result.rejections] == [("gpu_mismatch", "Nvidia B200")]
    assert not [r for r in result.rows if r.offer.instance_type == "a3-ultragpu-8g"]


def test_a_token_that_comes_twice_leads_nowhere():
    one, two = (
        skus(*A2, gpu("Nvidia Tesla A100 GPU running in Iowa", "2.9"), token="t"),
        skus(*A2, token="t", asked="t"),
    )
    assert not COLLECTOR.parse([one, two]).complete
    assert COLLECTOR.parse([one, skus(*A2, asked="t")]).complete


def test_a_price_that_begins_later_is_not_todays():
    card = gpu("Nvidia Tesla A100 GPU running in Iowa", "2.9")
    later = gpu("Nvidia Tesla A100 GPU running in Iowa", "3.9")["pricingInfo"][0]
    timeline = [card["pricingInfo"][0] | {"effectiveTime": "2026-01-01T00:00:00Z"},
                later | {"effectiveTime": "2027-01-01T00:00:00Z"}]  # fmt: skip
    today = read(parse(*A2, card))
    assert today
    assert read(parse(*A2, card | {"pricingInfo": timeline})) == today
    with pytest.raises(LayoutChanged):
        parse(*A2, card | {"pricingInfo": timeline[1:]})


@pytest.mark.parametrize("field", ["description", "category"])
def test_one_sku_without_a_field_is_rejected_alone(field):
    card = gpu("Nvidia Tesla A100 GPU running in Iowa", "2.9")
    whole = parse(*A2, card)
    odd = {key: value for key, value in sku("Something else", "1").items() if key != field}
    result = parse(*A2, card, odd)
    assert read(result) == read(whole)
    assert len(result.rejections) == len(whole.rejections) + 1
    with pytest.raises(LayoutChanged):
        parse(odd)
