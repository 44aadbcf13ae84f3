"""A simulated year of prices: size of the store, time to publish and to write, and queries of today and of the past.

    python benchmarks/history.py                 a year, 60,000 offers, a run every 15 minutes, 3 % of prices changing
    python benchmarks/history.py --days 40 --offers 6000 --keep year-folder

The log of past runs is generated in bulk; months are closed, snapshots published, runs stored and the past asked by the
product's own code. Beside each figure stands its limit, or a plain DuckDB query over the same rows as a floor.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from catalog import history_months
from catalog.accelerators import accelerators
from catalog.home import Home
from catalog.queries import offers
from catalog.reader import reading
from catalog.types import Offer, OfferRow, Quote, Run
from catalog.writer import ProviderFacts, Refreshed, Writer, writing

PROVIDERS = 30
RUN_EVERY_S = 900
CHANGED_SHARE = 0.03
REGIONS = ("us-east", "us-west", "eu-west", "eu-north", "ap-south")


@dataclasses.dataclass(frozen=True)
class Figure:
    """One line of the result."""

    name: str
    value: float
    unit: str
    limit: str


def simulated_rows(count: int, at: datetime) -> dict[str, list[OfferRow]]:
    """Offers of 30 providers, each with 16 kinds of GPU in 5 regions, 3 purchase options and 4 sizes."""
    gpus = list(accelerators())
    found: dict[str, list[OfferRow]] = {}
    for number in range(count):
        provider = f"provider-{number % PROVIDERS:02d}"
        place = number // PROVIDERS
        option = ("on_demand", "spot", "reserved")[place % 3]
        size = (1, 2, 4, 8)[place // 3 % 4]
        offer = Offer(
            provider=provider, source_sku=f"sku-{number}", instance_type=f"type-{place}",
            gpu=gpus[(number % PROVIDERS * 5 + place // 60 % 16) % len(gpus)],
            gpu_count=size, region=REGIONS[place % 5], country=("US", "US", "IE", "SE", "IN")[place % 5],
            purchase_option=option, commitment_days=365 if option == "reserved" else 0, vcpu_count=8.0 * size,
            memory_gib=64.0 * size, billing_increment_s=1,
        )  # fmt: skip
        price = Decimal(500 + number * 7919 % 60_000) / 10_000 * size
        found.setdefault(provider, []).append(OfferRow(offer, quote(offer, price, at)))
    return found


def quote(offer: Offer, price: Decimal, at: datetime) -> Quote:
    return Quote(
        offer.offer_id, at, price, "USD", price_usd_hour=float(price), availability="available",
        source_url="https://prices.example/",
    )  # fmt: skip


def store(writer: Writer, rows: dict[str, list[OfferRow]], at: datetime) -> int:
    """One complete run of every provider; returns the entries that the log gained."""
    gained = 0
    for provider, listed in rows.items():
        run = Run(f"{provider}-{at:%Y%m%dT%H%M%S}", provider, at, at, "ok", len(listed), complete=True)
        gained += writer.apply(Refreshed(run=run, observed_at=at, provenance="live", rows=listed))
    return gained


def fill_log(writer: Writer, start: datetime, end: datetime) -> None:
    """Price changes of every run between two moments, in time order, as the runs would have stored them."""
    runs = int((end - start).total_seconds() // RUN_EVERY_S)
    writer.connection.execute(
        f"""INSERT INTO live.price_log
        SELECT o.offer_no, '{start.isoformat()}'::TIMESTAMPTZ + to_seconds(r.i * {RUN_EVERY_S} + o.minute),
               round(o.base * (0.8 + 0.4 * (hash(r.i * 31 + o.offer_no) % 1000) / 1000.0), 4), NULL, o.terms_no,
               1 + (hash(o.offer_no + r.i * 7) % 50 = 0)::INTEGER
        FROM range({runs}) r(i), (
            SELECT c.offer_no, c.price_hour AS base, p.terms_no, right(c.provider, 2)::INTEGER AS minute
            FROM live.current c JOIN (SELECT offer_no, max(terms_no) AS terms_no FROM live.price_log GROUP BY ALL) p
                USING (offer_no)
        ) o
        WHERE hash(o.offer_no::BIGINT * 1000003 + r.i + {int(start.timestamp())}) % 10000 < {CHANGED_SHARE * 10_000}
        ORDER BY r.i, o.minute, o.terms_no, o.offer_no"""
    )


def settle(writer: Writer) -> None:
    """Make `current` say what the log's last entries say."""
    writer.connection.execute(
        """UPDATE live.current SET price = l.price, price_hour = l.price * t.hour_factor, changed_at = l.changed_at,
            observed_at = l.changed_at, availability = ['unknown', 'available', 'limited'][l.state + 1]
        FROM (SELECT offer_no, max(changed_at) AS changed_at, arg_max(price, changed_at) AS price,
                     arg_max(terms_no, changed_at) AS terms_no, arg_max(state, changed_at) AS state
              FROM live.price_log GROUP BY ALL) l JOIN live.price_terms t USING (terms_no)
        WHERE current.offer_no = l.offer_no"""
    )


