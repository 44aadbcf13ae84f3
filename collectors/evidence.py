"""Expected rows with evidence: what a fixture says, read again WITHOUT the parser.

`fixtures/<provider>/expected.jsonl`, one row a line:

    {"match": {"instance_type": "H100-SXM-2-80G", "region": "fr-par-2"},
     "expect": {"gpu": "h100-sxm-80gb", "gpu_count": 2, "gpu_memory_gb": 80, "purchase_option": "on_demand"},
     "evidence": [{"document": "servers-fr-par-2-1", "pointer": "/servers/H100-SXM-2-80G/hourly_price",
                   "raw": "6.6198", "is": "price", "currency": "EUR", "unit": "hour", "scope": "instance"},
                  {"document": "servers-fr-par-2-1", "pointer": "/servers/H100-SXM-2-80G/gpu", "raw": "2",
                   "is": "gpu_count"}]}

`match` selects exactly one row. Each evidence names a document and a place in it: `pointer` (RFC 6901 JSON pointer),
`css` (selector, with `nth` for the nth match), `line` (1-based line of a text file, or of the `member` of a zip file)
or `after` (the text that follows this unique text, for data embedded in scripts). `raw` must stand there. `is` says
what it proves: `price` (with `unit`, `scope`, `currency`, `scale` such as 0.01 for cents, and `days` for a term),
`gpu_count`, `gpu_memory_gb`, or any other field that it equals. Evidence of several prices is added up (a price
composed of components) after multiplying each by its `times`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from bs4 import BeautifulSoup

from catalog.types import Document
from catalog.units import decimal_of, instance_price_hour, number_in


class EvidenceMissing(AssertionError):
    """The raw text does not stand where the evidence says."""


def raw_at(document: Document, evidence: Mapping[str, Any]) -> str:
    """The text at the place an evidence names.

    Raises:
        EvidenceMissing: the place does not exist in the document.
    """
    if "pointer" in evidence:
        return _at_pointer(document, str(evidence["pointer"]))
    if "css" in evidence:
        found = BeautifulSoup(document.body, "lxml").select(str(evidence["css"]))
        nth = int(evidence.get("nth", 0))
        if nth >= len(found):
            raise EvidenceMissing(f"{document.name}: {evidence['css']} matches {len(found)} elements, asked for {nth}")
        return " ".join(found[nth].get_text(" ").split())
    if "line" in evidence:
        lines = _text(document, str(evidence.get("member", ""))).splitlines()
        number = int(evidence["line"])
        if not 0 < number <= len(lines):
            raise EvidenceMissing(f"{document.name} has {len(lines)} lines, asked for {number}")
        return lines[number - 1]
    if "after" in evidence:
        text, mark = document.text(), str(evidence["after"])
        if text.count(mark) != 1:
            raise EvidenceMissing(f"{document.name}: {mark!r} stands {text.count(mark)} times, must be unique")
        return text[text.index(mark) + len(mark) :][: int(evidence.get("within", len(str(evidence["raw"])) + 80))]
    raise EvidenceMissing(f"evidence names no place: {evidence}")


def _text(document: Document, member: str) -> str:
    if not member:
        return document.text()
    with zipfile.ZipFile(io.BytesIO(document.body)) as archive:
        return archive.read(member).decode("utf-8", errors="replace")


def _at_pointer(document: Document, pointer: str) -> str:
    value = json.loads(document.body, parse_float=Decimal)
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError) as problem:
            raise EvidenceMissing(f"{document.name}: nothing at {pointer} (stopped at {key!r})") from problem
    return value if isinstance(value, str) else json.dumps(value, default=str).strip('"')


def holds(document: Document, evidence: Mapping[str, Any]) -> bool:
    """Whether the raw text stands at its place: equal for a JSON value, contained for text."""
    there = raw_at(document, evidence)
    raw = str(evidence["raw"])
    return there == raw if "pointer" in evidence else " ".join(raw.split()) in " ".join(there.split())


def amount_of(evidence: Mapping[str, Any]) -> Decimal:
    """The number an evidence's raw text writes, times its `scale` and `times`."""
    raw = str(evidence["raw"])
    amount = decimal_of(raw)
    amount = number_in(raw) if amount is None else amount
    if amount is None:
        raise EvidenceMissing(f"no number in {raw!r}")
    return amount * Decimal(str(evidence.get("scale", 1))) * Decimal(str(evidence.get("times", 1)))


def native_price_hour(evidences: Iterable[Mapping[str, Any]], gpu_count: int) -> Decimal | None:
    """The instance's hourly price in its own currency, recomputed from price evidence alone; None without any."""
    prices = [e for e in evidences if e.get("is") == "price"]
    if not prices:
        return None
    return sum(
        (
            instance_price_hour(
                amount_of(e), e.get("unit", "hour"), e.get("scope", "instance"), gpu_count, int(e.get("days", 0))
            )
            for e in prices
        ),
        Decimal(0),
    )
