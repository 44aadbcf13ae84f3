"""Model facts: dimensions, parameter budget and cache groups, from a known id, a file, a configuration or numbers.

Known models are rows of `data/models.csv`, each with its source; their fields pass through the same rules as any
`config.json`, so a known name is only a shorthand for its configuration.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.errors import nearest
from planner.checkpoint_files import looks_like_path, read_checkpoint
from planner.datafiles import data_rows
from planner.model_config import ModelSpec, spec_from_config
from planner.request import Request, RequestError

__all__ = ["ModelSpec", "known_models", "model_spec"]

_COLUMNS: Mapping[str, str] = {
    "params_b": "params_b",
    "active_params_b": "active_params_b",
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "vocab": "vocab_size",
    "intermediate": "intermediate_size",
    "moe_intermediate": "moe_intermediate_size",
    "experts": "n_routed_experts",
    "experts_per_token": "num_experts_per_tok",
    "shared_experts": "n_shared_experts",
    "dense_layers": "first_k_dense_replace",
    "max_context": "max_position_embeddings",
}
_PLAIN: Mapping[str, str] = {
    name: _COLUMNS[name]
    for name in (
        "params_b",
        "active_params_b",
        "layers",
        "hidden",
        "heads",
        "kv_heads",
        "head_dim",
        "vocab",
        "intermediate",
    )
}
# Published counts of active and of all parameters are rounded apart.
_ROUNDING = 1.05
_SUFFIXES = re.compile(r"[-_](instruct|it|chat|hf|base|bf16|fp8|awq|gptq|\d{4}|v0\.\d+)(?=$|[-_])", re.IGNORECASE)


def model_spec(request: Request) -> ModelSpec:
    """The model that a request names, with its plain dimension keys laid over it.

    Raises:
        RequestError: unknown id (with the nearest known ones), unreadable file, or too few dimensions.
    """
    overrides = {key: value for name, key in _PLAIN.items() if (value := getattr(request, name)) is not None}
    model = request.model
    if isinstance(model, str) and not overrides:
        return _named(model)
    if isinstance(model, str):
        base = _config_of(model, required="num_hidden_layers" not in overrides)
        return _checked(model, {**base, **overrides})
    if isinstance(model, Mapping):
        name = str(model.get("_name_or_path") or model.get("model_type") or "custom model")
        return _checked(name, {**model, **overrides})
    if not overrides:
        raise RequestError("missing_key", "a request needs a model: a known id, a file, a configuration or dimensions")
    size = overrides.get("params_b")
    return _checked(f"{size:g}B model" if size else "custom model", overrides)


@functools.cache
def known_models() -> Mapping[str, ModelSpec]:
    """Every known model by its id, in the order of the data file."""
    return {model_id: spec_from_config(model_id, config) for model_id, config in _known_configs().items()}


@functools.lru_cache(maxsize=1024)
def _named(name: str) -> ModelSpec:
    config = _config_of(name, required=True)
    form = _format_suffix(name)
    if form and not looks_like_path(name):
        config = {**config, "native_format": form}
    return _checked(_canonical(name) or name, config)


def _format_suffix(name: str) -> str | None:
    """The weight format that a repository's name ends in, such as -FP8 or -AWQ."""
    found = re.search(r"[-_](fp8|nvfp4|mxfp4|awq|gptq|int4|int8|w8a8|w4a16)(?=$|[-_])", name.casefold())
    return {"w8a8": "int8", "w4a16": "int4"}.get(found[1], found[1]) if found else None


def _checked(name: str, config: Mapping[str, Any]) -> ModelSpec:
    try:
        spec = spec_from_config(name, config)
    except ValueError as error:
        raise RequestError("incomplete_model", f"model {name!r}: {error}") from None
    if spec.active_params_b > spec.params_b * _ROUNDING:
        raise RequestError(
            "bad_value",
            f"active_params_b {spec.active_params_b:g} is more than all parameters, params_b {spec.params_b:g}",
        )
    return spec


def _config_of(name: str, *, required: bool) -> Mapping[str, Any]:
    known = _canonical(name)
    if known is not None:
        return _known_configs()[known]
    if looks_like_path(name):
        try:
            return read_checkpoint(Path(name).expanduser())
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: ~ of a user who is not there
            raise RequestError("unreadable_model", f"model file {name!r} cannot be read: {error}") from None
    if not required:
        return {}
    suggestions = _suggest(name)
    hint = f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""
    raise RequestError(
        "unknown_model",
        f"unknown model {name!r}{hint or '.'} A known id, a local folder or file, a config.json object or the "
        "dimension keys (params_b, layers, hidden, heads, kv_heads, vocab, intermediate) would be accepted.",
        suggestions,
    )


def _canonical(name: str) -> str | None:
    folded = name.strip().casefold()
    exact = _by_folded_id().get(folded)
    if exact is not None:
        return exact
    return _by_alias().get(_alias(folded))


def _alias(name: str) -> str:
    base = name.rsplit("/", 1)[-1]
    previous = None
    while previous != base:
        previous, base = base, _SUFFIXES.sub("", base)
    return re.sub(r"[^a-z0-9.]", "", base.casefold())


@functools.cache
def _by_folded_id() -> Mapping[str, str]:
    return {model_id.casefold(): model_id for model_id in _known_configs()}


@functools.cache
def _by_alias() -> Mapping[str, str]:
    """Short names; one that two known models share names neither."""
    owners: dict[str, list[str]] = {}
    for model_id in _known_configs():
        owners.setdefault(_alias(model_id), []).append(model_id)
    return {alias: ids[0] for alias, ids in owners.items() if len(ids) == 1}


def _suggest(name: str) -> list[str]:
    direct = nearest(name, _known_configs())
    if direct:
        return direct
    short = {model_id.rsplit("/", 1)[-1]: model_id for model_id in _known_configs()}
    return [short[hit] for hit in nearest(name.rsplit("/", 1)[-1], short)]


@functools.cache
def _known_configs() -> Mapping[str, Mapping[str, Any]]:
    return {row["model_id"]: _row_config(row) for row in data_rows("models.csv")}


def _row_config(row: Mapping[str, str]) -> Mapping[str, Any]:
    config: dict[str, Any] = {}
    for column, key in _COLUMNS.items():
        text = row[column]
        if text:
            config[key] = float(text) if column.endswith("_b") else int(float(text))
    if row["tie_embeddings"]:
        config["tie_word_embeddings"] = row["tie_embeddings"] == "true"
    config["native_format"] = row["native_format"]
    if row["config"]:
        config.update(json.loads(row["config"]))
    return config
