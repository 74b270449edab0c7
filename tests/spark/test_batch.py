"""Batches on Spark give the matches of the local engine, however they are spread."""

import datetime as dt
from itertools import product
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid.runners.spark.batch import match_batch
from cepheid.runners.spark.match import match_spark
from spark.packed import by_query, collected, expected, keyed_cases, keyless_cases, packed, plan_of


@given(cases=keyed_cases())
@packed
def test_keyed_queries_find_what_the_local_engine_finds(spark, cases):
    check_all_ways(spark, cases, [{"partitions": 2}, {"partitions": 7, "memory": 500}])


@given(cases=keyless_cases())
@packed
def test_queries_without_key_find_what_the_local_engine_finds(spark, cases):
    check_all_ways(spark, cases, [{"slices": 1}, {"slices": 3}, {"slices": 7, "partitions": 2, "memory": 500}])


def check_all_ways(spark, cases, ways):
    queries, table = cases
    check_plans_all_ways(spark, [plan_of(query, table) for query in queries], table, ways)


def check_plans_all_ways(spark, plans, table, ways):
    """Every plan, spread in every way, finds what it finds in memory; all in one job."""
    df = spark.createDataFrame(table)
    found = collected([(plan, match_batch(df, plan, options)) for options in ways for plan in plans])
    assert found == [expected(plan, table) for plan in plans] * len(ways)


@given(cases=keyed_cases())
@packed
def test_several_queries_in_one_pass_find_what_each_finds(spark, cases):
    queries, table = cases
    plans = {f"q{number}": plan_of(query, table) for number, query in enumerate(queries)}
    result = match_batch(spark.createDataFrame(table), plans)
    found = by_query(plans, result.toArrow().to_pylist())
    assert found == {name: expected(plan, table) for name, plan in plans.items()}


@pytest.mark.slow
@given(cases=keyed_cases(window=True, max_streams=3))
@packed
def test_hot_keys_change_nothing(spark, cases):
    queries, table = cases
    plans = [plan_of(query, table) for query in queries]
    df = spark.createDataFrame(table)
    results = []
    for plan in plans:
        keys = [tuple(row[name] for name in plan.bound.equivalence) for row in table.slice(0, 4).to_pylist()]
        hot = [key for key in set(keys) if None not in key]
        results.append((plan, match_batch(df, plan, {"hot_keys": hot, "slices": 3})))
    assert collected(results) == [expected(plan, table) for plan in plans]


# --- drawn by hand --------------------------------------------------------------------------------------------------


