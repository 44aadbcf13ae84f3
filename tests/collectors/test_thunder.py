"""Thunder Compute: instance keys among component prices, specifications and stock as optional documents."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.thunder import Thunder


def documents(**bodies):
    """The fixture's documents, with the given bodies instead of theirs; those set to None are left out."""
    kept = [d for d in fixture_documents("thunder") if bodies.get(d.name, d) is not None]
    return [dataclasses.replace(d, body=json.dumps(bodies[d.name]).encode()) if d.name in bodies else d for d in kept]


def by_key(parsed):
    return {r.offer.instance_type: r for r in parsed.rows}


def test_price_is_of_the_whole_instance():
    rows = by_key(Thunder().parse(documents(pricing={"pricing": {"h100_x2_production": 4.98}})))
    row = rows["h100_x2_production"]
    assert (row.offer.gpu_count, row.quote.price_usd_hour, row.quote.price_usd_gpu_hour) == (2, 4.98, 2.49)


def test_component_prices_are_no_instances():
    parsed = Thunder().parse(documents())
    assert not {"additional_vcpus", "disk_gb"} & set(by_key(parsed))
    (disk,) = parsed.surcharges
    assert (disk.kind, disk.unit, disk.price, disk.included_quantity) == (
        "block_storage", "gb_month", Decimal("0.2190"), 100,
    )  # fmt: skip


def test_prices_alone_name_their_gpus():
    rows = by_key(Thunder().parse(documents(specs=None, status=None)))
    assert rows["a6000_x1_prototyping"].offer.gpu == "rtx-a6000-48gb"
    assert rows["a100xl_x1_production"].offer.gpu_candidates == ("a100-pcie-80gb", "a100-sxm-80gb")
    assert rows["a6000_x1_prototyping"].quote.availability == "unknown"


@pytest.mark.parametrize(
    ("word", "availability"),
    [("available", "available"), ("Low", "limited"), ("out of stock", "unavailable"),
     ({"status": "none"}, "unavailable"), ("maintenance", "unknown")],
)  # fmt: skip
def test_stock_words(word, availability):
    rows = by_key(Thunder().parse(documents(status={"specs": {"l40_x1_production": word}})))
    assert rows["l40_x1_production"].quote.availability == availability


@pytest.mark.parametrize("price", [0, None, "N/A"])
def test_placeholders_are_no_prices(price):
    parsed = Thunder().parse(documents(pricing={"pricing": {"l40_x1_production": price, "h100_x1_production": 2.49}}))
    assert [r for r in parsed.rows if r.quote.price] == [by_key(parsed)["h100_x1_production"]]


def test_nvlink_is_taken_from_the_name_of_several_gpus():
    spec = {"displayName": "H100 PCIe NVLink (80GB)", "vramGB": 80, "gpuCount": 2}
    rows = by_key(
        Thunder().parse(
            documents(pricing={"pricing": {"h100_x2_production": 4.98}}, specs={"specs": {"h100_x2_production": spec}})
        )
    )
    assert rows["h100_x2_production"].offer.gpu_interconnect == "nvlink"


@pytest.mark.parametrize(
    "bodies",
    [{"pricing": {}}, {"pricing": {"pricing": {}}}, {"pricing": {"pricing": {"disk_gb": 0.1}}}, {"pricing": []},
     {"specs": {"gpus": {}}}, {"status": {}}],
)  # fmt: skip
def test_changed_answers_are_refused(bodies):
    with pytest.raises(LayoutChanged):
        Thunder().parse(documents(**bodies))


@pytest.mark.needs_recordings
def test_public_shape(recordings):
    path = recordings / "v1_pricing_shape_example.json"
    recorded = dataclasses.replace(read_recorded(path, "thunder"), url="https://api.thundercompute.com:8443/v1/pricing")
    rows = by_key(Thunder().parse([recorded]))
    raw = json.loads(path.read_bytes())["pricing"]
    assert set(rows) == {k for k in raw if "_x" in k}
    assert all(float(row.quote.price) == raw[key] for key, row in rows.items())
    assert rows["a100xl_x2_prototyping"].offer.gpu_count == 2
