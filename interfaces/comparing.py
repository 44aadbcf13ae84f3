"""What `compare` puts side by side: facts of offers and of GPUs, and how each does on a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.accelerators import accelerators, families
from catalog.errors import GpuBazaarError, UnknownName
from catalog.filters import OfferFilter
from catalog.names import gpu_slugs_for
from catalog.queries import known_values, offers
from catalog.reader import Catalog

FACTS = (
    "kind", "provider", "instance_type", "region", "gpu", "gpu_count", "vendor", "form_factor", "gpu_memory_gb",
    "total_gpu_memory_gb", "memory_type", "memory_bandwidth_gb_s", "bf16_dense_tflops", "fp8_dense_tflops",
    "supports_fp8", "supports_fp4", "gpu_interconnect", "link_gb_s_bidirectional", "network_gbps", "rdma", "vcpu_count",
    "memory_gib", "local_storage_gb", "purchase_option", "commitment_days", "tenancy", "billing_increment_s",
    "price_usd_gpu_hour", "price_usd_hour", "storage_usd_gb_month", "egress_usd_gb", "availability",
    "interruption_rate", "offer_count", "provider_count", "cheapest_on_demand_usd_gpu_hour", "cheapest_provider",
    "cheapest_spot_usd_gpu_hour", "age_s", "freshness", "provenance", "source_url",
)  # fmt: skip
PLAN_FACTS = (
    "verdict", "plan_gpus", "required_gib_per_gpu", "headroom_gib_per_gpu", "tpot_ms", "ttft_ms", "output_tokens_s",
    "seconds_per_item", "hours", "cost_total_usd", "cost_usd_month", "cost_usd_per_million_tokens", "why_not",
)  # fmt: skip
_ALL = 1_000_000
_SHORTEST_ID = 6


@dataclass(slots=True)
class Item:
    """One column of the comparison."""

    facts: dict[str, Any]
    warnings: list[str] = field(default_factory=list)


def find_items(catalog: Catalog, names: tuple[str, ...], workload: Mapping[str, Any] | None) -> list[Item]:
    """Resolve every name and gather its facts.

    Raises:
        UnknownName: a name that is neither an offer nor a GPU, with the nearest guesses.
        RequestError: the workload cannot be read.
    """
    return [_item(catalog, name, workload) for name in names]


def _item(catalog: Catalog, name: str, workload: Mapping[str, Any] | None) -> Item:
    offer = _offer(catalog, name)
    if offer is not None:
        item = Item({"item": name, "kind": "offer", **{k: offer.get(k) for k in FACTS if k in offer}})
        if workload is not None:
            item.facts |= _planned(catalog, workload, {"provider": (offer["provider"],)}, offer["offer_id"])
        return item
    slugs = _slugs(name)
    if not slugs:
        raise UnknownName("offer or GPU", name, [*accelerators(), *families(), *known_values(catalog, "provider")])
    item = _gpu(catalog, name, slugs)
    if workload is not None:
        item.facts |= _planned(catalog, {**workload, "gpu": name}, {}, None)
    return item


def _offer(catalog: Catalog, name: str) -> dict[str, Any] | None:
    """The offer of an id, its beginning, or PROVIDER/INSTANCE_TYPE[@REGION]: the cheapest where several match."""
    if "/" in name:
        provider, _, rest = name.partition("/")
        instance_type, _, region = rest.partition("@")
        rows = offers(catalog, OfferFilter(provider=(provider,), region=(region,) if region else ()))
        matching = [row for row in rows if row["instance_type"] == instance_type]
        if not matching:
            raise UnknownName(f"instance type of {provider}", instance_type, {row["instance_type"] for row in rows})
        return matching[0]
    folded = name.casefold()
    if len(folded) < _SHORTEST_ID or not all(c in "0123456789abcdef" for c in folded):
        return None
    return next((row for row in offers(catalog) if row["offer_id"].startswith(folded)), None)


def _slugs(name: str) -> tuple[str, ...]:
    try:
        return tuple(gpu_slugs_for(name))
    except GpuBazaarError:
        return ()


def _gpu(catalog: Catalog, name: str, slugs: tuple[str, ...]) -> Item:
    members = [accelerators()[slug] for slug in slugs]
    first = members[0]
    rows = [r for r in offers(catalog, OfferFilter(gpu=(name,))) if r["price_usd_gpu_hour"] is not None]
    on_demand = [r for r in rows if r["purchase_option"] == "on_demand" and r["availability"] != "unavailable"]
    spot = [r for r in rows if r["purchase_option"] == "spot" and r["availability"] != "unavailable"]
    facts: dict[str, Any] = {
        "item": name,
        "kind": "gpu",
        "gpu": first.gpu if len(members) == 1 else first.family,
        "vendor": first.vendor,
        "form_factor": first.form_factor if len(members) == 1 else None,
        "gpu_memory_gb": min(m.memory_gb for m in members),
        "memory_type": first.memory_type,
        "memory_bandwidth_gb_s": min(m.memory_bandwidth_gb_s or 0 for m in members) or None,
        "bf16_dense_tflops": min(m.bf16_tflops or 0 for m in members) or None,
        "fp8_dense_tflops": min(m.fp8_tflops or 0 for m in members) or None,
        "supports_fp8": all(m.fp8_tflops is not None for m in members),
        "supports_fp4": all(m.fp4_tflops is not None for m in members),
        "link_gb_s_bidirectional": min(m.link_gb_s_bidirectional or 0 for m in members) or None,
        "offer_count": len(rows),
        "provider_count": len({r["provider"] for r in rows}),
        "cheapest_on_demand_usd_gpu_hour": on_demand[0]["price_usd_gpu_hour"] if on_demand else None,
        "cheapest_provider": on_demand[0]["provider"] if on_demand else None,
        "cheapest_spot_usd_gpu_hour": spot[0]["price_usd_gpu_hour"] if spot else None,
        "source_url": first.source_url,
    }
    several = [f"{name} is one of {', '.join(slugs)}: the least of each figure is shown"] if len(members) > 1 else []
    return Item(facts, several)


def _planned(
    catalog: Catalog, workload: Mapping[str, Any], filters: Mapping[str, Any], offer_id: str | None
) -> dict[str, Any]:
    """How an item does on the workload: the plan on this very offer, or the best plan on this GPU."""
    from planner.plan import ask_of
    from planner.plan_core import make_plan

    options = {"purchase_option": ("on_demand", "spot", "reserved", "scheduled")} if offer_id else {}
    keys = {"max_commitment_days": 10_000} if offer_id else {}
    ask = ask_of(workload, keys, {**filters, **options}, allow_stale=True, limit=_ALL)
    result = make_plan(catalog, ask)
    answer = result.answer
    places = [n for n, plan in enumerate(result.plans) if offer_id in {None, plan.offer["offer_id"]}]
    rows = [answer["rows"][n] for n in places[:1]]
    if rows:
        return {name: rows[0].get(name) for name in PLAN_FACTS if name != "why_not"}
    return {"verdict": "no", "why_not": ", ".join(answer["rejected"]["counts"])}
