"""`gpubazaar collector`: tools for whoever writes or checks a collector."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from catalog.errors import GpuBazaarError, StoreError
from catalog.home import Home
from catalog.queries import exchange_rates, stored_offers
from catalog.reader import reading
from catalog.types import Document, OfferRow, Rejection, Surcharge
from interfaces import exits
from interfaces.options import Seconds, format_option, home_of
from interfaces.render import dumps, note, print_rows

TABLE_COLUMNS = ("instance_type", "region", "gpu", "gpu_count", "gpu_memory_gb", "purchase_option", "commitment_days",
                 "price", "currency", "price_unit", "price_scope", "price_usd_gpu_hour", "availability")  # fmt: skip

CHECK_COLUMNS = ("provider", "verdict", "reachable", "row_count", "rejected_count", "unmapped", "new_gpus", "gone_gpus",
                 "appeared_count", "vanished_count", "median_price_ratio", "reference", "note")  # fmt: skip


@click.group("collector")
def command() -> None:
    """Write, check and try collectors."""


@command.command("parse")
@click.argument("provider")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def parse(ctx: click.Context, provider: str, files: tuple[Path, ...], form: str) -> int:
    """Run PROVIDER's parser and the row checks on FILES (FILE.meta.json beside each gives url, status, fetched_at)."""
    from collectors.fixtures import read_recorded
    from collectors.registry import collector

    chosen = collector(provider)
    documents = [read_recorded(path, provider) for path in files]
    result = _parsed(chosen, documents, _rates(home_of(ctx)))
    if form == "json":
        click.echo(dumps(result))
    else:
        print_rows(result["offers"], TABLE_COLUMNS, "table")
        for rejection in result["rejections"]:
            note(f"rejected: {rejection['reason']} {rejection['field']} {rejection['value']} ({rejection['sample']})")
        for name in result["unmapped"]:
            note(f"unmapped GPU name: {name}")
        if result["error"]:
            note(f"error: {result['error']['message']}")
    return exits.UNEXPECTED if result["error"] else exits.OK


@command.command("new")
@click.argument("name")
@click.option("--url", required=True, help="The provider's price source, https.")
@click.option("--to", "root", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path(),
              help="The checkout (default: this folder).")  # fmt: skip
def new(name: str, url: str, root: Path) -> None:
    """Start a provider: its file, its test, and its first fixture, fetched from --url."""
    from collectors.scaffold import scaffold

    for path in scaffold(root, name, url):
        click.echo(str(path))
    fixture = _first_fixture(root / "fixtures" / name, name, url)
    if fixture is not None:
        click.echo(str(fixture))
    note(f"next: name the document's keys in collectors/{name}.py, then `pytest -k {name}`; see CONTRIBUTING.md")


def _first_fixture(folder: Path, name: str, url: str) -> Path | None:
    from urllib.parse import urlsplit

    from collectors.contract import Request
    from collectors.errors import FetchError
    from collectors.http import Fetcher, fetch_map_from
    from collectors.recording import write_document

    try:
        with Fetcher(
            provider=name,
            allowed_hosts=frozenset({urlsplit(url).hostname or ""}),
            fetch_map=fetch_map_from(os.environ.get("GPUBAZAAR_FETCH_MAP", "")),
        ) as fetcher:
            return write_document(folder, fetcher.fetch(Request(url, name="prices")))
    except FetchError as problem:
        note(f"note: no fixture yet ({problem}); save one later with `gpubazaar record {name}`")
        return None


