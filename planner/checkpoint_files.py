"""Read what a checkpoint on disk says about itself: config.json, safetensors headers and index, GGUF header.

Only headers are read, never tensors. Formats: https://github.com/huggingface/safetensors#format and
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

_MAX_HEADER_BYTES = 200_000_000
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


def looks_like_path(name: str) -> bool:
    """Whether a model name is meant as a file or folder rather than as an id."""
    if name.startswith(("/", "./", "../", "~")) or name.endswith((".json", ".gguf", ".safetensors")):
        return True
    return Path(name).is_dir()


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Configuration keys found at `path`, with `weight_bytes` (tensor bytes, without headers) where tensors are listed.

    Raises:
        OSError: the file cannot be opened.
        ValueError: it is not a checkpoint that this function knows, or is cut short.
    """
    try:
        return _read(path)
    except (KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
        msg = f"{path.name} does not have the layout of a checkpoint ({type(error).__name__}: {error})"
        raise ValueError(msg) from None


def _read(path: Path) -> dict[str, Any]:
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == ".gguf":
        return read_gguf(path)
    if path.suffix == ".safetensors":
        return {**_config_beside(path), "weight_bytes": safetensors_bytes(path)}
    data = _read_object(path)
    if "weight_map" in data:
        return {**_config_beside(path), "weight_bytes": _indexed_bytes(path, data)}
    return data


def _read_folder(folder: Path) -> dict[str, Any]:
    ggufs = sorted(folder.glob("*.gguf"))
    config_file = folder / "config.json"
    if not config_file.exists():
        if ggufs:
            return read_gguf(ggufs[0], parts=ggufs)
        msg = f"{folder} holds neither config.json nor a .gguf file"
        raise ValueError(msg)
    config = _with_quantization(_read_object(config_file), folder)
    shards = sorted(folder.glob("*.safetensors"))
    index = folder / "model.safetensors.index.json"
    if shards:
        config["weight_bytes"] = sum(safetensors_bytes(shard) for shard in shards)
    elif index.exists():
        config["weight_bytes"] = _indexed_bytes(index, _read_object(index))
    return config


def _config_beside(path: Path) -> dict[str, Any]:
    config = path.parent / "config.json"
    if not config.exists():
        msg = f"{path.name} says how many bytes, not which shape: put the model's config.json beside it"
        raise ValueError(msg)
    return _with_quantization(_read_object(config), path.parent)


def _with_quantization(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """ModelOpt builds may keep what was quantised in a file of its own."""
    beside = folder / "hf_quant_config.json"
    if beside.exists() and not config.get("quantization_config"):
        found = _read_object(beside)
        config["quantization_config"] = {"quant_method": "modelopt", **found.get("quantization", found)}
    return config


def _read_object(path: Path) -> dict[str, Any]:
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        msg = f"{path.name} is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - the content of a file, not an argument
    return data


def _indexed_bytes(index: Path, data: Mapping[str, Any]) -> int:
    total = data.get("metadata", {}).get("total_size")
    if isinstance(total, int | float):
        return int(total)
    shards = {index.parent / name for name in data["weight_map"].values()}
    return sum(safetensors_bytes(shard) for shard in shards)


def safetensors_bytes(path: Path) -> int:
    """Sum of the tensor sizes that a safetensors header lists."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", _exactly(file, 8))
        if length > _MAX_HEADER_BYTES:
            msg = f"{path.name} is not a safetensors file: a header of {length} bytes"
            raise ValueError(msg)
        header = json.loads(_exactly(file, length))
    spans = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
    return sum(int(end) - int(start) for start, end in spans)


def read_gguf(path: Path, parts: list[Path] | None = None) -> dict[str, Any]:
    """Configuration keys, tensor bytes and the commonest quantised tensor type of a GGUF file or its parts."""
    config: dict[str, Any] = {}
    total = 0
    by_type: dict[str, int] = {}
    for part in parts or [path]:
        metadata, tensors = _gguf_header(part)
        config = config or _gguf_config(metadata, tensors)
        for _, shape, kind in tensors:
            name, block, size = GGML_TYPES.get(kind, ("unknown", 1, 2))
            count = math.prod(shape) // block * size
            total += count
            by_type[name] = by_type.get(name, 0) + count
    config["weight_bytes"] = total
    config["gguf_type"] = max(by_type, key=lambda name: by_type[name]) if by_type else "F16"
    config["native_format"] = f"gguf:{config['gguf_type']}"
    return config


def _gguf_config(metadata: Mapping[str, Any], tensors: list[tuple[str, list[int], int]]) -> dict[str, Any]:
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
    shapes = {name: shape for name, shape, _ in tensors}
    embedding = shapes.get("token_embd.weight")
    if embedding and "vocab_size" not in config:
        config["vocab_size"] = embedding[-1]
    config["tie_word_embeddings"] = "output.weight" not in shapes
    config["params_b"] = sum(math.prod(shape) for shape in shapes.values()) / 1e9
    return config


def _gguf_header(path: Path) -> tuple[dict[str, Any], list[tuple[str, list[int], int]]]:
    with path.open("rb") as file:
        if _exactly(file, 4) != _GGUF_MAGIC:
            msg = f"{path.name} is not a GGUF file"
            raise ValueError(msg)
        version, tensor_count, pair_count = struct.unpack("<IQQ", _exactly(file, 20))
        if version < 2:
            msg = f"{path.name}: GGUF version {version} is too old to read"
            raise ValueError(msg)
        metadata: dict[str, Any] = {}
        for _ in range(pair_count):
            key = _text(file)
            (kind,) = struct.unpack("<I", _exactly(file, 4))
            metadata[key] = _value(file, kind)
        tensors = []
        for _ in range(tensor_count):
            name = _text(file)
            (dimensions,) = struct.unpack("<I", _exactly(file, 4))
            shape = list(struct.unpack(f"<{dimensions}Q", _exactly(file, 8 * dimensions)))
            (tensor_kind,) = struct.unpack("<I", _exactly(file, 4))
            _exactly(file, 8)
            tensors.append((name, shape, tensor_kind))
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


def _value(file: BinaryIO, kind: int) -> Any:
    if kind in _SCALARS:
        form = _SCALARS[kind]
        return struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]
    if kind == 8:
        return _text(file)
    if kind != 9:
        msg = f"unknown GGUF value type {kind}"
        raise ValueError(msg)
    inner, count = struct.unpack("<IQ", _exactly(file, 12))
    read: Callable[[], Any] = lambda: _value(file, inner)  # noqa: E731 - one reader for kept and skipped entries
    kept = [read() for _ in range(min(count, _MAX_ARRAY_KEPT))]
    for _ in range(count - len(kept)):
        read()
    return kept


def _text(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    return _exactly(file, length).decode("utf-8", errors="replace")


def _exactly(file: BinaryIO, count: int) -> bytes:
    if count > _MAX_HEADER_BYTES:
        msg = f"a field of {count} bytes: the header is damaged"
        raise ValueError(msg)
    data = file.read(count)
    if len(data) != count:
        msg = "the file ends inside its header"
        raise ValueError(msg)
    return data
