"""Reasons and warnings as codes with values; interfaces put them into words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Reason = dict[str, Any]


def reason(code: str, **values: Any) -> Reason:
    """A reason: a stable code and what fills its sentence. Floats are rounded to what can be known."""
    return {"code": code, "values": {name: _round(value) for name, value in values.items()}}


def _round(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def has(reasons: list[Reason], code: str) -> bool:
    """Whether a reason is among them."""
    return any(r["code"] == code for r in reasons)


def offer_warnings(row: Mapping[str, Any]) -> list[Reason]:
    """What to know about an offer before relying on it: stock, age, provenance, and the catalog's own flags."""
    found: list[Reason] = []
    if row["availability"] == "unknown":
        found.append(reason("availability_unknown"))
    elif row["availability"] == "limited":
        found.append(reason("availability_limited", stock=row["stock_count"]))
    if row["freshness"] in {"stale", "expired"}:
        found.append(reason("price_old", freshness=row["freshness"], age_days=round(row["age_s"] / 86_400, 1)))
    elif row["freshness"] == "aging":
        found.append(reason("price_aging", age_h=round(row["age_s"] / 3600, 1)))
    if row["provenance"] != "live":
        found.append(reason("price_not_live", provenance=row["provenance"]))
    if row["gpu_ambiguous"]:
        found.append(reason("gpu_ambiguous", candidates=list(row["gpu_candidates"] or [])))
    if row["tenancy"] == "community":
        found.append(reason("community_host"))
    if row["purchase_option"] == "scheduled":
        found.append(reason("scheduled_window"))
    found += [reason(f"flag_{flag}") for flag in row["flags"] or []]
    return found
