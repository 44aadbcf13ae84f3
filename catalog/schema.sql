-- Tables of the catalog. Views in views.sql are the public interface; these are not.
-- No index and no key on hot tables: scans of 60,000 rows take milliseconds and WAL replay of ART indexes has had bugs.

CREATE TABLE IF NOT EXISTS meta (key VARCHAR, value VARCHAR);

CREATE TABLE IF NOT EXISTS providers (
    provider VARCHAR, title VARCHAR, home_page VARCHAR, kind VARCHAR, cadence_s BIGINT, max_age_s BIGINT,
    on_demand BOOLEAN, currency VARCHAR, counted BOOLEAN, terms_note VARCHAR
);

CREATE TABLE IF NOT EXISTS provider_state (
    provider VARCHAR, outcome VARCHAR, note VARCHAR, provenance VARCHAR, last_run_id VARCHAR,
    last_attempt_at TIMESTAMPTZ, last_success_at TIMESTAMPTZ, last_complete_at TIMESTAMPTZ, document_hash VARCHAR,
    row_count BIGINT, rejected_count BIGINT, unmapped_count BIGINT, consecutive_failures BIGINT
);

-- One row per offer ever seen; closed_at says that a complete run no longer had it. offer_no names the offer in
-- the log; changed_at is when its newest log entry was made.
CREATE TABLE IF NOT EXISTS current (
    offer_no INTEGER, changed_at TIMESTAMPTZ, offer_id VARCHAR, source VARCHAR, provider VARCHAR, via VARCHAR,
    source_sku VARCHAR, instance_type VARCHAR,
    variant VARCHAR, region VARCHAR, zone VARCHAR, country VARCHAR, gpu VARCHAR, gpu_label VARCHAR, gpu_key VARCHAR,
    gpu_ambiguous BOOLEAN, gpu_candidates VARCHAR[], gpu_count INTEGER, gpu_fraction DECIMAL(6, 5),
    gpu_memory_gb DOUBLE, memory_type VARCHAR, vcpu_count DOUBLE, memory_gib DOUBLE, local_storage_gb DOUBLE,
    shared_storage BOOLEAN, cpu_arch VARCHAR, gpu_interconnect VARCHAR, network_gbps DOUBLE, network_option VARCHAR,
    rdma BOOLEAN, purchase_option VARCHAR, commitment_days INTEGER, upfront VARCHAR, tenancy VARCHAR, os VARCHAR,
    billing_increment_s BIGINT, minimum_charge_s BIGINT, boot_time_s BIGINT,
    price DECIMAL(24, 12), currency VARCHAR, price_unit VARCHAR, price_scope VARCHAR, price_hour DOUBLE,
    availability VARCHAR, stock_count BIGINT, interruption_rate DOUBLE, quote_kind VARCHAR, flags VARCHAR[],
    provenance VARCHAR, source_url VARCHAR, run_id VARCHAR, observed_at TIMESTAMPTZ,
    first_seen_at TIMESTAMPTZ, closed_at TIMESTAMPTZ
);

-- The change log. Append-only, in the own currency: an exchange-rate update is not a price change. Narrow, because a
-- year holds tens of millions of entries: price is a double (15 digits); price_exact is set where that loses digits.
-- state: 0 unknown, 1 available, 2 limited, 3 unavailable, 4 gone.
CREATE TABLE IF NOT EXISTS price_log (
    offer_no INTEGER, changed_at TIMESTAMPTZ, price DOUBLE, price_exact DECIMAL(24, 12), terms_no USMALLINT,
    state UTINYINT
);

-- What a logged price is in; hour_factor makes it the price of one instance for one hour.
CREATE TABLE IF NOT EXISTS price_terms (
    terms_no USMALLINT, currency VARCHAR, price_unit VARCHAR, price_scope VARCHAR, hour_factor DOUBLE
);