def simulate(home: Home, days: int, count: int, end: datetime) -> dict[str, list[OfferRow]]:
    """Fill the home month by month."""
    start = end - timedelta(days=days)
    rows = simulated_rows(count, start)
    with writing(home, 10) as writer:
        writer.set_mode("live")
        writer.set_providers(
            ProviderFacts(p, p, "https://prices.example/", "api", RUN_EVERY_S, 3600, True, "USD", True, "")
            for p in rows
        )
        store(writer, rows, start)
        moment = start
        while moment < end:
            after = min(end, history_months.month_after(moment.replace(day=1, hour=0, minute=0, second=0)))
            fill_log(writer, moment, after)
            writer.connection.execute("UPDATE live.coverage SET until_at = ?", [after])
            history_months.close_finished(writer.connection, home, after + timedelta(days=2, seconds=1))
            writer.connection.execute("CHECKPOINT live")
            moment = after
        fill_daily(writer, start, end)
        settle(writer)
        writer.publish(end)
    return rows


def fill_daily(writer: Writer, start: datetime, end: datetime) -> None:
    """One row per day, GPU, purchase option and provider, with the figures of the first day."""
    writer.connection.execute(
        f"""INSERT INTO live.price_daily
        SELECT (d.day + {int(start.timestamp()) // 86_400})::INTEGER + DATE '1970-01-01', p.* EXCLUDE (day) REPLACE (
            round(p.median_price_usd_gpu_hour * (0.8 + 0.4 * (hash(d.day) % 1000) / 1000.0), 4)
                AS median_price_usd_gpu_hour)
        FROM range(1, {(end - start).days}) d(day), live.price_daily p"""
    )


