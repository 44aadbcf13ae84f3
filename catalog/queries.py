"""Typed queries over the published views: what every interface and the planner ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from catalog.errors import UnknownName
from catalog.filters import OfferFilter, conditions
from catalog.reader import Catalog

OFFER_COLUMNS: tuple[str, ...] = (
    "offer_id", "provider", "via", "source_sku", "instance_type", "variant", "region", "zone", "country",
    "purchase_option", "commitment_days", "upfront", "tenancy", "os", "gpu", "gpu_ambiguous", "vendor", "model",
    "form_factor", "gpu_count", "gpu_fraction", "gpu_memory_gb", "total_gpu_memory_gb", "memory_type",
    "memory_bandwidth_gb_s", "bf16_dense_tflops", "fp8_dense_tflops", "supports_fp8", "supports_fp4", "supports_int8",
    "supports_bf16", "gpu_interconnect", "link_gb_s_bidirectional", "network_gbps", "network_option", "rdma",
    "vcpu_count", "memory_gib", "local_storage_gb", "shared_storage", "cpu_arch", "billing_increment_s",
    "minimum_charge_s", "boot_time_s", "storage_usd_gb_month", "egress_usd_gb", "price", "currency", "price_unit",
    "price_scope", "price_usd_hour", "price_usd_gpu_hour", "price_usd_month", "price_usd_gb_hour", "availability",
    "stock_count", "interruption_rate", "quote_kind", "flags", "provenance", "observed_at", "age_s", "freshness",
    "source_url", "run_id",
)  # fmt: skip
HEALTH_COLUMNS: tuple[str, ...] = (
    "provider", "outcome", "row_count", "rejected_count", "unmapped_count", "last_success_at", "last_attempt_at",
    "age_s", "max_age_s", "freshness", "provenance", "note",
)  # fmt: skip
DEFAULT_SORT: tuple[str, ...] = ("price_usd_gpu_hour", "price_usd_hour", "provider", "instance_type", "offer_id")


def offers(
    catalog: Catalog,
    wanted: OfferFilter | None = None,
    *,
    sort: Sequence[str] = (),
    limit: int | None = None,
    columns: Sequence[str] = OFFER_COLUMNS,
) -> list[dict[str, Any]]:
    """Offers that pass a filter, cheapest per GPU first unless sorted otherwise; unpriced rows come last.

    Args:
        catalog: an open snapshot.
        wanted: the filter; None is every offer.
        sort: column names, a leading "-" for descending.
        limit: at most so many rows.
        columns: which columns to return.

    Raises:
        UnknownName: a sort or output column that `v_offers` does not have.
    """
    for column in (*columns, *(s.removeprefix("-") for s in sort)):
        if column not in OFFER_COLUMNS and column not in {"gpu_candidates", "gpu_label"}:
            raise UnknownName("column", column, OFFER_COLUMNS)
    clauses = conditions(wanted) if wanted else []
    where = " AND ".join(f"({sql})" for sql, _ in clauses)
    parameters = [value for _, values in clauses for value in values]
    order = ", ".join(_ordered(column) for column in (*sort, *DEFAULT_SORT))
    sql = f"SELECT {', '.join(columns)} FROM v_offers{' WHERE ' + where if where else ''} ORDER BY {order}"
    if limit is not None:
        sql += f" LIMIT {int(limit)}"
    return catalog.rows(sql, parameters)


def _ordered(column: str) -> str:
    name = column.removeprefix("-")
    return f"{name} {'DESC' if column.startswith('-') else 'ASC'} NULLS LAST"


def provider_health(catalog: Catalog, providers: Iterable[str] = ()) -> list[dict[str, Any]]:
    """One row per declared provider: last outcome, counts, age against its limit.

    Raises:
        UnknownName: a provider the catalog does not know.
    """
    rows = catalog.rows(f"SELECT {', '.join(HEALTH_COLUMNS)} FROM v_provider_health ORDER BY provider")
    wanted = list(providers)
    known = [row["provider"] for row in rows]
    for name in wanted:
        if name not in known:
            raise UnknownName("provider", name, known)
    return [row for row in rows if not wanted or row["provider"] in wanted]


def cheapest_per_gpu(catalog: Catalog, purchase_option: str = "on_demand") -> list[dict[str, Any]]:
    """The cheapest offer of each GPU under one purchase option, over all countries, cheapest GPU first."""
    return catalog.rows(
        """SELECT * FROM v_cheapest WHERE purchase_option = ?
        QUALIFY row_number() OVER (PARTITION BY gpu ORDER BY price_usd_gpu_hour, offer_id) = 1
        ORDER BY price_usd_gpu_hour""",
        [purchase_option],
    )


def known_values(catalog: Catalog, column: str) -> list[str]:
    """Every value that a text column of `v_offers` holds: the vocabulary for "did you mean"."""
    if column not in OFFER_COLUMNS:
        raise UnknownName("column", column, OFFER_COLUMNS)
    rows = catalog.rows(f"SELECT DISTINCT {column} AS value FROM v_offers WHERE {column} IS NOT NULL ORDER BY 1")
    return [str(row["value"]) for row in rows]


def surcharges(catalog: Catalog, provider: str | None = None) -> list[dict[str, Any]]:
    """Surcharges of one provider, or of all."""
    where, parameters = (" WHERE provider = ?", [provider]) if provider else ("", [])
    return catalog.rows(f"SELECT * FROM v_surcharges{where} ORDER BY provider, region, kind, unit", parameters)


def exchange_rates(catalog: Catalog) -> dict[str, dict[str, Any]]:
    """The newest rate per currency: {currency: {usd_per_unit, day}}."""
    return {row["currency"]: row for row in catalog.rows("SELECT * FROM v_exchange")}


def known_documents(catalog: Catalog, provider: str) -> tuple[str | None, list[dict[str, Any]]]:
    """The joint hash of the documents behind a provider's rows, and what is kept of each (url, etag, sha256 …)."""
    state = catalog.rows("SELECT document_hash FROM provider_state WHERE provider = ?", [provider])
    documents = catalog.rows("SELECT * FROM fetch_state WHERE provider = ? ORDER BY url", [provider])
    return (state[0]["document_hash"] if state else None), documents


