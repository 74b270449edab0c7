"""Values stay values on their way to Spark, and a clause calls pure functions only."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import cepheid
import cepheid.flink
import cepheid.sql
from cepheid.errors import QueryError

pytestmark = pytest.mark.spark

SIGNS = st.sampled_from(
    ["'", "''", '"', "\\", "\\\\", "\\'", "\\n", "\n", "\r", "\0", "`", "%", "_", "--", "/*", "a", "é", "\U0001f600"]
)
TEXTS = st.lists(SIGNS | st.characters(exclude_categories=["Cs"]), max_size=5).map("".join)


def written(value: str) -> str:
    """A text as SQL and the query language write it: quotes are doubled, and nothing else is special."""
    return "'" + value.replace("'", "''") + "'"


def found(spark: Any, statement: str, dialect: str = "spark", **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in cepheid.sql.query(spark, statement, dialect, **options).collect()]


DRAWS = max(3, settings().max_examples // 100)  # few: each is a dozen jobs of Spark


@pytest.mark.slow
@settings(max_examples=DRAWS, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(TEXTS, min_size=2, max_size=6, unique=True))
def test_drawn_texts_mean_the_same_in_memory_and_on_spark(spark: Any, texts: list[str]) -> None:
    """Each text is looked for among all of them, as a literal of a clause, a query, a Flink pattern and a parameter."""
    table = pa.table({"ts": list(range(len(texts))), "type": ["A"] * len(texts), "s": texts})
    df = spark.createDataFrame([(i, "A", text) for i, text in enumerate(texts)], "ts long, type string, s string")
    wanted = texts[0]
    conditions = [
        f"A.s = {written(wanted)}",
        f"A.s IN ({written(wanted)}, 'no')",
        f"upper(A.s) = upper({written(wanted)})",
    ]
    for condition in [*conditions, f"hex(A.s) = hex({written(wanted)})"]:
        clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(ts) AS at PATTERN (A) DEFINE A AS {condition})"
        on_spark = [row.at for row in cepheid.match(df, clause).collect()]
        if "hex" not in condition:  # which only Spark has
            assert cepheid.match(table, clause)["at"].to_pylist() == on_spark
        assert 0 in on_spark
        assert "upper" in condition or on_spark == [0]
    for query, parameters in ((f"a.s = {written(wanted)}", None), ("a.s = wanted", {"wanted": wanted})):
        text = f"PATTERN A a WHERE {query}"
        assert cepheid.match(table, text, parameters=parameters)["match_start"].to_pylist() == [0]
        assert [row.match_start for row in cepheid.match(df, text, parameters=parameters).collect()] == [0]
    pattern = cepheid.flink.Pattern.begin("a").where(f"s = {written(wanted)}")
    assert cepheid.match(table, pattern).num_rows == cepheid.match(df, pattern).count() == 1
    df.createOrReplaceTempView("drawn_texts")
    for dialect in ("spark", "trino"):
        condition = "s = (SELECT min_by(s, ts) FROM drawn_texts)"
        clause = f"ORDER BY ts MEASURES LAST(ts) AS at, hex(LAST(s)) AS h PATTERN (A) DEFINE A AS {condition}"
        found_at = found(spark, f"SELECT at FROM drawn_texts MATCH_RECOGNIZE ({clause})", dialect)
        assert found_at == [(0,)]
    clause = f"ORDER BY ts MEASURES LAST(ts) AS at PATTERN (A) DEFINE A AS hex(A.s) = hex({written(wanted)})"
    for dialect in ("trino", "snowflake", "mysql", "bigquery"):
        told = cepheid.match(df, f"MATCH_RECOGNIZE ({clause})", dialect=dialect)
        assert [row.at for row in told.collect()] == [0], dialect


OTHERS = [pytest.param(dialect, marks=pytest.mark.slow) for dialect in ("trino", "snowflake")]


@pytest.mark.parametrize("dialect", ["spark", *OTHERS])
def test_data_never_becomes_code(spark: Any, tmp_path: Path, dialect: str) -> None:
    """A value that would end the string it was pasted into, and go on with a call of Java."""
    mark = tmp_path / "made"
    call = f"java_method(\\'java.io.File\\', \\'createTempFile\\', \\'{mark}\\', \\'x\\')"
    for value in (f"\\' || {call} || \\'", f"' || {call.replace(chr(92), '')} || '", "\\", "x\\' OR true OR s = \\'"):
        spark.createDataFrame([(1, value), (2, "plain")], "id long, s string").createOrReplaceTempView("hostile")
        for condition in (
            "s = (SELECT max_by(s, -id) FROM hostile)",
            "hex(s) = hex((SELECT max_by(s, -id) FROM hostile))",
            "s IN (SELECT s FROM hostile WHERE id = 1)",
        ):
            clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS at PATTERN (A) DEFINE A AS {condition})"
            assert found(spark, f"SELECT at FROM hostile {clause}", dialect) == [(1,)], (value, condition)
    assert list(tmp_path.iterdir()) == []


HOSTILE = "java_method('java.lang.System', 'getProperty', 'user.home')"


@pytest.mark.parametrize(
    "clause",
    [
        f"MEASURES {HOSTILE} AS m PATTERN (A) DEFINE A AS true",
        f"MEASURES concat(s, {HOSTILE}) AS m PATTERN (A) DEFINE A AS true",
        f"MEASURES transform(array_agg(s), x -> concat(x, {HOSTILE})) AS m PATTERN (A) DEFINE A AS true",
        f"MEASURES count(*) AS m PATTERN (A) DEFINE A AS {HOSTILE} <> ''",
        f"MEASURES count(*) AS m PATTERN (A) DEFINE A AS hex(s || {HOSTILE}) <> ''",
        "MEASURES reflect('java.lang.System', 'nanoTime') AS m PATTERN (A) DEFINE A AS true",
        "MEASURES try_reflect('java.lang.System', 'nanoTime') AS m PATTERN (A) DEFINE A AS true",
        "MEASURES input_file_name() AS m PATTERN (A) DEFINE A AS true",
        "MEASURES current_database() AS m PATTERN (A) DEFINE A AS true",
        "MEASURES uuid() AS m PATTERN (A) DEFINE A AS true",
        "MEASURES registered_here(s) AS m PATTERN (A) DEFINE A AS true",
    ],
)
def test_only_pure_functions_are_called(spark: Any, clause: str) -> None:
    if "registered_here" in clause:
        spark.udf.register("registered_here", lambda value: value)
    for dialect in ("spark", "trino"):
        with pytest.raises(QueryError) as caught:
            found(spark, f"SELECT * FROM (VALUES (1, 'a')) t(id, s) MATCH_RECOGNIZE (ORDER BY id {clause})", dialect)
        assert caught.value.code == "unsafe-function"
        assert "unsafe_functions=True" in str(caught.value)
    df = spark.createDataFrame([(1, "a")], "id long, s string")
    with pytest.raises(QueryError, match="may call"):
        cepheid.match(df, f"MATCH_RECOGNIZE (ORDER BY id {clause})")


def test_other_functions_for_those_who_trust_the_text(spark: Any) -> None:
    spark.udf.register("twice_as_long", lambda value: value + value)
    df = spark.createDataFrame([(1, "a")], "id long, s string")
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES twice_as_long(s) AS m PATTERN (A) DEFINE A AS true)"
    assert cepheid.match(df, clause, unsafe_functions=True).collect()[0].m == "aa"
    statement = f"SELECT m FROM (VALUES (1, 'a')) t(id, s) {clause}"
    assert found(spark, statement, unsafe_functions=True) == [("aa",)]


@pytest.mark.parametrize("name", ["current_user", "session_user", "user", "nosuch"])
def test_a_name_is_a_column_and_nothing_else(spark: Any, name: str) -> None:
    for dialect in ("spark", "trino"):
        measures = f"concat_ws('', array_agg(id), hex({name})) AS m"
        clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES {measures} PATTERN (A) DEFINE A AS true)"
        with pytest.raises(QueryError, match=r"no column|may call"):
            found(spark, f"SELECT * FROM (VALUES (1)) t(id) {clause}", dialect)


def test_every_listed_function_is_one_of_sparks(spark: Any) -> None:
    from cepheid.runners.spark.pure_functions import PURE_FUNCTIONS

    names = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    kept_out = {
        "java_method",
        "reflect",
        "try_reflect",
        "from_protobuf",
        "to_protobuf",
        "from_avro",
        "to_avro",
        "xpath",
    }
    assert not kept_out & PURE_FUNCTIONS
    # timestampadd and timestampdiff are part of the grammar there
    assert PURE_FUNCTIONS - names <= {"timestampadd", "timestampdiff"}


def test_strings_of_the_statement_around(spark: Any) -> None:
    """Spark's escapes there, none in the clause."""
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS at PATTERN (A) DEFINE A AS s = 'a\\')"
    table = "(SELECT * FROM VALUES (1, 'a\\\\'), (2, 'MATCH_RECOGNIZE (\\'') t(id, s) WHERE s <> 'it\\'s')"
    assert found(spark, f"SELECT at, 'it\\'s' FROM {table} {clause} WHERE '\\'' <> ''") == [(1, "it's")]


