"""Prices over time: of one offer, with the gaps in which its provider was not seen, and of GPUs day by day."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog.errors import UnknownName
from catalog.reader import Catalog

HISTORY_COLUMNS: tuple[str, ...] = (
    "offer_id", "gpu", "provider", "region", "purchase_option", "valid_from", "valid_to", "price", "currency",
    "price_usd_hour", "availability", "change_pct",
)  # fmt: skip
DAILY_COLUMNS: tuple[str, ...] = (
    "day", "gpu", "purchase_option", "provider", "min_price_usd_gpu_hour", "median_price_usd_gpu_hour",
    "max_price_usd_gpu_hour", "available_share",
)  # fmt: skip
_SHORTEST_ID = 6
_ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, from inclusive to exclusive."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """A price that was seen to hold from one moment to another, in US dollars per GPU and hour."""

    start: datetime
    end: datetime
    price_usd_gpu_hour: float


@dataclass(frozen=True, slots=True)
class OfferHistory:
    """One offer over a window.

    Attributes:
        offer: the offer's row of `v_price_history`'s naming columns: provider, instance_type, region, gpu …
        rows: entries of `v_price_history` that hold within the window, oldest first.
        steps: the same cut to the times in which the provider was seen: nothing is drawn where nobody looked.
        gaps: times within the offer's life in which it was not seen.
    """

    offer: dict[str, Any]
    rows: list[dict[str, Any]]
    steps: list[Step]
    gaps: list[Span]


def find_offer(catalog: Catalog, name: str) -> str | None:
    """The offer that an id, or at least its first six characters, names; None where it cannot be an id.

    Raises:
        UnknownName: it looks like an id and no offer has it, or several do.
    """
    if not _SHORTEST_ID <= len(name) <= _ID_LENGTH or not set(name.lower()) <= set("0123456789abcdef"):
        return None
    rows = catalog.rows(
        "SELECT offer_id FROM current WHERE starts_with(offer_id, ?) ORDER BY offer_id LIMIT 5", [name.lower()]
    )
    if len(rows) != 1:
        raise UnknownName("offer", name, [r["offer_id"] for r in rows])
    return str(rows[0]["offer_id"])


def offer_history(catalog: Catalog, offer_id: str, since: datetime) -> OfferHistory:
    """One offer's prices since a moment; the catalog's history must be attached."""
    rows = catalog.rows(
        """SELECT * FROM v_price_history WHERE offer_id = ? AND coalesce(valid_to, 'infinity') > ?
        ORDER BY valid_from""",
        [offer_id, since],
    )
    offer = catalog.rows(
        """SELECT offer_id, offer_no, source, provider, via, instance_type, variant, region, zone, gpu, gpu_count,
               purchase_option, closed_at FROM current WHERE offer_id = ?""",
        [offer_id],
    )[0]
    seen = _seen(catalog, offer, since)
    lives = [Span(r["valid_from"], r["valid_to"] or datetime.max.replace(tzinfo=since.tzinfo)) for r in rows]
    steps = [
        Step(part.start, part.end, row["price_usd_gpu_hour"])
        for row, life in zip(rows, lives, strict=True)
        if row["price_usd_gpu_hour"] is not None
        for part in _overlaps(life, seen)
    ]
    return OfferHistory(offer, rows, steps, _gaps(seen, lives))


def _seen(catalog: Catalog, offer: dict[str, Any], since: datetime) -> list[Span]:
    """When the offer was seen: complete runs of its source, partial runs that held it; joined and in order."""
    rows = catalog.rows(
        """SELECT from_at, until_at FROM coverage WHERE source = ? AND until_at >= ?
        UNION ALL SELECT from_at, until_at FROM offer_coverage WHERE offer_no = ? AND until_at >= ?
        ORDER BY from_at""",
        [offer["source"], since, offer["offer_no"], since],
    )
    joined: list[Span] = []
    for row in rows:
        start, end = max(row["from_at"], since), row["until_at"]
        if joined and start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, end))
        else:
            joined.append(Span(start, end))
    return joined


def _overlaps(life: Span, seen: Iterable[Span]) -> list[Span]:
    cut = (Span(max(life.start, s.start), min(life.end, s.end)) for s in seen)
    return [s for s in cut if s.start < s.end or s.start == s.end == life.start]


def _gaps(seen: Sequence[Span], lives: Sequence[Span]) -> list[Span]:
    between = [Span(a.end, b.start) for a, b in itertools.pairwise(seen)]
    return [part for gap in between for life in lives for part in _overlaps(life, [gap]) if part.start < part.end]


def spot_siblings(catalog: Catalog, offer: dict[str, Any]) -> list[str]:
    """Spot offers of the same machine in the same region, whatever the zone."""
    if offer["purchase_option"] == "spot":
        return []
    rows = catalog.rows(
        """SELECT offer_id FROM current WHERE provider = ? AND via = ? AND instance_type = ? AND region = ?
        AND gpu_count = ? AND purchase_option = 'spot' ORDER BY offer_id LIMIT 50""",
        [offer[k] for k in ("provider", "via", "instance_type", "region", "gpu_count")],
    )
    return [r["offer_id"] for r in rows]


def gpu_history(
    catalog: Catalog, gpus: Sequence[str], since: datetime, *, providers: Sequence[str] = (),
    purchase_options: Sequence[str] = (),
) -> list[dict[str, Any]]:  # fmt: skip
    """Daily figures of GPUs since a day, from `v_price_daily`; days on which a provider was not seen are absent."""
    where, values = ["day >= ?", f"gpu IN ({_marks(gpus)})"], [since.date(), *gpus]
    for column, wanted in (("provider", providers), ("purchase_option", purchase_options)):
        if wanted:
            where.append(f"{column} IN ({_marks(wanted)})")
            values += wanted
    return catalog.rows(
        f"SELECT * FROM v_price_daily WHERE {' AND '.join(where)} ORDER BY day, gpu, purchase_option, provider, via",
        values,
    )


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)