@command.command("check")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@click.option("--all", "everything", is_flag=True, help="Every provider.")
@click.option("--timeout", "timeout_s", type=Seconds(1, 3600), default=60.0, show_default=True)
@format_option()
@click.pass_context
def check(
    ctx: click.Context, providers: tuple[str, ...], everything: bool, timeout_s: float, form: str
) -> int:  # fmt: skip
    """Fetch live, parse, validate, and compare with the last good run (or the fixtures). Stores nothing.

    Says per PROVIDER whether it is reachable, which keys and columns appeared or vanished, new GPU names, price
    shifts, and a verdict: as expected, drifted, broken, or skipped for want of a key.
    """
    from jobs.check import check as check_one

    if bool(providers) == everything:
        raise click.UsageError("name providers, or pass --all")
    from collectors.registry import collector, collectors_by_provider

    chosen = [collector(p) for p in providers] or [c for c in collectors_by_provider().values() if c.on_demand]
    home = home_of(ctx)
    results = []
    for one in chosen:
        result = check_one(one, _last_good(home, one.provider), timeout_s=timeout_s)
        results.append({**dataclasses.asdict(result), "shape_appeared": result.shape.appeared,
                        "shape_vanished": result.shape.vanished})  # fmt: skip
        _describe(result)
    print_rows(results, CHECK_COLUMNS, form, envelope={"warnings": []})
    return exits.SOME_FAILED if any(r["verdict"] == "broken" for r in results) else exits.OK


def _describe(result: Any) -> None:
    """What a person needs to see beside the table: the changes themselves."""
    for text in result.shape.vanished[:10]:
        note(f"{result.provider}: vanished {text}")
    for text in result.shape.appeared[:10]:
        note(f"{result.provider}: appeared {text}")
    for text in result.changed_offers[:20]:
        note(f"{result.provider}: {text}")


def _last_good(home: Home, provider: str) -> list[dict[str, Any]]:
    try:
        with reading(home) as catalog:
            return stored_offers(catalog, provider)
    except StoreError:
        return []


def _parsed(chosen: Any, documents: Sequence[Document], rates: Mapping[str, Decimal]) -> dict[str, Any]:
    """What a parse says, in the shape of the contract; an unreadable document is an error with no offers."""
    from catalog.validate import check_rows
    from collectors.rows import with_usd

    try:
        parsed = chosen.read(documents)
    except GpuBazaarError as problem:
        return {
            "offers": [], "surcharges": [], "rejections": [], "unmapped": [], "complete": False,
            "error": {"code": problem.code, "message": str(problem)},
        }  # fmt: skip
    known = {**rates, **{r.currency: r.usd_per_unit for r in parsed.rates}}
    rows = [
        OfferRow(r.offer, with_usd(r.quote, r.offer, r.quote.currency, known.get(r.quote.currency)))
        for r in parsed.rows
    ]
    checked = check_rows(rows)
    return {
        "offers": [_flat(row) for row in checked.rows],
        "surcharges": [_surcharge(s, known) for s in parsed.surcharges],
        "rejections": [_rejection(r) for r in (*parsed.rejections, *checked.rejections)],
        "unmapped": list(parsed.unmapped),
        "exchange_rates": [dataclasses.asdict(r) for r in parsed.rates],
        "complete": parsed.complete,
        "notes": list(parsed.notes),
        "error": None,
    }


def _flat(row: OfferRow) -> dict[str, Any]:
    return {**dataclasses.asdict(row.offer), **dataclasses.asdict(row.quote)}


def _surcharge(surcharge: Surcharge, rates: Mapping[str, Decimal]) -> dict[str, Any]:
    rate = Decimal(1) if surcharge.currency == "USD" else rates.get(surcharge.currency)
    return {**dataclasses.asdict(surcharge), "price_usd": None if rate is None else float(surcharge.price * rate)}


def _rejection(rejection: Rejection) -> dict[str, Any]:
    return {name: getattr(rejection, name) for name in ("reason", "field", "value", "sample")}


def _rates(home: Home) -> dict[str, Decimal]:
    """Exchange rates of the local catalog, where there is one: without them other currencies stay native."""
    try:
        with reading(home) as catalog:
            return {c: Decimal(str(r["usd_per_unit"])) for c, r in exchange_rates(catalog).items()}
    except StoreError:
        return {}
