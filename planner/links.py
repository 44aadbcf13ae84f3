"""All-reduce time between GPUs: measured latencies, interpolated, and scaled to links that nobody measured.

`data/allreduce_us.csv` holds measured microseconds by system, library, number of GPUs and message size in 16-bit
elements (aiconfigurator_core 0.12.0, Apache-2.0, https://github.com/ai-dynamo/aiconfigurator).
"""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import dataclass, replace

from catalog.types import Accelerator
from planner.datafiles import data_rows

# Other links as multiples of the measured one that resembles them most: (system, latency factor, bandwidth factor).
_PCIE_BY_GENERATION = {
    5: ("rtx_pro_6000_server", 1.0),
    6: ("rtx_pro_6000_server", 2.0),
    4: ("l40s", 1.0),
    3: ("l40s", 0.5),
}
# One hop between machines over InfiniBand or RoCE of 400 Gb/s a GPU (NCCL tuning tables: about 15 us a step).
_NODE_HOP_US = 30.0
_NODE_GB_S = 50.0
_NVLINK4_GB_S = 900.0
_UNKNOWN_LINK_GB_S = 300.0
_SIZES = tuple(int(name) for name in data_rows("allreduce_us.csv")[0] if name.isdigit())
_LOG_SIZES = tuple(math.log(size) for size in _SIZES)


@dataclass(frozen=True, slots=True)
class Link:
    """What connects the GPUs of one machine: the measured system it is read from, and how it is scaled.

    `kind` is pcie or the name of the accelerator table: nvlink, infinity_fabric, ici, ethernet, and so on. `measured`
    is False for a scaled table. `beside` is a faster link that the card has and leaves unused: never slower than this
    one, whatever two machines measured.
    """

    kind: str
    system: str
    bandwidth_factor: float = 1.0
    measured: bool = True
    beside: Link | None = None


@functools.lru_cache(maxsize=2048)
def link_of(gpu: Accelerator, gpus: int, interconnect: str | None) -> Link:
    """The link between `gpus` cards in one machine; `interconnect` pcie leaves NVLink unused."""
    pcie = _pcie_link(gpu)
    name = gpu.link
    speed = gpu.link_gb_s_bidirectional or 0.0
    if name in {"", "none"}:
        return pcie
    if interconnect in {"pcie", "none"}:
        return replace(pcie, beside=_nvlink(gpu, speed)) if name == "nvlink" and speed else pcie
    if name == "nvlink_bridge":
        # Bridges join two cards (H200 NVL: four); most PCIe hosts are rented without one, unless it is stated.
        bridged = 4 if gpu.gpu.startswith("h200") else 2
        fitted = interconnect == "nvlink" or gpu.form_factor == "nvl"
        return _nvlink(gpu, speed) if fitted and speed and gpus <= bridged else pcie
    if name == "nvlink":
        return _nvlink(gpu, speed)
    return Link(name, "h100_sxm", (speed or _UNKNOWN_LINK_GB_S) / _NVLINK4_GB_S, measured=False)


def _nvlink(gpu: Accelerator, speed: float) -> Link:
    """The measured NVLink generation of the card's architecture, scaled to its own speed."""
    if gpu.architecture.startswith(("Blackwell", "Rubin")):
        system, nominal = "b200_sxm", 1800.0
    elif gpu.architecture.startswith("Hopper"):
        system, nominal = "h100_sxm", _NVLINK4_GB_S
    else:
        system, nominal = "a100_sxm", 600.0
    return Link("nvlink", system, speed / nominal, measured=speed == nominal and gpu.form_factor == "sxm")


def _pcie_link(gpu: Accelerator) -> Link:
    generation = int(gpu.pcie_generation or 4)
    system, factor = _PCIE_BY_GENERATION.get(generation, ("l40s", 0.5))
    return Link("pcie", system, factor, measured=factor == 1.0)


@functools.lru_cache(maxsize=1024)
def _curve(system: str, engine: str, eager: bool, gpus: int) -> tuple[float, ...]:
    """Logarithms of measured microseconds over the message sizes, for the nearest measured number of GPUs."""
    mode = "eager" if eager else "graph"
    rows = [row for row in data_rows("allreduce_us.csv") if row["system"] == system]
    wanted = [row for row in rows if row["engine"] == engine and row["mode"] == mode]
    wanted = wanted or [row for row in rows if row["engine"] == "vllm" and row["mode"] == mode]
    counts = sorted({int(row["gpus"]) for row in wanted})
    count = next((c for c in counts if c >= gpus), counts[-1])
    best = min(
        ([float(row[str(size)]) for size in _SIZES] for row in wanted if int(row["gpus"]) == count),
        key=lambda values: values[4],
    )
    nccl = next(
        ([float(row[str(s)]) for s in _SIZES] for row in rows if row["engine"] == "nccl" and int(row["gpus"]) == count),
        best,
    )
    # An engine falls back to NCCL where its own kernel is slower, which it is for long messages.
    fastest = [min(own, ring) if size > 262_144 else own for size, own, ring in zip(_SIZES, best, nccl, strict=True)]
    # A longer message is never faster: where a short one was measured slower, that was noise of the measurement.
    return tuple(math.log(min(fastest[i:])) for i in range(len(fastest)))


def allreduce_us(link: Link, engine: str, gpus: int, elements: float, *, eager: bool = False, nodes: int = 1) -> float:
    """Microseconds of one all-reduce of `elements` 16-bit values over `gpus` ranks.

    Interpolates the measured table in both logarithms; outside it the last slope goes on. Over several machines a
    ring step between nodes is added.
    """
    if gpus <= 1:
        return 0.0
    per_node = max(1, gpus // nodes)
    inside = _interpolated(_curve(link.system, engine, eager, per_node), elements) if per_node > 1 else 0.0
    floor = math.exp(_curve(link.system, engine, eager, per_node)[0]) if per_node > 1 else 0.0
    scaled = floor + max(0.0, inside - floor) / link.bandwidth_factor
    if link.beside is not None:
        scaled = max(scaled, allreduce_us(link.beside, engine, per_node, elements, eager=eager))
    if nodes == 1:
        return scaled
    return scaled + _NODE_HOP_US * math.log2(nodes) * 2 + 2 * elements * 2 / per_node / (_NODE_GB_S * 1e3)


def _interpolated(curve: tuple[float, ...], elements: float) -> float:
    x = math.log(max(elements, 1.0))
    if x <= _LOG_SIZES[0]:
        return math.exp(curve[0])
    i = min(bisect.bisect_right(_LOG_SIZES, x), len(_LOG_SIZES) - 1)
    x0, x1 = _LOG_SIZES[i - 1], _LOG_SIZES[i]
    slope = (curve[i] - curve[i - 1]) / (x1 - x0)
    if i == len(_LOG_SIZES) - 1 and x > x1:
        slope = 1.0
        return math.exp(curve[i] + slope * (x - x1))
    return math.exp(curve[i - 1] + slope * (x - x0))
