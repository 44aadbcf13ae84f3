"""Vast.ai: row caps and how they are continued, slices of one machine, spot with its disk, nulls."""

import dataclasses
import itertools
import json
import random
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.types import Document
from catalog.units import gib_from_mib
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.vast import Vast
from collectors.vast_census import URL, band_query, query_key, query_of

NOW = datetime(2026, 10, 10, tzinfo=UTC)


def offer(number, **fields):
    base = {
        "id": number, "ask_contract_id": number, "machine_id": 900 + number, "gpu_name": "RTX 4090", "num_gpus": 1,
        "gpu_ram": 24564, "dph_total": 0.3, "dph_base": 0.3, "min_bid": None, "verification": "verified",
        "cpu_cores": 48, "cpu_cores_effective": 12, "cpu_ram": 65536, "geolocation": "Poland, PL", "rentable": True,
    }  # fmt: skip
    return base | fields


def answer(offers, query=None, **fields):
    return Document("vast", URL, json.dumps({"success": True, "offers": offers}).encode(), NOW, method="POST",
                    request_body=query_key(query) if query else "", name="offers", **fields)  # fmt: skip


def cheapest_first(count, low=0.2, step=0.001):
    return [offer(n, dph_total=round(low + n * step, 6)) for n in range(count)]


def only(parsed, purchase_option="on_demand"):
    rows = [r for r in parsed.rows if r.offer.purchase_option == purchase_option]
    assert len(rows) == 1
    return rows[0]


@pytest.mark.parametrize("count", [64, 512])
def test_exactly_a_row_cap_is_incomplete(count):
    parsed = Vast().parse([answer(cheapest_first(count))])
    assert not parsed.complete
    assert len(parsed.rows) == count


def test_a_short_answer_is_complete():
    assert Vast().parse([answer(cheapest_first(63))]).complete


def test_a_limit_that_is_reached_is_a_cap():
    assert not Vast().parse([answer(cheapest_first(100), {"limit": 100})]).complete


def test_a_full_answer_is_continued_from_its_dearest_price():
    first = answer(cheapest_first(64), band_query(0.2, 0.4))
    (request,) = Vast().follow(first)
    assert json.loads(request.body)["dph_total"] == {"gte": 0.263, "lt": 0.4}
    rest = answer([*cheapest_first(64)[-1:], offer(99, dph_total=0.39)], json.loads(request.body))
    parsed = Vast().parse([first, rest])
    assert parsed.complete
    assert len(parsed.rows) == 65, "the row at the boundary price comes twice and counts once"
    assert not Vast().parse([first]).complete


def test_a_full_answer_of_one_price_cannot_be_continued():
    stuck = answer([offer(n, dph_total=0.2) for n in range(64)], band_query(0.2, 0.4))
    assert list(Vast().follow(stuck)) == []
    assert not Vast().parse([stuck]).complete


def test_a_keyed_sample_is_split_by_contract_ids_until_short():
    sample = answer(cheapest_first(512), band_query(0.2, 0.4))
    halves = [json.loads(r.body)["ask_contract_id"] for r in Vast().follow(sample)]
    assert halves[0]["lt"] == halves[1]["gte"]
    assert halves[0]["gte"] == 0
    answered = [answer([offer(n)], json.loads(r.body)) for n, r in enumerate(Vast().follow(sample))]
    assert Vast().parse([sample, *answered]).complete
    assert not Vast().parse([sample, answered[0]]).complete


def test_the_key_is_sent_and_never_in_the_body():
    keyed = list(Vast().requests({"VAST_CENSUS_KEY": "topsecret"}))
    assert all(r.headers["authorization"] == "Bearer topsecret" and b"topsecret" not in r.body for r in keyed)
    assert all("authorization" not in r.headers for r in Vast().requests({}))
    (more,) = Vast().follow(answer(cheapest_first(64), band_query(0.2, 0.4)))
    assert not more.headers, "the fetcher sends a continuation with the headers of the first request"


def test_bands_leave_no_gap():
    ranges = [json.loads(r.body)["dph_total"] for r in Vast().requests({})]
    assert ranges[0]["gte"] == 0
    assert "lt" not in ranges[-1]
    assert all(a["lt"] == b["gte"] for a, b in itertools.pairwise(ranges))


