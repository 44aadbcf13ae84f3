"""SQL of users cannot leave the catalog: every way out that DuckDB has is tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.errors import QueryRefused
from catalog.home import Home
from catalog.reader import Catalog, reading
from catalog.sandbox import check, run, seal


@pytest.fixture
def catalog(recorded_home: Path) -> Iterator[Catalog]:
    with reading(Home(recorded_home)) as opened:
        yield opened


ESCAPES = [
    # files
    "COPY v_offers TO 'gpubazaar-escape.csv'",
    "COPY (SELECT 1) TO 'gpubazaar-escape.parquet' (FORMAT parquet)",
    "COPY current FROM '/etc/passwd'",
    "EXPORT DATABASE 'gpubazaar-escape'",
    "IMPORT DATABASE 'gpubazaar-escape'",
    "ATTACH 'gpubazaar-escape.duckdb'",
    "ATTACH ':memory:' AS other",
    "DETACH memory",
    "USE system",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM read_parquet('x.parquet')",
    "SELECT * FROM parquet_metadata('x.parquet')",
    "SELECT * FROM parquet_scan('x.parquet')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'x.csv'",
    'SELECT * FROM "x.parquet"',
    "FROM 'x.csv' a JOIN v_offers b ON true",
    "SELECT (SELECT count(*) FROM read_text('/etc/passwd'))",
    "SELECT * FROM v_offers WHERE gpu IN (SELECT content FROM read_text('/etc/passwd'))",
    "WITH a AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM a",
    "SELECT 1 UNION ALL SELECT content FROM read_text('/etc/passwd')",
    "SELECT * FROM v_offers ORDER BY (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM (VALUES ((SELECT content FROM read_text('/etc/passwd')))) t",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'gpubazaar-escape.csv'",
    "EXPLAIN ANALYZE SELECT * FROM read_text('/etc/passwd')",
    "DESCRIBE SELECT * FROM read_csv('/etc/passwd')",
    "SUMMARIZE SELECT * FROM read_csv('/etc/passwd')",
    "DESCRIBE '/etc/passwd'",
    # network and extensions
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL spatial",
    "UPDATE EXTENSIONS",
    "SELECT * FROM 'https://example.com/x.csv'",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    # settings, secrets, environment
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET lock_configuration = false",
    "SET memory_limit = '100GB'",
    "SET VARIABLE x = 1",
    "PRAGMA enable_external_access",
    "PRAGMA database_list",
    "PRAGMA show_databases",
    "PRAGMA enable_profiling",
    "SHOW DATABASES",
    "CREATE SECRET s (TYPE s3)",
    "SELECT current_setting('home_directory')",
    "SELECT getenv('HOME')",
    "SELECT getvariable('x')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://x', 's3')",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_databases",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT * FROM pg_settings",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM duckdb_temporary_files()",
    "SELECT * FROM duckdb_extensions()",
    "WITH duckdb_databases AS (SELECT 1) SELECT * FROM duckdb_databases",
    # queries in texts, pointers into memory, the process's own variables
    "SELECT * FROM query('SELECT * FROM duckdb_settings()')",
    "SELECT * FROM query_table('duckdb_databases')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "CALL pragma_version()",
    "SELECT * FROM seq_scan('current')",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM python_map_function(1)",
    "SELECT * FROM frame",
    "SELECT * FROM catalog",
    # writes
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE VIEW x AS SELECT 1",
    "CREATE OR REPLACE MACRO offers_as_of(x) AS 1",
    "INSERT INTO current SELECT * FROM current",
    "UPDATE current SET price = 0",
    "DELETE FROM current",
    "DROP VIEW v_offers",
    "ALTER TABLE current ADD COLUMN x INTEGER",
    "TRUNCATE current",
    "CHECKPOINT",
    "FORCE CHECKPOINT",
    "SELECT * FROM checkpoint()",
    "BEGIN",
    "COMMIT",
    "VACUUM",
    "COMMENT ON VIEW v_offers IS 'x'",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    # more than one statement
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 1) TO 'gpubazaar-escape.csv'",
    "SELECT 1; -- nothing\nDROP TABLE current",
    "",
    ";",
    "not sql at all",
]


@pytest.mark.parametrize("sql", ESCAPES)
def test_there_is_no_way_out(catalog: Catalog, sql: str) -> None:
    frame = {"a": [1]}
    with pytest.raises(QueryRefused) as refused:
        run(catalog, sql)
    assert str(refused.value)
    assert "root:" not in str(refused.value)
    assert frame
    assert not list(Path().glob("gpubazaar-escape*"))


@pytest.mark.parametrize(
    "sql",
    [
        e
        for e in ESCAPES
        if "/etc" in e or e.startswith(("COPY", "EXPORT", "ATTACH", "INSTALL", "LOAD", "SET", "RESET"))
    ],
)
def test_the_database_itself_refuses_too(catalog: Catalog, sql: str) -> None:
    """The second wall, should the first have a hole."""
    seal(catalog.connection)
    if "EXPLAIN" in sql or sql.startswith(("SET VARIABLE", "ATTACH ':memory:'")):
        return
    with pytest.raises(Exception, match=r"(?i)disabled|locked|cannot|error|not|denied|read-only|permission"):
        catalog.connection.execute(sql).fetchall()
    assert not list(Path().glob("gpubazaar-escape*"))


QUERIES = [
    "SELECT count(*) FROM v_offers",
    "FROM v_cheapest SELECT gpu, provider, price_usd_gpu_hour WHERE purchase_option = 'spot'",
    "WITH a AS (SELECT gpu FROM v_offers), b AS (SELECT * FROM a) SELECT count(*) FROM b",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
    "SELECT * FROM offers_for(80, 2000)",
    "SELECT * FROM offers_as_of(now() - INTERVAL 1 DAY)",
    "SELECT x FROM range(3) t(x)",
    "SELECT unnest(flags) FROM v_offers",
    "SELECT o.provider, h.freshness FROM v_offers o JOIN v_provider_health h USING (provider)",
    "DESCRIBE v_offers",
    "SUMMARIZE SELECT price_usd_hour FROM v_offers",
    "SHOW TABLES",
    "EXPLAIN SELECT * FROM v_offers",
    "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'v_offers'",
    "SELECT table_name FROM information_schema.tables",
    "SELECT median(price_usd_hour) OVER (PARTITION BY gpu) FROM v_offers QUALIFY row_number() OVER () < 3",
    "SELECT list_transform([1, 2], lambda x: x + 1), [x for x in [1, 2] if x > 1]",
    "VALUES (1), (2)",
    "TABLE v_gpus",
    "SELECT * FROM v_offers;",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_ordinary_queries_run(catalog: Catalog, sql: str) -> None:
    assert run(catalog, sql).columns


def test_a_wrong_name_gets_the_nearest_guess(catalog: Catalog) -> None:
    with pytest.raises(QueryRefused, match="did you mean v_offers"):
        check(catalog.connection, "SELECT * FROM v_offer")


def test_time_and_rows_are_limited(catalog: Catalog) -> None:
    answer = run(catalog, "SELECT * FROM range(100) t(x)", row_limit=10)
    assert (len(answer.rows), answer.truncated) == (10, True)


def test_an_endless_query_is_stopped(catalog: Catalog) -> None:
    endless = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range + b.range = 7"
    with pytest.raises(QueryRefused, match="longer than"):
        run(catalog, endless, timeout_s=0.3)


def test_a_huge_result_is_refused_not_swallowed(catalog: Catalog) -> None:
    with pytest.raises(QueryRefused):
        run(catalog, "SELECT list(a.range) FROM range(2000000000) a", timeout_s=20)
    assert os.getpid()
