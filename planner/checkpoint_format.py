"""What format a checkpoint is in, from the quantisation part of its configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.model_layers import whole

_WHOLE_ATTENTION = re.compile(r"(self_attn|linear_attn|attention|\.attn)(\*|\.\*|'|$)|\.q_b?_?proj")
_WHOLE_SHARED = re.compile(r"shared_experts?(\*|\.\*|'|$)")

# Words in the name of a quantiser or of its algorithm, most telling first. W4A8 keeps weights in four bits.
_FORMAT_WORDS = (
    ("w4a", "awq"),
    ("mxfp4", "mxfp4"),
    ("mxfp8", "mxfp8"),
    ("fp8", "fp8"),
    ("float8", "fp8"),
    ("w8a", "int8"),
)
_DTYPE_WORDS = (("fp8", "fp8"), ("float8", "fp8"), ("fp4", "mxfp4"), ("int8", "int8"), ("int4", "int4"))
_BY_BITS = {2: "int2", 3: "int3", 4: "int4", 8: "int8"}


def native_format(config: Mapping[str, Any]) -> str:
    """The weight format of the checkpoint, from quantization_config or the stored data type."""
    stated = config.get("native_format")
    if isinstance(stated, str):
        return stated
    if config.get("expert_dtype") == "fp4":
        return "mxfp4"
    quant = quantisation(config)
    if quant:
        return _quantised_format(quant)
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    return {"float16": "fp16", "float32": "fp32", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}.get(dtype, "bf16")


def _quantised_format(quant: Mapping[str, Any]) -> str:
    """The format by the quantiser's own words: method and algorithm first, then data types, then bits."""
    method = " ".join(str(quant.get(key) or "") for key in ("quant_method", "quant_algo", "quant_type")).casefold()
    text = str(quant).casefold()
    if "nvfp4" in text:
        return "nvfp4"
    if "compressed-tensors" in method or isinstance(quant.get("config_groups"), Mapping):
        return _compressed_tensors_format(quant)
    for word, form in _FORMAT_WORDS:
        if word in method:
            return form
    bits = whole(quant, "bits", "weight_bits", "w_bit", default=_nested_bits(quant))
    for name in ("awq", "gptq"):
        if name in method:
            return name if bits == 4 else _BY_BITS.get(bits, "int8")
    dtypes = set(re.findall(r"'(?:dtype|weights?)': '([a-z0-9_]+)'", text))
    for word, form in _DTYPE_WORDS:
        if any(dtype.startswith(word) for dtype in dtypes):
            return form
    eight = quant.get("load_in_8bit") is True or re.search(r"int8|8bit|eetq", method)
    return "int8" if eight else _BY_BITS.get(bits, "int4")


def _nested_bits(quant: Mapping[str, Any]) -> int:
    """Bits of a quantiser that keeps them one level down (HQQ), else the usual four."""
    found = re.search(r"'nbits': (\d+)", str(quant))
    return int(found[1]) if found else 4


def _compressed_tensors_format(quant: Mapping[str, Any]) -> str:
    groups = quant.get("config_groups")
    weights = [g.get("weights") or {} for g in groups.values()] if isinstance(groups, Mapping) else []
    first: Mapping[str, Any] = weights[0] if weights and isinstance(weights[0], Mapping) else {}
    bits = whole(first, "num_bits", default=8)
    if "mxfp4" in str(quant.get("format") or "").casefold():
        return "mxfp4"
    if first.get("type") == "float":
        return "fp8" if bits == 8 else "mxfp4"
    if bits == 8:
        return "int8"
    return "int4-g32" if whole(first, "group_size", default=128) == 32 else "int4"


def scale_group(config: Mapping[str, Any]) -> int | None:
    """Weights that share a scale along the dimension that tensor parallelism cuts; 0: none, None: not stated."""
    quant = quantisation(config)
    if not quant:
        stated = config.get("fp8_block")
        return int(stated) if isinstance(stated, int) else None
    block = quant.get("weight_block_size")
    if isinstance(block, list) and block and isinstance(block[0], int):
        return block[0]
    groups = quant.get("config_groups")
    first: Any = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    held = weights if isinstance(weights, Mapping) else quant
    for key in ("group_size", "q_group_size"):
        size = held.get(key)
        if isinstance(size, int) and not isinstance(size, bool):
            return max(0, size)
    return 0 if native_format(config) in {"fp8", "int8"} else None


def quantisation(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a configuration says of its quantisation, {} where nothing; ModelOpt writes it one level further down."""
    for key in ("quantization_config", "compression_config"):
        quant = config.get(key)
        if isinstance(quant, Mapping):
            inner = quant.get("quantization")
            return {**quant, **inner} if isinstance(inner, Mapping) else quant
    return {}


def unquantised_classes(config: Mapping[str, Any]) -> frozenset[str]:
    """Tensor classes that quantised builds of this checkpoint keep in 16 bit (`attention_fp8`: in 8 bit)."""
    kept = {"attention_fp8"} if config.get("expert_dtype") == "fp4" else set()
    if "attention" in str(config.get("fp8_unquantised", "")):
        kept.update({"attention", "edge_layers"})
    quant = quantisation(config)
    if quant:
        skipped = str(quant.get("modules_to_not_convert") or quant.get("ignore") or quant.get("exclude_modules") or "")
        if _WHOLE_ATTENTION.search(skipped):
            kept.add("attention")
        if _WHOLE_SHARED.search(skipped):
            kept.add("shared_experts")
    if config.get("native_format") == "int4-g32":
        kept.update({"attention", "shared_experts", "dense_mlp"})
    return frozenset(kept)


def tagged_cache(config: Mapping[str, Any]) -> str | None:
    """The cache format that a quantised checkpoint asks for (ModelOpt kv_cache_quant_algo, kv_cache_scheme)."""
    quant = quantisation(config)
    scheme = quant.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and whole(scheme, "num_bits") == 8:
        return "fp8" if scheme.get("type") == "float" else "int8"
    algorithm = str(quant.get("kv_cache_quant_algo") or "").casefold()
    return algorithm if algorithm in {"fp8", "nvfp4", "int8"} else None
