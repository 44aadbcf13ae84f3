"""Weight bytes on one GPU: format rules by tensor class, then sharding, padding and replication.

Formats and their sources are in `data/weight_formats.csv` and `data/gguf_types.csv`. A checkpoint whose true byte count
is known (headers read, or stated) overrides the sum; the rules then only say how it is divided.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.datafiles import data_rows
from planner.model_config import ModelSpec
from planner.parallel import Layout

GIB = 2**30
_HALF = 2.0
# vLLM pads the vocabulary of embedding and output layer to a multiple of 64 (VocabParallelEmbedding).
_VOCAB_PAD = 64
# MXFP4 kernels pad the hidden size to a multiple of 256, Marlin also a rank's expert width to one of 128
# (vllm/model_executor/layers/quantization/mxfp4.py).
_MXFP4_WIDTH_PAD = 128
# Weights of one block of llama.cpp's k-quants.
_SUPER_BLOCK = 256
_MXFP4_HIDDEN_PAD = 256


# Published NVFP4 builds (hf_quant_config.json at huggingface.co/nvidia): of mixtures of experts only the experts are
# quantised, of dense linear-attention hybrids the feed-forward part, with attention in FP8; of plain dense models all
# but the output layer.
_NVFP4_EXPERTS_ONLY = frozenset({"attention", "shared_experts"})


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Bytes of one weight by class of tensor, and the arithmetic that the format allows.

    Rows that are no whole number of a k-quant's 256-weight blocks are stored in a wider type: `ragged_down` bytes more
    for each weight of a feed-forward output matrix, `ragged` for any other (convert_incompatible_tensor,
    https://github.com/ggml-org/llama.cpp/blob/master/src/llama-quant.cpp).
    """

    name: str
    body: float
    embedding: float
    output: float
    activation: str
    group: int = 0
    ragged_down: float = 0.0
    ragged: float = 0.0


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """Weights of one replica as they lie on its GPUs, in bytes.

    `per_gpu` is the fullest GPU; `stream` what one decode step reads on one tensor-parallel rank over all pipeline
    stages, without the routed experts, whose bytes on that rank are `experts`; `embedding` is read by row only.
    """

    total: float
    per_gpu: float
    stream: float
    experts: float
    parts: Mapping[str, float]


class UnknownFormat(ValueError):
    """A weight format that no rule describes."""


@functools.cache
def weight_format(name: str) -> WeightFormat:
    """The rule of a format name such as `fp8`, `awq`, `gguf:Q4_K_M`.

    Raises:
        UnknownFormat: with the names that are known.
    """
    folded = name.strip()
    if folded.casefold().startswith("gguf"):
        kind = folded.partition(":")[2].upper() or "Q4_K_M"
        for row in data_rows("gguf_types.csv"):
            if row["type"] == kind:
                body, embedding, output = (float(row[f"{part}_bits"]) / 8 for part in ("body", "embedding", "output"))
                down, other = float(row["ragged_down_bits"]) / 8, float(row["ragged_bits"]) / 8
                return WeightFormat(f"gguf:{kind}", body, embedding, output, "bf16", 0, down, other)
    for row in data_rows("weight_formats.csv"):
        if row["format"] == folded.casefold():
            size = float(row["bytes_per_weight"])
            edge = max(size, _HALF)
            return WeightFormat(row["format"], size, edge, edge, row["activation"], int(row["group"]))
    raise UnknownFormat(name)


def known_formats() -> list[str]:
    """Every name that `weight_format` accepts, with `native`."""
    plain = [row["format"] for row in data_rows("weight_formats.csv")]
    return ["native", *plain, *(f"gguf:{row['type']}" for row in data_rows("gguf_types.csv"))]


@functools.lru_cache(maxsize=4096)
def plan_weights(
    spec: ModelSpec, form: WeightFormat, layout: Layout, host_embedding: bool = False, marlin: bool = False
) -> WeightPlan:
    """Bytes per GPU of `spec` in `form` under `layout`.

    Args:
        spec: the model.
        form: the weight format.
        layout: how the replica is split.
        host_embedding: the embedding table stays in host memory (llama.cpp with all layers offloaded).
        marlin: MXFP4 through the Marlin kernels, which pad the hidden size too.
    """
    parts = _part_bytes(spec, form, marlin)
    if spec.weight_bytes:
        parts = _scaled(parts, spec.weight_bytes, spec, form)
    total = sum(parts.values())
    tp, pp = layout.tp, layout.pp
    expert_ranks = layout.ep if layout.ep > 1 else tp
    pad = _vocab_padding(spec, tp)
    kv_copies = max(1.0, tp / spec.kv_heads) if spec.kv_heads and not spec.latent_attention else 1.0
    block = (
        parts["attention"] / tp
        + parts["kv_projection"] * kv_copies / tp
        + parts["replicated"]
        + parts["state_mixers"] / tp
        + parts["dense_mlp"] / tp
        + parts["shared_experts"] / tp
    )
    experts = parts["experts"] / expert_ranks
    embedding = 0.0 if host_embedding else parts["embedding"] * pad / tp
    output = parts["lm_head"] * pad / tp
    tower = parts["tower"] / tp
    if spec.tie_embeddings and host_embedding:
        output = parts["embedding"] * pad / tp
    per_gpu = _fullest_stage(spec.layers, pp, block + experts, embedding + tower, output)
    read_output = output if not spec.tie_embeddings else parts["embedding"] / tp
    return WeightPlan(total, per_gpu, block + read_output, experts, parts)


