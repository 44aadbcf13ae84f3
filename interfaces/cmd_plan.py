"""`gpubazaar plan`: which offers run a workload, what they cost in all, and why the others were left out."""

from __future__ import annotations

from typing import Any

import click

from catalog.reader import reading
from interfaces import exits
from interfaces.freshening import freshened
from interfaces.model_source import HubModels
from interfaces.options import (
    Seconds,
    check_names,
    filter_options,
    format_option,
    given_filters,
    home_of,
    language_options,
)
from interfaces.plans import print_plan
from interfaces.render import note
from interfaces.workloads import given_keys, workload_options
from planner.desk import DEFAULT_LIMIT
from planner.policy import PLAN_CHOICES, PLAN_KEYS

# Filters that are keys of the workload or of the plan here.
_NOT_FILTERS = ("gpu", "max_commitment_days")
_TABLE_LIMIT = 15
_HELP = {
    "requests_s": "serve, batch: requests a second at peak.",
    "average_requests_s": "serve: requests a second in the mean (default: the peak); traffic and tokens follow it.",
    "requests": "batch: requests of the job.",
    "ttft_ms_max": "serve: longest time to the first token (default 2000).",
    "tpot_ms_max": "serve: longest time per output token (default 50).",
    "hours_per_day": "serve: hours a day that it is up (default 24).",
    "starts_per_day": "serve: starts a day, each with its cold start.",
    "deadline_h": "Jobs: hours until it must be done.",
    "budget_usd": "Highest total cost: a month for serve, else the job.",
    "max_commitment_days": "Longest reservation to consider (default 0).",
    "storage_gb": "Gigabytes kept (default: weights x 1.2).",
    "egress_gb": "Gigabytes out: a month for serve, else the job.",
    "cold_start": "What a start finds: an object_store (default), a cached_image beside it, or an attached_volume.",
    "batch_share": "serve: the share of the load that may wait, planned on a second tier where spot is allowed.",
}


def _plan_options(command: Any) -> Any:
    for name in reversed(PLAN_KEYS):
        kind = click.Choice(PLAN_CHOICES[name]) if name in PLAN_CHOICES else None
        command = click.option(f"--{name.replace('_', '-')}", name, type=kind, default=None, help=_HELP.get(name))(
            command
        )
    return command


@click.command("plan")
@click.argument("workload", type=str)
@workload_options()
@_plan_options
@filter_options(without=_NOT_FILTERS)
@click.option("--allow-stale", is_flag=True, help="Rank prices older than twice their provider's limit, too.")
@click.option("--refresh", "refresh_mode", type=click.Choice(["auto", "never", "always"]), default="auto",
              show_default=True, help="Fetch prices that are past their age first.")  # fmt: skip
@click.option("--refresh-timeout", type=Seconds(0.1, 3600), default=20.0, show_default=True,
              help="Seconds to wait for that.")  # fmt: skip
@click.option("--explain", "explain_rank", type=click.IntRange(min=1), metavar="RANK",
              help="Print the whole arithmetic of one row.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows (table: 15, otherwise 100).")
@format_option()
@language_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    workload: str,
    allow_stale: bool,
    refresh_mode: str,
    refresh_timeout: float,
    explain_rank: int | None,
    limit: int | None,
    form: str,
    lang: str,
    currency: str,
    **values: Any,
) -> int:
    """Rank offers that run WORKLOAD by total cost, and say why the others were left out.

    WORKLOAD: serve, batch, lora, qlora, full, pretrain, image, video, audio. --gpu, --gpus and --interconnect limit the
    candidates; the other filters are those of `offers`.

    \b
    gpubazaar plan serve --model meta-llama/Llama-3.1-70B-Instruct --weights fp8 --concurrency 32
    gpubazaar plan serve --model Qwen/Qwen2.5-7B-Instruct --hours-per-day 4 --starts-per-day 10 --country DE
    gpubazaar plan qlora --model meta-llama/Llama-3.1-70B-Instruct --tokens 20000000 --budget-usd 100
    """
    from planner.plan import ask_of, plan_in_tiers

    shown = DEFAULT_LIMIT if limit is None or form == "table" else limit
    filters = given_filters(values, without=_NOT_FILTERS)
    ask = ask_of(
        HubModels(home_of(ctx)).fill({"workload": workload, **given_keys(values)}),
        {name: values.get(name) for name in PLAN_KEYS},
        filters,
        allow_stale=allow_stale,
        limit=max(shown, limit or 0, explain_rank or 0),
    )
    home = home_of(ctx)
    warnings = freshened(home, refresh_mode, refresh_timeout, ask.wanted.provider)
    with reading(home) as catalog:
        check_names(catalog, filters)
        result = plan_in_tiers(catalog, ask)
        result.answer["warnings"] = [*warnings, *result.answer["warnings"]]
        print_plan(result.answer, lang=lang, currency=currency, form=form, catalog=catalog, limit=limit or _TABLE_LIMIT)
        if explain_rank is not None:
            _explain(result, explain_rank, form)
    if result.plans:
        return exits.OK
    return exits.STALE if result.only_stale else exits.NOTHING


def _explain(result: Any, rank: int, form: str) -> None:
    from planner.plan_explain import explain_plan

    if rank > len(result.plans):
        note(f"no row of rank {rank}: the plan has {len(result.plans)}")
        return
    for text in explain_plan(result.plans[rank - 1], result.answer):
        click.echo(text, err=form != "table")
