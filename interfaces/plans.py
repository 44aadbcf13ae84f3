"""A plan as a person reads it: the ranked offers, what else could be done, why the others were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from catalog.reader import Catalog
from interfaces.assumptions import assumption
from interfaces.messages import label, sentence
from interfaces.money import DOLLARS, Money, add_currency, money_of
from interfaces.render import dumps, note, notes, print_rows, print_table
from interfaces.words import headers, say

_CSV_COLUMNS = (
    "rank", "provider", "via", "instance_type", "region", "country", "gpu", "gpu_count", "purchase_option",
    "commitment_days", "instances", "replicas", "plan_gpus", "tp", "pp", "dp", "verdict", "required_gib_per_gpu",
    "headroom_gib_per_gpu", "gpu_interconnect", "tpot_ms", "ttft_ms", "output_tokens_s", "seconds_per_item", "hours",
    "price_usd_hour", "plan_usd_hour", "cost_compute_usd", "cost_storage_usd", "cost_egress_usd", "cost_total_usd",
    "cost_usd_month", "cost_usd_per_million_tokens", "availability", "observed_at", "age_s", "freshness", "provenance",
    "source_url",
)  # fmt: skip
# Reasons that explain a place in the order; the others are in the JSON and in --explain.
_TOLD = (
    "split_no_fit", "split_slo", "split_latency", "split_asked", "bandwidth", "bandwidth_behind", "linked_gpus",
    "reserved_first", "small_card_first", "pareto", "spot_priced_with_interruptions", "cold_start",
    "commitment_break_even", "cost_per_thousand_items",
)  # fmt: skip
_SERVING = frozenset({"serve", "batch"})


def print_plan(
    answer: dict[str, Any],
    *,
    lang: str,
    currency: str,
    form: str = "table",
    catalog: Catalog | None = None,
    limit: int | None = None,
) -> None:
    """Print a plan in one of the list formats; notes go to standard error.

    Args:
        answer: what `planner.plan` returned.
        lang: en or hi.
        currency: usd, inr or eur; another than usd needs the catalog's exchange rates.
        form: table, json, jsonl, csv or markdown.
        catalog: an open snapshot, for exchange rates.
        limit: lines of the table.
    """
    money = DOLLARS
    if catalog is not None:
        money = money_of(catalog, currency)
        tiers = [row for tier in answer.get("tiers", ()) for row in tier["rows"]]
        add_currency(catalog, [*answer["rows"], *answer["alternatives"], *tiers], (), currency)
    if form == "json":
        click.echo(dumps(answer))
        return
    if form == "table":
        _print_tables(answer, lang, money, limit)
    else:
        print_rows(answer["rows"], _CSV_COLUMNS, form, headers=headers(lang))
    _print_notes(answer, lang, form, money)


def _print_tables(answer: Mapping[str, Any], lang: str, money: Money, limit: int | None) -> None:
    serve = answer["workload"]["workload"] == "serve"
    if answer["rows"]:
        title = say("Cost a month" if serve else "Cost of the job", lang)
        print_table(
            _lines(answer["rows"], lang, money, limit=limit), _columns(answer), headers=_headers(lang), title=title
        )
    for tier in answer.get("tiers", ())[1:]:
        shown = _lines(tier["rows"], lang, money)
        title = f"{say('batch tier', lang)} ({tier['share']:.0%})"
        print_table(shown, _columns(answer), headers=_headers(lang), title=title)
        total = answer["tiers_cost_usd_month"]
        if total is not None:
            click.echo(f"{say('total of both tiers', lang)}: {money.text(total, lang)}\n")
    if answer["alternatives"]:
        shown = _lines(answer["alternatives"], lang, money, told=None)
        print_table(shown, _columns(answer), headers=_headers(lang), title=say("Alternatives", lang))


def _headers(lang: str) -> Mapping[str, str]:
    """Headers of the table; a long column name gets a short one."""
    return {"cost_usd_per_million_tokens": "USD/Mtok", "age_s": "age", **headers(lang)}


def _columns(answer: Mapping[str, Any]) -> tuple[str, ...]:
    tokens = ("cost_usd_per_million_tokens",) if answer["workload"]["workload"] in _SERVING else ()
    return ("rank", "provider", "offer", "gpus", "verdict", "speed", "cost", *tokens, "age_s", "why")


def _lines(
    rows: Sequence[Mapping[str, Any]],
    lang: str,
    money: Money,
    *,
    limit: int | None = None,
    told: tuple[str, ...] | None = _TOLD,
) -> list[dict[str, Any]]:
    """Rows as a person reads them; an offer that stands in several regions is one line, at its best place."""
    keys = _offer_keys(rows)
    elsewhere = Counter(keys)
    shown: list[dict[str, Any]] = []
    for key, row in zip(keys, rows, strict=True):
        more = elsewhere.pop(key, None) if told is not None else 1
        if more is None or (limit is not None and len(shown) >= limit):
            continue
        shown.append(
            {
                "rank": row["rank"],
                "provider": row["provider"] + (f" via {row['via']}" if row["via"] else ""),
                "offer": _offer(row, lang, more - 1),
                "gpus": f"{row['plan_gpus']} x {row['gpu']}" + (f", tp {row['tp']}" if row["tp"] > 1 else ""),
                "verdict": _verdict(row, lang),
                "speed": _speed(row, lang),
                "cost": money.text(row["cost_total_usd"], lang),
                "cost_usd_per_million_tokens": row["cost_usd_per_million_tokens"],
                "age_s": row["age_s"],
                "why": "; ".join(sentence(r, lang, money) for r in row["reasons"] if told is None or r["code"] in told),
            }
        )
    return shown


def _offer_keys(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Equal keys for one offer in several regions. Twice in one region means two offers: another kind of tenancy."""
    names = ("provider", "via", "instance_type", "purchase_option", "commitment_days", "tp", "pp")
    seen: Counter[tuple[Any, ...]] = Counter()
    keys: list[tuple[Any, ...]] = []
    for row in rows:
        offer = tuple(row[name] for name in names)
        keys.append((*offer, seen[(*offer, row["region"])]))
        seen[(*offer, row["region"])] += 1
    return keys


