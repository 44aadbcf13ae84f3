"""The wheel alone, in an empty environment outside the checkout, runs the demo."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    script = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"  # the PEP 517 hook
    done = subprocess.run(
        [sys.executable, "-c", script, str(target)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return target / done.stdout.strip().splitlines()[-1]


def test_wheel_holds_packages_data_and_fixtures(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for expected in (
        "catalog/schema.sql", "catalog/views.sql", "catalog/data/accelerators.csv", "collectors/scaleway.py",
        "collectors/data/regions-scaleway.csv", "collectors/_fixtures/scaleway/servers-fr-par-2-1.json",
        "jobs/data/guard.csv", "planner/data/models.csv", "interfaces/locale/hi/gpubazaar.po",
    ):  # fmt: skip
        assert expected in names
    assert not [n for n in names if n.startswith(("tests/", "benchmarks/"))]


@pytest.mark.needs_index
def test_installed_wheel_runs_the_demo(wheel, tmp_path):
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, timeout=120)
    python = environment / "bin" / "python"
    installed = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)],
        capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
    )  # fmt: skip
    if installed.returncode != 0 and "Could not find a version" in installed.stderr:
        pytest.skip("no package index within reach")
    assert installed.returncode == 0, installed.stderr
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"GPUBAZAAR_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [str(environment / "bin" / "gpubazaar"), "demo"], capture_output=True, text=True, timeout=300, check=False,
        cwd=tmp_path, env=settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "DEMO" in done.stdout
    assert "h100" in done.stdout
    assert "Llama-3.1-70B" in done.stdout
    assert not (tmp_path / "home").exists(), "the demo leaves nothing behind"
