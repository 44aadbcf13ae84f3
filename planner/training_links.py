"""Links between the GPUs of a training job, and the communication that computing does not hide.

Rates: https://github.com/stas00/ml-engineering/tree/master/network and the accelerator table.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.training_efficiency import accelerator_kind
from planner.training_job import GPUS_PER_NODE, TrainingJob

# Share of a link's advertised rate that collectives attain.
_ATTAINED = 0.9
_PCIE_GB_S = {3.0: 16.0, 4.0: 32.0, 5.0: 63.0, 6.0: 121.0}
# Node fabric, GB/s one way for 8 GPUs, that a training node of that class ships with.
_FABRIC_GB_S = {
    "a100": 200.0,
    "hopper": 400.0,
    "blackwell": 400.0,
    "blackwell-ultra": 800.0,
    "tpu": 400.0,
    "tpu-starved": 400.0,
    "cdna": 400.0,
}
_ETHERNET_GB_S = 12.5
# Share of gradient and weight collectives left exposed, by how the framework runs its kernels.
_EXPOSED = {"graph": 0.35, "fused": 0.55}
# Share of expert dispatch and combine that computing does not hide.
_DISPATCH_EXPOSED = 0.06
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Links:
    """GB/s one way that a collective sees: of one GPU inside a node, and of a whole node to others (0 with one node).

    `domain` is the number of GPUs that the inner link joins; `assumed` is True where the fabric was not stated.
    """

    kind: str
    inside_gb_s: float
    between_gb_s: float
    domain: int
    assumed: bool

    @property
    def collective_gb_s(self) -> float:
        """The slower of the two, attained share applied."""
        rate = min(self.inside_gb_s, self.between_gb_s) if self.between_gb_s else self.inside_gb_s
        return _ATTAINED * rate

    def per_gpu_gb_s(self, group: int) -> float:
        """What one GPU gets in a group of `group` GPUs when all send at once."""
        if not self.between_gb_s or group <= self.domain:
            return self.inside_gb_s
        return self.between_gb_s / GPUS_PER_NODE


@dataclass(frozen=True, slots=True)
class Communication:
    """Exposed seconds of one micro-batch, and of one optimizer step on top."""

    per_micro_batch: float
    per_step: float


def links(job: TrainingJob) -> Links:
    """What connects the job's GPUs: stated, or read from the accelerator's own link."""
    gpu = job.accelerator
    pcie = _PCIE_GB_S.get(gpu.pcie_generation or 4.0, 32.0)
    own = (gpu.link_gb_s_bidirectional or 0.0) / 2
    fabric_wide = own >= 150 and gpu.form_factor in {"sxm", "oam", "chip"}
    use_link = job.interconnect == "nvlink" or (job.interconnect == "auto" and fabric_wide)
    inside = own if use_link and own else pcie
    kind = "nvlink" if use_link and own else "pcie"
    between = 0.0
    domain = 72 if "72-GPU" in gpu.link else 8
    if job.nodes > 1 and job.gpus > domain:
        between = job.fabric_gb_s or _FABRIC_GB_S.get(accelerator_kind(gpu), _ETHERNET_GB_S)
    return Links(kind, inside, between, domain, assumed=between > 0 and job.fabric_gb_s is None)


def communication_seconds(job: TrainingJob, net: Links) -> Communication:
    """Collectives of sharding, of gradients, of tensor parallelism and of expert dispatch."""
    if job.gpus == 1:
        return Communication(0.0, 0.0)
    budget = job.model.budget
    experts = 0.0 if job.adapters else budget.experts / (job.pp * job.ep)
    params = (budget.total() - budget.experts * (job.ep > 1)) / (job.tp * job.pp)
    rate = net.collective_gb_s * _GIGA
    trained = 0.02 * params if job.adapters else params
    gathers = reduces = per_step = 0.0
    if job.strategy in {"fsdp", "zero3"}:
        gathers = 2 * job.base_bytes * params / rate
        reduces = 2.0 * trained / rate
    elif job.strategy != "none":
        per_step = 2 * 2.0 * trained / rate
    expert_step = 0.0
    if job.ep > 1 and job.gpus > job.ep * job.pp:
        expert_step = 2 * 2.0 * experts / (_ATTAINED * net.per_gpu_gb_s(job.gpus // job.pp) * _GIGA)
    exposed = _EXPOSED.get(job.framework.kernels, 1.0)
    busy = exposed * (gathers + reduces) + _tensor_parallel_seconds(job, net) + _dispatch_seconds(job, net)
    return Communication(busy, exposed * per_step + expert_step)


def _tensor_parallel_seconds(job: TrainingJob, net: Links) -> float:
    if job.tp == 1:
        return 0.0
    size = job.micro_tokens * job.model.hidden * 2.0 * (job.tp - 1) / job.tp
    return 0.5 * 8 * size * job.model.layers / job.pp / (_ATTAINED * net.inside_gb_s * _GIGA)


def _dispatch_seconds(job: TrainingJob, net: Links) -> float:
    if job.ep == 1 or not job.model.is_moe:
        return 0.0
    sent = job.micro_tokens / job.tp * job.model.hidden * 2.0 * max(job.model.experts_per_token, 1)
    near = min(1.0, net.domain / job.ep)
    inside = near * (job.ep - 1) / job.ep / net.inside_gb_s
    outside = (1.0 - near) / (net.between_gb_s / GPUS_PER_NODE) if net.between_gb_s else 0.0
    passes = 4.0 * job.model.moe_layers / job.pp
    return _DISPATCH_EXPOSED * passes * sent * (inside + outside) / (_ATTAINED * _GIGA)
