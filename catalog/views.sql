-- The public SQL interface: names and columns are promises. Ages are computed when a query runs, never stored.

CREATE OR REPLACE VIEW v_exchange AS
SELECT currency, arg_max(usd_per_unit, day)::DOUBLE AS usd_per_unit, max(day) AS day
FROM exchange_rates GROUP BY currency
UNION ALL SELECT 'USD', 1.0, NULL;

CREATE OR REPLACE VIEW v_surcharges AS
SELECT s.provider, s.region, s.kind, s.price, s.currency, s.price::DOUBLE * x.usd_per_unit AS price_usd, s.unit,
       s.included_quantity, s.tiers, s.source_url, s.observed_at
FROM surcharges s LEFT JOIN v_exchange x USING (currency);

CREATE OR REPLACE VIEW v_offers AS
WITH storage AS (
    SELECT provider, region, min(price_usd) AS usd FROM v_surcharges
    WHERE kind = 'block_storage' AND unit = 'gb_month' GROUP BY ALL
), egress AS (
    SELECT provider, region, min(price_usd) AS usd FROM v_surcharges
    WHERE kind = 'egress' AND unit = 'gb' GROUP BY ALL
), base AS (
    SELECT c.*, p.max_age_s,
           coalesce(sr.usd, sp.usd) AS storage_usd_gb_month,
           coalesce(er.usd, ep.usd) AS egress_usd_gb,
           c.price_hour * x.usd_per_unit AS price_usd_hour,
           greatest(c.observed_at, st.last_complete_at, seen.seen_at) AS last_seen_at
    FROM current c
    LEFT JOIN providers p ON p.provider = c.source
    LEFT JOIN provider_state st ON st.provider = c.source
    LEFT JOIN seen ON seen.offer_id = c.offer_id
    LEFT JOIN v_exchange x ON x.currency = c.currency
    LEFT JOIN storage sr ON sr.provider = c.provider AND sr.region = c.region AND c.region <> ''
    LEFT JOIN storage sp ON sp.provider = c.provider AND sp.region = ''
    LEFT JOIN egress er ON er.provider = c.provider AND er.region = c.region AND c.region <> ''
    LEFT JOIN egress ep ON ep.provider = c.provider AND ep.region = ''
    WHERE c.closed_at IS NULL
), aged AS (
    SELECT *, greatest(0, epoch(now()) - epoch(last_seen_at)) AS age_s FROM base
)
SELECT a.offer_id, a.provider, a.via, a.source_sku, a.instance_type, a.variant, a.region, a.zone, a.country,
       a.purchase_option, a.commitment_days, a.upfront, a.tenancy, a.os, a.gpu, a.gpu_ambiguous, f.vendor, f.model,
       f.form_factor, a.gpu_count, a.gpu_fraction, coalesce(a.gpu_memory_gb, f.memory_gb) AS gpu_memory_gb,
       coalesce(a.gpu_memory_gb, f.memory_gb) * a.gpu_count AS total_gpu_memory_gb,
       coalesce(a.memory_type, f.memory_type) AS memory_type,
       f.memory_bandwidth_gb_s * a.gpu_fraction::DOUBLE AS memory_bandwidth_gb_s,
       f.bf16_dense_tflops * a.gpu_fraction::DOUBLE AS bf16_dense_tflops,
       f.fp8_dense_tflops * a.gpu_fraction::DOUBLE AS fp8_dense_tflops,
       f.supports_fp8, f.supports_fp4, f.supports_int8, f.supports_bf16, a.gpu_interconnect,
       f.link_gb_s_bidirectional, a.network_gbps, a.network_option, a.rdma, a.vcpu_count, a.memory_gib,
       a.local_storage_gb, a.shared_storage, a.cpu_arch, a.billing_increment_s, a.minimum_charge_s, a.boot_time_s,
       a.storage_usd_gb_month, a.egress_usd_gb, a.price, a.currency, a.price_unit, a.price_scope, a.price_usd_hour,
       a.price_usd_hour / (a.gpu_count * a.gpu_fraction::DOUBLE) AS price_usd_gpu_hour,
       a.price_usd_hour * 730 AS price_usd_month,
       a.price_usd_hour / (coalesce(a.gpu_memory_gb, f.memory_gb) * a.gpu_count) AS price_usd_gb_hour,
       a.availability, a.stock_count, a.interruption_rate, a.quote_kind, a.flags, a.provenance,
       a.last_seen_at AS observed_at, a.age_s,
       CASE WHEN a.age_s > 604800 AND a.age_s > 2 * a.max_age_s THEN 'expired'
            WHEN a.age_s <= a.max_age_s THEN 'fresh'
            WHEN a.age_s <= 2 * a.max_age_s THEN 'aging'
            ELSE 'stale' END AS freshness,
       a.source_url, a.run_id, a.gpu_candidates, a.gpu_label
FROM aged a LEFT JOIN gpu_facts f USING (gpu_key);

