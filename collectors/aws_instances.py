"""What an EC2 accelerated instance type holds; no keyless price source says it.

The table `data/aws-instances.csv` is reviewed by hand, because even DescribeInstanceTypes has been wrong: GPU name
"NVIDIA" for p5e and p5en, 22,888 MiB for a 24 GB L4, totals given as per-GPU memory, a count of 1 or 0 for the L4
fractions of g6f, none for Trainium. Documentation: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from catalog.accelerators import accelerator
from collectors.rows import GpuRead
from collectors.specs import number, spec_rows

# Families with accelerators by their letters; vt1 (video), f1/f2 (FPGA) are not among them.
_ACCELERATED = re.compile(r"(?:p\d|g\d|gr\d|trn\d|inf\d|dl\d)\S*\.\S+")
CAPACITY_BLOCK = "capacity_block"


@cache
def _types() -> Mapping[str, Mapping[str, str]]:
    return {row["instance_type"]: row for row in spec_rows("aws-instances.csv")}


def is_accelerated(instance_type: str) -> bool:
    """Whether a type belongs to the GPU and machine-learning families, known to the table or not."""
    return instance_type in _types() or bool(_ACCELERATED.fullmatch(instance_type))


def sold_as(instance_type: str) -> str:
    """`capacity_block` for types that are sold by Capacity Block only, else ''."""
    row = _types().get(instance_type)
    return row["sold_as"] if row else ""


def gpu_of(instance_type: str) -> GpuRead | None:
    """The accelerators of a type, or None for a type that the table does not hold."""
    row = _types().get(instance_type)
    if row is None:
        return None
    fraction = Decimal(row["gpu_fraction"])
    memory_gb = accelerator(row["gpu"]).memory_gb * float(fraction) if row["gpu"] and fraction < 1 else None
    return GpuRead(
        label=row["gpu_label"],
        gpu=row["gpu"] or None,
        count=int(row["gpu_count"]),
        fraction=fraction,
        memory_gb=memory_gb,
    )


def offer_fields(instance_type: str) -> dict[str, Any]:
    """The other facts of a type, as fields of `Offer`; empty for an unknown type."""
    row = _types().get(instance_type)
    if row is None:
        return {}
    return {
        "vcpu_count": number(row["vcpu"]),
        "memory_gib": number(row["memory_gib"]),
        "local_storage_gb": number(row["local_storage_gb"]),
        "network_gbps": number(row["network_gbps"]),
        "gpu_interconnect": row["gpu_interconnect"],
        "rdma": True if row["rdma"] == "true" else None,
        "cpu_arch": row["cpu_arch"],
        "tenancy": "bare_metal" if instance_type.endswith(".metal") else "vm",
    }
