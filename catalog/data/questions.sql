-- name: The cheapest H100 SXM in each region now
SELECT region, provider, instance_type, gpu_count, round(price_usd_gpu_hour, 3) AS usd_gpu_hour, freshness
FROM v_offers
WHERE gpu = 'h100-sxm-80gb' AND purchase_option = 'on_demand' AND price_usd_gpu_hour IS NOT NULL
  AND availability <> 'unavailable'
QUALIFY row_number() OVER (PARTITION BY region ORDER BY price_usd_gpu_hour, offer_id) = 1
ORDER BY usd_gpu_hour;

-- name: How much cheaper spot is, by provider
SELECT s.provider, count(*) AS pairs, round(100 * (1 - median(s.price_usd_hour / d.price_usd_hour)), 1) AS discount_pct
FROM v_offers s JOIN v_offers d USING (provider, via, instance_type, variant, region, os)
WHERE s.purchase_option = 'spot' AND d.purchase_option = 'on_demand'
GROUP BY ALL ORDER BY discount_pct DESC;

-- name: What today's offers cost 30 days ago
SELECT n.provider, n.instance_type, n.region, n.purchase_option, t.price_usd_hour AS then_usd_hour,
       n.price_usd_hour AS now_usd_hour, round(100 * (n.price_usd_hour / t.price_usd_hour - 1), 1) AS change_pct
FROM v_offers n JOIN offers_as_of(now() - INTERVAL 30 DAY) t USING (offer_id)
ORDER BY abs(change_pct) DESC NULLS LAST LIMIT 20;

-- name: The most accelerator memory for a dollar
SELECT provider, instance_type, gpu, total_gpu_memory_gb, round(price_usd_hour, 3) AS usd_hour,
       round(1 / price_usd_gb_hour, 1) AS gb_per_usd_hour
FROM v_offers
WHERE price_usd_gb_hour > 0 AND availability <> 'unavailable'
ORDER BY gb_per_usd_hour DESC, offer_id LIMIT 20;

-- name: What disappeared this week
SELECT provider, instance_type, region, purchase_option, price, currency, valid_to AS gone_at
FROM price_history_since(now() - INTERVAL 7 DAY)
WHERE ended_by = 'gone'
  AND offer_id NOT IN (SELECT offer_id FROM v_offers)
ORDER BY gone_at DESC;

-- name: Prices that fell in the last 7 days
SELECT valid_from, provider, instance_type, region, purchase_option, round(change_pct, 1) AS change_pct,
       round(price_usd_gpu_hour, 3) AS usd_gpu_hour
FROM price_history_since(now() - INTERVAL 7 DAY)
WHERE change_pct < 0 AND valid_from > now() - INTERVAL 7 DAY
ORDER BY change_pct, offer_id LIMIT 50;

-- name: Each GPU: how many providers, and its price range on demand
SELECT gpu, provider_count, round(min_price_usd_gpu_hour_on_demand, 3) AS cheapest,
       round(median_price_usd_gpu_hour_on_demand, 3) AS median, round(max_price_usd_gpu_hour_on_demand, 3) AS dearest
FROM v_gpus
WHERE offer_count > 0
ORDER BY provider_count DESC, gpu;

-- name: Eight GPUs with 80 GB each and a fast link, by the month, storage and traffic beside it
SELECT provider, instance_type, region, gpu, gpu_interconnect, round(price_usd_month) AS usd_month,
       storage_usd_gb_month, egress_usd_gb, commitment_days
FROM v_offers
WHERE gpu_count = 8 AND gpu_memory_gb >= 80 AND gpu_interconnect IN ('nvlink', 'infinity_fabric')
  AND price_usd_month IS NOT NULL
ORDER BY usd_month, offer_id LIMIT 20;

-- name: Bandwidth for the money: GB/s of memory per dollar and hour
SELECT gpu, provider, instance_type, memory_bandwidth_gb_s, round(price_usd_gpu_hour, 3) AS usd_gpu_hour,
       round(memory_bandwidth_gb_s * gpu_count / price_usd_hour) AS gb_s_per_usd
FROM v_cheapest
WHERE purchase_option = 'on_demand' AND memory_bandwidth_gb_s IS NOT NULL
ORDER BY gb_s_per_usd DESC, offer_id LIMIT 20;

-- name: Which providers' prices not to trust right now, and why
SELECT provider, outcome, freshness, round(age_s / 3600) AS age_h, round(max_age_s / 3600) AS max_age_h, note
FROM v_provider_health
WHERE freshness NOT IN ('fresh', 'never') OR outcome IN ('failed', 'held', 'partial')
ORDER BY age_s DESC NULLS LAST;
