"""`gpubazaar offers`: what can be rented."""

from __future__ import annotations

from typing import Any

import click

from catalog.errors import UnknownName
from catalog.filters import build_filter
from catalog.queries import OFFER_COLUMNS, offers, provider_health
from catalog.reader import reading
from interfaces import exits
from interfaces.money import add_currency
from interfaces.options import check_names, filter_options, format_option, given_filters, home_of, language_options
from interfaces.render import note, notes, print_rows
from interfaces.words import headers

TABLE_COLUMNS = (
    "provider", "instance_type", "region", "gpu", "gpu_count", "gpu_memory_gb", "purchase_option",
    "price_usd_gpu_hour", "price_usd_hour", "billing_increment_s", "availability", "age_s", "freshness", "provenance",
)  # fmt: skip


@click.command("offers")
@filter_options()
@click.option("--sort", multiple=True, help="Column to sort by, -COLUMN for descending; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option("--columns", help="Comma-separated columns of the table or CSV (names of v_offers).")
@format_option()
@language_options
@click.pass_context
def command(
    ctx: click.Context, /, sort: tuple[str, ...], limit: int | None, columns: str | None, form: str, lang: str,
    currency: str, **filters: Any,
) -> int:  # fmt: skip
    """List offers, cheapest per GPU first.

    \b
    gpubazaar offers --gpu h100 --gpu-count 8 --gpu-interconnect nvlink
    gpubazaar offers --min-gpu-memory-gb 80 --country IN --format csv
    gpubazaar offers --purchase-option spot --sort price_usd_hour --limit 10
    """
    wanted = build_filter(given_filters(filters))
    shown = tuple(c.strip() for c in columns.split(",") if c.strip()) if columns else TABLE_COLUMNS
    for column in shown:
        if column not in OFFER_COLUMNS:
            raise UnknownName("column", column, OFFER_COLUMNS)
    with reading(home_of(ctx)) as catalog:
        check_names(catalog, given_filters(filters))
        rows = offers(catalog, wanted, sort=sort, limit=limit)
        if columns is None and any(r["via"] for r in rows):
            shown = ("provider", "via", *shown[1:])
        shown = add_currency(catalog, rows, shown, currency)
        health = provider_health(catalog)
        warnings = [*catalog.warnings, *_warnings(health, rows)]
        envelope = {"as_of": catalog.as_of(), "rows": [], "providers": health, "warnings": warnings}
    print_rows(rows, shown, form, envelope=envelope, headers=headers(lang))
    if form != "json":
        notes(warnings)
    if not rows:
        note("nothing matches these filters; loosen one, or see `gpubazaar status` for what the catalog holds")
        return exits.NOTHING
    return exits.STALE if all(r["freshness"] in {"stale", "expired"} for r in rows) else exits.OK


def _warnings(health: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[str]:
    present = {r["provider"] for r in rows} | {r["via"] for r in rows}
    found = [
        f"{h['provider']}: last refresh {h['outcome']} ({h['note']})"
        for h in health
        if h["outcome"] in {"failed", "held"} and h["provider"] in present
    ]
    kinds = {r["provenance"] for r in rows} - {"live"}
    if kinds:
        found.append(f"these are {' and '.join(sorted(kinds))} prices of the dates shown, not live ones")
    return found
