"""A held run from end to end: kept, shown with its figures, accepted by hand; and limits for cron."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from catalog.errors import UnknownName
from catalog.health import details
from catalog.queries import offers
from catalog.reader import reading
from catalog.writer import writing
from jobs.refresh import accept_held, refresh

ROUTE = "servers?per_page=100&page=1"


def double(served: Any) -> None:
    def change(document: Any) -> None:
        for server in document["servers"].values():
            if server.get("gpu") and server["hourly_price"]:
                server["hourly_price"] = round(server["hourly_price"] * 2, 6)

    served.edit_json("scaleway", ROUTE, change)


@pytest.fixture
def held(served: Any) -> Any:
    served.provider("scaleway", "ecb")
    refresh(served.home, ["scaleway", "ecb"], timeout_s=20)
    double(served)
    result = refresh(served.home, ["scaleway"], timeout_s=20).results[0]
    assert result.outcome == "held"
    return served, result.run_id


def prices(served: Any) -> dict[str, float]:
    with reading(served.home) as catalog:
        return {r["offer_id"]: float(r["price"]) for r in offers(catalog)}


def test_a_held_run_is_shown_with_figures_and_accepted(held: Any, run_cli: Any) -> None:
    served, run_id = held
    before = prices(served)
    shown = run_cli("status", "scaleway", home=served.home.path)
    assert "prices_shifted" in shown.stdout
    assert "median 2x" in shown.stdout
    assert f"refresh scaleway --accept {run_id}" in shown.stdout
    answer = json.loads(run_cli("status", "scaleway", "--format", "json", home=served.home.path).stdout)
    detail = answer["details"][0]
    assert detail["held_count"] == 22
    assert "prices_shifted" in {t["rule"] for t in detail["trips"]}
    assert float(detail["held"][0]["price"]) == 2 * float(detail["held"][0]["price_before"])
    assert answer["rows"][0]["outcome"] == "held"

    done = run_cli("refresh", "scaleway", "--accept", run_id, "--format", "json", home=served.home.path)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["rows"][0]
    assert (row["outcome"], row["row_count"], row["changed_count"]) == ("ok", 22, 22)
    assert prices(served) == {k: round(2 * v, 6) for k, v in before.items()}
    with reading(served.home) as catalog:
        after = details(catalog, "scaleway")
    assert (after.trips, after.held_count) == ([], 0)
    assert run_id in after.runs[0]["reason"]
    assert refresh(served.home, ["scaleway"], timeout_s=20).results[0].outcome == "ok"  # judged against the new prices


def test_what_a_held_run_rejected_and_could_not_name_stays_when_it_is_accepted(served: Any) -> None:
    def change(document: Any) -> None:
        cards = [s for s in document["servers"].values() if s.get("gpu") and s["hourly_price"]]
        if len(cards) > 1:
            cards[0]["hourly_price"] = "soon"
            cards[1]["gpu_info"]["gpu_name"] = "Feynman"

    served.provider("scaleway", "ecb")
    refresh(served.home, ["scaleway", "ecb"], timeout_s=20)
    double(served)
    served.edit_json("scaleway", ROUTE, change)
    held = refresh(served.home, ["scaleway"], timeout_s=20).results[0]
    assert held.outcome == "held"

    def left_out() -> list[tuple[Any, ...]]:
        with reading(served.home) as catalog:
            return [
                tuple(row.values())
                for view in ("v_rejections", "unmapped_names")
                for row in catalog.rows(f"SELECT * FROM {view} WHERE provider = 'scaleway' ORDER BY ALL")
            ]

    before = left_out()
    assert {row[0] for row in before} == {held.run_id}
    assert "Feynman" in str(before)
    assert "soon" in str(before)
    accept_held(served.home, "scaleway", held.run_id)
    assert left_out() == before


def test_only_a_run_that_is_kept_can_be_accepted(held: Any, run_cli: Any) -> None:
    served, run_id = held
    with pytest.raises(UnknownName, match=run_id):
        accept_held(served.home, "scaleway", "scaleway-never")
    with pytest.raises(UnknownName, match="held run of ecb"):
        accept_held(served.home, "ecb", run_id)
    assert run_cli("refresh", "--accept", run_id, home=served.home.path).returncode == 2
    assert run_cli("refresh", "scaleway", "--accept", "no-such-run", home=served.home.path).returncode == 2
    served.provider("scaleway")  # the source is right again
    refresh(served.home, ["scaleway"], timeout_s=20)
    with pytest.raises(UnknownName):
        accept_held(served.home, "scaleway", run_id)  # a good run came after it: the old rows are forgotten


def test_rejections_and_scheduler_events_are_part_of_the_details(held: Any) -> None:
    served, _ = held
    with writing(served.home, 5) as writer:
        now = writer.connection.execute("SELECT now()").fetchall()[0][0]
        writer.record_events([(now, "scaleway", "overlap", "still running"), (now, "other", "missed", "")])
        writer.publish()
    with reading(served.home) as catalog:
        found = details(catalog, "scaleway")
    assert [e["event"] for e in found.events] == ["overlap"]
    assert [r["outcome"] for r in found.runs] == ["held", "ok"]


def test_a_limit_for_cron(served: Any, run_cli: Any) -> None:
    def code(*arguments: str) -> int:
        return int(run_cli("status", *arguments, home=served.home.path).returncode)

    served.provider("scaleway", "ecb")
    refresh(served.home, ["scaleway", "ecb"], timeout_s=20)
    assert code("--fail-if-older", "24h") == 0
    assert code("azure", "--fail-if-older", "24h") == 4  # named, never refreshed
    with writing(served.home, 5) as writer:
        writer.connection.execute(
            "UPDATE live.provider_state SET last_success_at = last_success_at - ? WHERE provider = 'scaleway'",
            [timedelta(hours=25)],
        )
        writer.publish()
    done = run_cli("status", "--fail-if-older", "24h", home=served.home.path)
    assert done.returncode == 4
    assert "scaleway (25 h)" in done.stderr
    assert "ecb" not in done.stderr
    assert code("ecb", "--fail-if-older", "24h") == 0
    assert code("--fail-if-older", "2d") == 0
    assert code("--fail-if-older", "soon") == 2
