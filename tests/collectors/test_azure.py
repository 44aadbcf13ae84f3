"""Azure retail prices: what tells one price from its look-alikes, sizes without specifications, and the pages."""

import dataclasses
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.types import Document
from collectors.azure import API, FAMILIES, Azure
from collectors.azure_sizes import size_facts
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded

COLLECTOR = Azure()
FETCHED_AT = datetime(2026, 11, 30, tzinfo=UTC)


def item(size="Standard_NC24ads_A100_v4", price=3.673, meter=None, **fields):
    name = meter or size.removeprefix("Standard_").replace("_", " ")
    return {
        "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": price, "unitPrice": price,
        "armRegionName": "eastus", "location": "US East", "effectiveStartDate": "2024-01-01T00:00:00Z",
        "meterName": name, "skuName": name, "productName": "Virtual Machines Series",
        "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption",
        "isPrimaryMeterRegion": True, "armSkuName": size, **fields,
    }  # fmt: skip


def page(*items, link=None, query="", count=None):
    body = {"BillingCurrency": "USD", "Items": list(items), "NextPageLink": link, "Count": count or len(items)}
    return Document("azure", f"{API}?$filter=a{query}", json.dumps(body).encode(), FETCHED_AT)


def parse(*items):
    return COLLECTOR.parse([page(*items)])


def priced(result):
    return {(r.offer.purchase_option, r.offer.commitment_days): r.quote.price for r in result.rows}


@pytest.mark.parametrize("product", [None, ""])
def test_a_row_of_an_unnamed_product_may_be_windows_and_is_rejected(product):
    result = parse(item(price=4.777, productName=product), item("Standard_ND96isr_H100_v5", price=98.32))
    assert {r.quote.price for r in result.rows} == {Decimal("98.32")}
    assert [(r.reason, r.field) for r in result.rejections] == [("field_missing", "productName")]


def test_asks_for_every_accelerated_family():
    requests = list(COLLECTOR.requests({}))
    assert [r.name for r in requests] == [*(f"{f.lower()}-0" for f in FAMILIES), "extras-0"]
    assert all("2023-01-01-preview" in r.url for r in requests)


@pytest.mark.parametrize(
    "other",
    [
        item(price=4.777, productName="Virtual Machines NCads A100 v4 Series Windows"),
        item(price=4.777, productName="NCads A100 v4 Series Win"),
        item(price=0.7346, meter="NC24ads A100 v4 Low Priority"),
        item(price=3.01, type="DevTestConsumption"),
        item(price=3.3, effectiveStartDate="2027-01-01T00:00:00Z"),
        item(price=3.9, effectiveStartDate="2023-01-01T00:00:00Z"),
        item(price=2.0, productName="NCads A100 v4 Series Cloud Services"),
        item(price=29.0, productName="NCads A100 v4 Series Dedicated Host"),
        item(price=3.1, isPrimaryMeterRegion=False, effectiveStartDate="2025-01-01T00:00:00Z"),
    ],
)
def test_look_alikes_do_not_become_the_linux_price(other):
    for order in ([item(), other], [other, item()]):
        assert priced(parse(*order)) == {("on_demand", 0): Decimal("3.673")}


def test_spot_is_its_own_offer_and_never_below_its_mark():
    result = parse(item(price=106.0), item(price=106.0, meter="NC24ads A100 v4 Spot"))
    assert priced(result) == {("on_demand", 0): Decimal("106.0"), ("spot", 0): Decimal("106.0")}


def test_a_reservation_is_paid_for_its_whole_term():
    result = parse(
        item(),
        item(price=20625.0, type="Reservation", reservationTerm="1 Year"),
        item(price=36234.0, type="Reservation", reservationTerm="3 Years"),
        item(price=1.0, type="Reservation"),
    )
    hourly = {r.offer.commitment_days: r.quote.price_usd_hour for r in result.rows}
    assert hourly == {0: 3.673, 365: pytest.approx(20625 / 8760), 1095: pytest.approx(36234 / 26280)}
    assert [r.reason for r in result.rejections] == ["term_unknown"]


