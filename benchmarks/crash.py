"""Kills the writer at random points, and lets readers and a writer run against each other.

    python benchmarks/crash.py                  200 kills, then three readers and a writer for 60 s
    python benchmarks/crash.py --kills 20 --seconds 5

Every version of the catalog gives all offers of two providers the same price, so that a half-written answer shows. A
version is acknowledged once its publish has returned. After every kill: the newest catalog opens within a second, is of
one version, and no acknowledged version, run or log entry is missing. Days pass quickly, so months are closed as well.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from catalog import history_months
from catalog.engine import DatabaseError
from catalog.errors import GpuBazaarError
from catalog.home import Home
from catalog.reader import reading
from catalog.types import Offer, OfferRow, Quote, Run
from catalog.writer import ProviderFacts, Refreshed, Writer, writing

PROVIDERS = ("first", "second")
OFFERS_EACH = 150
START = datetime(2025, 1, 1, tzinfo=UTC)
STEP = timedelta(hours=12)


@dataclass
class Result:
    """What came of the kills."""

    kills: int = 0
    acknowledged: int = 0
    in_apply: int = 0
    slowest_start_s: float = 0.0
    slowest_recovery_s: float = 0.0
    faults: list[str] = field(default_factory=list)


def write_version(writer: Writer, version: int) -> None:
    """One run of each provider and a publish; the price of everything is the version's number."""
    at = START + version * STEP
    for provider in PROVIDERS:
        rows = []
        for number in range(OFFERS_EACH):
            offer = Offer(provider=provider, source_sku=str(number), instance_type=str(number), gpu=None, gpu_count=1)
            quote = Quote(offer.offer_id, at, Decimal(version), "USD", availability="available")
            rows.append(OfferRow(offer, quote))
        run = Run(f"{provider}-{version}", provider, at, at, "ok", len(rows), complete=True)
        writer.apply(Refreshed(run=run, observed_at=at, provenance="live", rows=rows))
    writer.publish(at)


def last_version(home: Home) -> int:
    """The published version; 0 where there is none."""
    if not home.pointer.exists():
        return 0
    with reading(home) as catalog:
        return int(catalog.rows("SELECT max(price) AS p FROM current")[0]["p"])


def work(home: Home) -> None:
    """Write versions until killed, saying each as soon as it is acknowledged."""
    version = last_version(home)
    print("working", flush=True)
    while True:
        version += 1
        with writing(home, 10) as writer:
            if writer.mode is None:
                writer.set_mode("live")
                writer.set_providers(
                    ProviderFacts(p, p, "", "api", 3600, 86_400, True, "USD", True, "") for p in PROVIDERS
                )
            write_version(writer, version)
        print(version, flush=True)


def child(*arguments: str) -> subprocess.Popen[str]:
    """This script in another process."""
    root = Path(__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), *arguments], stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip


def check_published(home: Home, acknowledged: int) -> list[str]:
    """What is wrong with the newest catalog; empty where it is whole."""
    faults = []
    with reading(home) as catalog:
        if catalog.warnings:
            faults.append(f"warnings {catalog.warnings}")
        found = catalog.rows("SELECT count(*) AS n, min(price) AS low, max(price) AS high FROM v_offers")[0]
        if found["n"] != OFFERS_EACH * len(PROVIDERS) or found["low"] != found["high"]:
            faults.append(f"not of one version: {found}")
        if found["high"] is None or found["high"] < acknowledged:
            faults.append(f"version {acknowledged} was acknowledged, {found['high']} is published")
    return faults


def check_history(home: Home, acknowledged: int) -> list[str]:
    """Every acknowledged version is in every offer's history exactly once, over all closed months."""
    with reading(home) as catalog:
        history_months.attach_history(catalog, home)
        faults = list(catalog.warnings)
        rows = catalog.rows(
            """SELECT offer_id, count(*) AS n, count(DISTINCT price) AS prices, min(price) AS low, max(price) AS high
            FROM v_price_history GROUP BY ALL"""
        )
        faults += [
            f"history {row}" for row in rows
            if not row["n"] == row["prices"] == row["high"] or row["low"] != 1 or row["high"] < acknowledged
        ]  # fmt: skip
        if len(rows) != OFFERS_EACH * len(PROVIDERS):
            faults.append(f"{len(rows)} offers have a history")
    return faults