-- The state of every open offer at the start of each closed month's successor: where a look at the past begins.
CREATE TABLE IF NOT EXISTS price_bases (
    base_at TIMESTAMPTZ, offer_no INTEGER, changed_at TIMESTAMPTZ, price DOUBLE, price_exact DECIMAL(24, 12),
    terms_no USMALLINT, state UTINYINT
);

-- Closed months of the log, each a read-only file beside the snapshots. starts_at is inclusive, ends_at exclusive.
CREATE TABLE IF NOT EXISTS history_months (
    month VARCHAR, starts_at TIMESTAMPTZ, ends_at TIMESTAMPTZ, row_count BIGINT, byte_count BIGINT
);

-- When a source was up: from its first good complete run to the last before a gap of more than twice its max_age.
CREATE TABLE IF NOT EXISTS coverage (source VARCHAR, from_at TIMESTAMPTZ, until_at TIMESTAMPTZ);

-- The same for single offers that partial runs saw.
CREATE TABLE IF NOT EXISTS offer_coverage (offer_no INTEGER, from_at TIMESTAMPTZ, until_at TIMESTAMPTZ);

-- Quotes observed on one UTC day, in that day's dollars. A day on which a provider was not seen has no row.
CREATE TABLE IF NOT EXISTS price_daily (
    day DATE, source VARCHAR, gpu VARCHAR, purchase_option VARCHAR, provider VARCHAR, via VARCHAR,
    min_price_usd_gpu_hour DOUBLE, median_price_usd_gpu_hour DOUBLE, max_price_usd_gpu_hour DOUBLE,
    available_share DOUBLE, offer_count BIGINT
);

CREATE TABLE IF NOT EXISTS runs (
    run_id VARCHAR, provider VARCHAR, started_at TIMESTAMPTZ, finished_at TIMESTAMPTZ, outcome VARCHAR,
    row_count BIGINT, rejected_count BIGINT, unmapped_count BIGINT, complete BOOLEAN, reason VARCHAR,
    collector_version VARCHAR
);

-- Offers that a partial run saw since the last complete one.
CREATE TABLE IF NOT EXISTS seen (offer_no INTEGER, source VARCHAR, seen_at TIMESTAMPTZ);

