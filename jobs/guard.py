"""The guard: a provider's new rows replace the old only if they are plausible beside them.

Each rule is a small function over the same comparison; thresholds are data (`jobs/data/guard.csv`: a line `*` for all,
a line per provider that differs). A tripped rule holds the run: the last good rows stay and age visibly.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from catalog.types import OfferRow
from catalog.units import instance_price_hour
from catalog.writer import Trip
from collectors.contract import Expect


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How far a run may differ from the last good one. Shares are between 0 and 1."""

    min_row_share: float
    min_gpu_kind_share: float
    max_median_price_ratio: float
    max_shifted_share: float
    max_rejected_share: float
    max_repriced_ratio: float


@dataclass(frozen=True, slots=True)
class Known:
    """One offer of the last good run."""

    offer_id: str
    gpu: str | None
    region: str
    purchase_option: str
    currency: str
    price_hour: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A new run beside the last good one."""

    rows: Sequence[OfferRow]
    known: Sequence[Known]
    rejected_count: int
    complete: bool
    expect: Expect
    limits: Thresholds


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


def examine(comparison: Comparison) -> list[Trip]:
    """Every rule that the run trips; none means it may be published."""
    return [trip for rule in _RULES if (trip := rule(comparison)) is not None]


def compare(
    provider: str, rows: Sequence[OfferRow], known: Sequence[Known], *, rejected_count: int, complete: bool,
    expect: Expect,
) -> Comparison:  # fmt: skip
    """A comparison with the provider's own thresholds."""
    limits = thresholds().get(provider, thresholds()["*"])
    return Comparison(rows, known, rejected_count, complete, expect, limits)


def _min_rows(c: Comparison) -> Trip | None:
    if not c.complete or len(c.rows) >= c.expect.min_rows:
        return None
    return Trip("too_few_rows", f"{len(c.known)} rows", f"{len(c.rows)} rows", f"at least {c.expect.min_rows}")


def _required_gpus(c: Comparison) -> Trip | None:
    seen = {r.offer.gpu for r in c.rows} | {g for r in c.rows for g in r.offer.gpu_candidates}
    missing = sorted(c.expect.gpus - seen)
    if not c.complete or not missing:
        return None
    return Trip("gpu_missing", "present", f"no {', '.join(missing)}", "these are always sold here")


def _row_count(c: Comparison) -> Trip | None:
    if not c.complete or not c.known:
        return None
    share = len(c.rows) / len(c.known)
    if share >= c.limits.min_row_share:
        return None
    return Trip(
        "rows_vanished", f"{len(c.known)} rows", f"{len(c.rows)} rows", f"at least {c.limits.min_row_share:.0%} of them"
    )


def _gpu_kinds(c: Comparison) -> Trip | None:
    before = {k.gpu for k in c.known if k.gpu}
    after = {r.offer.gpu for r in c.rows if r.offer.gpu}
    if not c.complete or not before or len(before & after) / len(before) >= c.limits.min_gpu_kind_share:
        return None
    gone = sorted(before - after)
    return Trip(
        "gpu_kinds_vanished", f"{len(before)} kinds", f"{len(before & after)} of them ({', '.join(gone[:5])} gone)",
        f"at least {c.limits.min_gpu_kind_share:.0%}",
    )  # fmt: skip


def _ratios(c: Comparison) -> list[float]:
    """New price over old price, offer by offer, in the offer's own currency."""
    old = {k.offer_id: k for k in c.known if k.price_hour}
    ratios = []
    for row in c.rows:
        offer, quote = row.offer, row.quote
        was = old.get(offer.offer_id)
        if was is None or was.price_hour is None or quote.price is None:
            continue
        now = instance_price_hour(
            quote.price, quote.price_unit, quote.price_scope, offer.gpu_count, offer.commitment_days
        )
        ratios.append(float(now) / was.price_hour)
    return ratios


def _median_price(c: Comparison) -> Trip | None:
    ratios = _ratios(c)
    if not ratios:
        return None
    median = statistics.median(ratios)
    limit = c.limits.max_median_price_ratio
    if 1 / limit <= median <= limit:
        return None
    return Trip("prices_shifted", "median 1.00x", f"median {median:.2f}x", f"between {1 / limit:.2f}x and {limit:.2f}x")


def _single_prices(c: Comparison) -> Trip | None:
    ratios = _ratios(c)
    wild = [r for r in ratios if r > c.limits.max_repriced_ratio or r < 1 / c.limits.max_repriced_ratio]
    if not ratios or len(wild) / len(ratios) <= c.limits.max_shifted_share:
        return None
    return Trip(
        "many_prices_jumped", "0 offers", f"{len(wild)} of {len(ratios)} by more than {c.limits.max_repriced_ratio:g}x",
        f"at most {c.limits.max_shifted_share:.0%}",
    )  # fmt: skip


def _currency(c: Comparison) -> Trip | None:
    old = {k.offer_id: k.currency for k in c.known}
    switched = [r for r in c.rows if r.offer.offer_id in old and r.quote.currency != old[r.offer.offer_id]]
    if not switched:
        return None
    row = switched[0]
    return Trip("currency_switched", old[row.offer.offer_id], f"{row.quote.currency} on {len(switched)} offers", "none")


def _rejected(c: Comparison) -> Trip | None:
    total = len(c.rows) + c.rejected_count
    if not total or c.rejected_count / total <= c.limits.max_rejected_share:
        return None
    return Trip(
        "many_rejected", f"{len(c.known)} rows", f"{c.rejected_count} of {total} rows rejected",
        f"at most {c.limits.max_rejected_share:.0%}",
    )  # fmt: skip


_RULES: tuple[Callable[[Comparison], Trip | None], ...] = (
    _min_rows, _required_gpus, _row_count, _gpu_kinds, _currency, _median_price, _single_prices, _rejected,
)  # fmt: skip
