"""Row patterns on Spark: whole statements, clauses in all places, other systems' dialects."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
import cepheid.sql
from cepheid.engine.search.row_pattern.run import needed_columns
from cepheid.errors import QueryError
from cepheid.language.match_recognize.parse import parse_clause
from cepheid.runners.rows import bound_to
from cepheid.runners.spark.row_conditions import with_flags
from cepheid.runners.spark.session import arrow_schema

pytestmark = pytest.mark.spark

TICKS = "(VALUES (1, 90), (2, 80), (3, 70), (4, 80), (5, 90), (6, 50), (7, 40), (8, 60)) t(id, value)"
V_SHAPE = "PATTERN (A B+ C+) DEFINE B AS B.value < PREV(B.value), C AS C.value > PREV(C.value)"


def rows(spark: Any, statement: str, dialect: str = "spark") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in cepheid.sql.query(spark, statement, dialect).collect()]


def test_a_statement_of_trino(spark: Any) -> None:
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES MATCH_NUMBER() AS n, sum(value) / 7 AS s {V_SHAPE})"
    assert rows(spark, f"SELECT n, s FROM {TICKS} {clause} AS m ORDER BY n", "trino") == [(1, 58), (2, 21)]


def test_limits_hold_in_tasks(spark: Any) -> None:
    statement = f"SELECT * FROM {TICKS} MATCH_RECOGNIZE (ORDER BY id MEASURES count(*) AS n {V_SHAPE}) AS m"
    assert cepheid.sql.query(spark, statement, max_matches=2, timeout=600).count() == 2
    with pytest.raises(Exception, match="the clause reached max_matches=1"):
        cepheid.sql.query(spark, statement, max_matches=1).collect()


def test_clauses_in_queries_before_the_select_and_in_joins(spark: Any) -> None:
    statement = f"""
    WITH ticks AS (SELECT * FROM {TICKS}),
         falls AS (SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY id MEASURES FIRST(id) AS began {V_SHAPE}) AS f)
    SELECT falls.began, m.top FROM falls
    JOIN ticks MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS ended, max(value) AS top {V_SHAPE}) m
      ON m.ended > falls.began  -- MATCH_RECOGNIZE ( in a comment
    WHERE 'MATCH_RECOGNIZE (' <> '' ORDER BY 1, 2"""
    assert rows(spark, statement) == [(1, 60), (1, 90), (6, 60)]


def test_a_clause_over_a_clause(spark: Any) -> None:
    inner = f"(SELECT * FROM {TICKS} MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS e, count(*) AS n {V_SHAPE}))"
    outer = "MATCH_RECOGNIZE (ORDER BY e MEASURES array_agg(n) AS sizes PATTERN (A+) DEFINE A AS n > 0)"
    assert rows(spark, f"SELECT sizes FROM {inner} {outer}") == [([5, 3],)]


def test_queries_inside_of_a_clause(spark: Any) -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES count(*) AS n PATTERN (A+) DEFINE A AS value > (SELECT 65))"
    assert rows(spark, f"SELECT n FROM {TICKS} {clause} m") == [(5,)]


def test_partitions_of_a_table(spark: Any) -> None:
    table = pa.table({"k": ["a", "b", None] * 40, "t": list(range(120)), "v": [i % 7 for i in range(120)]})
    measures = "MEASURES sum(v) AS s, LAST(t) AS t"
    clause = f"MATCH_RECOGNIZE (PARTITION BY k ORDER BY t {measures} PATTERN (A B+) DEFINE B AS v > PREV(v))"
    expected = cepheid.match(table, clause, engine="reference")
    found = cepheid.match(spark.createDataFrame(table.to_pandas()), clause, partitions=3)
    assert found.columns == expected.column_names
    key = str
    assert sorted(map(tuple, found.collect()), key=key) == sorted(
        zip(*(column.to_pylist() for column in expected.columns), strict=True), key=key
    )


def test_errors_point_into_the_statement(spark: Any) -> None:
    statement = f"SELECT * FROM {TICKS} MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS B.valu > 1)"
    with pytest.raises(QueryError) as caught:
        rows(spark, statement)
    assert caught.value.text is not None
    assert caught.value.text[caught.value.start : caught.value.end] == "valu"


def test_functions_that_only_spark_has(spark: Any) -> None:
    clause = """MATCH_RECOGNIZE (ORDER BY id
    MEASURES hex(LAST(B.value)) AS h, sum(bit_count(value)) AS bits, hex(A.value + 1) || '!' AS first,
             hex(PREV(FIRST(value, 1), 1)) AS p
    PATTERN (A B+) DEFINE B AS crc32(string(B.value)) > 0 AND soundex('x') = soundex('x') OR value < PREV(value))"""
    bits = sum(value.bit_count() for value in (90, 80, 70, 80, 90, 50, 40, 60))
    assert rows(spark, f"SELECT * FROM {TICKS} {clause}") == [("3C", bits, "5B!", "5A")]


@pytest.mark.slow
def test_a_stream(spark: Any, tmp_path: Any) -> None:
    """Files that come one after the other; a last row far ahead lets the watermark pass all others."""
    clause = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(v) AS f, LAST(v) AS l, MATCH_NUMBER() AS n
    PATTERN (A B+) WITHIN INTERVAL '1' MINUTE DEFINE B AS v > PREV(v))"""
    made = "SELECT timestamp_seconds(id * 7) AS ts, IF(id % 3 = 0, 'a', 'b') AS k, id * 5 % 11 AS v FROM range({}, {})"
    folder = str(tmp_path / "in")
    batch = spark.sql(made.format(0, 60))
    expected = sorted(map(tuple, cepheid.match(batch, clause).collect()))
    for low, high in ((0, 13), (13, 40), (40, 60), (100_000, 100_001)):
        spark.sql(made.format(low, high)).coalesce(1).write.mode("append").parquet(folder)
    source = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1).parquet(folder)
    found = cepheid.match(source, clause, delay="20 seconds", shards=2)
    writer = found.writeStream.format("memory").queryName("row_stream").outputMode("append")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(map(tuple, spark.sql("SELECT * FROM row_stream").collect())) == expected


