"""Checkpoints of a training job: size, storage for those kept, and how often to write one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.training_adapters import adapter_params
from planner.training_formats import state_bytes
from planner.training_job import TrainingJob

# Write rate of one node to shared or local storage, GB/s, and copies kept. BLOOM wrote 2.3 TB in 40 s from 48 nodes
# (https://github.com/stas00/ml-engineering/tree/master/storage).
_WRITE_GB_S_PER_NODE = 1.2
COPIES_KEPT = 3
# One unplanned stop per 50,000 GPU-hours: 419 in 54 days on 16,384 H100 (https://arxiv.org/abs/2407.21783).
GPU_HOURS_PER_FAILURE = 50_000.0
_GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """GiB of one checkpoint and of all kept, seconds to write one, hours between two."""

    size_gib: float
    storage_gib: float
    write_s: float
    interval_h: float


def checkpoint_interval_h(write_s: float, mean_hours_between_stops: float) -> float:
    """Young's optimum: sqrt(2 x write time x mean time between stops), in hours (doi:10.1145/361147.361115)."""
    return math.sqrt(2 * write_s / 3600 * mean_hours_between_stops)


def checkpoints(job: TrainingJob, hours: float | None) -> Checkpoints:
    """Checkpoints of a job: adapters with their states, or weights in 16 bit with optimizer states.

    The interval is Young's for hardware failures alone, at most the length of the job; spot interruptions shorten it.
    """
    if job.adapters:
        size = 12.0 * adapter_params(job.model, job.lora_rank, job.lora_targets)
    else:
        per = state_bytes(job.regime, job.optimizer, job.precision)
        size = (2.0 + per.optimizer) * job.model.budget.total()
    write_s = max(size / (_WRITE_GB_S_PER_NODE * 1e9 * job.nodes), 1.0)
    interval = checkpoint_interval_h(write_s, GPU_HOURS_PER_FAILURE / job.gpus)
    if hours is not None:
        interval = min(interval, hours)
    size_gib = size / _GIB
    return Checkpoints(size_gib=size_gib, storage_gib=COPIES_KEPT * size_gib, write_s=write_s, interval_h=interval)
