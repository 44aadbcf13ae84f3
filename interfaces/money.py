"""Prices in a second currency, at the catalog's own dated exchange rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.errors import ConfigurationError
from catalog.queries import exchange_rates
from catalog.reader import Catalog

_CONVERTED = ("price_usd_hour", "price_usd_gpu_hour", "price_usd_month", "plan_usd_hour", "cost_total_usd",
              "cost_usd_month")  # fmt: skip


def add_currency(
    catalog: Catalog, rows: list[dict[str, Any]], columns: Sequence[str], currency: str
) -> tuple[str, ...]:
    """Add a column in `currency` beside each dollar column of the rows; returns the columns to show.

    Raises:
        ConfigurationError: the catalog holds no rate for that currency.
    """
    if currency == "usd":
        return tuple(columns)
    known = exchange_rates(catalog)
    if currency.upper() not in known:
        raise ConfigurationError(f"no exchange rate for {currency.upper()} in the catalog; run `gpubazaar refresh ecb`")
    usd_per_unit = known[currency.upper()]["usd_per_unit"]
    for row in rows:
        for name in _CONVERTED:
            if name in row:
                value = row[name]
                row[name.replace("usd", currency)] = None if value is None else float(value) / usd_per_unit
    shown: list[str] = []
    for column in columns:
        shown.append(column)
        if column in _CONVERTED:
            shown.append(column.replace("usd", currency))
    return tuple(shown)


def grouped(amount: float | None, currency: str, lang: str) -> str:
    """An amount with its sign and the grouping of its readers: $1,234.50, ₹1,03,456.00."""
    if amount is None:
        return ""
    from babel.numbers import format_currency

    locale = "hi_IN" if lang == "hi" else "en_IN" if currency == "inr" else "en_US"
    return format_currency(amount, currency.upper(), locale=locale)
