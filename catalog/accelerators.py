"""Published facts of accelerators: memory, bandwidth, dense compute, links.

The table is `data/accelerators.csv`, one product a row under its slug, each with the source of its figures.
Memory that a program can really use (`memory_gib_usable`, GiB) is what the driver reports where that is published
(nvidia-smi, rocm-smi; for A100, 24 GB GeForce and RTX 5090 what CUDA programs print, about 0.5 GiB less).
Elsewhere it is an estimate from the label, marked by `memory_gib_usable_estimated`:

* HBM, and cards that ship with ECC off (workstation, consumer): 0.98 of the label; measured cards lie between 0.981
  (24 GB GeForce) and 0.996 (H100, H200, B200, RTX PRO 6000).
* NVIDIA data-centre cards with GDDR keep ECC bits in the memory itself, one part in sixteen: 0.93 of the label
  (T4 15360 MiB of 16 GB, L40S 46068 MiB of 48 GB).
* LPDDR shared with the host: 0.93 of the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import cast

from catalog.datafiles import csv_rows
from catalog.errors import UnknownName
from catalog.types import Accelerator, FormFactor


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Every known accelerator by slug, in the table's order. Read once."""
    return MappingProxyType({row["gpu"]: _accelerator(row) for row in csv_rows("catalog", "accelerators.csv")})


def accelerator(gpu: str) -> Accelerator:
    """The facts of one slug, such as `h100-sxm-80gb`.

    Raises:
        UnknownName: `gpu` is not a slug of the table. Labels and families go through `catalog.names`.
    """
    table = accelerators()
    if gpu not in table:
        raise UnknownName("GPU", gpu, table)
    return table[gpu]


@cache
def families() -> Mapping[str, tuple[str, ...]]:
    """Slugs by family: `h100` -> PCIe, SXM and NVL. A family is a name that leaves form factor or memory open."""
    members: dict[str, list[str]] = {}
    for gpu, facts in accelerators().items():
        members.setdefault(facts.family, []).append(gpu)
    return MappingProxyType({family: tuple(gpus) for family, gpus in members.items()})


def _accelerator(row: Mapping[str, str]) -> Accelerator:
    return Accelerator(
        gpu=row["gpu"],
        vendor=row["vendor"],
        model=row["model"],
        family=row["family"],
        segment=row["segment"],
        architecture=row["architecture"],
        form_factor=cast("FormFactor", row["form_factor"]),
        memory_gb=float(row["memory_gb"]),
        memory_gib_usable=float(row["memory_gib_usable"]),
        memory_gib_usable_estimated=row["memory_gib_usable_estimated"] == "true",
        memory_type=row["memory_type"],
        memory_bandwidth_gb_s=_number(row["memory_bandwidth_gb_s"]),
        fp32_tflops=_number(row["fp32_tflops"]),
        tf32_tflops=_number(row["tf32_tflops"]),
        fp16_tflops=_number(row["fp16_tflops"]),
        bf16_tflops=_number(row["bf16_tflops"]),
        fp8_tflops=_number(row["fp8_tflops"]),
        int8_tflops=_number(row["int8_tflops"]),
        fp4_tflops=_number(row["fp4_tflops"]),
        compute_capability=row["compute_capability"],
        link=row["link"],
        link_gb_s_bidirectional=_number(row["link_gb_s_bidirectional"]),
        pcie_generation=_number(row["pcie_generation"]),
        tdp_w=_number(row["tdp_w"]),
        release_year=int(row["release_year"]) if row["release_year"] else None,
        source_url=row["source_url"],
        verification=row["verification"],
        note=row["note"],
    )


def _number(cell: str) -> float | None:
    """A cell's number; an empty cell means not supported or not published."""
    return float(cell) if cell else None
