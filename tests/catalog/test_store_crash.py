"""The writer is killed at random points, and readers run against it: a short form of benchmarks/crash.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from catalog.home import Home


@pytest.fixture(scope="module")
def crash() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "crash.py"
    spec = importlib.util.spec_from_file_location("benchmark_crash", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_killed_writer_loses_nothing_that_it_acknowledged(crash: ModuleType, tmp_path: Path) -> None:
    result = crash.kill_often(Home(tmp_path), 6)
    assert result.faults == []
    assert result.kills == 6
    assert result.acknowledged > 0
    assert result.slowest_start_s < 5  # a second on a machine with nothing else to do


def test_three_readers_and_a_writer(crash: ModuleType, tmp_path: Path) -> None:
    reads, versions, faults = crash.readers_and_writer(Home(tmp_path), 3.0)
    assert faults == []
    assert reads > 0
    assert versions > 0
