"""The estimate request: its keys, their types and defaults, and clear errors for what is not one.

Key names are the public interface of `gpubazaar estimate` (flags are the keys with dashes). A value may arrive as
JSON (numbers, booleans) or as command-line text; both parse to the same `Request`.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from catalog.errors import ConfigurationError, UnknownName, nearest

Workload = Literal["serve", "batch", "lora", "qlora", "full", "pretrain", "image", "video", "audio"]
WORKLOADS: tuple[Workload, ...] = typing.get_args(Workload)
SERVING: frozenset[str] = frozenset({"serve", "batch"})
TRAINING: frozenset[str] = frozenset({"lora", "qlora", "full", "pretrain"})
MEDIA: frozenset[str] = frozenset({"image", "video", "audio"})

INTERCONNECTS = ("auto", "nvlink", "pcie")
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers")
STRATEGIES = ("none", "ddp", "zero1", "zero2", "zero3", "fsdp")
CHECKPOINTING = ("none", "selective", "full")
OFFLOADS = ("none", "model", "sequential", "group")
MEDIA_TASKS = ("generate", "lora", "transcribe")


# Beyond any model, machine or job: a slip of the keyboard, which would only cost time and memory.
_LARGEST_WHOLE = 10**9
_LARGEST_NUMBER = 10**18
_LARGEST: Mapping[str, int] = {
    "params_b": 10**6, "active_params_b": 10**6, "layers": 10_000, "gpus": 10**6, "nodes": 10**6, "seconds": 10**9,
    **dict.fromkeys(("tp", "pp", "dp", "ep", "cp"), 10**6),
}  # fmt: skip


class RequestError(ConfigurationError):
    """A request that cannot be answered as written.

    Attributes:
        code: stable name of the kind of fault, such as `unknown_key` or `bad_value`.
        suggestions: nearest allowed spellings, best first.
    """

    def __init__(self, code: str, message: str, suggestions: list[str] | None = None) -> None:
        self.code = code
        self.suggestions = suggestions or []
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One estimate request. None means "not stated": the fit model then uses, and echoes, its own default."""

    workload: Workload
    id: str | int | None = None
    # the model
    model: str | Mapping[str, Any] | None = None
    params_b: float | None = None
    active_params_b: float | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None
    intermediate: int | None = None
    # the hardware
    gpu: str | None = None
    gpus: int | None = None
    nodes: int | None = None
    interconnect: str | None = None
    # serve and batch
    weights: str | None = None
    kv_cache: str | None = None
    context: int | None = None
    concurrency: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    engine: str | None = None
    engine_version: str | None = None
    memory_utilization: float | None = None
    max_batched_tokens: int | None = None
    cuda_graphs: bool | None = None
    # optional inputs of serving, all with stated assumptions when used
    prefix_cache_share: float | None = None
    speculative_factor: float | None = None
    lora_adapters: int | None = None
    images_per_request: int | None = None
    # training
    quant: str | None = None
    precision: str | None = None
    strategy: str | None = None
    cp: int | None = None
    sequence_length: int | None = None
    micro_batch: int | None = None
    grad_accum: int | None = None
    global_batch: int | None = None
    lora_rank: int | None = None
    lora_targets: str | None = None
    optimizer: str | None = None
    gradient_checkpointing: str | None = None
    flash_attention: bool | None = None
    framework: str | None = None
    chunked_loss: bool | None = None
    cpu_offload: bool | None = None
    activation_offload: bool | None = None
    tokens: float | None = None
    examples: int | None = None
    tokens_per_example: int | None = None
    epochs: float | None = None
    # media
    width: int | None = None
    height: int | None = None
    frames: int | None = None
    seconds: float | None = None
    batch: int | None = None
    steps: int | None = None
    offload: str | None = None
    text_encoder_quant: str | None = None
    vae_tiling: bool | None = None
    compile: bool | None = None
    task: str | None = None
    items: int | None = None


