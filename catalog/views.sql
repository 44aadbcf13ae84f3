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
{v_offers};

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

CREATE OR REPLACE VIEW v_price_daily AS
SELECT day, gpu, purchase_option, provider, min_price_usd_gpu_hour, median_price_usd_gpu_hour, max_price_usd_gpu_hour,
       available_share, via, offer_count
FROM price_daily;

CREATE OR REPLACE VIEW v_coverage AS SELECT source AS provider, from_at, until_at FROM coverage;

CREATE OR REPLACE VIEW v_provider_health AS
WITH state AS (
    SELECT *, epoch(now()) - epoch(last_success_at) AS seconds_since_success FROM provider_state
)
SELECT p.provider, coalesce(s.outcome, 'never') AS outcome, coalesce(s.row_count, 0) AS row_count,
       coalesce(s.rejected_count, 0) AS rejected_count, coalesce(s.unmapped_count, 0) AS unmapped_count,
       s.last_success_at, s.last_attempt_at,
       CASE WHEN s.seconds_since_success < 0 THEN 0 ELSE s.seconds_since_success END AS age_s, p.max_age_s,
       CASE WHEN s.last_success_at IS NULL THEN 'never'
            WHEN s.seconds_since_success < -300 THEN 'stale'
            WHEN s.seconds_since_success <= p.max_age_s THEN 'fresh'
            WHEN s.seconds_since_success <= 2 * p.max_age_s THEN 'aging'
            WHEN s.seconds_since_success <= 604800 THEN 'stale'
            ELSE 'expired' END AS freshness,
       s.provenance, s.note, p.title, p.kind, p.cadence_s, p.on_demand, p.counted, s.consecutive_failures,
       s.last_run_id, s.last_complete_at
FROM providers p LEFT JOIN state s USING (provider);

CREATE OR REPLACE VIEW v_rejections AS
SELECT run_id, provider, reason, field, value, sample FROM rejections;

CREATE OR REPLACE VIEW v_unmapped AS
WITH offered AS (
    SELECT provider, via, gpu_label, count(*) AS offer_count, min(price_usd_gpu_hour) AS min_price_usd_gpu_hour,
           min(instance_type) AS sample_instance_type, max(observed_at) AS observed_at
    FROM v_offers WHERE gpu IS NULL GROUP BY ALL
)
SELECT provider, gpu_label, sum(offer_count)::BIGINT AS offer_count,
       min(min_price_usd_gpu_hour) AS min_price_usd_gpu_hour, min(sample_instance_type) AS sample_instance_type,
       max(observed_at) AS observed_at
FROM offered GROUP BY ALL
UNION ALL
SELECT u.provider, u.gpu_label, 0, NULL, NULL, s.last_success_at
FROM unmapped_names u LEFT JOIN provider_state s USING (provider)
WHERE NOT EXISTS (SELECT 1 FROM offered o WHERE o.gpu_label = u.gpu_label AND u.provider IN (o.provider, o.via));

CREATE OR REPLACE VIEW v_runs AS SELECT * FROM runs;

CREATE OR REPLACE VIEW v_held AS
SELECT h.held_run_id, h.provider, h.instance_type, h.region, h.gpu, h.gpu_count, h.purchase_option, h.price, h.currency,
       h.price_unit, h.price_scope, c.price AS price_before, c.currency AS currency_before, h.offer_id, h.source_sku,
       h.source_url, h.observed_at
FROM held_offers h LEFT JOIN current c ON c.offer_id = h.offer_id AND c.closed_at IS NULL;

CREATE OR REPLACE VIEW v_guard_trips AS SELECT * FROM guard_trips;

CREATE OR REPLACE VIEW v_scheduler_events AS SELECT * FROM scheduler_events;

CREATE OR REPLACE MACRO offers_for(min_gpu_memory_gb, min_memory_bandwidth_gb_s) AS TABLE
SELECT * FROM v_offers o
WHERE o.gpu_memory_gb >= min_gpu_memory_gb AND o.memory_bandwidth_gb_s >= min_memory_bandwidth_gb_s
ORDER BY price_usd_hour;

{history};
