"""Which hardware shapes may be planned on, and why the others may not: one estimate serves every offer of a shape."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.accelerators import accelerators, families
from catalog.types import Accelerator
from planner.accelerator_choice import part_of
from planner.policy import Policy

RANKED = ("fresh", "aging")
# A network that carries a model split over machines: RDMA, or a published rate of at least this many Gb/s.
FABRIC_GBPS = 100.0
# Machines hold at most this many accelerators on one link; a larger "instance" is a cluster of such machines.
_LARGEST_NODE = 16
_CLUSTER_NODE = 8
_TPU_POD = 256
_LINKED = frozenset({"nvlink", "infinity_fabric", "ici"})
_OWN_LINK_FORMS = frozenset({"sxm", "oam", "chip"})
_LEAST = (
    "memory_gb", "memory_gib_usable", "memory_bandwidth_gb_s", "fp32_tflops", "tf32_tflops", "fp16_tflops",
    "bf16_tflops", "fp8_tflops", "int8_tflops", "fp4_tflops", "link_gb_s_bidirectional", "pcie_generation",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """Hardware of one instance. `memory_gb` is per GPU or of the slice; `link` what joins its GPUs, '' for one GPU.

    `link` is nvlink, infinity_fabric, ici or pcie; `link_known` False where the provider does not say. `fabric` says
    whether a network for jobs over several machines is known, `network_gbps` its rate where published.
    """

    key: str
    accelerator: Accelerator
    candidates: tuple[str, ...]
    gpu: str
    gpu_count: int
    fraction: float
    link: str
    link_known: bool
    fabric: bool
    network_gbps: float | None

    @property
    def node_gpus(self) -> int:
        """GPUs of one machine."""
        if self.accelerator.vendor == "Google":
            return min(self.gpu_count, _TPU_POD)
        if self.gpu_count <= _LARGEST_NODE:
            return self.gpu_count
        return next((n for n in (_CLUSTER_NODE, 4, 2, 1) if self.gpu_count % n == 0), 1)

    @property
    def nodes(self) -> int:
        """Machines in one instance: 1, but for clusters sold as one."""
        return self.gpu_count // self.node_gpus

    @property
    def interconnect(self) -> str | None:
        """The fit model's word for the link: None is the card's own."""
        if self.link == "pcie":
            return "pcie"
        return "nvlink" if self.link == "nvlink" else None

    @property
    def hbm(self) -> bool:
        """Whether the memory is of the high-bandwidth class."""
        return self.accelerator.memory_type.startswith("HBM")


@dataclass(slots=True)
class Candidates:
    """Shapes that may be ranked, those that only old rows offer, and what was left out."""

    open: list[Shape] = field(default_factory=list)
    stale: list[Shape] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    offer_counts: Counter[str] = field(default_factory=Counter)
    lowest_usd_hour: dict[str, float] = field(default_factory=dict)
    sold_out: list[dict[str, Any]] = field(default_factory=list)
    too_long: list[dict[str, Any]] = field(default_factory=list)
    total: int = 0


def collect(rows: Iterable[Mapping[str, Any]], policy: Policy) -> Candidates:
    """Sort the catalog's shapes into those that may be ranked and those that may not.

    Args:
        rows: what `catalog.plan_queries.offer_shapes` returned.
        policy: which purchase options, commitments and ages are allowed.
    """
    found = Candidates()
    open_keys: dict[str, Shape] = {}
    stale_keys: dict[str, Shape] = {}
    for row in rows:
        found.total += row["offer_count"]
        code = exclusion(row, policy)
        if code and code != "stale":
            found.rejected[code] += row["offer_count"]
            if code == "sold_out":
                found.sold_out.append(dict(row))
            elif code == "commitment_too_long":
                found.too_long.append(dict(row))
            continue
        shape = shape_of(row)
        if shape is None:
            found.rejected["unknown_gpu"] += row["offer_count"]
        elif code == "stale":
            found.rejected[code] += row["offer_count"]
            stale_keys.setdefault(shape.key, shape)
        else:
            open_keys.setdefault(shape.key, shape)
            found.offer_counts[shape.key] += row["offer_count"]
            lowest = found.lowest_usd_hour.get(shape.key, row["min_price_usd_hour"])
            found.lowest_usd_hour[shape.key] = min(lowest, row["min_price_usd_hour"])
    found.open = list(open_keys.values())
    found.stale = list(stale_keys.values())
    return found


def exclusion(row: Mapping[str, Any], policy: Policy) -> str | None:
    """The first reason for which an offer may not be ranked whatever it fits; None where it may."""
    option = row["purchase_option"]
    if row["gpu"] is None:
        return "unknown_gpu"
    if not row["priced"]:
        return "unpriced"
    if row["os"] != "linux":
        return "not_linux"
    if row["restricted"]:
        return "closed_region"
    if row["repeats_own"]:
        return "reseller_repeats_provider"
    if row["availability"] == "unavailable":
        return "sold_out"
    if option not in policy.purchase_options:
        return f"{option}_not_allowed"
    days = row["commitment_days"] or 0
    if option == "reserved" and not days and not policy.max_commitment_days:
        return "commitment_not_stated"
    if option in {"reserved", "scheduled"} and days > policy.max_commitment_days:
        return "commitment_too_long"
    if row["freshness"] not in RANKED and not policy.allow_stale:
        return "stale"
    return None


def shape_of(row: Mapping[str, Any]) -> Shape | None:
    """The shape of a catalog row; None where its GPU is in no table."""
    candidates = _slugs(row["gpu"], tuple(row["gpu_candidates"] or ()))
    if not candidates:
        return None
    memory_gb = float(row["gpu_memory_gb"]) if row["gpu_memory_gb"] is not None else None
    fraction = float(row["gpu_fraction"])
    accelerator = part_of(least_of(candidates), fraction, memory_gb)
    link, known = _link(row["gpu_interconnect"], row["gpu_count"], accelerator)
    gbps = row["network_gbps"]
    fabric = bool(row["rdma"]) or (row["rdma"] is None and gbps is not None and gbps >= FABRIC_GBPS)
    return Shape(
        key=row["shape_key"],
        accelerator=accelerator,
        candidates=candidates,
        gpu=row["gpu"],
        gpu_count=row["gpu_count"],
        fraction=fraction,
        link=link,
        link_known=known,
        fabric=fabric,
        network_gbps=gbps,
    )


def _slugs(gpu: str, candidates: tuple[str, ...]) -> tuple[str, ...]:
    table = accelerators()
    known = tuple(slug for slug in candidates if slug in table)
    if known:
        return known
    return (gpu,) if gpu in table else families().get(gpu, ())


def _link(stated: str | None, gpu_count: int, accelerator: Accelerator) -> tuple[str, bool]:
    """The link between GPUs of one machine. Where nobody says: the board's own on SXM and OAM, PCIe on cards."""
    if gpu_count == 1:
        return "", True
    if stated in _LINKED:
        return str(stated), True
    if stated in {"pcie", "none"}:
        return "pcie", True
    own = accelerator.link.casefold()
    if accelerator.form_factor in _OWN_LINK_FORMS and own not in {"", "none"}:
        return ("nvlink" if "nvlink" in own else "ici" if "ici" in own else "infinity_fabric"), False
    return "pcie", False


@functools.lru_cache(maxsize=512)
def least_of(slugs: tuple[str, ...]) -> Accelerator:
    """One accelerator, or of several candidates the least of each figure: what is promised holds for all of them."""
    members = [accelerators()[slug] for slug in slugs]
    if len(members) == 1:
        return members[0]
    smallest = min(members, key=lambda a: (a.memory_gib_usable, a.memory_bandwidth_gb_s or 0.0))
    values: dict[str, Any] = {}
    for name in _LEAST:
        figures = [getattr(a, name) for a in members]
        values[name] = None if any(f is None for f in figures) else min(figures)
    weakest = min(members, key=lambda a: a.link_gb_s_bidirectional or 0.0)
    return replace(smallest, link=weakest.link, form_factor=weakest.form_factor, **values)
