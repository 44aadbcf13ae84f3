"""The views are a public interface: their columns, what these mean, and ten questions that people ask of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from catalog.describe import MACROS, describe, words
from catalog.errors import UnknownName
from catalog.history_months import attach_history, reaches_back
from catalog.home import Home
from catalog.queries import HEALTH_COLUMNS, OFFER_COLUMNS
from catalog.reader import Catalog, reading
from catalog.sandbox import run
from catalog.types import Offer, OfferRow, Quote, Run, Surcharge
from catalog.writer import ProviderFacts, Refreshed, writing

NOW = datetime.now(UTC)


def questions() -> dict[str, str]:
    text = files("catalog").joinpath("data", "questions.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- name: (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (p.strip() for p in parts[2::2]), strict=True))


def offer(sku: str, gpu: str, count: int, region: str, option: str = "on_demand") -> Offer:
    return Offer(
        provider="example", source_sku=sku, instance_type=sku, gpu=gpu, gpu_count=count, region=region, country="DE",
        purchase_option=option, gpu_interconnect="nvlink",
    )  # fmt: skip


EU, US = offer("h1", "h100-sxm-80gb", 1, "eu"), offer("h1", "h100-sxm-80gb", 1, "us")
SPOT = offer("h1", "h100-sxm-80gb", 1, "eu", "spot")
EIGHT, SMALL = offer("h8", "h100-sxm-80gb", 8, "eu"), offer("l4", "l4-24gb", 1, "eu")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Forty days of a small provider: prices change, one offer disappears."""
    home = Home(tmp_path_factory.mktemp("questions"))
    story: list[tuple[int, dict[Offer, str]]] = [
        (40, {EU: "4", US: "3.5", SPOT: "2", EIGHT: "30", SMALL: "0.5"}),
        (20, {EU: "4", US: "3.5", SPOT: "2", EIGHT: "30", SMALL: "0.5"}),
        (5, {EU: "3", US: "3.5", SPOT: "1.5", EIGHT: "30", SMALL: "0.5"}),
        (2, {EU: "3", US: "3.5", SPOT: "1.5", EIGHT: "30"}),
        (0, {EU: "3", US: "3.5", SPOT: "1.5", EIGHT: "30"}),
    ]
    for days, prices in story:
        at = NOW - timedelta(days=days)
        rows = [
            OfferRow(o, Quote(o.offer_id, at, Decimal(p), "USD", availability="available")) for o, p in prices.items()
        ]
        storage = Surcharge("example", "block_storage", Decimal("0.1"), "USD", "gb_month", observed_at=at)
        with writing(home, 5) as writer:
            writer.set_mode("live")
            writer.set_providers([
                ProviderFacts("example", "Example", "", "api", 3600, 21_600, True, "USD", True, ""),
                ProviderFacts("down", "Down", "", "api", 3600, 21_600, True, "USD", True, ""),
            ])  # fmt: skip
            run_ = Run(f"run-{days}", "example", at, at, "ok", len(rows), complete=True)
            writer.apply(Refreshed(run_, at, "live", rows, surcharges=[storage]))
            failed = Run(f"down-{days}", "down", at, at, "failed", reason="connection refused")
            writer.apply(Refreshed(failed, at, "live"))
            writer.publish(at)
    return home


@pytest.fixture
def catalog(home: Home) -> Iterator[Catalog]:
    with reading(home) as opened:
        attach_history(opened, home)
        yield opened


EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "The cheapest H100 SXM in each region now": [("eu", "example", "h1", 1, 3.0), ("us", "example", "h1", 1, 3.5)],
    "How much cheaper spot is, by provider": [("example", 1, 50.0)],
    "What today's offers cost 30 days ago": [("example", "h1", "eu", "on_demand", 4.0, 3.0, -25.0)],
    "The most accelerator memory for a dollar": [("example", "h1", "h100-sxm-80gb", 80.0, 1.5, 53.3)],
    "What disappeared this week": [("example", "l4", "eu", "on_demand", Decimal("0.5"), "USD")],
    "Prices that fell in the last 7 days": [],
    "Each GPU: how many providers, and its price range on demand": [("h100-sxm-80gb", 1, 3.0, 3.5, 3.75)],
    "Eight GPUs with 80 GB each and a fast link, by the month, storage and traffic beside it": [
        ("example", "h8", "eu", "h100-sxm-80gb", "nvlink", 21900.0, 0.1)
    ],
    "Bandwidth for the money: GB/s of memory per dollar and hour": [("h100-sxm-80gb", "example", "h1")],
    "Which providers' prices not to trust right now, and why": [("down", "failed", "never")],
}


