"""Public catalogs of other projects as second sources: rows of their CSV files under `via`, for comparison with ours.

A row of theirs says less than the provider does (GPU without form factor, no billing terms), so types of clouds that
this catalog keeps tables of (AWS, Azure, Google, Oracle) get their GPU from those tables, and the rest from its label.
"""

from __future__ import annotations

import csv
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from catalog.types import Document, Tenancy
from catalog.units import decimal_of
from collectors.aws_instances import gpu_of as aws_gpu
from collectors.azure_sizes import size_facts
from collectors.contract import DAY_S, Collector
from collectors.gcp_machines import machine
from collectors.oci import gpu_of as oci_gpu
from collectors.readers import changed
from collectors.rows import GpuRead, RowBuilder

_FLAG = "second_source"
_FORM_FACTOR = re.compile(r"(?<![a-z0-9])(sxm|pcie|nvl)\d?(?![a-z0-9])", re.IGNORECASE)
_BARE_METAL = re.compile(r"^BM\.|\.metal(?:-|$)")


class SecondSource(Collector):
    """Base of the family: read at night, no provider of its own, every offer marked as another project's word."""

    kind = "bulk"
    cadence_s: ClassVar[int] = DAY_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    on_demand: ClassVar[bool] = False
    counted: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]]
    gpu_column: ClassVar[str]
    """The column by which a row shows that it sells GPUs, for the error where no row does."""

    def add_file(self, rows: RowBuilder, document: Document, lines: Iterable[str]) -> None:
        """Add the offers of one CSV file, of whose lines each ends with its line end.

        Raises:
            LayoutChanged: a column is missing, or no row gave an offer.
        """
        before = rows.row_count
        for row in csv_rows(rows, document, lines, *self.columns):
            self.add_row(rows, document, row)
        if rows.row_count == before:
            changed(document, f"CSV {self.gpu_column}", f"no priced GPU type in {document.url}")

    @abstractmethod
    def add_row(self, rows: RowBuilder, document: Document, row: Mapping[str, str]) -> None:
        """Add the offers of one row, if it sells GPUs."""

    def add_offer(
        self,
        rows: RowBuilder,
        document: Document,
        gpu: GpuRead,
        instance_type: str,
        price: str,
        *,
        spot: bool,
        **offer_fields: Any,
    ) -> None:
        """Add one offer of a type (USD per instance-hour); `offer_fields` name its `provider` and its place."""
        bought: dict[str, Any] = {"purchase_option": "spot", "quote_kind": "market"} if spot else {}
        rows.offer(
            document, gpu, sku=instance_type, instance_type=instance_type, price=price, flags=[_FLAG],
            via=self.provider, tenancy=_tenancy(instance_type), **bought, **offer_fields,
        )  # fmt: skip


def csv_rows(rows: RowBuilder, document: Document, lines: Iterable[str], *columns: str) -> Iterator[Mapping[str, str]]:
    """The rows of a CSV file by its header; a line with too many or too few cells is rejected.

    So is a last line without a line end whose last cell is a number: a cut "36.72" reads as 36.7 and nothing shows it.

    Raises:
        LayoutChanged: a column is missing, or there is no row.
    """
    last = ""

    def watched() -> Iterator[str]:
        nonlocal last
        for line in lines:
            last = line
            yield line

    reader = csv.DictReader(watched())
    missing = [c for c in columns if c not in (reader.fieldnames or ())]
    if missing:
        changed(document, f"CSV column {missing[0]}", f"not in the header of {document.url}")
    count = 0
    for row in reader:
        count += 1
        if None in row or None in row.values() or _may_be_cut(last):
            rows.reject("row_unreadable", "CSV line", reader.line_num, sample=list(row.values())[:3])
        else:
            yield row
    if not count:
        changed(document, "CSV rows", f"none in {document.url}")


def _may_be_cut(line: str) -> bool:
    return not line.endswith(("\n", "\r")) and decimal_of(line.rpartition(",")[2]) is not None


def gpu_read(provider: str, instance_type: str, label: str, count: str, *, hint: str = "", memory: str = "") -> GpuRead:
    """The GPUs of a row: from this catalog's own table of the type where there is one, else from the label.

    Args:
        provider: this catalog's slug.
        instance_type: as the provider names it.
        label: the second source's GPU name.
        count: its number of GPUs; a share such as 0.125 is a slice of one GPU.
        hint: a longer GPU name that may state the form factor, as may the type.
        memory: memory per GPU in GB as text, or ''.
    """
    table = _TABLES.get(provider)
    known = table(instance_type) if table else None
    if known is not None:
        return known
    number = decimal_of(count) or Decimal(0)
    share = number if 0 < number < 1 else None
    stated = _FORM_FACTOR.search(f"{hint} {instance_type}")
    return GpuRead(
        label=label,
        count=1 if share else int(number),
        fraction=share,
        memory_gb=float(memory) if decimal_of(memory) else None,
        form_factor=stated.group(1).casefold() if stated else None,
    )


def _tenancy(instance_type: str) -> Tenancy:
    """Bare metal where the type's name says so ("BM.GPU.H100.8", "g4dn.metal")."""
    return "bare_metal" if _BARE_METAL.search(instance_type) else "vm"


def positive(text: str) -> float | None:
    """The number a cell writes, or None where it is empty, zero or no number."""
    number = decimal_of(text)
    return float(number) if number is not None and number > 0 else None


def _azure(instance_type: str) -> GpuRead | None:
    facts = size_facts(instance_type)
    return facts.gpu if facts else None


def _gcp(instance_type: str) -> GpuRead | None:
    shape = machine(instance_type)
    return shape.gpu if shape else None


_TABLES: Mapping[str, Callable[[str], GpuRead | None]] = {
    "aws": aws_gpu, "azure": _azure, "gcp": _gcp, "oci": oci_gpu,
}  # fmt: skip
