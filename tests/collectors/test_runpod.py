"""RunPod: two clouds, placeholders, missing stock, doubtful spot prices, sizes, and the catalogue that succeeds it."""

import dataclasses
import json
from datetime import UTC, datetime

import pytest

from catalog.types import Document
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.runpod import CATALOG_URL, GRAPHQL_URL, PRICING_URL, Runpod

NOW = datetime(2026, 10, 10, tzinfo=UTC)
NO_STOCK = dict.fromkeys(("minimumBidPrice", "uninterruptablePrice", "minVcpu", "minMemory", "stockStatus"))


def gpu(**fields):
    base = {
        "id": "NVIDIA L40S", "displayName": "L40S", "memoryInGb": 48, "secureCloud": True, "communityCloud": False,
        "securePrice": 0.86, "communityPrice": 0, "secureSpotPrice": None, "communitySpotPrice": None,
        "clusterPrice": None, "minPodGpuCount": 1, "maxGpuCount": 8, "maxGpuCountSecureCloud": 1,
        "maxGpuCountCommunityCloud": 1, "nodeGroupDatacenters": [],
    }  # fmt: skip
    return base | fields


def document(body, url=GRAPHQL_URL):
    return Document("runpod", url, json.dumps(body).encode(), NOW)


def parse(*gpus):
    return Runpod().parse([document({"data": {"gpuTypes": list(gpus)}})])


def prices(parsed):
    return {(r.offer.tenancy, r.offer.purchase_option, r.offer.gpu_count): r.quote.price_usd_hour for r in parsed.rows}


def test_two_clouds_are_two_offers():
    found = prices(parse(gpu(communityCloud=True, communityPrice=0.49)))
    assert found == {("secure", "on_demand", 1): 0.86, ("community", "on_demand", 1): 0.49}


@pytest.mark.parametrize("price", [0, 0.5, None])
def test_a_cloud_that_does_not_offer_the_type_gives_nothing(price):
    parsed = parse(gpu(communityPrice=price))
    assert prices(parsed) == {("secure", "on_demand", 1): 0.86}
    assert not parsed.rejections


def test_without_flags_the_placeholder_is_not_a_price():
    bare = gpu(communityPrice=0.5)
    del bare["secureCloud"], bare["communityCloud"]
    parsed = parse(bare)
    assert prices(parsed) == {("secure", "on_demand", 1): 0.86}
    assert [r.reason for r in parsed.rejections] == ["placeholder_price"]


@pytest.mark.parametrize("price", [0, None, "N/A", -1])
def test_an_offered_cloud_without_a_price_is_rejected(price):
    parsed = parse(gpu(securePrice=price))
    assert not parsed.rows
    assert [r.reason for r in parsed.rejections] == ["not_a_price"]


def test_doubtful_prices_are_not_exchanged():
    parsed = parse(gpu(securePrice=0.43, secureSpotPrice=0.86))
    assert not parsed.rows
    assert [r.reason for r in parsed.rejections] == ["prices_look_swapped"]


@pytest.mark.parametrize("spot", [0.86, 0.9, 0, None])
def test_a_spot_price_that_saves_nothing_is_no_spot_offer(spot):
    assert prices(parse(gpu(secureSpotPrice=spot))) == {("secure", "on_demand", 1): 0.86}


def test_spot_is_priced_per_gpu_too():
    found = prices(parse(gpu(secureSpotPrice=0.4, maxGpuCountSecureCloud=2)))
    assert found["secure", "spot", 2] == 0.8


def test_a_bid_below_on_demand_is_a_spot_price_and_one_equal_to_it_is_not():
    stock = NO_STOCK | {"uninterruptablePrice": 0.86, "stockStatus": "High"}
    assert ("secure", "spot", 1) in prices(parse(gpu(lowestPrice=stock | {"minimumBidPrice": 0.5})))
    assert ("secure", "spot", 1) not in prices(parse(gpu(lowestPrice=stock | {"minimumBidPrice": 0.86})))


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [({"maxGpuCountSecureCloud": 8}, {1, 2, 4, 8}), ({"maxGpuCountSecureCloud": 6}, {1, 2, 4, 6}),
     ({"maxGpuCountSecureCloud": 8, "minPodGpuCount": 4}, {4, 8}), ({"maxGpuCountSecureCloud": None}, {1, 2, 4, 8}),
     ({"maxGpuCountSecureCloud": None, "maxGpuCount": None}, {1}), ({"maxGpuCountSecureCloud": 0}, set())],
)  # fmt: skip
def test_sizes_follow_the_stated_limits(fields, sizes):
    parsed = parse(gpu(**fields))
    assert {r.offer.gpu_count for r in parsed.rows} == sizes
    assert all(r.quote.price_usd_hour == pytest.approx(0.86 * r.offer.gpu_count) for r in parsed.rows)


