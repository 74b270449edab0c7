"""Missing events and imprecise times on Spark: batch, slices of time, streams and SQL."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.language import syntax as s
from spark.packed import keyed_cases, keyless_cases, packed, plan_of
from spark.test_batch import check_plans_all_ways
from spark.test_stream import check_stream, cut, reading, run
from strategies.intervals import intervals
from strategies.models import models
from strategies.queries import streams

BY_KEY = [{"partitions": 1}, {"partitions": 2}, {"partitions": 7, "memory": 500}]
BY_TIME = [{"slices": 1}, {"slices": 3}, {"slices": 7, "partitions": 2, "memory": 500}]

# --- drawn ----------------------------------------------------------------------------------------------------------

SMALL = streams(min_size=2, max_size=8, ids=3)
IMPRECISE = intervals(min_size=2, max_size=5)
LOSSY = {"threshold": True, "output": False, "max_queries": 4, "of": SMALL}
# The reference enumerates possible worlds: ANY and strict contiguity look at all keys, and at too many worlds.
OF_ONE_KEY = {
    "wildcard": False,
    "strategy": (s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT, s.Strategy.PARTITION_CONTIGUITY),
}
UNSURE = {"output": False, "event_window": False, "max_components": 3, "max_queries": 4, "of": IMPRECISE} | OF_ONE_KEY


def lossy_plans(draw, cases):
    """Plans with a model for each query of drawn cases, and the events."""
    drawn, table = cases
    plans = []
    for query in drawn:
        model = draw(models(component.variable for component in query.components))
        plans.append(plan_of(query, table, model=model, options={"missing_last": draw(st.booleans())}))
    return plans, table


def unsure_plans(draw, cases):
    """Plans over events with bounds, some of which count in units of several steps."""
    drawn, table = cases
    plans = []
    for query in drawn:
        plan = plan_of(query, table)
        whole = plan.bound.window is None or plan.bound.window.length % 2 == 0
        options = {"unit": 2} if whole and draw(st.booleans()) else {"probabilities": "odds"}
        plans.append(plan_of(query, table, options=options))
    return plans, table


@pytest.mark.slow
@given(data=st.data())
@packed
def test_missing_events_in_batches(spark, data):
    check_plans_all_ways(spark, *lossy_plans(data.draw, data.draw(keyed_cases(**LOSSY))), BY_KEY)
    check_plans_all_ways(spark, *lossy_plans(data.draw, data.draw(keyless_cases(**without_output(LOSSY)))), BY_TIME)


@pytest.mark.slow
@given(data=st.data())
@packed
def test_imprecise_times_in_batches(spark, data):
    check_plans_all_ways(spark, *unsure_plans(data.draw, data.draw(keyed_cases(**UNSURE))), BY_KEY)
    check_plans_all_ways(spark, *unsure_plans(data.draw, data.draw(keyless_cases(**without_output(UNSURE)))), BY_TIME)


def without_output(features):
    """What queries without a key are drawn with: they set some features themselves."""
    return {name: value for name, value in features.items() if name not in ("output", "event_window")}


CUTS = st.lists(st.integers(0, 30), max_size=3)


@pytest.mark.slow
@given(data=st.data(), cuts=CUTS, delay=st.integers(0, 8))
@packed
def test_missing_events_in_streams(spark, tmp_path_factory, data, cuts, delay):
    plans, table = lossy_plans(data.draw, data.draw(keyed_cases(max_streams=3, **LOSSY)))
    check_stream(spark, tmp_path_factory.mktemp("stream"), named(plans), table, cuts, delay)


@pytest.mark.slow
@given(data=st.data(), cuts=CUTS, delay=st.integers(0, 8))
@packed
def test_imprecise_times_in_streams(spark, tmp_path_factory, data, cuts, delay):
    plans, table = unsure_plans(data.draw, data.draw(keyed_cases(max_streams=3, window=True, **UNSURE)))
    check_stream(spark, tmp_path_factory.mktemp("stream"), named(plans), table, cuts, delay)


def named(plans):
    return {f"q{number}": plan for number, plan in enumerate(plans)}


# --- drawn by hand, through `match` ---------------------------------------------------------------------------------

MODEL = cepheid.Model(
    loss=0.1, gaps={"b": cepheid.Exponential(mean=20, happens=0.9), "c": cepheid.Exponential(mean=30)}
)
MISSING = "PATTERN SEQ(A a, !(B b), C c) WHERE [id] WITHIN 60 THRESHOLD 0.3"
MISSING_KEYLESS = "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN 40 THRESHOLD 0.02"
# As AYAC prints it: what is hashed by id in a worker is not parted by it among workers, since a missing a frees b.
PRINTED = "PATTERN SEQ(A a, !(B b), C c) WHERE a.id[b.id] = b.id AND a.id[c.id] = c.id WITHIN 60 THRESHOLD 0.02"
BY_HOUR = dataclasses.replace(MODEL, loss=cepheid.ByHour({0: 0.1, 4: 0.4, 9: 0.2}))
BETWEEN = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 12 CONFIDENCE 0.2"
UNTRUE = "PATTERN SEQ(A a, !(B b), C c) WHERE skip_till_next_match { [id] } WITHIN 12 CONFIDENCE 0.2"
BETWEEN_KEYLESS = "PATTERN SEQ(A a, B b) WHERE a.x <= b.x AND a.x > 30 WITHIN 12"


def events(n=240, seed=0) -> pa.Table:
    """Half of the events have one key."""
    rng = np.random.default_rng(seed)
    times = np.arange(n)
    return pa.table(
        {
            "ts": times,
            "type": rng.choice(["A", "B", "C"], n),
            "id": np.where(rng.random(n) < 0.5, 3, rng.integers(0, 12, n)),
            "x": rng.integers(0, 50, n),
            "upper": times + rng.integers(0, 4, n),
            "chance": rng.choice([0.25, 0.5, 0.9, 1.0], n),
        }
    )


def rows(table: pa.Table) -> list[str]:
    """Rows as text; probabilities that differ in the last digits are the same."""
    found = []
    for row in table.to_pylist():
        found.append(str({name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()}))
    return sorted(found)


OFF = {"uncertainty": {"A": 2, "B": 3.5}}  # a half-width for each type; others are exact
CASES = [
    (MISSING, {"model": MODEL}, {"hot_keys": [3], "slices": 3}),
    (MISSING_KEYLESS, {"model": MODEL}, {"slices": 3}),
    (PRINTED, {"model": MODEL}, {"slices": 3}),
    (MISSING, {"model": BY_HOUR, "time_unit": "minutes"}, {"partitions": 3}),
    (BETWEEN, {"lower": "ts", "upper": "upper"}, {"hot_keys": "auto", "slices": 3}),
    (BETWEEN_KEYLESS, {"lower": "ts", "upper": "upper"}, {"slices": 3}),
    (BETWEEN, {"uncertainty": 2}, {"partitions": 7}),
    (BETWEEN, OFF, {"hot_keys": [3], "slices": 3}),
    (BETWEEN_KEYLESS, {**OFF, "unit": 3}, {"slices": 3}),
    (UNTRUE, {"existence": "chance"}, {"hot_keys": [3], "slices": 3}),
    (BETWEEN_KEYLESS, {"existence": "chance"}, {"slices": 3}),
    (BETWEEN, {"existence": "chance", **OFF}, {"partitions": 7}),
    (MISSING, {"existence": "chance", "model": MODEL}, {"partitions": 3}),
]


@pytest.mark.some(6)
@pytest.mark.parametrize(("text", "options", "ways"), CASES)
def test_batches(spark, text, options, ways):
    table = events()
    local = cepheid.match(table, text, **options)
    assert local.num_rows > 0
    found = cepheid.match(spark.createDataFrame(table), text, **options, **ways)
    assert found.columns == local.column_names
    assert rows(found.toArrow()) == rows(local)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "options"), [(BETWEEN, {**OFF, "unit": 3}), (UNTRUE, {"existence": "chance"})])
def test_streams_share_the_options_of_batches(spark, tmp_path, text, options):
    table = events()
    cut(tmp_path / "in", table, 3, delay=6)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(df, text, delay=6, shards=3, **options), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert rows(found) == rows(cepheid.match(table, text, **options))
    assert found.num_rows > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_bounds_of_every_kind_of_time(spark, kind):
    day = 86_400_000_000
    zone = "UTC" if kind == "timestamp" else None
    arrow = pa.date32() if kind == "date" else pa.timestamp("us", zone)
    times = pa.array(np.arange(-20, 20) * day, pa.timestamp("us", zone))
    table = pa.table({"ts": times.cast(arrow), "type": ["A", "B"] * 20, "x": range(40)})
    text = "PATTERN SEQ(A a, B b) WHERE b.x = a.x + 1 OR b.x = a.x - 1 WITHIN 6 days"
    options = {"uncertainty": {"B": "30 hours"}, "unit": "1 day"}
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        df = spark.createDataFrame(table.set_column(0, "ts", times.cast(pa.int64())))
        made = {"timestamp": "timestamp_micros(ts)", "date": f"date_from_unix_date(cast(ts / {day} AS int))"}
        shifted = f"TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(cast(ts / {day} AS int))"
        df = df.selectExpr(f"{made.get(kind, shifted)} AS ts", "type", "x")
        found = cepheid.match(df, text, **options, slices=2).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    local = cepheid.match(table, text, **options)
    assert local.num_rows > 0
    assert rows(found) == rows(local)


@pytest.mark.slow
def test_sql(spark):
    table = events()
    spark.createDataFrame(table).createOrReplaceTempView("unsure")
    cepheid.sql.register(spark)
    asked = "uncertainty => map('A', '2', 'B', '3.5'), unit => 3"
    found = spark.sql(f"SELECT * FROM match_table(TABLE(unsure), '{BETWEEN}', {asked})").toArrow()
    local = cepheid.match(table, BETWEEN, **OFF, unit=3)
    assert found.column_names == local.column_names
    assert rows(found) == rows(local)
    parted = f"match_events(TABLE(unsure) PARTITION BY id ORDER BY (ts), '{BETWEEN}', uncertainty => 2)"
    assert rows(spark.sql(f"SELECT * FROM {parted}").toArrow()) == rows(cepheid.match(table, BETWEEN, uncertainty=2))


def test_what_makes_no_sense_is_said_before_any_job(spark):
    df = spark.createDataFrame(events(10))
    with pytest.raises(cepheid.DataError, match="pass either uncertainty, or the columns"):
        cepheid.match(df, BETWEEN, uncertainty=2, lower="ts", upper="upper")
    with pytest.raises(cepheid.DataError, match="it is not known what one step"):
        cepheid.match(df, BETWEEN, uncertainty="2 s")
    with pytest.raises(cepheid.DataError, match="needs a column of types"):
        cepheid.match(df, "PATTERN SEQ(a, b) WHERE a.x < b.x AND a.x > 3 WITHIN 9", type=None, uncertainty={"A": 3})
    with pytest.raises(cepheid.DataError, match="makes a column 'ts_lower', but there is one"):
        cepheid.match(df.selectExpr("*", "ts AS ts_lower"), BETWEEN, uncertainty=2)
    with pytest.raises(cepheid.DataError, match="no column 'at' for the time"):
        cepheid.match(df, BETWEEN, uncertainty=2, time="at")


BOUNDED = pa.table(
    {
        "ts": [10, 20, 23, 40, 44],
        "type": ["A", "B", "A", "B", "B"],
        "id": [1, 1, 2, 2, 1],
        "reader": ["r1", "r2", "r1", None, "r2"],
        "sigma": [2.5, 0.0, 4.0, 1.0, 3.0],
    }
)


@pytest.mark.parametrize("uncertainty", ["sigma", {"reader": {"r1": 3, "r2": 6}}, {"A": 4}])
def test_how_far_times_may_be_off_by_row_by_sensor_and_by_type(spark, uncertainty):
    query = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 15 CONFIDENCE 0.01 RETURN a.ts AS first, b.ts AS second"
    expected = cepheid.match(BOUNDED, query, uncertainty=uncertainty)
    found = cepheid.match(spark.createDataFrame(BOUNDED), query, uncertainty=uncertainty).toArrow()
    assert expected.num_rows
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_a_wrong_half_width_is_named_on_spark(spark):
    wrong = BOUNDED.set_column(4, "sigma", pa.array([1.0, -7.0, 1.0, 1.0, 1.0]))
    with pytest.raises(Exception, match=r"column 'sigma': -7\.0 is not a valid uncertainty"):
        cepheid.match(spark.createDataFrame(wrong), "PATTERN A a", uncertainty="sigma").toArrow()
