"""A session in New York: query text, clauses, Flink patterns and Spark SQL read times alike, as clocks are put."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import cepheid
import cepheid.flink
import cepheid.sql
from cepheid.language.zone_labels import labelled_table

ZONE = "spark.sql.session.timeZone"
# New York's clocks are put forward on 8 March at 07:00, and back on 1 November at 06:00.
BEGINS = (datetime(2026, 3, 8, 3, 0, tzinfo=UTC), datetime(2026, 11, 1, 3, 0, tzinfo=UTC))
CONDITIONS = (
    "{0} >= TIMESTAMP '2026-03-08 02:30:00'",  # the clocks leave it out
    "{0} >= TIMESTAMP '2026-11-01 01:30:00'",  # the clocks show it twice
    "{0} >= '2026-11-01 01:30:00'",
    "hour({0}) BETWEEN 1 AND 3",
    "CAST({0} AS date) = DATE '2026-03-08'",
    "{0} = CAST(CAST({0} AS string) AS timestamp)",  # not where clocks show the second of two
)
FURTHER = (
    "{0} >= TIMESTAMP '2026-03-08 01:30:00'",
    "{0} >= TIMESTAMP '2026-11-01 01:30:00-05:00'",
    "{0} < DATE '2026-11-01'",
    "{0} BETWEEN TIMESTAMP '2026-03-08 01:00:00' AND TIMESTAMP '2026-11-01 01:00:00'",
    "dayofweek({0}) = 1",
    "minute({0}) = 30",
    "CAST({0} AS string) LIKE '%01:%'",
    "date_trunc('day', {0}) = TIMESTAMP '2026-11-01 00:00:00'",
    "{0} < CAST('2026-11-01 01:40:00' AS timestamp)",
    "CAST(CAST({0} AS date) AS timestamp) <= TIMESTAMP '2026-03-08 00:00:00'",
    "timestampdiff(HOUR, TIMESTAMP '2026-03-08 00:00:00', {0}) < 3",
    "unix_seconds({0}) % 7200 = 0",
)
VALUES = (
    "hour({0})",
    "CAST({0} AS string)",
    "CAST({0} AS date)",
    "date_trunc('day', {0})",
    "date_trunc('hour', {0})",
    "date_trunc('month', {0})",
    "weekofyear({0})",
    "datediff({0}, DATE '2026-01-01')",
    "timestampdiff(HOUR, TIMESTAMP '2026-03-08 00:00:00', {0})",
    "CAST('2026-03-08 02:30:00' AS timestamp)",
)


@pytest.fixture(scope="module")
def session(spark):
    own = spark.newSession()
    assert own.conf.get(ZONE) == "America/New_York"
    return own


@pytest.fixture(scope="module")
def table() -> pa.Table:
    times = [begin + timedelta(minutes=10 * step) for begin in BEGINS for step in range(48)]
    columns = {"ts": pa.array(times, pa.timestamp("us", "UTC")), "type": ["E"] * 96, "x": list(range(96))}
    return pa.table(columns)


def clause(condition: str, measures: str = "A.x AS x", rest: str = "") -> str:
    return f"""MATCH_RECOGNIZE (ORDER BY ts MEASURES {measures} ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A{rest}) DEFINE A AS {condition})"""


@pytest.mark.some(3)
@pytest.mark.parametrize("condition", [*CONDITIONS, *(pytest.param(each, marks=pytest.mark.slow) for each in FURTHER)])
def test_conditions_are_those_of_spark(session, table, condition):
    df = session.createDataFrame(table)
    plain = condition.format("ts")
    wanted = [row.x for row in df.where(plain).orderBy("x").collect()]
    assert 0 < len(wanted) < 96
    text = f"EVENT E e WHERE {condition.format('e.ts')} RETURN e.x AS x"
    on_the_way = f"{condition.format('A.ts')} AND x >= FIRST(x)"  # no condition on one row: workers compute it
    step = cepheid.flink.Pattern.begin("e").where(plain)
    df.createOrReplaceTempView("zoned")
    whole = f"SELECT x FROM zoned {clause('true', 'A.x AS x, A.ts AS ts')} WHERE {plain}"
    found = {
        "text": cepheid.match(df, text).select("x"),
        "clause": cepheid.match(df, clause(plain)),
        "clause, on the way": cepheid.match(df, clause(on_the_way)),
        "outside of the clause": cepheid.sql.query(session, whole),
        "flink": cepheid.match(df, step).select("e.x"),
    }
    every = found.pop("text").withColumn("by", F.lit("text"))
    for name, rows in found.items():
        every = every.union(rows.withColumn("by", F.lit(name)))
    answers = every.toArrow().to_pylist()  # one job
    for name in ("text", *found):
        assert sorted(row["x"] for row in answers if row["by"] == name) == wanted, name
    for query in (text, clause(plain), clause(on_the_way)):  # and in memory
        assert cepheid.match(table, query, tz="America/New_York")["x"].to_pylist() == wanted
    local = cepheid.match(table, step, tz="America/New_York")["e"].to_pylist()
    assert [row["x"] for row in local] == wanted


def test_values_are_those_of_spark(session, table):
    df = session.createDataFrame(table)
    named = [f"{value} AS v{number}" for number, value in enumerate(VALUES)]
    wanted = df.selectExpr("x", *(each.format("ts") for each in named)).orderBy("x").toArrow()
    wanted = labelled_table(wanted)
    text = "EVENT E e RETURN e.x AS x, " + ", ".join(each.format("e.ts") for each in named)
    measures = "A.x AS x, " + ", ".join(each.format("A.ts") for each in named)
    for query in (text, clause("true", measures), clause("x >= FIRST(x)", measures)):
        for found in (cepheid.match(df, query).toArrow(), cepheid.match(table, query, tz="America/New_York")):
            names = ["x", *(f"v{number}" for number in range(len(VALUES)))]
            rows = labelled_table(found.select(names).sort_by("x"))  # Python finds no two instants equal in some hours
            assert rows.to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
def test_times_in_text_are_those_of_memory(session, tz):
    """Never read through the session's zone: in UTC, or in `tz`."""
    digits = [begin.replace(tzinfo=None) + timedelta(minutes=20 * step) for begin in BEGINS for step in range(24)]
    digits += [datetime(2026, 3, 29, 0, 10) + timedelta(minutes=20 * step) for step in range(12)]  # Berlin's
    texts = [str(each) if number % 5 else each.isoformat() + "+01:00" for number, each in enumerate(digits)]
    table = pa.table({"ts": texts, "type": ["E"] * len(texts), "x": list(range(len(texts)))})
    query = """PATTERN SEQ(E a, E b) WHERE a.ts >= '2026-03-08 02:30:00' WITHIN 50 minutes
    RETURN a.x AS a, b.x AS b, hour(a.ts) AS h, CAST(b.ts AS string) AS shown"""
    options = {} if tz is None else {"tz": tz}
    found = cepheid.match(session.createDataFrame(table), query, **options).toArrow()
    order = [("a", "ascending"), ("b", "ascending")]
    columns = ["a", "b", "h", "shown"]
    wanted = cepheid.match(table, query, **options).select(columns).sort_by(order)
    assert wanted.num_rows > 40
    assert found.select(columns).sort_by(order).to_pylist() == wanted.to_pylist()