def stored_offers(catalog: Catalog, source: str) -> list[dict[str, Any]]:
    """The open offers of one collector as last published: offer_id, gpu, currency and price_hour (native)."""
    return catalog.rows(
        """SELECT offer_id, gpu, currency, price_hour FROM current
        WHERE source = ? AND closed_at IS NULL ORDER BY offer_id""",
        [source],
    )


def cross_check(catalog: Catalog, tolerance: float = 0.10) -> list[dict[str, Any]]:
    """Where a second source disagrees with a provider's own rows by more than `tolerance`.

    Compared per provider, GPU, GPU count, region and purchase option on the lowest price per GPU and hour of each. A
    source that leaves the form factor or the region open is compared with everything that it can mean, and disagrees
    only where it matches none of it.
    """
    return catalog.rows(
        """WITH priced AS (
            SELECT o.provider, o.via, o.gpu, coalesce(a.family, o.gpu) AS family, o.gpu_ambiguous, o.gpu_count,
                   o.region, o.purchase_option, o.commitment_days, min(o.price_usd_gpu_hour) AS usd
            FROM v_offers o LEFT JOIN accelerators a USING (gpu)
            WHERE o.price_usd_gpu_hour IS NOT NULL AND o.gpu IS NOT NULL AND o.gpu_fraction = 1
            GROUP BY ALL
        ), paired AS (
            SELECT own.provider, other.gpu, own.gpu_count, coalesce(nullif(other.region, ''), own.region) AS region,
                   own.purchase_option, own.commitment_days, own.usd AS own_usd_gpu_hour,
                   other.via AS second_source, other.usd AS second_usd_gpu_hour,
                   100 * (own.usd / other.usd - 1) AS difference_pct
            FROM priced own JOIN priced other
              ON own.provider = other.provider AND own.family = other.family AND own.gpu_count = other.gpu_count
             AND own.purchase_option = other.purchase_option AND own.commitment_days = other.commitment_days
             AND (own.gpu = other.gpu OR own.gpu_ambiguous OR other.gpu_ambiguous)
             AND (own.region = other.region OR own.region = '' OR other.region = '')
            WHERE own.via = '' AND other.via <> ''
        )
        SELECT * FROM paired
        QUALIFY row_number() OVER (
            PARTITION BY provider, gpu, gpu_count, region, purchase_option, commitment_days, second_source
            ORDER BY abs(difference_pct)
        ) = 1 AND abs(difference_pct) > 100 * ?
        ORDER BY abs(difference_pct) DESC, provider, gpu, gpu_count, region""",
        [tolerance],
    )
