"""The catalog's core types. Field names equal SQL column names; the unit is in the name; times are aware UTC.

"No price" is None, never 0. Money from a source stays an exact `Decimal` in its own currency.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

Vendor = str
FormFactor = Literal["sxm", "pcie", "nvl", "oam", "chip"]
PurchaseOption = Literal["on_demand", "spot", "reserved", "scheduled"]
Upfront = Literal["none", "partial", "all"]
Tenancy = Literal["secure", "community", "bare_metal", "serverless", "vm"]
GpuInterconnect = Literal["nvlink", "infinity_fabric", "ici", "pcie", "none", "unknown"]
PriceUnit = Literal["hour", "second", "minute", "day", "month", "term"]
PriceScope = Literal["instance", "gpu", "component"]
Availability = Literal["available", "limited", "unavailable", "unknown"]
QuoteKind = Literal["api_quote", "list_price", "market", "derived"]
Provenance = Literal["live", "recorded", "reconstructed"]
Outcome = Literal["ok", "unchanged", "held", "partial", "failed", "skipped"]
SurchargeKind = Literal["block_storage", "object_storage", "egress", "ingress", "public_ipv4", "cpu", "memory"]

PURCHASE_OPTIONS: tuple[PurchaseOption, ...] = ("on_demand", "spot", "reserved", "scheduled")
TENANCIES: tuple[Tenancy, ...] = ("secure", "community", "bare_metal", "serverless", "vm")
GPU_INTERCONNECTS: tuple[GpuInterconnect, ...] = ("nvlink", "infinity_fabric", "ici", "pcie", "none", "unknown")
PRICE_UNITS: tuple[PriceUnit, ...] = ("hour", "second", "minute", "day", "month", "term")
PRICE_SCOPES: tuple[PriceScope, ...] = ("instance", "gpu", "component")
AVAILABILITIES: tuple[Availability, ...] = ("available", "limited", "unavailable", "unknown")
QUOTE_KINDS: tuple[QuoteKind, ...] = ("api_quote", "list_price", "market", "derived")
PROVENANCES: tuple[Provenance, ...] = ("live", "recorded", "reconstructed")
FORM_FACTORS: tuple[FormFactor, ...] = ("sxm", "pcie", "nvl", "oam", "chip")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """Published facts of one accelerator product; one row of `catalog/data/accelerators.csv`.

    TFLOPS are dense (no sparsity) per device; None means not supported or not published.
    `memory_gib_usable` is what the driver reports; where nobody published it, an estimate with
    `memory_gib_usable_estimated` True.
    """

    gpu: str
    vendor: str
    model: str
    family: str
    segment: str
    architecture: str
    form_factor: FormFactor
    memory_gb: float
    memory_gib_usable: float
    memory_gib_usable_estimated: bool
    memory_type: str
    memory_bandwidth_gb_s: float | None
    fp32_tflops: float | None
    tf32_tflops: float | None
    fp16_tflops: float | None
    bf16_tflops: float | None
    fp8_tflops: float | None
    int8_tflops: float | None
    fp4_tflops: float | None
    compute_capability: str
    link: str
    link_gb_s_bidirectional: float | None
    pcie_generation: float | None
    tdp_w: float | None
    release_year: int | None
    source_url: str
    verification: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be rented: one provider, place, shape and purchase option. Its price lives in `Quote`.

    `gpu_memory_gb` is per GPU, or of the slice when `gpu_fraction` is below 1. `memory_gib` is host memory of one
    instance. `region` '' means the source names none; `country` None means unknown.
    """

    provider: str
    source_sku: str
    instance_type: str
    gpu: str | None
    gpu_count: int
    via: str = ""
    variant: str = ""
    region: str = ""
    zone: str = ""
    country: str | None = None
    gpu_ambiguous: bool = False
    gpu_candidates: tuple[str, ...] = ()
    gpu_label: str = ""
    gpu_fraction: Decimal = Decimal(1)
    gpu_memory_gb: float | None = None
    memory_type: str | None = None
    vcpu_count: float | None = None
    memory_gib: float | None = None
    local_storage_gb: float | None = None
    shared_storage: bool | None = None
    cpu_arch: str | None = None
    gpu_interconnect: GpuInterconnect = "unknown"
    network_gbps: float | None = None
    network_option: str = ""
    rdma: bool | None = None
    purchase_option: PurchaseOption = "on_demand"
    commitment_days: int = 0
    upfront: Upfront = "none"
    tenancy: Tenancy = "vm"
    os: str = "linux"
    billing_increment_s: int | None = None
    minimum_charge_s: int | None = None
    boot_time_s: int | None = None

    @property
    def offer_id(self) -> str:
        """Stable identity. The GPU is not part of it: a corrected name keeps its history."""
        key = (
            self.provider,
            self.via,
            self.source_sku,
            self.region,
            self.zone,
            self.purchase_option,
            str(self.commitment_days or ""),
            "" if self.upfront == "none" else self.upfront,
            self.tenancy,
            self.os,
            self.network_option,
            self.variant,
        )
        return hashlib.sha256("\x1f".join(key).encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class Quote:
    """One observation of an offer's price and availability, exactly as the source states it.

    `price` is in `currency` per `price_unit` for `price_scope` (`component` = a sum of component prices for one
    instance). `price_usd_hour` (one instance) and `price_usd_gpu_hour` (one whole GPU) are None without a price or
    without an exchange rate.
    """

    offer_id: str
    observed_at: datetime
    price: Decimal | None
    currency: str
    price_unit: PriceUnit = "hour"
    price_scope: PriceScope = "instance"
    price_usd_hour: float | None = None
    price_usd_gpu_hour: float | None = None
    availability: Availability = "unknown"
    stock_count: int | None = None
    interruption_rate: float | None = None
    quote_kind: QuoteKind = "list_price"
    flags: tuple[str, ...] = ()
    provenance: Provenance = "live"
    source_url: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class OfferRow:
    """An offer together with its latest quote: what a parser yields and the store keeps."""

    offer: Offer
    quote: Quote


@dataclass(frozen=True, slots=True)
class Tier:
    """One step of a tiered surcharge: `price` applies from `from_quantity` on."""

    from_quantity: Decimal
    price: Decimal


@dataclass(frozen=True, slots=True)
class Surcharge:
    """What a provider bills beside the instance: storage, traffic, addresses, CPU and memory meters.

    `price` is in `currency` per `unit` (such as gb_month, gb, hour, core_hour, gib_hour).
    """

    provider: str
    kind: SurchargeKind
    price: Decimal
    currency: str
    unit: str
    region: str = ""
    price_usd: float | None = None
    included_quantity: Decimal | None = None
    tiers: tuple[Tier, ...] = ()
    source_url: str = ""
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """A dated reference rate: one unit of `currency` was worth `usd_per_unit` US dollars on `day` (ISO date)."""

    day: str
    currency: str
    usd_per_unit: Decimal
    source: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One fetched or recorded body, with what is needed to judge where and when it comes from."""

    provider: str
    url: str
    body: bytes
    fetched_at: datetime
    method: str = "GET"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    byte_count: int = 0
    name: str = ""
    provenance: Provenance = "live"
    request_body: str = ""

    def text(self) -> str:
        """The body as text without a byte order mark.

        Undecodable bytes become U+FFFD, so a truncated page still parses to an error.
        """
        return self.body.decode("utf-8-sig", errors="replace")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A row that was not taken: a stable reason code, the field and value at fault, and a sample of the raw row."""

    provider: str
    reason: str
    field: str = ""
    value: str = ""
    sample: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """The record of one attempt to refresh one provider."""

    run_id: str
    provider: str
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome
    row_count: int = 0
    rejected_count: int = 0
    unmapped_count: int = 0
    complete: bool = False
    reason: str = ""
    collector_version: str = ""
