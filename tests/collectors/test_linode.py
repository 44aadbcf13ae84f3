"""Akamai Cloud: labels instead of GPU fields, base prices of zero, region prices, and stock per region."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.linode import Linode

COLLECTOR = Linode()


@pytest.fixture
def documents():
    return {d.name: d for d in fixture_documents("linode")}


def with_plan(document, name, **fields):
    content = json.loads(document.body)
    next(p for p in content["data"] if p["id"] == name).update(fields)
    content["pages"] = content["page"] = 1
    return dataclasses.replace(document, body=json.dumps(content).encode())


def with_stock(document, *entries):
    data = [{"region": region, "plan": plan, "available": available} for region, plan, available in entries]
    return dataclasses.replace(document, body=json.dumps({"data": data, "page": 1, "pages": 1}).encode())


def rows(*found):
    return {(r.offer.instance_type, r.offer.region): r for r in COLLECTOR.parse(found).rows}


def test_follows_pages_of_each_list(documents):
    assert [r.name for r in COLLECTOR.requests({})] == ["types-1", "availability-1", "regions-1"]
    [second] = COLLECTOR.follow(documents["types-1"])
    assert (second.name, second.url) == ("types-2", documents["types-2"].url)
    assert list(COLLECTOR.follow(documents["types-3"])) == []
    assert list(COLLECTOR.follow(documents["availability-1"])) == []


def test_a_missing_page_makes_the_run_incomplete(documents):
    result = COLLECTOR.parse([documents["types-1"], documents["types-3"]])
    assert not result.complete
    assert "page 2 of 3" in result.notes[0]


def test_the_label_names_the_gpu_and_never_its_host_memory(documents):
    found = rows(*documents.values())
    oldest = found["g1-gpu-rtx6000-2", ""].offer
    assert (oldest.gpu, oldest.gpu_count, oldest.gpu_memory_gb) == ("quadro-rtx-6000-24gb", 2, 24)
    assert (oldest.memory_gib, oldest.gpu_label) == (64, "Dedicated 64GB + RTX6000 GPU x2")
    assert found["g2-gpu-rtx4000a4-m", ""].offer.gpu == "rtx-4000-ada-20gb"


def test_video_cards_and_cpu_plans_are_left_out(documents):
    assert not [name for name, _ in rows(*documents.values()) if "netint" in name or "nanode" in name]


def test_a_base_price_of_zero_is_no_offer(documents):
    result = COLLECTOR.parse(list(documents.values()))
    assert [(r.reason, r.sample) for r in result.rejections] == [("not_a_price", "g2-gpu-rtx4000a2-m")]


def test_a_base_price_of_zero_leaves_the_region_prices(documents):
    page = with_plan(
        documents["types-1"], "g2-gpu-rtx4000a2-m", region_prices=[{"id": "id-cgk", "hourly": 1.7, "monthly": 0}]
    )
    stock = with_stock(
        documents["availability-1"],
        ("id-cgk", "g2-gpu-rtx4000a2-m", True),
        ("us-ord", "g2-gpu-rtx4000a2-m", True),
    )
    found = rows(page, stock)
    priced = found["g2-gpu-rtx4000a2-m", "id-cgk"]
    assert (priced.quote.price, priced.offer.country, priced.quote.availability) == (Decimal("1.7"), "ID", "available")
    assert ("g2-gpu-rtx4000a2-m", "us-ord") not in found


def test_region_prices_override_and_stock_joins(documents):
    name = "g3-gpu-rtxpro6000-blackwell-1"
    page = with_plan(documents["types-1"], name, region_prices=[{"id": "id-cgk", "hourly": 3.6, "monthly": 0}])
    stock = with_stock(documents["availability-1"], ("id-cgk", name, False), ("us-sea", name, True))
    found = {region: r for (plan, region), r in rows(page, stock, documents["regions-1"]).items() if plan == name}
    assert {region: (r.quote.price, r.quote.availability) for region, r in found.items()} == {
        "id-cgk": (Decimal("3.6"), "unavailable"),
        "us-sea": (Decimal(3), "available"),
    }
    assert found["us-sea"].offer.country == "US"


def test_a_region_price_of_zero_is_rejected(documents):
    name = "g3-gpu-rtxpro6000-blackwell-1"
    page = with_plan(documents["types-1"], name, region_prices=[{"id": "id-cgk", "hourly": 0, "monthly": 0}])
    result = COLLECTOR.parse([page])
    assert {(r.reason, r.sample) for r in result.rejections} >= {("not_a_price", f"{name} id-cgk")}
    assert [r.offer.region for r in result.rows if r.offer.instance_type == name] == [""]


def test_an_unknown_label_is_kept_as_unmapped(documents):
    page = with_plan(documents["types-2"], "g2-gpu-rtx4000a1-s", label="Mystery Accelerator x1 Small")
    result = COLLECTOR.parse([page])
    assert result.unmapped == ("Mystery Accelerator x1 Small",)


@pytest.mark.parametrize("key", [b'"data"', b'"gpus"', b'"label"', b'"hourly"', b'"id"'])
def test_a_renamed_key_is_a_changed_list(documents, key):
    page = documents["types-2"]
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(page, body=page.body.replace(key, b'"renamed"'))])


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data": []}', b'{"data": [{"id"', b'{"errors": [{"reason": "x"}]}'])
def test_an_empty_or_cut_answer_is_never_an_empty_success(documents, body):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(documents["types-1"], body=body)])


def test_a_list_without_gpus_is_a_changed_list(documents):
    content = json.loads(documents["types-2"].body)
    for plan in content["data"]:
        plan["gpus"] = 0
    with pytest.raises(LayoutChanged, match="gpus"):
        COLLECTOR.parse([dataclasses.replace(documents["types-2"], body=json.dumps(content).encode())])


@pytest.mark.needs_recordings
def test_recorded_shape(recordings):
    """The recording is an SDK's own test file with invented figures: it proves the field names."""
    recorded = read_recorded(recordings / "types_sdk_fixture.json", "linode")
    document = dataclasses.replace(recorded, url="https://api.linode.com/v4/linode/types?page_size=500&page=1")
    result = COLLECTOR.parse([document])
    found = {r.offer.region: r for r in result.rows}
    assert {region: str(r.quote.price) for region, r in found.items()} == {
        "": "0.03", "us-east": "0.02", "ap-northeast": "0.02",
    }  # fmt: skip
    assert {r.offer.instance_type for r in result.rows} == {"g6-gpu-2"}
    assert found["ap-northeast"].offer.country == "JP"
    assert result.unmapped == ("Linode 4096",)