-- Rows of the newest held run of each provider, kept for inspection and for accepting it by hand.
CREATE TABLE IF NOT EXISTS held_offers (
    held_run_id VARCHAR, held_complete BOOLEAN, offer_id VARCHAR, source VARCHAR, provider VARCHAR, via VARCHAR,
    source_sku VARCHAR, instance_type VARCHAR, variant VARCHAR, region VARCHAR, zone VARCHAR, country VARCHAR,
    gpu VARCHAR, gpu_label VARCHAR, gpu_key VARCHAR, gpu_ambiguous BOOLEAN, gpu_candidates VARCHAR[],
    gpu_count INTEGER, gpu_fraction DECIMAL(6, 5), gpu_memory_gb DOUBLE, memory_type VARCHAR, vcpu_count DOUBLE,
    memory_gib DOUBLE, local_storage_gb DOUBLE, shared_storage BOOLEAN, cpu_arch VARCHAR, gpu_interconnect VARCHAR,
    network_gbps DOUBLE, network_option VARCHAR, rdma BOOLEAN, purchase_option VARCHAR, commitment_days INTEGER,
    upfront VARCHAR, tenancy VARCHAR, os VARCHAR, billing_increment_s BIGINT, minimum_charge_s BIGINT,
    boot_time_s BIGINT, price DECIMAL(24, 12), currency VARCHAR, price_unit VARCHAR, price_scope VARCHAR,
    price_hour DOUBLE, availability VARCHAR, stock_count BIGINT, interruption_rate DOUBLE, quote_kind VARCHAR,
    flags VARCHAR[], provenance VARCHAR, source_url VARCHAR, run_id VARCHAR, observed_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS held_surcharges (
    held_run_id VARCHAR, source VARCHAR, provider VARCHAR, region VARCHAR, kind VARCHAR, price DECIMAL(24, 12),
    currency VARCHAR, unit VARCHAR, included_quantity DECIMAL(24, 6),
    tiers STRUCT(from_quantity DECIMAL(24, 6), price DECIMAL(24, 12))[], source_url VARCHAR, observed_at TIMESTAMPTZ
);

-- What the guard found in a held run: the rule, its figures before and after, its limit.
CREATE TABLE IF NOT EXISTS guard_trips (
    run_id VARCHAR, provider VARCHAR, rule VARCHAR, figure_before VARCHAR, figure_after VARCHAR, limit_text VARCHAR
);

-- Each good run's median price per source, to notice a drift that no single step shows.
CREATE TABLE IF NOT EXISTS guard_marks (source VARCHAR, day DATE, gpu_key VARCHAR, median_price_hour DOUBLE);

CREATE TABLE IF NOT EXISTS rejections (
    run_id VARCHAR, provider VARCHAR, reason VARCHAR, field VARCHAR, value VARCHAR, sample VARCHAR
);

-- Names of GPUs and sizes outside the fact tables, of each provider's last run, with an offer or without.
CREATE TABLE IF NOT EXISTS unmapped_names (run_id VARCHAR, provider VARCHAR, gpu_label VARCHAR);

CREATE TABLE IF NOT EXISTS surcharges (
    source VARCHAR, provider VARCHAR, region VARCHAR, kind VARCHAR, price DECIMAL(24, 12), currency VARCHAR,
    unit VARCHAR, included_quantity DECIMAL(24, 6),
    tiers STRUCT(from_quantity DECIMAL(24, 6), price DECIMAL(24, 12))[], source_url VARCHAR, observed_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS exchange_rates (day DATE, currency VARCHAR, usd_per_unit DECIMAL(24, 12), source VARCHAR);

-- What the scheduler noticed: missed and overlapping jobs, errors, jumps of the clock.
CREATE TABLE IF NOT EXISTS scheduler_events (happened_at TIMESTAMPTZ, provider VARCHAR, event VARCHAR, detail VARCHAR);

CREATE TABLE IF NOT EXISTS fetch_state (
    provider VARCHAR, url VARCHAR, request_hash VARCHAR, etag VARCHAR, last_modified VARCHAR, sha256 VARCHAR,
    fetched_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS accelerators (
    gpu VARCHAR, vendor VARCHAR, model VARCHAR, family VARCHAR, segment VARCHAR, architecture VARCHAR,
    form_factor VARCHAR, memory_gb DOUBLE, memory_gib_usable DOUBLE, memory_gib_usable_estimated BOOLEAN,
    memory_type VARCHAR, memory_bandwidth_gb_s DOUBLE, fp32_tflops DOUBLE, tf32_tflops DOUBLE, fp16_tflops DOUBLE,
    bf16_tflops DOUBLE, fp8_tflops DOUBLE, int8_tflops DOUBLE, fp4_tflops DOUBLE, compute_capability VARCHAR,
    link VARCHAR, link_gb_s_bidirectional DOUBLE, pcie_generation DOUBLE, tdp_w DOUBLE, release_year INTEGER,
    source_url VARCHAR, verification VARCHAR, note VARCHAR
);

-- Facts per distinct GPU of an offer; for an ambiguous name the minimum over its candidates.
CREATE TABLE IF NOT EXISTS gpu_facts (
    gpu_key VARCHAR, vendor VARCHAR, model VARCHAR, form_factor VARCHAR, memory_gb DOUBLE, memory_type VARCHAR,
    memory_bandwidth_gb_s DOUBLE, bf16_dense_tflops DOUBLE, fp8_dense_tflops DOUBLE, supports_fp8 BOOLEAN,
    supports_fp4 BOOLEAN, supports_int8 BOOLEAN, supports_bf16 BOOLEAN, link_gb_s_bidirectional DOUBLE
);