_MODEL = (
    "model",
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
_COMMON = ("workload", "id", *_MODEL, "gpu", "gpus", "nodes", "interconnect")
_SERVING = (
    "weights",
    "kv_cache",
    "context",
    "concurrency",
    "input_tokens",
    "output_tokens",
    "tp",
    "pp",
    "dp",
    "ep",
    "engine",
    "engine_version",
    "memory_utilization",
    "max_batched_tokens",
    "cuda_graphs",
    "prefix_cache_share",
    "speculative_factor",
    "lora_adapters",
    "lora_rank",
    "images_per_request",
)
_TRAINING = (
    "quant",
    "precision",
    "strategy",
    "tp",
    "pp",
    "cp",
    "ep",
    "sequence_length",
    "micro_batch",
    "grad_accum",
    "global_batch",
    "lora_rank",
    "lora_targets",
    "optimizer",
    "gradient_checkpointing",
    "flash_attention",
    "framework",
    "chunked_loss",
    "cpu_offload",
    "activation_offload",
    "tokens",
    "examples",
    "tokens_per_example",
    "epochs",
)
_MEDIA = (
    "precision",
    "quant",
    "width",
    "height",
    "frames",
    "seconds",
    "batch",
    "steps",
    "offload",
    "text_encoder_quant",
    "vae_tiling",
    "compile",
    "task",
    "items",
    "tp",
    "lora_rank",
    "gradient_checkpointing",
)

KEYS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(SERVING, (*_COMMON, *_SERVING)),
    **dict.fromkeys(TRAINING, (*_COMMON, *_TRAINING)),
    **dict.fromkeys(MEDIA, (*_COMMON, *_MEDIA)),
}

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "workload": WORKLOADS,
    "interconnect": INTERCONNECTS,
    "engine": ENGINES,
    "strategy": STRATEGIES,
    "gradient_checkpointing": CHECKPOINTING,
    "offload": OFFLOADS,
    "task": MEDIA_TASKS,
}
_ZERO_ALLOWED = frozenset({"prefix_cache_share", "lora_adapters", "images_per_request"})
_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
               "float8": "fp8", "mxfp8": "fp8"}  # fmt: skip
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def _kinds() -> dict[str, type]:
    kinds: dict[str, type] = {}
    hints = typing.get_type_hints(Request)
    for f in fields(Request):
        options = [o for o in typing.get_args(hints[f.name]) if o is not types.NoneType]
        kinds[f.name] = next((o for o in options if o in (bool, int, float, str)), str)
    return kinds


KINDS: Mapping[str, type] = _kinds()


def parse_request(raw: Mapping[str, Any]) -> Request:
    """Check a request object and give it types.

    Args:
        raw: keys of the request; JSON values or command-line text.

    Raises:
        RequestError: unknown key, missing workload, or a value of the wrong type or range. The message names the
            value and what would be accepted.
    """
    workload = raw.get("workload")
    if workload is None:
        raise RequestError("missing_key", f"a request needs a workload: one of {', '.join(WORKLOADS)}")
    if workload not in WORKLOADS:
        unknown = UnknownName("workload", workload, WORKLOADS)
        raise RequestError("unknown_workload", str(unknown), unknown.suggestions)
    allowed = KEYS[workload]
    values: dict[str, Any] = {}
    for key, value in raw.items():
        if key not in allowed:
            raise _unknown_key(workload, key, allowed)
        if value is not None:
            values[key] = _convert(key, value)
    gpus, nodes = values.get("gpus"), values.get("nodes")
    if gpus and nodes and gpus % nodes:
        raise RequestError("bad_value", f"{gpus} GPUs do not spread evenly over {nodes} nodes")
    return Request(**values)


def _unknown_key(workload: str, key: str, allowed: tuple[str, ...]) -> RequestError:
    suggestions = nearest(key, allowed)
    hint = f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""
    elsewhere = [w for w in WORKLOADS if key in KEYS[w]]
    where = f" (it belongs to {', '.join(elsewhere)})" if elsewhere else ""
    return RequestError("unknown_key", f"unknown key {key!r} for workload {workload}{where}{hint}", suggestions)


def _convert(key: str, value: Any) -> Any:
    kind = KINDS[key]
    if key == "model" and isinstance(value, Mapping):
        return value
    if key == "id":
        return value
    if kind is bool:
        return _boolean(key, value)
    if kind in (int, float):
        return _number(key, value, whole=kind is int)
    if not isinstance(value, str) or not value.strip():
        raise RequestError("bad_value", f"{key} must be text, got {value!r}")
    text = value.strip()
    if key == "precision":
        return _PRECISIONS.get(text.casefold(), text.casefold())
    choices = _CHOICES.get(key)
    if choices and text not in choices:
        unknown = UnknownName(key, text, choices)
        raise RequestError("bad_value", str(unknown), unknown.suggestions)
    return text


def _boolean(key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().casefold()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise RequestError("bad_value", f"{key} must be true or false, got {value!r}")


def _number(key: str, value: Any, *, whole: bool) -> int | float:
    if isinstance(value, bool):
        raise RequestError("bad_value", f"{key} must be a number, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RequestError("bad_value", f"{key} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise RequestError("bad_value", f"{key} must be a finite number, got {value!r}")
    if number < 0 or (number == 0 and key not in _ZERO_ALLOWED):
        raise RequestError("bad_value", f"{key} must be above zero, got {value!r}")
    if key in {"memory_utilization", "prefix_cache_share"} and number > 1:
        raise RequestError("bad_value", f"{key} is a share between 0 and 1, got {value!r}")
    largest = _LARGEST.get(key, _LARGEST_WHOLE if whole else _LARGEST_NUMBER)
    if number > largest:
        raise RequestError("bad_value", f"{key} is at most {largest:,.0f}, got {value!r}")
    if not whole:
        return number
    if number != int(number):
        raise RequestError("bad_value", f"{key} must be a whole number, got {value!r}")
    return int(number)
