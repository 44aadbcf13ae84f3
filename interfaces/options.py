"""Options that verbs share, made from the types they feed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from catalog.errors import UnknownName
from catalog.filters import OfferFilter
from catalog.home import Home, home_from

if TYPE_CHECKING:
    from catalog.reader import Catalog

Command = TypeVar("Command", bound=Callable[..., Any])

_NAMED = ("provider", "via", "region", "cpu_arch")
LIST_FORMATS = ("table", "json", "jsonl", "csv", "markdown")
_FILTER_HELP = {
    "gpu": "GPU: slug, family, alias or glob (h100*); may be repeated.",
    "gpu_count": "GPUs per instance: 8, or a range 1..4.",
    "min_gpu_memory_gb": "Memory of each GPU, GB.",
    "supports": "Number formats the GPU computes in: fp8, fp4, int8, bf16.",
    "country": "ISO 3166-1 alpha-2 code, such as IN or DE; unknown countries are left out.",
    "available": "Only offers known to be (or not to be) obtainable: true or false.",
    "max_price_usd_gpu_hour": "Highest price per GPU and hour, US dollars.",
    "freshness": "fresh, aging, stale or expired.",
}


class Seconds(click.FloatRange):
    """A finite number of seconds within a range; NaN is in no range, though no comparison says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return number


def home_of(ctx: click.Context) -> Home:
    """The data folder that flags and environment name."""
    return home_from((ctx.obj or {}).get("home"))


def format_option(*, default: str = "table", formats: tuple[str, ...] = LIST_FORMATS) -> Callable[[Command], Command]:
    """`--format`."""
    return click.option(
        "--format", "form", type=click.Choice(formats), default=default, show_default=True, help="How to print."
    )


def language_options(command: Command) -> Command:
    """`--lang` and `--currency`."""
    command = click.option(
        "--currency", type=click.Choice(["usd", "inr", "eur"]), default="usd", show_default=True,
        help="Show prices in this currency too.",
    )(command)  # fmt: skip
    return click.option(
        "--lang", type=click.Choice(["en", "hi"]), default="en", show_default=True, help="Language of words."
    )(command)


def filter_options(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """One option per field of `OfferFilter`; values arrive in a dict of those that were given."""

    def decorate(command: Command) -> Command:
        for field in reversed(fields(OfferFilter)):
            if field.name in without:
                continue
            listed = str(field.type).startswith("tuple")
            command = click.option(
                f"--{field.name.replace('_', '-')}", field.name, multiple=listed, default=None,
                help=_FILTER_HELP.get(field.name),
            )(command)  # fmt: skip
        return command

    return decorate


def given_filters(values: dict[str, Any], *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The filter values that were given, taken out of a verb's keyword arguments."""
    names = [f.name for f in fields(OfferFilter) if f.name not in without]
    return {n: values[n] for n in names if values.get(n) not in (None, ())}


def check_names(catalog: Catalog, given: Mapping[str, Any]) -> None:
    """A provider, region or the like that no offer has is a mistake, not an empty answer.

    Raises:
        UnknownName: with the nearest guesses.
    """
    from catalog.queries import known_values, provider_health

    for name in _NAMED:
        if name not in given:
            continue
        values = known_values(catalog, name)
        if name == "provider":
            values = sorted({*values, *(row["provider"] for row in provider_health(catalog))})
        for text in given[name]:
            for item in str(text).split(","):
                if item.strip() and item.strip() not in values:
                    raise UnknownName(name, item.strip(), values)