CREATE OR REPLACE VIEW v_gpus AS
WITH offered AS (
    SELECT coalesce(gpu, '') AS gpu, count(*) AS offer_count, count(DISTINCT provider) AS provider_count,
           min(price_usd_gpu_hour) FILTER (purchase_option = 'on_demand') AS min_price_usd_gpu_hour_on_demand,
           median(price_usd_gpu_hour) FILTER (purchase_option = 'on_demand') AS median_price_usd_gpu_hour_on_demand,
           max(price_usd_gpu_hour) FILTER (purchase_option = 'on_demand') AS max_price_usd_gpu_hour_on_demand,
           min(price_usd_gpu_hour) FILTER (purchase_option = 'spot') AS min_price_usd_gpu_hour_spot,
           median(price_usd_gpu_hour) FILTER (purchase_option = 'spot') AS median_price_usd_gpu_hour_spot,
           max(price_usd_gpu_hour) FILTER (purchase_option = 'spot') AS max_price_usd_gpu_hour_spot,
           min(price_usd_gpu_hour) FILTER (purchase_option = 'reserved') AS min_price_usd_gpu_hour_reserved,
           median(price_usd_gpu_hour) FILTER (purchase_option = 'reserved') AS median_price_usd_gpu_hour_reserved,
           max(price_usd_gpu_hour) FILTER (purchase_option = 'reserved') AS max_price_usd_gpu_hour_reserved
    FROM v_offers GROUP BY 1
)
SELECT a.*, coalesce(o.offer_count, 0) AS offer_count, coalesce(o.provider_count, 0) AS provider_count,
       o.* EXCLUDE (gpu, offer_count, provider_count)
FROM accelerators a LEFT JOIN offered o USING (gpu);

CREATE OR REPLACE VIEW v_cheapest AS
SELECT * FROM v_offers
WHERE price_usd_gpu_hour IS NOT NULL AND availability <> 'unavailable' AND gpu IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY gpu, purchase_option, country ORDER BY price_usd_gpu_hour, price_usd_hour, offer_id
) = 1;

CREATE OR REPLACE VIEW v_price_history AS
SELECT l.offer_id, c.gpu, c.provider, c.region, c.purchase_option, l.changed_at AS valid_from,
       lead(l.changed_at) OVER w AS valid_to, l.price, l.currency, l.price_hour * x.usd_per_unit AS price_usd_hour,
       l.availability,
       CASE WHEN lag(l.currency) OVER w = l.currency AND lag(l.price_hour) OVER w > 0
            THEN 100 * (l.price_hour / lag(l.price_hour) OVER w - 1) END AS change_pct,
       l.event
FROM price_log l JOIN current c USING (offer_id) LEFT JOIN v_exchange x ON x.currency = l.currency
WINDOW w AS (PARTITION BY l.offer_id ORDER BY l.changed_at);

CREATE OR REPLACE VIEW v_provider_health AS
SELECT p.provider, coalesce(s.outcome, 'never') AS outcome, coalesce(s.row_count, 0) AS row_count,
       coalesce(s.rejected_count, 0) AS rejected_count, coalesce(s.unmapped_count, 0) AS unmapped_count,
       s.last_success_at, s.last_attempt_at,
       CASE WHEN s.last_success_at IS NOT NULL THEN greatest(0, epoch(now()) - epoch(s.last_success_at)) END AS age_s,
       p.max_age_s,
       CASE WHEN s.last_success_at IS NULL THEN 'never'
            WHEN epoch(now()) - epoch(s.last_success_at) > greatest(604800, 2 * p.max_age_s) THEN 'expired'
            WHEN epoch(now()) - epoch(s.last_success_at) <= p.max_age_s THEN 'fresh'
            WHEN epoch(now()) - epoch(s.last_success_at) <= 2 * p.max_age_s THEN 'aging'
            ELSE 'stale' END AS freshness,
       s.provenance, s.note, p.title, p.kind, p.cadence_s, p.on_demand, p.counted, s.consecutive_failures
FROM providers p LEFT JOIN provider_state s USING (provider);

CREATE OR REPLACE VIEW v_rejections AS
SELECT run_id, provider, reason, field, value, sample FROM rejections;

CREATE OR REPLACE VIEW v_unmapped AS
SELECT provider, gpu_label, count(*) AS offer_count, min(price_usd_gpu_hour) AS min_price_usd_gpu_hour,
       min(instance_type) AS sample_instance_type, max(observed_at) AS observed_at
FROM v_offers WHERE gpu IS NULL GROUP BY ALL;

CREATE OR REPLACE VIEW v_runs AS SELECT * FROM runs;

CREATE OR REPLACE MACRO offers_for(min_gpu_memory_gb, min_memory_bandwidth_gb_s) AS TABLE
SELECT * FROM v_offers o
WHERE o.gpu_memory_gb >= min_gpu_memory_gb AND o.memory_bandwidth_gb_s >= min_memory_bandwidth_gb_s
ORDER BY price_usd_hour;
