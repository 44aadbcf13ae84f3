"""An estimate as a person reads it: the verdict first, then memory, then speed, then why."""

from __future__ import annotations

from typing import Any

import click

from interfaces.assumptions import assumption
from interfaces.messages import sentence
from interfaces.render import note, print_table
from interfaces.words import say

_SPEED = ("tpot_ms", "ttft_ms", "output_tokens_s", "tokens_s_per_gpu", "seconds_per_step", "hours", "seconds_per_item",
          "items_per_hour", "mfu", "checkpoint_gib", "max_context", "max_concurrency", "kv_bytes_per_token",
          "kv_cache_tokens")  # fmt: skip


def print_estimate(answer: dict[str, Any], lang: str) -> None:
    """Print one answer of the fit model."""
    click.echo(
        f"{answer['model']} · {answer['workload']} on {answer['gpus']} x {answer['gpu']}: {answer['verdict']}"
        f" ({answer['required_gib_per_gpu']:.1f} GiB of {answer['usable_gib_per_gpu']:.1f} GiB per GPU, "
        f"headroom {answer['headroom_gib_per_gpu']:.1f} GiB, limited by {answer['bottleneck']}, "
        f"confidence {answer['confidence']})"
    )
    memory = [{"part": k.removesuffix("_gib"), "gib_per_gpu": float(v)} for k, v in answer["breakdown"].items()]
    print_table(memory, ("part", "gib_per_gpu"))
    speed = [{"figure": k, "value": answer[k]} for k in _SPEED if answer.get(k) is not None]
    print_table(speed, ("figure", "value"))
    for reason in answer["reasons"]:
        click.echo("- " + sentence(reason, lang))
    for text in _lines(answer["assumptions"]):
        note(f"{say('assumed', lang)}: {assumption(text, lang)}")


def _lines(assumptions: Any) -> list[str]:
    if isinstance(assumptions, dict):
        return [f"{k} = {v}" for k, v in assumptions.items()]
    return [str(a) for a in assumptions]
