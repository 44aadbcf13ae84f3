-- The comparison table, over current quotes or over those of a moment in the past.
-- Filled by view_script.py: rows are offers with their quote and last_seen_at, moment is when they are looked at.
WITH rates AS MATERIALIZED ({rates}), extra AS MATERIALIZED (
    SELECT s.provider, s.region, min(s.price::DOUBLE * x.usd_per_unit) FILTER (s.kind = 'block_storage') AS storage_usd,
           min(s.price::DOUBLE * x.usd_per_unit) FILTER (s.kind = 'egress') AS egress_usd
    FROM surcharges s JOIN rates x USING (currency)
    WHERE (s.kind, s.unit) IN (('block_storage', 'gb_month'), ('egress', 'gb'))
      AND (s.observed_at IS NULL OR s.observed_at <= {moment} + INTERVAL 1 DAY)
    GROUP BY ALL
), quoted AS (
    SELECT c.*, p.max_age_s,
           coalesce(er.storage_usd, ep.storage_usd) AS storage_usd_gb_month,
           coalesce(er.egress_usd, ep.egress_usd) AS egress_usd_gb,
           c.price_hour * x.usd_per_unit AS price_usd_hour,
           epoch({moment}) - epoch(c.last_seen_at) AS seconds_since_seen
    FROM ({rows}) c
    LEFT JOIN providers p ON p.provider = c.source
    LEFT JOIN rates x ON x.currency = c.currency
    LEFT JOIN extra er ON er.provider = c.provider AND er.region = c.region AND c.region <> ''
    LEFT JOIN extra ep ON ep.provider = c.provider AND ep.region = ''
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
       a.last_seen_at AS observed_at, greatest(0, a.seconds_since_seen) AS age_s,
       -- A time more than five minutes ahead means that a clock was wrong: then the age is unknown and nothing is fresh.
       CASE WHEN a.seconds_since_seen < -300 THEN 'stale'
            WHEN a.seconds_since_seen <= a.max_age_s THEN 'fresh'
            WHEN a.seconds_since_seen <= 2 * a.max_age_s THEN 'aging'
            WHEN a.seconds_since_seen <= 604800 THEN 'stale'
            ELSE 'expired' END AS freshness,
       a.source_url, a.run_id, a.gpu_candidates, a.gpu_label
FROM quoted a LEFT JOIN gpu_facts f USING (gpu_key)
