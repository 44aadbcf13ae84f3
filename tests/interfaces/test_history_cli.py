"""`gpubazaar history`: rows and charts that draw what was seen and leave out what was not."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from catalog.history import Step
from catalog.home import Home
from catalog.types import Offer, OfferRow, Outcome, Quote, Run
from catalog.writer import ProviderFacts, Refreshed, writing
from interfaces.chart import Chart, Line, svg
from interfaces.cmd_history import _band

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
SVG = "{http://www.w3.org/2000/svg}"


def offer(option: str, zone: str = "") -> Offer:
    return Offer(
        provider="example", source_sku=f"h1-{option}", instance_type="h1", gpu="h100-sxm-80gb", gpu_count=2,
        region="eu", zone=zone, purchase_option=option,
    )  # fmt: skip


PLAIN, SPOT_A, SPOT_B = offer("on_demand"), offer("spot", "a"), offer("spot", "b")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A provider seen for some hours, down for two days, and seen again at another price."""
    home = Home(tmp_path_factory.mktemp("history-cli"))
    story: list[tuple[float, Outcome, dict[Offer, str]]] = [
        (80, "ok", {PLAIN: "4", SPOT_A: "1", SPOT_B: "2"}),
        (76, "unchanged", {}),
        (72, "ok", {PLAIN: "5", SPOT_A: "1", SPOT_B: "2"}),
        (20, "ok", {PLAIN: "6", SPOT_A: "1", SPOT_B: "2.4"}),
        (15, "unchanged", {}),
    ]
    for hours, outcome, prices in story:
        at = NOW - hours * HOUR
        rows = [
            OfferRow(o, Quote(o.offer_id, at, Decimal(p), "USD", availability="available")) for o, p in prices.items()
        ]
        with writing(home, 5) as writer:
            writer.set_mode("live")
            writer.set_providers([ProviderFacts("example", "E", "", "api", 3600, 21_600, True, "USD", True, "")])
            run = Run(f"run-{hours}", "example", at, at, outcome, len(rows), complete=True)
            writer.apply(Refreshed(run, at, "live", rows))
            writer.publish(at)
    return home


def paths(text: str) -> dict[str, str]:
    root = ET.fromstring(text)
    return {p.get("data-series", ""): p.get("d", "") for p in root.iter(f"{SVG}path")}


def test_an_offer_with_a_gap(home: Home, run_cli: Any, tmp_path: Path) -> None:
    chart = tmp_path / "offer.svg"
    done = run_cli("history", PLAIN.offer_id, "--days", "7", "--chart", str(chart), "--format", "json", home=home.path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [float(r["price"]) for r in answer["rows"]] == [4, 5, 6]
    assert len(answer["gaps"]) == 1
    assert "not seen from" in done.stderr
    text = chart.read_text()
    drawn = paths(text)["on demand"]
    assert drawn.count("M") == 2  # before and after the gap, and no line across it
    assert drawn.count("V") == 1  # one step up in between
    assert "C" not in drawn
    assert "L" not in drawn
    assert text.count('class="spot-band"') >= 2
    assert "spot, lowest to highest" in text
    left, right = (float(x) for x in re.findall(r"H([\d.]+) M([\d.]+)", drawn)[0])
    assert right - left > 100  # two of seven days


def test_a_gpu_day_by_day(home: Home, run_cli: Any, tmp_path: Path) -> None:
    chart = tmp_path / "gpu.svg"
    done = run_cli("history", "h100 sxm", "--days", "7", "--chart", str(chart), "--format", "csv", home=home.path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("day,gpu,purchase_option,provider,min_price_usd_gpu_hour")
    assert {line.split(",")[2] for line in lines[1:]} == {"on_demand", "spot"}
    assert "example" in paths(chart.read_text())
    only = run_cli("history", "h100-sxm-80gb", "--purchase-option", "spot", "--format", "csv", home=home.path)
    assert {line.split(",")[2] for line in only.stdout.splitlines()[1:]} == {"spot"}


def test_what_is_not_known_is_said(home: Home, run_cli: Any, tmp_path: Path) -> None:
    assert run_cli("history", "h1000", home=home.path).returncode == 2
    assert run_cli("history", "0" * 20, home=home.path).returncode == 2
    done = run_cli("history", "l4-24gb", home=home.path)
    assert done.returncode == 0, "an empty past is an answer; 3 belongs to offers and plan"
    assert "nothing is known of l4-24gb" in done.stderr
    assert run_cli("history", "h100", "--chart", str(tmp_path / "no" / "x.svg"), home=home.path).returncode == 2


def test_a_chart_escapes_names_and_stands_empty_data() -> None:
    steps = [Step(NOW, NOW, 3.0)]
    text = svg(Chart('<b> & "x"', NOW - HOUR, NOW, [Line('a<&">', steps), Line("none", [])]))
    assert list(paths(text)) == ['a<&">']
    assert re.search(r"H[\d.]+", paths(text)['a<&">'])  # one sighting is a dot
    ET.fromstring(svg(Chart("empty", NOW - HOUR, NOW, [])))


def test_the_band_holds_only_what_was_seen_at_once() -> None:
    a = [Step(NOW, NOW + 2 * HOUR, 1.0)]
    b = [Step(NOW + HOUR, NOW + 3 * HOUR, 2.0), Step(NOW + 5 * HOUR, NOW + 6 * HOUR, 4.0)]
    found = [((low.start - NOW) / HOUR, low.price_usd_gpu_hour, high.price_usd_gpu_hour) for low, high in _band([a, b])]
    assert found == [(0, 1, 1), (1, 1, 2), (2, 2, 2), (5, 4, 4)]
