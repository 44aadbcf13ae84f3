"""The guard: a provider's new rows replace the old only if they are plausible beside them.

Each rule is a small function over the same comparison (`jobs/guard_rules.py`); thresholds are data
(`jobs/data/guard.csv`: a line `*` for all, a line per provider that differs). A tripped rule holds the run: the last
good rows stay and age visibly, the new ones are kept for inspection.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from catalog.types import OfferRow
from catalog.units import instance_price_hour
from catalog.writer import Trip
from collectors.contract import Expect


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How far a run may differ from the last good one. Shares are between 0 and 1, ratios at least 1.

    Attributes:
        min_row_share: rows against the last good run.
        min_gpu_kind_share: kinds of GPU against the last good run.
        min_priced_share: rows with a price, against the last good run.
        big_group_share: a region or a kind of GPU with at least this share of the rows (and three) may not vanish.
        max_median_price_ratio: the median of new over old prices, either way.
        max_repriced_ratio: a single price beyond it has jumped.
        max_jumped_share: share of prices that may jump.
        max_moved_share: share of offers that may take over the old price of another offer.
        max_rejected_share: rows refused by the row checks.
        max_duplicate_share: rows that repeat an offer of the same run.
        max_spot_equal_share: spot prices that are not below the on-demand price.
        max_drift_ratio: the median price against that of two to five weeks ago, either way.
    """

    min_row_share: float
    min_gpu_kind_share: float
    min_priced_share: float
    big_group_share: float
    max_median_price_ratio: float
    max_repriced_ratio: float
    max_jumped_share: float
    max_moved_share: float
    max_rejected_share: float
    max_duplicate_share: float
    max_spot_equal_share: float
    max_drift_ratio: float


@dataclass(frozen=True, slots=True)
class Known:
    """One offer of the last good run; `price_hour` is of one instance in `currency`, None without a price."""

    offer_id: str
    gpu: str | None
    region: str
    purchase_option: str
    instance_type: str
    currency: str
    price_hour: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A new run beside the last good one. `marks`: per GPU key the median price per hour some weeks ago."""

    rows: Sequence[OfferRow]
    known: Sequence[Known]
    expect: Expect
    limits: Thresholds
    complete: bool = True
    rejected_count: int = 0
    duplicate_count: int = 0
    marks: Mapping[str, float] = field(default_factory=dict)

    def price_ratios(self) -> list[float]:
        """New price over old price, offer by offer, in the offer's own currency."""
        old = {k.offer_id: k.price_hour for k in self.known if k.price_hour}
        ratios = []
        for row in self.rows:
            before, now = old.get(row.offer.offer_id), price_hour_of(row)
            if before and now is not None:
                ratios.append(now / before)
        return ratios


def price_hour_of(row: OfferRow) -> float | None:
    """The price of one instance per hour in the row's own currency; None without a price."""
    offer, quote = row.offer, row.quote
    if quote.price is None:
        return None
    return float(
        instance_price_hour(quote.price, quote.price_unit, quote.price_scope, offer.gpu_count, offer.commitment_days)
    )


@cache
def thresholds() -> Mapping[str, Thresholds]:
    """Provider to thresholds; `*` for all others."""
    with files("jobs").joinpath("data", "guard.csv").open(encoding="utf-8") as lines:
        found: dict[str, Thresholds] = {}
        for row in csv.DictReader(lines):
            provider = row.pop("provider")
            row.pop("why")
            base = found.get("*")
            values = {k: float(v) if v else getattr(base, k) for k, v in row.items()}
            found[provider] = Thresholds(**values)
        return found


def limits_of(provider: str) -> Thresholds:
    """The thresholds of one provider."""
    return thresholds().get(provider, thresholds()["*"])


def compare(
    provider: str, rows: Sequence[OfferRow], known: Sequence[Known], *, rejected_count: int, complete: bool,
    expect: Expect, duplicate_count: int = 0, marks: Mapping[str, float] | None = None,
) -> Comparison:  # fmt: skip
    """A comparison with the provider's own thresholds."""
    return Comparison(
        rows=rows, known=known, expect=expect, limits=limits_of(provider), complete=complete,
        rejected_count=rejected_count, duplicate_count=duplicate_count, marks=marks or {},
    )  # fmt: skip


def examine(comparison: Comparison) -> list[Trip]:
    """Every rule that the run trips; none means it may be published."""
    from jobs.guard_rules import RULES

    return [trip for rule in RULES if (trip := rule(comparison)) is not None]
