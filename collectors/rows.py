"""Builds catalog rows from what a parser read: names resolved, units checked, odd things flagged or rejected."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from catalog.accelerators import accelerator
from catalog.names import Resolution, resolve
from catalog.types import (
    Availability,
    Document,
    ExchangeRate,
    GpuInterconnect,
    Offer,
    OfferRow,
    PriceScope,
    PriceUnit,
    Quote,
    QuoteKind,
    Rejection,
    Surcharge,
    SurchargeKind,
    Tier,
)
from catalog.units import decimal_of, gpu_price_hour, instance_price_hour
from collectors.contract import Collector, Parsed
from collectors.regions import country_of

# A stated memory this far from the fact table is another product or a wrong field; GB against GiB is only 7 %.
_MEMORY_TOLERANCE = 0.12
_MEMORY_IN_NAME = re.compile(r"\d\s*g(?:i?b)?(?![a-z])", re.IGNORECASE)
# Words with which a source fills the place of a name it does not have.
_NO_NAME = re.compile(
    r"[\W_]*(?:(?:nvidia|amd|intel|unknown|none|null|undefined|unspecified|other|n/?a|tb[ad]|gpus?)[\W_]*)*",
    re.IGNORECASE,
)
# Words of a price page that stand where a name was expected when the name is gone ("Per vCPU", "vRAM 640GB").
_NO_PRODUCT = frozenset({
    "a", "an", "and", "at", "call", "chip", "contact", "core", "cores", "cpu", "cpus", "demand", "disk", "each",
    "for", "free", "from", "gb", "gib", "hour", "hourly", "instance", "instances", "machine", "machines", "memory",
    "month", "monthly", "node", "nodes", "nvme", "of", "on", "our", "per", "price", "prices", "pricing", "ram",
    "sales", "size", "spot", "ssd", "starting", "storage", "talk", "tb", "the", "to", "us", "vcpu", "vcpus", "vm",
    "vms", "vram", "with", "x",
})  # fmt: skip
_AMOUNTS = ("vcpu_count", "memory_gib", "local_storage_gb")
_AMOUNT = re.compile(r"x?\d{1,2}x?|\d[\d.,]*[kmgt]i?b|\d+[.,]\d+")  # a bare "6090" may be a name
# ISO 4217, or the name of a token that a marketplace is paid in.
_CURRENCY = re.compile(r"[A-Z][A-Z0-9-]{2,15}")


@dataclasses.dataclass(frozen=True, slots=True)
class GpuRead:
    """What a source says of its accelerator, before names are resolved.

    `label` is the source's own words; `gpu` a slug or family from a reviewed table of instance types, where the
    source names none. `count`, `fraction` and `memory_gb` (per GPU or slice) override what the label says.
    `per_card` is True where the source states the memory of one card, and not of the instance, for any count.
    """

    label: str = ""
    gpu: str | None = None
    count: int | None = None
    fraction: Decimal | None = None
    memory_gb: float | None = None
    form_factor: str | None = None
    per_card: bool = False


class RowBuilder:
    """Collects the rows of one parse. A bad row becomes a `Rejection`; it never stops the others."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._rows: dict[str, OfferRow] = {}
        self._rejections: list[Rejection] = []
        self._surcharges: list[Surcharge] = []
        self._rates: list[ExchangeRate] = []
        self._unmapped: dict[str, None] = {}
        self._notes: list[str] = []
        self._complete = True
        self.covered: set[tuple[str | None, int]] = set()
        """What a fuller source of the same parse lists already, as (GPU, GPUs per instance)."""

    def offer(
        self,
        document: Document,
        gpu: GpuRead,
        *,
        sku: str,
        instance_type: str,
        price: object,
        price_unit: PriceUnit = "hour",
        price_scope: PriceScope = "instance",
        currency: str | None = None,
        availability: Availability = "unknown",
        stock_count: int | None = None,
        interruption_rate: float | None = None,
        quote_kind: QuoteKind = "list_price",
        flags: Iterable[str] = (),
        source_url: str | None = None,
        **offer_fields: Any,
    ) -> OfferRow | None:
        """Add one offer.

        Args:
            document: where the row was read; gives observed_at, provenance and, unless stated, source_url.
            gpu: what the source says of its accelerator.
            sku: the provider's stable identifier of what is sold; never an ephemeral id.
            instance_type: the name a customer would use.
            price: a number or numeric text in `currency` per `price_unit` for `price_scope`; None where the source
                shows the offer without a price. Zero, negative and non-numeric prices reject the row.
            price_unit: what one price pays for, as the source states it.
            price_scope: whether the price is of the instance, of one GPU, or a sum of components.
            currency: ISO 4217 code; defaults to the collector's.
            availability: as in `Quote`, and so for the next four.
            stock_count: how many are free.
            interruption_rate: share of instances interrupted, as the source defines it.
            quote_kind: how the price came about.
            flags: codes of what is odd but kept.
            source_url: where a person can check; defaults to the document's address.
            offer_fields: any other field of `Offer` (region, purchase_option, vcpu_count …).

        Returns:
            The row, or None where it was rejected.
        """
        stated = currency or self._collector.currency
        amount = decimal_of(price)
        if price is not None and (amount is None or amount <= 0):
            self.reject("not_a_price", "price", price, sample=f"{sku} {offer_fields.get('region', '')}".strip())
            return None
        if not _CURRENCY.fullmatch(stated):
            self.reject("currency_unknown", "currency", stated, sample=sku)
            return None
        if not f"{sku}{instance_type}".strip():
            self.reject("unnamed", "instance_type", instance_type, sample=f"{gpu.label} {price}")
            return None
        described = self._described(gpu, sku, instance_type)
        if described is None:
            return None
        fields, seen_flags = described
        offer = self._offer(sku, instance_type, fields, offer_fields)
        all_flags = tuple(dict.fromkeys([*flags, *seen_flags, *(["unpriced"] if amount is None else [])]))
        quote = Quote(
            offer_id=offer.offer_id,
            observed_at=document.fetched_at,
            price=amount,
            currency=stated,
            price_unit=price_unit,
            price_scope=price_scope,
            availability=availability,
            stock_count=stock_count if _is_number(stock_count) else None,
            interruption_rate=interruption_rate,
            quote_kind=quote_kind,
            flags=all_flags,
            provenance=document.provenance,
            source_url=source_url or document.url,
        )
        return self._keep(OfferRow(offer, with_usd(quote, offer, stated)))

    def _described(self, gpu: GpuRead, sku: str, instance_type: str) -> tuple[dict[str, Any], list[str]] | None:
        label = gpu.gpu or gpu.label
        if _NO_NAME.fullmatch(label):
            self.reject("gpu_unnamed", "gpu", gpu.label, sample=sku)
            return None
        found = _narrowed(resolve(label, memory_gb=gpu.memory_gb, form_factor=gpu.form_factor), instance_type)
        count = gpu.count if gpu.count is not None else (found.gpu_count or 1)
        if count <= 0:
            self.reject("gpu_count", "gpu_count", count, sample=sku)
            return None
        if found.gpu is not None and found.gpu_fraction is None and gpu.fraction is None:
            self.reject("slice_size", "gpu_fraction", gpu.label or label, sample=sku)
            return None
        flags: list[str] = []
        if found.gpu is None and _names_no_product(gpu.label or label):
            self.reject("gpu_unnamed", "gpu", gpu.label or label, sample=sku)
            return None
        if found.gpu is None:
            self._unmapped[gpu.label or label] = None
            flags.append("gpu_unmapped")
        fraction = gpu.fraction if gpu.fraction is not None else (found.gpu_fraction or Decimal(1))
        memory = found.gpu_memory_gb
        memory_type = None
        if found.gpu is not None and not found.gpu_ambiguous:
            facts = accelerator(found.gpu)
            memory_type = facts.memory_type
            # A label naming a slice (MIG) already carries the slice's memory.
            memory = (
                memory if fraction < 1 and memory and memory < facts.memory_gb else facts.memory_gb * float(fraction)
            )
        if gpu.memory_gb is not None:
            if memory and abs(gpu.memory_gb - memory) > _MEMORY_TOLERANCE * memory and fraction == 1:
                flags.append("memory_mismatch")
                if 1 <= gpu.memory_gb < memory and (gpu.per_card or count == 1) and not _MEMORY_IN_NAME.search(label):
                    memory = gpu.memory_gb  # a smaller card of that name: nothing fits into memory that is not there
            elif memory is None or (fraction < 1 and not _is_whole(gpu.memory_gb, found)):
                memory = gpu.memory_gb
        fields: dict[str, Any] = {
            "gpu": found.gpu,
            "gpu_label": gpu.label or label,
            "gpu_count": count,
            "gpu_fraction": fraction.quantize(Decimal("0.00001")),
            "gpu_memory_gb": memory,
            "gpu_ambiguous": found.gpu_ambiguous,
            "gpu_candidates": found.gpu_candidates,
            "memory_type": memory_type,
            "gpu_interconnect": _interconnect(found.gpu, found.gpu_ambiguous, count),
        }
        return fields, flags

    def _offer(self, sku: str, instance_type: str, fields: dict[str, Any], stated: dict[str, Any]) -> Offer:
        collector = self._collector
        supplier = collector.part_of or collector.provider
        defaults: dict[str, Any] = {
            "billing_increment_s": collector.billing_increment_s,
            "minimum_charge_s": collector.minimum_charge_s,
        }
        if stated.get("region") and "country" not in stated:
            defaults["country"] = country_of(stated.get("via") or supplier, stated["region"])
        if fields["gpu_count"] == 1 or stated.get("gpu_interconnect") == "unknown":
            # One GPU has no link to another, and a source that does not say leaves it to the product's board.
            stated = {key: value for key, value in stated.items() if key != "gpu_interconnect"}
        merged = {**defaults, **fields, **stated}
        merged.setdefault("provider", supplier)
        merged.update({name: _amount_of(merged[name]) for name in _AMOUNTS if name in merged})
        return Offer(source_sku=sku, instance_type=instance_type, **merged)

    def _keep(self, row: OfferRow) -> OfferRow | None:
        known = self._rows.get(row.offer.offer_id)
        if known is None:
            self._rows[row.offer.offer_id] = row
            return row
        if known.quote.price == row.quote.price and known.offer == row.offer:
            return known  # the same row on two pages
        self.reject(
            "duplicate_key", "source_sku", row.offer.source_sku,
            sample=f"{row.offer.instance_type} {row.offer.region}: {known.quote.price} and {row.quote.price}",
        )  # fmt: skip
        return None

    def reject(self, reason: str, field: str = "", value: object = "", *, sample: object = "") -> None:
        """Record a row that was not taken: a stable reason code, the field at fault and its value."""
        self._rejections.append(Rejection(self._collector.provider, reason, field, str(value)[:200], str(sample)[:500]))

    def unmapped(self, label: str) -> None:
        """Record a GPU name or size that no table holds, where no offer can be made of it."""
        self._unmapped[label] = None

    def surcharge(
        self,
        document: Document,
        kind: SurchargeKind,
        price: object,
        unit: str,
        *,
        currency: str | None = None,
        region: str = "",
        included_quantity: Decimal | None = None,
        tiers: tuple[Tier, ...] = (),
        source_url: str | None = None,
    ) -> None:
        """Add a surcharge; a price of zero is a fact here ("egress is free"), anything non-numeric is rejected."""
        amount = decimal_of(price)
        if amount is None or amount < 0:
            self.reject("not_a_price", f"surcharge.{kind}", price)
            return
        self._surcharges.append(
            Surcharge(
                provider=self._collector.part_of or self._collector.provider, kind=kind, price=amount, unit=unit,
                region=region, currency=currency or self._collector.currency,
                included_quantity=included_quantity, tiers=tiers,
                source_url=source_url or document.url, observed_at=document.fetched_at,
            )
        )  # fmt: skip

    def rate(self, rate: ExchangeRate) -> None:
        """Add a dated exchange rate."""
        self._rates.append(rate)

    def incomplete(self, note: str) -> None:
        """Say that the documents are not the whole list, and why."""
        self._complete = False
        self._notes.append(note)

    def note(self, note: str) -> None:
        """Say something odd about the whole run without calling it incomplete."""
        self._notes.append(note)

    @property
    def row_count(self) -> int:
        """How many rows were kept so far."""
        return len(self._rows)

    def finish(self) -> Parsed:
        """The result of the parse."""
        return Parsed(
            rows=tuple(self._rows.values()), surcharges=tuple(self._surcharges), rejections=tuple(self._rejections),
            unmapped=tuple(self._unmapped), rates=tuple(self._rates), complete=self._complete, notes=tuple(self._notes),
        )  # fmt: skip