def market_answer(market, query, *, keyed, rng):
    """What the marketplace answers: 64 of the cheapest without a key, a random sample of 512 with one."""
    price, ids = query["dph_total"], query.get("ask_contract_id", {})
    found = [
        o
        for o in market
        if price["gte"] <= o["dph_total"] < price.get("lt", 1e9) and ids.get("gte", 0) <= o["id"] < ids.get("lt", 2**62)
    ]
    if keyed:
        return found if len(found) <= 512 else rng.sample(found, 512)
    return sorted(found, key=lambda o: o["dph_total"])[:64]


@pytest.mark.parametrize("keyed", [False, True])
def test_the_census_covers_a_whole_market(keyed):
    rng = random.Random(1)
    prices = [round(rng.lognormvariate(-0.5, 1.2), 4) for _ in range(3000)]
    ids = rng.sample(range(10**7, 6 * 10**7), len(prices))
    market = [offer(n, id=i, ask_contract_id=i, dph_total=p) for n, (i, p) in enumerate(zip(ids, prices, strict=True))]
    waiting, documents = list(Vast().requests({"VAST_CENSUS_KEY": "x"} if keyed else {})), []
    while waiting:
        query = json.loads(waiting.pop().body)
        documents.append(answer(market_answer(market, query, keyed=keyed, rng=rng), query))
        waiting += Vast().follow(documents[-1])
    parsed = Vast().parse(documents)
    assert parsed.complete, parsed.notes
    assert len(parsed.rows) == len(market)
    assert len(documents) < 150
    assert not Vast().parse(documents[:-1]).complete


def test_slices_of_one_machine_are_not_separate_stock():
    asks = [offer(1, machine_id=7, dph_total=0.31), offer(2, machine_id=7, dph_total=0.3),
            offer(3, machine_id=7, num_gpus=2, dph_total=0.6)]  # fmt: skip
    rows = {r.offer.gpu_count: r for r in Vast().parse([answer(asks)]).rows}
    assert rows[1].quote.price == Decimal("0.3")
    assert rows[1].quote.stock_count == 2
    assert "shares_machine" in rows[2].quote.flags
    assert rows[1].offer.source_sku == "machine-7-1x"


def test_identity_does_not_follow_the_ask():
    one, two = (only(Vast().parse([answer([offer(n, machine_id=7)])])).offer.offer_id for n in (1, 2))
    assert one == two


def test_spot_carries_the_disk():
    parsed = Vast().parse([answer([offer(1, dph_base=0.4, dph_total=0.4208, min_bid=0.2)])])
    assert only(parsed, "spot").quote.price == Decimal("0.2208")
    assert only(parsed).quote.price == Decimal("0.4208")


def test_spot_without_a_known_disk_price_is_left_out():
    parsed = Vast().parse([answer([offer(1, dph_base=None, min_bid=0.2)])])
    assert [r.offer.purchase_option for r in parsed.rows] == ["on_demand"]


@pytest.mark.parametrize("bid", [None, 0, "N/A"])
def test_no_bid_is_no_spot(bid):
    assert len(Vast().parse([answer([offer(1, min_bid=bid)])]).rows) == 1


@pytest.mark.parametrize(
    ("name", "mib", "gpu"),
    [("A100 SXM4", 39936, "a100-sxm-40gb"), ("A100 SXM4", 40960, "a100-sxm-40gb"),
     ("A100 SXM4", 81920, "a100-sxm-80gb"), ("A100 PCIE", 81920, "a100-pcie-80gb")],
)  # fmt: skip
def test_one_name_two_products(name, mib, gpu):
    row = only(Vast().parse([answer([offer(1, gpu_name=name, gpu_ram=mib)])]))
    assert row.offer.gpu == gpu
    assert not row.quote.flags


def test_a_card_with_other_memory_is_flagged():
    assert "memory_mismatch" in only(Vast().parse([answer([offer(1, gpu_ram=49140)])])).quote.flags


@pytest.mark.parametrize("field", ["cpu_cores", "cpu_cores_effective", "cpu_ram"])
def test_null_host_figures_are_unknown_and_not_zero(field):
    assert only(Vast().parse([answer([offer(1, **{field: None})])])).offer.memory_gib is None


def test_host_memory_is_the_slices_share():
    assert only(Vast().parse([answer([offer(1)])])).offer.memory_gib == 16


