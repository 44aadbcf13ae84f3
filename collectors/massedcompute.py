"""Massed Compute: virtual machines of the pricing page, read from the payload that its table is drawn from.

Page: https://massedcompute.com/pricing/ (Next.js; it may redirect to vm.massedcompute.com/pricing). Each row is an
element keyed "<GPU>[-mobile]-x <count>-<n>"; its texts are the count ("×", "8"), the price ("$52.80", written "$$52.80"
because the payload doubles a leading dollar sign, then "/hr") of the whole machine, and `dd` cells: vCPU, RAM with its
unit ("2800 GB"), storage (GB). The page states no region and no stock.

Traps: every row stands twice, for phones and as a table; a cell may be a reference ("$L2f") to an element elsewhere in
the payload; a name ending in "NVLink" is a bridged twin of the plain card at another price.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bs4 import BeautifulSoup

from catalog.types import Document
from catalog.units import decimal_of, number_in, read_price, unit_in
from collectors.contract import HOUR_S, MINUTE_S, Expect
from collectors.pages import Terms, add_cell, cell_state
from collectors.price_page import PricePage
from collectors.readers import changed, flight_text, json_after
from collectors.rows import GpuRead, RowBuilder

PAGE = "https://massedcompute.com/pricing/"
_ROW_KEY = re.compile(r'"(?P<gpu>[^"\\]+?)(?P<phone>-mobile)?-x (?P<count>\d+)-\d+",\s*(?=\{)')
_MEMORY = re.compile(r"\d\s*[GT]i?B", re.IGNORECASE)
_CELLS = ("vCPU", "RAM", "storage")
_REFERENCE = re.compile(r"^\$L?(?P<id>[0-9a-f]+)$")


@dataclass(frozen=True, slots=True)
class _Row:
    """One machine as the page shows it; cells that could not be read are blank."""

    price: str
    vcpu: str
    memory: str
    storage: str

    @property
    def filled(self) -> int:
        return sum(1 for cell in (self.price, self.vcpu, self.memory, self.storage) if cell)


class MassedCompute(PricePage):
    """Massed Compute: on-demand GPU machines in USD."""

    provider = "massedcompute"
    title = "Massed Compute"
    home_page = page = PAGE
    sources = (PAGE,)
    extra_hosts = ("www.massedcompute.com", "vm.massedcompute.com")
    cadence_s: ClassVar[int] = 6 * HOUR_S
    billing_increment_s = MINUTE_S
    terms_note = "Prepaid balance debited every minute; RAM, storage and traffic are part of the price."
    expect = Expect(min_rows=5, gpus=frozenset({"b200-sxm-180gb", "h100"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per GPU and count."""
        found = _rows(flight_text(soup))
        if not found:
            changed(document, '__next_f "<gpu>-x <count>-0"')
        if not any(read_price(row.price) for versions in found.values() for row in versions):
            changed(document, "__next_f row price", f"no row of {len(found)} states a price in {document.url}")
        for (gpu, count), versions in found.items():
            _add(rows, document, gpu, count, versions)


def _rows(payload: str) -> dict[tuple[str, int], list[_Row]]:
    """GPU name and count to every version of its row, in page order."""
    found: dict[tuple[str, int], list[_Row]] = {}
    for key in _ROW_KEY.finditer(payload):
        element = json_after(payload, key.end())
        if isinstance(element, dict):
            found.setdefault((key["gpu"], int(key["count"])), []).append(_read_row(payload, element))
    return found


def _read_row(payload: str, element: Mapping[str, Any]) -> _Row:
    texts = list(_texts(payload, element.get("children"), ""))
    price = _price_text([text for tag, text in texts if tag != "dd"])
    cells = [text for tag, text in texts if tag == "dd"]
    if len(cells) == len(_CELLS) and _MEMORY.search(cells[1]):
        return _Row(price, *cells)
    return _Row(price, "", next((cell for cell in cells if _MEMORY.search(cell)), ""), "")


def _price_text(words: Sequence[str]) -> str:
    """The price with the unit that follows it as an element of its own, or the words that stand in its place."""
    for index, word in enumerate(words):
        if "$" in word:
            return f"{word} {words[index + 1] if index + 1 < len(words) else ''}".strip()
    return " ".join(word for word in words if re.search(r"[^\W\d]", word))


def _texts(payload: str, node: object, tag: str) -> Iterator[tuple[str, str]]:
    """Every text under a node with the tag it stands in; references are followed where the payload holds them."""
    if isinstance(node, list):
        if len(node) == 4 and node[0] == "$" and isinstance(node[1], str):
            inner = list(_texts(payload, (node[3] if isinstance(node[3], dict) else {}).get("children"), node[1]))
            # One text per cell, blank where its content is not part of the page, so that cells never change places.
            yield from [("dd", " ".join(text for _, text in inner))] if node[1] == "dd" else inner
            return
        for item in node:
            yield from _texts(payload, item, tag)
    elif isinstance(node, str):
        reference = _REFERENCE.match(node)
        if reference:
            yield from _texts(payload, _referenced(payload, reference["id"]), tag)
        elif node.strip():
            yield tag, node.removeprefix("$") if node.startswith("$$") else node
    elif node is not None and not isinstance(node, bool | dict):
        yield tag, str(node)


def _referenced(payload: str, identifier: str) -> object:
    """The element that a payload line defines ("2f:[…]"), or None where it is not part of the page."""
    start = re.search(rf"(?:^|\n){identifier}:(?=[\[\"])", payload)
    if start is None:
        return None
    try:
        return json.JSONDecoder().raw_decode(payload, start.end())[0]
    except ValueError:
        return None


def _add(rows: RowBuilder, document: Document, gpu: str, count: int, versions: Sequence[_Row]) -> None:
    name = f"{gpu} x{count}"
    row = max(versions, key=lambda version: version.filled)
    prices = {price.amount: version.price for version in versions if (price := read_price(version.price))}
    if len(prices) > 1:
        rows.reject("price_ambiguous", "price", sorted(map(str, prices)), sample=name)
        return
    text = next(iter(prices.values()), row.price)
    if cell_state(text) == "absent":
        rows.reject("not_a_price", "price", text, sample=name)
        return
    if prices and unit_in(text) is None:
        rows.reject("unit_unknown", "price", text, sample=name)
        return
    memory, storage = number_in(row.memory), number_in(row.storage)
    linked: dict[str, Any] = {"gpu_interconnect": "nvlink"} if re.search(r"\bNVLink\b", gpu, re.IGNORECASE) else {}
    add_cell(
        rows,
        document,
        GpuRead(label=gpu, count=count),
        text,
        Terms(unit="hour", scope="instance", currency="USD"),
        sku=f"{gpu}-x{count}",
        instance_type=name,
        vcpu_count=float(vcpu) if (vcpu := decimal_of(row.vcpu)) else None,
        memory_gib=float(memory) if memory else None,
        local_storage_gb=float(storage) if storage else None,
        **linked,
    )
