"""Settings: flag before environment before config.toml, and none of the three can go wrong in silence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = [sys.executable, "-c", "from interfaces.cli import main; main()"]


@pytest.fixture
def run(tmp_path, recorded_home):
    """Run the command with a config.toml and environment of its own."""

    def call(*arguments, config="", **environment):
        folder = tmp_path / "config" / "gpubazaar"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_bytes(config if isinstance(config, bytes) else config.encode())
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GPUBAZAAR_")}
        return subprocess.run(
            [*MAIN, *arguments], capture_output=True, text=True, check=False,
            env={**clean, "XDG_CONFIG_HOME": str(tmp_path / "config"), "GPUBAZAAR_HOME": str(recorded_home),
                 **environment},
        )  # fmt: skip

    return call


def gpus(result):
    return {row["gpu"] for row in json.loads(result.stdout)["rows"]}


def test_the_config_file_names_flags_as_they_are_called(run):
    config = '[offers]\nformat = "json"\ngpu = "l4"\nmax-price-usd-gpu-hour = 5\n'
    assert gpus(run("offers", config=config)) == {"l4-24gb"}
    assert gpus(run("offers", config=config.replace('"l4"', '["l4", "l40s"]'))) == {"l4-24gb", "l40s-48gb"}


def test_environment_before_config_and_flag_before_both(run):
    config = '[offers]\nformat = "csv"\ngpu = "l4"\n'
    stated = {"GPUBAZAAR_OFFERS_FORMAT": "json", "GPUBAZAAR_OFFERS_GPU": "l40s"}
    assert gpus(run("offers", config=config, **stated)) == {"l40s-48gb"}
    assert gpus(run("offers", "--gpu", "l4", config=config, **stated)) == {"l4-24gb"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("offers = 3", "[offers]"),
        ("[offers]\nnosuch = 1", "'nosuch'"),
        ("[offers]\nformt = 'json'", "did you mean 'format'"),
        ("[offer]\nformat = 'json'", "did you mean 'offers'"),
        ("[offers]\nformat = ['json']", "['json']"),
        ("[offers]\nformat = 'yaml'", "yaml"),
        ("[offers]\nlimit = true", "limit"),
        ("[offers]\nlimit = nan", "limit"),
        ("[offers", "config.toml"),
        ("home = 5", "home"),
        (b"\xff\xfe", "config.toml"),
    ],
)
def test_a_config_file_that_is_wrong_says_where(run, config, words):
    result = run("offers", config=config)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "value", ["garbage", "https://a.example=http://example.com:80", "https://a=http://127.0.0.1:99999"]
)
def test_a_fetch_map_that_is_wrong_is_a_usage_error(run, value):
    result = run("refresh", "scaleway", GPUBAZAAR_FETCH_MAP=value)
    assert result.returncode == 2
    assert "https://host=http://127.0.0.1:PORT" in result.stderr


@pytest.mark.parametrize("arguments", [("sql", "select 1", "--timeout", "nan"), ("refresh", "--timeout", "NaN")])
def test_nan_is_no_number_of_seconds(run, arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert "is not a number of seconds" in result.stderr


def test_an_output_that_lacks_the_letters_is_no_error(run):
    result = run("offers", "--lang", "hi", "--limit", "1", PYTHONIOENCODING="ascii")
    assert "Traceback" not in result.stderr
    assert len(result.stdout.splitlines()) > 2


@pytest.mark.parametrize("arguments", [["status"], ["resolve", "h100"], ["--help"]])
def test_a_closed_output_is_no_error(recorded_home, arguments):
    script = f'exec "{sys.executable}" -c "{MAIN[2]}" "$@" >&-'
    result = subprocess.run(
        ["sh", "-c", script, "sh", *arguments], stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "GPUBAZAAR_HOME": str(recorded_home)},
    )  # fmt: skip
    assert result.returncode == 0
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said(recorded_home):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*MAIN, "status"], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "GPUBAZAAR_HOME": str(recorded_home)},
        )  # fmt: skip
    assert result.returncode == 1
    assert "no space left" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("home", ["~nobody-of-this-name/x", "/dev/null", "/dev/null/below", "/tmp/" + "x" * 400])
@pytest.mark.parametrize("verb", [["status"], ["refresh", "--from-fixtures", "scaleway"]])
def test_a_home_where_no_folder_can_be_is_an_error(run, home, verb):
    result = run(*verb, GPUBAZAAR_HOME=home)
    assert result.returncode in {1, 2}
    assert "Traceback" not in result.stderr
    assert home.split("/")[-1] in result.stderr