def test_a_reservation_is_of_its_term_whatever_unit_stands_beside_it():
    result = parse(item(price=20625.0, type="Reservation", reservationTerm="1 Year", unitOfMeasure="1 Year"))
    assert [(r.quote.price_unit, r.offer.commitment_days) for r in result.rows] == [("term", 365)]


def test_savings_plans_are_hourly_and_apart_from_reservations():
    plans = [{"unitPrice": 2.6, "retailPrice": 2.6, "term": "1 Year"}, {"retailPrice": 1.7, "term": "3 Years"}]
    result = parse(item(savingsPlan=plans), item(price=20625.0, type="Reservation", reservationTerm="1 Year"))
    reserved = [r for r in result.rows if r.offer.purchase_option == "reserved"]
    assert {(r.offer.commitment_days, r.quote.price_unit) for r in reserved} == {
        (365, "hour"), (1095, "hour"), (365, "term"),
    }  # fmt: skip
    assert len({r.offer.offer_id for r in result.rows}) == 4


def test_zero_and_unknown_units_are_no_prices():
    result = parse(item(price=0.0), item(size="Standard_NC48ads_A100_v4", unitOfMeasure="1/Month"), item(
        size="Standard_NC96ads_A100_v4", price=14.692))  # fmt: skip
    assert [r.offer.gpu_count for r in result.rows] == [4]
    assert {r.reason for r in result.rejections} == {"not_a_price", "unit_unknown"}


def test_two_prices_in_force_at_once_give_none():
    result = parse(item(price=0.178), item(price=0.086), item(size="Standard_NC48ads_A100_v4", price=7.346))
    assert [r.offer.instance_type for r in result.rows] == ["Standard_NC48ads_A100_v4"]
    assert [r.reason for r in result.rejections] == ["price_ambiguous"]


def test_only_a_future_price_is_not_in_force():
    result = parse(item(effectiveStartDate="2027-01-01T00:00:00Z"))
    assert not result.rows
    assert [r.reason for r in result.rejections] == ["not_in_force"]


def test_regions_are_ids_in_lower_case_and_sovereign_ones_are_marked():
    result = parse(item(armRegionName="WestUS3"), item(armRegionName="usdodeast"))
    west, dod = result.rows
    assert (west.offer.region, west.offer.country, west.quote.flags) == ("westus3", "US", ())
    assert (dod.offer.country, dod.quote.availability, dod.quote.flags) == ("US", "limited", ("sovereign_region",))


def test_a_row_without_a_place_or_a_currency_is_rejected():
    result = parse(
        item(), item(armRegionName=None), item(armRegionName=""), item(currencyCode="oops", armRegionName="x")
    )
    assert len(result.rows) == 1
    assert {r.reason for r in result.rejections} == {"field_missing", "currency_unknown"}


def test_other_currencies_stay_native():
    [row] = parse(item(price=26.6, currencyCode="CNY", armRegionName="chinanorth3")).rows
    assert (row.quote.currency, row.quote.price_usd_hour, row.offer.country) == ("CNY", None, "CN")


