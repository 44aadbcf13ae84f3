"""`gpubazaar sql`: read-only SQL over the published views."""

from __future__ import annotations

import sys

import click

from catalog.describe import describe
from catalog.errors import ConfigurationError
from catalog.history_months import attach_history, reaches_back
from catalog.reader import reading
from catalog.sandbox import run
from interfaces.options import Seconds, format_option, home_of
from interfaces.render import note, notes, print_rows


@click.command("sql")
@click.argument("query", required=False)
@click.option("--describe", "described", metavar="VIEW", is_flag=False, flag_value="",
              help="Show a view's columns with their meaning; without VIEW the list of views.")  # fmt: skip
@format_option()
@click.option("--timeout", "timeout_s", type=Seconds(0.1, 3600), default=30.0, show_default=True,
              help="Seconds after which the query is stopped.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True, help="Rows at most.")
@click.pass_context
def command(
    ctx: click.Context, query: str | None, described: str | None, form: str, timeout_s: float, limit: int
) -> None:
    """Run QUERY (or standard input) over v_offers, v_gpus, v_cheapest, v_price_history and the other views.

    \b
    gpubazaar sql "from v_cheapest select gpu, provider, price_usd_gpu_hour where purchase_option = 'spot'"
    gpubazaar sql --describe v_offers
    """
    home = home_of(ctx)
    if described is not None:
        with reading(home) as catalog:
            print_rows(describe(catalog, described or None), ("name", "type", "description"), form)
        return
    text = query if query is not None else ("" if sys.stdin.isatty() else sys.stdin.read())
    if not text.strip():
        raise ConfigurationError("no query: give it as an argument or on standard input")
    with reading(home) as catalog:
        if reaches_back(text):
            attach_history(catalog, home)
        answer = run(catalog, text, timeout_s=timeout_s, row_limit=limit)
        notes(catalog.warnings)
        rows = [dict(zip(answer.columns, values, strict=True)) for values in answer.rows]
        print_rows(rows, answer.columns, form)
    if answer.truncated:
        note(f"note: more than {limit} rows match; raise --limit to see them")