def _verdict(row: Mapping[str, Any], lang: str) -> str:
    room = row["headroom_gib_per_gpu"]
    return say(row["verdict"], lang) + ("" if room is None else f", {room:+.1f} GiB")


def _speed(row: Mapping[str, Any], lang: str) -> str:
    if row["hours"] is not None:
        return f"{row['hours']:,.1f} h"
    if row["tpot_ms"] is None:
        return ""
    return say("{tpot} ms/token, TTFT {ttft}", lang).format(tpot=f"{row['tpot_ms']:.0f}", ttft=f"{row['ttft_ms']:,.0f}")


def _offer(row: Mapping[str, Any], lang: str, more: int) -> str:
    count = f"{row['instances']} x " if row["instances"] > 1 else ""
    days = f" {row['commitment_days']} d" if row["commitment_days"] else ""
    place = row["region"] or row["country"] or ""
    around = f" +{more}" if more else ""
    return f"{count}{row['instance_type']}, {say(row['purchase_option'], lang)}{days}" + (
        f", {place}{around}" if place else around
    )


def _print_notes(answer: Mapping[str, Any], lang: str, form: str, money: Money) -> None:
    notes(sentence(w, lang, money) for w in answer["warnings"] if w["code"] != "rows_cut" or form != "table")
    common = _shared_warnings(answer["rows"])
    notes(sentence(w, lang, money) for w in common)
    for text in answer["assumptions"]:
        note(f"{say('assumed', lang)}: {assumption(text, lang)}")
    counts = answer["rejected"]["counts"]
    if counts:
        told = ", ".join(f"{label(code, lang)}: {n}" for code, n in counts.items())
        note(f"{say('left out', lang)}: {told}")
    nearest = answer["rejected"]["nearest"]
    if not nearest and not answer["rows"]:
        note(say("no offer is left; loosen a filter, or see `gpubazaar status` for what the catalog holds", lang))
    if nearest and not answer["rows"]:
        note(f"{say('nearest miss', lang)}: {nearest_words(nearest, lang, money)}")


def nearest_words(nearest: Mapping[str, Any], lang: str, money: Money = DOLLARS) -> str:
    """The nearest miss in one sentence, with what would make it fit."""
    place = f"{nearest['gpu_count']} x {nearest['gpu']}"
    remedies = "; ".join(sentence(r, lang, money) for r in nearest["remedies"])
    return f"{place}: {sentence(nearest['reason'], lang, money)}" + (f" ({remedies})" if remedies else "")


def _shared_warnings(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Warnings of the rows, each kind once: the first row's wording stands for the others."""
    seen: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        for warning in row["warnings"]:
            seen.setdefault(warning["code"], warning)
    return [w for code, w in seen.items() if code != "price_not_live"]
