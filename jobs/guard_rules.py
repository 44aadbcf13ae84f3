"""The rules of the guard: each looks at one way in which a source goes wrong, and gives the figures of it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable

from catalog.frames import gpu_key
from catalog.writer import Trip
from jobs.guard import Comparison, price_hour_of

_FEW = 3


def too_few_rows(c: Comparison) -> Trip | None:
    """Fewer rows than the provider is known to have at least: an empty or truncated answer."""
    if not c.complete or len(c.rows) >= c.expect.min_rows:
        return None
    return Trip("too_few_rows", f"{len(c.known)} rows", f"{len(c.rows)} rows", f"at least {c.expect.min_rows}")


def gpu_missing(c: Comparison) -> Trip | None:
    """A GPU that the provider certainly sells is not there."""
    seen = {r.offer.gpu for r in c.rows} | {g for r in c.rows for g in r.offer.gpu_candidates}
    missing = sorted(c.expect.gpus - seen)
    if not c.complete or not missing:
        return None
    return Trip("gpu_missing", "present", f"no {', '.join(missing)}", "these are always sold here")


def rows_vanished(c: Comparison) -> Trip | None:
    """The list lost a good part of its rows: half a list, a lost page."""
    if not c.complete or not c.known or len(c.rows) / len(c.known) >= c.limits.min_row_share:
        return None
    return Trip(
        "rows_vanished", f"{len(c.known)} rows", f"{len(c.rows)} rows", f"at least {c.limits.min_row_share:.0%} of them"
    )


def gpu_kinds_vanished(c: Comparison) -> Trip | None:
    """Many kinds of GPU are gone, or one that made up a good part of the list."""
    before = Counter(k.gpu for k in c.known if k.gpu)
    after = {r.offer.gpu for r in c.rows if r.offer.gpu}
    return _groups_vanished(c, "gpu_kinds_vanished", "kinds", before, after, c.limits.min_gpu_kind_share)


def regions_vanished(c: Comparison) -> Trip | None:
    """A region that made up a good part of the list is gone."""
    before = Counter(k.region for k in c.known if k.region)
    after = {r.offer.region for r in c.rows if r.offer.region}
    return _groups_vanished(c, "regions_vanished", "regions", before, after, 0.0)


def _groups_vanished(
    c: Comparison, rule: str, what: str, before: Counter[str], after: set[str], min_share: float
) -> Trip | None:
    gone = sorted(set(before) - after, key=lambda name: -before[name])
    if not c.complete or not gone:
        return None
    big = [name for name in gone if before[name] >= max(_FEW, c.limits.big_group_share * len(c.known))]
    if not big and (len(before) - len(gone)) / len(before) >= min_share:
        return None
    shown = ", ".join(f"{name} ({before[name]} rows)" for name in (big or gone)[:5])
    return Trip(
        rule, f"{len(before)} {what}", f"{len(before) - len(gone)} of them, without {shown}",
        f"none with {c.limits.big_group_share:.0%} of the rows" + (f", at least {min_share:.0%}" if min_share else ""),
    )  # fmt: skip


def prices_vanished(c: Comparison) -> Trip | None:
    """Offers are there, but without prices."""
    before = sum(k.price_hour is not None for k in c.known)
    after = sum(r.quote.price is not None for r in c.rows)
    if not before or not c.rows:
        return None
    was, now = before / len(c.known), after / len(c.rows)
    if now >= was * c.limits.min_priced_share:
        return None
    return Trip(
        "prices_vanished", f"{was:.0%} of rows priced", f"{now:.0%}", f"{c.limits.min_priced_share:.0%} of that"
    )


def currency_switched(c: Comparison) -> Trip | None:
    """Known offers are quoted in another currency."""
    old = {k.offer_id: k.currency for k in c.known if k.price_hour is not None}
    now = [r for r in c.rows if r.quote.price is not None and r.offer.offer_id in old]
    switched = [r for r in now if r.quote.currency != old[r.offer.offer_id]]
    if not switched:
        return None
    row = switched[0]
    return Trip(
        "currency_switched", old[row.offer.offer_id], f"{row.quote.currency} on {len(switched)} of {len(now)} offers",
        "no switch",
    )  # fmt: skip


def prices_shifted(c: Comparison) -> Trip | None:
    """All prices moved together: another unit, scope, tax or currency."""
    ratios, limit = c.price_ratios(), c.limits.max_median_price_ratio
    median = statistics.median(ratios) if ratios else 1.0
    if 1 / limit <= median <= limit:
        return None
    return Trip("prices_shifted", "median 1.00x", f"median {median:.4g}x", f"between {1 / limit:.2f}x and {limit:.2f}x")


def prices_jumped(c: Comparison) -> Trip | None:
    """Many single prices changed beyond what a provider does in a day: another column is read."""
    ratios, limit = c.price_ratios(), c.limits.max_repriced_ratio
    wild = [r for r in ratios if r > limit or r < 1 / limit]
    if not ratios or len(wild) / len(ratios) <= c.limits.max_jumped_share:
        return None
    return Trip(
        "prices_jumped", "0 offers", f"{len(wild)} of {len(ratios)} by more than {limit:g}x",
        f"at most {c.limits.max_jumped_share:.0%}",
    )  # fmt: skip


def prices_moved(c: Comparison) -> Trip | None:
    """Offers took over each other's old prices: rows or columns are shifted by one."""
    old = {k.offer_id: round(k.price_hour, 9) for k in c.known if k.price_hour}
    known_prices = set(old.values())
    compared = moved = 0
    for row in c.rows:
        before, now = old.get(row.offer.offer_id), price_hour_of(row)
        if before is None or now is None:
            continue
        compared += 1
        moved += round(now, 9) != before and round(now, 9) in known_prices
    if compared < _FEW or moved / compared <= c.limits.max_moved_share:
        return None
    return Trip(
        "prices_moved", "0 offers", f"{moved} of {compared} now have the old price of another offer",
        f"at most {c.limits.max_moved_share:.0%}",
    )  # fmt: skip


