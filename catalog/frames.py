"""Rows as a polars frame with the exact column types of the store. Imported only by whoever writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from catalog.types import OfferRow
from catalog.units import instance_price_hour

_MONEY = pl.Decimal(24, 12)
_TEXT_LIST = pl.List(pl.String)

SCHEMA: Mapping[str, Any] = {
    "offer_id": pl.String, "source": pl.String, "provider": pl.String, "via": pl.String, "source_sku": pl.String,
    "instance_type": pl.String, "variant": pl.String, "region": pl.String, "zone": pl.String, "country": pl.String,
    "gpu": pl.String, "gpu_label": pl.String, "gpu_key": pl.String, "gpu_ambiguous": pl.Boolean,
    "gpu_candidates": _TEXT_LIST, "gpu_count": pl.Int32, "gpu_fraction": pl.Decimal(6, 5),
    "gpu_memory_gb": pl.Float64, "memory_type": pl.String, "vcpu_count": pl.Float64, "memory_gib": pl.Float64,
    "local_storage_gb": pl.Float64, "shared_storage": pl.Boolean, "cpu_arch": pl.String,
    "gpu_interconnect": pl.String, "network_gbps": pl.Float64, "network_option": pl.String, "rdma": pl.Boolean,
    "purchase_option": pl.String, "commitment_days": pl.Int32, "upfront": pl.String, "tenancy": pl.String,
    "os": pl.String, "billing_increment_s": pl.Int64, "minimum_charge_s": pl.Int64, "boot_time_s": pl.Int64,
    "price": _MONEY, "currency": pl.String, "price_unit": pl.String, "price_scope": pl.String,
    "price_hour": pl.Float64, "availability": pl.String, "stock_count": pl.Int64, "interruption_rate": pl.Float64,
    "quote_kind": pl.String, "flags": _TEXT_LIST, "provenance": pl.String, "source_url": pl.String,
    "run_id": pl.String, "observed_at": pl.Datetime("us", "UTC"),
}  # fmt: skip


def gpu_key(gpu: str | None, ambiguous: bool, candidates: Iterable[str]) -> str:
    """The key of an offer's facts: the slug, or for an ambiguous name its candidates."""
    return "|".join(sorted(candidates)) if ambiguous else (gpu or "")


def offer_frame(source: str, run_id: str, rows: Iterable[OfferRow]) -> pl.DataFrame:
    """One row per offer, columns as in the table `current` (without its own timestamps)."""
    return pl.DataFrame([_record(source, run_id, row) for row in rows], schema=dict(SCHEMA), orient="row")


def _record(source: str, run_id: str, row: OfferRow) -> tuple[Any, ...]:
    offer, quote = row.offer, row.quote
    fields = {f.name: getattr(offer, f.name) for f in dataclasses.fields(offer)}
    fields |= {f.name: getattr(quote, f.name) for f in dataclasses.fields(quote)}
    fields["source"] = source
    fields["run_id"] = run_id
    fields["gpu_key"] = gpu_key(offer.gpu, offer.gpu_ambiguous, offer.gpu_candidates)
    fields["gpu_candidates"] = list(offer.gpu_candidates)
    fields["flags"] = list(quote.flags)
    fields["price_hour"] = None
    if quote.price is not None:
        fields["price"] = quote.price.quantize(Decimal("0.000000000001"))
        fields["price_hour"] = float(
            instance_price_hour(
                quote.price, quote.price_unit, quote.price_scope, offer.gpu_count, offer.commitment_days
            )
        )
    return tuple(_plain(fields[name], kind) for name, kind in SCHEMA.items())


def _plain(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if kind == pl.Float64:
        return float(value)
    if kind in (pl.Int32, pl.Int64):
        return int(value)
    return value