@pytest.mark.parametrize(
    ("size", "gpu", "count", "fraction", "memory_gb"),
    [
        ("Standard_NV6ads_A10_v5", "a10-24gb", 1, "0.16667", 4),
        ("Standard_NV36adms_A10_v5", "a10-24gb", 1, "1.00000", 24),
        ("Standard_NV72ads_A10_v5", "a10-24gb", 2, "1.00000", 24),
        ("Standard_NV4ads_V710_v5", "radeon-pro-v710-28gb", 1, "0.16667", 4),
        ("Standard_NG8ads_V620_v1", "radeon-pro-v620-32gb", 1, "0.25000", 8),
        ("Standard_NV4as_v4", "mi25-16gb", 1, "0.12500", 2),
        ("Standard_NC4as_T4_v3", "t4-16gb", 1, "1.00000", 16),
        ("Standard_NC64as_T4_v3", "t4-16gb", 4, "1.00000", 16),
        ("Standard_NC24rs_v3", "v100-pcie-16gb", 4, "1.00000", 16),
        ("Standard_ND40rs_v2", "v100-sxm-32gb", 8, "1.00000", 32),
        ("Standard_ND96asr_v4", "a100-sxm-40gb", 8, "1.00000", 40),
        ("Standard_ND96amsr_A100_v4", "a100-sxm-80gb", 8, "1.00000", 80),
        ("Standard_NC80adis_H100_v5", "h100-nvl-94gb", 2, "1.00000", 94),
        ("Standard_NCC40ads_H100_v5", "h100-nvl-94gb", 1, "1.00000", 94),
        ("Standard_ND48s_H100_v5", "h100-sxm-80gb", 4, "1.00000", 80),
        ("Standard_ND96isr_H200_v5", "h200-sxm-141gb", 8, "1.00000", 141),
        ("Standard_ND96is_MI300X_v5", "mi300x-192gb", 8, "1.00000", 192),
        ("Standard_ND128isr_NDR_GB200_v6", "gb200-186gb", 4, "1.00000", 186),
        ("Standard_ND128isrG5_GB300_v6", "gb300-288gb", 4, "1.00000", 288),
        ("Standard_NC320lds_xl_RTXPRO6000BSE_v6", "rtx-pro-6000-blackwell-server-96gb", 2, "1.00000", 96),
    ],
)
def test_a_size_name_gives_gpu_count_and_share(size, gpu, count, fraction, memory_gb):
    [row] = parse(item(size=size, price=6.0 * count * float(fraction))).rows
    offer = row.offer
    assert (offer.gpu, offer.gpu_count, str(offer.gpu_fraction)) == (gpu, count, fraction)
    assert offer.gpu_memory_gb == pytest.approx(memory_gb, rel=0.01)


def test_rdma_is_the_feature_letter_r():
    assert size_facts("Standard_ND96isr_H100_v5").rdma
    assert not size_facts("Standard_ND96is_H100_v5").rdma
    assert size_facts("Standard_ND96is_H100_v5").network_gbps != 3200


def test_an_unknown_series_is_seen_once_and_never_guessed():
    odd = "Standard_ND128isr_VR200_v7"
    result = parse(item(), item(size=odd, price=99.0), item(size=odd, price=98.0, armRegionName="westus3"))
    assert len(result.rows) == 1
    assert result.unmapped == ("VR200",)
    assert [(r.reason, r.value) for r in result.rejections] == [("size_unknown", odd)]


def test_fpgas_and_empty_names_are_not_gpus():
    assert len(parse(item(), item(size="Standard_NP10s", price=1.65), item(size="", price=1.0)).rows) == 1


def test_follow_walks_by_offset_and_stops():
    link = "https://prices.azure.com:443/api/retail/prices?$filter=a&$skip=1000"
    [following] = COLLECTOR.follow(page(item(), link=link))
    assert "$skip=1000" in following.url
    assert "api-version=" in following.url
    assert ":443" not in following.url
    for ended in (None, ""):
        assert not list(COLLECTOR.follow(page(item(), link=ended)))
    assert not list(COLLECTOR.follow(page(item(), link=link, query="&$skip=1000")))
    assert not list(COLLECTOR.follow(page(link=link.replace("1000", "2000"), query="&$skip=1000")))


def test_a_full_page_without_a_link_asks_for_the_next():
    full = page(*[item(price=3 + n / 1000, armRegionName=f"r{n}") for n in range(100)])
    [following] = COLLECTOR.follow(full)
    assert "$skip=100" in following.url
    assert not COLLECTOR.parse([full]).complete
    assert COLLECTOR.parse([full, page(query="&$skip=100")]).complete


