"""`gpubazaar status`: freshness and health per provider; with a name, what its last runs and the guard found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from catalog.health import ProviderDetails, details
from catalog.queries import HEALTH_COLUMNS, provider_health
from catalog.queries import cross_check as disagreements
from catalog.reader import reading
from interfaces import exits
from interfaces.durations import duration_s
from interfaces.options import format_option, home_of, language_options
from interfaces.render import age_words, note, notes, print_rows, print_table
from interfaces.words import headers

TABLE_COLUMNS = ("provider", "outcome", "row_count", "rejected_count", "unmapped_count", "last_success_at", "age_s",
                 "max_age_s", "freshness", "provenance", "note")  # fmt: skip
_CROSS = ("provider", "gpu", "gpu_count", "region", "purchase_option", "commitment_days", "own_usd_gpu_hour",
          "second_source", "second_usd_gpu_hour", "difference_pct")  # fmt: skip
_TRIPS = ("rule", "figure_before", "figure_after", "limit_text")
_RUNS = ("started_at", "outcome", "row_count", "rejected_count", "complete", "run_id", "reason")
_HELD = ("instance_type", "region", "gpu", "purchase_option", "price_before", "currency_before", "price", "currency",
         "price_unit", "price_scope")  # fmt: skip


@click.command("status")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@click.option("--fail-if-older", "limit_s", type=duration_s, metavar="SPAN",
              help="Exit 4 when the last success of a provider is older than this, such as 24h. For cron.")  # fmt: skip
@click.option("--cross-check", is_flag=True,
              help="List where second sources disagree with our own rows by more than 10 %.")  # fmt: skip
@format_option()
@language_options
@click.pass_context
def command(
    ctx: click.Context,
    providers: tuple[str, ...],
    limit_s: float | None,
    cross_check: bool,
    form: str,
    lang: str,
    currency: str,
) -> int:
    """Show each provider's last refresh, its age against its limit, and what went wrong.

    With PROVIDER also its last runs, and where the guard held one: each rule that tripped, with its figures before and
    after, the rows that were held, and how to accept them.
    """
    del currency
    if cross_check:
        return _print_cross_check(ctx, providers, form)
    with reading(home_of(ctx)) as catalog:
        rows = provider_health(catalog, providers)
        found = [details(catalog, name) for name in providers]
        unmapped = catalog.rows("SELECT * FROM v_unmapped ORDER BY provider, gpu_label")
        envelope = {
            "as_of": catalog.as_of(), "rows": [], "providers": rows, "warnings": catalog.warnings,
            "unmapped": unmapped, **({"details": [d.as_dict() for d in found]} if found else {}),
        }  # fmt: skip
    columns = HEALTH_COLUMNS if form == "csv" else TABLE_COLUMNS
    print_rows(rows, columns, form, envelope=envelope, headers=headers(lang))
    if form == "table":
        for detail in found:
            _print_details(detail)
        wanted = [u for u in unmapped if not providers or u["provider"] in providers]
        names = [f"{u['gpu_label']} ({u['provider']})" for u in wanted]
        notes([*catalog.warnings, *([f"GPU names not in the table: {', '.join(names)}"] if names else [])])
    if limit_s is None:
        return exits.OK
    return _too_old(rows, limit_s, named=bool(providers))


def _print_cross_check(ctx: click.Context, providers: Sequence[str], form: str) -> int:
    with reading(home_of(ctx)) as catalog:
        provider_health(catalog, providers)  # an unknown name is an error
        rows = [r for r in disagreements(catalog) if not providers or r["provider"] in providers]
        print_rows(rows, _CROSS, form, envelope={"as_of": catalog.as_of(), "rows": [], "warnings": catalog.warnings})
    if not rows:
        note("no second source disagrees by more than 10 %")
    return exits.OK


def _print_details(detail: ProviderDetails) -> None:
    if detail.trips:
        held = detail.trips[0]["run_id"]
        print_table(detail.trips, _TRIPS, title=f"{detail.provider}: run {held} is held by the guard")
        print_table(detail.held, _HELD, title=f"its rows beside the last good ones ({detail.held_count} in all)")
        click.echo(f"To publish them after a look: gpubazaar refresh {detail.provider} --accept {held}\n")
    print_table(detail.runs, _RUNS, title=f"{detail.provider}: last runs")
    if detail.rejections:
        print_table(detail.rejections, ("reason", "field", "count", "sample"), title="rows refused in the last run")
    if detail.events:
        print_table(detail.events, ("happened_at", "event", "detail"), title="noticed by the scheduler")


def _too_old(rows: Sequence[Mapping[str, Any]], limit_s: float, *, named: bool) -> int:
    """Exit code for cron: every provider that was ever tried (or is named) must have succeeded within the limit."""
    judged = [r for r in rows if named or r["outcome"] not in {"never", "skipped"} or r["last_success_at"]]
    old = [r for r in judged if r["age_s"] is None or r["age_s"] > limit_s]
    if old:
        note(f"older than {age_words(limit_s)}: {', '.join(_with_age(old))}")
    elif not judged:
        note("no provider has been refreshed yet")
    return exits.STALE if old or not judged else exits.OK


def _with_age(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"{r['provider']} ({age_words(r['age_s']) if r['last_success_at'] else 'never'})" for r in rows]
