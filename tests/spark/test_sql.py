"""Queries inside SQL statements."""

import pyarrow as pa
import pytest

import cepheid
from cepheid.runners.sql.table_functions import table_functions
from spark.test_batch import QUERY, rows, skewed


@pytest.fixture(scope="module")
def events(spark):
    table = skewed(600)
    spark.createDataFrame(table).repartition(3).createOrReplaceTempView("events")

    @cepheid.function
    def near(x: int, y: int) -> bool:
        return abs(x - y) < 3

    cepheid.sql.register(spark)
    for name, function in zip(("row_events", "row_table"), table_functions(spark, arrow=False), strict=True):
        spark.udtf.register(name, function)
    return table


@pytest.mark.slow
@pytest.mark.parametrize("name", ["match_events", pytest.param("row_events", marks=pytest.mark.slow)])
def test_partitions_that_the_statement_makes(spark, events, name):
    found = spark.sql(
        f"SELECT * FROM {name}(TABLE(SELECT * FROM events WHERE ts >= 0) PARTITION BY id ORDER BY (ts), '{QUERY}')"
    )
    expected = cepheid.match(events, QUERY)
    assert found.columns == expected.column_names
    assert rows(found.toArrow()) == rows(expected)
    assert expected.num_rows > 0


@pytest.mark.some(4)
@pytest.mark.parametrize("name", ["match_table", "row_table"])
@pytest.mark.parametrize(
    "text",
    [
        QUERY,
        "PATTERN SEQ(A a, B b) WHERE a.x = b.x AND near(a.x, 20) WITHIN 100 RETURN a.ts AS first, b.x + 1 AS y",
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a, b) { [id] AND a[i].x > a[i-1].x } WITHIN 20",
    ],
)
def test_a_table_by_its_name(spark, events, name, text):
    found = spark.sql(f"SELECT * FROM {name}(TABLE(events), '{text}')")
    assert rows(found.toArrow()) == rows(cepheid.match(events, text))


def test_options_are_named_arguments(spark, events):
    spark.sql("SELECT ts AS at, type AS kind, id, x FROM events").createOrReplaceTempView("renamed")
    found = spark.sql(
        f"SELECT match_start, c.x FROM match_table(TABLE(renamed), query => '{QUERY}', time => 'at', type => 'kind')"
    )
    assert found.count() == cepheid.match(events, QUERY).num_rows
    untyped = spark.sql(
        "SELECT * FROM match_table(TABLE(renamed), 'PATTERN SEQ(a) WHERE a.x > 45', time => 'at', type => NULL)"
    )
    assert untyped.count() == sum(x > 45 for x in events["x"].to_pylist())


def test_results_are_tables_again(spark, events):
    inner = "SELECT b.ts AS ts, ''PAIR'' AS type, b.id AS id FROM match_table(TABLE(events), "
    inner = inner.replace("''", "'") + "'PATTERN SEQ(A a, B b) WHERE [id] AND a.x > b.x WITHIN 30')"
    outer = f"SELECT * FROM match_table(TABLE({inner}), 'PATTERN SEQ(PAIR p, PAIR q) WHERE [id] WITHIN 5')"
    pairs = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > b.x WITHIN 30")
    again = pa.table(
        {
            "ts": [row["b"]["ts"] for row in pairs.to_pylist()],
            "type": ["PAIR"] * pairs.num_rows,
            "id": [row["b"]["id"] for row in pairs.to_pylist()],
        }
    )
    expected = cepheid.match(again, "PATTERN SEQ(PAIR p, PAIR q) WHERE [id] WITHIN 5")
    assert rows(spark.sql(outer).toArrow()) == rows(expected)


FILE = """
-- what was taken and not paid for
CREATE OR REPLACE TEMPORARY VIEW pairs AS
SELECT a.id AS id, match_start
FROM match_table(TABLE(events), 'PATTERN SEQ(A a, B b) WHERE [id] AND a.x > b.x WITHIN 30');
SELECT id, count(*) AS n FROM pairs GROUP BY id;
"""


def test_files_of_statements(spark, events, tmp_path):
    (tmp_path / "pairs.sql").write_text(FILE)
    statements = [part for part in (tmp_path / "pairs.sql").read_text().split(";") if part.strip()]
    *_, last = [spark.sql(statement) for statement in statements]
    found = {row["id"]: row["n"] for row in last.collect()}
    local = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > b.x WITHIN 30 RETURN a.id AS id")
    assert found == {count["values"]: count["counts"] for count in local["id"].value_counts().to_pylist()}


def test_errors_point_into_the_query(spark, events):
    with pytest.raises(Exception, match=r"no attribute 'prize'(.|\n)*\^\^\^") as error:
        spark.sql("SELECT * FROM match_table(TABLE(events), 'PATTERN SEQ(A a, B b) WHERE a.prize > 3')")
    assert type(error.value).__name__ == "AnalysisException"
    with pytest.raises(Exception, match="line 1, column 12"):
        spark.sql("SELECT * FROM match_table(TABLE(events), 'PATTERN SEK(A a, B b)')")
    with pytest.raises(Exception, match="no option 'tiem'; did you mean time"):
        spark.sql(f"SELECT * FROM match_table(TABLE(events), '{QUERY}', tiem => 'ts')")
    with pytest.raises(Exception, match="OUTPUT PARTIAL cannot be used in a table function"):
        spark.sql("SELECT * FROM match_table(TABLE(events), 'PATTERN SEQ(A a, B b) WITHIN 5 OUTPUT PARTIAL')")
    with pytest.raises(Exception, match="'query' must be a constant"):
        spark.sql("SELECT * FROM match_table(TABLE(events), concat('PATTERN', rand()))")


@pytest.mark.slow
def test_events_spread_at_random_are_refused(spark, events):
    with pytest.raises(Exception, match="without PARTITION BY"):
        spark.sql(f"SELECT * FROM match_events(TABLE(events), '{QUERY}')").count()
    # Under LIMIT Spark runs the first task alone, which must not pass for the whole.
    with pytest.raises(Exception, match="without PARTITION BY"):
        spark.sql(f"SELECT * FROM match_events(TABLE(events), '{QUERY}') LIMIT 1").collect()
    with pytest.raises(Exception, match="without PARTITION BY"):
        spark.sql(f"SELECT * FROM match_events(TABLE(events), '{QUERY}')").show()
    single = spark.sql(f"SELECT * FROM match_table(TABLE(events), '{QUERY}')")
    assert single.count() == cepheid.match(events, QUERY).num_rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["match_table", "row_table"])
@pytest.mark.parametrize("clauses", ["", "BY id EVERY 100", "EVERY 200"])
def test_totals_of_a_table(spark, events, name, clauses):
    text = f"PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 12 SUMMARISE count(*) AS n, avg(b.x) AS mean {clauses}"
    found = spark.sql(f"SELECT * FROM {name}(TABLE(events), '{text}')").toArrow()
    assert rows(found) == rows(cepheid.match(events, text))


@pytest.mark.slow
def test_totals_of_each_partition_that_the_statement_makes(spark, events):
    text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 12 SUMMARISE count(*) AS n"
    found = spark.sql(f"SELECT n FROM match_events(TABLE(events) PARTITION BY id ORDER BY (ts), '{text}')")
    expected = cepheid.match(events, f"{text} BY id")["n"].to_pylist()
    assert sorted(row["n"] for row in found.collect() if row["n"]) == sorted(expected)
