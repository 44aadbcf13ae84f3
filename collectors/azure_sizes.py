"""What an Azure size name says: `Standard_NV12ads_A10_v5` is 12 vCPUs and a third of an A10.

Naming rule: https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions (family letters, vCPUs, feature
letters such as r = RDMA and m = more memory, accelerator, version). Retail prices carry no specifications, and the GPU
count of Microsoft's own size API has been wrong (12 for an eight-GPU box) or missing, so the count is vCPUs over the
series' vCPUs per GPU (`data/azure-series.csv`); memory and disks per size stand in `data/azure-sizes.csv`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from catalog.types import GpuInterconnect
from collectors.rows import GpuRead
from collectors.specs import number, spec_rows

_NAME = re.compile(r"Standard_(N[A-Z]{1,2})(\d+)([A-Za-z0-9]*)(?:_(\w+?))??(?:_v(\d+))?(?:_Promo)?", re.IGNORECASE)
# Field-programmable gate arrays and video encoders; they share the letter N with the GPU families.
_NOT_GPU = re.compile(r"Standard_N[PM]\d", re.IGNORECASE)
_INTERCONNECTS: dict[str, GpuInterconnect] = {
    "nvlink": "nvlink",
    "infinity_fabric": "infinity_fabric",
    "pcie": "pcie",
}


@dataclass(frozen=True, slots=True)
class Size:
    """Facts of one size. `network_gbps` is the RDMA fabric where the size has one, else the Ethernet limit."""

    gpu: GpuRead
    vcpu_count: int
    memory_gib: float | None
    local_storage_gb: float | None
    network_gbps: float | None
    gpu_interconnect: GpuInterconnect
    rdma: bool
    cpu_arch: str


def has_gpu(size: str) -> bool:
    """Whether a size belongs to the accelerated families (letter N), apart from those without a GPU."""
    return size.casefold().startswith("standard_n") and not _NOT_GPU.match(size)


def accelerator_label(size: str) -> str:
    """The accelerator that a size name spells out, or the whole name where it spells out none."""
    named = _NAME.fullmatch(size)
    return named.group(4).rpartition("_")[2] if named and named.group(4) else size


@cache
def size_facts(size: str) -> Size | None:
    """The facts of a size, or None where its series is not in the table or its share of a GPU is not known."""
    named = _NAME.fullmatch(size)
    if named is None:
        return None
    letters, vcpus, features, _, version = named.groups()
    label = accelerator_label(size) if named.group(4) else ""
    series = _series(letters.upper(), label.upper(), version or "", features)
    if series is None:
        return None
    per_gpu = int(series["vcpus_per_gpu"])
    whole = int(vcpus) >= per_gpu
    if not whole and series["below_one_gpu"] == "unknown":
        return None
    fraction = Decimal(1) if whole or series["below_one_gpu"] == "one" else Decimal(vcpus) / Decimal(per_gpu)
    count = max(int(vcpus) // per_gpu, 1)
    card_memory = number(series["memory_gb_per_gpu"])
    listed = next((r for r in spec_rows("azure-sizes.csv") if r["size"].casefold() == size.casefold()), {})
    rdma = "r" in re.sub(r"[A-Z]\d.*", "", features)
    fabric = number(series["fabric_gbps"]) if rdma else None
    return Size(
        gpu=GpuRead(
            label=series["gpu"],
            gpu=series["gpu"],
            count=count,
            fraction=fraction,
            memory_gb=card_memory * float(fraction) if card_memory else None,
        ),
        vcpu_count=int(vcpus),
        memory_gib=number(listed.get("memory_gib", "")),
        local_storage_gb=number(listed.get("local_storage_gb", "")),
        network_gbps=fabric or number(listed.get("network_gbps", "")),
        gpu_interconnect="none" if count == 1 else _INTERCONNECTS.get(series["gpu_interconnect"], "unknown"),
        rdma=rdma,
        cpu_arch=series["cpu_arch"],
    )


def _series(letters: str, label: str, version: str, features: str) -> dict[str, str] | None:
    """The series' row; one that asks for a feature letter goes before the one that does not."""
    found = [
        dict(row)
        for row in spec_rows("azure-series.csv")
        if (row["letters"], row["accelerator"], row["version"]) == (letters, label, version)
        and row["feature"] in features
    ]
    return max(found, key=lambda row: len(row["feature"]), default=None)
