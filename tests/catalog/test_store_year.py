"""A small simulated year from benchmarks/history.py: the bulk of the store behaves as single runs do."""

from __future__ import annotations

import importlib.util
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from catalog.doctor import examine
from catalog.errors import CatalogDamaged
from catalog.history_months import attach_history, files_in
from catalog.home import Home
from catalog.reader import reading


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "history.py"
    spec = importlib.util.spec_from_file_location("benchmark_history", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_months_of_runs(bench: ModuleType, tmp_path: Path) -> None:
    home, end = Home(tmp_path), datetime(2026, 11, 15, tzinfo=UTC)
    rows = bench.simulate(home, 100, 300, end)
    assert len(rows) == bench.PROVIDERS
    assert [p.name for p in files_in(home)] == [f"history-2026-{m:02d}.duckdb" for m in (8, 9, 10)]
    assert {f.state for f in examine(home)} == {"ok"}
    with reading(home) as catalog:
        attach_history(catalog, home)
        assert catalog.warnings == []
        entries = catalog.rows("SELECT count(*) AS n, count(DISTINCT changed_at) AS t FROM v_price_log")[0]
        assert 0.8 < entries["n"] / (300 * 0.03 * 96 * 100) < 1.2
        now = catalog.rows("SELECT offer_id, price FROM v_offers ORDER BY offer_id")
        then = catalog.rows(f"SELECT offer_id, price FROM offers_as_of('{end.isoformat()}') ORDER BY offer_id")
        assert now == then
        for days in (1, 20, 50, 95):
            moment = end - timedelta(days=days)
            told = catalog.rows(f"SELECT offer_id, price FROM offers_as_of('{moment.isoformat()}') ORDER BY 1")
            held = catalog.rows(
                """SELECT offer_id, price FROM v_price_history
                WHERE valid_from <= $1 AND coalesce(valid_to, 'infinity') > $1 ORDER BY 1""",
                [moment],
            )
            assert told == held, days
            assert len(told) == 300
            whole = "SELECT * FROM {} ORDER BY offer_id, valid_from"
            since = f"price_history_since('{moment.isoformat()}')"
            cut = f"v_price_history WHERE coalesce(valid_to, 'infinity') > '{moment.isoformat()}'::TIMESTAMPTZ"
            recent, full = catalog.rows(whole.format(since)), catalog.rows(whole.format(cut))
            known = ("event", "change_pct")  # of what held at the moment itself the beginning is not looked up
            assert [{k: v for k, v in r.items() if k not in known} for r in recent] == [
                {k: v for k, v in r.items() if k not in known} for r in full
            ]
            after = [r for r in recent if r["valid_from"] > moment]
            assert after == [r for r in full if r["valid_from"] > moment]

    month = files_in(home)[1]
    month.chmod(0o644)
    data = bytearray(month.read_bytes())
    for i in range(len(data) // 3, len(data) // 3 + 5000):
        data[i] ^= 0xFF
    month.write_bytes(data)
    damaged = {f.item: f for f in examine(home) if f.state == "error"}
    assert list(damaged) == [month.name]
    assert "put back a copy" in damaged[month.name].advice
    with reading(home) as catalog:
        attach_history(catalog, home)
        assert len(catalog.rows("FROM v_offers")) == 300
        try:
            told = catalog.rows(f"FROM offers_as_of('{(end - timedelta(days=50)).isoformat()}')")
        except CatalogDamaged as problem:
            told = []
            said = str(problem)
        else:
            said = " ".join(catalog.warnings)
    assert told == []  # an error or a warning, and never a wrong answer
    assert "doctor" in said or "cannot be shown" in said
