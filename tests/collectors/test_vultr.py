"""Vultr: prices apart from what can be deployed, slices, totals of memory, pages, and ids that lie."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.vultr import Vultr

COLLECTOR = Vultr()
A100_PAGE = "plans-bmV4dF9fMTU2"
SLICE_PAGE = "plans-bmV4dF9fMTI0"


@pytest.fixture
def documents():
    return {d.name: d for d in fixture_documents("vultr")}


def with_plans(document, change):
    content = json.loads(document.body)
    change(content.get("plans") or content["plans_metal"])
    content["meta"]["total"] = 0
    return dataclasses.replace(document, body=json.dumps(content).encode())


def only(document, change):
    """The rows and rejections of one page, its plans changed."""
    return COLLECTOR.parse([with_plans(document, change)])


def plan(plans, name):
    return next(p for p in plans if p["id"] == name)


def row(result, name, option="on_demand", region=None):
    [found] = [
        r
        for r in result.rows
        if r.offer.instance_type == name and r.offer.purchase_option == option and region in {None, r.offer.region}
    ]
    return found


def test_follows_the_cursor_and_asks_every_region(documents):
    assert [r.name for r in COLLECTOR.requests({})] == ["plans", "plans-metal", "regions"]
    [page] = COLLECTOR.follow(documents["plans"])
    assert page.name == SLICE_PAGE
    assert page.url == documents[SLICE_PAGE].url
    assert list(COLLECTOR.follow(documents[A100_PAGE])) == []
    assert [r.name for r in COLLECTOR.follow(documents["regions"])] == [
        f"availability-{region}" for region in ("ewr", "ord", "sea", "blr", "ams")
    ]


def test_a_page_that_is_missing_makes_the_run_incomplete(documents):
    result = COLLECTOR.parse([d for name, d in documents.items() if name != A100_PAGE])
    assert not result.complete
    assert "plans: a next page was named and not fetched" in result.notes
    assert any("plans: 11 of 14" in note for note in result.notes)


def test_a_next_link_alone_makes_the_run_incomplete(documents):
    def change(content, link):
        content["meta"] = {"links": {"next": link, "prev": ""}}

    content = json.loads(documents[A100_PAGE].body)
    for link, complete in (("bmV4dF9fOTk5", False), ("", True), (None, True)):
        change(content, link)
        page = dataclasses.replace(documents[A100_PAGE], body=json.dumps(content).encode())
        assert COLLECTOR.parse([page]).complete is complete


def test_a_plan_on_two_pages_is_one_offer(documents):
    twice = dataclasses.replace(documents[A100_PAGE], url=documents[A100_PAGE].url + "x")
    once = COLLECTOR.parse([documents[A100_PAGE]])
    both = COLLECTOR.parse([documents[A100_PAGE], twice])
    assert [r.offer for r in both.rows] == [r.offer for r in once.rows]
    assert both.rejections == once.rejections


def test_slices_keep_their_memory_and_share(documents):
    result = COLLECTOR.parse(list(documents.values()))
    a16 = row(result, "vcg-a16-2c-8g-2vram")
    assert (a16.offer.gpu, a16.offer.gpu_fraction, a16.offer.gpu_memory_gb) == ("a16-16gb", Decimal("0.12500"), 2)
    assert a16.quote.price_usd_gpu_hour == pytest.approx(0.059 * 8)
    half = row(result, "vcg-a100-6c-60g-40vram")
    assert (half.offer.gpu_count, half.offer.gpu_fraction, half.offer.gpu_memory_gb) == (1, Decimal("0.50000"), 40)
    by_memory_alone = row(result, "vcg-a40-1c-5g-2vram")
    assert (by_memory_alone.offer.gpu_fraction, by_memory_alone.offer.gpu_memory_gb) == (Decimal("0.04167"), 2)


def test_total_memory_gives_the_count_where_none_is_stated(documents):
    offer = row(COLLECTOR.parse(list(documents.values())), "vcg-a16-96c-960g-256vram").offer
    assert (offer.gpu_count, offer.gpu_memory_gb, offer.gpu_fraction) == (16, 16, 1)


def test_a_count_as_text_is_a_count(documents):
    result = only(documents["plans-metal"], lambda p: plan(p, "vbm-256c-3072gb-8-b200-gpu").update(gpu_count="8"))
    assert row(result, "vbm-256c-3072gb-8-b200-gpu").offer.gpu_count == 8


def test_a_lying_id_is_corrected_by_the_reviewed_table(documents):
    mi325x = row(COLLECTOR.parse(list(documents.values())), "vcg-mi325x-252c-2872g-1536vram")
    assert (mi325x.offer.gpu, mi325x.offer.gpu_count) == ("mi325x-256gb", 8)
    assert mi325x.quote.price_usd_gpu_hour == pytest.approx(4.615)


def test_a_listed_price_is_not_stock(documents):
    result = COLLECTOR.parse(list(documents.values()))
    assert row(result, "vcg-mi325x-252c-2872g-1536vram").quote.availability == "unavailable"
    assert row(result, "vcg-mi325x-252c-2872g-1536vram").offer.region == ""  # its only location is blank text
    assert row(result, "vcg-l40s-16c-180g-48vram", region="ewr").quote.availability == "unavailable"
    b200 = row(result, "vbm-256c-3072gb-8-b200-gpu", "spot")
    assert (b200.quote.availability, b200.quote.price) == ("unavailable", Decimal("25.6"))
    assert {r.offer.region for r in result.rows if r.offer.gpu == "h100"} == {"sea"}


def test_without_a_region_answer_the_flags_decide(documents):
    result = COLLECTOR.parse([documents[A100_PAGE]])
    assert row(result, "vcg-a100-1c-6g-4vram").quote.availability == "available"
    unflagged = only(documents[A100_PAGE], lambda p: [x.pop("deploy_ondemand") for x in p])
    assert {r.quote.availability for r in unflagged.rows} == {"unknown"}
    refused = only(documents[A100_PAGE], lambda p: [x.update(deploy_ondemand=False) for x in p])
    assert {r.quote.availability for r in refused.rows} == {"unavailable"}


def test_a_region_may_have_its_own_price(documents):
    def change(plans):
        plan(plans, "vcg-a100-12c-120g-80vram").update(
            locations=["ewr", "sao"], location_cost={"sao": {"hourly_cost": 3.5, "monthly_cost": 2555}}
        )

    result = only(documents[A100_PAGE], change)
    assert row(result, "vcg-a100-12c-120g-80vram", region="sao").quote.price == Decimal("3.5")
    assert row(result, "vcg-a100-12c-120g-80vram", region="sao").offer.country == "BR"
    assert row(result, "vcg-a100-12c-120g-80vram", region="ewr").quote.price == Decimal("2.397")


def test_zero_is_never_a_price(documents):
    result = only(documents[A100_PAGE], lambda p: plan(p, "vcg-a100-1c-6g-4vram").update(hourly_cost=0))
    assert [r.reason for r in result.rejections] == ["not_a_price"]
    assert not [r for r in result.rows if r.offer.purchase_option == "spot"]
    assert not [r for r in COLLECTOR.parse(list(documents.values())).rows if r.offer.source_sku.startswith("vc2")]


def test_the_monthly_cap_is_no_offer(documents):
    assert {r.quote.price_unit for r in COLLECTOR.parse(list(documents.values())).rows} == {"hour"}


def test_a_gpu_without_a_name_is_rejected(documents):
    def change(plans):
        plan(plans, "vcg-a100-1c-6g-4vram").update(id="new-plan-1", gpu_type="")

    result = only(documents[A100_PAGE], change)
    assert ("gpu_unnamed", "new-plan-1") in {(r.reason, r.sample) for r in result.rejections}


@pytest.mark.parametrize("key", [b'"plans"', b'"hourly_cost"', b'"locations"', b'"id"'])
def test_a_renamed_key_is_a_changed_list(documents, key):
    page = documents[A100_PAGE]
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(page, body=page.body.replace(key, b'"renamed"'))])


@pytest.mark.parametrize("body", [b"", b"[]", b'{"plans": []}', b'{"plans": [{"id": "vcg', b'{"error": "busy"}'])
def test_an_empty_or_cut_answer_is_never_an_empty_success(documents, body):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(documents[A100_PAGE], body=body)])


def test_cpu_plans_alone_are_a_changed_list(documents):
    with pytest.raises(LayoutChanged, match="no plan with a GPU"):
        only(documents["plans"], lambda p: p.__delitem__(slice(1, None)))


@pytest.mark.needs_recordings
def test_recorded_answers(recordings):

    def recorded(name, path):
        document = read_recorded(recordings / name, "vultr")
        return dataclasses.replace(document, url=f"https://api.vultr.com/v2/{path}")

    result = COLLECTOR.parse(
        [
            recorded("plans_trimmed.json", "plans?type=all&per_page=500"),
            recorded("plans_vdm_2026-11.json", "plans?type=all&per_page=500&cursor=a"),
            recorded("plans_metal_trimmed.json", "plans-metal?per_page=500"),
            recorded("plans_metal_b200_2026-09.json", "plans-metal?per_page=500&cursor=b"),
        ]
    )
    checked = {
        ("vcg-a100-1c-6g-4vram", "on_demand"): ("0.123", 1, "0.05", 4, "ewr"),
        ("vcg-a100-12c-120g-80vram", "on_demand"): ("2.397", 1, "1", 80, "ewr"),
        ("vcg-a100-6c-60g-40vram", "on_demand"): ("1.397", 1, "0.5", 40, "ewr"),
        ("vcg-a40-24c-120g-48vram", "on_demand"): ("1.712", 1, "1", 48, "blr"),
        ("vcg-mi325x-252c-2872g-1536vram", "on_demand"): ("36.92", 8, "1", 256, ""),
        ("vbm-256c-2048gb-8-mi300x-gpu", "on_demand"): ("17.52", 8, "1", 192, "ord"),
        ("vbm-256c-2048gb-8-mi300x-gpu", "spot"): ("14.72", 8, "1", 192, "ord"),
        ("vbm-112c-2048gb-8-h100-gpu", "on_demand"): ("23.92", 8, "1", 80, "sea"),
        ("vbm-112c-2048gb-8-h100-gpu", "spot"): ("18.4", 8, "1", 80, "sea"),
        ("vbm-256c-3072gb-8-b200-gpu", "on_demand"): ("68", 8, "1", 180, ""),
        ("vbm-256c-3072gb-8-b200-gpu", "spot"): ("25.6", 8, "1", 180, ""),
    }
    assert len(result.rows) == len(checked)
    for (name, option), (price, count, share, memory, region) in checked.items():
        found = row(result, name, option)
        assert (found.quote.price, found.offer.gpu_count) == (Decimal(price), count)
        assert (found.offer.gpu_fraction, found.offer.gpu_memory_gb) == (Decimal(share), memory)
        assert found.offer.region == region


@pytest.mark.parametrize(
    ("card", "count", "stated_gb", "memory_gb", "flags"),
    [
        ("NVIDIA_H200", 8, 1128, 141, ()),  # the total, as documented
        ("NVIDIA_H200", 8, 141, 141, ()),  # per GPU
        ("NVIDIA_B200", 8, 180, 180, ()),
        ("NVIDIA_L40S", 2, 48, 48, ()),
        ("NVIDIA_L40S", 4, 10, 48, ("memory_mismatch",)),
    ],
)
def test_several_gpus_are_never_slices(documents, card, count, stated_gb, memory_gb, flags):
    def change(plans):
        plans[:] = plans[:1]
        plans[0].update(
            id="vbm-test", gpu_type=card, gpu_count=count, gpu_vram_gb=stated_gb, hourly_cost=2 * count,
            hourly_cost_preemptible=0, location_cost={}, locations=["ewr"],
        )  # fmt: skip

    [found] = only(documents["plans-metal"], change).rows
    assert (found.offer.gpu_count, found.offer.gpu_fraction, found.offer.gpu_memory_gb) == (count, 1, memory_gb)
    assert found.quote.flags == flags
    assert found.quote.price_usd_gpu_hour == 2


def emptied(document, key, total):
    body = json.dumps({key: [], "meta": {"total": total, "links": {"next": "", "prev": ""}}})
    return dataclasses.replace(document, body=body.encode())


def test_a_list_that_says_itself_that_it_is_empty_loses_nothing_else(documents):
    plans, metal = documents[A100_PAGE], documents["plans-metal"]
    result = COLLECTOR.parse([with_plans(plans, lambda p: None), emptied(metal, "plans_metal", 0)])
    assert result.rows
    assert not any(r.offer.tenancy == "bare_metal" for r in result.rows)
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([plans, emptied(metal, "plans_metal", 12)])
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([emptied(plans, "plans", 0), emptied(metal, "plans_metal", 0)])
