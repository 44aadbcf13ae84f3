"""Region to country, per provider: data files `collectors/data/regions-<provider>.csv` (region, label, country)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from catalog.datafiles import csv_rows


@dataclass(frozen=True, slots=True)
class Region:
    """One place of one provider: its id, the label its pages use, and the ISO 3166-1 alpha-2 country."""

    region: str
    label: str
    country: str | None


@cache
def regions(provider: str) -> Mapping[str, Region]:
    """Region id to facts; empty for a provider without a region table."""
    rows = csv_rows("collectors", f"regions-{provider}.csv", optional=True)
    return {row["region"]: Region(row["region"], row["label"], row["country"] or None) for row in rows}


@cache
def region_by_label(provider: str) -> Mapping[str, Region]:
    """Display label (several may be given, separated by "|") to facts; letter case does not count."""
    return {
        label.strip().casefold(): region
        for region in regions(provider).values()
        for label in region.label.split("|")
        if label.strip()
    }


def country_of(provider: str, region: str) -> str | None:
    """The country of a region id, or None where the table does not hold it."""
    known = regions(provider).get(region) or regions(provider).get(region.casefold())
    return known.country if known else None
