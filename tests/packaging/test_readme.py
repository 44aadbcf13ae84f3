"""README tells the truth: its two commands, its verbs, its providers, its paths."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from collectors.registry import collectors_by_provider
from interfaces.cli import Verbs, cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAIN_JOB = "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e . && .venv/bin/gpubazaar demo"
TESTS = "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[dev]' && .venv/bin/pytest -q"


def test_the_two_commands_stand_in_readme_and_ci_runs_the_second():
    assert f"```\n{MAIN_JOB}\n```" in README
    assert f"```\n{TESTS}\n```" in README
    assert TESTS in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_provider_is_named_and_the_count_is_right():
    counted = [c for c in collectors_by_provider().values() if c.counted]
    assert f"{len(counted)} direct providers" in README
    for provider in collectors_by_provider():
        assert f"`{provider}`" in README


def test_every_key_variable_is_named():
    for collector in collectors_by_provider().values():
        for name in (*collector.key_env, *collector.optional_key_env):
            assert f"`{name}`" in README, f"{collector.provider}: {name}"


def test_every_verb_named_exists_and_every_verb_is_named():
    assert isinstance(cli, Verbs)
    known = set(cli.list_commands(None))
    named = set(re.findall(r"gpubazaar ([a-z]+)", README)) - {"is"}
    assert named <= known, named - known
    for verb in known:
        assert f"`{verb}" in README or f"gpubazaar {verb}" in README, verb


@pytest.mark.parametrize("verb", cli.list_commands(None))
def test_every_verb_has_help(verb):
    shown = CliRunner().invoke(cli, [verb, "--help"])
    assert shown.exit_code == 0, shown.output
    assert len(shown.output.splitlines()) > 4


def test_every_path_named_is_there():
    for path in re.findall(
        r"`((?:catalog|collectors|planner|jobs|interfaces|fixtures|tests|benchmarks|deploy)/[^` ]*)`", README
    ):
        if "<" not in path:
            assert (ROOT / path).exists(), path


def test_constraints_pin_every_dependency_and_name_no_host():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in text.splitlines() if "==" in line}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = set(re.findall(r'^  "([a-z][a-z0-9-]*)[><=!]', project, re.MULTILINE))
    assert wanted <= pinned, wanted - pinned
    assert "://" not in text
    assert "--" not in text


def test_the_ten_questions_stand_in_readme_as_they_are_tested():
    text = (ROOT / "catalog" / "data" / "questions.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- name: (.*)$", text, flags=re.MULTILINE)[1:]
    assert len(parts) == 20
    for name, sql in zip(parts[::2], parts[1::2], strict=True):
        assert f"{name.strip()}:\n\n```sql\n{sql.strip()}\n```" in README
