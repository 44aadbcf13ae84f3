"""The shape of a document without its values: JSON key paths, or the header cells and landmarks of a page.

Two shapes differ where a source renamed a key or moved a column, whatever its prices do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bs4 import BeautifulSoup

from catalog.types import Document
from collectors.readers import read_table

# A dict with more keys than this, all of them holding alike objects, is a table keyed by name: its keys are values.
_KEYED_TABLE = 3
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class ShapeChange:
    """What appeared in and vanished from a provider's documents."""

    appeared: tuple[str, ...]
    vanished: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return bool(self.appeared or self.vanished)


def shape_of(documents: Iterable[Document], *, headings: bool = True) -> frozenset[str]:
    """The union of the shapes of several documents, of pages with or without the texts of their headings."""
    found: set[str] = set()
    for document in documents:
        try:
            _walk(json.loads(document.body), "$", found, 0)
        except (ValueError, RecursionError):
            _page(document, found, headings)
    return frozenset(found)


def compare_shapes(before: frozenset[str], after: frozenset[str]) -> ShapeChange:
    """What the newer shape has more and less than the older."""
    return ShapeChange(tuple(sorted(after - before)), tuple(sorted(before - after)))


def _walk(value: Any, path: str, found: set[str], depth: int) -> None:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        table = len(value) > _KEYED_TABLE and all(isinstance(v, dict) for v in value.values()) and _alike(value)
        for key, item in value.items():
            step = f"{path}.*" if table else f"{path}.{key}"
            found.add(step)
            _walk(item, step, found, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _walk(item, f"{path}[]", found, depth + 1)


def _alike(table: dict[str, Any]) -> bool:
    """Whether the objects in a dict share most of their keys, as records do and settings do not."""
    kinds = [frozenset(item) for item in table.values()]
    shared = frozenset.intersection(*kinds)
    return bool(shared) and len(shared) >= 0.5 * max(len(k) for k in kinds)


def _page(document: Document, found: set[str], headings: bool) -> None:
    if document.body.lstrip().startswith(b"<?xml"):
        found.update(f"element: {node.name}" for node in BeautifulSoup(document.body, "xml").find_all(True))
        return
    soup = BeautifulSoup(document.body, "lxml")
    for node in soup.find_all("table"):
        found.update(f"table column: {header}" for header in read_table(node).headers if header)
    for node in soup.find_all(True):
        found.update(f"attribute: {name}" for name in node.attrs if name.startswith("data-"))
    if headings:
        found.update(f"heading: {node.get_text(' ', strip=True)}" for node in soup.find_all(["h1", "h2"]))
