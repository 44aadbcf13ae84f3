"""Price pages of serverless GPU platforms: lines of a GPU and a price per second or minute, meters beside them.

A provider of this family declares its page and what differs; see modal.py. The unit stands in the price or, on some
pages, only in a heading or table header near it; a price without a unit anywhere is refused, never guessed.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from bs4 import BeautifulSoup, Tag

from catalog.names import resolve
from catalog.types import Document, PriceScope, PriceUnit, SurchargeKind, Tenancy
from catalog.units import read_price, unit_in
from collectors.cards import Card, gpu_cards, price_cards
from collectors.meters import METERS, add_free_egress, add_meters
from collectors.pages import Terms, add_sizes, memory_gib_in, per_gpu_memory_gb, possible_gpus, whole_number_in
from collectors.price_page import PricePage
from collectors.readers import text_of
from collectors.rows import RowBuilder

_SPECS = re.compile(
    r"\s+[|·,(\-–]?\s*(?:VRAM\b|\d+(?:\.\d+)?\s*(?:Gi?B\s*(?:of\s+)?(?:VRAM|RAM|GPU memory)|v?CPUs?|cores?)\b)",
    re.IGNORECASE,
)
_VRAM = re.compile(
    r"(\d+(?:\.\d+)?)\s*(?:GiB|GB)\s*(?:of\s+)?(?:VRAM|GPU memory)|VRAM:?\s*(\d+(?:\.\d+)?)\s*Gi?B", re.IGNORECASE
)
_ARCHITECTURE = re.compile(r"\s+(?:Volta|Turing|Ampere|Ada Lovelace|Hopper)\b", re.IGNORECASE)
_VCPU = re.compile(r"([\d.]+)\s*v?CPUs?\b", re.IGNORECASE)
_RAM = re.compile(r"([\d.]+\s*Gi?B)\s*RAM", re.IGNORECASE)
_NOT_A_GPU = re.compile(
    r"\b(?:cores?|volumes?|storage|tokens?|egress|bandwidth)\b|^\s*(?:memory|ram|v?cpu)\b", re.IGNORECASE
)


class ServerlessPage(PricePage):
    """Base of the family. `page` is the price page; `scope` what a price pays for."""

    rows_at: ClassVar[str] = "a GPU with a price per unit of time"
    billing_increment_s: ClassVar[int | None] = 1
    units: ClassVar[frozenset[str]] = frozenset({"second", "minute", "hour"})
    scope: ClassVar[PriceScope] = "gpu"
    tenancy: ClassVar[Tenancy] = "serverless"
    meters: ClassVar[frozenset[SurchargeKind]] = METERS
    """Kinds billed beside the GPU; STORAGE where processor and memory come with it."""
    page_unit: ClassVar[PriceUnit | None] = None
    """The documented unit of pages that print prices bare; taken only while the page itself still names that unit."""
    dedicated_heading: ClassVar[str] = ""
    """Pattern of headings whose cards are dedicated machines, billed per hour, not serverless."""

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per GPU and documented size; processor, memory and storage meters as surcharges."""
        for card in gpu_cards(rows, document, soup, under=r"\bGPUs?\b"):
            specs = _specs(card.label)
            gpus = possible_gpus(specs["name"], specs["vram"], resolve(specs["name"]).gpu_count or 1)
            if not _NOT_A_GPU.search(card.label) and rows.covered.isdisjoint(gpus):
                self.add(rows, document, card)
        add_meters(rows, document, [(c.label, c.prices[0]) for c in price_cards(soup) if not c.is_gpu], self.meters)
        add_free_egress(rows, document, text_of(soup.body))

    def add(self, rows: RowBuilder, document: Document, card: Card) -> None:
        """The offers of one card."""
        text, unit = _price_with_unit(card, self.units)
        if unit is None and self.page_unit and len(card.prices) == 1 and _names_unit(card.node, self.page_unit):
            unit = self.page_unit
        if unit is None or read_price(text) is None:
            rows.reject("unit_missing", "price", text, sample=card.label)
            return
        dedicated = bool(self.dedicated_heading and re.search(self.dedicated_heading, card.heading, re.IGNORECASE))
        specs = _specs(card.label)
        extra: dict[str, Any] = (
            {"tenancy": "vm", "billing_increment_s": 3600} if dedicated else {"tenancy": self.tenancy}
        )
        add_sizes(
            rows, document, specs.pop("name"), text, Terms(unit, self.scope), provider=self.provider,
            memory_gb=specs.pop("vram"), per_gpu=specs, **extra,
        )  # fmt: skip


def _price_with_unit(card: Card, units: frozenset[str]) -> tuple[str, Any]:
    """The card's price in the finest unit it states, or its only price with the unit stated near it."""
    for unit in ("second", "minute", "hour"):
        if unit in units and (text := card.price_per(unit)):
            return text, unit
    node: Tag | None = card.node
    for _ in range(6):
        node = node.parent if node is not None else None
        if node is None or len(card.prices) > 1:
            break
        found = [u for u in re.findall(r"(?:/|per)\s*([a-z]+)", _own_words(node), re.IGNORECASE) if unit_in(f"/{u}")]
        if found:
            return card.prices[0], unit_in(f"/{found[0]}")
    return card.prices[0], None


def _names_unit(node: Tag, unit: PriceUnit) -> bool:
    """Whether the page that a card stands on names a unit of time anywhere."""
    *_, root = [node, *node.parents]
    words = re.findall(r"(?:/|\bper)[\s\-]*([a-z]+)|\b(hourly)\b", text_of(root), re.IGNORECASE)
    return any(unit_in(f"/{a or b}") == unit for a, b in words)


def _own_words(node: Tag) -> str:
    """Headings and table headers inside an element."""
    return " ".join(
        text_of(part) for part in node.find_all(["h2", "h3", "h4", "h5", "th", "thead", "caption", "label"])
    )


def _specs(label: str) -> dict[str, Any]:
    vram, vcpu, ram = _VRAM.search(label), _VCPU.search(label), _RAM.search(label)
    count = resolve(label).gpu_count or 1
    name = _SPECS.split(label)[0].strip(" -–|·,(") or label
    name = _ARCHITECTURE.sub("", name)
    memory = per_gpu_memory_gb(name, float(vram.group(1) or vram.group(2)) if vram else None, count)
    if memory and re.search(r"\bMIG|MIG\b", name):
        name = f"{name} {memory:g}GB"  # the memory says which slice it is
    return {
        "name": name,
        "vram": memory,
        "vcpu_count": _share(whole_number_in(vcpu.group(1)) if vcpu else None, count),
        "memory_gib": _share(memory_gib_in(ram.group(1)) if ram else None, count),
    }


def _share(total: float | None, count: int) -> float | None:
    """The part of the host that one GPU of the card's instance stands for."""
    return None if total is None else total / count
