"""Merging a run's rows into the live file: what is new, changed, back or gone, and what the log gains by it.

Everything that can be worked out beforehand is, in temporary tables; the transaction then only copies.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from catalog import live_file
from catalog.engine import Connection, quoted, rows_of, scalar
from catalog.errors import UnknownName
from catalog.types import OfferRow, Run
from catalog.units import instance_price_hour

# Columns whose change makes a new entry in the price log.
_QUOTED = ("price", "currency", "price_unit", "price_scope", "availability")
# Columns that say when and by which run a row was seen, not what it is.
_BOOKKEEPING = frozenset({"offer_id", "run_id", "observed_at"})
_STATES = "list_position(['unknown', 'available', 'limited', 'unavailable'], availability) - 1"
_GONE = 4
_MARK_DAYS = 40


def stage(connection: Connection, source: str, run_id: str, rows: Sequence[OfferRow]) -> None:
    """Bring a run's rows in beside the live file, as the temporary table `incoming`."""
    from catalog.frames import offer_frame

    with tempfile.TemporaryDirectory(prefix="gpubazaar-") as folder:
        path = Path(folder) / "rows.parquet"
        offer_frame(source, run_id, rows).write_parquet(path)
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE incoming AS SELECT * FROM read_parquet('{quoted(str(path))}')"
        )


def stage_held(connection: Connection, held_run_id: str, run_id: str) -> str:
    """Take the kept rows of a held run as `incoming`, under the name of the run that accepts them.

    Returns:
        The held run's name, for its surcharges.

    Raises:
        UnknownName: no rows of that run are kept.
    """
    kept = [r["held_run_id"] for r in rows_of(connection, "SELECT DISTINCT held_run_id FROM live.held_offers")]
    if held_run_id not in kept:
        raise UnknownName("held run", held_run_id, kept)
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE incoming AS
        SELECT * EXCLUDE (held_run_id, held_complete) REPLACE (? AS run_id) FROM live.held_offers
        WHERE held_run_id = ?""",
        [run_id, held_run_id],
    )
    return held_run_id


def compare(connection: Connection, observed_at: datetime) -> None:
    """Find out what differs, before the transaction starts: temporary tables `delta` and `logged`."""
    columns = [c["column_name"] for c in rows_of(connection, "DESCRIBE incoming")]
    differs = " OR ".join(f"c.{n} IS DISTINCT FROM i.{n}" for n in columns if n not in _BOOKKEEPING)
    requoted = " OR ".join(f"c.{n} IS DISTINCT FROM i.{n}" for n in _QUOTED)
    floor = scalar(connection, "SELECT max(ends_at) FROM live.history_months")
    next_no = max(
        int(live_file.meta(connection, "next_offer_no") or 1),
        1 + int(scalar(connection, "SELECT coalesce(max(offer_no), 0) FROM live.current")),
    )
    # Whatever the clock says: times of one offer never run backwards, and none falls into a closed month.
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE delta AS
        WITH compared AS (
            SELECT i.*, coalesce(c.first_seen_at, i.observed_at) AS first_seen_at, c.offer_no AS known_no,
                   c.changed_at AS last_changed_at,
                   c.offer_id IS NULL OR c.closed_at IS NOT NULL OR {requoted} AS requoted
            FROM incoming i LEFT JOIN live.current c USING (offer_id)
            WHERE c.offer_id IS NULL OR c.closed_at IS NOT NULL OR {differs}
        )
        SELECT * EXCLUDE (known_no, last_changed_at),
               coalesce(known_no, {next_no} - 1 + row_number() OVER (PARTITION BY known_no IS NULL ORDER BY offer_id)
                   )::INTEGER AS offer_no,
               CASE WHEN requoted THEN greatest(observed_at, last_changed_at + INTERVAL 1 MICROSECOND, ?::TIMESTAMPTZ)
                    ELSE last_changed_at END AS changed_at
        FROM compared""",
        [floor],
    )
    _number_terms(connection)
    del observed_at


