"""Accelerator facts as tables: the whole fact table, and per distinct GPU of an offer the figures to plan on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from catalog.accelerators import accelerators, families
from catalog.engine import Connection, rows_of
from catalog.types import Accelerator


def load_accelerators(connection: Connection, database: str) -> None:
    """Replace the fact table's content with the package's facts, unless it already is that."""
    names = [f.name for f in dataclasses.fields(Accelerator)]
    wanted = [tuple(getattr(a, n) for n in names) for a in accelerators().values()]
    have = connection.execute(f"SELECT {', '.join(names)} FROM {database}.accelerators").fetchall()
    if have == wanted:
        return
    connection.execute(f"DELETE FROM {database}.accelerators")
    marks = ", ".join("?" for _ in names)
    connection.executemany(f"INSERT INTO {database}.accelerators ({', '.join(names)}) VALUES ({marks})", wanted)


def load_gpu_facts(connection: Connection, database: str) -> None:
    """Facts for every distinct GPU among current offers."""
    keys = [r["gpu_key"] for r in rows_of(connection, f"SELECT DISTINCT gpu_key FROM {database}.current ORDER BY 1")]
    records = [record for key in keys if key and (record := facts_of(key))]
    if connection.execute(f"SELECT * FROM {database}.gpu_facts ORDER BY gpu_key").fetchall() == records:
        return
    connection.execute(f"DELETE FROM {database}.gpu_facts")
    if records:
        marks = ", ".join("?" for _ in records[0])
        connection.executemany(f"INSERT INTO {database}.gpu_facts VALUES ({marks})", records)


def facts_of(key: str) -> tuple[Any, ...] | None:
    """The row of `gpu_facts` for a slug, a family or candidates joined by "|"; the minimum where several remain."""
    members = _members(key.split("|"))
    if not members:
        return None
    return (
        key,
        _same(m.vendor for m in members),
        _same(m.model for m in members) or _same(m.family for m in members),
        _same(m.form_factor for m in members),
        min(m.memory_gb for m in members),
        _same(m.memory_type for m in members),
        _least(m.memory_bandwidth_gb_s for m in members),
        _least(m.bf16_tflops for m in members),
        _least(m.fp8_tflops for m in members),
        all(m.fp8_tflops is not None for m in members),
        all(m.fp4_tflops is not None for m in members),
        all(m.int8_tflops is not None for m in members),
        all(m.bf16_tflops is not None for m in members),
        _least(m.link_gb_s_bidirectional for m in members),
    )


def _members(names: Iterable[str]) -> list[Accelerator]:
    table = accelerators()
    slugs: dict[str, None] = {}
    for name in names:
        for slug in (name,) if name in table else families().get(name, ()):
            slugs[slug] = None
    return [table[slug] for slug in slugs]


def _same(values: Iterable[str]) -> str | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _least(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return None if any(v is None for v in found) else min(v for v in found if v is not None)
