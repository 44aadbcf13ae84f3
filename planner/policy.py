"""What the user wants of a plan, and the rules that follow: service level, duty, and which ways of buying are allowed.

The rules are those of the product's two guides: user-facing endpoints rent on demand or reserved, never on spot unless
asked; batch and checkpointed work may be interrupted; pre-training prefers reserved capacity to the cheapest spot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from catalog.errors import UnknownName, nearest
from planner.cost_start import START_KINDS, StartKind
from planner.request import MEDIA, SERVING, TRAINING, Request, RequestError

Objective = Literal["cost", "latency", "throughput", "balanced"]
OBJECTIVES = ("cost", "latency", "throughput", "balanced")

DEFAULT_TPOT_MS = 50.0
DEFAULT_TTFT_MS = 2000.0
HOURS_PER_DAY = 24.0
HOURS_PER_MONTH = 730.0
DAYS_PER_MONTH = HOURS_PER_MONTH / HOURS_PER_DAY
# A batch job whose size nobody stated: enough work that billing steps and cold starts do not decide.
DEFAULT_BATCH_OUTPUT_TOKENS = 100_000_000
DEFAULT_MEDIA_ITEMS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanKeys:
    """The plan keys of a request; None means not stated.

    `requests_s` is the peak arrival rate, for which replicas are sized; `average_requests_s` the mean rate over the
    hours of service (the peak where not stated); `requests` the size of a batch job. `storage_gb` and `egress_gb` are
    per month for serve, for the whole job otherwise. `batch_share` is the part of a service's load that may wait.
    `cold_start` says what a starting machine has at hand (`planner.cost_start`).
    """

    requests_s: float | None = None
    average_requests_s: float | None = None
    requests: int | None = None
    ttft_ms_max: float | None = None
    tpot_ms_max: float | None = None
    hours_per_day: float | None = None
    starts_per_day: float | None = None
    deadline_h: float | None = None
    budget_usd: float | None = None
    objective: str | None = None
    max_commitment_days: int | None = None
    storage_gb: float | None = None
    egress_gb: float | None = None
    batch_share: float | None = None
    cold_start: StartKind | None = None


PLAN_KEYS: tuple[str, ...] = tuple(f.name for f in fields(PlanKeys))
# Keys that name one of a few things; the others are numbers.
PLAN_CHOICES: Mapping[str, tuple[str, ...]] = {"objective": OBJECTIVES, "cold_start": START_KINDS}
_WHOLE = frozenset({"requests", "max_commitment_days"})
_ZERO_ALLOWED = frozenset({"starts_per_day", "max_commitment_days", "storage_gb", "egress_gb", "batch_share"})
_SERVE_ONLY = frozenset(
    {"average_requests_s", "ttft_ms_max", "tpot_ms_max", "hours_per_day", "starts_per_day", "batch_share"}
)
_TOKENS_ONLY = frozenset({"requests_s", "requests"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The plan keys with every default filled in, as echoed in the answer.

    `purchase_options` are those that may be ranked; `service_level_stated` says whether the limits are the user's own,
    which are never given up, or the defaults, which are when nothing meets them.
    """

    objective: str = "cost"
    ttft_ms_max: float | None = None
    tpot_ms_max: float | None = None
    service_level_stated: bool = False
    requests_s: float | None = None
    average_requests_s: float | None = None
    requests: int | None = None
    hours_per_day: float = HOURS_PER_DAY
    starts_per_day: float = 0.0
    deadline_h: float | None = None
    budget_usd: float | None = None
    max_commitment_days: int = 0
    storage_gb: float | None = None
    egress_gb: float | None = None
    batch_share: float | None = None
    cold_start: StartKind = "object_store"
    purchase_options: tuple[str, ...] = ("on_demand", "reserved")
    allow_stale: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The policy as the answer echoes it."""
        return {**asdict(self), "purchase_options": list(self.purchase_options)}


def parse_plan_keys(raw: Mapping[str, Any], workload: str) -> PlanKeys:
    """Check plan keys and give them types; values may be JSON or command-line text.

    Raises:
        RequestError: an unknown key, or a value of the wrong type or range, or a key of another workload.
    """
    values: dict[str, Any] = {}
    for key, value in raw.items():
        if key not in PLAN_KEYS:
            suggestions = nearest(key, PLAN_KEYS)
            raise RequestError("unknown_key", f"unknown plan key {key!r}", suggestions)
        if value is None:
            continue
        if (key in _SERVE_ONLY and workload != "serve") or (key in _TOKENS_ONLY and workload not in SERVING):
            raise RequestError("unknown_key", f"{key} does not apply to workload {workload}")
        choices = PLAN_CHOICES.get(key)
        values[key] = _number(key, value) if choices is None else _choice(key, value, choices)
    keys = PlanKeys(**values)
    if keys.average_requests_s is not None and (keys.requests_s is None or keys.average_requests_s > keys.requests_s):
        raise RequestError("bad_value", "average_requests_s goes with requests_s, the peak, and is at most as high")
    return keys


def _choice(key: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        unknown = UnknownName(key, value, choices)
        raise RequestError("bad_value", str(unknown), unknown.suggestions)
    return str(value)


# A slip of the keyboard: costs are sums of decimals with six places, and no plan is this large.
_LARGEST = 10**9


def _number(key: str, value: Any) -> float | int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RequestError("bad_value", f"{key} must be a number, got {value!r}") from None
    if isinstance(value, bool) or not math.isfinite(number):
        raise RequestError("bad_value", f"{key} must be a finite number, got {value!r}")
    if number < 0 or (number == 0 and key not in _ZERO_ALLOWED):
        raise RequestError("bad_value", f"{key} must be above zero, got {value!r}")
    if key == "hours_per_day" and number > HOURS_PER_DAY:
        raise RequestError("bad_value", f"hours_per_day is at most 24, got {value!r}")
    if number > _LARGEST:
        raise RequestError("bad_value", f"{key} is at most {_LARGEST:,}, got {value!r}")
    if key == "batch_share" and number >= 1:
        raise RequestError("bad_value", f"batch_share is a share from 0 to below 1, got {value!r}")
    if key in _WHOLE:
        if number != int(number):
            raise RequestError("bad_value", f"{key} must be a whole number, got {value!r}")
        return int(number)
    return number


def policy_for(
    request: Request, keys: PlanKeys, *, asked_purchase: tuple[str, ...] = (), allow_stale: bool = False
) -> Policy:
    """The policy of one plan.

    Args:
        request: the workload.
        keys: the plan keys as stated.
        asked_purchase: purchase options that the user's own filter names; they are obeyed.
        allow_stale: whether old rows may be ranked.
    """
    serve = request.workload == "serve"
    stated = keys.tpot_ms_max is not None or keys.ttft_ms_max is not None
    return Policy(
        objective=keys.objective or "cost",
        ttft_ms_max=(keys.ttft_ms_max or DEFAULT_TTFT_MS) if serve else None,
        tpot_ms_max=(keys.tpot_ms_max or DEFAULT_TPOT_MS) if serve else None,
        service_level_stated=stated,
        requests_s=keys.requests_s,
        average_requests_s=keys.average_requests_s if keys.average_requests_s is not None else keys.requests_s,
        requests=keys.requests,
        hours_per_day=keys.hours_per_day if keys.hours_per_day is not None else HOURS_PER_DAY,
        starts_per_day=_starts(keys),
        deadline_h=keys.deadline_h,
        budget_usd=keys.budget_usd,
        max_commitment_days=keys.max_commitment_days or 0,
        storage_gb=keys.storage_gb,
        egress_gb=keys.egress_gb,
        batch_share=keys.batch_share,
        cold_start=keys.cold_start or "object_store",
        purchase_options=asked_purchase or _purchase_options(request.workload),
        allow_stale=allow_stale,
    )


def _starts(keys: PlanKeys) -> float:
    """Starts a day: as stated; one where the service is not up all day."""
    if keys.starts_per_day is not None:
        return keys.starts_per_day
    return 1.0 if keys.hours_per_day is not None and keys.hours_per_day < HOURS_PER_DAY else 0.0


def _purchase_options(workload: str) -> tuple[str, ...]:
    if workload == "serve":
        return ("on_demand", "reserved")
    if workload in TRAINING or workload in MEDIA or workload in SERVING:
        return ("on_demand", "reserved", "scheduled", "spot")
    raise RequestError("unknown_workload", f"no policy for workload {workload!r}")
