"""What a workload asks of one hardware shape: the ways to run it there, or the reason why it does not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from planner.candidates import Shape
from planner.cost import Usage
from planner.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to run a workload on instances of one shape; costs come later, per offer.

    `split` says whether one model copy spans several GPUs. `hours` is the job's time without interruptions, None for a
    service. `latency_ms` orders plans by speed: a whole answer, a job's hours, an item's seconds in ms.
    `memory` and `speed` are what an explanation prints.
    """

    shape: Shape
    verdict: str
    instances: int
    replicas: int
    tp: int = 1
    pp: int = 1
    dp: int = 1
    split: bool = False
    meets: bool = True
    required_gib: float | None = None
    usable_gib: float | None = None
    tpot_ms: float | None = None
    ttft_ms: float | None = None
    output_tokens_s: float | None = None
    seconds_per_item: float | None = None
    hours: float | None = None
    latency_ms: float | None = None
    disk_gb: float = 0.0
    load_gb: float = 0.0
    checkpoint_gb: float = 0.0
    egress_gb: float | None = None
    work_million_tokens: float | None = None
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    bottleneck: str = ""
    memory: Mapping[str, float] | None = None
    speed: Mapping[str, float] | None = None
    users: int | None = None
    native: bool = True

    @property
    def headroom_gib(self) -> float | None:
        """Usable less required memory per GPU."""
        if self.required_gib is None or self.usable_gib is None:
            return None
        return self.usable_gib - self.required_gib

    @property
    def plan_gpus(self) -> int:
        """All GPUs that are rented."""
        return self.instances * self.shape.gpu_count


@dataclass(frozen=True, slots=True)
class Outcome:
    """The options of one shape; where there are none, `refusal` says why, `missing_gib` how much memory is short."""

    options: tuple[Option, ...] = ()
    refusal: Reason | None = None
    missing_gib: float | None = None
    usable_gib: float | None = None


class WorkloadPlanner(Protocol):
    """What the plan asks of a workload."""

    def options(self, shape: Shape) -> Outcome:
        """The ways to run on instances of this shape."""

    def usage(self, option: Option, offer: Mapping[str, Any]) -> Usage | Reason:
        """What an option uses of an offer; a reason where the offer's way of buying does not suit it."""

    def resolved(self) -> dict[str, Any]:
        """The workload's keys as planned, where they differ from what was stated."""

    def assumptions(self) -> list[str]:
        """What was assumed, in words."""

    def remedies(self, shape: Shape) -> list[Reason]:
        """What would make a shape fit that does not."""
