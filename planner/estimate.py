"""The fit model's front door: one request in, one answer out, whatever the workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.errors import GpuBazaarError
from planner.answer import serving_answer
from planner.request import MEDIA, SERVING, Request, parse_request
from planner.serving import fit_serving
from planner.serving_request import prepare


def estimate(request: Request) -> dict[str, Any]:
    """Answer one request; the keys are those of the public answer object.

    Raises:
        RequestError: the request cannot be answered as written (unknown name, missing key, sizes that do not add up).
    """
    if request.workload in SERVING:
        return _serving(request)
    if request.workload in MEDIA:
        from planner.media import estimate_media

        return estimate_media(request)
    from planner.training import estimate_training

    return estimate_training(request)


def estimate_line(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Parse and answer one request object; faults come back as `{"error": {...}}`, and `id` is echoed."""
    echo = {"id": raw["id"]} if raw.get("id") is not None else {}
    try:
        return {**echo, **estimate(parse_request(raw))}
    except GpuBazaarError as error:
        return error_line(raw, error)


def error_line(raw: Mapping[str, Any], error: GpuBazaarError) -> dict[str, Any]:
    """The answer to a request object that cannot be answered."""
    echo = {"id": raw["id"]} if raw.get("id") is not None else {}
    suggestions = list(getattr(error, "suggestions", []))
    return {**echo, "error": {"code": error.code, "message": str(error), "suggestions": suggestions}}


def _serving(request: Request) -> dict[str, Any]:
    ready = prepare(request)
    fit = fit_serving(ready.spec, ready.gpu, ready.layout, ready.case)
    return serving_answer(
        fit,
        workload=request.workload,
        model=ready.spec.model_id,
        gpu=ready.gpu_name,
        assumptions=ready.assumptions,
        confidence=ready.confidence,
    )
