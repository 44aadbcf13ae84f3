"""What a start takes and what of it is billed: boot, image, weights; and rounding up to the billing increment.

Three kinds of start, each with more at hand than the one before: `object_store` pulls the image and streams the
weights; `cached_image` finds the image on the machine; `attached_volume` reads the weights from a volume, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from planner.cost_rates import rate, rate_source, start_habit

StartKind = Literal["object_store", "cached_image", "attached_volume"]
START_KINDS: tuple[StartKind, ...] = ("object_store", "cached_image", "attached_volume")

_CONTAINER_TENANCIES = frozenset({"community", "secure"})
# Where a provider does not state its increment, a whole hour is the safe reading.
UNKNOWN_INCREMENT_S = 3600


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Seconds from asking for an instance to the first token, and what of them is billed."""

    boot_s: float
    image_s: float
    load_s: float
    billed_s: float
    source: str
    kind: StartKind = "object_store"

    @property
    def total_s(self) -> float:
        """What the first user waits."""
        return self.boot_s + self.image_s + self.load_s


def cold_start(row: Mapping[str, Any], weights_gb: float, kind: StartKind = "object_store") -> ColdStart:
    """The cold start of an offer for `weights_gb` decimal gigabytes on one instance.

    boot as the offer or provider states, else a documented figure of its tenancy; serverless platforms cache the image
    in any case; weights stream at the measured rate of where they are kept.
    """
    return _cold_start(row["provider"], row["tenancy"], row["boot_time_s"], weights_gb, kind)


@functools.lru_cache(maxsize=4096)
def _cold_start(
    provider: str, tenancy: str, boot_time_s: float | None, weights_gb: float, kind: StartKind
) -> ColdStart:
    habit = start_habit(provider)
    name = _boot_name(tenancy)
    boot_s, source = float(rate(name)), rate_source(name)
    if habit.boot_s is not None:
        boot_s, source = habit.boot_s, habit.source
    if boot_time_s is not None:
        boot_s, source = float(boot_time_s), "offer"
    image_s = 0.0 if tenancy == "serverless" else image_pull_s(kind)
    load_s = weights_gb / load_gb_s(kind)
    billed = load_s + (boot_s if habit.boot_billed else 0.0) + (image_s if habit.image_billed else 0.0)
    return ColdStart(boot_s, image_s, load_s, billed, source, kind)


def image_pull_s(kind: StartKind) -> float:
    """Seconds in which a machine pulls and unpacks the image; none where it has it."""
    return float(rate("image_gb") / rate("image_gb_s")) if kind == "object_store" else 0.0


def load_gb_s(kind: StartKind) -> float:
    """Gigabytes of weights a second from where they are kept."""
    return float(rate("volume_gb_s" if kind == "attached_volume" else "load_gb_s"))


def start_assumption(kind: StartKind) -> str:
    """The rates of a start, in words."""
    if kind == "attached_volume":
        return f"cold start: image cached, weights read from an attached volume at {load_gb_s(kind):g} GB/s"
    weights = f"weights from an object store at {load_gb_s(kind):g} GB/s"
    if kind == "cached_image":
        return f"cold start: image cached, {weights}"
    return f"cold start: image of {rate('image_gb')} GB pulled at {rate('image_gb_s')} GB/s, {weights}"


def working_hours(deadline_h: float, weights_gb: float, kind: StartKind = "object_store") -> float:
    """Hours until a deadline that are left for work after the slowest usual start; at least half of them."""
    start_s = float(rate("boot_bare_metal")) + image_pull_s(kind) + weights_gb / load_gb_s(kind)
    return max(deadline_h / 2, deadline_h - start_s / 3600)


def _boot_name(tenancy: str) -> str:
    if tenancy in {"serverless", "bare_metal"}:
        return f"boot_{tenancy}"
    return "boot_container" if tenancy in _CONTAINER_TENANCIES else "boot_vm"


def rounded_up_s(seconds: float, increment_s: int | None, minimum_s: int | None) -> float:
    """Seconds as billed: at least the minimum charge, then whole increments."""
    step = increment_s or UNKNOWN_INCREMENT_S
    # A hair above a whole number of steps is floating point, not another step.
    return math.ceil(max(seconds, minimum_s or 0) / step - 1e-9) * step
