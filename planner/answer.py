"""The answer object of a serving estimate: plain, JSON-ready, rounded to what the model can know."""

from __future__ import annotations

import math
from typing import Any

from planner.serving import ServingFit

_DIGITS = 5


def rounded(value: float | None, digits: int = _DIGITS) -> float | None:
    """`value` to `digits` significant digits; None and non-finite numbers become None."""
    if value is None or not math.isfinite(value):
        return None
    if value == 0:
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def serving_answer(
    fit: ServingFit, *, workload: str, model: str, gpu: str, assumptions: list[str], confidence: str
) -> dict[str, Any]:
    """The keys that every workload has, then those of serving; sizes in GiB per GPU, times in ms."""
    memory = fit.memory
    speed = fit.speed
    layout = fit.layout
    rate = rounded(speed.output_tokens_s) if speed else None
    return {
        "workload": workload,
        "model": model,
        "gpu": gpu,
        "gpus": layout.gpus,
        "starts": fit.starts,
        "verdict": fit.verdict,
        "required_gib_per_gpu": rounded(memory.required_gib),
        "usable_gib_per_gpu": rounded(memory.usable_gib),
        "headroom_gib_per_gpu": rounded(memory.headroom_gib),
        "breakdown": {
            "weights_gib": rounded(memory.weights_gib),
            "kv_cache_gib": rounded(memory.cache_gib),
            "activations_gib": rounded(memory.activations_gib),
            "graphs_gib": rounded(memory.graphs_gib),
            "context_gib": rounded(memory.context_gib),
            "lora_gib": rounded(memory.lora_gib),
        },
        "bottleneck": fit.bottleneck,
        "confidence": confidence,
        "assumptions": assumptions,
        "reasons": list(fit.reasons),
        "tp": layout.tp,
        "pp": layout.pp,
        "dp": layout.dp,
        "ep": layout.ep,
        "weights_gib_per_gpu": rounded(memory.weights_gib),
        "kv_bytes_per_token": rounded(fit.kv_bytes_per_token, 8),
        "kv_cache_gib_per_gpu": rounded(memory.available_gib),
        "kv_cache_tokens": fit.kv_cache_tokens,
        "max_context": fit.max_context,
        "max_concurrency": fit.max_concurrency,
        "tpot_ms": rounded(speed.tpot_ms) if speed else None,
        "ttft_ms": rounded(speed.ttft_ms) if speed else None,
        "output_tokens_s": rate,
        "output_tokens_s_per_gpu": rounded(speed.output_tokens_s / layout.gpus) if speed else None,
    }
