"""Hot Aisle: cents, minimum reservations, free machines, nothing free."""

import dataclasses
import json

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.hotaisle import Hotaisle


def machine(count=1, model="MI300X", **fields):
    specs = {
        "cpu_cores": 13, "ram_capacity": 224 * 2**30, "disk_capacity": 12 * 10**12,
        "gpus": [{"count": count, "manufacturer": "AMD", "model": model}],
    }  # fmt: skip
    return {"Quantity": 4, "MinimumReservationMinutes": 30, "OnDemandPrice": 299, "Specs": specs} | fields


def parse(machines, name="virtual_machines"):
    document = next(d for d in fixture_documents("hotaisle") if d.name == name)
    return Hotaisle().parse([dataclasses.replace(document, body=json.dumps(machines).encode())])


def test_cents_per_machine():
    (row,) = parse([machine(2, OnDemandPrice=598)]).rows
    assert (row.quote.price_usd_hour, row.quote.price_usd_gpu_hour, row.quote.stock_count) == (5.98, 2.99, 4)
    assert (row.offer.gpu, row.offer.memory_gib, row.offer.local_storage_gb) == ("mi300x-192gb", 224, 12000)


def test_dollars_are_refused():
    with pytest.raises(LayoutChanged, match="cents"):
        parse([machine(OnDemandPrice=2.99)])


@pytest.mark.parametrize(
    ("minutes", "option", "days", "minimum_s"),
    [
        (30, "on_demand", 0, 1800),
        (480, "on_demand", 0, 28800),
        (43200, "reserved", 30, 2592000),
        (None, "on_demand", 0, None),
    ],
)
def test_minimum_reservations(minutes, option, days, minimum_s):
    (row,) = parse([machine(MinimumReservationMinutes=minutes)], "bare_metal").rows
    assert (row.offer.purchase_option, row.offer.commitment_days, row.offer.minimum_charge_s) == (
        option,
        days,
        minimum_s,
    )
    assert row.offer.tenancy == "bare_metal"


@pytest.mark.parametrize(("free", "availability"), [(4, "available"), (0, "unavailable"), (None, "unknown")])
def test_stock(free, availability):
    assert parse([machine(Quantity=free)]).rows[0].quote.availability == availability


@pytest.mark.parametrize("price", [0, None, "N/A"])
def test_placeholders_are_no_prices(price):
    parsed = parse([machine(OnDemandPrice=price), machine(2)])
    assert [r.offer.gpu_count for r in parsed.rows if r.quote.price] == [2]


def test_mixed_and_unnamed_machines_are_rejected():
    two = machine()
    two["Specs"]["gpus"].append({"count": 1, "manufacturer": "AMD", "model": "MI355X"})
    none = machine()
    none["Specs"]["gpus"] = []
    assert [r.reason for r in parse([two, none, machine()]).rejections] == ["mixed_gpus", "gpu_unnamed"]


def test_one_list_may_be_empty_and_both_may_not():
    documents = {d.name: d for d in fixture_documents("hotaisle")}
    empty = dataclasses.replace(documents["bare_metal"], body=b"[]")
    assert len(Hotaisle().parse([documents["virtual_machines"], empty]).rows) == 3
    with pytest.raises(LayoutChanged):
        Hotaisle().parse([empty])


@pytest.mark.parametrize("body", [{}, {"detail": "no team"}, [{"Quantity": 1}]])
def test_changed_answers_are_refused(body):
    with pytest.raises(LayoutChanged):
        parse(body)


@pytest.mark.needs_recordings
def test_public_shape(recordings):
    path = recordings / "virtual_machines_available_shape_example.json"
    (row,) = Hotaisle().parse([read_recorded(path, "hotaisle")]).rows
    assert (row.offer.gpu, row.offer.gpu_count, row.offer.vcpu_count, row.offer.memory_gib) == (
        "mi300x-192gb",
        1,
        8,
        32,
    )
    assert (row.quote.price_usd_hour, row.quote.stock_count, row.offer.minimum_charge_s) == (1.99, 4, 1800)