@pytest.mark.parametrize(
    ("status", "availability"),
    [("High", "available"), ("Medium", "available"), ("Low", "limited"), ("None", "unavailable"), ("Odd", "unknown"),
     (None, "unavailable")],
)  # fmt: skip
def test_stock(status, availability):
    parsed = parse(gpu(secure1=NO_STOCK | {"stockStatus": status, "minVcpu": 8, "minMemory": 50}))
    (row,) = parsed.rows
    assert row.quote.availability == availability
    assert (row.offer.vcpu_count, row.offer.memory_gib) == (8, 50)


def test_no_stock_keeps_the_price_and_is_no_error():
    (row,) = parse(gpu(lowestPrice=NO_STOCK)).rows
    assert (row.quote.availability, row.quote.price_usd_hour, row.offer.memory_gib) == ("unavailable", 0.86, None)


def test_stock_of_one_size_says_nothing_about_another():
    parsed = parse(gpu(maxGpuCountSecureCloud=2, secure1=NO_STOCK | {"stockStatus": "High"}))
    assert {r.offer.gpu_count: r.quote.availability for r in parsed.rows} == {1: "available", 2: "unknown"}


def test_stock_without_a_cloud_belongs_to_the_cloud_of_its_price():
    stock = NO_STOCK | {"uninterruptablePrice": 0.49, "stockStatus": "High"}
    parsed = parse(gpu(communityCloud=True, communityPrice=0.49, lowestPrice=stock))
    assert {r.offer.tenancy: r.quote.availability for r in parsed.rows} == {
        "secure": "unknown", "community": "available",
    }  # fmt: skip


def test_a_type_that_nobody_offers_is_no_offer_and_no_error():
    parsed = parse(gpu(secureCloud=False, securePrice=0, lowestPrice=NO_STOCK))
    assert not parsed.rows
    assert not parsed.rejections


def test_clusters_need_stock_and_a_place():
    cluster = {"clusterPrice": 1.5, "nodeGroupDatacenters": [{"id": "US-KS-2"}], "maxGpuCountSecureCloud": 8}
    parsed = parse(gpu(**cluster, secure8=NO_STOCK | {"stockStatus": "High", "minVcpu": 128, "minMemory": 1024}))
    (row,) = [r for r in parsed.rows if r.offer.network_option]
    assert (row.offer.region, row.offer.gpu_count, row.quote.price_usd_hour) == ("US-KS-2", 8, 12)
    parsed = parse(gpu(**cluster, secure8=NO_STOCK))
    assert not any(r.offer.network_option for r in parsed.rows)
    assert [r.reason for r in parsed.rejections] == ["no_stock"]


def test_display_name_only_where_the_id_is_not_exact():
    (row,) = parse(gpu(id="NVIDIA H200", displayName="H200 SXM", memoryInGb=141)).rows
    assert row.offer.gpu == "h200-sxm-141gb"
    (row,) = parse(gpu(id="NVIDIA RTX PRO 6000 Blackwell Server Edition", displayName="RTX PRO 6000")).rows
    assert row.offer.gpu == "rtx-pro-6000-blackwell-server-96gb"


def test_slices_are_fractions():
    (row,) = parse(gpu(id="NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", memoryInGb=24)).rows
    assert float(row.offer.gpu_fraction) == 0.25
    assert row.quote.price_usd_gpu_hour == pytest.approx(0.86 * 4)


