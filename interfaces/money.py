"""Prices in a second currency, at the catalog's own dated exchange rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.errors import ConfigurationError

if TYPE_CHECKING:
    from catalog.reader import Catalog

_CONVERTED = ("price_usd_hour", "price_usd_gpu_hour", "price_usd_month", "plan_usd_hour", "cost_total_usd",
              "cost_usd_month", "cheapest_on_demand_usd_gpu_hour", "cheapest_spot_usd_gpu_hour")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Money:
    """A currency to show amounts in; `usd_per_unit` is what one unit of it is worth in US dollars."""

    currency: str = "usd"
    usd_per_unit: float = 1.0

    def text(self, amount_usd: float, lang: str) -> str:
        """An amount of US dollars in this currency, grouped for its readers."""
        return grouped(amount_usd / self.usd_per_unit, self.currency, lang)


DOLLARS = Money()


def money_of(catalog: Catalog, currency: str) -> Money:
    """The currency at the catalog's own rate.

    Raises:
        ConfigurationError: the catalog holds no rate for that currency.
    """
    if currency == "usd":
        return DOLLARS
    # Sentences need amounts without a catalog, too.
    from catalog.queries import exchange_rates

    known = exchange_rates(catalog)
    if currency.upper() not in known:
        raise ConfigurationError(f"no exchange rate for {currency.upper()} in the catalog; run `gpubazaar refresh ecb`")
    return Money(currency, float(known[currency.upper()]["usd_per_unit"]))


def add_currency(
    catalog: Catalog, rows: list[dict[str, Any]], columns: Sequence[str], currency: str
) -> tuple[str, ...]:
    """Add a column in `currency` beside each dollar column of the rows; returns the columns to show.

    Raises:
        ConfigurationError: the catalog holds no rate for that currency.
    """
    if currency == "usd":
        return tuple(columns)
    usd_per_unit = money_of(catalog, currency).usd_per_unit
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
