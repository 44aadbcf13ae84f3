"""Sizes in which a provider that prices per GPU rents them: `collectors/data/<provider>-shapes.csv`, with sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from catalog.datafiles import csv_rows
from catalog.types import GpuInterconnect


@dataclass(frozen=True, slots=True)
class Shape:
    """GPUs per instance that a provider documents for one label, how they are wired, and which product it is.

    `product` is the slug where the documentation is more exact than the label on the price list, else None;
    `network_option` is what joins whole nodes ("infiniband"), '' where the documentation names nothing.
    """

    gpu_counts: tuple[int, ...] = (1,)
    gpu_interconnect: GpuInterconnect = "unknown"
    product: str | None = None
    network_option: str = ""

    def wiring(self, gpu_count: int) -> GpuInterconnect:
        """How the GPUs of one instance are joined; one GPU has nothing to be joined to."""
        return self.gpu_interconnect if gpu_count > 1 else "none"


@cache
def shapes(provider: str) -> Mapping[str, Shape]:
    """GPU slug, family or slug of the page's label to the sizes sold; empty for a provider without a table."""
    return {
        row["gpu"]: Shape(
            tuple(int(n) for n in row["gpu_counts"].split()),
            _interconnect(row["gpu_interconnect"]),
            row["product"] or None,
            row.get("network_option") or "",
        )
        for row in csv_rows("collectors", f"{provider}-shapes.csv", optional=True)
    }


def shape_of(provider: str, *keys: str | None) -> Shape:
    """The sizes of one product by the first key that the table holds (a label's slug, a GPU); else a single GPU."""
    known = shapes(provider)
    return next((known[key] for key in keys if key and key in known), Shape())


def open_shape(provider: str, candidates: Iterable[str]) -> Shape:
    """The sizes of a label that leaves the product open: those in which every product that it may be is sold."""
    counts = [set(shapes(provider)[key].gpu_counts) for key in candidates if key in shapes(provider)]
    common = sorted(set.intersection(*counts)) if counts else []
    return Shape(tuple(common)) if common else Shape()


def _interconnect(word: str) -> GpuInterconnect:
    known: dict[str, GpuInterconnect] = {"nvlink": "nvlink", "pcie": "pcie", "infinity_fabric": "infinity_fabric"}
    return known.get(word, "unknown")
