"""What Oracle Cloud bills beside an instance, from the same price list: block volumes and outbound traffic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from catalog.types import Document, SurchargeKind
from catalog.units import decimal_of
from collectors.listing import as_list, as_object
from collectors.rows import RowBuilder

# The list has a traffic price per continent of origin; offers name no region, so the first and largest group counts.
_EXTRAS: tuple[tuple[SurchargeKind, re.Pattern[str], str, str], ...] = (
    ("egress", re.compile(r"outbound data transfer.*north america, europe", re.IGNORECASE), "Gigabyte", "gb"),
    ("block_storage", re.compile(r"block volume\s*-\s*storage", re.IGNORECASE), "Gigabyte", "gb_month"),
)


def dollar_steps(item: Mapping[str, Any]) -> list[tuple[Decimal, Decimal]]:
    """A product's pay-as-you-go prices in dollars as (from quantity, price), lowest quantity first; zero included."""
    steps = []
    for money in as_list(item.get("currencyCodeLocalizations")):
        if not isinstance(money, Mapping) or money.get("currencyCode") != "USD":
            continue
        for price in as_list(money.get("prices")):
            amount = decimal_of(price.get("value")) if isinstance(price, Mapping) else None
            if amount is not None and amount >= 0 and price.get("model") == "PAY_AS_YOU_GO":
                steps.append((decimal_of(price.get("rangeMin")) or Decimal(0), amount))
    return sorted(steps)


def add_extras(rows: RowBuilder, document: Document, items: Sequence[Any]) -> None:
    """Add the surcharges of a price list; a product that is not there adds nothing."""
    for kind, name, metric, unit in _EXTRAS:
        priced = (dollar_steps(item) for item in _named(items, name, metric))
        for steps in priced:
            paid = [step for step in steps if step[1] > 0]
            if not paid:
                continue
            free = paid[0][0] if steps[0][1] == 0 else None
            rows.surcharge(document, kind, paid[0][1], unit, included_quantity=free)
            break


def _named(items: Sequence[Any], name: re.Pattern[str], metric: str) -> Iterable[Mapping[str, Any]]:
    for item in items:
        product = as_object(item)
        if name.search(str(product.get("displayName"))) and str(product.get("metricName")).startswith(metric):
            yield product
