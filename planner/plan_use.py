"""What a serving plan uses of an offer: hours and starts of a month or a job, traffic, and the parts to explain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planner.cost import Usage
from planner.cost_rates import rate
from planner.cost_spot import restarted
from planner.cost_start import cold_start
from planner.options import Option
from planner.policy import DAYS_PER_MONTH, DEFAULT_BATCH_OUTPUT_TOKENS, Policy
from planner.reasons import Reason, reason
from planner.serving import ServingFit

_GIGA = 1e9
_DAY_H = 24


def usage_of(policy: Policy, option: Option, offer: Mapping[str, Any], *, online: bool) -> Usage | Reason:
    """A month of service at its duty, or the job once; a reason where spot would never get the job done."""
    start = cold_start(offer, option.load_gb, policy.cold_start)
    interruptions = None
    if offer["purchase_option"] == "spot":
        lost_s = (option.latency_ms or 0.0) / 2000 if online else 0.0
        interruptions = restarted(offer["interruption_rate"], start.total_s, lost_s, instances=option.instances)
        if not interruptions.feasible:
            return reason("spot_too_interrupted", overhead=interruptions.overhead)
    hours, starts = _busy(policy, option, offer) if online else (option.hours or 0.0, 1.0)
    stated = policy.storage_gb
    return Usage(
        monthly=online,
        instances=option.instances,
        hours=hours,
        starts=starts,
        storage_gb=stated if stated is not None else option.disk_gb,
        storage_shared=stated is not None,
        egress_gb=policy.egress_gb if policy.egress_gb is not None else option.egress_gb,
        addresses=online,
        start=start,
        interruptions=interruptions,
        disk_survives=start.kind != "attached_volume",
    )


def _busy(policy: Policy, option: Option, offer: Mapping[str, Any]) -> tuple[float, float]:
    """Hours in use and starts of a month of service.

    A serverless copy at a stated rate sleeps between requests where the user does not say how often it starts: with
    arrivals at random it is up for the share 1 - exp(-rate x (answer + idle window)) of the time and starts
    rate x exp(-rate x (answer + idle window)) times a second (busy periods of M/G/infinity).
    """
    hours = policy.hours_per_day * DAYS_PER_MONTH
    arrivals = policy.average_requests_s
    if offer["tenancy"] != "serverless" or policy.starts_per_day or not arrivals or option.replicas > 1:
        return hours, policy.starts_per_day * DAYS_PER_MONTH
    held_s = (option.latency_ms or 0.0) / 1000 + float(rate("serverless_idle"))
    quiet = math.exp(-arrivals * held_s)
    return hours * (1 - quiet), hours * 3600 * arrivals * quiet


def sized_by_user(policy: Policy) -> bool:
    """Whether the user says how much work there is."""
    return policy.requests is not None or policy.requests_s is not None


def job_requests(policy: Policy, output_tokens: int) -> int:
    """Requests of a batch job: as stated, or what arrives until the deadline (a day), or a stated default size."""
    if policy.requests is not None:
        return policy.requests
    if policy.requests_s is not None:
        return math.ceil(policy.requests_s * 3600 * (policy.deadline_h or _DAY_H))
    return math.ceil(DEFAULT_BATCH_OUTPUT_TOKENS / output_tokens)


def answers_gb_month(policy: Policy, output_tokens: int) -> float | None:
    """A month's answers at a stated rate, streamed token by token, GB; None where the rate is unknown."""
    if policy.average_requests_s is None:
        return None
    seconds = policy.hours_per_day * 3600 * DAYS_PER_MONTH
    return policy.average_requests_s * seconds * output_tokens * float(rate("response_bytes_stream")) / _GIGA


def memory_parts(fit: ServingFit) -> dict[str, float]:
    """Memory of the fullest GPU by part, GiB."""
    memory = fit.memory
    return {
        "weights_gib": memory.weights_gib,
        "kv_cache_gib": memory.cache_gib,
        "activations_gib": memory.activations_gib,
        "graphs_gib": memory.graphs_gib,
        "context_gib": memory.context_gib,
        "lora_gib": memory.lora_gib,
        "required_gib": memory.required_gib,
        "usable_gib": memory.usable_gib,
    }


def speed_parts(fit: ServingFit) -> dict[str, float] | None:
    """Times of one replica at its load, ms, and its rate."""
    if fit.speed is None:
        return None
    speed = fit.speed
    return {
        "step_ms": speed.step_ms,
        "prefill_ms": speed.prefill_ms,
        "tpot_ms": speed.tpot_ms,
        "ttft_ms": speed.ttft_ms,
        "output_tokens_s": speed.output_tokens_s,
        "running": speed.running,
    }
