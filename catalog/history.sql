-- Views over the change log. In a snapshot alone they reach as far back as its own log (35 days); where the files of
-- closed months are attached, the same text is run over both. Filled by view_script.py.

CREATE OR REPLACE {temp} VIEW v_price_log AS {log}
UNION ALL SELECT offer_no, changed_at, price, price_exact, terms_no, state FROM price_bases WHERE base_at = {reach};

CREATE OR REPLACE {temp} VIEW v_price_history AS
WITH entries AS (
    SELECT c.offer_id, c.gpu, c.provider, c.region, c.purchase_option, c.instance_type, c.gpu_count, c.gpu_fraction,
           c.source, c.first_seen_at, l.changed_at, coalesce(l.price_exact, l.price::DECIMAL(24, 12)) AS price, t.currency, t.price_unit,
           t.price_scope, l.price * t.hour_factor AS price_hour, l.state
    FROM v_price_log l JOIN current c USING (offer_no) LEFT JOIN price_terms t USING (terms_no)
), spans AS (
    SELECT *, lead(changed_at) OVER w AS valid_to, lead(state) OVER w AS next_state, lag(state) OVER w AS last_state,
           lag(currency) OVER w AS last_currency, lag(price_hour) OVER w AS last_price_hour
    FROM entries
    WINDOW w AS (
        PARTITION BY offer_id, gpu, provider, region, purchase_option, instance_type, gpu_count, gpu_fraction, source,
                     first_seen_at
        ORDER BY changed_at
    )
), priced AS (
    SELECT s.*, s.price_hour * CASE s.currency WHEN 'USD' THEN 1 ELSE coalesce(x.usd_per_unit, n.usd_per_unit) END
           AS price_usd_hour
    FROM spans s
    ASOF LEFT JOIN (SELECT currency, day, usd_per_unit::DOUBLE AS usd_per_unit FROM exchange_rates) x
        ON s.currency = x.currency AND s.changed_at >= x.day
    LEFT JOIN (SELECT currency, arg_min(usd_per_unit, day)::DOUBLE AS usd_per_unit FROM exchange_rates GROUP BY 1) n
        ON n.currency = s.currency
    WHERE s.state <> 4
)
SELECT offer_id, gpu, provider, region, purchase_option, changed_at AS valid_from, valid_to, price, currency,
       price_usd_hour, ['unknown', 'available', 'limited', 'unavailable'][state + 1] AS availability,
       CASE WHEN last_state <> 4 AND last_currency = currency AND last_price_hour > 0
            THEN 100 * (price_hour / last_price_hour - 1) END AS change_pct,
       price_usd_hour / (gpu_count * gpu_fraction::DOUBLE) AS price_usd_gpu_hour, instance_type, gpu_count,
       CASE WHEN last_state = 4 THEN 'back' WHEN last_state IS NOT NULL THEN 'change'
            WHEN changed_at < {reach} THEN 'earlier' WHEN first_seen_at < {reach} THEN 'back' ELSE 'open' END AS event,
       CASE WHEN next_state = 4 THEN 'gone' WHEN next_state IS NOT NULL THEN 'change' END AS ended_by,
       price_unit, price_scope, source
FROM priced;

CREATE OR REPLACE {temp} MACRO offers_as_of(moment) AS TABLE
{offers_as_of}
