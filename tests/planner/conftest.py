"""Catalogs for planning: one loaded from the recorded fixtures, and small ones made of a few invented offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from catalog.home import Home
from catalog.types import OfferRow, Surcharge
from tests.plan_shop import Planner, planner_of, stored

# Providers whose fixtures the worked scenarios use; others do not change them.
SCENARIO_PROVIDERS = ("ecb", "aws_bulk", "scaleway", "nebius", "aws", "azure", "oci", "verda", "vultr", "runpod",
                      "lambda_cloud", "modal", "baseten", "beam", "jarvislabs")  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Callable[..., Planner]:
    """`shop(offers, surcharges)` makes a catalog and returns a planner of it: plan({workload…}, plan keys…)."""

    def open_shop(rows: Iterable[OfferRow], surcharges: Iterable[Surcharge] = (), **how: Any) -> Planner:
        return planner_of(stored(Home(tmp_path / "shop"), rows, list(surcharges), **how))

    return open_shop


@pytest.fixture(scope="session")
def scenario_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with the recorded prices of the providers above."""
    from jobs.refresh import refresh

    home = Home(tmp_path_factory.mktemp("recorded"))
    refresh(home, SCENARIO_PROVIDERS, source="recorded")
    return home


@pytest.fixture(scope="session")
def recorded(scenario_home: Home) -> Planner:
    """Plans on the recorded prices, old as they are."""
    return planner_of(scenario_home, allow_stale=True)
