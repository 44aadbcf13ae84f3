"""What a start takes and what of it is billed: boot, image, weights; and rounding up to the billing increment."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.cost_rates import rate, rate_source, start_habit

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

    @property
    def total_s(self) -> float:
        """What the first user waits."""
        return self.boot_s + self.image_s + self.load_s


def cold_start(row: Mapping[str, Any], weights_gb: float) -> ColdStart:
    """The cold start of an offer for `weights_gb` decimal gigabytes on one instance.

    boot as the offer or provider states, else a documented figure of its kind; the image is cached by serverless
    platforms; weights stream from a volume or object store at one measured rate.
    """
    return _cold_start(row["provider"], row["tenancy"], row["boot_time_s"], weights_gb)


@functools.lru_cache(maxsize=4096)
def _cold_start(provider: str, tenancy: str, boot_time_s: float | None, weights_gb: float) -> ColdStart:
    habit = start_habit(provider)
    name = _boot_name(tenancy)
    boot_s, source = float(rate(name)), rate_source(name)
    if habit.boot_s is not None:
        boot_s, source = habit.boot_s, habit.source
    if boot_time_s is not None:
        boot_s, source = float(boot_time_s), "offer"
    image_s = 0.0 if tenancy == "serverless" else float(rate("image_gb") / rate("image_gb_s"))
    load_s = weights_gb / float(rate("load_gb_s"))
    billed = load_s + (boot_s if habit.boot_billed else 0.0) + (image_s if habit.image_billed else 0.0)
    return ColdStart(boot_s, image_s, load_s, billed, source)


def working_hours(deadline_h: float, weights_gb: float) -> float:
    """Hours until a deadline that are left for work after the slowest usual start; at least half of them."""
    start_s = float(rate("boot_bare_metal") + rate("image_gb") / rate("image_gb_s")) + weights_gb / float(
        rate("load_gb_s")
    )
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
