"""CoreWeave: the two region tables of GPU nodes on the public price page.

Documentation: https://www.coreweave.com/pricing
Source shape: a Webflow list. Each `.table-v2` has a header row of `.table-header-text` cells and one `.table-grid` per
product. Columns by header: GPU Model, GPU Count, VRAM (GB, per GPU), vCPUs, System RAM (GB), Local Storage (TB),
On-Demand and Spot Price (USD per node-hour), Inference Single GPU Price (USD per GPU-hour).

Traps: the rows' own class names differ by product (another reader's selector loses the H100), so they are not used;
"4^1" is a count with a footnote mark; each row holds a second block for narrow screens with the same prices under other
labels; the region stands above the table; a table of processor nodes has the same markup; "N/A" means not sold as spot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bs4 import BeautifulSoup, Tag

from catalog.types import Document, PriceScope, PurchaseOption
from catalog.units import unit_in
from collectors.cards import price_cards
from collectors.contract import Expect
from collectors.meters import STORAGE, add_free_egress, add_meters
from collectors.pages import (
    Terms,
    add_cell,
    gpu_memory_gb_in,
    memory_gib_in,
    slug,
    storage_gb_in,
    whole_number_in,
)
from collectors.price_page import PricePage
from collectors.readers import changed, text_of
from collectors.rows import GpuRead, RowBuilder

PAGE = "https://www.coreweave.com/pricing"
_REGION = re.compile(r"region\s*:\s*(.+)", re.IGNORECASE)
_NEEDED = ("gpu model", "gpu count", "on-demand price", "spot price")


class CoreWeave(PricePage):
    """CoreWeave: bare-metal GPU nodes on demand and spot, and single GPUs for inference, in USD."""

    provider = "coreweave"
    title = "CoreWeave"
    home_page = page = PAGE
    sources = (PAGE,)
    rows_at = ".table-grid .table-model-name"
    extra_hosts = ("coreweave.com",)
    terms_note = "On-demand prices; committed use up to 60 % less is sold through sales."
    expect = Expect(min_rows=10, gpus=frozenset({"h100-sxm-80gb", "b200-sxm-180gb", "gb200-186gb"}))

    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """Up to three offers per row: on demand, spot, and one GPU for inference."""
        tables = [(t, h) for t in soup.select(".table-v2") if "gpu model" in " ".join(h := _headers(t))]
        if not tables:
            changed(document, ".table-v2 .table-header-text 'GPU Model'")
        for table, headers in tables:
            for name in _NEEDED:
                if not any(h.startswith(name) for h in headers):
                    changed(document, f".table-header-text {name!r}", f"headers are {', '.join(headers)}")
            for cells in _grid(document, table, headers):
                _add_row(rows, document, _region(table), cells)
        lines = [(c.label, c.prices[0]) for c in price_cards(soup) if not c.is_gpu]
        add_meters(rows, document, lines, kinds=STORAGE)
        add_free_egress(rows, document, text_of(soup.body))


def _headers(table: Tag) -> list[str]:
    return [text_of(h).casefold() for h in table.select(".table-v2-header .table-header-text")]


def _region(table: Tag) -> str:
    """The text above the table: "REGION: NORTH AMERICA"; '' without one."""
    above = table.find_previous(string=_REGION)
    found = _REGION.search(str(above)) if above else None
    return found.group(1).strip().title() if found else ""


def _grid(document: Document, table: Tag, headers: Sequence[str]) -> Iterator[dict[str, str]]:
    """Cells by header. The block for narrow screens is not a `.table-v2-cell`."""
    for grid in table.select(".w-dyn-item .table-grid"):
        cells = grid.find_all(class_="table-v2-cell", recursive=False)
        if len(cells) != len(headers):
            changed(document, ".table-grid > .table-v2-cell", f"{len(cells)} cells under {len(headers)} headers")
        yield dict(zip(headers, (text_of(c) for c in cells), strict=True))


def _add_row(rows: RowBuilder, document: Document, region: str, cells: Mapping[str, str]) -> None:
    def cell(start: str) -> str:
        return next((text for header, text in cells.items() if header.startswith(start)), "")

    def terms(start: str, scope: PriceScope) -> Terms:
        header = next((header for header in cells if header.startswith(start)), start)
        unit = unit_in(header)
        return Terms(unit, scope, "USD") if unit else changed(document, ".table-header-text", f"{header!r} has no unit")

    name = cell("gpu model")
    count = re.match(r"\s*(\d+)", cell("gpu count"))
    if not name or not count:
        rows.reject("gpu_count", "gpu_count", cell("gpu count"), sample=" | ".join(cells.values()))
        return
    n, memory = int(count.group(1)), gpu_memory_gb_in(cell("vram"))
    storage = cell("local storage")
    where: dict[str, Any] = {"region": slug(region), "country": None}
    node: dict[str, Any] = {
        "vcpu_count": whole_number_in(cell("vcpus")),
        "memory_gib": memory_gib_in(cell("system ram")),
        "local_storage_gb": storage_gb_in(f"{storage} TB") if storage and "(tb)" in " ".join(cells) else None,
    }
    gpu = GpuRead(label=name, count=n, memory_gb=memory)
    columns: tuple[tuple[PurchaseOption, str], ...] = (("on_demand", "on-demand price"), ("spot", "spot price"))
    for option, header in columns:
        add_cell(
            rows, document, gpu, cell(header), terms(header, "instance"), sku=slug(name), instance_type=name,
            purchase_option=option, tenancy="bare_metal", **where, **node,
        )  # fmt: skip
    single = "inference single gpu"
    if not cell(single):
        return
    add_cell(
        rows, document, GpuRead(label=name, count=1, memory_gb=memory), cell(single), terms(single, "gpu"),
        sku=slug(name, "inference"), instance_type=f"{name} (inference, single GPU)", tenancy="serverless", **where,
    )  # fmt: skip
