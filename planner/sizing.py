"""From a load to replicas: how much one replica carries within memory and service level, and how many are needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from catalog.types import Accelerator
from planner.cost_rates import rate
from planner.model_config import ModelSpec
from planner.parallel import Layout
from planner.serving import ServingCase, ServingFit, fit_serving

# A replica that holds fewer users at once is no service of its own: decode is then paid per user, not per batch.
LEAST_USERS = 4
# Where only a rate is stated: beyond these batches engines queue by default.
MOST_USERS = 256


@dataclass(frozen=True, slots=True)
class Load:
    """What has to be carried at peak: users at the same time, or arriving requests a second, or both."""

    users: int | None
    requests_s: float | None


@dataclass(frozen=True, slots=True)
class Limits:
    """The service level; None means no limit."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None

    def met_by(self, fit: ServingFit) -> bool:
        """Whether both times stay within the limits."""
        speed = fit.speed
        if speed is None:
            return False
        if self.tpot_ms is not None and speed.tpot_ms > self.tpot_ms:
            return False
        return self.ttft_ms is None or speed.ttft_ms <= self.ttft_ms


@dataclass(frozen=True, slots=True)
class Copy:
    """One model copy on one kind of hardware, ready to be asked about any number of users."""

    spec: ModelSpec
    gpu: Accelerator
    layout: Layout
    case: ServingCase

    def at(self, users: int) -> ServingFit:
        """The fit with that many users at once."""
        return fit_serving(self.spec, self.gpu, self.layout, replace(self.case, concurrency=max(users, 1)))

    def requests_s(self, users: int) -> float:
        """Requests a second answered in a closed loop of that many users."""
        speed = self.at(users).speed
        return speed.output_tokens_s / self.case.output_tokens if speed else 0.0


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica at the load it gets: how many of them carry the whole load, and whether the service level holds.

    `users` is the load of one. `output_tokens_s` is what all of them together produce at the planned load.
    """

    layout: Layout
    fit: ServingFit
    replicas: int
    users: int
    meets: bool
    output_tokens_s: float | None

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.layout.gpus

    @property
    def fits(self) -> bool:
        """Whether it may be planned on at all, service level aside."""
        return self.fit.verdict != "no"


def largest(holds: Callable[[int], bool], top: int) -> int:
    """The largest n in 1..top for which `holds`, which is true up to some n and false beyond; 0 where it never is."""
    if top < 1 or not holds(1):
        return 0
    if holds(top):
        return top
    low, high = 1, top
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def size_service(copy: Copy, load: Load, limits: Limits) -> Replica:
    """Replicas for an online service.

    A replica takes as many users as fit its memory within the service level, all of them if possible. With a request
    rate, replicas are added until the rate is at most the planned share of their capacity.
    """
    top = load.users or MOST_USERS
    least = min(top, LEAST_USERS) if load.users else 1
    room = largest(lambda n: copy.at(n).verdict != "no", top)
    if room < least:
        return Replica(copy.layout, copy.at(least), 1, least, meets=False, output_tokens_s=None)
    within = largest(lambda n: limits.met_by(copy.at(n)), room)
    meets = within >= least
    users, replicas = (within if meets else room), 1
    if load.users:
        replicas = math.ceil(load.users / users)
        users = math.ceil(load.users / replicas)
        replicas, users = _roomier(copy, load.users, replicas, users)
    if load.requests_s:
        replicas, users = _for_rate(copy, load.requests_s, replicas, users, fixed=load.users is not None)
    fit = copy.at(users)
    produced = fit.speed.output_tokens_s * replicas if fit.speed else None
    if load.requests_s and produced is not None:
        produced = min(produced, load.requests_s * copy.case.output_tokens)
    return Replica(copy.layout, fit, replicas, users, meets and limits.met_by(fit), produced)


def _roomier(copy: Copy, total: int, replicas: int, users: int) -> tuple[int, int]:
    """Where several replicas are needed anyway, as many as it takes for each to fit beyond the error band."""
    if replicas == 1 or copy.at(users).verdict == "fits":
        return replicas, users
    roomy = largest(lambda n: copy.at(n).verdict == "fits", users)
    if roomy < min(users, LEAST_USERS):
        return replicas, users
    more = math.ceil(total / roomy)
    return more, math.ceil(total / more)


def _for_rate(copy: Copy, requests_s: float, replicas: int, users: int, *, fixed: bool) -> tuple[int, int]:
    """Replicas for an arrival rate, and the users each then has at once."""
    capacity = copy.requests_s(users) * float(rate("utilisation"))
    if capacity <= 0:
        return replicas, users
    replicas = max(replicas, math.ceil(requests_s / capacity))
    if fixed:
        return replicas, users
    share = requests_s / replicas
    below = largest(lambda n: copy.requests_s(n) < share, users)
    return replicas, min(users, below + 1)


def size_batch(copy: Copy, users: int | None) -> Replica:
    """The batch that a replica runs offline: as stated, else as large as the cache holds, up to the engine's usual."""
    if users:
        fit = copy.at(users)
    else:
        room = largest(lambda n: copy.at(n).verdict == "fits", MOST_USERS)
        room = room or largest(lambda n: copy.at(n).verdict != "no", MOST_USERS)
        users = max(room, 1)
        fit = copy.at(users)
    speed = fit.speed
    return Replica(copy.layout, fit, 1, users, fit.verdict != "no", speed.output_tokens_s if speed else None)
