"""`gpubazaar sql`: read-only SQL over the published views."""

from __future__ import annotations

import sys

import click

from catalog.errors import ConfigurationError
from catalog.reader import reading
from catalog.sandbox import run
from interfaces.options import format_option, home_of
from interfaces.render import note, notes, print_rows


@click.command("sql")
@click.argument("query", required=False)
@format_option()
@click.option("--timeout", "timeout_s", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True,
              help="Seconds after which the query is stopped.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True, help="Rows at most.")
@click.pass_context
def command(ctx: click.Context, query: str | None, form: str, timeout_s: float, limit: int) -> None:
    """Run QUERY (or standard input) over the published views (v_offers, v_gpus, v_cheapest, v_price_history).

    \b
    gpubazaar sql "from v_cheapest select gpu, provider, price_usd_gpu_hour where purchase_option = 'spot'"
    """
    text = query if query is not None else ("" if sys.stdin.isatty() else sys.stdin.read())
    if not text.strip():
        raise ConfigurationError("no query: give it as an argument or on standard input")
    with reading(home_of(ctx)) as catalog:
        answer = run(catalog, text, timeout_s=timeout_s, row_limit=limit)
        notes(catalog.warnings)
        rows = [dict(zip(answer.columns, values, strict=True)) for values in answer.rows]
        print_rows(rows, answer.columns, form)
    if answer.truncated:
        note(f"note: more than {limit} rows match; raise --limit to see them")
