"""Prime Intellect: offers of other clouds, pages against the announced total, spot, disks beside the price."""

import dataclasses
import json

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.primeintellect import Primeintellect


def item(**fields):
    base = {
        "cloudId": "gpu_8x_h100", "gpuType": "H100_80GB", "socket": "SXM5", "provider": "lambdalabs",
        "region": "united_states", "dataCenter": "us-east-1", "country": "US", "gpuCount": 8, "gpuMemory": 80,
        "disk": {"defaultCount": 500, "defaultIncludedInPrice": True}, "vcpu": {"defaultCount": 208},
        "memory": {"defaultCount": 1800}, "interconnect": None, "interconnectType": None, "stockStatus": "High",
        "security": "secure_cloud", "isSpot": None, "prepaidTime": None,
        "prices": {"onDemand": 19.2, "communityPrice": None, "isVariable": None, "currency": "USD"},
    }  # fmt: skip
    return base | fields


def page(items, total=None, number=1):
    fixture = fixture_documents("primeintellect")[0]
    body = {"items": items, "totalCount": len(items) if total is None else total}
    url = fixture.url.replace("page=1&", f"page={number}&")
    return dataclasses.replace(fixture, url=url, body=json.dumps(body).encode())


def parse(*items):
    return Primeintellect().parse([page([*items])])


def test_price_is_of_the_whole_offer():
    (row,) = parse(item()).rows
    assert (row.quote.price_usd_hour, row.quote.price_usd_gpu_hour) == (19.2, 2.4)
    assert (row.offer.provider, row.offer.via, row.offer.gpu) == ("lambda_cloud", "primeintellect", "h100-sxm-80gb")
    assert (row.offer.local_storage_gb, row.quote.availability, row.quote.flags) == (500, "available", ())


def test_spot_and_community():
    assert parse(item(isSpot=True)).rows[0].offer.purchase_option == "spot"
    prices = {"onDemand": None, "communityPrice": 1.1, "currency": "USD"}
    (row,) = parse(item(security="community_cloud", prices=prices, gpuCount=1)).rows
    assert (row.offer.tenancy, row.quote.price_usd_hour) == ("community", 1.1)


def test_a_disk_that_is_extra_is_said_and_not_counted_as_storage():
    (row,) = parse(item(disk={"defaultCount": 120, "defaultIncludedInPrice": False})).rows
    assert row.offer.local_storage_gb is None
    assert row.quote.flags == ("disk_not_included",)


@pytest.mark.parametrize(
    ("status", "availability"),
    [
        ("Available", "available"),
        ("Medium", "available"),
        ("Low", "limited"),
        ("Unavailable", "unavailable"),
        (None, "unknown"),
    ],
)
def test_stock(status, availability):
    assert parse(item(stockStatus=status)).rows[0].quote.availability == availability


def test_one_type_in_two_sizes_are_two_offers():
    assert len({r.offer.offer_id for r in parse(item(), item(gpuCount=4, prices={"onDemand": 9.6})).rows}) == 2


def test_network():
    (row,) = parse(item(interconnect=3200, interconnectType="InfiniBand")).rows
    assert (row.offer.network_gbps, row.offer.rdma) == (3200, True)


def test_pages_are_followed_until_the_total():
    first = page([item()], total=250)
    (second,) = Primeintellect().follow(first)
    assert "page=2&" in second.url
    assert not second.headers
    assert list(Primeintellect().follow(page([item()], total=250, number=3))) == []


def test_missing_pages_make_the_run_incomplete():
    assert not Primeintellect().parse([page([item()], total=2)]).complete
    two = [page([item()], total=2), page([item(dataCenter="x")], total=2, number=2)]
    assert Primeintellect().parse(two).complete


def test_cpu_nodes_are_left_out_and_bad_prices_rejected():
    zero = item(dataCenter="y", prices={"onDemand": 0})
    parsed = parse(item(), item(gpuType="CPU_NODE", dataCenter="x"), zero, item(gpuCount=0))
    assert len(parsed.rows) == 1
    assert [r.reason for r in parsed.rejections] == ["not_a_price"]


@pytest.mark.parametrize(
    "body",
    [{"items": []}, {"items": [], "totalCount": 0}, {"totalCount": 3}, {"items": [{"cloudId": "x"}], "totalCount": 1}],
)
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        Primeintellect().parse([dataclasses.replace(page([]), body=json.dumps(body).encode())])


@pytest.mark.needs_recordings
def test_public_recording(recordings):
    path = recordings / "availability_response.json"
    parsed = Primeintellect().parse([read_recorded(path, "primeintellect")])
    raw = json.loads(path.read_bytes())
    assert not parsed.complete, "the recording is one page of 608 items"
    assert [float(r.quote.price) for r in parsed.rows] == [i["prices"]["onDemand"] for i in raw["items"]]
    assert [r.offer.region for r in parsed.rows] == [i["dataCenter"] for i in raw["items"]]
    assert [r.offer.memory_gib for r in parsed.rows] == [i["memory"]["defaultCount"] for i in raw["items"]]
    assert {r.offer.gpu for r in parsed.rows} == {"a100-pcie-80gb", "a100-sxm-80gb", "h100-sxm-80gb", "h100-pcie-80gb"}


@pytest.mark.parametrize("name", [None, "", "unknown"])
def test_gpus_without_a_name_are_no_offer(name):
    result = parse(item(gpuType=name, socket=None), item(cloudId="l4", gpuType="L4_24GB", socket="PCIe"))
    assert [r.offer.gpu for r in result.rows] == ["l4-24gb"]
    assert [r.reason for r in result.rejections] == ["gpu_unnamed"]