def test_all_values_of_a_query_after_in(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the 10,000 that were read before, among them the only one that matters; and a bound that is told."""
    table = "(VALUES (1, 5), (2, 20500)) t(id, v)"
    for test, expected in (("IN", [(2,)]), ("NOT IN", [(1,)])):
        condition = f"v {test} (SELECT id + 500 FROM range(20010))"
        clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS at PATTERN (A) DEFINE A AS {condition})"
        assert found(spark, f"SELECT at FROM {table} {clause}") == expected
    monkeypatch.setattr("cepheid.runners.sql.statement.MOST_VALUES", 100)
    with pytest.raises(QueryError, match="more than 100 values"):
        found(spark, f"SELECT at FROM {table} {clause}")


def test_queries_in_a_clause(spark: Any) -> None:
    table = "(VALUES (1, 5), (2, 6)) t(id, v)"

    def at(condition: str) -> list[tuple[Any, ...]]:
        clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS at PATTERN (A) DEFINE A AS {condition})"
        return found(spark, f"SELECT at FROM {table} {clause}")

    assert at("v IN (SELECT 6 UNION ALL SELECT NULL)") == [(2,)]
    assert at("v NOT IN (SELECT 6 UNION ALL SELECT NULL)") == []
    assert at("v IN (SELECT 1 WHERE false)") == []
    assert at("v NOT IN (SELECT 1 WHERE false)") == [(1,), (2,)]
    assert at("nullif(v, 5) NOT IN (SELECT 1 WHERE false)") == [(1,), (2,)]
    assert at("nullif(v, 5) NOT IN (SELECT 1)") == [(2,)]
    assert at("v = (SELECT 1 WHERE false)") == []
    assert at("(SELECT 1 WHERE false) IS NULL") == [(1,), (2,)]
    for dialect in ("spark", "trino"):
        measure = "if(hex(LAST(v)) IN (SELECT '1' WHERE false), 'in', 'out') AS m"
        clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES {measure} PATTERN (A) DEFINE A AS v = 5)"
        assert found(spark, f"SELECT m FROM {table} {clause}", dialect) == [("out",)]
    assert at("EXISTS (SELECT 1 WHERE false) OR v = (SELECT max(v) FROM VALUES (6) x(v))") == [(2,)]
    for wrong in ("v IN (SELECT 1, 2)", "v = (SELECT 1, 2)", "v = (SELECT explode(array(1, 2)))"):
        with pytest.raises(QueryError) as caught:
            at(wrong)
        assert caught.value.code == "subquery"
        assert caught.value.text is not None
        assert caught.value.text[caught.value.start : caught.value.end] == "SELECT"


def test_kinds_of_values_of_a_query_in_a_clause(spark: Any) -> None:
    """Each as a single value and after IN, with others beside it; the answer is Spark's own."""
    kinds = {
        "decimal(20,2)": "'12345678901234567.89'",
        "timestamp": "'2026-03-08 05:00:00.000001'",
        "timestamp_ntz": "'2026-03-08 02:30:00'",
        "date": "'2026-02-28'",
        "string": "'it''s'",
        "bigint": "'9007199254740993'",
        "boolean": "'true'",
        "double": "'0.1'",
    }
    for kind, text in kinds.items():
        value, nothing = f"CAST({text} AS {kind})", f"CAST(NULL AS {kind})"
        table = f"(SELECT 1 AS id, {value} AS v UNION ALL SELECT 2, {nothing})"
        for condition in (f"v = (SELECT {value})", f"v IN (SELECT {value} UNION ALL SELECT {nothing})"):
            clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS at PATTERN (A) DEFINE A AS {condition})"
            assert found(spark, f"SELECT at FROM {table} t {clause}") == [(1,)], (kind, condition)


