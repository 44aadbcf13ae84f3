"""LoRA adapters: how many parameters a rank on given modules adds."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.errors import nearest
from planner.models import ModelSpec
from planner.request import RequestError

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": ("q", "k", "v", "o", "gate", "up", "down"),
    "all-linear": ("q", "k", "v", "o", "gate", "up", "down"),
    "attention": ("q", "k", "v", "o"),
    "attn": ("q", "k", "v", "o"),
    "mlp": ("gate", "up", "down"),
    "qkv": ("q", "k", "v"),
    "c_attn": ("q", "k", "v"),
    "wqkv": ("q", "k", "v"),
    "query_key_value": ("q", "k", "v"),
    "qkv_proj": ("q", "k", "v"),
    "gate_up_proj": ("gate", "up"),
    "dense": ("o",),
    "out_proj": ("o",),
    "wo": ("o",),
    "w1": ("gate",),
    "w2": ("down",),
    "w3": ("up",),
    "fc1": ("up",),
    "fc2": ("down",),
    "dense_h_to_4h": ("up",),
    "dense_4h_to_h": ("down",),
}
_SINGLE = frozenset({"q", "k", "v", "o", "gate", "up", "down"})


def target_modules(text: str) -> tuple[str, ...]:
    """The linear modules that a comma-separated target list names, each once.

    Raises:
        RequestError: a name that is no module.
    """
    found: dict[str, None] = {}
    for part in text.split(","):
        name = part.strip().casefold()
        short = name.removesuffix("_proj")
        for module in _GROUPS.get(name, (short,) if short in _SINGLE else ()):
            found[module] = None
        if name and name not in _GROUPS and short not in _SINGLE:
            known = sorted({*_GROUPS, *_SINGLE})
            raise RequestError(
                "bad_value", f"unknown LoRA target {part.strip()!r}; known: {', '.join(known)}", nearest(name, known)
            )
    return tuple(found) or _GROUPS["all"]


def adapter_params(model: ModelSpec, rank: int, targets: str) -> float:
    """Adapter parameters: rank x (inputs + outputs) of every targeted module in every layer.

    Routed experts are left out: they are stored as one fused tensor, which adapters on linear modules do not reach.
    Source: LoRA, https://arxiv.org/abs/2106.09685, section 4.1.
    """
    query, key = model.heads * model.head_dim, model.kv_heads * model.head_dim
    hidden = model.hidden
    width = model.intermediate or model.shared_intermediate
    sizes: dict[str, float] = {
        "q": hidden + query,
        "k": hidden + key,
        "v": hidden + key,
        "o": query + hidden,
        "gate": hidden + width if model.gated_mlp else 0,
        "up": hidden + width,
        "down": width + hidden,
    }
    dense_layers = model.layers if not model.is_moe or model.shared_intermediate else model.layers - model.moe_layers
    total = 0.0
    for module in target_modules(targets):
        layers = dense_layers if module in {"gate", "up", "down"} else (model.attention_layers or model.layers)
        total += layers * sizes[module]
    return rank * total
