"""Small catalogs of invented offers, and a planner of any home: what the tests of planning share."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from catalog.accelerators import accelerators
from catalog.home import Home
from catalog.reader import reading
from catalog.types import ExchangeRate, Offer, OfferRow, Quote, Run, Surcharge
from catalog.writer import ProviderFacts, Refreshed, writing
from planner.desk import DEFAULT_LIMIT
from planner.plan import plan_workload


def an_offer(gpu: str = "h100-sxm-80gb", price: str | None = "2.00", **changes: Any) -> OfferRow:
    """One offer of provider `acme`, available on demand by the second, unless changed."""
    quote_keys = {"availability", "interruption_rate", "stock_count", "flags", "observed_at", "currency"}
    quoted = {k: changes.pop(k) for k in quote_keys & changes.keys()}
    count = changes.get("gpu_count", 1)
    facts = accelerators().get(gpu)
    values: dict[str, Any] = {
        "provider": "acme",
        "instance_type": f"{count}x{gpu}",
        "gpu": gpu,
        "gpu_count": count,
        "gpu_candidates": (gpu,) if facts else (),
        "gpu_memory_gb": facts.memory_gb if facts else None,
        "region": "here-1",
        "country": "DE",
        "gpu_interconnect": "none"
        if count == 1
        else "nvlink"
        if facts and "nvlink" in facts.link.casefold()
        else "pcie",
        "billing_increment_s": 1,
        "local_storage_gb": 2000.0,
    } | changes
    values.setdefault("source_sku", f"{values['instance_type']}/{values.get('tenancy', 'vm')}/{price}")
    offer = Offer(**values)
    quote: dict[str, Any] = {
        "offer_id": offer.offer_id,
        "observed_at": datetime.now(UTC),
        "price": None if price is None else Decimal(price),
        "currency": "USD",
        "price_usd_hour": None if price is None else float(price),
        "availability": "available",
        "source_url": "https://example.com/prices",
    } | quoted
    return OfferRow(offer, Quote(**quote))


def a_surcharge(kind: str, price: str, unit: str, provider: str = "acme", **changes: Any) -> Surcharge:
    return Surcharge(provider=provider, kind=kind, price=Decimal(price), currency="USD", unit=unit, **changes)  # type: ignore[arg-type]


@functools.cache
def _empty_catalog() -> Path:
    """A live file with schema and accelerator facts, made once: making them takes most of a small catalog's time."""
    folder = Path(tempfile.mkdtemp(prefix="gpubazaar-empty-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    home = Home(folder).ensure()
    with writing(home, timeout_s=10) as writer:
        writer.set_providers([])
    return home.live


def stored(
    home: Home,
    rows: Iterable[OfferRow],
    surcharges: Iterable[Surcharge] = (),
    *,
    age: timedelta = timedelta(0),
    max_age_s: int = 86_400,
    rates: Iterable[ExchangeRate] = (),
) -> Home:
    """Store offers as one complete live run per source (the provider, or the reseller where one is named)."""
    seen_at = datetime.now(UTC) - age
    by_source: dict[str, list[OfferRow]] = {}
    for fresh in rows:
        row = OfferRow(fresh.offer, replace(fresh.quote, observed_at=seen_at))
        by_source.setdefault(row.offer.via or row.offer.provider, []).append(row)
    for item in surcharges:
        by_source.setdefault(item.provider, [])
    names = list(by_source)
    if not home.live.exists():
        shutil.copyfile(_empty_catalog(), home.ensure().live)
    facts = [ProviderFacts(n, n, "https://example.com", "api", 3600, max_age_s, True, "USD", True, "") for n in names]
    with writing(home.ensure(), timeout_s=10) as writer:
        writer.set_mode("live")
        writer.set_providers(facts)
        for name in names:
            run = Run(f"{name}-1", name, seen_at, seen_at, "ok", row_count=len(by_source[name]), complete=True)
            writer.apply(
                Refreshed(
                    run=run,
                    observed_at=seen_at,
                    provenance="live",
                    rows=by_source[name],
                    surcharges=[s for s in surcharges if s.provider == name],
                    rates=list(rates) if name == names[0] else [],
                )
            )
        writer.publish()
    return home


Planner = Callable[..., dict[str, Any]]


def planner_of(home: Home, *, allow_stale: bool = False, **filters: Any) -> Planner:
    """A function that plans on a home: plan({workload…}, requests_s=…, …)."""

    def plan(workload: dict[str, Any], *, only: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
        limit = keys.pop("limit", DEFAULT_LIMIT)
        stale = keys.pop("allow_stale", allow_stale)
        with reading(home) as catalog:
            return plan_workload(
                catalog, workload, plan_keys=keys, filters={**filters, **(only or {})}, allow_stale=stale, limit=limit
            )

    return plan