def skewed(n=3000, seed=0) -> pa.Table:
    """Nine of ten events have one key."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": rng.permutation(n),
            "type": rng.choice(["A", "B", "C"], n),
            "id": np.where(rng.random(n) < 0.9, 7, rng.integers(0, 20, n)),
            "x": rng.integers(0, 50, n),
        }
    )


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x AND b.x < c.x AND a.x > 20 WITHIN 40"


@pytest.mark.slow
def test_skewed_keys_are_found_and_parted(spark):
    table = skewed()
    df = spark.createDataFrame(table)
    result = match_spark(df, cepheid.query(QUERY), {"hot_keys": "auto"})
    assert "__slice" in result._jdf.queryExecution().optimizedPlan().toString()
    assert rows(result.toArrow()) == rows(cepheid.match(table, QUERY))


@pytest.mark.slow
def test_the_filter_reaches_the_files(spark, tmp_path):
    spark.createDataFrame(skewed(300)).write.parquet(str(tmp_path / "events"))
    df = spark.read.parquet(str(tmp_path / "events"))
    plan = match_spark(df, cepheid.query(QUERY + " RETURN a.ts, c.ts AS done"), {})._jdf.queryExecution()
    text = plan.executedPlan().toString()
    filters = text[text.index("PushedFilters") :].split("\n")[0]
    assert "In(type, [A])" in filters or "EqualTo(type,A)" in filters
    assert "GreaterThan(x,20)" in filters
    assert "IsNotNull(id)" in filters
    assert text.count("Exchange") == 1


@pytest.mark.slow
def test_of_a_wide_table_only_what_is_needed_is_read_and_moved(spark, tmp_path):
    wide = [f"x + {number} AS wide{number}" for number in range(150)]
    spark.createDataFrame(skewed(300)).selectExpr("*", *wide).write.parquet(str(tmp_path / "events"))
    df = spark.read.parquet(str(tmp_path / "events"))
    text = QUERY.replace("a.x > 20", "a.wide7 > 27") + " RETURN a.ts AS first, c.wide99 AS w"
    result = cepheid.match(df, text)
    plan = result._jdf.queryExecution().executedPlan().toString()
    read = plan[plan.index("ReadSchema: struct<") :].split("\n")[0]
    assert sorted(part.split(":")[0] for part in read.split("<")[1].rstrip(">").split(",")) == sorted(
        ["id", "ts", "type", "wide7", "wide99", "x"]
    )
    local = cepheid.match(pa.Table.from_batches(df.toArrow().to_batches()), text)
    assert rows(result.toArrow()) == rows(local)
    assert local.num_rows > 0


@pytest.mark.slow
def test_tiebreakers_order_what_time_does_not(spark):
    table = pa.table({"ts": [1, 1, 1, 5], "n": [2, 1, 3, 1], "type": ["A", "B", "B", "A"], "id": [1] * 4})
    df = spark.createDataFrame(table).repartition(3)
    text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.ts AS first, b.type AS what"
    assert cepheid.match(df, text).count() == 0  # events of one instant are concurrent, whatever order they come in
    assert cepheid.match(df, text, tiebreak="n").collect() == [(1, 1, 1, "B")]
    with pytest.raises(cepheid.DataError, match=r"tiebreak='row' is the order of rows.*name a column"):
        cepheid.match(df, text, tiebreak="row")


def test_contiguity_sees_every_event(spark):
    table = skewed(500)
    text = "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [id] AND a.x > 10 } WITHIN 400"
    result = cepheid.match(spark.createDataFrame(table), text)
    assert rows(result.toArrow()) == rows(cepheid.match(table, text))
    assert result.count() > 0


@pytest.mark.slow
@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.slow), "America/New_York"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_texts_are_times_of_the_session_zone(spark, zone, kind):
    # A quarter of an hour apart, across the night in which New York's clocks go back
    begin = dt.datetime(2025, 11, 2, 4, 0, tzinfo=dt.UTC)
    times = [begin + dt.timedelta(minutes=15 * step) for step in range(24)]
    shown = [time.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for time in times]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "type": ["A", "B", "C"] * 8, "x": range(24)})
    low, high = ("05:30", "09:00") if zone == "UTC" else ("00:30", "04:00")
    conditions = f"a.ts >= '2025-11-02 {low}:00' AND b.ts < '2025-11-02 {high}:00'"
    first, last = (dt.datetime.fromisoformat(f"2025-11-02 {time}") for time in (low, high))
    clock = shown if kind == "timestamp_ntz" else times
    expected = [
        (a, b)
        for a, b in product(range(0, 24, 3), range(1, 24, 3))
        if shown[a] >= first and shown[b] < last and dt.timedelta() < clock[b] - clock[a] < dt.timedelta(minutes=80)
    ]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = spark.createDataFrame(table).selectExpr(f"cast(ts AS {kind}) AS ts", "type", "x")
        for slices in (1, 3):
            got = cepheid.match(df, f"PATTERN SEQ(A a, B b) WHERE {conditions} WITHIN 80 minutes", slices=slices)
            assert sorted((row["a"]["x"], row["b"]["x"]) for row in got.toArrow().to_pylist()) == expected
        assert expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_functions_of_the_user_travel_along(spark):
    @cepheid.function
    def apart(x: float, y: float) -> float:
        return abs(x - y)

    table = skewed(200)
    text = "PATTERN SEQ(A a, B b) WHERE [id] AND apart(a.x, b.x) < 3 WITHIN 20 RETURN a.x, b.x AS y"
    result = cepheid.match(spark.createDataFrame(table), text)
    assert rows(result.toArrow()) == rows(cepheid.match(table, text))


def test_nested_columns_and_names_with_dots_pass_through(spark):
    df = spark.sql(
        "SELECT id AS ts, if(id % 2 = 0, 'A', 'B') AS type, array(id, id) AS l, map('k', id) AS m,"
        " named_struct('p', id) AS `n.s`, date '2025-01-01' AS d, cast(id AS decimal(9, 2)) AS dec FROM range(4)"
    )
    result = cepheid.match(df, "PATTERN SEQ(A a, B b) WHERE a.dec < 1.5 WITHIN 2")
    (row,) = result.collect()
    assert row["b"]["n.s"]["p"] == 1
    assert row["b"]["m"] == {"k": 1}
    assert row["a"]["l"] == [0, 0]


def test_an_empty_table_gives_an_empty_result(spark):
    df = spark.createDataFrame(skewed(10)).where("ts < 0")
    for text in (QUERY, "PATTERN SEQ(A a, B b) WITHIN 5"):
        result = cepheid.match(df, text)
        assert result.columns[:3] == ["match_start", "match_end", "a"]
        assert result.count() == 0


# --- errors ---------------------------------------------------------------------------------------------------------


def test_what_cannot_be_is_said_before_any_job(spark):
    df = spark.createDataFrame(skewed(10))
    with pytest.raises(cepheid.DataError, match="no column 'time' for the time"):
        cepheid.match(df, QUERY, time="time")
    with pytest.raises(cepheid.QueryError, match=r"no attribute 'prize'(.|\n)*\^"):
        cepheid.match(df, "PATTERN SEQ(A a, B b) WHERE a.prize > 3")
    with pytest.raises(cepheid.DataError, match="holds the event type and must be a string"):
        cepheid.match(df, QUERY, type="ts")
    with pytest.raises(cepheid.CepheidError, match="no option 'partition'; did you mean partitions"):
        cepheid.match(df, QUERY, partition=3)
    with pytest.raises(cepheid.CepheidError, match="hot_keys=3 is not 'auto' or a list of keys"):
        cepheid.match(df, QUERY, hot_keys=3)
    with pytest.raises(cepheid.DataError, match="column 'i' is interval"):
        cepheid.match(df.selectExpr("*", "make_interval(1) AS i"), QUERY)


def test_errors_in_the_data_reach_the_driver(spark):
    df = spark.createDataFrame(skewed(10)).selectExpr("if(ts = 3, NULL, ts) AS ts", "type", "id", "x")
    with pytest.raises(Exception, match="column 'ts' holds the time, but it is NULL in 1 of"):
        cepheid.match(df, "PATTERN SEQ(ANY(A, B, C) a) WITHIN 10").count()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["WHERE [id]", ""])
def test_totals_of_workers_add_up(spark, where):
    events = pa.table(
        {
            "ts": list(range(40)),
            "type": ["AB"[number % 3 == 2] for number in range(40)],
            "id": [number % 2 for number in range(40)],
            "x": [number * 7 % 11 for number in range(40)],
        }
    )
    by = "BY id" if where else ""
    text = f"""PATTERN SEQ(A+ a[], B b) {where} WITHIN 9
        SUMMARISE count(*) AS n, sum(a.x) AS v, avg(b.x) AS mean, min(a.x) AS low, max(b.x) AS high {by} EVERY 15"""
    expected = cepheid.match(events, text).to_pylist()
    found = [row.asDict() for row in cepheid.match(spark.createDataFrame(events), text).collect()]

    def key(row):
        return row["bucket"], row.get("id", 0)

    assert len(expected) > 2
    assert sorted(found, key=key) == sorted(expected, key=key)


@pytest.mark.slow
def test_totals_and_matches_in_one_call(spark):
    df = spark.createDataFrame(skewed(60))
    queries = {
        "rows": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5",
        "totals": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 SUMMARISE count(*) AS n, avg(a.x) AS mean BY id",
        "all": "PATTERN SEQ(A a, B b) WITHIN 5 SUMMARISE count(*) AS n",
    }
    found = cepheid.match(df, queries)
    assert found.columns == ["query", "match_start", "match_end", "rows", "totals", "all"]
    local = cepheid.match(skewed(60), queries)

    def told(rows):
        return sorted(str((row["query"], row["match_start"], row[row["query"]])) for row in rows)

    assert told(found.toArrow().to_pylist()) == told(local.to_pylist())


def test_too_many_digits_name_the_approximation(spark):
    # 2^100 - 1 matches in each of two partitions do fit; 2^126 - 1 in each of two do not fit together.
    text = "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 1000 SUMMARISE {}"

    def table(number):
        kinds = (["A"] * number + ["B"]) * 2
        return pa.table(
            {"ts": list(range(number + 1)) * 2, "type": kinds, "id": [1] * (number + 1) + [2] * (number + 1)}
        )

    found = cepheid.match(spark.createDataFrame(table(100)), text.format("count(*) AS n"))
    assert [int(row["n"]) for row in found.collect()] == [2 * (2**100 - 1)]
    with pytest.raises(Exception, match=r"n has more than 38 digits(.|\n)*approximate_count"):
        cepheid.match(spark.createDataFrame(table(126)), text.format("count(*) AS n")).collect()
    near = cepheid.match(spark.createDataFrame(table(126)), text.format("approximate_count(*) AS n")).collect()
    assert near[0]["n"] == pytest.approx(2.0**127)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 30",
        "PATTERN SEQ(A+ a[], B b) WITHIN 8",
        "PATTERN SEQ(A a, (B b | A? c, B d)) WITHIN 8",
    ],
)
def test_matches_are_counted_and_kept_compressed(spark, text):
    table = skewed(120)
    df = spark.createDataFrame(table)
    expected = cepheid.match(table, text)
    assert cepheid.match(df, text, output="count") == expected.num_rows
    found = cepheid.match(df, text, output="compressed")
    assert found.count == expected.num_rows
    assert rows(found.all().toArrow()) == rows(expected)
    assert set(rows(found.first(3).toArrow())) < set(rows(expected))
    assert found.first(3).count() == 3
    with pytest.raises(cepheid.CepheidError, match="one query at a time"):
        cepheid.match(df, {"one": text}, output="count")
    with pytest.raises(cepheid.EngineError, match="compares matches one by one"):
        cepheid.match(df, f"{text} OUTPUT NON-OVERLAP", output="compressed")
    assert cepheid.match(df, f"{text} OUTPUT NON-OVERLAP", output="count") > 0
