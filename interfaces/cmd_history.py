"""`gpubazaar history`: how prices moved, of one offer or of a GPU over its providers."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from catalog.accelerators import families
from catalog.errors import ConfigurationError
from catalog.history import (
    DAILY_COLUMNS,
    HISTORY_COLUMNS,
    OfferHistory,
    Step,
    find_offer,
    gpu_history,
    offer_history,
    spot_siblings,
)
from catalog.history_months import attach_history
from catalog.names import gpu_slugs_for
from catalog.reader import Catalog, reading
from catalog.types import PURCHASE_OPTIONS
from interfaces import exits
from interfaces.chart import Chart, Line, svg
from interfaces.options import format_option, home_of
from interfaces.render import note, notes, print_rows, shown

_DAY = timedelta(days=1)


@click.command("history")
@click.argument("name", metavar="GPU|OFFER")
@click.option("--days", type=click.IntRange(1, 3660), default=30, show_default=True, help="How far back.")
@click.option("--provider", "providers", multiple=True, help="Only this provider; may be repeated. For a GPU.")
@click.option("--purchase-option", "options", multiple=True, type=click.Choice(PURCHASE_OPTIONS),
              help="Only these; may be repeated. For a GPU.")  # fmt: skip
@click.option("--chart", type=click.Path(dir_okay=False, path_type=Path), help="Also draw it into this SVG file.")
@format_option()
@click.pass_context
def command(
    ctx: click.Context, name: str, days: int, providers: tuple[str, ...], options: tuple[str, ...], chart: Path | None,
    form: str,
) -> int:  # fmt: skip
    """Show the prices of a GPU day by day and provider by provider, or every price change of one OFFER (its id).

    Days on which a provider was not seen are left out, in the rows and in the chart.

    \b
    gpubazaar history h100-sxm-80gb --days 90 --chart h100.svg
    gpubazaar history 0387dedad11b75ae4f29
    """
    home = home_of(ctx)
    now = datetime.now(UTC)
    since = now - timedelta(days=days)
    with reading(home) as catalog:
        attach_history(catalog, home)
        offer_id = find_offer(catalog, name)
        if offer_id is not None:
            found = offer_history(catalog, offer_id, since)
            rows, columns, picture = found.rows, HISTORY_COLUMNS, _offer_chart(catalog, found, since, now)
            extra: dict[str, Any] = {"gaps": [{"from": g.start, "to": g.end} for g in found.gaps]}
            told = [f"not seen from {shown(g.start, '')} to {shown(g.end, '')}" for g in found.gaps]
        else:
            slugs = _with_families(gpu_slugs_for(name))
            rows = gpu_history(catalog, slugs, since, providers=providers, purchase_options=options)
            columns, picture, extra, told = DAILY_COLUMNS, _gpu_chart(name, rows, since, now), {}, []
        warnings = catalog.warnings
        envelope = {"as_of": catalog.as_of(), "rows": [], "providers": [], "warnings": warnings, **extra}
    print_rows(rows, columns, form, envelope=envelope)
    notes([*warnings, *told])
    if chart is not None:
        _write(chart, svg(picture))
    if not rows:
        note(f"nothing is known of {name} in the last {days} days")
    return exits.OK


def _with_families(slugs: Sequence[str]) -> list[str]:
    """The slugs, and each family all of whose members are among them: offers whose label leaves the member open."""
    return [*slugs, *(name for name, members in families().items() if name not in slugs and set(members) <= set(slugs))]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ConfigurationError(f"cannot write {path}: {problem.strerror}") from problem
    note(f"chart in {path}")


def _offer_chart(catalog: Catalog, found: OfferHistory, since: datetime, now: datetime) -> Chart:
    offer = found.offer
    title = f"{offer['provider']} {offer['instance_type']} {offer['region']} ({offer['gpu'] or 'unknown GPU'})"
    spots = [offer_history(catalog, i, since) for i in spot_siblings(catalog, offer)]
    line = Line(offer["purchase_option"].replace("_", " "), found.steps)
    return Chart(title, since, now, [line], _band([s.steps for s in spots]))


def _band(series: Sequence[Sequence[Step]]) -> list[tuple[Step, Step]]:
    """Lowest and highest over several series, on each stretch between two moments at which any of them changes."""
    moments = sorted({m for steps in series for s in steps for m in (s.start, s.end)})
    band = []
    for start, end in itertools.pairwise(moments):
        prices = [s.price_usd_gpu_hour for steps in series for s in steps if s.start <= start and s.end >= end]
        if prices:
            band.append((Step(start, end, min(prices)), Step(start, end, max(prices))))
    return band


def _gpu_chart(name: str, rows: Sequence[dict[str, Any]], since: datetime, now: datetime) -> Chart:
    """The cheapest on-demand price of each provider as a step line, spot over all providers as a band."""
    lines: dict[str, list[Step]] = defaultdict(list)
    spot: dict[datetime, list[float]] = defaultdict(list)
    daily: dict[tuple[str, datetime], float] = {}
    for row in rows:
        if row["min_price_usd_gpu_hour"] is None:
            continue
        start = datetime.combine(row["day"], datetime.min.time(), UTC)
        if row["purchase_option"] == "spot":
            spot[start] += [row["min_price_usd_gpu_hour"], row["max_price_usd_gpu_hour"]]
        elif row["purchase_option"] == "on_demand":
            key = row["provider"], start
            daily[key] = min(daily.get(key, row["min_price_usd_gpu_hour"]), row["min_price_usd_gpu_hour"])
    for (provider, start), price in daily.items():
        lines[provider].append(Step(start, start + _DAY, price))
    band = [(Step(d, d + _DAY, min(p)), Step(d, d + _DAY, max(p))) for d, p in sorted(spot.items())]
    title = f"{name}: cheapest on-demand price per provider"
    return Chart(title, since, now, [Line(p, s) for p, s in sorted(lines.items())], band)
