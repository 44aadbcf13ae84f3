"""What format a checkpoint is in, from the quantisation part of its configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.model_layers import whole

_WHOLE_ATTENTION = re.compile(r"(self_attn|linear_attn|attention|\.attn)(\*|\.\*|'|$)|\.q_b?_?proj")
_WHOLE_SHARED = re.compile(r"shared_experts?(\*|\.\*|'|$)")


def native_format(config: Mapping[str, Any]) -> str:
    """The weight format of the checkpoint, from quantization_config or the stored data type."""
    stated = config.get("native_format")
    if isinstance(stated, str):
        return stated
    if config.get("expert_dtype") == "fp4":
        return "mxfp4"
    quant = config.get("quantization_config")
    if isinstance(quant, Mapping):
        return _quantised_format(quant)
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    return {"float16": "fp16", "float32": "fp32", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}.get(dtype, "bf16")


def _quantised_format(quant: Mapping[str, Any]) -> str:
    method = str(quant.get("quant_method") or quant.get("quant_algo") or "").casefold()
    bits = whole(quant, "bits", "weight_bits", "w_bit", default=4)
    text = str(quant).casefold()
    if "nvfp4" in text:
        return "nvfp4"
    if method in {"fp8", "fbgemm_fp8", "mxfp4", "mxfp8"} or "fp8" in method:
        return "fp8" if "fp8" in method else method
    if method in {"awq", "gptq"}:
        return method if bits == 4 else "int8"
    if method == "compressed-tensors":
        return _compressed_tensors_format(quant, text)
    return "int8" if bits == 8 or "load_in_8bit': true" in text else "int4"


def _compressed_tensors_format(quant: Mapping[str, Any], text: str) -> str:
    if "mxfp4" in text:
        return "mxfp4"
    if "'type': 'float'" in text and "'num_bits': 8" in text:
        return "fp8"
    groups = quant.get("config_groups")
    weights: Mapping[str, Any] = {}
    if isinstance(groups, Mapping) and groups:
        weights = next(iter(groups.values())).get("weights") or {}
    if whole(weights, "num_bits", default=8) == 8:
        return "int8"
    return "int4-g32" if whole(weights, "group_size", default=128) == 32 else "int4"


def unquantised_classes(config: Mapping[str, Any]) -> frozenset[str]:
    """Tensor classes that quantised builds of this checkpoint keep in 16 bit (`attention_fp8`: in 8 bit)."""
    kept = {"attention_fp8"} if config.get("expert_dtype") == "fp4" else set()
    if "attention" in str(config.get("fp8_unquantised", "")):
        kept.update({"attention", "edge_layers"})
    quant = config.get("quantization_config")
    if isinstance(quant, Mapping):
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
    quant = config.get("quantization_config")
    if not isinstance(quant, Mapping):
        return None
    scheme = quant.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and whole(scheme, "num_bits") == 8:
        return "fp8" if scheme.get("type") == "float" else "int8"
    algorithm = str(quant.get("kv_cache_quant_algo") or "").casefold()
    return algorithm if algorithm in {"fp8", "nvfp4", "int8"} else None
