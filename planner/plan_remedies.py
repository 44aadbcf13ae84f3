"""What would make serving fit where it does not: smaller formats, more GPUs, a shorter context, fewer users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from catalog.types import Accelerator
from planner.candidates import Shape
from planner.reasons import Reason, reason
from planner.request import RequestError

if TYPE_CHECKING:
    from planner.plan_serving import ServingPlanner


def remedies_for(planner: ServingPlanner, shape: Shape) -> Iterator[Reason]:
    """Each kind of remedy once, the mildest that works."""
    request, ready = planner.request, planner.ready(shape)
    for weights in smaller_formats(ready.case.weights):
        if _fits_with(planner, shape, weights=weights):
            yield reason("fits_with_weights", weights=weights)
            break
    if ready.case.kv_cache in {"bf16", "fp16"} and _fits_with(planner, shape, kv_cache="fp8"):
        yield reason("fits_with_kv_cache", kv_cache="fp8")
    spread = replace(planner, request=replace(request, gpus=None), splits=True)
    for count in (2, 4, 8):
        wider = replace(shape, gpu_count=count, link=shape.link or _own_link(shape.accelerator))
        if spread.options(wider).options:
            yield reason("fits_on_more_gpus", gpus=count)
            break
    for divisor in (2, 4, 8):
        if request.concurrency and request.concurrency >= divisor:
            users = request.concurrency // divisor
            if _fits_with(planner, shape, concurrency=users):
                yield reason("fits_with_fewer_users", concurrency=users)
                break
    for divisor in (2, 4, 8):
        context = ready.case.context // divisor
        if context >= 1024 and _fits_with(planner, shape, context=context, input_tokens=None, output_tokens=None):
            yield reason("fits_with_shorter_context", context=context)
            break


def _fits_with(planner: ServingPlanner, shape: Shape, **changes: Any) -> bool:
    try:
        other = replace(planner, request=replace(planner.request, **changes))
        return bool(other.options(shape).options)
    except RequestError:
        return False


def smaller_formats(weights: str) -> tuple[str, ...]:
    """Weight formats that take less room than this one, largest first."""
    order = ("bf16", "fp8", "int8", "awq", "nvfp4", "gguf:Q4_K_M")
    if weights in {"bf16", "fp16", "fp32"}:
        return order[1:]
    return order[3:] if weights in {"fp8", "int8"} else ()


def _own_link(accelerator: Accelerator) -> str:
    return "nvlink" if "nvlink" in accelerator.link.casefold() else "pcie"
