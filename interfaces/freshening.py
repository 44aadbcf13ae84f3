"""Current prices before an answer: providers past their age are fetched first, within a bound, never at any cost.

Whatever goes wrong, the last good rows stay and a warning says so. A provider that just failed is not asked again
before its back-off has passed, so that one broken source does not slow every question down.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.errors import CatalogMissing, GpuBazaarError
from catalog.home import Home
from catalog.reader import reading
from jobs.due import wait_s

Row = dict[str, Any]
_SETTLED = frozenset({"fresh", "never"})


def freshened(home: Home, mode: str, timeout_s: float, providers: tuple[str, ...]) -> list[Row]:
    """Fetch what is past its age; returns warnings as {code, values}.

    Args:
        home: the data folder.
        mode: auto (what is due), never, or always (everything that may be fetched while somebody waits).
        timeout_s: bound of the whole refresh.
        providers: only these, and exchange rates, where a filter names them.
    """
    if mode == "never":
        return []
    try:
        with reading(home) as catalog:
            kind = catalog.mode()
            health = catalog.rows("SELECT * FROM v_provider_health")
    except CatalogMissing:
        return _refresh(home, list(providers), timeout_s) if mode == "always" else []
    due = [row["provider"] for row in health if _is_due(row, mode, providers)]
    if kind == "recorded":
        return [{"code": "recorded_home_not_refreshed", "values": {}}] if due else []
    return _refresh(home, due, timeout_s) if due else []


def _is_due(row: Row, mode: str, providers: tuple[str, ...]) -> bool:
    """Whether a provider may be fetched now and is past its age. One that never answered is left to `refresh`."""
    wanted = not providers or row["provider"] in providers or row["kind"] == "rates"
    if not row["on_demand"] or not wanted:
        return False
    if mode == "always":
        return True
    return row["freshness"] not in _SETTLED and not _backing_off(row)


def _backing_off(row: Row) -> bool:
    failures, tried_at = row["consecutive_failures"] or 0, row["last_attempt_at"]
    if not failures or tried_at is None:
        return False
    return bool(datetime.now(UTC) < tried_at + timedelta(seconds=wait_s(row["cadence_s"], failures)))


def _refresh(home: Home, due: list[str], timeout_s: float) -> list[Row]:
    from jobs.refresh import refresh

    try:
        report = refresh(home, due, timeout_s=timeout_s)
    except GpuBazaarError as problem:
        return [{"code": "refresh_failed", "values": {"provider": ", ".join(due), "problem": str(problem)}}]
    return [
        {"code": f"refresh_{r.outcome}", "values": {"provider": r.provider, "problem": r.note}}
        for r in report.results
        if r.outcome in {"failed", "held", "partial"}
    ]
