"""Prices that a source states in US cents: to dollars, and a guard against the day it switches to dollars."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from catalog.types import Document
from catalog.units import decimal_of
from collectors.readers import changed

DOLLARS_PER_CENT = Decimal("0.01")
LEAST_CENTS_PER_GPU = 5
"""No GPU is that cheap: a list whose dearest price lies below holds dollars, not cents."""


def check_cents(document: Document, selector: str, prices: Iterable[tuple[object, object]]) -> None:
    """Refuse a list of (price, GPU count) that cannot be in cents.

    Raises:
        LayoutChanged: the dearest price per GPU is below 5 cents.
    """
    per_gpu = [
        cents / count
        for price, gpus in prices
        if (cents := decimal_of(price)) is not None and (count := decimal_of(gpus)) and cents > 0 and count > 0
    ]
    if per_gpu and max(per_gpu) < LEAST_CENTS_PER_GPU:
        changed(document, selector, f"at most {max(per_gpu)} per GPU: these are not US cents any more")


def dollars(cents: object) -> object:
    """The amount in dollars; anything that is no number stays as it is, to be rejected with its own value."""
    amount = decimal_of(cents)
    return cents if amount is None else amount * DOLLARS_PER_CENT
