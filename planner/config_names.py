"""One spelling for the many that configurations use, and what their classes assume where a key is left out.

A saved `config.json` states only what differs from the defaults of its class, so a missing key is not a missing fact:
`data/config_defaults.json` holds those defaults by `model_type`, with their source.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

# Spellings of one size, the usual one first.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embed", "model_dim"),
    "num_hidden_layers": ("num_transformer_layers", "num_decoder_layers", "decoder_layers"),
    "num_attention_heads": ("decoder_attention_heads",),
    "intermediate_size": ("d_ff", "decoder_ffn_dim"),
    "num_key_value_heads": ("kv_n_heads", "num_attention_groups", "num_query_groups"),
    "head_dim": ("d_kv",),
    "num_experts_per_tok": ("moe_k", "moe_top_k"),
    "n_shared_experts": ("num_shared_expert",),
    "sliding_window": (
        "sliding_window_size",
        "attention_window_size",
        "window_size",
        "local_attention",
        "local_attention_window_size",
        "swa_window_size",
    ),
    "max_position_embeddings": ("max_seq_len", "max_sequence_length", "n_ctx", "model_max_length"),
}
# Parts of the configuration that hold sizes of their own (MPT and DBRX; the native files of Mistral).
_PARTS = ("attn_config", "ffn_config", "moe")
# Sizes that some configurations list for every layer, always the same or for each modality: the first counts.
_FIRST_OF_LIST = (
    "moe_intermediate_size",
    "moe_topk",
    "num_shared_expert",
    "moe_num_experts",
    "moe_num_shared_experts",
    "num_experts",
)
# Rotary scalings whose model length already counts them in (vllm/config/model.py).
_COUNTED_SCALING = frozenset({"su", "longrope", "llama3", "mrope", "default", "proportional"})
_NATIVE_WIDTH = "hidden_dim"


def plain_names(config: Mapping[str, Any], unset: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The flat configuration under the usual names, with the defaults of its class filled in.

    Args:
        config: flat text configuration.
        unset: keys that it sets to null; those take no default.
    """
    named = dict(config)
    for part in _PARTS:
        inner = config.get(part)
        if isinstance(inner, Mapping):
            named = {**{k: v for k, v in inner.items() if v is not None}, **named}
    if "multiquery" in str(named.get("attn_type") or ""):
        named.setdefault("num_key_value_heads", 1)
    for key in _FIRST_OF_LIST:
        if isinstance(named.get(key), list):
            named[key] = next(iter(named[key]), None)
    for name, spellings in _ALIASES.items():
        if not isinstance(named.get(name), int | float | list):
            found = next((named[s] for s in spellings if _positive(named.get(s))), None)
            named = {**named, name: found} if found is not None else named
    if "dim" in named and _positive(named.get(_NATIVE_WIDTH)):
        named.setdefault("intermediate_size", named[_NATIVE_WIDTH])
    if isinstance(named.get("intermediate_size"), list):
        named["intermediate_size"] = _mean(named["intermediate_size"])
    _doubled_layers(named)
    for key, value in class_defaults(str(named.get("model_type") or "")).items():
        if key not in unset:
            named.setdefault(key, value)
    _adjust_width(named)
    return named


def null_keys(raw: Mapping[str, Any]) -> frozenset[str]:
    """Keys that a configuration, or one nested in it, sets to null."""
    inner = (null_keys(value) for value in raw.values() if isinstance(value, Mapping))
    return frozenset(key for key, value in raw.items() if value is None).union(*inner)


def _doubled_layers(named: dict[str, Any]) -> None:
    """Shortcut-connected experts: one block holds two attentions and two dense parts beside its experts.

    Source: LongCat-Flash, https://arxiv.org/abs/2509.01322; its experts that compute nothing give the layout away.
    """
    if named.get("zero_expert_num") and "num_hidden_layers" not in named and _positive(named.get("num_layers")):
        named |= {"num_hidden_layers": 2 * named["num_layers"], "decoder_sparse_step": 2, "dense_and_moe": True}


def _adjust_width(named: dict[str, Any]) -> None:
    """Feed-forward widths that a family states before it cuts them down.

    RecurrentGemma halves its own (modeling_recurrent_gemma.py); LFM2 takes two thirds, rounded up, unless it says that
    it does not adjust (modeling_lfm2.py).
    """
    kind = named.get("model_type")
    if kind == "recurrent_gemma" and _positive(named.get("intermediate_size")):
        named["intermediate_size"] = int(named["intermediate_size"]) // 2
    if kind == "lfm2" and named.get("block_auto_adjust_ff_dim", True):
        stated = next((named[k] for k in ("block_ff_dim", "intermediate_size") if _positive(named.get(k))), None)
        if stated is None:
            return
        multiplier, multiple = named.get("block_ffn_dim_multiplier") or 1.0, named.get("block_multiple_of") or 256
        width = int(int(2 * stated / 3) * float(multiplier))
        named["intermediate_size"] = -(-width // int(multiple)) * int(multiple)


def heads_by_layer(config: Mapping[str, Any]) -> list[int] | None:
    """Key-value heads of each layer where the configuration lists them (OpenELM, DeciLM), else None."""
    for key in ("num_key_value_heads_per_layer", "num_key_value_heads", "num_kv_heads"):
        listed = config.get(key)
        if isinstance(listed, list) and listed and all(isinstance(n, int) and n >= 0 for n in listed):
            return listed
    return None


def longest_context(config: Mapping[str, Any]) -> int | None:
    """Tokens that the model was made for: its positions, stretched by the rotary scaling that it states.

    The rule of vLLM (_get_and_verify_max_len, vllm/config/model.py): YaRN multiplies the original length, scalings
    whose length already includes them do not.
    """
    limit = next((config[k] for k in ("max_position_embeddings", "n_positions", "seq_length") if config.get(k)), None)
    if not isinstance(limit, int | float) or isinstance(limit, bool):
        return None
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if not isinstance(scaling, Mapping):
        return int(limit)
    kind = str(scaling.get("rope_type") or scaling.get("type") or "default")
    factor = scaling.get("factor")
    if kind in _COUNTED_SCALING or not _positive(factor) or str(config.get("model_type", "")).startswith("gemma3"):
        return int(limit)
    original = scaling.get("original_max_position_embeddings")
    if kind == "yarn" and _positive(original):
        return int(max(float(limit), float(original) * float(factor)))  # type: ignore[arg-type]
    return int(float(limit) * float(factor))  # type: ignore[arg-type]


def class_defaults(model_type: str) -> Mapping[str, Any]:
    """What the configuration class of `model_type` assumes for keys that are not stated."""
    return _all_defaults().get(model_type, {})


@functools.cache
def _all_defaults() -> Mapping[str, Mapping[str, Any]]:
    text = files("planner").joinpath("data", "config_defaults.json").read_text(encoding="utf-8")
    classes: Mapping[str, Mapping[str, Any]] = json.loads(text)["classes"]
    return classes


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _mean(values: list[Any]) -> int | None:
    numbers = [v for v in values if _positive(v)]
    return round(sum(numbers) / len(numbers)) if numbers else None
