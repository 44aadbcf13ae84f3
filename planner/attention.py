"""What one attention layer keeps per token and per sequence: one function per attention kind.

Rules are read from the shapes of `config.json` (Hugging Face transformers, https://huggingface.co/docs/transformers);
nothing here looks at a model's name. Elements become bytes only when a cache format is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

CacheKind = Literal["full", "sliding", "chunked", "latent", "compressed", "state"]

# Bytes of one cached element. Block formats carry their scales: q8_0 holds 32 values in 34 bytes, q4_0 in 18
# (https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h); NVFP4 holds 16 values in 9 bytes.
CACHE_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "int8": 1.0 + 2 / 128,
    "int4": 0.5 + 4 / 128,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
    "nvfp4": 9 / 16,
}
_ALIASES = {"float16": "fp16", "half": "fp16", "f16": "fp16", "bfloat16": "bf16", "f32": "fp32", "float32": "fp32"}
_FP32_BYTES = 4
_HALF_BYTES = 2


def cache_format(name: str) -> str | None:
    """The canonical name of a cache format, None if it is not one that this model knows."""
    folded = name.strip().casefold()
    folded = _ALIASES.get(folded, folded)
    return folded if folded in CACHE_BYTES else None


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers that cache alike.

    `key_dim` and `value_dim` are per KV head; a latent group has one head and no values. `window` is in tokens.
    `indexer_dim` bytes per token and layer belong to a sparse-attention indexer (8-bit keys and a 4-byte scale).
    `state_bytes` is what one layer keeps per running sequence whatever its length.
    """

    kind: CacheKind
    layers: int
    kv_heads: int = 0
    key_dim: int = 0
    value_dim: int = 0
    window: int | None = None
    indexer_dim: int = 0
    compress_ratio: int = 1
    state_bytes: float = 0.0

    def elements_per_token(self) -> float:
        """Cached elements of one token in one layer, before sharding."""
        return self.kv_heads * (self.key_dim + self.value_dim) / self.compress_ratio

    def heads_on_one_rank(self, tp: int) -> int:
        """KV heads that one tensor-parallel rank holds: divided while they last, replicated beyond."""
        if self.kind in {"latent", "compressed"}:
            return self.kv_heads
        return max(1, math.ceil(self.kv_heads / tp))

    def token_bytes(self, element_bytes: float, tp: int = 1) -> float:
        """Bytes of one token in all layers of the group on one tensor-parallel rank."""
        heads = self.heads_on_one_rank(tp)
        per_layer = heads * (self.key_dim + self.value_dim) * element_bytes
        return self.layers * (per_layer + self._indexer_bytes()) / self.compress_ratio

    def _indexer_bytes(self) -> float:
        return self.indexer_dim + 4 if self.indexer_dim else 0.0

    def sequence_state_bytes(self, tp: int = 1) -> float:
        """Bytes of the per-sequence state in all layers of the group on one rank (state heads are sharded)."""
        return self.layers * self.state_bytes / tp

    def tokens_held(self, context: int, lookahead: int = 0) -> int:
        """Tokens that a sequence of `context` occupies; windowed layers also hold the tokens of one prefill chunk.

        vLLM's hybrid allocator budgets window - 1 + max_num_batched_tokens for a sliding layer and
        chunk + max_num_batched_tokens for a chunked one, at most the context
        (https://github.com/vllm-project/vllm/blob/main/vllm/v1/kv_cache_interface.py).
        """
        if self.window is None:
            return context
        return min(context, self.window + lookahead)


def grouped(
    kind: CacheKind, layers: int, kv_heads: int, key_dim: int, value_dim: int, window: int | None = None
) -> CacheGroup:
    """MHA, GQA and MQA: a key and a value vector per KV head; MHA is kv_heads = heads, MQA kv_heads = 1."""
    return CacheGroup(kind, layers, kv_heads, key_dim, value_dim, window)


def latent(layers: int, kv_lora_rank: int, rope_dim: int, indexer_dim: int = 0) -> CacheGroup:
    """Multi-head latent attention: one compressed vector and one rotary key, the same on every rank.

    Source: DeepSeek-V2, https://arxiv.org/abs/2405.04434, section 2.1; indexer: DeepSeek-V3.2 sparse attention.
    """
    return CacheGroup("latent", layers, 1, kv_lora_rank + rope_dim, 0, indexer_dim=indexer_dim)


def compressed(layers: int, head_dim: int, ratio: int, indexer_dim: int = 0) -> CacheGroup:
    """Compressed attention: one entry for each `ratio` tokens, not divided by tensor parallelism."""
    return CacheGroup("compressed", layers, 1, head_dim, 0, indexer_dim=indexer_dim, compress_ratio=ratio)


def linear_state(layers: int, value_heads: int, key_heads: int, key_dim: int, value_dim: int, conv: int) -> CacheGroup:
    """Gated delta and similar linear attention: a key_dim x value_dim FP32 matrix per value head, and the conv tail."""
    matrix = value_heads * key_dim * value_dim * _FP32_BYTES
    tail = max(0, conv - 1) * (2 * key_heads * key_dim + value_heads * value_dim) * _HALF_BYTES
    return CacheGroup("state", layers, state_bytes=matrix + tail)


def mamba_state(layers: int, inner: int, state: int, conv: int, groups: int = 0) -> CacheGroup:
    """Mamba: an inner x state FP32 matrix and the tail of the convolution (inner + 2 x groups x state channels).

    Source: https://arxiv.org/abs/2405.21060 (Mamba-2), https://arxiv.org/abs/2312.00752 (Mamba, groups = 0).
    """
    matrix = inner * state * _FP32_BYTES
    tail = max(0, conv - 1) * (inner + 2 * groups * state) * _HALF_BYTES
    return CacheGroup("state", layers, state_bytes=matrix + tail)


def merge(groups: Iterable[CacheGroup]) -> tuple[CacheGroup, ...]:
    """Add up groups that differ only in their number of layers; groups without layers vanish."""
    layers: dict[CacheGroup, int] = {}
    for group in groups:
        if group.layers > 0:
            key = _with_layers(group, 1)
            layers[key] = layers.get(key, 0) + group.layers
    return tuple(_with_layers(group, count) for group, count in layers.items())


def _with_layers(group: CacheGroup, layers: int) -> CacheGroup:
    return CacheGroup(
        group.kind,
        layers,
        group.kv_heads,
        group.key_dim,
        group.value_dim,
        group.window,
        group.indexer_dim,
        group.compress_ratio,
        group.state_bytes,
    )
