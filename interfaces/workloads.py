"""Command-line options for the keys of a workload request: flag names are the keys with dashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import click

from interfaces.options import Command
from planner.request import KEYS, KINDS, Request

_HELP = {
    "model": "Known id, a local folder, config.json, safetensors index or GGUF file, or hf:org/name[@revision].",
    "gpu": "GPU slug or any alias.",
    "gpus": "GPUs of one replica, or of the whole training job.",
    "weights": "native, bf16, fp16, fp8, int8, int4, awq, gptq, nvfp4, mxfp4, gguf:Q4_K_M …",
    "kv_cache": "auto, bf16, fp8, int8, q8_0, q4_0 …",
    "context": "Longest sequence in tokens (default 8192).",
    "concurrency": "Sequences at the same time (default 1).",
}


def key_names() -> list[str]:
    """Every key of every workload, without workload and id."""
    used = {name for keys in KEYS.values() for name in keys}
    return [f.name for f in fields(Request) if f.name in used and f.name not in {"workload", "id"}]


def workload_options(*, without: Iterable[str] = ()) -> Callable[[Command], Command]:
    """One option per key; booleans may stand alone or take true or false."""
    skipped = set(without)

    def decorate(command: Command) -> Command:
        for name in reversed(key_names()):
            if name in skipped:
                continue
            flag = f"--{name.replace('_', '-')}"
            extra: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if KINDS[name] is bool else {}
            command = click.option(flag, name, default=None, help=_HELP.get(name), **extra)(command)
        return command

    return decorate


def given_keys(values: dict[str, Any]) -> dict[str, Any]:
    """The request keys that were given."""
    return {name: values[name] for name in key_names() if values.get(name) is not None}
