"""What a person wants to know of one provider: its runs, what the guard held and why, what was refused."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from catalog.reader import Catalog

SHOWN_RUNS = 10
SHOWN_HELD = 10


@dataclass(frozen=True, slots=True)
class ProviderDetails:
    """One provider in detail.

    Attributes:
        provider: its name.
        runs: its newest runs.
        trips: the guard's findings in the held run: rule, figure_before, figure_after, limit_text.
        held: rows of the held run beside the last good ones, the most different first.
        held_count: how many rows are held.
        rejections: rows refused in the last run that had any, by reason.
        events: what the scheduler noticed.
    """

    provider: str
    runs: list[dict[str, Any]]
    trips: list[dict[str, Any]]
    held: list[dict[str, Any]]
    held_count: int
    rejections: list[dict[str, Any]]
    events: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """All of it under the attributes' names."""
        return dataclasses.asdict(self)


def details(catalog: Catalog, provider: str) -> ProviderDetails:
    """Everything kept about a provider's runs."""
    return ProviderDetails(
        provider=provider,
        runs=catalog.rows(
            "SELECT * FROM v_runs WHERE provider = ? ORDER BY started_at DESC, run_id LIMIT ?", [provider, SHOWN_RUNS]
        ),
        trips=catalog.rows("SELECT * FROM v_guard_trips WHERE provider = ? ORDER BY rule", [provider]),
        held=catalog.rows(
            """SELECT * FROM v_held WHERE held_run_id IN (SELECT run_id FROM v_guard_trips WHERE provider = ?)
            ORDER BY abs(ln(price / nullif(price_before, 0))) DESC NULLS LAST, offer_id LIMIT ?""",
            [provider, SHOWN_HELD],
        ),
        held_count=catalog.rows(
            """SELECT count(*) AS n FROM v_held
            WHERE held_run_id IN (SELECT run_id FROM v_guard_trips WHERE provider = ?)""",
            [provider],
        )[0]["n"],
        rejections=catalog.rows(
            """SELECT reason, field, count(*) AS count, min(sample) AS sample FROM v_rejections WHERE provider = ?
            GROUP BY ALL ORDER BY count DESC, reason""",
            [provider],
        ),
        events=catalog.rows(
            "SELECT * FROM v_scheduler_events WHERE provider IN (?, '') ORDER BY happened_at DESC LIMIT ?",
            [provider, SHOWN_RUNS],
        ),
    )
