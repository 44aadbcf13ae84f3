"""Scaleway: zones without GPUs, pages, stock apart from price, and the recorded answers of two zones."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.scaleway import ZONES, Scaleway

COLLECTOR = Scaleway()


def documents(*names):
    return [d for d in fixture_documents("scaleway") if d.name in names]


def changed_body(document, change):
    content = json.loads(document.body)
    change(content)
    return dataclasses.replace(document, body=json.dumps(content).encode())


def paris(change):
    [servers] = documents("servers-fr-par-2-1")
    return COLLECTOR.parse([changed_body(servers, change)])


def test_asks_for_both_lists_of_every_zone():
    names = {r.name for r in COLLECTOR.requests({})}
    assert len(names) == 2 * len(ZONES)
    assert {"servers-fr-par-2-1", "availability-fr-par-2-1"} <= names


def test_zones_without_gpus_add_nothing():
    result = COLLECTOR.parse(fixture_documents("scaleway"))
    assert {r.offer.region for r in result.rows} == {"fr-par-1", "fr-par-2"}
    assert not [r for r in result.rows if r.offer.instance_type.startswith(("PRO2", "COPARM"))]


@pytest.mark.parametrize("names", [("servers-nl-ams-3-1",), ("servers-it-mil-1-1",), ("availability-fr-par-2-1",), ()])
def test_no_gpu_in_any_zone_is_a_changed_list(names):
    with pytest.raises(LayoutChanged, match="GPU"):
        COLLECTOR.parse(documents(*names))


def test_renamed_keys_are_a_changed_layout():
    [servers] = documents("servers-fr-par-2-1")
    renamed = servers.body.replace(b"hourly_price", b"price_per_hour")
    with pytest.raises(LayoutChanged, match="hourly_price"):
        COLLECTOR.parse([dataclasses.replace(servers, body=renamed)])
    with pytest.raises(LayoutChanged, match="servers"):
        COLLECTOR.parse([dataclasses.replace(servers, body=servers.body.replace(b'"servers"', b'"items"'))])


def test_truncated_answer_is_a_changed_layout():
    [servers] = documents("servers-fr-par-2-1")
    with pytest.raises(LayoutChanged, match="not JSON"):
        COLLECTOR.parse([dataclasses.replace(servers, body=servers.body[:-200])])


@pytest.mark.parametrize("price", [0, -1, "free"])
def test_a_price_that_is_none_rejects_its_row_only(price):
    result = paris(lambda c: c["servers"]["L4-1-24G"].update(hourly_price=price))
    assert [r.reason for r in result.rejections] == ["not_a_price"]
    assert "L4-1-24G" not in {r.offer.instance_type for r in result.rows}
    assert "L4-2-24G" in {r.offer.instance_type for r in result.rows}


def test_missing_price_keeps_the_type_without_one():
    result = paris(lambda c: c["servers"]["L4-1-24G"].update(hourly_price=None))
    [row] = [r for r in result.rows if r.offer.instance_type == "L4-1-24G"]
    assert row.quote.price is None
    assert row.quote.price_usd_hour is None


def test_memory_is_per_gpu_and_in_bytes():
    result = paris(lambda c: None)
    [row] = [r for r in result.rows if r.offer.instance_type == "H100-SXM-8-80G"]
    assert (row.offer.gpu_count, row.offer.gpu_memory_gb, row.offer.memory_gib) == (8, 80, 960)
    assert "memory_mismatch" not in row.quote.flags


def test_unnamed_gpu_is_rejected():
    result = paris(lambda c: c["servers"]["L4-1-24G"].update(gpu_info=None))
    assert ("gpu_unnamed", "gpu") in {(r.reason, r.field) for r in result.rejections}


def test_stock_stays_apart_from_price():
    rows = {(r.offer.instance_type, r.offer.region): r for r in COLLECTOR.parse(fixture_documents("scaleway")).rows}
    b300 = rows["B300-SXM-8-288G", "fr-par-2"]
    assert (b300.quote.availability, b300.quote.price) == ("unavailable", Decimal("60.0"))
    assert rows["L4-4-24G", "fr-par-2"].quote.availability == "limited"
    without_stock = COLLECTOR.parse(documents("servers-fr-par-2-1"))
    assert {r.quote.availability for r in without_stock.rows} == {"unknown"}


def test_follows_pages_in_the_size_that_the_server_gives():
    [servers] = documents("servers-fr-par-2-1")
    count = len(json.loads(servers.body)["servers"])
    total = {"x-total-count": str(count * 2 + 1)}
    [second] = COLLECTOR.follow(dataclasses.replace(servers, headers=total))
    assert second.name == "servers-fr-par-2-2"
    assert f"per_page={count}&page=2" in second.url
    [third] = COLLECTOR.follow(dataclasses.replace(servers, url=second.url, headers=total))
    assert third.name == "servers-fr-par-2-3"
    assert list(COLLECTOR.follow(dataclasses.replace(servers, url=third.url, headers=total))) == []
    assert list(COLLECTOR.follow(servers)) == []


def test_a_page_that_was_not_fetched_makes_the_run_incomplete():
    [servers] = documents("servers-fr-par-2-1")
    result = COLLECTOR.parse([dataclasses.replace(servers, headers={"x-total-count": "135"})])
    assert not result.complete
    assert "of 135 types" in result.notes[0]


@pytest.mark.needs_recordings
def test_recorded_answers(recordings):
    [model] = documents("servers-fr-par-2-1")
    found, raw = [], {}
    for zone, pages in (("fr-par-1", 3), ("fr-par-2", 3)):
        for page in range(1, pages + 1):
            for kind in ("servers", "servers_availability"):
                body = (recordings / f"instance_products_{kind}_{zone}_page{page}.json").read_bytes()
                path = kind.replace("_", "/")
                url = f"https://api.scaleway.com/instance/v1/zones/{zone}/products/{path}?page={page}"
                found.append(dataclasses.replace(model, url=url, body=body, headers={}, name=f"{kind}-{zone}-{page}"))
                if kind == "servers":
                    raw.update({(zone, k): v for k, v in json.loads(body)["servers"].items() if v["gpu"]})
    result = COLLECTOR.parse(found)
    rows = {(r.offer.region, r.offer.instance_type): r for r in result.rows}
    assert set(rows) == set(raw)
    assert len(rows) == 22
    for key, row in rows.items():
        assert float(row.quote.price) == raw[key]["hourly_price"]
        assert row.offer.gpu_count == raw[key]["gpu"]
    checked = {
        ("fr-par-1", "RENDER-S"): ("1.221", 1, "available"),
        ("fr-par-2", "B300-SXM-2-288G"): ("18.96", 2, "unavailable"),
        ("fr-par-2", "H100-1-80G"): ("2.8665", 1, "unavailable"),
        ("fr-par-2", "H100-SXM-4-80G"): ("12.771", 4, "available"),
        ("fr-par-2", "L40S-1-48G"): ("1.469916", 1, "limited"),
    }
    for key, (price, count, availability) in checked.items():
        row = rows[key]
        assert (row.quote.price, row.offer.gpu_count, row.quote.availability) == (Decimal(price), count, availability)


def full_page(document):
    def fill(content):
        cpu = {"gpu": 0, "gpu_info": None, "hourly_price": 0.01}
        content["servers"].update({f"CPU-{n}": cpu for n in range(100 - len(content["servers"]))})

    return dataclasses.replace(changed_body(document, fill), headers={})


def test_without_an_announced_total_a_full_page_has_another_after_it():
    [servers] = documents("servers-fr-par-2-1")
    full = full_page(servers)
    assert [r.name for r in COLLECTOR.follow(full)] == ["servers-fr-par-2-2"]
    assert not COLLECTOR.parse([full]).complete
    second = dataclasses.replace(full, url=full.url.replace("&page=1", "&page=2"), body=b'{"servers": {}}')
    assert COLLECTOR.parse([full, second]).complete
    assert COLLECTOR.parse([dataclasses.replace(full, headers={"x-total-count": "100"})]).complete


def test_one_type_without_a_price_field_is_rejected_alone():
    [servers] = documents("servers-fr-par-2-1")
    gpus = [name for name, server in json.loads(servers.body)["servers"].items() if server.get("gpu")]
    result = paris(lambda content: content["servers"][gpus[0]].pop("hourly_price"))
    assert [(r.reason, r.sample) for r in result.rejections] == [("field_missing", f"{gpus[0]} fr-par-2")]
    assert {r.offer.instance_type for r in result.rows} == set(gpus[1:])
