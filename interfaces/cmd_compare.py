"""`gpubazaar compare`: offers or GPUs side by side, point by point, with a workload if one is given."""

from __future__ import annotations

from typing import Any

import click

from catalog.reader import reading
from interfaces import exits
from interfaces.comparing import FACTS, PLAN_FACTS, Item, find_items
from interfaces.money import add_currency, grouped
from interfaces.options import format_option, home_of, language_options
from interfaces.render import notes, print_rows, print_table, shown
from interfaces.words import headers, say
from interfaces.workloads import given_keys, workload_options
from planner.request import WORKLOADS


@click.command("compare")
@click.argument("compared", nargs=-1, required=True, metavar="OFFER|GPU...")
@click.option("--workload", type=click.Choice(WORKLOADS), help="Compare what they do for this workload, too.")
@workload_options(without=("gpu",))
@format_option()
@language_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    compared: tuple[str, ...],
    workload: str | None,
    form: str,
    lang: str,
    currency: str,
    **keys: Any,
) -> int:
    """Put OFFERs or GPUs side by side.

    An OFFER is an offer_id, its beginning, or PROVIDER/INSTANCE_TYPE[@REGION]; a GPU is a slug or any alias. Old prices
    are compared, too, with their age.

    \b
    gpubazaar compare h100-sxm-80gb h200-sxm-141gb mi300x
    gpubazaar compare aws/p5.48xlarge@us-east-1 "nebius/NVIDIA HGX H100 x8"
    gpubazaar compare l4 l40s --workload serve --model meta-llama/Llama-3.1-8B-Instruct --concurrency 8
    """
    request = given_keys(keys)
    if request and workload is None:
        raise click.UsageError("workload keys need --workload")
    with reading(home_of(ctx)) as catalog:
        asked = {"workload": workload, **request} if workload else None
        found = find_items(catalog, compared, asked)
        rows = [item.facts for item in found]
        columns = add_currency(catalog, rows, ("item", *FACTS, *(PLAN_FACTS if workload else ())), currency)
        warnings = [*catalog.warnings, *(w for item in found for w in item.warnings)]
        envelope = {"as_of": catalog.as_of(), "rows": [], "providers": [], "warnings": warnings}
    if form == "table":
        _print_side_by_side(found, columns[1:], lang, currency)
    else:
        print_rows(rows, columns, form, envelope=envelope, headers=headers(lang))
    if form != "json":
        notes(warnings)
    return exits.OK


def _print_side_by_side(found: list[Item], names: tuple[str, ...], lang: str, currency: str) -> None:
    """One line per point, one column per item; points that nothing has are left out."""

    def told(item: Item, name: str) -> str:
        value = item.facts.get(name)
        converted = currency != "usd" and currency in name.split("_")
        return grouped(value, currency, lang) if converted else shown(value, name)

    titles = [str(item.facts["item"]) for item in found]
    lines = [
        {"point": say(name, lang), **{t: told(i, name) for t, i in zip(titles, found, strict=True)}}
        for name in names
        if any(item.facts.get(name) is not None for item in found)
    ]
    print_table(lines, ("point", *titles))