def test_pages_must_end_and_must_differ():
    first, second = item(), item(size="Standard_NC48ads_A100_v4", price=7.346)
    link = f"{API}?$filter=a&$skip=1000"
    assert COLLECTOR.parse([page(first, link=link), page(second, link="")]).complete
    assert not COLLECTOR.parse([page(first, link=link)]).complete
    assert not COLLECTOR.parse([page(first, link=link), page(second, link=link + "0")]).complete
    repeated = COLLECTOR.parse([page(first, link=link), page(second, link=link), page(second)])
    assert not repeated.complete
    assert len(repeated.rows) == 2
    moved = COLLECTOR.parse([page(first, second, link=link), page(second)])
    assert moved.complete
    assert len(moved.rows) == 2


def extra(meter, price, unit, **fields):
    return item(size="", price=price, meter=meter, **{"unitOfMeasure": unit, "productName": "", **fields})


def test_disks_addresses_and_traffic_are_surcharges():
    routing = {"productName": "Rtn Preference: MGN"}
    result = parse(
        item(),
        extra("E30 LRS Disk", 76.8, "1/Month"), extra("E30 LRS Disk Operations", 0.002, "10K"),
        extra("P10 LRS Disk Mount", 1.18, "1/Month"), extra("Standard IPv4 Static Public IP", 0.005, "1 Hour"),
        extra("Standard Data Transfer Out", 0.0, "1 GB", **routing),
        extra("Standard Data Transfer Out", 0.083, "1 GB", tierMinimumUnits=10340.0, **routing),
        extra("Standard Data Transfer Out", 0.087, "1 GB", tierMinimumUnits=100.0, **routing),
        extra("Standard Data Transfer Out", 0.08, "1 GB", tierMinimumUnits=100.0, productName="Bandwidth - Other"),
    )  # fmt: skip
    assert {(s.kind, s.price, s.unit, s.region) for s in result.surcharges} == {
        ("block_storage", Decimal("0.069849193096"), "gb_month", "eastus"),
        ("public_ipv4", Decimal("0.005"), "hour", "eastus"),
        ("egress", Decimal("0.087"), "gb", "eastus"),
    }
    [egress] = [s for s in result.surcharges if s.kind == "egress"]
    assert egress.included_quantity == 100
    assert [(t.from_quantity, t.price) for t in egress.tiers] == [(100, Decimal("0.087")), (10340, Decimal("0.083"))]


@pytest.mark.parametrize("key", ["armSkuName", "armRegionName", "retailPrice", "unitOfMeasure", "type", "productName"])
def test_a_renamed_key_is_a_changed_layout(key):
    [document] = [d for d in fixture_documents("azure") if d.name == "nd-0"]
    renamed = dataclasses.replace(document, body=document.body.replace(f'"{key}"'.encode(), b'"renamed"'))
    with pytest.raises(LayoutChanged, match=key):
        COLLECTOR.parse([renamed])


def test_without_names_of_meters_spot_cannot_be_told():
    bare = {k: v for k, v in item().items() if k not in ("meterName", "skuName")}
    with pytest.raises(LayoutChanged, match="meterName"):
        parse(bare)
    assert [r.reason for r in parse(item(), {**bare, "armRegionName": "westus"}).rejections] == ["field_missing"]


def test_empty_truncated_and_foreign_answers_are_never_an_empty_success():
    [document] = [d for d in fixture_documents("azure") if d.name == "nd-0"]
    for body in (b"", document.body[:-200], b'{"Items": []}', b'{"items": []}', b"<html>busy</html>"):
        with pytest.raises(LayoutChanged):
            COLLECTOR.parse([dataclasses.replace(document, body=body)])
    with pytest.raises(LayoutChanged, match="N size"):
        parse(item(size="Standard_D2s_v5", price=0.096))
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([])


