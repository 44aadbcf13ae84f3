"""One more provider of a known family takes under 80 lines, its test and its test data included.

Each folder beside this file holds a pretend provider: the collector, its test, the document and the expected rows. They
are laid out as in a checkout, then the contract tests, the damage tests and the provider's own test run over them.
"""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catalog.types import Document
from collectors.recording import write_document

HERE = Path(__file__).parent
FAMILIES = ("json_list", "serverless_page", "table_page")
ADDRESS = {"json_list": "https://acme.invalid/v1/offers"}
SIDECAR = [{"source_url": "https://acme.invalid/", "date": "2026-09-01", "note": "a pretend provider, made up to test"}]
# Runs before any test is collected: the small checkout adds its collectors and puts its fixtures first.
PLUGIN = """
from pathlib import Path
import collectors, collectors.fixtures
collectors.__path__.append({collectors!r})
collectors.fixtures.fixture_root = lambda: Path({fixtures!r})
"""


def lay_out(root, family):
    source, name = HERE / "new_providers" / family, f"acme_{family}"
    shutil.copy(source / "collector.py", root / "collectors" / f"{name}.py")
    shutil.copy(source / "check.py", root / "tests" / f"test_{name}.py")
    [body] = [*source.glob("*.json"), *source.glob("*.html")]
    write_document(
        root / "fixtures" / name,
        Document(
            provider=name, url=ADDRESS.get(family, "https://acme.invalid/pricing"), body=body.read_bytes(),
            fetched_at=datetime(2026, 9, 1, tzinfo=UTC), name=body.stem, provenance="reconstructed",
        ),
        SIDECAR,
    )  # fmt: skip
    shutil.copy(source / "expected.jsonl", root / "fixtures" / name / "expected.jsonl")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_provider_is_under_eighty_lines(family):
    files = sorted((HERE / "new_providers" / family).glob("*.*"))
    assert len(files) == 4
    assert sum(len(file.read_text().splitlines()) for file in files) < 80


def test_every_contract_holds_for_new_providers(tmp_path):
    for folder in ("collectors", "tests", "fixtures"):
        (tmp_path / folder).mkdir()
    shutil.copy(HERE.parent / "collectors" / "conftest.py", tmp_path / "tests" / "conftest.py")
    for family in FAMILIES:
        lay_out(tmp_path, family)
    places = {"collectors": str(tmp_path / "collectors"), "fixtures": str(tmp_path / "fixtures")}
    (tmp_path / "pretend_providers.py").write_text(PLUGIN.format(**places))
    contract = [
        HERE / "test_collectors.py",
        HERE / "test_mutations.py",
        HERE.parent / "collectors" / "test_price_page.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "pretend_providers", "-p", "no:cacheprovider", "-k", "acme_",
         *map(str, contract), str(tmp_path / "tests")],
        cwd=HERE.parents[1], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    passed = [line for line in done.stdout.splitlines() if "PASSED" in line]
    for family in FAMILIES:
        for test in ("test_rows_are_whole_and_valid", "test_expected_rows_hold", "test_damage_never_becomes"):
            assert any(test in line and f"acme_{family}]" in line for line in passed), (
                f"{test} did not run for {family}"
            )
        assert any(line.startswith(f"test_acme_{family}.py") or f"/test_acme_{family}.py" in line for line in passed)