def test_functions_of_spark_on_one_row_in_a_condition(spark: Any) -> None:
    """What the rewrite makes of conditions over computed columns, with labels, beside other conditions, nested."""
    rows = [(1, "Anna", 3), (2, "Emma", 4), (3, "Anne", 5)]
    df = spark.createDataFrame(rows, "id long, s string, v long")

    def at(condition: str) -> list[int]:
        clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS at PATTERN (A) DEFINE A AS {condition})"
        return [row.at for row in cepheid.match(df, clause).collect()]

    assert at("soundex(A.s) = 'A500'") == [1, 3]
    assert at("soundex(s) = 'A500' AND A.s <> 'Anna'") == [3]
    assert at("soundex(A.s) IN ('A500', 'x') OR A.s LIKE 'E%'") == [1, 2, 3]
    assert at("initcap(soundex(A.s)) = 'A500' AND v > 3") == [3]
    assert at("soundex(LAST(A.s)) = soundex('Anna')") == [1, 3]
    assert at("hex(A.v) = '4' OR bin(v) = '11'") == [1, 2]
    assert at("levenshtein(A.s, 'Anna') BETWEEN 1 AND 1") == [3]
    assert at("exists(array(A.s), x -> x = 'Emma')") == [2]
    assert at("CAST(A.v AS tinyint) = 4") == [2]
    assert at(
        "timestampadd(MINUTE, A.v, TIMESTAMP '2026-01-01 00:00:00') IS NOT NULL AND try_divide(v, 0) IS NULL"
    ) == [1, 2, 3]


