"""The text of the views: one template for the comparison table, filled for the present and for moments in the past."""

from __future__ import annotations

from functools import cache

from catalog.describe import comments
from catalog.engine import script

_OPEN_NOW = """SELECT c.*, greatest(c.observed_at, st.last_complete_at, s.seen_at) AS last_seen_at
    FROM current c LEFT JOIN provider_state st ON st.provider = c.source LEFT JOIN seen s USING (offer_no)
    WHERE c.closed_at IS NULL"""
_RATES_NOW = "SELECT currency, usd_per_unit FROM v_exchange"

# The newest entry of every offer at a moment: of the newest base before it and the log since. Finding each offer's
# newest time first and its entry then takes a tenth of the time of one pass with arg_max.
_STATE_THEN = """WITH entries AS NOT MATERIALIZED (
            SELECT offer_no, changed_at, price, price_exact, terms_no, state FROM price_bases
            WHERE base_at = (SELECT max(base_at) FROM price_bases WHERE base_at <= {moment})
            UNION ALL
            SELECT offer_no, changed_at, price, price_exact, terms_no, state FROM v_price_log
            WHERE changed_at <= {moment} AND changed_at >= least({moment}, {published}) - INTERVAL 64 DAY
              AND changed_at >= coalesce((SELECT max(base_at) FROM price_bases WHERE base_at <= {moment}), '-infinity')
        ), newest AS MATERIALIZED (SELECT offer_no, max(changed_at) AS changed_at FROM entries GROUP BY offer_no)
        SELECT entries.* FROM entries JOIN newest USING (offer_no, changed_at)"""
# Where the log does not reach back to a moment, the state is not known, and there are no rows rather than wrong ones.
_OPEN_THEN = """SELECT c.* REPLACE (
        coalesce(q.price_exact, q.price::DECIMAL(24, 12)) AS price, t.currency AS currency, t.price_unit AS price_unit,
        t.price_scope AS price_scope, q.price * t.hour_factor AS price_hour,
        ['unknown', 'available', 'limited', 'unavailable'][q.state + 1] AS availability, NULL::BIGINT AS stock_count,
        NULL::DOUBLE AS interruption_rate, []::VARCHAR[] AS flags, '' AS run_id),
        greatest(q.changed_at, least({moment}, v.until_at)) AS last_seen_at
    FROM (
{state_then}
    ) q
    JOIN current c USING (offer_no) LEFT JOIN price_terms t USING (terms_no)
    LEFT JOIN (SELECT source, max(until_at) AS until_at FROM coverage WHERE from_at <= {moment} GROUP BY source) v
        ON v.source = c.source
    WHERE q.state <> 4 AND {moment} >= {reach}"""
_RATES_THEN = """SELECT currency, coalesce(arg_max(usd_per_unit, day) FILTER (day <= {moment}::DATE),
        arg_min(usd_per_unit, day))::DOUBLE AS usd_per_unit FROM exchange_rates GROUP BY currency
    UNION ALL SELECT 'USD', 1.0"""


def _filled(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def offers_now() -> str:
    """The query behind `v_offers`."""
    return _filled(script("offers.sql"), rows=_OPEN_NOW, rates=_RATES_NOW, moment="now()").strip()


def history_views(log: str, reach: str, published: str, *, temporary: bool) -> str:
    """Statements for `v_price_log`, `v_price_history` and `offers_as_of`.

    Args:
        log: a query for all entries of the log that can be read.
        reach: SQL for the moment from which on the log is whole; a base is kept at it unless it is the beginning.
        published: SQL for the moment of publishing: the newest base is at most two months older.
        temporary: True for views of one session, over attached month files.
    """
    as_of = _filled(script("offers.sql"), rows=_OPEN_THEN, rates=_RATES_THEN, state_then=_STATE_THEN).strip()
    as_of = _filled(as_of, moment="moment::TIMESTAMPTZ", reach=reach, published=published)
    first = f"greatest(moment::TIMESTAMPTZ, {reach})"
    since = _filled(
        f"SELECT * FROM ({_STATE_THEN}) UNION ALL SELECT * FROM v_price_log WHERE changed_at > {first}",
        moment=first, published=published,
    )  # fmt: skip
    spans = script("price_spans.sql").strip()
    return (
        _filled(
            script("history.sql"),
            log=log,
            offers_as_of=as_of,
            price_history=_filled(spans, entries="SELECT * FROM v_price_log"),
            price_history_since=_filled(spans, entries=since, reach=first),
            reach=reach,
            temp="TEMP" if temporary else "",
        )
        .strip()
        .removesuffix(";")
    )


@cache
def view_script() -> str:
    """Every view and macro of a catalog file."""
    reach = "coalesce((SELECT value::TIMESTAMPTZ FROM meta WHERE key = 'log_from'), '-infinity')"
    published = "coalesce((SELECT value::TIMESTAMPTZ FROM meta WHERE key = 'published_at'), now())"
    history = history_views("SELECT * FROM price_log", reach, published, temporary=False)
    views = _filled(script("views.sql"), v_offers=offers_now(), history=history)
    return f"{views}\n{comments()}"
