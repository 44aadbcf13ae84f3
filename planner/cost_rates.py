"""Rates and habits of billing that no catalog row states, as data with their sources."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from decimal import Decimal

from planner.datafiles import data_rows


@dataclass(frozen=True, slots=True)
class StartHabit:
    """What a provider bills of a start; `boot_s` None means no figure of its own.

    `stopped_billed`: a machine that is powered off costs as much as a running one until it is deleted.
    """

    boot_billed: bool = True
    image_billed: bool = True
    boot_s: float | None = None
    stopped_billed: bool = False
    source: str = ""


@functools.cache
def _rates() -> dict[str, tuple[Decimal, str]]:
    return {row["name"]: (Decimal(row["value"]), row["source"]) for row in data_rows("cost_rates.csv")}


def rate(name: str) -> Decimal:
    """A rate of `data/cost_rates.csv`, whose rows state unit and source."""
    return _rates()[name][0]


def rate_source(name: str) -> str:
    """Where a rate comes from."""
    return _rates()[name][1]


@functools.cache
def start_habit(provider: str) -> StartHabit:
    """How a provider bills a start; unknown ones bill everything from the first second."""
    for row in data_rows("cost_starts.csv"):
        if row["provider"] == provider:
            return StartHabit(
                boot_billed=row["boot_billed"] == "yes",
                image_billed=row["image_billed"] == "yes",
                boot_s=float(row["boot_s"]) if row["boot_s"] else None,
                stopped_billed=row["stopped_billed"] == "yes",
                source=row["source"],
            )
    return StartHabit()
