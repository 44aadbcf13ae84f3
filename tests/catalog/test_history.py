"""The change log over months: nothing is lost, nothing is made up, and the past is what it was."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from catalog import history_months
from catalog.history import find_offer, gpu_history, offer_history
from catalog.home import Home
from catalog.reader import Catalog, reading
from catalog.types import ExchangeRate, Offer, OfferRow, Outcome, Quote, Run
from catalog.writer import ProviderFacts, Refreshed, writing

START = datetime(2026, 3, 20, 9, tzinfo=UTC)
DAY = timedelta(days=1)
H100 = "h100-sxm-80gb"


def offer(sku: str, **given: Any) -> Offer:
    return Offer(**{"provider": "example", "source_sku": sku, "instance_type": sku, "gpu": H100, "gpu_count": 2,
                    "region": "eu"} | given)  # fmt: skip


A, B, C = offer("a"), offer("b"), offer("c", purchase_option="spot")


class Story:
    """A store that is written at made-up times."""

    def __init__(self, home: Home) -> None:
        self.home, self.count = home, 0

    def run(
        self, at: datetime, prices: dict[Offer, str | None], *, outcome: Outcome = "ok", currency: str = "USD",
        availability: str = "available", publish: bool = True, source: str = "example", rates: Sequence[Any] = (),
    ) -> int:  # fmt: skip
        self.count += 1
        rows = [
            OfferRow(o, Quote(o.offer_id, at, None if p is None else Decimal(p), currency, availability=availability))
            for o, p in prices.items()
        ]
        complete = outcome in {"ok", "unchanged"}
        run = Run(f"run-{self.count}", source, at, at, outcome, len(rows), complete=complete)
        with self.writer() as writer:
            if writer.mode is None:
                writer.set_mode("live")
                writer.set_providers([
                    ProviderFacts(s, s, "", "api", 3600, 21_600, True, "USD", True, "") for s in ("example", "other")
                ])  # fmt: skip
            gained = writer.apply(Refreshed(run=run, observed_at=at, provenance="live", rows=rows, rates=rates))
            if publish:
                writer.publish(at)
        return gained

    def writer(self) -> Any:
        return writing(self.home, 5)

    def ask(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        with reading(self.home) as catalog:
            history_months.attach_history(catalog, self.home)
            assert catalog.warnings == []
            return catalog.rows(sql, values)

    def as_of(self, at: datetime) -> dict[str, tuple[float | None, str]]:
        rows = self.ask(f"SELECT instance_type, price, freshness FROM offers_as_of('{at.isoformat()}')")
        return {r["instance_type"]: (None if r["price"] is None else float(r["price"]), r["freshness"]) for r in rows}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(Home(tmp_path / "home"))


def test_changes_are_logged_once_and_the_past_stays_what_it_was(story: Story) -> None:
    assert story.run(START, {A: "4", B: "6"}) == 2
    assert story.run(START + DAY, {A: "4", B: "6"}) == 0
    assert story.run(START + 2 * DAY, {A: "5", B: "6"}) == 1
    assert story.run(START + 3 * DAY, {A: "5"}) == 1  # b is gone
    assert story.run(START + 4 * DAY, {A: "5", B: "7.5"}) == 1  # and back
    rows = story.ask("SELECT * FROM v_price_history ORDER BY instance_type, valid_from")
    assert [(r["instance_type"], float(r["price"]), r["event"], r["ended_by"]) for r in rows] == [
        ("a", 4, "open", "change"), ("a", 5, "change", None), ("b", 6, "open", "gone"), ("b", 7.5, "back", None),
    ]  # fmt: skip
    assert [r["change_pct"] for r in rows] == [None, 25, None, None]
    assert rows[2]["valid_to"] == START + 3 * DAY
    assert [r["price_usd_gpu_hour"] for r in rows] == [2, 2.5, 3, 3.75]
    hour = timedelta(hours=1)
    assert story.as_of(START - hour) == {}
    assert story.as_of(START + hour) == {"a": (4, "fresh"), "b": (6, "fresh")}
    assert story.as_of(START + 2 * DAY + hour) == {"a": (5, "fresh"), "b": (6, "fresh")}
    assert story.as_of(START + 3 * DAY + hour) == {"a": (5, "fresh")}
    assert story.as_of(START + 4 * DAY + hour) == {"a": (5, "fresh"), "b": (7.5, "fresh")}
    assert story.as_of(START + 4 * DAY + 7 * hour) == {"a": (5, "aging"), "b": (7.5, "aging")}
    assert story.as_of(START + 40 * DAY) == {"a": (5, "expired"), "b": (7.5, "expired")}


def test_history_since_a_moment_tells_what_held_then_and_came_after(story: Story) -> None:
    for day, prices in enumerate(({A: "4", B: "6"}, {A: "4"}, {A: "5", B: "6"}, {A: "5"})):
        story.run(START + day * DAY, prices)
    rows = story.ask(
        f"FROM price_history_since('{(START + 1.5 * DAY).isoformat()}') ORDER BY instance_type, valid_from"
    )
    assert [(r["instance_type"], float(r["price"]), r["event"], r["ended_by"]) for r in rows] == [
        ("a", 4, "earlier", "change"), ("a", 5, "change", None), ("b", 6, "back", "gone"),
    ]  # fmt: skip
    assert [r["change_pct"] for r in rows] == [None, 25, None]


def test_only_a_complete_good_run_closes_an_offer(story: Story) -> None:
    story.run(START, {A: "4", B: "6"})
    for day, outcome in enumerate(("partial", "held", "failed", "skipped"), start=1):
        story.run(START + day * DAY, {A: "4"} if outcome == "partial" else {}, outcome=outcome)
        assert len(story.ask("FROM v_offers")) == 2, outcome
    seen = {r["instance_type"]: r["observed_at"] for r in story.ask("FROM v_offers")}
    assert seen == {"a": START + DAY, "b": START}  # the partial run advanced only what it saw
    story.run(START + 5 * DAY, {A: "4"}, outcome="ok")
    assert [r["instance_type"] for r in story.ask("FROM v_offers")] == ["a"]


def test_a_renamed_gpu_keeps_its_history(story: Story) -> None:
    wrong = dataclasses.replace(A, gpu="h100-pcie-80gb")
    story.run(START, {wrong: "4"})
    assert story.run(START + DAY, {A: "4"}) == 0
    story.run(START + 2 * DAY, {A: "4.4"})
    rows = story.ask("SELECT gpu, price FROM v_price_history ORDER BY valid_from")
    assert [(r["gpu"], float(r["price"])) for r in rows] == [(H100, 4), (H100, 4.4)]


def test_months_are_closed_and_read_as_one(story: Story) -> None:
    days = range(0, 130, 3)
    for day in days:
        price = str(Decimal(400 + day % 7 * 13) / 100)
        story.run(START + day * DAY, {A: price, B: "6"}, publish=day % 15 == 0 or day == days[-1])
    files = [p.name for p in history_months.files_in(story.home)]
    assert files == ["history-2026-03.duckdb", "history-2026-04.duckdb", "history-2026-05.duckdb",
                     "history-2026-06.duckdb"]  # fmt: skip
    assert all(p.stat().st_mode & 0o222 == 0 for p in history_months.files_in(story.home))
    rows = story.ask("SELECT * FROM v_price_history WHERE instance_type = 'a' ORDER BY valid_from")
    assert len(rows) == len(days)
    assert all(x["valid_to"] == y["valid_from"] for x, y in itertools.pairwise(rows))
    for day in (0, 3, 9, 12, 39, 42, 45, 72, 99, days[-1]):
        price = float(Decimal(400 + day % 7 * 13) / 100)
        assert story.as_of(START + day * DAY + timedelta(hours=1)) == {"a": (price, "fresh"), "b": (6, "fresh")}, day
    with reading(story.home) as catalog:
        kept = catalog.rows("SELECT min(changed_at) AS first, count(*) AS n FROM price_log")[0]
        end = START + days[-1] * DAY
        assert end - timedelta(days=36) < kept["first"] < end - timedelta(days=31)
        old = catalog.rows(f"FROM offers_as_of('{(START + 12 * DAY).isoformat()}')")
        assert old == []  # a snapshot alone does not reach back so far, and says nothing rather than something wrong
        for day in (99, 108, 117, days[-1]):  # but as far as it reaches it is as right as the whole
            moment = START + day * DAY + timedelta(hours=1)
            told = catalog.rows(f"SELECT instance_type, price FROM offers_as_of('{moment.isoformat()}') ORDER BY 1")
            assert [(r["instance_type"], float(r["price"])) for r in told] == [
                ("a", float(Decimal(400 + day % 7 * 13) / 100)), ("b", 6),
            ]  # fmt: skip
        alone = catalog.rows("SELECT * FROM v_price_history ORDER BY instance_type, valid_from")
        assert [r["event"] for r in alone if r["instance_type"] == "b"] == ["earlier"]
        assert [r["valid_from"] for r in alone if r["instance_type"] == "b"] == [START]
        assert next(r["event"] for r in alone if r["instance_type"] == "a") == "earlier"
        assert all(x["valid_to"] == y["valid_from"] for x, y in itertools.pairwise(alone[:-1]))


def test_a_home_that_slept_for_months_still_knows_its_past(story: Story) -> None:
    story.run(START, {A: "4"})
    story.run(START + DAY, {A: "4.5"})
    late = START + 170 * DAY
    story.run(late, {A: "5"})
    assert story.as_of(START + timedelta(hours=1)) == {"a": (4, "fresh")}
    assert story.as_of(START + 100 * DAY) == {"a": (4.5, "expired")}
    assert story.as_of(late) == {"a": (5, "fresh")}
    with reading(story.home) as catalog:
        history_months.attach_history(catalog, story.home)
        found = offer_history(catalog, A.offer_id, START - DAY)
    assert [(g.start, g.end) for g in found.gaps] == [(START, START + DAY), (START + DAY, late)]
    drawn = [(s.start, s.end, s.price_usd_gpu_hour) for s in found.steps]
    assert drawn == [(START, START, 2), (START + DAY, START + DAY, 2.25), (late, late, 2.5)]


def test_a_gap_is_never_bridged(story: Story) -> None:
    hour = timedelta(hours=1)
    for turn in (0, 1, 2, 3, 50, 51):
        story.run(START + turn * hour, {A: "4"}, outcome="unchanged" if turn else "ok")
    with reading(story.home) as catalog:
        found = offer_history(catalog, A.offer_id, START - DAY)
    assert [(s.start, s.end) for s in found.steps] == [
        (START, START + 3 * hour),
        (START + 50 * hour, START + 51 * hour),
    ]
    assert [(g.start, g.end) for g in found.gaps] == [(START + 3 * hour, START + 50 * hour)]


def test_offers_seen_by_partial_runs_have_spans_of_their_own(story: Story) -> None:
    hour = timedelta(hours=1)
    story.run(START, {A: "4", B: "6"})
    for turn in (1, 9, 18, 29):
        story.run(START + turn * hour, {A: "4"}, outcome="partial", publish=turn == 29)
    with reading(story.home) as catalog:
        a, b = (offer_history(catalog, o.offer_id, START - DAY) for o in (A, B))
    assert max(s.end for s in a.steps) == START + 29 * hour
    assert max(s.end for s in b.steps) == START


def test_prices_that_a_double_cannot_hold_stay_exact(story: Story) -> None:
    exact = ["0.123456789012", "123456.789012345678", "7", "0.000000000001"]
    for day, price in enumerate(exact):
        story.run(START + day * DAY, {A: price})
    rows = story.ask("SELECT price FROM v_price_history ORDER BY valid_from")
    assert [r["price"] for r in rows] == [Decimal(p) for p in exact]


def test_units_and_currencies_of_the_past_are_kept(story: Story) -> None:
    def rate(day: datetime, usd: str) -> ExchangeRate:
        return ExchangeRate(day.date().isoformat(), "EUR", Decimal(usd))

    story.run(START, {A: "4"}, currency="EUR", rates=[rate(START, "1.10")])
    story.run(START + DAY, {A: "4"}, currency="EUR", rates=[rate(START + DAY, "1.20")])
    assert story.run(START + 2 * DAY, {A: "5"}, currency="EUR") == 1
    rows = story.ask("SELECT * FROM v_price_history ORDER BY valid_from")
    assert [r["currency"] for r in rows] == ["EUR", "EUR"]
    assert [round(r["price_usd_hour"], 9) for r in rows] == [4.4, 6.0]  # each at the rate of its day
    then = story.ask(f"SELECT price_usd_hour FROM offers_as_of('{(START + timedelta(hours=1)).isoformat()}')")
    assert math.isclose(then[0]["price_usd_hour"], 4.4)


def test_an_offer_without_a_price_has_a_history_too(story: Story) -> None:
    story.run(START, {A: None})
    story.run(START + DAY, {A: "4"})
    story.run(START + 2 * DAY, {A: None})
    rows = story.ask("SELECT price, change_pct FROM v_price_history ORDER BY valid_from")
    assert [r["price"] for r in rows] == [None, Decimal(4), None]
    assert story.as_of(START + 2 * DAY) == {"a": (None, "fresh")}


def test_a_clock_set_back_keeps_the_order_of_events(story: Story) -> None:
    story.run(START, {A: "4"})
    story.run(START - timedelta(hours=2), {A: "5"})
    story.run(START + timedelta(hours=1), {A: "6"})
    rows = story.ask("SELECT price FROM v_price_history ORDER BY valid_from")
    assert [float(r["price"]) for r in rows] == [4, 5, 6]


def test_daily_figures_hold_what_was_observed_that_day(story: Story) -> None:
    hour = timedelta(hours=1)
    story.run(START, {A: "4", B: "6", C: "1"})
    story.run(START + hour, {A: "8", B: "6", C: "1"})
    story.run(START + 2 * hour, {A: "5", B: "6", C: "1"}, availability="unavailable")
    story.run(START + 3 * DAY, {A: "5", B: "6", C: "1"})
    rows = story.ask("FROM v_price_daily WHERE purchase_option = 'on_demand' ORDER BY day")
    assert [r["day"] for r in rows] == [START.date(), (START + 3 * DAY).date()]
    first = rows[0]
    assert (first["min_price_usd_gpu_hour"], first["max_price_usd_gpu_hour"]) == (2, 4)
    assert (first["median_price_usd_gpu_hour"], first["available_share"]) == (2.75, 0)
    with reading(story.home) as catalog:
        assert len(gpu_history(catalog, [H100], START - DAY)) == 4
        assert len(gpu_history(catalog, [H100], START - DAY, purchase_options=["spot"])) == 2
        assert gpu_history(catalog, [H100], START - DAY, providers=["nobody"]) == []


def test_a_missing_or_foreign_month_is_said_and_nothing_is_made_up(story: Story, tmp_path: Path) -> None:
    for day in range(0, 131, 10):
        story.run(START + day * DAY, {A: str(4 + day % 3)}, publish=day % 30 == 0 or day == 130)
    april = history_months.file_of(story.home, "2026-04")
    april.rename(tmp_path / "aside")
    with reading(story.home) as catalog:
        history_months.attach_history(catalog, story.home)
        assert "2026-05-01" in catalog.warnings[0]
        assert catalog.rows(f"FROM offers_as_of('{(START + 5 * DAY).isoformat()}')") == []
        assert len(catalog.rows(f"FROM offers_as_of('{(START + 60 * DAY).isoformat()}')")) == 1
        told = catalog.rows("SELECT valid_from, price, event FROM v_price_history ORDER BY valid_from")
        assert told[0]["event"] == "earlier"
        assert told[0]["valid_from"] == START + 40 * DAY  # what held when May began is known, and since when
    (tmp_path / "aside").rename(april)
    march = history_months.file_of(story.home, "2026-03")
    other = Story(Home(tmp_path / "other"))
    for day in (0, 49):
        other.run(START + day * DAY, {A: "1"}, publish=day == 49)
    march.unlink()
    history_months.file_of(other.home, "2026-03").rename(march)
    with reading(story.home) as catalog:
        history_months.attach_history(catalog, story.home)
        assert "belongs to another catalog" in catalog.warnings[0]


@pytest.fixture
def short(story: Story) -> Iterator[tuple[Story, Catalog]]:
    story.run(START, {A: "4", B: "6"})
    with reading(story.home) as catalog:
        yield story, catalog


def test_offers_are_found_by_the_start_of_their_id(short: tuple[Story, Catalog]) -> None:
    catalog = short[1]
    assert find_offer(catalog, A.offer_id) == A.offer_id
    assert find_offer(catalog, A.offer_id[:8].upper()) == A.offer_id
    assert find_offer(catalog, "h100") is None
    with pytest.raises(Exception, match="unknown offer"):
        find_offer(catalog, "0" * 20)


def test_replacing_the_data_starts_a_new_past(story: Story) -> None:
    for day in (0, 1, 2, 30, 59):
        story.run(START + day * DAY, {A: str(4 + day % 3)}, publish=day in {30, 59})
    assert history_months.files_in(story.home)
    with story.writer() as writer:
        writer.clear()
    story.run(START + 61 * DAY, {A: "9"})
    assert story.as_of(START + 61 * DAY) == {"a": (9, "fresh")}
    assert story.as_of(START + 30 * DAY) == {}


def test_writing_uses_one_transaction_per_run(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails in the middle of a run leaves no trace of it."""
    story.run(START, {A: "4"})

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("in the middle")

    patched: Callable[..., None] = broken
    monkeypatch.setattr("catalog.writer_runs._update_state", patched)
    with pytest.raises(RuntimeError, match="in the middle"):
        story.run(START + DAY, {A: "5"})
    monkeypatch.undo()
    story.run(START + 2 * DAY, {A: "6"})
    rows = story.ask("SELECT price FROM v_price_history ORDER BY valid_from")
    assert [float(r["price"]) for r in rows] == [4, 6]
