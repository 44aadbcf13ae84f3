"""Exoscale: a price list without zones, types without GPU names, three currencies, and sizes nobody explains."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.exoscale import Exoscale
from collectors.fixtures import fixture_documents

COLLECTOR = Exoscale()


@pytest.fixture
def documents():
    return {d.name: d for d in fixture_documents("exoscale")}


def changed_json(document, change):
    content = json.loads(document.body)
    change(content)
    return dataclasses.replace(document, body=json.dumps(content).encode())


def with_types(document, *types):
    return changed_json(document, lambda c: c["instance-types"].extend(types))


def kind(family, size, gpus=1, zones=("de-fra-1",), **fields):
    return {"family": family, "size": size, "gpus": gpus, "zones": list(zones), **fields}


def rows(*found):
    return {(r.offer.instance_type, r.offer.region): r for r in COLLECTOR.parse(found).rows}


def test_asks_for_the_list_and_the_types(documents):
    assert {(r.name, r.url) for r in COLLECTOR.requests({})} == {(d.name, d.url) for d in documents.values()}


def test_types_give_zone_and_count_and_the_list_the_price(documents):
    types = with_types(documents["instance-type"], kind("gpurtx6000pro", "small", 2, ("de-fra-1", "ch-gva-2")))
    found = rows(documents["opencompute"], types)
    for zone, country in (("de-fra-1", "DE"), ("ch-gva-2", "CH")):
        row = found["gpurtx6000pro.small", zone]
        assert (row.offer.gpu, row.offer.gpu_count, row.offer.country) == ("rtx-pro-6000", 2, country)
        assert row.quote.price == Decimal("2.15277778")
    assert ("gpua5000.small", "") not in found


def test_prices_whose_size_nobody_explains_are_left_out_with_a_note(documents):
    result = COLLECTOR.parse([documents["opencompute"]])
    assert {r.offer.instance_type for r in result.rows} == {
        "gpu.small", "gpu2.small", "gpu3.small", "gpua5000.small", "gpu3080ti.small",
    }  # fmt: skip
    assert {r.offer.region for r in result.rows} == {""}
    assert "gpu.medium" in result.notes[0]
    assert result.complete


def test_cpu_types_are_never_read_as_gpus(documents):
    assert not [name for name, _ in rows(*documents.values()) if name.startswith(("cpu", "standard", "micro"))]


def test_dollars_first_then_another_currency(documents):
    assert {r.quote.currency for r in rows(documents["opencompute"]).values()} == {"USD"}
    for missing in (None, "0", "N/A"):
        listed = changed_json(
            documents["opencompute"], lambda c, missing=missing: c["usd"].update(running_gpu_small=missing)
        )
        row = rows(listed)["gpu.small", ""]
        assert (row.quote.price, row.quote.currency) == (Decimal("1.16806000"), "EUR")
        assert row.quote.price_usd_hour is None


def test_zero_everywhere_is_a_rejection(documents):
    def change(content):
        for prices in content.values():
            prices["running_gpu_small"] = "0"

    result = COLLECTOR.parse([changed_json(documents["opencompute"], change)])
    assert [r.reason for r in result.rejections] == ["not_a_price"]


def test_a_type_without_a_price_is_on_request(documents):
    types = with_types(documents["instance-type"], kind("gpub300", "huge", 8, authorized=False))
    row = rows(documents["opencompute"], types)["gpub300.huge", "de-fra-1"]
    assert (row.offer.gpu, row.quote.price) == ("b300-sxm-288gb", None)
    assert set(row.quote.flags) == {"needs_approval", "unpriced"}


def test_underscores_and_hyphens_name_the_same_type(documents):
    def change(content):
        content["usd"]["running_gpu_a5000_extra_large"] = "5.5"

    types = with_types(documents["instance-type"], kind("gpua5000", "extra-large", 4, ("at-vie-2",)))
    row = rows(changed_json(documents["opencompute"], change), types)["gpua5000.extra-large", "at-vie-2"]
    assert (row.quote.price, row.offer.gpu_count) == (Decimal("5.5"), 4)


@pytest.mark.parametrize(("stated", "gib"), [(34359738368, 32), (32768, 32), (None, None), (0, None)])
def test_memory_is_bytes_or_mib(documents, stated, gib):
    def change(content):
        next(t for t in content["instance-types"] if t["family"] == "gpua5000")["memory"] = stated

    found = rows(documents["opencompute"], changed_json(documents["instance-type"], change))
    assert found["gpua5000.small", "at-vie-2"].offer.memory_gib == gib


def test_an_unknown_family_is_kept_as_unmapped(documents):
    types = with_types(documents["instance-type"], kind("gpux9000", "small"))
    result = COLLECTOR.parse([documents["opencompute"], types])
    assert result.unmapped == ("gpux9000",)


def test_volumes_and_traffic_are_surcharges_per_gb(documents):
    found = {s.kind: s for s in COLLECTOR.parse([documents["opencompute"]]).surcharges}
    assert float(found["block_storage"].price) == pytest.approx(0.00014 * 730 / 1.073741824)
    assert float(found["egress"].price) == pytest.approx(0.02 / 1.073741824)
    assert {(s.unit, s.currency) for s in found.values()} == {("gb_month", "USD"), ("gb", "USD")}


@pytest.mark.parametrize("key", [b'"instance-types"', b'"family"', b'"gpus"', b'"zones"', b'"size"'])
def test_a_renamed_key_of_the_types_is_a_changed_list(documents, key):
    document = documents["instance-type"]
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(document, body=document.body.replace(key, b'"renamed"'))])


def test_one_more_currency_loses_nothing_and_a_renamed_one_is_a_changed_list(documents):
    listed = documents["opencompute"]
    content = json.loads(listed.body)
    more = dataclasses.replace(listed, body=json.dumps({"gbp": content["usd"], **content}).encode())
    assert COLLECTOR.parse([more]).rows == COLLECTOR.parse([listed]).rows != ()
    renamed = dataclasses.replace(listed, body=listed.body.replace(b'"usd"', b'"gbp"'))
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([renamed])


@pytest.mark.parametrize("old", [b"running_", b'"usd"'])
def test_renamed_prices_are_a_changed_list(documents, old):
    body = documents["opencompute"].body.replace(old, b'"x"' if old[:1] == b'"' else b"price_")
    if old == b'"usd"':
        body = body.replace(b'"eur"', b'"y"').replace(b'"chf"', b'"z"')
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(documents["opencompute"], body=body)])


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"usd": {}}', b'{"usd": {"running_gpu_small"'])
def test_an_empty_or_cut_list_is_never_an_empty_success(documents, body):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(documents["opencompute"], body=body)])