def _number_terms(connection: Connection) -> None:
    """`logged`: the entries for the price log, each with the number of its terms; `new_terms`: those not yet known."""
    shape = """currency, price_unit, price_scope, CASE price_scope WHEN 'gpu' THEN gpu_count ELSE 1 END AS units,
        CASE price_unit WHEN 'term' THEN commitment_days ELSE 0 END AS days"""
    kinds = rows_of(connection, f"SELECT DISTINCT {shape} FROM delta WHERE requoted ORDER BY ALL")
    known = {
        (t["currency"], t["price_unit"], t["price_scope"], t["hour_factor"]): t["terms_no"]
        for t in rows_of(connection, "SELECT * FROM live.price_terms")
    }
    numbered, fresh = [], []
    for kind in kinds:
        unit, scope = kind["price_unit"], kind["price_scope"]
        factor = 0.0
        if unit != "term" or kind["days"] > 0:
            factor = float(instance_price_hour(Decimal(1), unit, scope, kind["units"], kind["days"]))
        key = (kind["currency"], unit, scope, factor)
        if key not in known:
            known[key] = len(known) + 1
            fresh.append((known[key], *key))
        numbered.append((*kind.values(), known[key]))
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE numbered_terms (currency VARCHAR, price_unit VARCHAR, price_scope VARCHAR,
        units INTEGER, days INTEGER, terms_no USMALLINT)"""
    )
    connection.execute("CREATE OR REPLACE TEMP TABLE new_terms AS SELECT * FROM live.price_terms LIMIT 0")
    if numbered:
        connection.executemany("INSERT INTO numbered_terms VALUES (?, ?, ?, ?, ?, ?)", numbered)
    if fresh:
        connection.executemany("INSERT INTO new_terms VALUES (?, ?, ?, ?, ?)", fresh)
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE logged AS
        SELECT d.offer_no, d.changed_at, d.price::DOUBLE AS price,
               CASE WHEN d.price::DOUBLE::DECIMAL(24, 12) <> d.price THEN d.price END AS price_exact, t.terms_no,
               ({_STATES})::UTINYINT AS state
        FROM (SELECT *, {shape} FROM delta WHERE requoted) d
        JOIN numbered_terms t USING (currency, price_unit, price_scope, units, days)
        ORDER BY d.changed_at, t.terms_no, d.offer_no"""
    )


def merge(connection: Connection, run: Run, observed_at: datetime) -> int:
    """Store the differences; inside the caller's transaction. Returns how many entries the price log gained."""
    execute = connection.execute
    gained = int(scalar(connection, "SELECT count(*) FROM logged"))
    execute("INSERT INTO live.price_terms SELECT * FROM new_terms")
    execute("INSERT INTO live.price_log SELECT * FROM logged")
    execute("DELETE FROM live.current WHERE offer_id IN (SELECT offer_id FROM delta)")
    execute("INSERT INTO live.current BY NAME SELECT * EXCLUDE (requoted), NULL::TIMESTAMPTZ AS closed_at FROM delta")
    last_no = int(scalar(connection, "SELECT coalesce(max(offer_no), 0) FROM delta"))
    if last_no >= int(live_file.meta(connection, "next_offer_no") or 1):
        live_file.set_meta(connection, "next_offer_no", str(last_no + 1))
    if run.complete:
        gained += _close_missing(connection, run, observed_at)
        execute("DELETE FROM live.seen WHERE source = ?", [run.provider])
    else:
        execute("DELETE FROM live.seen WHERE offer_no IN (SELECT offer_no FROM live.current SEMI JOIN incoming "
                "USING (offer_id))")  # fmt: skip
        execute(
            """INSERT INTO live.seen SELECT c.offer_no, i.source, i.observed_at
            FROM incoming i JOIN live.current c USING (offer_id)"""
        )
    return gained


def _close_missing(connection: Connection, run: Run, observed_at: datetime) -> int:
    """An offer that a complete run no longer has is gone: one last entry in the log, and out of the comparison."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE missing AS SELECT offer_no FROM live.current
        WHERE source = ? AND closed_at IS NULL AND offer_id NOT IN (SELECT offer_id FROM incoming)""",
        [run.provider],
    )
    count = int(scalar(connection, "SELECT count(*) FROM missing"))
    if count:
        floor = scalar(connection, "SELECT max(ends_at) FROM live.history_months")
        connection.execute(
            """UPDATE live.current SET closed_at = $1,
            changed_at = greatest($1, changed_at + INTERVAL 1 MICROSECOND, $2::TIMESTAMPTZ)
            WHERE offer_no IN (SELECT offer_no FROM missing)""",
            [observed_at, floor],
        )
        connection.execute(
            f"""INSERT INTO live.price_log SELECT offer_no, changed_at, NULL, NULL, NULL, {_GONE}
            FROM live.current WHERE offer_no IN (SELECT offer_no FROM missing)"""
        )
    return count


def keep_held(connection: Connection, run: Run) -> None:
    """Keep the rows of a held run in place of those of the provider's last held run; inside a transaction."""
    forget_held(connection, run.provider)
    connection.execute(
        "INSERT INTO live.held_offers BY NAME SELECT ? AS held_run_id, ? AS held_complete, * FROM incoming",
        [run.run_id, run.complete],
    )


def forget_held(connection: Connection, source: str) -> None:
    """Drop the kept rows, surcharges and trips of a provider's held run."""
    connection.execute("DELETE FROM live.held_offers WHERE source = ?", [source])
    connection.execute("DELETE FROM live.held_surcharges WHERE source = ?", [source])
    connection.execute("DELETE FROM live.guard_trips WHERE provider = ?", [source])