def kill_often(home: Home, kills: int, seed: int = 7) -> Result:
    """Start the writer, kill it after a random while, check, again and again."""
    chance, result = random.Random(seed), Result()
    watcher = child("--read", str(home.path), "--seconds", "86400") if kills else None
    cycle_s = 0.3
    for number in range(1, kills + 1):
        writer = child("--work", str(home.path))
        assert writer.stdout is not None
        began = time.perf_counter()
        writer.stdout.readline()
        result.slowest_recovery_s = max(result.slowest_recovery_s, time.perf_counter() - began)
        said = []
        if number % 4:  # else it is killed while it recovers from the last kill
            began = time.perf_counter()
            said = [int(writer.stdout.readline())]
            cycle_s = time.perf_counter() - began
        time.sleep(chance.uniform(0.0, 1.2 * cycle_s))
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in _said(writer)]
        result.kills += 1
        result.acknowledged = max([result.acknowledged, *said])
        result.in_apply += home.live.with_name("live.duckdb.wal").exists()
        if not home.pointer.exists():
            if result.acknowledged:
                result.faults.append("nothing is published any more")
            continue
        began = time.perf_counter()
        result.faults += check_published(home, result.acknowledged)
        result.slowest_start_s = max(result.slowest_start_s, time.perf_counter() - began)
    if home.pointer.exists():
        result.faults += check_history(home, result.acknowledged)
    if watcher is not None:
        watcher.send_signal(signal.SIGTERM)
        result.faults += [line for line in _said(watcher) if not line.startswith("reads ")]
    return result


def _said(process: subprocess.Popen[str]) -> list[str]:
    """What a process that ends has still to say."""
    with process:
        return process.communicate()[0].splitlines()


def read(home: Home, seconds: float) -> None:
    """Read over and over; print every fault, then how often was read."""
    going = [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    until, reads, newest = time.monotonic() + seconds, 0, 0
    while going and time.monotonic() < until:
        if not home.pointer.exists():
            time.sleep(0.05)
            continue
        try:
            faults = check_published(home, newest)
            newest = max(newest, last_version(home))
        except (GpuBazaarError, DatabaseError) as problem:
            faults = [f"{type(problem).__name__}: {problem}"]
        for fault in faults:
            print(fault, flush=True)
        reads += 1
    print(f"reads {reads}", flush=True)


def readers_and_writer(home: Home, seconds: float) -> tuple[int, int, list[str]]:
    """Three readers and one writer at once; returns reads, versions written, faults."""
    before = last_version(home)
    writer = child("--work", str(home.path))
    assert writer.stdout is not None
    writer.stdout.readline()
    while not home.pointer.exists():
        time.sleep(0.05)
    readers = [child("--read", str(home.path), "--seconds", str(seconds)) for _ in range(3)]
    lines = [line for reader in readers for line in _said(reader)]
    writer.kill()
    _said(writer)
    reads = sum(int(line.split()[1]) for line in lines if line.startswith("reads "))
    return reads, last_version(home) - before, [line for line in lines if not line.startswith("reads ")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it all; exit 1 where anything was lost or inconsistent."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("--kills", type=int, default=200)
    wanted.add_argument("--seconds", type=float, default=60.0)
    wanted.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    wanted.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = wanted.parse_args(arguments)
    if given.work:
        work(Home(given.work))
    if given.read:
        read(Home(given.read), given.seconds)
        return 0
    with tempfile.TemporaryDirectory(prefix="gpubazaar-crash-") as folder:
        home = Home(Path(folder))
        result = kill_often(home, given.kills)
        print(
            f"{result.kills} kills, {result.in_apply} of them with an unfinished write; {result.acknowledged} "
            f"acknowledged versions, {len(history_months.files_in(home))} months closed; slowest start "
            f"{1000 * result.slowest_start_s:.0f} ms, slowest new writer {1000 * result.slowest_recovery_s:.0f} ms; "
            f"{len(result.faults)} faults"
        )
        reads, versions, faults = readers_and_writer(home, given.seconds)
        print(f"three readers and a writer for {given.seconds:g} s: {reads} reads, {versions} versions, "
              f"{len(faults)} faults")  # fmt: skip
        for fault in [*result.faults, *faults][:20]:
            print(f"  {fault}")
        return 1 if result.faults or faults else 0


if __name__ == "__main__":
    sys.exit(main())
