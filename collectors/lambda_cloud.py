"""Lambda Cloud: the public price page, and with a key the API's list of instance types with their stock.

Documentation: https://docs.lambda.ai/public-cloud/cloud-api/ (GET /api/v1/instance-types), https://lambda.ai/pricing
Page fields: `tr[data-plan]` with `td[data-label]`: VRAM/GPU (GB per GPU), vCPUs, RAM and STORAGE (of the instance),
PRICE/GPU/HR (USD per GPU-hour before tax), DURATION and GPU COUNT of the cluster tables. The number of GPUs of an
instance stands only in the tab ("8x") that the panel names by aria-labelledby.
API fields: `data.<name>.instance_type` {name, description, gpu_description, price_cents_per_hour (cents of the whole
instance), specs {vcpus, memory_gib, storage_gib, gpus}}, `regions_with_capacity_available[].name`.

Traps: the 1-Click Cluster tables come first and share the row markup; every table stands a second time inside island
scripts; a dash is no price; class names change with each build; CPU types (specs.gpus 0) are mixed into the API list.
An empty list of regions means no capacity now, not withdrawn. Where the page and the API show the same instance, the
API's row is kept, because it is what is charged and carries the stock; a differing page price is flagged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from bs4 import Tag

from catalog.names import resolve
from catalog.types import Document
from catalog.units import decimal_of, read_price
from collectors.contract import DAY_S, HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.listing import positive, whole_number
from collectors.meters import add_free_egress
from collectors.pages import (
    Terms,
    add_cell,
    cell_state,
    commitment_days_in,
    gpu_memory_gb_in,
    memory_gib_in,
    slug,
    storage_gb_in,
    whole_number_in,
)
from collectors.readers import (
    changed,
    need,
    need_somewhere,
    present_somewhere,
    read_html,
    read_json,
    tab_count,
    text_of,
)
from collectors.rows import GpuRead, RowBuilder

PAGE = "https://lambda.ai/pricing"
API = "https://cloud.lambda.ai/api/v1/instance-types"
KEY = "LAMBDA_API_KEY"
_PRICE = "price/gpu/hr"
_CLUSTER_INCREMENT_S = 7 * DAY_S
"""https://docs.lambda.ai/public-cloud/billing: 1-Click Clusters are billed in weekly steps."""
_TERMS = Terms(unit="hour", scope="gpu", currency="USD")


@dataclass(frozen=True, slots=True)
class _Listed:
    """One row of an instance table: cells by their data-label in lower case, and the tab's number of GPUs."""

    document: Document
    plan: str
    count: int
    cells: Mapping[str, str]

    @property
    def memory_gb(self) -> float | None:
        return gpu_memory_gb_in(self.cells.get("vram/gpu", ""))

    @property
    def key(self) -> tuple[str | None, int]:
        return resolve(self.plan, memory_gb=self.memory_gb).gpu, self.count


