"""The header of a GGUF file: metadata of the model, then name, shape and type of each tensor.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from catalog.header_bytes import Stream, exactly

_MAX_ARRAY_KEPT = 4096
_GGUF_MAGIC = b"GGUF"
# Block size in values and bytes of a GGML tensor type, by its number in the file format.
GGML_TYPES: Mapping[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}
_GGUF_KEYS: Mapping[str, str] = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "v_head_dim",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "attention.sliding_window": "sliding_window",
    "rope.dimension_count": "qk_rope_head_dim",
    "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "full_attention_interval": "full_attention_interval",
    "ssm.state_size": "ssm_state_size",
    "ssm.conv_kernel": "conv_kernel",
}


def read_gguf_parts(parts: Iterable[tuple[str, Stream]]) -> dict[str, Any]:
    """Configuration keys, tensor bytes and the tensor type with the most bytes, of a GGUF file or of all its parts.

    Args:
        parts: file names, for messages, and the files from their first byte on; the first part has the metadata.

    Raises:
        ValueError: it is no GGUF file, or it is cut short.
    """
    config: dict[str, Any] = {}
    shapes: dict[str, list[int]] = {}
    by_type: dict[str, int] = {}
    for name, stream in parts:
        metadata, tensors = _header(stream, name)
        config = config or _shape_keys(metadata)
        for tensor, shape, kind in tensors:
            shapes[tensor] = shape
            type_name, block, size = GGML_TYPES.get(kind, ("unknown", 1, 2))
            by_type[type_name] = by_type.get(type_name, 0) + math.prod(shape) // block * size
    config |= _tensor_keys(config, shapes)
    config["weight_bytes"] = sum(by_type.values())
    config["gguf_type"] = max(by_type, key=lambda name: by_type[name]) if by_type else "F16"
    config["native_format"] = f"gguf:{config['gguf_type']}"
    return config


def _shape_keys(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata under the names that config.json uses."""
    architecture = metadata.get("general.architecture", "")
    config: dict[str, Any] = {"model_type": architecture}
    for key, target in _GGUF_KEYS.items():
        value = metadata.get(f"{architecture}.{key}")
        if isinstance(value, list) and value:
            value = max(value)
        if isinstance(value, int | float):
            config[target] = int(value)
    if "kv_lora_rank" not in config:
        config.pop("qk_rope_head_dim", None)
    return config


def _tensor_keys(config: Mapping[str, Any], shapes: Mapping[str, list[int]]) -> dict[str, Any]:
    """What only the tensors of all parts together tell."""
    found: dict[str, Any] = {
        "tie_word_embeddings": "output.weight" not in shapes,
        "params_b": sum(math.prod(shape) for shape in shapes.values()) / 1e9,
    }
    embedding = shapes.get("token_embd.weight")
    if embedding and "vocab_size" not in config:
        found["vocab_size"] = embedding[-1]
    return found


def _header(stream: Stream, name: str) -> tuple[dict[str, Any], list[tuple[str, list[int], int]]]:
    if exactly(stream, 4) != _GGUF_MAGIC:
        msg = f"{name} is not a GGUF file"
        raise ValueError(msg)
    version, tensor_count, pair_count = struct.unpack("<IQQ", exactly(stream, 20))
    if version < 2:
        msg = f"{name}: GGUF version {version} is too old to read"
        raise ValueError(msg)
    metadata: dict[str, Any] = {}
    for _ in range(pair_count):
        key = _text(stream)
        (kind,) = struct.unpack("<I", exactly(stream, 4))
        metadata[key] = _value(stream, kind)
    tensors = []
    for _ in range(tensor_count):
        tensor = _text(stream)
        (dimensions,) = struct.unpack("<I", exactly(stream, 4))
        shape = list(struct.unpack(f"<{dimensions}Q", exactly(stream, 8 * dimensions)))
        (tensor_kind,) = struct.unpack("<I", exactly(stream, 4))
        exactly(stream, 8)
        tensors.append((tensor, shape, tensor_kind))
    return metadata, tensors


_SCALARS: Mapping[int, str] = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}


def _value(file: Stream, kind: int) -> Any:
    if kind in _SCALARS:
        form = _SCALARS[kind]
        return struct.unpack(form, exactly(file, struct.calcsize(form)))[0]
    if kind == 8:
        return _text(file)
    if kind != 9:
        msg = f"unknown GGUF value type {kind}"
        raise ValueError(msg)
    inner, count = struct.unpack("<IQ", exactly(file, 12))
    read: Callable[[], Any] = lambda: _value(file, inner)  # noqa: E731 - one reader for kept and skipped entries
    kept = [read() for _ in range(min(count, _MAX_ARRAY_KEPT))]
    for _ in range(count - len(kept)):
        read()
    return kept


def _text(file: Stream) -> str:
    (length,) = struct.unpack("<Q", exactly(file, 8))
    return exactly(file, length).decode("utf-8", errors="replace")
