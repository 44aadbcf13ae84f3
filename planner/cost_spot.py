"""What interruptions cost: time between them from a provider's rate, and the share of work that is done twice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.cost_rates import rate

# Beyond this share of repeated work the job makes no dependable progress: refuse rather than price it.
MOST_OVERHEAD = 0.5


@dataclass(frozen=True, slots=True)
class Interruptions:
    """How often a job is interrupted and what that adds.

    `mean_hours` between interruptions of the whole job, `overhead` the share of extra time, `interval_h` between
    checkpoints where the job writes any, `rate_stated` whether the provider publishes the rate.
    """

    mean_hours: float
    overhead: float
    interval_h: float | None
    rate_stated: bool

    @property
    def feasible(self) -> bool:
        """Whether the job still makes dependable progress."""
        return self.overhead <= MOST_OVERHEAD


def hours_between(monthly_share: float | None, instances: int) -> float:
    """Hours between interruptions of a job on `instances`: 720 / -ln(1 - share) each, any one of them stops it."""
    share = float(rate("spot_monthly_share")) if monthly_share is None else monthly_share
    share = min(max(share, 0.001), 0.99)
    return float(rate("spot_hours")) / -math.log(1 - share) / instances


def restarted(monthly_share: float | None, restart_s: float, lost_s: float, *, instances: int = 1) -> Interruptions:
    """Work in independent pieces: each interruption costs a start and the pieces that were in flight.

    Instances are independent of each other, so their number does not change the share.
    """
    mean_h = hours_between(monthly_share, 1)
    overhead = (restart_s + lost_s) / 3600 / mean_h
    return Interruptions(mean_h / instances, overhead, None, monthly_share is not None)


def checkpointed(
    monthly_share: float | None, checkpoint_s: float, restart_s: float, *, instances: int
) -> Interruptions:
    """One job over all instances that goes back to its last checkpoint.

    Interval after Young, tc = sqrt(2 ts tf) (https://doi.org/10.1145/361147.361115); overhead = ts / tc +
    (tc / 2 + tr) / tf.
    """
    mean_h = hours_between(monthly_share, instances)
    mean_s = mean_h * 3600
    interval_s = math.sqrt(2 * max(checkpoint_s, 1.0) * mean_s)
    overhead = checkpoint_s / interval_s + (interval_s / 2 + restart_s) / mean_s
    return Interruptions(mean_h, overhead, interval_s / 3600, monthly_share is not None)
