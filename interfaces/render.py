"""Printing rows: a table for people, and JSON, JSON lines, CSV or Markdown for everything else.

Data goes to standard output, notes to standard error. Piped output has no colour and no cut columns.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

Rows = Sequence[Mapping[str, Any]]

_WIDE = 10_000
# Money of a source stays text in JSON: a float would not hold it exactly.
_EXACT_COLUMNS = frozenset({"price", "unit_price_usd", "cost_usd", "quantity"})


def plain(value: Any, column: str = "") -> Any:
    """A value as JSON has it: times in ISO 8601 with Z, exact money as text, other decimals as numbers."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return money_text(value) if column in _EXACT_COLUMNS else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {k: plain(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, column) for v in value]
    if isinstance(value, Path):
        return str(value)
    return value


def money_text(value: Decimal) -> str:
    """An exact amount without trailing zeros: 6.6198, 60, 0.11033."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """JSON text of anything this product returns."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def print_rows(
    rows: Rows,
    columns: Sequence[str],
    form: str,
    *,
    envelope: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    title: str = "",
) -> None:
    """Print rows in one of the list formats.

    Args:
        rows: the data.
        columns: which columns a table, CSV or Markdown shows, in order; JSON shows every key.
        form: table, json, jsonl, csv or markdown.
        envelope: what JSON puts around `rows` (as_of, providers, warnings).
        headers: words for column names, for tables and Markdown only.
        title: a line above a table.
    """
    if form == "json":
        click.echo(dumps({**(envelope or {}), "rows": list(rows)} if envelope is not None else list(rows)))
    elif form == "jsonl":
        for row in rows:
            click.echo(dumps(row, indent=None))
    elif form == "csv":
        _print_csv(rows, columns)
    elif form == "markdown":
        _print_markdown(rows, columns, headers or {})
    else:
        print_table(rows, columns, headers=headers, title=title)


def _print_csv(rows: Rows, columns: Sequence[str]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [plain(row.get(c), c) for c in columns]
        writer.writerow(["|".join(map(str, v)) if isinstance(v, list) else v for v in values])


def _print_markdown(rows: Rows, columns: Sequence[str], headers: Mapping[str, str]) -> None:
    click.echo("| " + " | ".join(headers.get(c, c) for c in columns) + " |")
    click.echo("|" + "|".join("---:" if _numeric(rows, c) else "---" for c in columns) + "|")
    for row in rows:
        click.echo("| " + " | ".join(shown(row.get(c), c).replace("|", "\\|") for c in columns) + " |")


def print_table(
    rows: Rows, columns: Sequence[str], *, headers: Mapping[str, str] | None = None, title: str = ""
) -> None:
    """Print a table: as wide as the terminal, or as wide as it needs to be where there is none."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else _WIDE, highlight=False)
    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column((headers or {}).get(column, column), justify="right" if _numeric(rows, column) else "left",
                         overflow="fold")  # fmt: skip
    for row in rows:
        table.add_row(*(shown(row.get(c), c) for c in columns))
    # Rich would end the process when the reader of the output has gone; echo lets the caller decide.
    with console.capture() as drawn:
        console.print(table)
    click.echo(drawn.get(), nl=False)


def _numeric(rows: Rows, column: str) -> bool:
    values = [row.get(column) for row in rows if row.get(column) is not None]
    return bool(values) and all(isinstance(v, (int, float, Decimal)) and not isinstance(v, bool) for v in values)


def shown(value: Any, column: str) -> str:
    """A value as a table shows it: ages in words, prices with four digits, nothing for None."""
    if value is None:
        return ""
    if column.endswith("age_s"):
        return age_words(float(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}Z"
    if isinstance(value, Decimal):
        return money_text(value)
    if isinstance(value, float):
        if "price" in column or "usd" in column or "cost" in column:
            return f"{value:.4f}" if abs(value) < 1 else f"{value:,.2f}"
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value)
    return str(value)


def age_words(seconds: float) -> str:
    """An age a person can read: 40 s, 12 min, 5 h, 61 d."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} d"


def note(text: str) -> None:
    """A line on standard error."""
    click.echo(text, err=True)


def notes(texts: Iterable[str]) -> None:
    """Warnings on standard error, each once."""
    for text in dict.fromkeys(texts):
        note(f"note: {text}")
