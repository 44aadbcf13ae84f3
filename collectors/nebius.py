"""Nebius AI Cloud: the price tables of the public price page.

Documentation: https://nebius.com/prices (prices), https://docs.nebius.com/compute/virtual-machines/types (sizes)
Source shape: the page streams backslash-escaped JSON in scripts (`self.__next_f.push`); each table is a block
{"type": "highlight-table-block", "title", "table": {"content": [[header…], [cell…]…]}}. Fields: Item, vCPUs and
"RAM, GB" (the HOST's share per GPU, never GPU memory), and one column per purchase option, "… GPU-hour" in USD.

Traps: another reader took the first price column for committed prices while its header says Preemptible, so the header
row decides the option, the unit and the scope; "from $0.74" is a lower bound; "Contact us", "coming soon" and dashes
are no prices; some rows name several chips. Prices are per GPU; the sizes sold (1 and 8) come from the documentation.
Of several block volumes the one without replication is the storage surcharge; prices per GiB become prices per GB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from catalog.names import resolve
from catalog.types import Document, PurchaseOption, SurchargeKind
from collectors.contract import DAY_S, HOUR_S, Collector, Expect, Parsed, Request
from collectors.meters import per_gb, price_or_free
from collectors.pages import (
    Terms,
    add_cell,
    commitment_days_in,
    memory_gib_in,
    option_in,
    slug,
    terms_in,
    whole_number_in,
)
from collectors.readers import changed, flight_text, json_after, read_html
from collectors.rows import GpuRead, RowBuilder
from collectors.shapes import shape_of

PAGE = "https://nebius.com/prices"
_BLOCK = re.compile(r'"type"\s*:\s*"highlight-table-block"')
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SURCHARGES: tuple[tuple[str, tuple[SurchargeKind, ...]], ...] = (
    (r"block volumes? without", ("block_storage",)),
    (r"object storage\b.*standard.*\(volume\)", ("object_storage",)),
    (r"networking:.*egress", ("egress",)),
    (r"networking:.*ingress", ("ingress",)),
    (r"public ip", ("public_ipv4",)),
)
Rows = list[list[str]]


class Nebius(Collector):
    """Nebius: on-demand and preemptible GPUs in USD."""

    provider = "nebius"
    title = "Nebius"
    home_page = PAGE
    sources = (PAGE,)
    kind = "page"
    cadence_s: ClassVar[int] = 6 * HOUR_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    billing_increment_s = 1
    terms_note = "Prices before tax. A stopped VM is free, its disks are billed."
    expect = Expect(min_rows=8, gpus=frozenset({"h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The price page."""
        del keys
        yield Request(PAGE, name="prices")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per row, option and size; storage, traffic and addresses as surcharges."""
        rows = RowBuilder(self)
        for document in documents:
            blocks = list(_blocks(document))
            priced = [content for content in blocks if _options(content[0])]
            if not priced:
                changed(document, "table.content[0]", "no table has a header with an option and GPU-hour")
            for content in priced:
                _add_gpus(rows, document, content)
            for content in blocks:
                _add_surcharges(rows, document, content)
        if not rows.row_count:
            changed(documents[0], "table.content[1:]", f"no GPU rows in {PAGE}")
        return rows.finish()


def _blocks(document: Document) -> Iterator[Rows]:
    """The content of every table block, header row first."""
    text = flight_text(read_html(document))
    found = False
    for mark in _BLOCK.finditer(text):
        block = _enclosing(text, mark.start())
        content = (block.get("table") or {}).get("content")
        if isinstance(content, list) and content and all(isinstance(line, list) for line in content):
            found = True
            yield [[_LINK.sub(r"\1", str(cell)) for cell in line] for line in content]
    if not found:
        changed(document, "highlight-table-block", f"no table block in the scripts of {document.url}")


def _enclosing(text: str, at: int) -> Mapping[str, Any]:
    """The table block whose `type` stands at `at`: keys may come in any order, so inner objects are stepped over."""
    start = text.rfind("{", 0, at)
    while start >= 0:
        found = json_after(text, start)
        if isinstance(found, dict) and found.get("type") == "highlight-table-block":
            return found
        start = text.rfind("{", 0, start)
    return {}


def _options(header: Sequence[str]) -> dict[int, tuple[PurchaseOption, int, Terms]]:
    """Price columns by index: the option, its days and the terms that the header pins. Only prices per GPU count."""
    found: dict[int, tuple[PurchaseOption, int, Terms]] = {}
    for index, title in enumerate(header):
        option, terms = option_in(title), terms_in(title, "USD")
        if option and terms and terms.scope == "gpu":
            days = commitment_days_in(title) or 0 if option == "reserved" else 0
            found[index] = (option, days, terms)
    return found


def _add_gpus(rows: RowBuilder, document: Document, content: Rows) -> None:
    header, *body = content
    options = _options(header)
    named = [(option, days) for option, days, _ in options.values()]
    if len(set(named)) < len(named):
        changed(document, "table.content[0]", f"two price columns of one option: {', '.join(header)}")
    column = {title.split(",")[0].strip().casefold(): i for i, title in enumerate(header)}
    if "item" not in column:
        changed(document, "table.content[0] 'Item'", f"header is {', '.join(header)}")
    for line in body:
        cells: dict[str, Any] = {name: line[i] for name, i in column.items() if i < len(line)}
        label = re.sub(r"\s+with\s+.*CPU.*$", "", cells["item"], flags=re.IGNORECASE)
        if " / " in label:
            rows.reject("several_gpus", "item", cells["item"], sample=" | ".join(line))
            continue
        for index, (option, days, terms) in options.items():
            if index < len(line):
                _add_sizes(rows, document, cells, label, line[index], option, days, terms)


def _add_sizes(
    rows: RowBuilder, document: Document, cells: Mapping[str, str], label: str, price: str, option: PurchaseOption,
    days: int, terms: Terms,
) -> None:  # fmt: skip
    """One offer per size sold. NVL72 rows show the host of the whole tray, not a share."""
    shape = shape_of("nebius", resolve(label).gpu)
    tray = "NVL72" in label
    vcpus, ram = whole_number_in(cells.get("vcpus", "")), memory_gib_in(cells.get("ram", ""))
    for count in shape.gpu_counts:
        add_cell(
            rows, document, GpuRead(label=label, gpu=shape.product, count=count), price, terms, purchase_option=option,
            commitment_days=days, sku=slug(cells["item"], f"x{count}"), instance_type=f"{cells['item']} x{count}",
            vcpu_count=None if tray or vcpus is None else vcpus * count,
            memory_gib=None if tray or ram is None else ram * count,
            gpu_interconnect=shape.wiring(count),
        )  # fmt: skip


def _add_surcharges(rows: RowBuilder, document: Document, content: Rows) -> None:
    header = [title.strip().casefold() for title in content[0]]
    if "item" not in header or "price" not in header:
        return
    for line in content[1:]:
        cells = dict(zip(header, line, strict=False))
        for pattern, kinds in _SURCHARGES:
            if not re.search(pattern, cells["item"], re.IGNORECASE):
                continue
            amount = price_or_free(cells["price"])
            if amount is None:
                rows.reject("not_a_price", "surcharge", cells["price"], sample=cells["item"])
                continue
            monthly = "month" in cells.get("unit", "") or "storage" in kinds[0]
            unit = "month" if kinds[0] == "public_ipv4" else "gb_month" if monthly else "gb"
            for kind in kinds:
                rows.surcharge(
                    document, kind, per_gb(amount) if "gib" in cells.get("unit", "").casefold() else amount, unit
                )