def test_there_are_ten_questions() -> None:
    assert list(questions()) == list(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_question(catalog: Catalog, name: str) -> None:
    answer = run(catalog, questions()[name].removesuffix(";"))
    found = [row[: len(want)] for row, want in zip(answer.rows, EXPECTED[name], strict=False)]
    assert found == EXPECTED[name]
    if name.startswith("Prices that fell"):
        assert {(r[2], r[4], r[5]) for r in answer.rows} == {("h1", "on_demand", -25.0), ("h1", "spot", -25.0)}


def test_views_have_the_promised_columns_in_order(catalog: Catalog) -> None:
    def columns(view: str) -> list[str]:
        return [c["column_name"] for c in catalog.rows(f"DESCRIBE {view}")]

    assert columns("v_offers")[: len(OFFER_COLUMNS)] == list(OFFER_COLUMNS)
    assert columns("v_cheapest")[: len(OFFER_COLUMNS)] == list(OFFER_COLUMNS)
    assert columns("v_provider_health")[: len(HEALTH_COLUMNS)] == list(HEALTH_COLUMNS)
    assert columns("v_price_history")[:12] == [
        "offer_id", "gpu", "provider", "region", "purchase_option", "valid_from", "valid_to", "price", "currency",
        "price_usd_hour", "availability", "change_pct",
    ]  # fmt: skip
    assert columns("v_price_daily")[:8] == [
        "day", "gpu", "purchase_option", "provider", "min_price_usd_gpu_hour", "median_price_usd_gpu_hour",
        "max_price_usd_gpu_hour", "available_share",
    ]  # fmt: skip
    for macro in ("offers_as_of(now())", "offers_for(1, 1)"):
        found = [c["column_name"] for c in catalog.rows(f"DESCRIBE SELECT * FROM {macro}")]
        assert found == columns("v_offers")


DOCUMENTED = ("v_offers", "v_cheapest", "v_price_history", "v_price_daily", "v_surcharges", "v_provider_health",
              "v_rejections", "v_unmapped", "offers_as_of", "offers_for", "price_history_since")  # fmt: skip


def test_views_and_columns_are_described(catalog: Catalog) -> None:
    listed = {d["name"]: d["description"] for d in describe(catalog)}
    assert all(listed.values()), [n for n, text in listed.items() if not text]
    assert set(MACROS) <= set(listed)
    for view in DOCUMENTED:
        rows = describe(catalog, view)
        assert rows
        assert all(r["description"] and r["type"] for r in rows), [r["name"] for r in rows if not r["description"]]
    with pytest.raises(UnknownName, match="v_offers"):
        describe(catalog, "v_offer")
    stored = catalog.rows(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'v_offers' AND column_name = 'price'"
    )
    assert {r["comment"] for r in stored} == {words()["v_offers", "price"]}


def test_described_names_exist(catalog: Catalog) -> None:
    for view, column in words():
        names = [c["column_name"] for c in catalog.rows(f"DESCRIBE {view}")]
        assert not column or column in names, (view, column)


def test_closed_months_are_opened_only_for_the_past() -> None:
    needed = {name for name, sql in questions().items() if reaches_back(sql)}
    assert needed == {"What today's offers cost 30 days ago", "What disappeared this week",
                      "Prices that fell in the last 7 days"}  # fmt: skip


def test_the_command_line_answers_and_describes(home: Home, run_cli: Any) -> None:
    done = run_cli("sql", "--describe", "v_offers", "--format", "csv", home=Path(home.path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("name,type,description\noffer_id,VARCHAR,")
    assert "v_price_daily" in run_cli("sql", "--describe", "--format", "csv", home=Path(home.path)).stdout
    done = run_cli("sql", "SELECT count(*) AS n FROM v_price_history", "--format", "csv", home=Path(home.path))
    assert done.stdout == "n\n7\n"
    assert run_cli("sql", "SELECT * FROM read_text('/etc/passwd')", home=Path(home.path)).returncode == 2