class LambdaCloud(Collector):
    """Lambda: on-demand instances and reserved 1-Click Clusters in USD."""

    provider = "lambda_cloud"
    title = "Lambda"
    home_page = "https://lambda.ai/pricing"
    sources = (PAGE, API)
    kind = "page"
    cadence_s: ClassVar[int] = 6 * HOUR_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    billing_increment_s = MINUTE_S
    terms_note = (
        "Prices before tax; no egress fees. The cloud terms bar access to monitor for benchmarking or competitive "
        "purposes, and automated reading must not disrupt the service."
    )
    optional_key_env = (KEY,)
    expect = Expect(min_rows=10, gpus=frozenset({"b200-sxm-180gb", "h100-sxm-80gb", "a100-sxm-40gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The page, and the list of instance types where there is a key."""
        yield Request(PAGE, name="pricing")
        if key := keys.get(KEY):
            yield Request(API, headers={"Authorization": f"Bearer {key}"}, name="instance-types")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """API rows per region with capacity, then the page's rows that the API does not cover."""
        rows = RowBuilder(self)
        listed: list[_Listed] = []
        clusters: list[tuple[Document, Tag]] = []
        for document in documents:
            if not _is_api(document):
                instances, tables = _read_page(rows, document)
                listed += instances
                clusters += [(document, table) for table in tables]
        by_api: set[tuple[str | None, int]] = set()
        for document in documents:
            if _is_api(document):
                by_api |= _api_rows(rows, document, listed)
        for row in listed:
            if row.key not in by_api:
                _add_instance(rows, row)
        for document, table in clusters:
            _add_cluster_rows(rows, document, table)
        return rows.finish()


def _is_api(document: Document) -> bool:
    return "/instance-types" in document.url


def _read_page(rows: RowBuilder, document: Document) -> tuple[list[_Listed], list[Tag]]:
    """The rows of the instance tables, and the cluster tables."""
    soup = read_html(document)
    listed: list[_Listed] = []
    clusters: list[Tag] = []
    for table in soup.find_all("table"):
        labels = {_label(cell) for cell in table.select("tr[data-plan] [data-label]")}
        if "gpu count" in labels:
            clusters.append(table)
        elif "vram/gpu" in labels:
            if _PRICE not in labels:
                changed(document, "td[data-label='PRICE/GPU/HR']")
            count = tab_count(soup, table)
            if count is None:
                changed(document, "[role=tabpanel][aria-labelledby]", "a table of instances names no number of GPUs")
            listed += [
                _Listed(document, str(tr["data-plan"]), count, _cells(tr)) for tr in table.select("tr[data-plan]")
            ]
    if not listed:
        changed(document, "tr[data-plan] td[data-label='VRAM/GPU']", f"no instance rows in {document.url}")
    add_free_egress(rows, document, text_of(soup.body))
    return listed, clusters


def _label(cell: Tag) -> str:
    return str(cell["data-label"]).strip(" *").casefold()


def _cells(tr: Tag) -> dict[str, str]:
    return {_label(cell): text_of(cell) for cell in tr.select("[data-label]")}


def _add_instance(rows: RowBuilder, row: _Listed) -> None:
    cells = row.cells
    sku = slug(f"{row.count}x", row.plan, cells.get("vram/gpu", ""))
    add_cell(
        rows, row.document, GpuRead(label=row.plan, count=row.count, memory_gb=row.memory_gb), cells.get(_PRICE, ""),
        _TERMS, sku=sku, instance_type=f"{row.count}x {row.plan} {cells.get('vram/gpu', '')}".strip(),
        vcpu_count=whole_number_in(cells.get("vcpus", "")), memory_gib=memory_gib_in(cells.get("ram", "")),
        local_storage_gb=storage_gb_in(cells.get("storage", "")),
    )  # fmt: skip


def _add_cluster_rows(rows: RowBuilder, document: Document, table: Tag) -> None:
    """1-Click Clusters: nodes joined by Quantum-2 InfiniBand, sold for weeks to years (docs.lambda.ai)."""
    for tr in table.select("tr[data-plan]"):
        cells, plan = _cells(tr), str(tr["data-plan"])
        count, days = (
            whole_number_in(cells.get("gpu count", "").rstrip("+ ")),
            commitment_days_in(cells.get("duration", "")),
        )
        if count is None or days is None or _PRICE not in cells:
            rows.reject("cluster_row", "gpu_count", " | ".join(cells.values()), sample=plan)
            continue
        name = f"1-Click Cluster {plan} x{cells['gpu count']}"
        state = cell_state(cells[_PRICE])
        add_cell(
            rows, document, GpuRead(label=plan, count=count),
            "Talk to our team" if state == "absent" else cells[_PRICE],  # the dash stands beside that button
            _TERMS, sku=slug(name), instance_type=name, purchase_option="reserved", commitment_days=days,
            network_option="infiniband", rdma=True, billing_increment_s=_CLUSTER_INCREMENT_S,
        )  # fmt: skip


def _api_rows(rows: RowBuilder, document: Document, listed: Sequence[_Listed]) -> set[tuple[str | None, int]]:
    """One row per region with capacity, or one unavailable row; returns the GPUs and counts it covered."""
    covered: set[tuple[str | None, int]] = set()
    listed_types = need(document, read_json(document), "data", kind=dict)
    types = {name: entry for name, entry in listed_types.items() if isinstance(entry, dict)}
    for name in sorted(listed_types.keys() - types.keys()):
        rows.reject("row_unreadable", f"data/{name}", listed_types[name])
    need_somewhere(
        document, list(types.values()), "instance_type/price_cents_per_hour", "instance_type/specs",
        "regions_with_capacity_available",
    )  # fmt: skip
    regions_listed = [r for t in types.values() for r in t.get("regions_with_capacity_available") or []]
    present_somewhere(document, regions_listed, "regions_with_capacity_available", "name")
    for name, entry in types.items():
        kind = entry.get("instance_type") or {}
        specs = kind.get("specs") or {}
        count = whole_number(specs.get("gpus"))
        if name.startswith("cpu_") or count == 0:
            continue
        label = str(kind.get("gpu_description") or kind.get("description") or name)
        found = resolve(label)
        if count is None:
            count = resolve(str(kind.get("description") or "")).gpu_count
        if count is None:
            rows.reject("gpu_count", "specs/gpus", specs.get("gpus"), sample=name)
            continue
        stated, disk = kind.get("price_cents_per_hour", "missing"), positive(specs.get("storage_gib"))
        cents = decimal_of(stated)
        covered.add((found.gpu, count))
        flags = _page_differs(listed, (found.gpu, count), cents)
        regions = [str(r["name"]) for r in entry.get("regions_with_capacity_available") or [] if r.get("name")]
        for region in regions or [""]:
            rows.offer(
                document, GpuRead(label=label, count=count), sku=name, instance_type=name,
                price=stated if cents is None else cents / 100, region=region, quote_kind="api_quote", flags=flags,
                availability="available" if region else "unavailable", vcpu_count=specs.get("vcpus"),
                memory_gib=specs.get("memory_gib"),
                local_storage_gb=disk * 1.024**3 if disk else None,
            )  # fmt: skip
    if not covered:
        changed(document, "data", f"no GPU instance types at {document.url}")
    return covered


def _page_differs(listed: Sequence[_Listed], key: tuple[str | None, int], cents: Decimal | None) -> tuple[str, ...]:
    """A flag where the page states another price for this GPU and count than the API charges."""
    prices = [read_price(row.cells.get(_PRICE, "")) for row in listed if row.key == key]
    totals = [p.amount * key[1] * 100 for p in prices if p]
    return ("page_price_differs",) if totals and cents is not None and cents not in totals else ()