def test_values_of_measures_keep_their_types(spark: Any) -> None:
    df = spark.createDataFrame(
        [(1, Decimal("10.10"), datetime(2026, 1, 31, 12))], "id long, p decimal(10,2), ts timestamp"
    )
    measures = (
        "p * 1.5 AS more, p / 0 AS none, hex(id + 1) AS h, ts + INTERVAL 1 MONTH AS later, pmod(id, 3) % 2 AS rest"
    )
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES {measures} PATTERN (A) DEFINE A AS true)"
    (row,) = cepheid.match(df, clause).collect()
    assert (row.more, row.none, row.h, row.rest) == (Decimal("15.150"), None, "2", 1)


def test_columns_with_names_of_ours(spark: Any) -> None:
    df = spark.createDataFrame([(1, "a", "b")], ["id", "computed 0", "computed flag 0"])
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES hex(`computed 0`) AS `cepheid_part_0`, hex(id + count(*)) AS n "
    clause += "ALL ROWS PER MATCH PATTERN (A) DEFINE A AS hex(`computed flag 0`) = '62')"
    (row,) = cepheid.match(df, clause).collect()
    assert row.asDict() == {"id": 1, "cepheid_part_0": "61", "n": "2", "computed 0": "a", "computed flag 0": "b"}


def test_deep_statements_of_other_systems(spark: Any) -> None:
    deep = "(" * 3_000 + "1" + ")" * 3_000
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES 1 AS m PATTERN (A) DEFINE A AS true)"
    with pytest.raises(QueryError) as caught:
        found(spark, f"SELECT {deep} FROM (VALUES (1)) t(id) {clause}", "trino")
    assert caught.value.code == "too-deep"