def test_measures_that_spark_computes_after_the_search(spark: Any) -> None:
    measures = """slice(array_agg(value), 1, 2) AS two, format_number(sum(value), 1) AS total,
    transform(array_agg(A.value), x -> x + 1) AS more, named_struct('f', FIRST(id), 'l', LAST(id)) AS ends,
    CAST(array_agg(id) AS array<string>) AS ids, value AS last, pmod(id, FIRST(id, 1)) AS rest"""
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES {measures} {V_SHAPE})"
    first, second = rows(spark, f"SELECT * FROM {TICKS} {clause}")
    assert first == ([90, 80], "410.0", [91], (1, 5), ["1", "2", "3", "4", "5"], 90, 1)
    assert second[1:4] == ("150.0", [51], (6, 8))
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES hex(count(*)) AS n ALL ROWS PER MATCH WITH UNMATCHED ROWS {})"
    found = rows(spark, f"SELECT id, n FROM {TICKS} {clause.format('PATTERN (A A) DEFINE A AS value > 75')}")
    assert sorted(found) == [(1, "1"), (2, "2"), (3, None), (4, "1"), (5, "2"), (6, None), (7, None), (8, None)]


def test_forms_beyond_the_standard(spark: Any) -> None:
    clause = """MATCH_RECOGNIZE (PARTITION BY t.id % 2 ORDER BY t.id + 0
      MEASURES array_agg(id ORDER BY value DESC, id) AS v, array_agg(id) FILTER (WHERE t.value > 80) AS w,
        struct(FIRST(value) AS a, LAST(t.value) AS b) AS s, concat('{"a": ', LAST(id), '}') ->> 'a' AS j
      PATTERN (A+) DEFINE A AS t.value > 0)"""
    found = rows(spark, f"SELECT * FROM {TICKS} {clause} ORDER BY 1")
    assert found == [(0, [2, 4, 8, 6], [], (80, 60), "8"), (1, [1, 5, 3, 7], [1, 5], (90, 40), "7")]
    table = pa.table({"id": range(1, 9), "value": [90, 80, 70, 80, 90, 50, 40, 60]})
    local = cepheid.match(table, clause)
    assert sorted(str(row) for row in local.to_pylist()) == sorted(
        str(row.asDict(recursive=True))
        for row in cepheid.match(spark.createDataFrame(table.to_pandas()), clause).collect()
    )
    nested = spark.sql("SELECT named_struct('k', id % 2, 't', -id) AS of, id FROM range(1, 7)")
    fields = "MATCH_RECOGNIZE (PARTITION BY of.k ORDER BY of.t MEASURES array_agg(id) AS v PATTERN (A+))"
    assert sorted(map(tuple, cepheid.match(nested, fields).collect())) == [(0, [6, 4, 2]), (1, [5, 3, 1])]


