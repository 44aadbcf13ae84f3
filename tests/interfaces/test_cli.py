"""The command line as a user meets it: formats, exit codes, errors that name the value and the nearest guess."""

import csv
import io
import json

import pytest

from catalog.queries import HEALTH_COLUMNS, OFFER_COLUMNS


def test_offers_json_envelope(run_cli, recorded_home):
    done = run_cli("offers", "--format", "json", "--provider", "scaleway", home=recorded_home)
    answer = json.loads(done.stdout)
    assert set(answer) == {"as_of", "rows", "providers", "warnings"}
    assert set(OFFER_COLUMNS) <= set(answer["rows"][0])
    assert isinstance(answer["rows"][0]["price"], str), "exact money is text"
    assert answer["rows"][0]["observed_at"].endswith("Z")
    assert set(answer["providers"][0]) == set(HEALTH_COLUMNS)
    assert done.returncode == 4, "recorded prices are past their age: only stale data"


@pytest.mark.parametrize("form", ["table", "csv", "jsonl", "markdown", "json"])
def test_every_format_holds_every_row(run_cli, recorded_home, form):
    done = run_cli("offers", "--provider", "scaleway", "--format", form, home=recorded_home)
    count = len(
        json.loads(run_cli("offers", "--provider", "scaleway", "--format", "json", home=recorded_home).stdout)["rows"]
    )
    assert done.stdout.count("scaleway") >= count
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        assert len(rows) == count
        assert rows[0]["provider"] == "scaleway"
    if form == "jsonl":
        assert [json.loads(line)["provider"] for line in done.stdout.splitlines()] == ["scaleway"] * count


def test_piped_output_has_no_colour_and_no_cut_columns(run_cli, recorded_home):
    done = run_cli("offers", "--gpu", "h100", home=recorded_home, COLUMNS="40")
    assert "\x1b[" not in done.stdout
    assert "…" not in done.stdout
    assert "price_usd_gpu_hour" in done.stdout


def test_nothing_matches_is_exit_3(run_cli, recorded_home):
    done = run_cli("offers", "--min-gpu-memory-gb", "5000", "--format", "json", home=recorded_home)
    assert done.returncode == 3
    assert json.loads(done.stdout)["rows"] == []
    assert "nothing matches" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["offers", "--gpu", "h1000"], ["h1000", "h100"]),
        (["offers", "--gpuu", "h100"], ["--gpuu", "--gpu"]),
        (["offers", "--provider", "scalewy"], ["scalewy", "scaleway"]),
        (["offers", "--region", "fr-par-9"], ["fr-par-9", "fr-par-1"]),
        (["offers", "--purchase-option", "sopt"], ["sopt", "spot"]),
        (["offers", "--columns", "price_usd"], ["price_usd", "price_usd_hour"]),
        (["offers", "--format", "jsn"], ["jsn", "json"]),
        (["offerz"], ["offerz", "offers"]),
        (["refresh", "scalewey"], ["scalewey", "scaleway"]),
        (["status", "scalewey"], ["scalewey", "scaleway"]),
        (["show", "h1000x"], ["h1000x"]),
        (["collector", "parse", "scalewey", "README.md"], ["scalewey", "scaleway"]),
        (["estimate", "serv", "--model", "x"], ["serv", "serve"]),
        (["sql", "select nonsense from v_offers"], ["nonsense"]),
        (["sql", "drop table current"], ["read-only"]),
        (["sql", "select 1; select 2"], ["one statement"]),
    ],
)
def test_bad_input_is_exit_2_and_names_the_value(run_cli, recorded_home, arguments, words):
    done = run_cli(*arguments, home=recorded_home)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_an_empty_home_says_what_to_do(run_cli):
    done = run_cli("offers")
    assert done.returncode == 3
    assert "gpubazaar refresh" in done.stderr
    assert "Traceback" not in done.stderr


def test_sql_over_the_views(run_cli, recorded_home):
    done = run_cli("sql", "select count(*) as n from v_offers where provider = 'scaleway'", "--format", "json",
                   home=recorded_home)  # fmt: skip
    assert json.loads(done.stdout)[0]["n"] >= 10
    assert done.returncode == 0


def test_status_lists_every_provider(run_cli, recorded_home):
    done = run_cli("status", "--format", "json", home=recorded_home)
    rows = {r["provider"]: r for r in json.loads(done.stdout)["rows"]}
    assert rows["scaleway"]["outcome"] in {"ok", "unchanged"}
    assert rows["scaleway"]["provenance"] == "reconstructed"
    assert done.returncode == 0


