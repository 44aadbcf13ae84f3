"""Structured data of price pages: the nodes of JSON-LD scripts (https://www.w3.org/TR/json-ld11/)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from bs4 import BeautifulSoup

from catalog.types import Document
from collectors.readers import changed


def nodes_of_type(document: Document, soup: BeautifulSoup, wanted: str) -> list[Mapping[str, Any]]:
    """Every node of one `@type` in the page's JSON-LD scripts, in page order, numbers exact.

    Raises:
        LayoutChanged: the page has no JSON-LD script, or one of them is cut off or not JSON.
    """
    selector = 'script[type="application/ld+json"]'
    scripts = soup.select(selector)
    if not scripts:
        changed(document, selector)
    found: list[Mapping[str, Any]] = []
    for script in scripts:
        try:
            content = json.loads(script.string or "", parse_float=Decimal)
        except ValueError as problem:
            changed(document, selector, f"not JSON in {document.url}: {problem}")
        found.extend(node for node in _nodes(content) if wanted in _types(node))
    return found


def _nodes(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, list):
        for item in content:
            yield from _nodes(item)
    elif isinstance(content, dict):
        yield content
        for key, item in content.items():
            if key != "priceSpecification":
                yield from _nodes(item)


def _types(node: Mapping[str, Any]) -> tuple[str, ...]:
    stated = node.get("@type")
    return tuple(map(str, stated)) if isinstance(stated, list) else (str(stated),)
