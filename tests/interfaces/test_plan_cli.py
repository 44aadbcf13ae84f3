"""`plan` and `compare` as a user meets them: the contract of the JSON, exit codes, refresh, languages, explanation."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from catalog.home import Home
from catalog.types import ExchangeRate
from collectors.fixtures import fixture_documents
from tests.plan_shop import a_surcharge, an_offer, stored

ROW_KEYS = {
    "rank", "provider", "via", "instance_type", "region", "country", "gpu", "gpu_count", "purchase_option",
    "commitment_days", "instances", "replicas", "plan_gpus", "tp", "pp", "dp", "verdict", "required_gib_per_gpu",
    "headroom_gib_per_gpu", "gpu_interconnect", "tpot_ms", "ttft_ms", "output_tokens_s", "seconds_per_item", "hours",
    "price_usd_hour", "plan_usd_hour", "cost_lines", "cost_compute_usd", "cost_storage_usd", "cost_egress_usd",
    "cost_total_usd", "cost_usd_month", "cost_usd_per_million_tokens", "availability", "observed_at", "age_s",
    "freshness", "provenance", "source_url", "warnings", "reasons",
}  # fmt: skip
LINE_KEYS = {"kind", "quantity", "unit", "unit_price_usd", "cost_usd", "source"}
ANSWER_KEYS = {
    "as_of", "workload", "policy", "rows", "alternatives", "rejected", "providers", "assumptions", "warnings",
}  # fmt: skip
LLAMA = ("--model", "meta-llama/Llama-3.1-8B-Instruct", "--context", "4096")
OFFERS = [
    an_offer("h100-sxm-80gb", "2.5"),
    an_offer("l40s-48gb", "0.9"),
    an_offer("l40s-48gb", "0.3", purchase_option="spot"),
    an_offer("h100-sxm-80gb", "20", gpu_count=8, rdma=True, network_gbps=3200.0),
    an_offer("t4-16gb", "0.4"),
]
EXTRAS = [
    a_surcharge("block_storage", "0.08", "gb_month"),
    a_surcharge("egress", "0.09", "gb"),
    a_surcharge("public_ipv4", "0.005", "hour"),
]


@pytest.fixture(scope="module")
def shop_home(tmp_path_factory) -> Path:
    """A live home of a few fresh offers."""
    home = Home(tmp_path_factory.mktemp("shop"))
    stored(home, OFFERS, EXTRAS)
    return home.path


def planned(run_cli, home, *arguments: str, code: int = 0, **environment: str) -> dict[str, Any]:
    done = run_cli("plan", *arguments, "--refresh", "never", "--format", "json", home=home, **environment)
    assert done.returncode == code, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", *LLAMA, "--concurrency", "8", "--egress-gb", "100"),
        ("serve", *LLAMA, "--hours-per-day", "3", "--starts-per-day", "5", "--requests-s", "0.5"),
        ("batch", *LLAMA, "--requests", "5000"),
        ("lora", "--model", "meta-llama/Llama-3.1-8B-Instruct", "--tokens", "1000000"),
        ("pretrain", "--model", "meta-llama/Llama-3.1-8B-Instruct", "--gpus", "16", "--tokens", "1e9"),
        ("image", "--model", "stabilityai/stable-diffusion-xl-base-1.0", "--items", "500"),
    ],
)
def test_the_contract_of_the_answer(run_cli, shop_home, arguments):
    answer = planned(run_cli, shop_home, *arguments)
    assert set(answer) >= ANSWER_KEYS
    assert answer["rows"]
    assert [row["rank"] for row in answer["rows"]] == list(range(1, len(answer["rows"]) + 1))
    serve = arguments[0] == "serve"
    for row in (*answer["rows"], *answer["alternatives"]):
        assert set(row) == ROW_KEYS
        assert all(set(line) == LINE_KEYS for line in row["cost_lines"])
        _check_money(row)
        assert (row["cost_usd_month"] == row["cost_total_usd"]) if serve else row["cost_usd_month"] is None
        assert (row["hours"] is None) == serve
        assert row["plan_gpus"] == row["instances"] * row["gpu_count"]
        assert row["plan_usd_hour"] == pytest.approx(row["price_usd_hour"] * row["instances"])
        assert all(set(item) == {"code", "values"} for item in (*row["reasons"], *row["warnings"]))
    assert set(answer["rejected"]) == {"counts", "nearest"}
    assert all(isinstance(n, int) and n > 0 for n in answer["rejected"]["counts"].values())
    assert {"provider", "outcome", "last_success_at", "age_s", "freshness", "note"} == set(answer["providers"][0])


def _check_money(row: dict[str, Any]) -> None:
    """The lines make the total exactly, and compute + storage + egress is the total."""
    total = sum((Decimal(str(line["cost_usd"])) for line in row["cost_lines"]), Decimal(0))
    assert total == Decimal(str(row["cost_total_usd"]))
    parts = (Decimal(str(row[f"cost_{name}_usd"])) for name in ("compute", "storage", "egress"))
    assert sum(parts, Decimal(0)) == total


def test_defaults_are_echoed_in_the_policy(run_cli, shop_home):
    policy = planned(run_cli, shop_home, "serve", *LLAMA)["policy"]
    wanted = {
        "objective": "cost",
        "tpot_ms_max": 50,
        "ttft_ms_max": 2000,
        "max_commitment_days": 0,
        "hours_per_day": 24,
    }
    assert {name: policy[name] for name in wanted} == wanted
    batch = planned(run_cli, shop_home, "batch", *LLAMA)["policy"]
    assert (batch["tpot_ms_max"], batch["ttft_ms_max"]) == (None, None)


def test_filters_and_workload_keys_of_one_name(run_cli, shop_home):
    answer = planned(
        run_cli, shop_home, "serve", *LLAMA, "--gpu", "H100", "--gpu-count", "1", "--max-price-usd-hour", "3"
    )
    assert {(row["gpu"], row["gpu_count"]) for row in answer["rows"]} == {("h100-sxm-80gb", 1)}
    assert answer["workload"]["gpu"] == "H100"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", *LLAMA, "--gpu", "h1000"), ["h1000"]),
        (("serve", "--model", "meta-llama/Llama-3.1-8B-Instrukt"), ["Instrukt", "Llama-3.1-8B-Instruct"]),
        (("sevre", *LLAMA), ["sevre", "serve"]),
        (("serve", *LLAMA, "--objective", "speed"), ["speed", "latency"]),
        (("serve", *LLAMA, "--budget-usd", "many"), ["many"]),
        (("serve", *LLAMA, "--weights", "fp9"), ["fp9", "fp8"]),
        (("serve", *LLAMA, "--provider", "acmee"), ["acmee", "acme"]),
        (("serve", *LLAMA, "--tenancy", "cloudy"), ["cloudy"]),
        (("lora", *LLAMA), ["context"]),
        (("serve", *LLAMA, "--bugdet-usd", "5"), ["--bugdet-usd", "--budget-usd"]),
    ],
)
def test_bad_input_is_exit_2_with_the_value_and_a_guess(run_cli, shop_home, arguments, words):
    done = run_cli("plan", *arguments, "--refresh", "never", home=shop_home)
    assert done.returncode == 2
    assert done.stdout == ""
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_fits_is_exit_3_with_the_nearest_miss(run_cli, shop_home):
    done = run_cli("plan", "serve", "--model", "meta-llama/Llama-3.1-70B-Instruct", "--gpu", "t4", "--refresh", "never",
                   home=shop_home)  # fmt: skip
    assert done.returncode == 3
    assert "nearest miss: 1 x t4-16gb" in done.stderr
    assert re.search(r"needs? .*GiB", done.stderr)


def test_an_empty_home_is_exit_3_and_says_what_to_do(run_cli, tmp_path):
    done = run_cli("plan", "serve", *LLAMA, "--refresh", "never", home=tmp_path / "nothing")
    assert done.returncode == 3
    assert "gpubazaar refresh" in done.stderr


def test_only_stale_prices_is_exit_4_and_they_can_be_admitted(run_cli, tmp_path):
    home = stored(Home(tmp_path / "old"), OFFERS, age=timedelta(days=4)).path
    answer = planned(run_cli, home, "serve", *LLAMA, code=4)
    assert answer["rows"] == []
    assert answer["rejected"]["counts"]["stale"] == 4
    assert planned(run_cli, home, "serve", *LLAMA, "--allow-stale")["rows"]
    # what would not fit even at old prices is no question of age
    planned(run_cli, home, "serve", "--model", "deepseek-ai/DeepSeek-R1", "--gpu", "t4", code=3)


def test_formats(run_cli, shop_home):
    done = run_cli("plan", "serve", *LLAMA, "--refresh", "never", "--format", "csv", home=shop_home)
    header, *rows = done.stdout.splitlines()
    assert header.startswith("rank,provider,via,instance_type")
    assert len(rows) == 3
    done = run_cli("plan", "serve", *LLAMA, "--refresh", "never", "--format", "jsonl", home=shop_home)
    assert [json.loads(line)["rank"] for line in done.stdout.splitlines()] == [1, 2, 3]
    done = run_cli("plan", "serve", *LLAMA, "--refresh", "never", home=shop_home)
    assert "Cost a month" in done.stdout
    assert "1xl40s-48gb" in done.stdout
    assert "assumed:" in done.stderr
    assert "\x1b[" not in done.stdout


def test_explain_prints_the_whole_arithmetic(run_cli, shop_home):
    done = run_cli("plan", "serve", *LLAMA, "--refresh", "never", "--explain", "1", home=shop_home)
    assert "memory of the fullest GPU, GiB" in done.stdout
    assert "compute: 730.000000 instance_hour x 0.9" in done.stdout
    assert "USD in all" in done.stdout
    assert "https://example.com/prices" in done.stdout
    missing = run_cli("plan", "serve", *LLAMA, "--refresh", "never", "--explain", "99", home=shop_home)
    assert "no row of rank 99" in missing.stderr


def test_rupees_with_indian_grouping_and_hindi(run_cli, recorded_home):
    arguments = ("plan", "serve", "--model", "meta-llama/Llama-3.1-70B-Instruct", "--weights", "fp8", "--provider",
                 "nebius", "--gpu", "b300", "--gpu-count", "1", "--allow-stale", "--currency", "inr")  # fmt: skip
    # 730 h x 7.85 USD + 4.343688 USD of storage, at 0.01037074 USD a rupee
    rupees = Decimal("5734.843688") / Decimal("0.01037074")
    assert int(rupees) == 552983
    english = run_cli(*arguments, home=recorded_home)
    assert "₹5,52,983." in english.stdout
    hindi = run_cli(*arguments, "--lang", "hi", home=recorded_home)
    assert "मासिक लागत" in hindi.stdout
    assert "₹5,52,983." in hindi.stdout
    assert "कर शामिल नहीं हैं" in hindi.stderr
    data = json.loads(run_cli(*arguments, "--format", "json", home=recorded_home).stdout)
    assert data["rows"][0]["cost_total_inr"] == pytest.approx(float(rupees), rel=1e-6)


def test_a_recorded_home_is_planned_and_never_refreshed(run_cli, recorded_home):
    done = run_cli("plan", "serve", *LLAMA, "--provider", "nebius", "--allow-stale", "--format", "json",
                   home=recorded_home, GPUBAZAAR_FETCH_MAP="https://nebius.com=http://127.0.0.1:9")  # fmt: skip
    assert done.returncode == 0
    codes = [w["code"] for w in json.loads(done.stdout)["warnings"]]
    assert "recorded_home_not_refreshed" in codes
    assert not [code for code in codes if code.startswith("refresh_")]


def scaleway_home(tmp_path: Path, age: timedelta) -> Path:
    """A live home whose only offer is an L4 of Scaleway, of some age; its limit is six hours."""
    offer = an_offer("l4-24gb", "0.5", provider="scaleway", instance_type="L4-OLD")
    euro = [ExchangeRate("2026-10-06", "EUR", Decimal("1.1269"))]
    return stored(Home(tmp_path / "scaleway"), [offer], age=age, max_age_s=21_600, rates=euro).path


def test_a_failing_source_leaves_the_last_good_price_with_a_warning(run_cli, tmp_path):
    home = scaleway_home(tmp_path, timedelta(hours=8))
    done = run_cli("plan", "serve", *LLAMA, "--weights", "awq", "--provider", "scaleway", "--format", "json",
                   "--refresh-timeout", "5", home=home,
                   GPUBAZAAR_FETCH_MAP="https://api.scaleway.com=http://127.0.0.1:9")  # fmt: skip
    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [(r["instance_type"], r["freshness"]) for r in answer["rows"]] == [("L4-OLD", "aging")]
    assert "refresh_failed" in [w["code"] for w in answer["warnings"]]
    assert answer["providers"][0]["outcome"] == "failed"
    assert "provider_trouble" in [w["code"] for w in answer["warnings"]]
    # it is not asked again at once: the second answer comes without a refresh, and still says what is wrong
    again = run_cli("plan", "serve", *LLAMA, "--weights", "awq", "--provider", "scaleway", "--format", "json",
                    home=home, GPUBAZAAR_FETCH_MAP="https://api.scaleway.com=http://127.0.0.1:9")  # fmt: skip
    codes = [w["code"] for w in json.loads(again.stdout)["warnings"]]
    assert "provider_trouble" in codes
    assert "refresh_failed" not in codes


def test_prices_past_their_age_are_fetched_first(run_cli, tmp_path, local_server):
    home = scaleway_home(tmp_path, timedelta(hours=8))
    for document in fixture_documents("scaleway"):
        path = document.url.removeprefix("https://api.scaleway.com")
        local_server.text(path, document.body)
    mapped = ",".join(f"{host}={target}" for host, target in local_server.fetch_map("api.scaleway.com").items())
    arguments = ("plan", "serve", *LLAMA, "--weights", "awq", "--provider", "scaleway", "--format", "json")
    kept = json.loads(run_cli(*arguments, "--refresh", "never", home=home).stdout)
    assert {r["instance_type"] for r in kept["rows"]} == {"L4-OLD"}
    assert local_server.received == []
    done = run_cli(*arguments, home=home, GPUBAZAAR_FETCH_MAP=mapped)
    answer = json.loads(done.stdout)
    assert local_server.received
    assert answer["providers"][0]["outcome"] == "ok", answer["providers"]
    assert {r["instance_type"] for r in answer["rows"]} >= {"L4-1-24G"}
    assert "L4-OLD" not in {r["instance_type"] for r in answer["rows"]}
    assert all(r["freshness"] == "fresh" for r in answer["rows"])


@pytest.mark.parametrize("verb", [("plan", "serve", *LLAMA, "--refresh", "auto"), ("offers",)])
def test_reading_loads_no_heavy_library(run_cli, shop_home, verb):
    code = (
        "import sys, runpy\n"
        "from interfaces.cli import cli\n"
        f"cli.main({list(verb)!r}, standalone_mode=False)\n"
        "heavy = {'polars', 'httpx', 'bs4', 'apscheduler'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy))\n"
    )
    import os
    import subprocess
    import sys

    settings = {**os.environ, "GPUBAZAAR_HOME": str(shop_home)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=settings, check=False,
                          cwd=Path(__file__).parents[2], timeout=120)  # fmt: skip
    assert "HEAVY []" in done.stdout, done.stdout[-500:] + done.stderr[-2000:]


def test_two_tiers_are_shown_with_their_sum(run_cli, shop_home):
    done = run_cli("plan", "serve", *LLAMA, "--concurrency", "20", "--batch-share", "0.6", "--refresh", "never",
                   home=shop_home)  # fmt: skip
    assert "batch tier (60%)" in done.stdout
    assert "total of both tiers: $" in done.stdout


def test_compare_side_by_side(run_cli, shop_home):
    done = run_cli("compare", "l40s", "h100-sxm-80gb", "acme/1xt4-16gb", home=shop_home)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert lines["memory_bandwidth_gb_s"] == ["864", "3,350", "320"]
    assert lines["gpu_memory_gb"] == ["48", "80", "16"]


def test_compare_in_rupees(run_cli, tmp_path):
    home = Home(tmp_path / "rupees")
    stored(home, [an_offer("l40s-48gb", "1500")], rates=[ExchangeRate("2026-10-06", "INR", Decimal("0.01"))])
    done = run_cli("compare", "acme/1xl40s-48gb", "l40s", "--currency", "inr", home=home.path)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert lines["price_inr_hour"] == ["₹1,50,000.00"]
    assert lines["cheapest_on_demand_inr_gpu_hour"] == ["₹1,50,000.00"]
    rows = json.loads(run_cli("compare", "l40s", "--currency", "inr", "--format", "json", home=home.path).stdout)[
        "rows"
    ]
    assert rows[0]["cheapest_on_demand_inr_gpu_hour"] == 150_000
    assert run_cli("compare", "l40s", "--currency", "eur", home=home.path).returncode == 2


def test_bursts_in_hindi_and_rupees_to_the_last_sentence(run_cli, tmp_path):
    home = Home(tmp_path / "bursts")
    stored(home, OFFERS, EXTRAS, rates=[ExchangeRate("2026-10-06", "INR", Decimal("0.01"))])
    arguments = ("plan", "serve", *LLAMA, "--hours-per-day", "2", "--starts-per-day", "10", "--cold-start",
                 "attached_volume", "--refresh", "never", "--lang", "hi", "--currency", "inr")  # fmt: skip
    done = run_cli(*arguments, home=home.path)
    assert done.returncode == 0, done.stderr
    assert "$" not in done.stdout + done.stderr
    # 180 s of boot and 16.06 GB at 1.99 GB/s
    assert "ठंडी शुरुआत 188.1 s (जुड़े वॉल्यूम से): p99 TTFT" in done.stdout
    said = [line for line in done.stderr.splitlines() if line.startswith("माना गया: ")]
    assert "माना गया: ठंडी शुरुआत: इमेज पहले से मौजूद, भार जुड़े वॉल्यूम से 1.99 GB/s पर" in said
    keys = re.compile("माना गया: (context|concurrency|input_tokens) ")
    assert [line for line in said if not keys.match(line) and not re.search("[\u0900-\u097f]", line[10:])] == []
    poor = run_cli(*arguments, "--budget-usd", "10", home=home.path)
    assert poor.returncode == 3
    assert "बजट ₹1,000.00" in poor.stderr


def test_compare_with_a_workload(run_cli, shop_home):
    done = run_cli("compare", "l40s", "t4", "--workload", "serve", *LLAMA, "--format", "json", home=shop_home)
    rows = json.loads(done.stdout)["rows"]
    assert [(row["item"], row["verdict"]) for row in rows] == [("l40s", "fits"), ("t4", "no")]
    assert rows[0]["cost_total_usd"] > 0
    assert rows[1]["why_not"]


def test_compare_names_what_it_does_not_know(run_cli, shop_home):
    done = run_cli("compare", "l40z", home=shop_home)
    assert done.returncode == 2
    assert "l40s" in done.stderr
