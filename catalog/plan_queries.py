"""What the planner asks: distinct hardware shapes among offers, and the offers of the shapes that fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.filters import OfferFilter, conditions
from catalog.reader import Catalog

PLAN_COLUMNS: tuple[str, ...] = (
    "offer_id", "provider", "via", "instance_type", "variant", "region", "zone", "country", "purchase_option",
    "commitment_days", "upfront", "tenancy", "os", "gpu", "gpu_ambiguous", "gpu_count", "gpu_fraction",
    "gpu_memory_gb", "memory_type", "gpu_interconnect", "network_gbps", "network_option", "rdma", "vcpu_count",
    "memory_gib", "local_storage_gb", "shared_storage", "billing_increment_s", "minimum_charge_s", "boot_time_s",
    "currency", "price_usd_hour", "availability", "stock_count", "interruption_rate", "quote_kind", "flags",
    "provenance", "observed_at", "age_s", "freshness", "source_url", "gpu_candidates",
)  # fmt: skip
# What decides whether and how fast a workload runs on an offer; every offer of one shape shares one estimate.
_SHAPE_COLUMNS = (
    "gpu", "gpu_candidates", "gpu_count", "gpu_fraction", "gpu_memory_gb", "gpu_interconnect", "rdma", "network_gbps",
)  # fmt: skip
# What decides an offer's cost beside its hourly price; among offers alike in all of it the cheaper price costs less.
_TERMS_COLUMNS = (
    "provider", "via", "region_terms", "purchase_option", "commitment_days", "upfront", "tenancy",
    "billing_increment_s", "minimum_charge_s", "boot_time_s", "local_storage_gb", "interruption_rate", "vcpu_count",
    "memory_gib", "availability",
)  # fmt: skip


def _plan_source(wanted: OfferFilter | None) -> tuple[str, list[Any]]:
    """The filtered offers, each with its shape as one text key and whether a reseller's row repeats the provider's."""
    clauses = conditions(wanted) if wanted else []
    where = " AND ".join(f"({sql})" for sql, _ in clauses)
    parameters = [value for _, values in clauses for value in values]
    shape = ", ".join(f"coalesce({column}::VARCHAR, '')" for column in _SHAPE_COLUMNS)
    sql = f"""
    WITH own AS (
        SELECT provider AS own_provider FROM v_provider_health
        WHERE freshness IN ('fresh', 'aging') AND row_count > 0
    ), priced AS (SELECT DISTINCT provider || '|' || region AS place FROM surcharges WHERE region <> ''),
    found AS (
        SELECT v_offers.*, concat_ws('|', {shape}) AS shape_key, via <> '' AND provider IN (FROM own) AS repeats_own,
               CASE WHEN provider || '|' || region IN (FROM priced) THEN region ELSE '' END AS region_terms
        FROM v_offers {"WHERE " + where if where else ""}
    )"""
    return sql, parameters


def offer_shapes(catalog: Catalog, wanted: OfferFilter | None = None) -> list[dict[str, Any]]:
    """Distinct hardware shapes among offers, split by what else keeps an offer out of a plan, with counts.

    One row per shape and combination of purchase_option, commitment_days, availability, freshness, os, priced,
    restricted (a closed region) and repeats_own: {shape_key, the shape's columns, …, offer_count, min_price_usd_hour}.
    """
    source, parameters = _plan_source(wanted)
    columns = ", ".join(("shape_key", *_SHAPE_COLUMNS, "purchase_option", "commitment_days", "availability",
                         "freshness", "os", "repeats_own"))  # fmt: skip
    return catalog.rows(
        f"""{source} SELECT {columns}, price_usd_hour IS NOT NULL AS priced,
        list_contains(flags, 'sovereign_region') AS restricted, count(*) AS offer_count,
        min(price_usd_hour) AS min_price_usd_hour, min(provider) AS sample_provider,
        min(instance_type) AS sample_instance_type FROM found GROUP BY ALL""",
        parameters,
    )


def offers_of_shapes(
    catalog: Catalog, shape_keys: Sequence[str], wanted: OfferFilter | None = None, *, per_terms: int
) -> list[dict[str, Any]]:
    """Priced offers of the given shapes: of each group alike in shape and terms the `per_terms` cheapest.

    Nothing that the planner could rank is lost: within a group only the hourly price differs.
    """
    source, parameters = _plan_source(wanted)
    terms = ", ".join(("shape_key", *_TERMS_COLUMNS, "freshness"))
    return catalog.rows(
        f"""{source} SELECT {", ".join(PLAN_COLUMNS)}, shape_key, repeats_own, true AS priced,
               list_contains(flags, 'sovereign_region') AS restricted FROM found
        WHERE price_usd_hour IS NOT NULL AND NOT repeats_own AND os = 'linux'
          AND shape_key IN (SELECT unnest(?::VARCHAR[]))
        QUALIFY row_number() OVER (PARTITION BY {terms} ORDER BY price_usd_hour, offer_id) <= {int(per_terms)}
        ORDER BY price_usd_hour, offer_id""",
        [*parameters, list(shape_keys)],
    )