def _fullest_stage(layers: int, pp: int, blocks: float, first: float, last: float) -> float:
    """Bytes of the fullest pipeline stage. The output layer counts as a layer when stages are cut."""
    if pp == 1:
        return blocks + first + last
    per_layer = blocks / layers
    most = math.ceil(layers / pp)
    least = max(0, layers - math.ceil((layers + 1) * (pp - 1) / pp))
    return max(most * per_layer + first, max(least, layers // pp if first else least) * per_layer + last)


def _vocab_padding(spec: ModelSpec, tp: int) -> float:
    multiple = _VOCAB_PAD * tp if tp > 1 else _VOCAB_PAD
    return math.ceil(spec.vocab / multiple) * multiple / spec.vocab


@functools.lru_cache(maxsize=1024)
def _part_bytes_cached(spec: ModelSpec, form: WeightFormat, marlin: bool) -> tuple[tuple[str, float], ...]:
    budget = spec.budget
    body = form.body
    kept = spec.unquantised if body < _HALF and not form.name.startswith("gguf") else frozenset()
    if form.name == "nvfp4" and spec.is_moe:
        kept |= _NVFP4_EXPERTS_ONLY
    attention = mixers = body
    if "attention" in kept:
        attention = mixers = _HALF
    elif "attention_fp8" in kept or (form.name in {"nvfp4", "mxfp4"} and spec.state_layers):
        attention = mixers = 1.0
    shared = _HALF if "shared_experts" in kept else 1.0 if "attention_fp8" in kept else body
    edge = _edge_share(spec) if "edge_layers" in kept else 0.0
    mlp = _HALF if "dense_mlp" in kept else body + edge * (_HALF - body)
    wide = form.ragged if spec.hidden % _SUPER_BLOCK else 0.0
    if form.name == "gguf:MXFP4":
        attention = mixers = shared = mlp = form.output
    attention, mixers = attention + wide, mixers + wide
    mlp += _ragged(spec, form, spec.intermediate)
    shared += _ragged(spec, form, spec.moe_intermediate)
    return (
        ("embedding", budget.embedding * (_embedding_bytes(spec, form) + wide)),
        ("lm_head", budget.lm_head * (form.output + wide)),
        ("attention", budget.attention * attention),
        ("kv_projection", budget.kv_projection * attention),
        (
            "replicated",
            budget.replicated * (body if spec.latent_attention and form.name == "fp8" else max(_HALF, body)),
        ),
        ("state_mixers", budget.state_mixers * mixers),
        ("dense_mlp", budget.dense_mlp * mlp),
        (
            "experts",
            budget.experts
            * (body + edge * (_HALF - body) + _ragged(spec, form, spec.moe_intermediate))
            * _expert_padding(spec, form, marlin),
        ),
        ("shared_experts", budget.shared_experts * shared),
        ("tower", budget.tower * max(_HALF, body)),
    )


def _ragged(spec: ModelSpec, form: WeightFormat, width: int) -> float:
    """Bytes that a feed-forward weight of this width takes more on average, its matrices taken together."""
    matrices = 3 if spec.gated_mlp else 2
    down = form.ragged_down if width % _SUPER_BLOCK else 0.0
    others = form.ragged if spec.hidden % _SUPER_BLOCK else 0.0
    return (down + (matrices - 1) * others) / matrices


def _embedding_bytes(spec: ModelSpec, form: WeightFormat) -> float:
    """Bytes of one embedding weight: where the output layer shares it, llama.cpp quantises it as the output layer.

    Source: llama_tensor_get_type, https://github.com/ggml-org/llama.cpp/blob/master/src/llama-quant.cpp.
    """
    return max(form.embedding, form.output) if spec.tie_embeddings else form.embedding


def _part_bytes(spec: ModelSpec, form: WeightFormat, marlin: bool) -> dict[str, float]:
    return dict(_part_bytes_cached(spec, form, marlin))


def _edge_share(spec: ModelSpec) -> float:
    return min(1.0, 2 / spec.layers)


def _expert_padding(spec: ModelSpec, form: WeightFormat, marlin: bool) -> float:
    if form.name != "mxfp4" or not spec.moe_intermediate:
        return 1.0
    hidden = math.ceil(spec.hidden / _MXFP4_HIDDEN_PAD) * _MXFP4_HIDDEN_PAD / spec.hidden
    if not marlin:
        return hidden
    return hidden * math.ceil(spec.moe_intermediate / _MXFP4_WIDTH_PAD) * _MXFP4_WIDTH_PAD / spec.moe_intermediate


def _scaled(parts: dict[str, float], true_bytes: float, spec: ModelSpec, form: WeightFormat) -> dict[str, float]:
    """Stretch the classes to a byte count that was read, when the format asked for is the checkpoint's own."""
    if form.name != spec.native_format and not (form.name.startswith("gguf") and spec.gguf_type):
        return parts
    factor = true_bytes / sum(parts.values())
    return {name: value * factor for name, value in parts.items()}
