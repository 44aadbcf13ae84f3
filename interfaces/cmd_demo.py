"""`gpubazaar demo`: the whole product on recorded data, offline, in seconds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from catalog.home import Home
from catalog.queries import cheapest_per_gpu, provider_health
from catalog.reader import reading
from interfaces import exits
from interfaces.options import language_options
from interfaces.render import note, print_table
from interfaces.words import headers

BANNER = (
    "DEMO · recorded and reconstructed prices, each of the date shown. They are not today's prices: "
    "`gpubazaar refresh` fetches those."
)
WORKLOAD: dict[str, Any] = {
    "workload": "serve",
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "weights": "fp8",
    "concurrency": 32,
    "context": 8192,
}
_HEALTH = ("provider", "outcome", "row_count", "rejected_count", "last_success_at", "provenance")
_CHEAPEST = ("gpu", "provider", "instance_type", "region", "gpu_count", "price_usd_gpu_hour", "price_usd_hour",
             "availability", "observed_at", "provenance")  # fmt: skip
_NEXT = (
    ("gpubazaar refresh", "fetch current prices into your own catalog"),
    ("gpubazaar offers --gpu h100 --available true", "what can be rented now"),
    ("gpubazaar plan serve --model Qwen/Qwen3-32B --weights fp8 --concurrency 16", "what to rent, and why"),
)


@click.command("demo")
@language_options
def command(lang: str, currency: str) -> int:
    """Replay the recorded documents into a temporary catalog and plan a workload on it. Needs no network."""
    from interfaces.plans import print_plan
    from jobs.refresh import refresh
    from planner.plan import plan_workload

    with tempfile.TemporaryDirectory(prefix="gpubazaar-demo-") as folder:
        home = Home(Path(folder))
        report = refresh(home, source="recorded")
        click.echo(BANNER)
        click.echo()
        with reading(home) as catalog:
            print_table(provider_health(catalog), _HEALTH, headers=headers(lang), title="Providers")
            print_table(
                cheapest_per_gpu(catalog),
                _CHEAPEST,
                headers=headers(lang),
                title="Cheapest on-demand offer of each GPU",
            )
            click.echo("Plan: serve Llama-3.1-70B in FP8 to 32 users at the same time, 8k context")
            answer = plan_workload(catalog, WORKLOAD, allow_stale=True, limit=8)
            print_plan(answer, lang=lang, currency=currency, catalog=catalog)
        click.echo(BANNER)
        click.echo("\nNext:")
        for line, why in _NEXT:
            click.echo(f"  {line:<76} {why}")
    if report.troubled:
        note("note: " + "; ".join(f"{r.provider}: {r.note}" for r in report.results if r.outcome in {"failed", "held"}))
        return exits.UNEXPECTED
    return exits.OK
