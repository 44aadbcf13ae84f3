"""Google Compute Engine machine types with GPUs: shapes, and which catalog SKUs pay for them.

The table is `data/gcp-machines.csv`. `sold_on_demand` is empty for types that carry a list price but are sold as spot,
flex-start, calendar reservation or commitment only (A4, A4X, A3 Ultra, and A3 High below eight GPUs):
https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines. N1 machines take GPUs as attachments, with a
limit on vCPUs per number of GPUs (https://docs.cloud.google.com/compute/docs/gpus): one standard shape inside the limit
stands for each count, named in `variant`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from collectors.rows import GpuRead
from collectors.specs import number, spec_rows


@dataclass(frozen=True, slots=True)
class Machine:
    """One shape. `host_sku` is '' where the GPU's SKU pays for the whole machine (A4 slices)."""

    machine_type: str
    variant: str
    host_sku: str
    gpu_sku: str
    gpu: GpuRead
    vcpu_count: int
    memory_gib: float
    local_ssd_gib: int
    sold_on_demand: bool
    fields: dict[str, Any]

    @property
    def sku(self) -> str:
        """Machine type, with what is attached to it."""
        return f"{self.machine_type}+{self.variant}" if self.variant else self.machine_type


@cache
def machines() -> tuple[Machine, ...]:
    """Every known shape, in the table's order."""
    return tuple(_machine(row) for row in spec_rows("gcp-machines.csv"))


@cache
def machine(machine_type: str) -> Machine | None:
    """The shape of an accelerator-optimized machine type, or None for an unknown one."""
    return next((m for m in machines() if m.machine_type == machine_type and not m.variant), None)


def _machine(row: Any) -> Machine:
    ssd = int(row["local_ssd_gib"])
    return Machine(
        machine_type=row["machine_type"],
        variant=row["variant"],
        host_sku=row["host_sku"],
        gpu_sku=row["gpu_sku"],
        gpu=GpuRead(label=row["gpu"], gpu=row["gpu"], count=int(row["gpu_count"])),
        vcpu_count=int(row["vcpu"]),
        memory_gib=float(row["memory_gib"]),
        local_ssd_gib=ssd,
        sold_on_demand=row["sold_on_demand"] == "true",
        fields={
            "variant": row["variant"],
            "vcpu_count": int(row["vcpu"]),
            "memory_gib": float(row["memory_gib"]),
            "local_storage_gb": round(ssd * 2**30 / 1e9, 1) if ssd else None,
            "gpu_interconnect": row["gpu_interconnect"],
            "network_gbps": number(row["network_gbps"]),
            "rdma": True if row["rdma"] == "true" else None,
            "cpu_arch": row["cpu_arch"],
        },
    )
