"""The verdict on a replica's memory: three gates, and the band in which the model does not trust itself."""

from __future__ import annotations

from typing import Any

from planner.serving_memory import Memory

# The model's error band: a verdict closer to the limit than this is `tight`.
TIGHT_GIB = 1.5
TIGHT_SHARE = 0.025


def judge(memory: Memory, reasons: list[dict[str, Any]]) -> tuple[bool, str]:
    """Apply the three gates and the band; appends the memory reasons."""
    room = memory.usable_gib
    fixed = memory.required_gib - memory.cache_gib
    band = max(TIGHT_GIB, TIGHT_SHARE * memory.visible_gib)
    blocked = bool(reasons)
    if memory.weights_gib + memory.lora_gib > room:
        reasons.append(_short("weights_exceed_memory", memory.weights_gib, room))
    elif fixed > room:
        reasons.append(_short("activations_exceed_memory", fixed, room))
    elif fixed + memory.one_sequence_gib > room:
        reasons.append(_short("kv_exceeds_memory", fixed + memory.one_sequence_gib, room))
    elif memory.required_gib > room:
        reasons.append(_short("concurrency_exceeds_memory", memory.required_gib, room))
        return not blocked, "tight" if not blocked and -memory.headroom_gib < band / 2 else "no"
    elif not blocked:
        return True, "fits" if memory.headroom_gib >= band else "tight"
    return False, "no"


def _short(code: str, required: float, usable: float) -> dict[str, Any]:
    values = {
        "required_gib_per_gpu": round(required, 2),
        "usable_gib_per_gpu": round(usable, 2),
        "missing_gib_per_gpu": round(required - usable, 2),
    }
    return {"code": code, "values": values}


def offload_layers(memory: Memory, layers: int) -> dict[str, int]:
    """How many of a card's `layers` would stay on it if the rest ran from host memory, as llama.cpp can.

    Such a run is bound by the host's memory or PCIe and never counts as fitting.
    """
    room = memory.usable_gib - (memory.required_gib - memory.weights_gib)
    on_card = int(room / (memory.weights_gib / layers)) if memory.weights_gib else 0
    return {"layers": layers, "layers_on_gpu": max(0, min(layers, on_card))}