@pytest.mark.needs_recordings
def test_public_recordings_read_as_a_person_reads_them(recordings):
    rows, skipped = [], 0
    for path in sorted(recordings.glob("retail_prices_*.json")):
        raw = json.loads(path.read_bytes())
        items = raw if isinstance(raw, list) else raw["Items"]
        skipped += sum(
            "Windows" in i["productName"] or "Low Priority" in i["meterName"] or i["type"] != "Consumption"
            for i in items
        )  # fmt: skip
        if "full_field" in path.name:  # two CPU rows: a DevTest spot price and a reservation
            with pytest.raises(LayoutChanged, match="N size"):
                COLLECTOR.parse([read_recorded(path, "azure")])
            continue
        result = COLLECTOR.parse([read_recorded(path, "azure")])
        assert not result.rejections
        assert not result.unmapped
        rows += result.rows
    assert skipped == 14
    read = {
        (r.offer.instance_type, r.offer.region, r.offer.purchase_option): (
            r.offer.gpu,
            r.offer.gpu_count,
            r.quote.price,
        )
        for r in rows
    }
    assert len(rows) == 17
    assert read == {
        ("Standard_NC48ads_A100_v4", "eastus2", "on_demand"): ("a100-pcie-80gb", 2, Decimal("7.346")),
        ("Standard_ND96isr_H200_v5", "usgovvirginia", "on_demand"): ("h200-sxm-141gb", 8, Decimal("106.0")),
        ("Standard_NC40ads_H100_v5", "uaenorth", "on_demand"): ("h100-nvl-94gb", 1, Decimal("9.98")),
        ("Standard_NC80adis_H100_v5", "uksouth", "on_demand"): ("h100-nvl-94gb", 2, Decimal("17.45")),
        ("Standard_NC24ads_A100_v4", "westus3", "on_demand"): ("a100-pcie-80gb", 1, Decimal("3.673")),
        ("Standard_ND96isr_H100_v5", "westus3", "on_demand"): ("h100-sxm-80gb", 8, Decimal("98.32")),
        ("Standard_ND96isr_H100_v5", "eastus", "on_demand"): ("h100-sxm-80gb", 8, Decimal("98.32")),
        ("Standard_ND96asr_v4", "eastus", "spot"): ("a100-sxm-40gb", 8, Decimal("5.904469")),
        ("Standard_ND96isr_H200_v5", "uksouth", "spot"): ("h200-sxm-141gb", 8, Decimal("106.0")),
        ("Standard_NC24ads_A100_v4", "eastus", "spot"): ("a100-pcie-80gb", 1, Decimal("0.67877")),
        ("Standard_ND96amsr_A100_v4", "westeurope", "on_demand"): ("a100-sxm-80gb", 8, Decimal("40.962")),
        ("Standard_ND96amsr_A100_v4", "westeurope", "spot"): ("a100-sxm-80gb", 8, Decimal("10.551811")),
        ("Standard_ND96isr_MI300X_v5", "northeurope", "on_demand"): ("mi300x-192gb", 8, Decimal("57.6")),
        ("Standard_ND96isr_MI300X_v5", "centralus", "spot"): ("mi300x-192gb", 8, Decimal("10.910777")),
        ("Standard_ND96isr_H100_v5", "japaneast", "on_demand"): ("h100-sxm-80gb", 8, Decimal("142.564")),
        ("Standard_ND96isr_H100_v5", "eastus", "spot"): ("h100-sxm-80gb", 8, Decimal("18.169536")),
    }


def test_a_price_that_has_ended_is_not_in_force():
    ended = item(price=3.0, effectiveStartDate="2026-01-01T00:00:00Z", effectiveEndDate="2026-06-01T00:00:00Z")
    assert priced(parse(item(), ended)) == {("on_demand", 0): Decimal("3.673")}
    ends_later = {**ended, "effectiveEndDate": "2027-01-01T00:00:00Z"}
    assert priced(parse(item(), ends_later)) == {("on_demand", 0): Decimal("3.0")}


def test_a_family_without_an_item_makes_the_run_partial():
    empty = dataclasses.replace(page(), url=f"{API}?$filter=b")
    result = COLLECTOR.parse([page(item()), empty])
    assert len(result.rows) == 1
    assert not result.complete
    assert result.notes == (f"{empty.url} holds no item",)
