"""Lists of JSON objects: rows without what every row needs are rejected one by one, lists where all lack it refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catalog.types import Document
from collectors.readers import changed
from collectors.rows import RowBuilder


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
