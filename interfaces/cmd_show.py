"""`gpubazaar show`: one offer, GPU, provider or model in full, with its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from catalog.accelerators import accelerators
from catalog.errors import CatalogMissing, UnknownName
from catalog.home import Home
from catalog.names import gpu_slugs_for
from catalog.queries import provider_health, surcharges
from catalog.reader import Catalog, reading
from interfaces.options import home_of
from interfaces.render import dumps, print_table, shown

# A record with more fields than this is shown field by field.
_MOST_COLUMNS = 10


@click.command("show")
@click.argument("name")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def command(ctx: click.Context, name: str, form: str) -> None:
    """Show NAME in full: an offer id, a GPU (any spelling), a provider, or a model id.

    \b
    gpubazaar show h100-sxm-80gb
    gpubazaar show scaleway
    """
    found = _found(home_of(ctx), name)
    if form == "json":
        click.echo(dumps(found))
        return
    for heading, value in found.items():
        click.echo(f"{heading}:")
        records = value if isinstance(value, list) else [value]
        if records and len(records[0]) <= _MOST_COLUMNS:
            print_table(records, tuple(records[0]))
            continue
        for record in records:
            print_table([{"field": k, "value": shown(v, k)} for k, v in record.items()], ("field", "value"))


def _found(home: Home, name: str) -> dict[str, Any]:
    """What the name means, tried in the order offer, provider, GPU, model.

    Raises:
        UnknownName: it means nothing; the message holds the nearest of all of them.
    """
    providers: list[str] = []
    try:
        with reading(home) as catalog:
            providers = [row["provider"] for row in provider_health(catalog)]
            offered = _offer(catalog, name) or _provider(catalog, name, providers) or _gpu(catalog, name)
            if offered:
                return offered
    except CatalogMissing:
        if fact := _facts(name):
            return {"gpu": fact}
    from planner.models import known_models

    models = known_models()
    by_name = {key.casefold(): key for key in models}
    if name.casefold() in by_name:
        return {"model": _plain(models[by_name[name.casefold()]])}
    raise UnknownName("offer, provider, GPU or model", name, [*providers, *accelerators(), *models])


def _plain(spec: object) -> Mapping[str, Any]:
    from dataclasses import is_dataclass

    return asdict(spec) if is_dataclass(spec) and not isinstance(spec, type) else vars(spec)


def _offer(catalog: Catalog, name: str) -> dict[str, Any] | None:
    rows = catalog.rows("SELECT * FROM v_offers WHERE offer_id = ?", [name])
    if not rows:
        return None
    history = catalog.rows("SELECT * FROM v_price_history WHERE offer_id = ? ORDER BY valid_from", [name])
    return {"offer": rows[0], "price_history": history}


def _provider(catalog: Catalog, name: str, known: list[str]) -> dict[str, Any] | None:
    if name not in known:
        return None
    counts = catalog.rows(
        """SELECT gpu, purchase_option, count(*) AS offers, min(price_usd_gpu_hour) AS min_price_usd_gpu_hour
        FROM v_offers WHERE provider = ? OR via = ? GROUP BY ALL ORDER BY gpu, purchase_option""",
        [name, name],
    )
    facts = catalog.rows("SELECT * FROM v_provider_health JOIN providers USING (provider) WHERE provider = ?", [name])
    return {"provider": facts[0], "offers": counts, "surcharges": surcharges(catalog, name)}


def _facts(name: str) -> list[dict[str, Any]]:
    try:
        return [asdict(accelerators()[slug]) for slug in gpu_slugs_for(name)]
    except UnknownName:
        return []


def _gpu(catalog: Catalog, name: str) -> dict[str, Any] | None:
    facts = _facts(name)
    if not facts:
        return None
    slugs = [f["gpu"] for f in facts]
    marks = ", ".join("?" for _ in slugs)
    cheapest = catalog.rows(
        f"""SELECT gpu, purchase_option, country, provider, instance_type, region, price_usd_gpu_hour, freshness, age_s
        FROM v_cheapest WHERE gpu IN ({marks}) ORDER BY gpu, purchase_option, price_usd_gpu_hour""",
        slugs,
    )
    return {"gpu": facts, "cheapest": cheapest}