def _names_no_product(label: str) -> bool:
    words = re.findall(r"[a-z0-9][a-z0-9.,]*", label.casefold())
    return all(word in _NO_PRODUCT or _AMOUNT.fullmatch(word) for word in words)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _amount_of(value: Any) -> Any:
    """The amount as the source states it; what is no number above zero is unknown."""
    number = decimal_of(value)
    if number is None or number <= 0:
        return None
    return value if _is_number(value) else float(number)


def _narrowed(found: Resolution, instance_type: str) -> Resolution:
    """One of several candidates, where the cloud's own name of the type states it: 8H100.80S.176V, n3-H100-SXM5x8."""
    own = resolve(instance_type) if found.gpu_ambiguous else None
    if own is None or own.gpu is None or own.gpu_ambiguous or own.gpu not in found.gpu_candidates:
        return found
    return dataclasses.replace(found, gpu=own.gpu, gpu_candidates=(own.gpu,), gpu_ambiguous=False)


def _is_whole(memory_gb: float, found: Resolution) -> bool:
    """Whether a memory figure beside a slice is that of the whole card."""
    return any(memory_gb >= (1 - _MEMORY_TOLERANCE) * accelerator(gpu).memory_gb for gpu in found.gpu_candidates)


def _interconnect(gpu: str | None, ambiguous: bool, count: int) -> GpuInterconnect:
    """What joins the GPUs of one instance where the source does not say: the board of the product decides.

    Modules (SXM, OAM, superchips, TPUs) sit on boards that carry their link; single cards need none; PCIe cards share
    the bus at least. Cards with optional bridges (NVL, A100 PCIe) stay unknown.
    """
    if count == 1:
        return "none"
    if gpu is None or ambiguous:
        return "unknown"
    facts = accelerator(gpu)
    link = facts.link.casefold()
    if facts.form_factor in {"sxm", "oam", "chip"}:
        if "nvlink" in link:
            return "nvlink"
        if "infinity" in link or link.startswith("xgmi"):
            return "infinity_fabric"
        return "ici" if "ici" in link else "unknown"
    return "pcie" if facts.form_factor == "pcie" and link in {"", "none"} else "unknown"


def with_usd(quote: Quote, offer: Offer, currency: str, usd_per_unit: Decimal | None = None) -> Quote:
    """The quote with its hourly dollar prices filled in; None where there is no price or no exchange rate."""
    rate = Decimal(1) if currency == "USD" else usd_per_unit
    if quote.price is None or rate is None:
        return dataclasses.replace(quote, price_usd_hour=None, price_usd_gpu_hour=None)
    hourly = rate * instance_price_hour(
        quote.price, quote.price_unit, quote.price_scope, offer.gpu_count, offer.commitment_days
    )
    per_gpu = gpu_price_hour(hourly, offer.gpu_count, offer.gpu_fraction)
    return dataclasses.replace(
        quote, price_usd_hour=float(hourly), price_usd_gpu_hour=None if per_gpu is None else float(per_gpu)
    )