def follow_up(connection: Connection, run: Run, observed_at: datetime) -> None:
    """What every good run adds: how long its source has been up, the day's figures, the marks against slow drift."""
    _cover(connection, run, observed_at)
    _roll_up(connection, run, observed_at)
    if run.complete and run.outcome != "unchanged":
        _mark(connection, run.provider, observed_at)


def _cover(connection: Connection, run: Run, observed_at: datetime) -> None:
    """Lengthen the newest span in which the source was up, or begin a new one after a gap of over twice its max_age."""
    execute = connection.execute
    limit = scalar(connection, "SELECT 2 * max_age_s FROM live.providers WHERE provider = ?", [run.provider]) or 0
    if run.complete:
        open_span = """source = ? AND until_at = (SELECT max(until_at) FROM live.coverage WHERE source = ?)
            AND until_at + to_seconds(?) >= ?"""
        values = [run.provider, run.provider, limit, observed_at]
        if scalar(connection, f"SELECT count(*) FROM live.coverage WHERE {open_span}", values):
            execute(f"UPDATE live.coverage SET until_at = greatest(until_at, ?) WHERE {open_span}",
                    [observed_at, *values])  # fmt: skip
        else:
            execute("INSERT INTO live.coverage VALUES (?, ?, ?)", [run.provider, observed_at, observed_at])
        return
    numbers = "SELECT offer_no FROM live.current SEMI JOIN incoming USING (offer_id)"
    execute(
        f"""CREATE OR REPLACE TEMP TABLE covered AS SELECT offer_no, max(until_at) AS until_at
        FROM live.offer_coverage WHERE offer_no IN ({numbers}) GROUP BY ALL
        HAVING max(until_at) + to_seconds(?) >= ?""",
        [limit, observed_at],
    )
    execute(
        """UPDATE live.offer_coverage SET until_at = greatest(offer_coverage.until_at, ?) FROM covered c
        WHERE offer_coverage.offer_no = c.offer_no AND offer_coverage.until_at = c.until_at""",
        [observed_at],
    )
    execute(
        f"""INSERT INTO live.offer_coverage SELECT offer_no, ?, ? FROM ({numbers})
        WHERE offer_no NOT IN (SELECT offer_no FROM covered)""",
        [observed_at, observed_at],
    )


def _roll_up(connection: Connection, run: Run, observed_at: datetime) -> None:
    """The source's figures of the UTC day: least and greatest price over all of the day's runs, the newest median."""
    day = observed_at.date()
    only_seen = "" if run.complete else "AND c.offer_no IN (SELECT offer_no FROM live.seen)"
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE rolled AS
        WITH rates AS (
            SELECT currency, arg_max(usd_per_unit, day)::DOUBLE AS usd_per_unit FROM live.exchange_rates GROUP BY ALL
            UNION ALL SELECT 'USD', 1.0
        )
        SELECT ?::DATE AS day, c.source, c.gpu, c.purchase_option, c.provider, c.via,
               min(usd) AS low, median(usd) AS middle, max(usd) AS high,
               count(*) FILTER (c.availability IN ('available', 'limited')) /
                   nullif(count(*) FILTER (c.availability <> 'unknown'), 0) AS share, count(*) AS n
        FROM (
            SELECT c.*, c.price_hour * x.usd_per_unit / (c.gpu_count * c.gpu_fraction::DOUBLE) AS usd
            FROM live.current c LEFT JOIN rates x USING (currency)
            WHERE c.source = ? AND c.closed_at IS NULL AND c.gpu IS NOT NULL {only_seen}
        ) c GROUP BY ALL""",
        [day, run.provider],
    )
    key = "day, source, gpu, purchase_option, provider, via"
    connection.execute(
        f"""UPDATE rolled SET low = least(rolled.low, d.min_price_usd_gpu_hour),
            high = greatest(rolled.high, d.max_price_usd_gpu_hour)
        FROM live.price_daily d WHERE ({", ".join(f"rolled.{k}" for k in key.split(", "))}) =
            ({", ".join(f"d.{k}" for k in key.split(", "))})"""
    )
    connection.execute(f"DELETE FROM live.price_daily WHERE ({key}) IN (SELECT ({key}) FROM rolled)")
    connection.execute(f"INSERT INTO live.price_daily SELECT {key}, low, middle, high, share, n FROM rolled")


def _mark(connection: Connection, source: str, observed_at: datetime) -> None:
    day = observed_at.date()
    connection.execute("DELETE FROM live.guard_marks WHERE source = ? AND (day = ? OR day < ?::DATE - ?)",
                       [source, day, day, _MARK_DAYS])  # fmt: skip
    connection.execute(
        """INSERT INTO live.guard_marks SELECT source, ?, gpu_key, median(price_hour / gpu_count) FROM live.current
        WHERE source = ? AND closed_at IS NULL AND price_hour IS NOT NULL GROUP BY ALL""",
        [day, source],
    )