def test_partial_matches(spark: Any) -> None:
    table = pa.table({"ts": [1, 2, 3, 4, 30], "kind": ["o", "p", "o", "x", "x"], "k": [1] * 5})
    clause = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES MATCH_NUMBER() AS n, O.ts AS o, P.ts AS p
      AFTER MATCH SKIP TO NEXT ROW PATTERN (O X*? P) WITHIN 10 DEFINE O AS kind = 'o', P AS kind = 'p'
      OPTIONS (output_partial = true))"""
    found = cepheid.match(spark.createDataFrame(table.to_pandas()), clause)
    expected = [tuple(row.values()) for row in cepheid.match(table, clause).to_pylist()]
    assert sorted(map(str, map(tuple, found.collect()))) == sorted(map(str, expected))
    assert expected == [(1, 1, 1, 2), (1, None, 3, None)]


def test_decimals_structs_and_keys(spark: Any) -> None:
    table = "(VALUES (1, 10.10, named_struct('x', 5)), (2, 10.20, named_struct('x', 6))) t(id, p, s)"
    measures = "sum(p) / count(*) AS mean, avg(p) AS a, A.s.x AS x, max_by(p, s.x) AS best"
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES {measures} PATTERN (A B) DEFINE B AS B.s.x > A.s.x)"
    of_spark = spark.sql(f"SELECT sum(p) / count(*), avg(p) FROM {table}").first()
    assert [str(value) for value in rows(spark, f"SELECT * FROM {table} {clause}")[0]] == [
        str(of_spark[0]),
        str(of_spark[1]),
        "5",
        "10.20",
    ]
    keyed = (
        "MATCH_RECOGNIZE (PARTITION BY id % 2 ORDER BY -id MEASURES array_agg(id) ids PATTERN (a+) DEFINE a AS id > 2)"
    )
    assert sorted(rows(spark, f"SELECT * FROM {TICKS} {keyed}", "snowflake")) == [(0, [8, 6, 4]), (1, [7, 5, 3])]


@pytest.mark.parametrize(
    ("clause", "code", "marked"),
    [
        ("MEASURES nosuch(id, LAST(id)) AS n PATTERN (A) DEFINE A AS true", "unknown-function", "nosuch(id, LAST(id))"),
        ("MEASURES regr_slope(id, id) AS n PATTERN (A) DEFINE A AS true", "unknown-function", "regr_slope(id, id)"),
        ("PATTERN (A B) DEFINE B AS shiftleft(A.id, B.id) > 1", "spark-expression", "shiftleft(A.id, B.id)"),
        ("PATTERN (A) DEFINE A AS id > (SELECT A.id)", "subquery", "SELECT"),
        ("PATTERN (A) DEFINE A AS EXISTS (SELECT 1 FROM t MATCH_RECOGNIZE (x))", "nested-clause", "MATCH_RECOGNIZE"),
    ],
)
def test_what_spark_cannot_do_is_refused(spark: Any, clause: str, code: str, marked: str) -> None:
    with pytest.raises(QueryError) as caught:
        rows(spark, f"SELECT * FROM {TICKS} MATCH_RECOGNIZE (ORDER BY id {clause})")
    assert caught.value.code == code
    assert caught.value.text is not None
    assert caught.value.text[caught.value.start : caught.value.end] == marked


@pytest.mark.slow
def test_the_moves_of_the_how_to_page(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement of the page with the three lines below it, over small files."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "match-recognize-on-spark.md").read_text(encoding="utf-8")
    statements = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    moves = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    day = [datetime(2026, 1, 1, hour) for hour in range(5)]
    quarters = [datetime(2026, 1, 1, 0, minute) for minute in (0, 10, 20, 30, 40)]
    price = [90.0, 80.0, 70.0, 75.0, 72.0]
    for name, columns in (
        ("orders", {"customer": ["c"] * 5, "day": day, "price": price}),
        ("prices", {"company": ["c"] * 5, "price_date": day, "price": price}),
        (
            "ticks",
            {"symbol": ["c"] * 5, "rowtime": quarters, "price": [90.0, 85.0, 70.0, 75.0, 72.0]},
        ),
    ):
        pq.write_table(pa.table(columns), f"{name}.parquet")
    for dialect, statement in zip(("trino", "snowflake", "flink"), statements, strict=True):
        Path(f"{dialect}.sql").write_text(statement, encoding="utf-8")
    found = []
    for move in moves:
        assert len(move.splitlines()) == 3
        here = move.strip().replace('parquet("', f'parquet("{tmp_path}/')  # Spark has a working directory of its own
        call = here.replace(").show()", ")").splitlines()
        *before, last = [*call[:-1], call[-1]]
        names = {"spark": spark, "cepheid": cepheid}
        exec("\n".join([*before, f"found = {last}"]), names)
        found.append([tuple(row) for row in names["found"].collect()])
    assert found[0] == [("c", day[0], 70.0, 75.0)]
    assert found[1] == [("c", 1, day[0], day[3], 4, 2)]
    assert [row[2] for row in found[2]] == [20.0]


def test_conditions_on_strings_are_judged_before_the_shuffle(spark: Any) -> None:
    table = "(VALUES (1, 'a', 'k'), (2, 'b', 'k'), (3, NULL, 'k'), (4, 'a', 'k'), (5, 'b', 'k')) t(id, kind, key)"
    clause = """MATCH_RECOGNIZE (PARTITION BY key ORDER BY id MEASURES A.id AS first, B.id AS last
    PATTERN (A B) DEFINE A AS (A.kind = 'a' OR kind LIKE 'x%'), B AS B.kind IN ('b', 'c'))"""
    found = cepheid.sql.query(spark, f"SELECT first, last FROM {table} {clause}")
    assert sorted(map(tuple, found.collect())) == [(1, 2), (4, 5)]
    df, changed = with_flags(spark.sql(f"SELECT * FROM {table}"), parse_clause(clause))
    assert df.columns[-2:] == ["computed flag 0", "computed flag 1"]
    assert needed_columns(bound_to(changed, arrow_schema(df))) == ("id", "key", "computed flag 0", "computed flag 1")
    shown = clause.replace("A.id AS first", "A.kind AS first")  # the strings travel anyway
    assert with_flags(spark.sql(f"SELECT * FROM {table}"), parse_clause(shown))[0].columns == ["id", "kind", "key"]
