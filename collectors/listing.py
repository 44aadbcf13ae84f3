"""JSON not quite as documented: one odd row is rejected or read as unknown, a list that lost a field is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catalog.types import Document
from catalog.units import decimal_of
from collectors.readers import changed
from collectors.rows import RowBuilder

# Larger than any count, size or price here, and still exact as a float.
_ENDLESS = 10**15


def as_object(value: object) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one: a part that is missing or of another type is unknown."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def positive(value: object) -> float | None:
    """The number where it is finite and above zero; zero and everything else is unknown."""
    amount = decimal_of(value)
    return float(amount) if amount is not None and 0 < amount < _ENDLESS else None


def whole_number(value: object) -> int | None:
    """The count where it is a plausible whole number from zero up, or None."""
    amount = decimal_of(value)
    return int(amount) if amount is not None and 0 <= amount < _ENDLESS and amount == int(amount) else None


def whole_items(
    rows: RowBuilder, document: Document, items: Sequence[Any], selector: str, *fields: str
) -> list[Mapping[str, Any]]:
    """The objects of a list that have every field (its value may be null).

    Raises:
        LayoutChanged: the list is empty, or no object has one of the fields.
    """
    if not items:
        changed(document, selector, f"empty list in {document.url}")
    whole = []
    for item in items:
        missing = [field for field in fields if not isinstance(item, Mapping) or field not in item]
        if missing:
            rows.reject("field_missing", missing[0], "", sample=item)
        else:
            whole.append(item)
    if not whole:
        lost = next((f for f in fields if not any(isinstance(i, Mapping) and f in i for i in items)), fields[0])
        changed(document, f"{selector}/{lost}")
    return whole
