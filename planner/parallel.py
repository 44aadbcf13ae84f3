"""How a replica is split over GPUs, and whether that split is legal for the model, the format and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.model_config import ModelSpec
from planner.request import Request, RequestError

Reason = dict[str, Any]
_LAYER_SPLIT_ENGINES = frozenset({"llama.cpp", "transformers"})


@dataclass(frozen=True, slots=True)
class Layout:
    """Tensor, pipeline, data and expert parallelism of one replica, and the machines it spans.

    `ep` is the number of ranks that the routed experts are spread over; 1 means they are cut by tensor parallelism.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    nodes: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of the replica."""
        return self.tp * self.pp * self.dp


def layout_of(request: Request, spec: ModelSpec, group: int, engine: str) -> tuple[Layout, list[str]]:
    """The layout a request asks for, or the best legal one for its number of GPUs, with what was assumed.

    Raises:
        RequestError: tp x pp x dp does not match gpus.
    """
    nodes = request.nodes or 1
    stated = [n for n in (request.tp, request.pp, request.dp) if n is not None]
    if not stated:
        return _default_layout(request, spec, group, engine, nodes)
    tp, pp, dp = request.tp or 1, request.pp or 1, request.dp or 1
    gpus = request.gpus or tp * pp * dp
    assumed: list[str] = []
    if gpus != tp * pp * dp:
        tp, pp, dp, assumed = _completed(request, gpus, (tp, pp, dp))
    return Layout(tp, pp, dp, request.ep or 1, nodes), assumed


def _completed(request: Request, gpus: int, stated: tuple[int, int, int]) -> tuple[int, int, int, list[str]]:
    """Fill the parallel sizes that were left open; a product that cannot reach gpus is refused."""
    tp, pp, dp = stated
    rest, remainder = divmod(gpus, tp * pp * dp)
    open_sizes = [name for name in ("dp", "tp", "pp") if getattr(request, name) is None]
    if remainder or rest < 1 or not open_sizes:
        raise RequestError(
            "inconsistent_layout",
            f"tp x pp x dp = {tp} x {pp} x {dp} = {tp * pp * dp} does not make {gpus} GPUs; leave one of them out",
        )
    if open_sizes[0] == "dp":
        return tp, pp, rest, [f"dp = {rest}: {gpus} GPUs hold {rest} copies of tp {tp} x pp {pp}"]
    if open_sizes[0] == "tp":
        return rest, pp, dp, [f"tp = {rest}: {gpus} GPUs over pp {pp} x dp {dp}"]
    return tp, rest, dp, [f"pp = {rest}: {gpus} GPUs over tp {tp} x dp {dp}"]


def _default_layout(request: Request, spec: ModelSpec, group: int, engine: str, nodes: int) -> tuple[Layout, list[str]]:
    gpus = request.gpus or 1
    ep = request.ep or 1
    if gpus == 1:
        return Layout(ep=ep, nodes=nodes), []
    if engine in _LAYER_SPLIT_ENGINES:
        return Layout(pp=gpus, nodes=nodes), [f"layers split over {gpus} GPUs (pp = {gpus}), as {engine} does"]
    for tp in sorted((n for n in range(1, gpus + 1) if gpus % n == 0), reverse=True):
        layout = Layout(tp, gpus // tp, 1, ep, nodes)
        if not illegal(layout, spec, group, engine):
            if layout.pp == 1:
                return layout, [f"tp = {tp}: one replica over all {gpus} GPUs"]
            return layout, [f"tp = {tp}, pp = {layout.pp}: the widest legal split of {gpus} GPUs"]
    return Layout(gpus, 1, 1, ep, nodes), [f"tp = {gpus}: one replica over all {gpus} GPUs"]


def illegal(layout: Layout, spec: ModelSpec, group: int, engine: str) -> list[Reason]:
    """Every reason for which the model cannot be split so.

    Args:
        layout: the split.
        spec: the model.
        group: weights that share a scale along the split dimension (0: none).
        engine: serving engine; those that split by layers only are not bound by head counts.
    """
    reasons: list[Reason] = []
    tp = layout.tp
    if tp > 1 and engine not in _LAYER_SPLIT_ENGINES:
        reasons += _tensor_reasons(tp, spec, group, layout.ep)
    if layout.pp > spec.layers:
        reasons.append(_split("layers", spec.layers, "pp", layout.pp))
    if layout.ep > 1:
        if not spec.is_moe:
            reasons.append(_split("experts", 0, "ep", layout.ep))
        elif spec.experts % layout.ep:
            reasons.append(_split("experts", spec.experts, "ep", layout.ep))
        if layout.ep not in {tp, layout.dp, tp * layout.dp}:
            reasons.append(_split("ranks", tp * layout.dp, "ep", layout.ep))
    return reasons


def _tensor_reasons(tp: int, spec: ModelSpec, group: int, ep: int) -> list[Reason]:
    reasons: list[Reason] = []
    if spec.heads % tp:
        reasons.append(_split("heads", spec.heads, "tp", tp))
    grouped = {g.kv_heads for g in spec.cache if g.kind in {"full", "sliding", "chunked"} and g.kv_heads}
    reasons += [_split("kv_heads", heads, "tp", tp) for heads in sorted(grouped) if heads % tp and tp % heads]
    dense = (spec.quantised_intermediate if group > 1 else 0) or spec.intermediate
    widths = [("intermediate", dense)] if spec.budget.dense_mlp else []
    if spec.moe_intermediate and ep == 1:
        widths.append(("moe_intermediate", spec.moe_intermediate))
    for name, width in widths:
        if width % tp:
            reasons.append(_split(name, width, "tp", tp))
        elif group > 1 and (width // tp) % group:
            reasons.append(_split(name, width, "tp", tp, block=group))
    return reasons


def _split(dimension: str, size: int, axis: str, ways: int, block: int | None = None) -> Reason:
    values: dict[str, Any] = {"dimension": dimension, "size": size, axis: ways}
    if block:
        values["block"] = block
    return {"code": "split_illegal", "values": values}
