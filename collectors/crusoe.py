"""Crusoe Cloud: the GPU instance cards of the public price page.

Documentation: https://crusoe.ai/cloud/pricing (prices), https://docs.crusoecloud.com/compute/virtual-machines/overview
(instance types such as h100-80gb-sxm-ib.8x)
Source shape: a Webflow list under the heading "GPU instances pricing": a heading row (GPU model, On-demand, Current
spot), then one `.pricing_gpu-item` per product with `.pricing-item-heading`, `.pricing-tag` (memory, form factor) and
one `.pricing-rich` per price column, "$4.29/GPU-hr" (USD per GPU-hour).

Traps: another reader took the second column for reserved prices while its heading says Current spot; the same chip
names come back in the managed inference section, which is another product; "Contact sales" is no price.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bs4 import BeautifulSoup, Tag

from catalog.types import Document
from catalog.units import read_price
from collectors.cards import price_cards
from collectors.contract import Expect
from collectors.meters import STORAGE, add_meters
from collectors.pages import Terms, add_sizes, gpu_memory_gb_in, option_in
from collectors.price_page import PricePage
from collectors.readers import changed, text_of
from collectors.rows import RowBuilder

PAGE = "https://crusoe.ai/cloud/pricing"


class Crusoe(PricePage):
    """Crusoe: on-demand and spot GPU instances in USD."""

    provider = "crusoe"
    title = "Crusoe Cloud"
    home_page = page = PAGE
    sources = (PAGE, "https://www.crusoe.ai/cloud/pricing")
    terms_note = "Only running instances are billed, unless under a commitment."
    expect = Expect(min_rows=6, gpus=frozenset({"h100-sxm-80gb", "h200-sxm-141gb", "mi300x-192gb"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """One offer per product, price column and documented size."""
        section = _section(document, soup)
        headings = [text_of(h) for h in section.select(".pricing-heading")]
        options = [option_in(h) for h in headings[1:]]
        if not options or None in options:
            changed(document, ".pricing-heading", f"columns are {', '.join(headings) or 'missing'}")
        items = section.select(".pricing_gpu-item")
        if not items:
            changed(document, ".pricing_gpu-item", f"no products in {document.url}")
        if not section.select(".pricing_gpu-item .pricing-tag"):
            changed(document, ".pricing_gpu-item .pricing-tag", "no product states its memory or form factor")
        for item in items:
            _add_item(rows, document, item, options)
        lines = [(c.label, c.prices[0]) for c in price_cards(soup) if not c.is_gpu]
        add_meters(rows, document, lines, kinds=STORAGE)


def _section(document: Document, soup: Tag) -> Tag:
    """The block under the heading "GPU instances pricing"."""
    headings = soup.find_all(re.compile(r"^h[1-6]$"))
    heading = next((h for h in headings if re.search(r"GPU instances", text_of(h), re.IGNORECASE)), None)
    block = heading and (heading.find_parent(class_="pricing-dd") or heading.parent)
    return block if isinstance(block, Tag) else changed(document, "h3 'GPU instances pricing'")


def _add_item(rows: RowBuilder, document: Document, item: Tag, options: Sequence[str | None]) -> None:
    name = text_of(item.select_one(".pricing-item-heading"))
    tags = [text for tag in item.select(".pricing-tag") if (text := text_of(tag))]
    prices = [text_of(p) for p in item.select(".pricing-rich")]
    if not name or len(prices) != len(options):
        changed(document, ".pricing_gpu-item .pricing-rich", f"{name!r} has {len(prices)} prices, not {len(options)}")
    label = " ".join([name, *tags])
    memory = next((gb for tag in tags if re.search(r"\d\s*GB", tag) and (gb := gpu_memory_gb_in(tag))), None)
    for option, price in zip(options, prices, strict=True):
        stated = read_price(price)
        if stated and stated.unit is None:  # "$4.29/GPU-hr": a price that says no unit is not known to be per hour
            rows.reject("unit_missing", ".pricing-rich", price, sample=label)
            continue
        add_sizes(
            rows, document, label, price, Terms("hour", "gpu", "USD"), provider="crusoe", memory_gb=memory,
            purchase_option=option,
        )  # fmt: skip