def test_resolve_json(run_cli):
    done = run_cli("resolve", "8x H100 80GB SXM5", "Tesla T4", "--format", "json")
    rows = json.loads(done.stdout)["rows"]
    assert [(r["gpu"], r["gpu_count"]) for r in rows] == [("h100-sxm-80gb", 8), ("t4-16gb", None)]


def test_show_finds_offer_gpu_provider(run_cli, recorded_home):
    offer = json.loads(run_cli("offers", "--provider", "scaleway", "--format", "json", home=recorded_home).stdout)[
        "rows"
    ][0]
    shown = json.loads(run_cli("show", offer["offer_id"], "--format", "json", home=recorded_home).stdout)
    assert shown["offer"]["price"] == offer["price"]
    assert "cheapest" in json.loads(run_cli("show", "L4", "--format", "json", home=recorded_home).stdout)
    assert (
        json.loads(run_cli("show", "scaleway", "--format", "json", home=recorded_home).stdout)["provider"]["currency"]
        == "EUR"
    )


def test_collector_parse_reports_an_unreadable_document_on_stdout(run_cli, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<html><head><title>Just a moment...</title></head><body></body></html>")
    (tmp_path / "page.html.meta.json").write_text(json.dumps({"url": "https://lambda.ai/pricing", "status": 503}))
    done = run_cli("collector", "parse", "lambda_cloud", str(page), "--format", "json")
    answer = json.loads(done.stdout)
    assert answer["offers"] == []
    assert answer["error"]["code"]
    assert "Traceback" not in done.stderr


def test_status_names_unmapped_hardware_with_and_without_an_offer(run_cli, recorded_home):
    counted = json.loads(run_cli("status", "--format", "json", home=recorded_home).stdout)
    named = {(u["provider"], u["gpu_label"]): u["offer_count"] for u in counted["unmapped"]}
    assert named["aws", "p9.48xlarge"] == 0  # a size that no table holds: no offer can be made of it
    assert named["akash", "rtx3060ti"] == 1
    of_own = [row for row in counted["rows"] if row["unmapped_count"]]
    assert {row["provider"]: row["unmapped_count"] for row in of_own} == {
        provider: sum(p == provider for p, _ in named) for provider in {p for p, _ in named}
    }
    assert "p9.48xlarge (aws)" in run_cli("status", "aws", home=recorded_home).stderr


def test_hindi_headers_and_rupees(run_cli, recorded_home):
    done = run_cli("offers", "--provider", "scaleway", "--lang", "hi", "--currency", "inr", home=recorded_home)
    assert "प्रदाता" in done.stdout
    assert "INR" in done.stdout


def test_read_verbs_load_no_fetching_library(recorded_home):
    import subprocess
    import sys

    code = (
        "import sys, runpy; sys.argv = ['gpubazaar'] + {args!r}\n"
        "from interfaces.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {{'polars', 'httpx', 'bs4', 'apscheduler'}} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    for args in (
        ["--home", str(recorded_home), "offers", "--limit", "1"],
        ["--home", str(recorded_home), "sql", "select 1"],
        ["--home", str(recorded_home), "show", "l4"],
        ["estimate", "serve", "--model", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "l4"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", code.format(args=args)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stderr.strip().endswith("[]"), (args, done.stderr)


def test_cross_check_lists_only_real_disagreements(run_cli, recorded_home):
    done = run_cli("status", "--cross-check", "--format", "json", home=recorded_home)
    rows = json.loads(done.stdout)["rows"]
    assert done.returncode == 0
    assert rows
    for r in rows:
        assert abs(r["own_usd_gpu_hour"] / r["second_usd_gpu_hour"] - 1) > 0.10
        assert r["second_source"] != r["provider"]
    assert "aws" not in {r["provider"] for r in rows if abs(r["difference_pct"]) > 400}


@pytest.mark.parametrize("verb", ["show h200", "status", "offers --format json", "sql 'from v_offers'", "resolve h100"])
def test_a_reader_that_leaves_early_is_no_error(recorded_home, verb):
    import os
    import subprocess
    import sys

    command = f"{sys.executable} -c 'from interfaces.cli import main; main()' {verb} | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "GPUBAZAAR_HOME": str(recorded_home)},
    )  # fmt: skip
    assert done.returncode in {0, 4}, done.stderr
    assert "Traceback" not in done.stderr


def test_an_estimate_in_hindi(run_cli):
    done = run_cli(
        "estimate", "serve", "--model", "Qwen/Qwen3-32B", "--weights", "fp8", "--gpu", "h100-sxm", "--lang", "hi"
    )
    assert done.returncode == 0, done.stderr
    assert "आता है" in done.stdout
    assert "प्रति जीपीयू" in done.stdout
    assert "माना गया" in done.stderr