def main() -> None:
    """Build the year and print the figures."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("--days", type=int, default=365)
    wanted.add_argument("--offers", type=int, default=60_000)
    wanted.add_argument("--keep", type=Path, help="build in this folder and leave it there")
    given = wanted.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpubazaar-year-") as folder:
        home = Home(given.keep or Path(folder))
        began = time.perf_counter()
        end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        rows = simulate(home, given.days, given.offers, end)
        print(f"built {given.days} days of {given.offers:,} offers in {time.perf_counter() - began:.0f} s\n")
        print(f"{'figure':<58}{'measured':>12}  {'limit or floor'}")
        for figure in measure(home, rows, end):
            print(f"{figure.name:<58}{figure.value:>9.1f} {figure.unit:<4}{figure.limit}", flush=True)


def measure(home: Home, rows: dict[str, list[OfferRow]], end: datetime) -> Iterator[Figure]:
    """Sizes, then writing and publishing, then reading."""
    yield from _writing(home, rows, end)
    yield from _sizes(home)
    yield from _reading(home, end)


def _sizes(home: Home) -> Iterator[Figure]:
    months = sum(p.stat().st_size for p in history_months.files_in(home)) / 1e6
    live, snapshot = home.live.stat().st_size / 1e6, home.pointer.resolve().stat().st_size / 1e6
    with reading(home) as catalog:
        history_months.attach_history(catalog, home)
        entries = catalog.rows("SELECT count(*) AS n FROM v_price_log")[0]["n"]
    yield Figure("log entries", entries / 1e6, "M", "")
    yield Figure("closed months", months, "MB", "")
    yield Figure("live file", live, "MB", "")
    yield Figure("snapshot", snapshot, "MB", "")
    yield Figure("live file + months + one snapshot", live + months + snapshot, "MB", "limit 500 MB")


def _writing(home: Home, rows: dict[str, list[OfferRow]], end: datetime) -> Iterator[Figure]:
    changes: list[float] = []
    stored: list[float] = []
    published: list[float] = []
    for turn in range(1, 6):
        at = end + timedelta(seconds=turn * RUN_EVERY_S)
        _reprice(rows, turn, at)
        with writing(home, 10) as writer:
            took = _seconds(lambda w=writer, a=at: changes.append(store(w, rows, a)))
            stored.append(took)
            published.append(_seconds(lambda w=writer, a=at: w.publish(a)))
    yield Figure(f"store a run of {PROVIDERS} providers ({changes[-1]:,.0f} changes)", 1e3 * _mid(stored), "ms", "")
    yield Figure("publish, median of 5", 1e3 * _mid(published), "ms", "limit 1,000 ms")
    yield Figure("publish, slowest of 5", 1e3 * max(published), "ms", "")


def _reprice(rows: dict[str, list[OfferRow]], turn: int, at: datetime) -> None:
    for listed in rows.values():
        for index, row in enumerate(listed):
            price = row.quote.price or Decimal(1)
            if (index * 7919 + turn) % 100 < CHANGED_SHARE * 100:
                price = (price * Decimal("1.01")).quantize(Decimal("0.0001"))
            listed[index] = OfferRow(row.offer, quote(row.offer, price, at))


def _reading(home: Home, end: datetime) -> Iterator[Figure]:
    def timed(sql: str, *, history: bool) -> float:
        with _open(home, history=history) as catalog:
            catalog.rows(sql)
            return _mid([_seconds(lambda: catalog.rows(sql)) for _ in range(5)])

    fit = "WHERE gpu_memory_gb >= 80 AND price_usd_hour IS NOT NULL ORDER BY price_usd_hour LIMIT 20"
    yield Figure("cheapest 20 offers that fit, v_offers", 1e3 * timed(f"FROM v_offers {fit}", history=False), "ms", "")
    bare = "SELECT * FROM current WHERE price_hour IS NOT NULL ORDER BY price_hour LIMIT 20"
    yield Figure("the same over the bare table", 1e3 * timed(bare, history=False), "ms", "floor")
    with reading(home) as catalog:
        offers(catalog, limit=20)
        took = _mid([_seconds(lambda: offers(catalog, limit=20)) for _ in range(5)])
    yield Figure("offers(limit=20), all 66 columns", 1e3 * took, "ms", "")
    yield Figure("open the catalog", 1e3 * _mid([_seconds(lambda: _touch(home)) for _ in range(5)]), "ms", "")
    yield Figure(
        "open it with all months", 1e3 * _mid([_seconds(lambda: _touch(home, True)) for _ in range(5)]), "ms", ""
    )
    for days in (1, 30, 180, 300):
        moment = (end - timedelta(days=days)).isoformat()
        sql = f"SELECT count(*), avg(price_usd_hour) FROM offers_as_of('{moment}')"
        yield Figure(f"all offers as of {days} days ago", 1e3 * timed(sql, history=True), "ms", "")
    floor = f"""SELECT count(*), avg(p) FROM (SELECT offer_no, arg_max(price, changed_at) AS p FROM v_price_log
        WHERE changed_at <= '{(end - timedelta(days=180)).isoformat()}'::TIMESTAMPTZ GROUP BY ALL)"""
    yield Figure("180 days ago straight from the log, no base", 1e3 * timed(floor, history=True), "ms", "floor")
    with reading(home) as catalog:
        one = catalog.rows("SELECT offer_id FROM v_offers ORDER BY offer_id LIMIT 1")[0]["offer_id"]
    sql = f"FROM v_price_history WHERE offer_id = '{one}'"
    yield Figure("one offer's whole history", 1e3 * timed(sql, history=True), "ms", "")
    sql = "SELECT day, min(min_price_usd_gpu_hour) FROM v_price_daily WHERE gpu = 'h100-sxm-80gb' GROUP BY ALL"
    yield Figure("cheapest H100 SXM per day", 1e3 * timed(sql, history=False), "ms", "")


@contextmanager
def _open(home: Home, *, history: bool) -> Iterator[Any]:
    with reading(home) as catalog:
        if history:
            history_months.attach_history(catalog, home)
        yield catalog


def _touch(home: Home, history: bool = False) -> None:
    with _open(home, history=history):
        pass


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _mid(values: list[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    main()
