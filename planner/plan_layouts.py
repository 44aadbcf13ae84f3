"""Ways to spread one copy of a model over the GPUs of a shape, and over several machines of it."""

from __future__ import annotations

import functools

from planner.candidates import Shape
from planner.model_config import ModelSpec
from planner.parallel import Layout, illegal

_LAYER_SPLIT_ENGINES = frozenset({"llama.cpp", "transformers"})
_LEAST_NODE = 4


def spans(shape: Shape) -> bool:
    """Whether one copy may span machines of this shape: whole machines, joined by a known fabric."""
    return shape.fabric and shape.node_gpus >= _LEAST_NODE


@functools.lru_cache(maxsize=4096)
def layouts(gpus: int, node_gpus: int, link: str, spec: ModelSpec, group: int, engine: str) -> tuple[Layout, ...]:
    """Ways to spread one copy over `gpus`: the widest legal tensor split; over PCIe, pipelines too."""
    if gpus == 1:
        return (Layout(),)
    nodes = max(1, gpus // node_gpus)
    if engine in _LAYER_SPLIT_ENGINES:
        return (Layout(pp=gpus, nodes=nodes),)
    inside = gpus // nodes
    widths = [tp for tp in range(inside, 0, -1) if inside % tp == 0]
    legal = [
        layout for tp in widths if not illegal(layout := Layout(tp=tp, pp=gpus // tp, nodes=nodes), spec, group, engine)
    ]
    return tuple(legal[:1] if link != "pcie" else legal[:3])
