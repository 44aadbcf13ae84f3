"""An estimate as a person reads it: the verdict first, then memory, then speed, then why."""

from __future__ import annotations

from typing import Any

import click

from interfaces.assumptions import assumption
from interfaces.messages import sentence
from interfaces.render import note, print_table
from interfaces.words import headers, say

_SPEED = ("tpot_ms", "ttft_ms", "output_tokens_s", "tokens_s_per_gpu", "seconds_per_step", "hours", "seconds_per_item",
          "items_per_hour", "mfu", "checkpoint_gib", "max_context", "max_concurrency", "kv_bytes_per_token",
          "kv_cache_tokens")  # fmt: skip

_VERDICT = (
    "{model} · {workload} on {gpus} x {gpu}: {verdict} ({required:.1f} GiB of {usable:.1f} GiB per GPU, "
    "headroom {headroom:.1f} GiB, limited by {bottleneck}, confidence {confidence})"
)


def print_estimate(answer: dict[str, Any], lang: str) -> None:
    """Print one answer of the fit model."""
    click.echo(
        say(_VERDICT, lang).format(
            model=answer["model"], workload=answer["workload"], gpus=answer["gpus"], gpu=answer["gpu"],
            verdict=say(answer["verdict"], lang), required=answer["required_gib_per_gpu"],
            usable=answer["usable_gib_per_gpu"], headroom=answer["headroom_gib_per_gpu"],
            bottleneck=say(answer["bottleneck"] or "software", lang), confidence=say(answer["confidence"], lang),
        )
    )  # fmt: skip
    memory = [{"part": k.removesuffix("_gib"), "gib_per_gpu": float(v)} for k, v in answer["breakdown"].items()]
    print_table(memory, ("part", "gib_per_gpu"), headers=headers(lang))
    speed = [{"figure": k, "value": answer[k]} for k in _SPEED if answer.get(k) is not None]
    print_table(speed, ("figure", "value"), headers=headers(lang))
    for reason in answer["reasons"]:
        click.echo("- " + sentence(reason, lang))
    for text in _lines(answer["assumptions"]):
        note(f"{say('assumed', lang)}: {assumption(text, lang)}")


def _lines(assumptions: Any) -> list[str]:
    if isinstance(assumptions, dict):
        return [f"{k} = {v}" for k, v in assumptions.items()]
    return [str(a) for a in assumptions]
