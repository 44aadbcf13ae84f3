"""Price lists made of cards or lines ("NVIDIA H100  80 GB  $0.001097 / sec"), whatever elements a page builds them of.

A card is the smallest element that holds a price and the words naming what is priced. Class names, nesting and the
split of "$" and figure over elements do not matter; a price without words around it, and words without a price, do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bs4 import Tag

from catalog.names import resolve
from catalog.types import Document
from catalog.units import read_price
from collectors.pages import Terms, terms_in
from collectors.readers import changed, text_of
from collectors.rows import RowBuilder

_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_UNIT_PART = r"(?:\s*(?:/|\bper\b)\s*[A-Za-z](?:[A-Za-z]{0,2}\d{1,4}[A-Za-z]*|[A-Za-z\-]*))"
PRICE = re.compile(
    r"(?:\b(?:from|starting (?:at|from)|as low as)\s*)?"
    rf"(?:[$€₹£]\s*\d[\d.,]*(?:e-\d+)?|\b\d[\d.,]*(?:e-\d+)?\s*(?:€|EUR\b|USD\b|INR\b))(?:\s*(?:USD|EUR|INR)\b)?"
    rf"{_UNIT_PART}{{0,3}}",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[$€₹£]|\b(?:EUR|USD|INR)\b")
_HIDDEN = frozenset({"script", "style", "noscript", "head", "template"})
_SPLIT_DEPTH = 3  # how far apart a sign and its figure may stand: "<b><i>$</i></b><b>2</b>"
# What is left of a card without a label once its prices are taken out.
_NO_LABEL = re.compile(
    r"(?:per|cost|price|hour(?:ly)?|hr|sec(?:ond)?|min(?:ute)?|month|usd|eur|inr|gpu|from|ex\.? vat|[^\w]|\s)*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Card:
    """One priced thing: the words beside its prices, the price texts, and the element."""

    label: str
    prices: tuple[str, ...]
    node: Tag

    @property
    def heading(self) -> str:
        """The text of the heading that the card stands under; '' without one."""
        found = self.node.find_previous(_HEADINGS)
        return text_of(found) if isinstance(found, Tag) else ""

    @property
    def columns(self) -> str:
        """The words over the table that the card is a row of; '' outside of tables."""
        table = self.node if self.node.name == "table" else self.node.find_parent("table")
        head = table.find("tr") if isinstance(table, Tag) else None
        return text_of(head) if isinstance(head, Tag) and head.find("th") else ""

    def price_per(self, unit: str) -> str | None:
        """The first of its prices that states the unit."""
        return next((p for p in self.prices if (read := read_price(p)) and read.unit == unit), None)

    @property
    def is_sentence(self) -> bool:
        """Whether a price stands in one piece of text with other words: "New: H100 from $1.99/hr!"."""
        pieces = (" ".join(piece.split()) for piece in self.node.strings)
        return any(PRICE.search(piece) and not _NO_LABEL.fullmatch(PRICE.sub(" ", piece)) for piece in pieces)

    def is_like(self, other: Card) -> bool:
        """Whether both are built alike, as the entries of one list are: the same element with a class in common."""
        own, others = ({str(name) for name in card.node.get("class") or ()} for card in (self, other))
        return self.node.name == other.node.name and (bool(own & others) or own == others)

    @property
    def is_gpu(self) -> bool:
        """Whether the label names a known accelerator."""
        found = resolve(self.label)
        return found.gpu is not None or bool(found.gpu_candidates)


def price_cards(root: Tag) -> list[Card]:
    """Every card of a page or section, in page order."""
    cards: dict[int, Card] = {}
    for smallest in _priced(root):
        element = smallest
        while element.parent is not None and element is not root and _NO_LABEL.fullmatch(_rest(element)):
            element = element.parent
        cards.setdefault(id(element), Card(_rest(element), tuple(_prices(element)), element))
    return list(cards.values())


def gpu_cards(rows: RowBuilder, document: Document, root: Tag, under: str = "") -> list[Card]:
    """The cards that name an accelerator, or stand under a heading or column names that match `under`.

    A sentence with a price in it that no other card is built like is a banner, not a line of a price list: rejected.

    Raises:
        LayoutChanged: there is none.
    """
    found = [
        card
        for card in price_cards(root)
        if card.is_gpu or (under and re.search(under, f"{card.heading} {card.columns}", re.IGNORECASE))
    ]
    listed = [c for c in found if not c.is_sentence or any(c.is_like(other) for other in found if other is not c)]
    for card in found:
        if card not in listed:
            rows.reject("not_in_a_list", "price", ", ".join(card.prices), sample=card.label)
    if not listed:
        changed(document, "card with a GPU and a price", f"none in {document.url}")
    return listed


def stated_terms(text: str, fallback: str = "") -> Terms | None:
    """Unit and scope of a price text, or those that a heading states; None where neither does."""
    return terms_in(text) or terms_in(fallback)


def _prices(element: Tag) -> list[str]:
    return [found.group().strip() for found in PRICE.finditer(text_of(element))]


def _rest(element: Tag) -> str:
    return " ".join(PRICE.sub(" ", text_of(element)).split())


def _priced(root: Tag) -> list[Tag]:
    """The smallest elements that hold a price, in page order."""
    found: dict[int, Tag] = {}
    for sign in root.find_all(string=_SIGN):
        element = sign.parent
        if element is None or any(above.name in _HIDDEN for above in sign.parents):
            continue
        for _ in range(_SPLIT_DEPTH):
            if PRICE.search(text_of(element)) or element is root or element.parent is None:
                break
            element = element.parent
        if PRICE.search(text_of(element)):
            found[id(element)] = element
    around = {id(above) for element in found.values() for above in element.parents}
    return [element for key, element in found.items() if key not in around]
