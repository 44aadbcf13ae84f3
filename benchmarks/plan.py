"""How long a plan takes on a synthetic catalog of 60,000 offers, as a ratio to a bare scan and sort of the same rows.

    python benchmarks/plan.py [OFFERS]

The offers are spread over every known accelerator, 30 providers, 40 regions, instances of 1 to 8 GPUs and three ways of
buying, at prices around a fixed rate per GB of memory. Nothing is measured but this machine's ratio; run it twice, the
first run warms the file cache.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from catalog.accelerators import accelerators
from catalog.home import Home
from catalog.reader import Catalog, reading
from catalog.types import Offer, OfferRow, Quote, Run
from catalog.writer import ProviderFacts, Refreshed, writing
from planner.plan import plan_workload

WORKLOAD = {
    "workload": "serve",
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "weights": "fp8",
    "concurrency": 32,
    "context": 8192,
}
BARE = "SELECT * FROM v_offers ORDER BY price_usd_gpu_hour, price_usd_hour, provider, instance_type, offer_id"
REPEATS = 5


def synthetic_offers(count: int, now: datetime) -> Iterator[OfferRow]:
    """Plausible offers, the same ones each time."""
    draw = random.Random(20261130)
    cards = list(accelerators().values())
    for number in range(count):
        card = draw.choice(cards)
        gpus = draw.choice((1, 1, 1, 2, 4, 8))
        option = draw.choice(("on_demand", "on_demand", "spot"))
        link = "none" if gpus == 1 else "nvlink" if "nvlink" in card.link.casefold() else "pcie"
        price = Decimal(str(round(card.memory_gb * gpus * draw.uniform(0.01, 0.05), 4)))
        provider = f"provider{number % 30:02d}"
        offer = Offer(
            provider=provider,
            source_sku=f"sku-{number}",
            instance_type=f"{gpus}x{card.gpu}",
            gpu=card.gpu,
            gpu_count=gpus,
            gpu_candidates=(card.gpu,),
            region=f"region-{number % 40}",
            country=draw.choice(("US", "DE", "IN", "FI", "FR")),
            gpu_memory_gb=card.memory_gb,
            memory_type=card.memory_type,
            gpu_interconnect=link,
            purchase_option=option,
            billing_increment_s=draw.choice((1, 60, 3600)),
        )
        quote = Quote(
            offer_id=offer.offer_id,
            observed_at=now,
            price=price,
            currency="USD",
            price_usd_hour=float(price),
            availability="available",
            source_url="https://example.com/prices",
        )
        yield OfferRow(offer, quote)


def fill(home: Home, count: int) -> None:
    """Store the synthetic offers as one live run per provider."""
    now = datetime.now(UTC)
    by_provider: dict[str, list[OfferRow]] = {}
    for row in synthetic_offers(count, now):
        by_provider.setdefault(row.offer.provider, []).append(row)
    facts = [
        ProviderFacts(name, name, "https://example.com", "api", 3600, 86_400, True, "USD", True, "")
        for name in by_provider
    ]
    with writing(home, timeout_s=60) as writer:
        writer.set_mode("live")
        writer.set_providers(facts)
        for name, rows in by_provider.items():
            run = Run(f"{name}-1", name, now, now, "ok", row_count=len(rows), complete=True)
            writer.apply(Refreshed(run=run, observed_at=now, provenance="live", rows=rows))
        writer.publish()


def median_ms(work: Callable[[], object]) -> float:
    """Median of a few runs after one that warms up, in milliseconds."""
    work()
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken)


def bare(catalog: Catalog) -> object:
    """The rows a plan starts from, scanned and sorted by DuckDB and left there."""
    return catalog.connection.execute(BARE).fetchmany(20)


def bare_rows(catalog: Catalog) -> object:
    """The same, fetched into Python."""
    return catalog.rows(BARE)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
    with tempfile.TemporaryDirectory(prefix="gpubazaar-bench-") as folder:
        home = Home(Path(folder)).ensure()
        fill(home, count)
        with reading(home) as catalog:
            scan = median_ms(lambda: bare(catalog))
            fetched = median_ms(lambda: bare_rows(catalog))
            for limit in (15, 100):
                plan = median_ms(lambda limit=limit: plan_workload(catalog, WORKLOAD, limit=limit))
                print(f"plan, {limit} rows: {plan:.0f} ms = {plan / scan:.1f} x scan and sort")
            print(f"bare scan and sort of {count:,} offers in DuckDB: {scan:.0f} ms; all in Python: {fetched:.0f} ms")


if __name__ == "__main__":
    main()