@pytest.mark.parametrize(
    ("place", "country"),
    [("Guangxi, CN", "CN"), ("US", "US"), ("France, FR, EU", "FR"), ("Namibia, NA", "NA"), ("Texas, US, NA", "US"),
     (None, None), ("Somewhere", None), ("", None)],
)  # fmt: skip
def test_country(place, country):
    assert only(Vast().parse([answer([offer(1, geolocation=place)])])).offer.country == country


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"dph_total": 0}, "not_a_price"), ({"dph_total": None}, "not_a_price"), ({"num_gpus": 0}, "gpu_count"),
     ({"machine_id": None}, "machine_unnamed"), ({"verification": "deverified"}, "host_deverified"),
     ({"gpu_name": None}, "gpu_unnamed")],
)  # fmt: skip
def test_bad_rows_are_rejected_alone(fields, reason):
    parsed = Vast().parse([answer([offer(1, **fields), offer(2)])])
    assert [r.reason for r in parsed.rejections] == [reason]
    assert len(parsed.rows) == 1


def test_not_rentable_and_unverified_are_said():
    rented = only(Vast().parse([answer([offer(1, rentable=False)])])).quote
    assert (rented.availability, rented.stock_count) == ("unavailable", 0)
    assert "host_unverified" in only(Vast().parse([answer([offer(1, verification="unverified")])])).quote.flags
    assert "low_reliability" in only(Vast().parse([answer([offer(1, reliability2=0.7)])])).quote.flags


def test_hosting_and_links():
    row = only(Vast().parse([answer([offer(1, num_gpus=2, hosting_type=1, bw_nvlink=300.0)])]))
    assert (row.offer.tenancy, row.offer.gpu_interconnect) == ("secure", "nvlink")
    row = only(Vast().parse([answer([offer(1, num_gpus=2, hosting_type=0, bw_nvlink=0.0)])]))
    assert (row.offer.tenancy, row.offer.gpu_interconnect) == ("community", "pcie")


@pytest.mark.parametrize(
    "body",
    [{"success": False, "error": "auth_error", "msg": "no"}, {"success": True, "offers": []}, {"offers": {}}, [],
     {"offers": [{k: v for k, v in offer(1).items() if k != "dph_total"}]},
     {"offers": [{k: v for k, v in offer(1).items() if k != "machine_id"}]}],
)  # fmt: skip
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        Vast().parse([dataclasses.replace(answer([]), body=json.dumps(body).encode())])


def test_truncated_body_is_refused():
    first = fixture_documents("vast")[0]
    with pytest.raises(LayoutChanged):
        Vast().parse([dataclasses.replace(first, body=first.body[:-40])])


def test_fixture_answers_the_first_requests():
    asked = {json.dumps(json.loads(r.body), sort_keys=True) for r in Vast().requests({})}
    assert {json.dumps(query_of(d), sort_keys=True) for d in fixture_documents("vast")} == asked


@pytest.mark.needs_recordings
def test_public_recordings(recordings):
    names = ("bundles_offer_raw_2024-07.json", "offers_go_sdk_testdata.json", "bundles_prices_2026-10_trimmed.json")
    paths = [recordings / name for name in names]
    if not all(p.is_file() for p in paths):
        pytest.skip(f"{recordings} is absent")
    raw = [json.loads(p.read_bytes())["offers"] for p in paths]
    for number, short in enumerate(raw[2]):
        short.setdefault("machine_id", f"made-up-{number}")  # the public copy keeps four fields only
    parsed = Vast().parse([answer(offers) for offers in raw])
    on_demand = [r for r in parsed.rows if r.offer.purchase_option == "on_demand"]
    assert not parsed.rejections
    assert len(on_demand) == sum(len(offers) for offers in raw)
    for row, source in zip(on_demand, [o for offers in raw for o in offers], strict=True):
        assert float(row.quote.price) == source["dph_total"]
        assert row.offer.gpu_count == source["num_gpus"]
        assert row.offer.gpu_memory_gb == pytest.approx(gib_from_mib(source["gpu_ram"]), rel=0.12)
    spot = [r for r in parsed.rows if r.offer.purchase_option == "spot"]
    assert [float(r.quote.price) for r in spot] == pytest.approx([0.2 + 9.25925925925926e-06])
    assert on_demand[0].offer.memory_gib == pytest.approx(64393 * 24 / 96 / 1024)
    assert [r.offer.country for r in on_demand[:3]] == ["CN", "PL", "US"]
