"""The verdict on a replica's memory: three gates, and the band in which the model does not trust itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.engines import EngineRule
from planner.model_config import ModelSpec
from planner.parallel import Layout
from planner.serving_memory import Memory, activation_gib, cache_need

# The model's error band: a verdict closer to the limit than this is `tight`.
TIGHT_GIB = 1.5
TIGHT_SHARE = 0.025
MEMORY_REASONS = frozenset(
    {"weights_exceed_memory", "activations_exceed_memory", "kv_exceeds_memory", "concurrency_exceeds_memory"}
)


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


def smaller_batch(
    spec: ModelSpec, rule: EngineRule, layout: Layout, element_bytes: float, memory_with: Callable[..., Memory]
) -> dict[str, int]:
    """The engine's defaults for small cards, if a large card that is too small with its own would do with those.

    Engines schedule more tokens and sequences at once on large cards, which takes memory: at the defaults a model may
    start on an A100 of 80 GB and not on an H100 of 80 GB. At equal settings a bigger card never does worse.

    Args:
        spec: the model.
        rule: the engine's habits.
        layout: the split.
        element_bytes: bytes of one cached element.
        memory_with: `memory_of` but for `need` and `activations_gib`.

    Returns:
        Values to show beside the reason; {} where the batch is not what stands in the way.
    """
    smaller = rule.small_batched < rule.large_batched or rule.small_sequences < rule.large_sequences
    if not rule.chunked_prefill or not smaller:
        return {}
    need = cache_need(spec, rule, layout, element_bytes, rule.small_batched)
    activations = activation_gib(spec, rule, layout.tp, rule.small_batched, rule.small_sequences)
    if judge(memory_with(need=need, activations_gib=activations), [])[1] == "no":
        return {}
    return {
        "fits_with_max_batched_tokens": rule.small_batched,
        "fits_with_max_sequences": rule.small_sequences,
    }