def many_rejected(c: Comparison) -> Trip | None:
    """The row checks refused a good part of what came."""
    total = len(c.rows) + c.rejected_count
    if not total or c.rejected_count / total <= c.limits.max_rejected_share:
        return None
    return Trip(
        "many_rejected", f"{len(c.known)} rows", f"{c.rejected_count} of {total} rows rejected",
        f"at most {c.limits.max_rejected_share:.0%}",
    )  # fmt: skip


def rows_repeated(c: Comparison) -> Trip | None:
    """Rows repeat offers of the same run: a page came twice, so another one may be missing."""
    total = len(c.rows) + c.duplicate_count
    if c.duplicate_count < _FEW or c.duplicate_count / total <= c.limits.max_duplicate_share:
        return None
    return Trip(
        "rows_repeated", "each offer once", f"{c.duplicate_count} of {total} rows repeat an offer",
        f"at most {c.limits.max_duplicate_share:.0%}",
    )  # fmt: skip


def spot_not_discounted(c: Comparison) -> Trip | None:
    """Spot prices are on-demand prices: the wrong column is read."""
    full = {
        (
            r.offer.provider,
            r.offer.via,
            r.offer.instance_type,
            r.offer.variant,
            r.offer.region,
            r.offer.zone,
            r.offer.os,
        )
        for r in c.rows
        if r.offer.purchase_option == "on_demand" and r.quote.price is not None
    }
    spot = [
        r for r in c.rows
        if r.offer.purchase_option == "spot" and r.quote.price is not None
        and (r.offer.provider, r.offer.via, r.offer.instance_type, r.offer.variant, r.offer.region, r.offer.zone,
             r.offer.os) in full
    ]  # fmt: skip
    equal = sum("spot_not_discounted" in r.quote.flags for r in spot)
    if equal < _FEW or equal / len(spot) <= c.limits.max_spot_equal_share:
        return None
    return Trip(
        "spot_not_discounted", "spot below on demand", f"{equal} of {len(spot)} spot prices are not below",
        f"at most {c.limits.max_spot_equal_share:.0%}",
    )  # fmt: skip


def prices_drifted(c: Comparison) -> Trip | None:
    """No single step was large, but over weeks the prices went far: a factor creeps in, or a source is dying."""
    by_key: dict[str, list[float]] = {}
    for row in c.rows:
        price, offer = price_hour_of(row), row.offer
        if price is not None:
            key = gpu_key(offer.gpu, offer.gpu_ambiguous, offer.gpu_candidates)
            by_key.setdefault(key, []).append(price / offer.gpu_count)
    ratios = [statistics.median(p) / c.marks[k] for k, p in by_key.items() if c.marks.get(k)]
    limit = c.limits.max_drift_ratio
    median = statistics.median(ratios) if ratios else 1.0
    if 1 / limit <= median <= limit:
        return None
    return Trip(
        "prices_drifted", "median 1.00x some weeks ago", f"median {median:.4g}x", f"between {1 / limit:.2f}x and "
        f"{limit:.2f}x",
    )  # fmt: skip


RULES: tuple[Callable[[Comparison], Trip | None], ...] = (
    too_few_rows, gpu_missing, rows_vanished, gpu_kinds_vanished, regions_vanished, prices_vanished, rows_repeated,
    currency_switched, prices_shifted, prices_jumped, prices_moved, many_rejected, spot_not_discounted, prices_drifted,
)  # fmt: skip
