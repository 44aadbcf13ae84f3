"""Plans for image, video and audio: each GPU makes its own items, so instances multiply the rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.types import Accelerator
from planner.candidates import Shape
from planner.cost import Usage
from planner.cost_rates import rate
from planner.cost_spot import restarted
from planner.cost_start import cold_start, working_hours
from planner.media import MediaCandidate, candidate_media
from planner.options import Option, Outcome
from planner.plan_hardware import software_refusal
from planner.policy import DEFAULT_MEDIA_ITEMS, Policy
from planner.reasons import Reason, reason
from planner.request import Request

_GIB_TO_GB = 2**30 / 1e9
_DEFAULT_VIDEO_SECONDS = 5.0


@dataclass(slots=True)
class MediaPlanner:
    """image, video and audio."""

    request: Request
    policy: Policy
    _fits: dict[Accelerator, MediaCandidate] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """Images, clips or tracks of the job."""
        return self.request.items or DEFAULT_MEDIA_ITEMS

    def _fit(self, accelerator: Accelerator) -> MediaCandidate:
        found = self._fits.get(accelerator)
        if found is None:
            found = self._fits[accelerator] = candidate_media(self.request, accelerator)
        return found

    def options(self, shape: Shape) -> Outcome:
        """All GPUs of as many instances as the deadline needs, one where there is none."""
        refusal = software_refusal(shape.accelerator, self.request)
        if refusal is not None:
            return Outcome(refusal=refusal)
        fit = self._fit(shape.accelerator)
        if fit.verdict == "no":
            short = fit.required_gib - fit.usable_gib
            why = reason(
                "media_exceeds_memory",
                required_gib_per_gpu=round(fit.required_gib, 2),
                usable_gib_per_gpu=round(fit.usable_gib, 2),
                missing_gib_per_gpu=round(short, 2),
            )
            return Outcome(refusal={**why, "gpus": 1}, missing_gib=short, usable_gib=fit.usable_gib)
        together = self.request.tp or 1
        used = min(shape.gpu_count, self.request.gpus or shape.gpu_count)
        if together > used:
            return Outcome(refusal=reason("loosely_coupled", gpus=together, instance_gpus=shape.gpu_count))
        lanes = used // together
        hours = self.items * fit.seconds_per_item / lanes / 3600
        deadline = self.policy.deadline_h
        size_gb = fit.required_gib * _GIB_TO_GB
        left_h = working_hours(deadline, size_gb, self.policy.cold_start) if deadline else math.inf
        instances = max(1, math.ceil(hours / left_h)) if math.isfinite(left_h) else 1
        hours /= instances
        return Outcome((self._option(shape, fit, lanes, instances, hours),))

    def _option(self, shape: Shape, fit: MediaCandidate, lanes: int, instances: int, hours: float) -> Option:
        warnings: tuple[Reason, ...] = ()
        if len(shape.candidates) > 1:
            warnings = (reason("planned_on_least", gpu=shape.gpu, candidates=list(shape.candidates)),)
        size_gb = fit.required_gib * _GIB_TO_GB
        return Option(
            shape=shape,
            verdict=fit.verdict,
            instances=instances,
            replicas=lanes * instances,
            tp=self.request.tp or 1,
            dp=lanes,
            required_gib=fit.required_gib,
            usable_gib=fit.usable_gib,
            seconds_per_item=fit.seconds_per_item,
            hours=hours,
            latency_ms=hours * 3.6e6,
            disk_gb=float(math.ceil(size_gb * float(rate("storage_factor")))),
            load_gb=size_gb,
            egress_gb=self._egress_gb(),
            bottleneck="compute",
            warnings=warnings,
            memory={"required_gib": fit.required_gib, "usable_gib": fit.usable_gib},
            speed={"seconds_per_item": fit.seconds_per_item, "items": float(self.items), "lanes": float(lanes)},
        )

    def _egress_gb(self) -> float | None:
        """What the made items weigh; None where their number was not stated, and nothing for text."""
        if self.request.items is None:
            return None
        if self.request.workload == "image":
            pixels = (self.request.width or 1024) * (self.request.height or 1024) / 1024**2
            return self.items * float(rate("gib_per_image")) * pixels * _GIB_TO_GB
        if self.request.workload == "video":
            seconds = self.request.seconds or _DEFAULT_VIDEO_SECONDS
            return self.items * float(rate("gib_per_video_second")) * seconds * _GIB_TO_GB
        return None

    def usage(self, option: Option, offer: Mapping[str, Any]) -> Usage | Reason:
        """The job once; on spot each interruption costs a start and half an item."""
        start = cold_start(offer, option.load_gb, self.policy.cold_start)
        interruptions = None
        if offer["purchase_option"] == "spot":
            lost_s = (option.seconds_per_item or 0.0) / 2
            interruptions = restarted(offer["interruption_rate"], start.total_s, lost_s, instances=option.instances)
            if not interruptions.feasible:
                return reason("spot_too_interrupted", overhead=interruptions.overhead)
        stated = self.policy.storage_gb
        return Usage(
            monthly=False,
            instances=option.instances,
            hours=option.hours or 0.0,
            starts=1.0,
            storage_gb=stated if stated is not None else option.disk_gb,
            storage_shared=stated is not None,
            egress_gb=self.policy.egress_gb if self.policy.egress_gb is not None else option.egress_gb,
            addresses=False,
            start=start,
            interruptions=interruptions,
            disk_survives=start.kind != "attached_volume",
        )

    def resolved(self) -> dict[str, Any]:
        """The amount of work as planned."""
        return {"items": self.items}

    def assumptions(self) -> list[str]:
        """What was assumed beside the fit model."""
        said = ["disk for weights is sized by the memory that they peak at"]
        if self.request.items is None:
            said.append(f"{DEFAULT_MEDIA_ITEMS} items (none stated)")
        return said

    def remedies(self, shape: Shape) -> list[Reason]:
        """Smaller formats and offloading that would fit this card."""
        from dataclasses import replace

        found: list[Reason] = []
        for key, value in (("quant", "fp8"), ("quant", "nf4"), ("offload", "model"), ("vae_tiling", True)):
            if getattr(self.request, key) is not None:
                continue
            fit = candidate_media(replace(self.request, **{key: value}), shape.accelerator)  # type: ignore[arg-type]
            if fit.verdict != "no":
                found.append(reason(f"fits_with_{key}", value=value))
        return found[:2]
