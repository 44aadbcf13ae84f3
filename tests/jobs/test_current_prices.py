"""Always current prices, shown: providers behind a real local server, refreshed live, through every kind of trouble."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import ConfigurationError, StoreBusy
from catalog.home import Home
from catalog.queries import offers, provider_health
from catalog.reader import reading
from catalog.writer import writing
from interfaces import exits
from jobs.flight import claimed
from jobs.refresh import Report, refresh
from jobs.schedule import run_once

ROUTE = "servers?per_page=100&page=1"
L4 = "L4-1-24G"


def prices(home: Home, **filters: Any) -> dict[tuple[str, str, str], dict[str, Any]]:
    with reading(home) as catalog:
        return {(r["provider"], r["instance_type"], r["region"]): r for r in offers(catalog)}


def l4(home: Home) -> dict[str, Any]:
    return prices(home)["scaleway", L4, "fr-par-2"]


def health(home: Home, provider: str) -> dict[str, Any]:
    with reading(home) as catalog:
        return provider_health(catalog, [provider])[0]


def get_older(home: Home, provider: str, hours: float) -> None:
    """As if so much time had passed since this provider was last seen."""
    back = timedelta(hours=hours)
    with writing(home, 5) as writer:
        run = writer.connection.execute
        run("UPDATE live.current SET observed_at = observed_at - ? WHERE source = ?", [back, provider])
        run("UPDATE live.seen SET seen_at = seen_at - ? WHERE source = ?", [back, provider])
        run(
            "UPDATE live.provider_state SET last_success_at = last_success_at - $1, "
            "last_attempt_at = last_attempt_at - $1, last_complete_at = last_complete_at - $1 WHERE provider = $2",
            [back, provider],
        )
        writer.publish()


def load(served: Any, *providers: str) -> Report:
    served.provider(*providers)
    return refresh(served.home, providers, timeout_s=20)


def set_price(served: Any, price: float) -> None:
    def change(document: Any) -> None:
        document["servers"][L4]["hourly_price"] = price

    served.edit_json("scaleway", f"fr-par-2/products/{ROUTE}", change)


def test_a_new_price_at_the_source_is_shown(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = load(served, "scaleway", "nebius", "ecb")
    assert {r.provider: r.outcome for r in report.results} == {"scaleway": "ok", "nebius": "ok", "ecb": "ok"}
    before = l4(served.home)
    assert before["provenance"] == "live"
    assert before["freshness"] == "fresh"

    set_price(served, 0.8123)
    assert refresh(served.home, ["scaleway"], timeout_s=20).results[0].changed_count == 1
    after = l4(served.home)
    assert float(after["price"]) == 0.8123
    assert after["observed_at"] > before["observed_at"]
    assert after["offer_id"] == before["offer_id"]

    set_price(served, 0.7001)
    run_once(served.home, ["scaleway", "ecb"])
    latest = l4(served.home)
    assert float(latest["price"]) == 0.7001
    assert latest["observed_at"] > after["observed_at"]


def test_unchanged_documents_count_as_seen_and_not_as_changed(served: Any) -> None:
    load(served, "scaleway", "ecb")
    before = l4(served.home)
    get_older(served.home, "scaleway", 5)
    result = refresh(served.home, ["scaleway"], timeout_s=20).results[0]
    assert (result.outcome, result.changed_count, result.row_count) == ("unchanged", 0, 22)
    after = l4(served.home)
    assert after["observed_at"] > before["observed_at"]
    assert after["run_id"] == before["run_id"]
    assert health(served.home, "scaleway")["row_count"] == 22


def test_a_server_that_says_not_modified_counts_as_seen(served: Any) -> None:
    served.provider("nebius", "ecb")
    path = next(iter(served.bodies["nebius"]))

    def answer(request: Any) -> Any:
        if request.headers.get("if-none-match") == '"v1"':
            return served.server.answer(b"", 304, etag='"v1"')
        return served.server.answer(served.bodies["nebius"][path], etag='"v1"')

    served.server.route(path, answer)
    assert refresh(served.home, ["nebius", "ecb"], timeout_s=20).results[0].outcome == "ok"
    get_older(served.home, "nebius", 40)
    result = refresh(served.home, ["nebius"], timeout_s=20).results[0]
    assert (result.outcome, result.row_count, result.changed_count) == ("unchanged", 26, 0)
    assert health(served.home, "nebius")["age_s"] < 3600
    assert {r["freshness"] for r in prices(served.home).values()} == {"fresh"}


def test_a_busy_writer_is_waited_for_and_then_said(served: Any) -> None:
    load(served, "nebius", "ecb")
    with writing(served.home, 5):
        with pytest.raises(StoreBusy, match=f"process {os.getpid()}") as busy:
            refresh(served.home, ["ecb"], timeout_s=1, write_wait_s=0.5)
        assert exits.code_of(busy.value, "refresh") == 6
    assert refresh(served.home, ["ecb"], timeout_s=20).results[0].outcome == "unchanged"


def test_a_server_error_keeps_the_old_price_and_lets_it_age(served: Any) -> None:
    load(served, "scaleway", "ecb")
    before = l4(served.home)
    served.answer_all("scaleway", served.server.answer("oops", 500))
    get_older(served.home, "scaleway", 7)  # max_age is 6 h
    report = refresh(served.home, ["scaleway"], timeout_s=20)
    assert report.troubled
    aging = l4(served.home)
    assert (aging["price"], aging["freshness"]) == (before["price"], "aging")
    assert aging["age_s"] >= 7 * 3600
    state = health(served.home, "scaleway")
    assert (state["outcome"], state["freshness"], state["row_count"]) == ("failed", "aging", 22)
    assert "500" in state["note"]

    get_older(served.home, "scaleway", 6)
    assert l4(served.home)["freshness"] == "stale"
    get_older(served.home, "scaleway", 7 * 24)
    assert l4(served.home)["freshness"] == "expired"

    served.restore("scaleway")
    assert refresh(served.home, ["scaleway"], timeout_s=20).results[0].outcome in {"ok", "unchanged"}
    assert l4(served.home)["freshness"] == "fresh"


def _halve(served: Any) -> None:
    def change(document: Any) -> None:
        servers = document["servers"]
        for name in sorted(servers)[: (len(servers) + 1) // 2]:
            del servers[name]

    served.edit_json("scaleway", ROUTE, change)


def _empty(served: Any) -> None:
    served.edit("scaleway", ROUTE, lambda body: b"")


def _bomb(served: Any) -> None:
    served.answer_all("scaleway", served.server.bomb(300))


FAULTS = {
    "429 that asks to wait longer than there is time": lambda s: s.answer_all("scaleway", s.server.too_many("3600")),
    "drip": lambda s: s.answer_all("scaleway", s.server.drip(b'{"servers": {}}' + b" " * 500, 0.2)),
    "truncated gzip": lambda s: s.answer_all("scaleway", s.server.gzipped(b'{"servers": {}}' * 500, keep_bytes=40)),
    "decompression bomb": _bomb,
    "redirect to another host": lambda s: s.answer_all("scaleway", s.server.redirect("https://evil.example/prices")),
    "empty 200": _empty,
    "JSON without a server": lambda s: s.answer_all("scaleway", s.server.answer('{"servers": {}}')),
    "a page for people": lambda s: s.answer_all("scaleway", s.server.answer("<html>be right back</html>")),
    "list cut in half": _halve,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_the_source_loses_nothing(served: Any, fault: str) -> None:
    load(served, "scaleway", "nebius", "ecb")
    before = prices(served.home)
    FAULTS[fault](served)
    started = time.monotonic()
    result = refresh(served.home, ["scaleway", "nebius"], timeout_s=3).results
    assert time.monotonic() - started < 15
    outcomes = {r.provider: r.outcome for r in result}
    assert outcomes["nebius"] == "unchanged"
    assert outcomes["scaleway"] == ("held" if fault == "list cut in half" else "failed")
    after = prices(served.home)
    assert {k: (v["price"], v["freshness"]) for k, v in after.items()} == {
        k: (v["price"], "fresh") for k, v in before.items()
    }
    state = health(served.home, "scaleway")
    assert state["note"]
    assert state["row_count"] == 22


def test_retry_after_is_honoured(served: Any) -> None:
    load(served, "nebius", "ecb")
    path = next(iter(served.bodies["nebius"]))
    answers = [served.server.too_many("1"), served.server.answer(served.bodies["nebius"][path])]
    served.server.route(path, lambda request: answers.pop(0))
    began = time.monotonic()
    assert refresh(served.home, ["nebius"], timeout_s=10).results[0].outcome == "unchanged"
    assert time.monotonic() - began >= 1


def test_endless_next_links_end_as_a_partial_run(served: Any) -> None:
    load(served, "azure", "ecb")
    before = prices(served.home)
    first = next(p for p in served.bodies["azure"] if "Standard_ND" in p)
    page = served.bodies["azure"][first]

    def endless(request: Any) -> Any:
        offset = int(request.path.rpartition("skip=")[2]) if "skip=" in request.path else 0
        link = f"https://prices.azure.com/x?$skip={offset + 1000}".encode()
        return served.server.answer(page.replace(b'"NextPageLink": null', b'"NextPageLink": "' + link + b'"'))

    served.server.route(first, endless)
    for offset in range(1000, 20_000, 1000):
        served.server.route(f"{first}&$skip={offset}", endless)
    result = refresh(served.home, ["azure"], timeout_s=20).results[0]
    assert result.outcome in {"partial", "failed"}
    assert result.note
    assert prices(served.home).keys() == before.keys()


def test_readers_in_other_processes_see_whole_catalogs_while_refresh_writes(served: Any) -> None:
    load(served, "scaleway", "ecb")
    script = (
        "import sys, time\n"
        "from catalog.home import home_from\n"
        "from catalog.queries import offers, provider_health\n"
        "from catalog.reader import reading\n"
        "reads = 0\n"
        "print('ready', flush=True)\n"
        "while not sys.stdin in __import__('select').select([sys.stdin], [], [], 0)[0]:\n"
        "    with reading(home_from()) as catalog:\n"
        "        n = len(offers(catalog)); provider_health(catalog)\n"
        "        assert n == 22, n\n"
        "        assert not catalog.warnings, catalog.warnings\n"
        "    reads += 1\n"
        "print(reads)\n"
    )
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=dict(os.environ), cwd=Path(__file__).parents[2],
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        for step in range(3):
            set_price(served, 0.70 + step / 1000)
            assert refresh(served.home, ["scaleway"], timeout_s=20).results[0].outcome == "ok"
        answers = [reader.communicate(input="stop\n", timeout=20) for reader in readers]
    finally:
        for reader in readers:
            reader.kill()
    for reader, (out, err) in zip(readers, answers, strict=True):
        assert reader.returncode == 0, err
        assert int(out) > 0


def test_two_refreshes_at_once_share_one_result(served: Any) -> None:
    served.provider("nebius", "ecb")
    path = next(iter(served.bodies["nebius"]))
    body = served.bodies["nebius"][path]

    def slow(request: Any) -> Any:
        time.sleep(0.7)
        return served.server.answer(body)

    served.server.route(path, slow)
    reports: list[Report] = []
    threads = [
        threading.Thread(target=lambda: reports.append(refresh(served.home, ["nebius"], timeout_s=20)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    assert served.server.paths().count(path) == 1
    assert sorted(r.results[0].shared for r in reports) == [False, True]
    assert {r.results[0].outcome for r in reports} == {"ok"}
    assert {r.results[0].row_count for r in reports} == {health(served.home, "nebius")["row_count"]}


def test_a_refresh_that_died_is_taken_over(served: Any) -> None:
    served.provider("nebius", "ecb")
    holding = threading.Event()

    def die_soon() -> None:
        with claimed(served.home, ["nebius"]):
            holding.set()
            time.sleep(0.5)

    served.home.ensure()
    other = threading.Thread(target=die_soon)
    other.start()
    assert holding.wait(5)
    report = refresh(served.home, ["nebius", "ecb"], timeout_s=20)
    other.join()
    assert [(r.provider, r.outcome, r.shared) for r in report.results] == [
        ("nebius", "ok", False), ("ecb", "ok", False),
    ]  # fmt: skip
    with claimed(served.home, ["nebius"]), pytest.raises(StoreBusy, match="nebius"):
        refresh(served.home, ["nebius"], timeout_s=0.3)


def test_a_live_home_does_not_take_recorded_data(served: Any, run_cli: Any) -> None:
    load(served, "scaleway", "ecb")
    done = run_cli("refresh", "--from-fixtures", "scaleway", home=served.home.path)
    assert done.returncode == 2
    assert "--replace-live" in done.stderr
    with pytest.raises(ConfigurationError, match="live"):
        refresh(served.home, ["scaleway"], source="recorded")
    done = run_cli("refresh", "--from-fixtures", "--replace-live", "scaleway", "ecb", home=served.home.path)
    assert done.returncode == 0, done.stderr
    assert l4(served.home)["provenance"] != "live"