CATALOG = {
    "id": "NVIDIA L40S", "name": "L40S", "memory": 48, "secure": True, "community": True, "availability": "LOW",
    "price": {"secure": 0.9, "community": 0.5, "serverless": 1.2}, "maxCount": {"secure": 2, "community": 1},
}  # fmt: skip


def test_the_catalogue_alone():
    parsed = Runpod().parse([document({"gpus": [CATALOG]}, CATALOG_URL)])
    assert prices(parsed) == {
        ("secure", "on_demand", 1): 0.9, ("secure", "on_demand", 2): 1.8, ("community", "on_demand", 1): 0.5,
        ("serverless", "on_demand", 1): 1.2,
    }  # fmt: skip
    assert {r.offer.tenancy: r.quote.availability for r in parsed.rows if r.offer.gpu_count == 1} == {
        "secure": "limited", "community": "limited", "serverless": "unknown",
    }  # fmt: skip


def test_offers_keep_their_identity_when_the_catalogue_takes_over():
    def ids(parsed):
        return {r.offer.offer_id for r in parsed.rows if r.offer.tenancy == "secure" and r.offer.gpu_count == 1}

    both = [document({"data": {"gpuTypes": [gpu()]}}), document({"gpus": [CATALOG]}, CATALOG_URL)]
    assert ids(Runpod().parse(both[:1])) == ids(Runpod().parse(both[1:])) == ids(Runpod().parse(both))
    assert not Runpod().parse(both).rejections


def test_the_catalogue_is_asked_only_with_a_key():
    assert [r.url for r in Runpod().requests({})] == [GRAPHQL_URL, PRICING_URL]
    keyed = {r.url: r for r in Runpod().requests({"RUNPOD_API_KEY": "topsecret"})}
    assert keyed[CATALOG_URL].headers["authorization"] == "Bearer topsecret"
    assert "topsecret" not in str(keyed[GRAPHQL_URL])


def test_pricing_page_of_another_wording_is_noted():
    page = next(d for d in fixture_documents("runpod") if d.name == "pricing")
    assert [s.kind for s in Runpod().parse([page]).surcharges] == ["block_storage", "egress", "ingress"]
    parsed = Runpod().parse([dataclasses.replace(page, body=b"# Pricing\n\nAsk us.")])
    assert not parsed.surcharges
    assert parsed.notes


@pytest.mark.parametrize(
    "body",
    [{"errors": [{"message": "Cannot query field"}]}, {"errors": [{"message": "x"}], "data": None},
     {"data": {"gpuTypes": []}}, {"data": {"gpuTypes": [{"name": "L40S"}]}}, {"data": {}}, {"gpus": []},
     {"gpus": [{"id": "NVIDIA L40S"}]}, []],
)  # fmt: skip
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        Runpod().parse([document(body)])


@pytest.mark.needs_recordings
def test_public_recordings(recordings):
    path = recordings / "graphql_gpuTypes_2026-10.json"
    parsed = Runpod().parse([read_recorded(path, "runpod")])
    raw = {g["id"]: g for g in json.loads(path.read_bytes())["data"]["gpuTypes"]}
    assert len(parsed.rows) == sum(
        p not in {0, 0.5} for g in raw.values() for p in (g["securePrice"], g["communityPrice"])
    )
    for row in parsed.rows:
        name = row.offer.instance_type.removeprefix("1x ")
        assert float(row.quote.price) == raw[name][f"{row.offer.tenancy}Price"]
        assert row.offer.gpu_memory_gb == pytest.approx(raw[name]["memoryInGb"], rel=0.02)
    assert not parsed.unmapped
    examples = Runpod().parse([read_recorded(recordings / "graphql_gpuTypes_doc_examples.json", "runpod")])
    found = prices(examples)
    assert (found["secure", "on_demand", 1], found["community", "spot", 1]) == (1.89, 0.89)
    assert found["community", "on_demand", 8] == pytest.approx(1.59 * 8)
    catalog = prices(Runpod().parse([read_recorded(recordings / "rest_v2_catalog_gpus_doc_example.json", "runpod")]))
    assert (catalog["secure", "on_demand", 8], catalog["community", "on_demand", 4]) == (pytest.approx(3.52), 1.24)
    assert ("community", "on_demand", 8) not in catalog
