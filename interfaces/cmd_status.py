"""`gpubazaar status`: freshness and health per provider."""

from __future__ import annotations

import click

from catalog.queries import HEALTH_COLUMNS, provider_health
from catalog.reader import reading
from interfaces.options import format_option, home_of, language_options
from interfaces.render import notes, print_rows
from interfaces.words import headers

TABLE_COLUMNS = ("provider", "outcome", "row_count", "rejected_count", "unmapped_count", "last_success_at", "age_s",
                 "max_age_s", "freshness", "provenance", "note")  # fmt: skip


@click.command("status")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@format_option()
@language_options
@click.pass_context
def command(ctx: click.Context, providers: tuple[str, ...], form: str, lang: str, currency: str) -> None:
    """Show each provider's last refresh, its age against its limit, and what went wrong."""
    del currency
    with reading(home_of(ctx)) as catalog:
        rows = provider_health(catalog, providers)
        envelope = {"as_of": catalog.as_of(), "rows": [], "providers": rows, "warnings": catalog.warnings}
        unmapped = catalog.rows("SELECT * FROM v_unmapped ORDER BY provider, gpu_label")
    columns = HEALTH_COLUMNS if form == "csv" else TABLE_COLUMNS
    print_rows(rows, columns, form, envelope={**envelope, "unmapped": unmapped}, headers=headers(lang))
    if form == "table":
        names = [f"{u['gpu_label']} ({u['provider']})" for u in unmapped]
        notes([*catalog.warnings, *([f"GPU names not in the table: {', '.join(names)}"] if names else [])])
