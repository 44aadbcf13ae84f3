"""Seeweb: text numbers, plans that are active but nowhere, processor plans, sizes from the page's words, euros."""

import dataclasses
import json
from decimal import Decimal
from pathlib import Path

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.seeweb import Seeweb

RECORDING = Path(__file__).resolve().parents[2].parent / "shared" / "recordings" / "seeweb" / "plans.json"
DOCUMENTS = {d.name: d for d in fixture_documents("seeweb")}
PAGE = DOCUMENTS["cloud-server-gpu"]


def parse(*documents):
    return Seeweb().parse(documents)


def page_with(old, new):
    assert old in PAGE.text()
    return dataclasses.replace(PAGE, body=PAGE.text().replace(old, new).encode())


def api_with(change):
    data = json.loads(DOCUMENTS["plans"].body)
    change(data["plans"])
    return dataclasses.replace(DOCUMENTS["plans"], body=json.dumps(data).encode())


def test_sizes_of_the_page_cost_a_multiple():
    rows = parse(PAGE).rows
    assert {r.offer.gpu_count: r.quote.price for r in rows} == dict.fromkeys((1, 2, 4, 8), Decimal("2.60"))
    assert {(r.quote.currency, r.quote.price_scope, r.quote.price_usd_hour) for r in rows} == {("EUR", "gpu", None)}


def test_the_hourly_figure_is_read_and_not_the_monthly_one():
    rows = parse(page_with("<div>Hourly Cost", "<div>Monthly cost <b>1,898.00 EUR</b></div><div>Hourly Cost")).rows
    assert {r.quote.price for r in rows} == {Decimal("2.60")}


def test_the_continental_way_of_writing():
    assert {r.quote.price for r in parse(page_with("2.60 EUR", "€ 2,60")).rows} == {Decimal("2.60")}


def test_active_plans_without_a_region_cannot_be_had():
    rows = {r.offer.instance_type: r for r in parse(DOCUMENTS["plans"]).rows}
    assert rows["ECS2GPU3"].quote.availability == "unavailable"
    assert rows["ECS1GPU7"].quote.availability == "unknown"
    assert rows["ECS3GPU7"].offer.memory_gib == 128
    assert "ECS8" not in rows


def test_a_plan_of_the_api_is_not_listed_again_from_the_page():
    api = api_with(lambda p: p[0].update(gpu_label="H200", gpu="1"))
    assert {r.offer.gpu_count for r in parse(PAGE, api).rows if r.offer.instance_type.startswith("NVIDIA")} == {2, 4, 8}


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.clear(),
        lambda p: [x.update(gpu="0") for x in p],
        lambda p: [x.pop("hourly_price") for x in p],
        lambda p: [x.pop("gpu") for x in p],
    ],
)
def test_a_changed_api_is_refused(change):
    with pytest.raises(LayoutChanged):
        parse(api_with(change))


def test_changed_and_blocked_pages_are_refused():
    for page in (page_with("Hourly", "Daily"), dataclasses.replace(PAGE, body=b""), page_with("NVIDIA H200", "SERVER")):
        with pytest.raises(LayoutChanged):
            parse(page)
    with pytest.raises(Blocked):
        parse(dataclasses.replace(PAGE, body=b"<title>Access denied</title>", status=403))


@pytest.mark.needs_recordings
def test_recorded_plans():
    if not RECORDING.is_file():
        pytest.skip("recordings are not here")
    rows = parse(read_recorded(RECORDING, "seeweb")).rows
    assert [
        (r.offer.instance_type, r.offer.region, r.offer.gpu, r.offer.gpu_count, float(r.quote.price)) for r in rows
    ] == [
        ("ECS1GPU7", "it-fr2", "l40s-48gb", 1, 0.85),
        ("ECS1GPU7", "it-mi2", "l40s-48gb", 1, 0.85),
        ("ECS2GPU3", "it-fr2", "a100", 2, 1.98),
        ("ECS1GPU9", "it-fr2", "mi300x-192gb", 1, 1.6),
    ]
