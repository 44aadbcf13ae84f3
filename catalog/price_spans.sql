-- A row per stretch of time in which one price held, from entries of the change log. Filled by view_script.py.
-- The window carries few columns, and is partitioned by those that a query most often names, so that its condition is
-- applied before the window and not after it.
WITH entries AS (
    SELECT c.offer_no, c.offer_id, c.gpu, c.provider, c.purchase_option, l.changed_at, l.price, l.price_exact,
           l.terms_no, l.state
    FROM ({entries}) l JOIN current c USING (offer_no)
), spans AS (
    SELECT *, lead(changed_at) OVER w AS valid_to, lead(state) OVER w AS next_state, lag(state) OVER w AS last_state,
           lag(terms_no) OVER w AS last_terms_no, lag(price) OVER w AS last_price
    FROM entries WINDOW w AS (PARTITION BY offer_no, offer_id, gpu, provider, purchase_option ORDER BY changed_at)
), priced AS (
    SELECT s.*, c.region, c.instance_type, c.gpu_count, c.gpu_fraction, c.source, c.first_seen_at, t.currency,
           t.price_unit, t.price_scope, b.currency AS last_currency, s.price * t.hour_factor AS price_hour,
           s.last_price * b.hour_factor AS last_price_hour
    FROM spans s JOIN current c USING (offer_no) LEFT JOIN price_terms t USING (terms_no)
    LEFT JOIN price_terms b ON b.terms_no = s.last_terms_no
    WHERE s.state <> 4
), exchanged AS (
    SELECT p.*, p.price_hour * CASE p.currency WHEN 'USD' THEN 1 ELSE coalesce(x.usd_per_unit, n.usd_per_unit) END
           AS price_usd_hour
    FROM priced p
    ASOF LEFT JOIN (SELECT currency, day, usd_per_unit::DOUBLE AS usd_per_unit FROM exchange_rates) x
        ON p.currency = x.currency AND p.changed_at >= x.day
    LEFT JOIN (SELECT currency, arg_min(usd_per_unit, day)::DOUBLE AS usd_per_unit FROM exchange_rates GROUP BY 1) n
        ON n.currency = p.currency
)
SELECT offer_id, gpu, provider, region, purchase_option, changed_at AS valid_from, valid_to,
       coalesce(price_exact, price::DECIMAL(24, 12)) AS price, currency, price_usd_hour,
       ['unknown', 'available', 'limited', 'unavailable'][state + 1] AS availability,
       CASE WHEN last_state <> 4 AND last_currency = currency AND last_price_hour > 0
            THEN 100 * (price_hour / last_price_hour - 1) END AS change_pct,
       price_usd_hour / (gpu_count * gpu_fraction::DOUBLE) AS price_usd_gpu_hour, instance_type, gpu_count,
       CASE WHEN last_state = 4 THEN 'back' WHEN last_state IS NOT NULL THEN 'change'
            WHEN changed_at < {reach} THEN 'earlier' WHEN first_seen_at < {reach} THEN 'back' ELSE 'open' END AS event,
       CASE WHEN next_state = 4 THEN 'gone' WHEN next_state IS NOT NULL THEN 'change' END AS ended_by,
       price_unit, price_scope, source
FROM exchanged
