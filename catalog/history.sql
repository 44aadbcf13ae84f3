-- Views over the change log. In a snapshot alone they reach as far back as its own log (35 days); where the files of
-- closed months are attached, the same text is run over both. Filled by view_script.py.

CREATE OR REPLACE {temp} VIEW v_price_log AS {log}
UNION ALL SELECT offer_no, changed_at, price, price_exact, terms_no, state FROM price_bases WHERE base_at = {reach};

CREATE OR REPLACE {temp} VIEW v_price_history AS
{price_history};

CREATE OR REPLACE {temp} MACRO price_history_since(moment) AS TABLE
SELECT * FROM (
{price_history_since}
) WHERE valid_to IS NULL OR valid_to > moment::TIMESTAMPTZ;

CREATE OR REPLACE {temp} MACRO offers_as_of(moment) AS TABLE
{offers_as_of}
