"""`gpubazaar collector`: tools for whoever writes or checks a collector."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from catalog.errors import CatalogMissing, GpuBazaarError, StoreError
from catalog.home import Home
from catalog.queries import exchange_rates
from catalog.reader import reading
from catalog.types import Document, OfferRow, Rejection, Surcharge
from interfaces import exits
from interfaces.options import home_of
from interfaces.render import dumps, note, print_rows

TABLE_COLUMNS = ("instance_type", "region", "gpu", "gpu_count", "gpu_memory_gb", "purchase_option", "commitment_days",
                 "price", "currency", "price_unit", "price_scope", "price_usd_gpu_hour", "availability")  # fmt: skip


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


def _parsed(chosen: Any, documents: Sequence[Document], rates: Mapping[str, Decimal]) -> dict[str, Any]:
    """What a parse says, in the shape of the contract; an unreadable document is an error with no offers."""
    from catalog.validate import check_rows
    from collectors.rows import with_usd

    try:
        parsed = chosen.parse(documents)
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
    except (CatalogMissing, StoreError):
        return {}
