"""The planner on Spark: what depends on the events is decided where they are, and explain says how."""

import logging
import sys
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import cepheid
from cepheid.runners.options import BatchOptions, Options
from cepheid.runners.spark.batch import relevant_events, spread, spread_as_asked, worker
from cepheid.runners.spark.match import spark_plan
from cepheid.runners.spark.session import arrow_schema
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.state import StreamStep
from cepheid.simulate.correlated import correlated_stocks, correlation_query
from spark.test_stream_state import Memory

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not know this module
EVENTS = correlated_stocks(12_000, rare_frequency=0.02, seed=3).events
QUERY = correlation_query(order="cba")  # the rare one first: backwards, from a, is the worst order


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def logged(work):
    """A worker's function that gives back what it logs instead of matches."""

    def lines(batches):
        kept, log = Lines(), logging.getLogger("cepheid.engine")
        log.addHandler(kept)
        log.setLevel(logging.INFO)
        for _ in work(batches):
            pass
        log.removeHandler(kept)
        yield pa.RecordBatch.from_pydict({"line": pa.array(kept.lines, pa.string())})

    return lines


def test_every_task_decides_by_its_own_events(spark):
    df = spark.createDataFrame(EVENTS)
    plan = spread_as_asked(spark_plan_of(df), BatchOptions(slices=2))
    assert plan.engine == "auto"
    worker_plan = ship(plan, arrow_schema(df))
    events, slices = spread(relevant_events(df, [plan], ()), [plan])
    work = worker([worker_plan], worker_plan.schema, (), slices, 10**9, tuple(events.columns))
    lines = [row["line"] for row in events.mapInArrow(logged(work), "line string").collect()]
    assert len(lines) == 2
    for line in lines:
        assert "engine runs, since" in line


def spark_plan_of(df):
    return spark_plan(cepheid.query(QUERY), arrow_schema(df), Options())


@pytest.mark.slow
def test_a_step_of_a_stream_decides_by_the_events_that_it_holds(caplog):
    caplog.set_level(logging.INFO, "cepheid.engine")
    table = EVENTS.slice(0, 6000)
    plan = spark_plan(cepheid.query(QUERY), table.schema, Options())
    step = replace(StreamStep((ship(plan, table.schema),), (0,), 0), plans=(plan,))
    clock, store, found = Clock(), Memory(), 0
    for start, size in ((0, 5000), (5000, 1000)):
        outcome = step.run(clock, store, [table.slice(start, size)], start + size)
        clock, found = outcome.clock, found + outcome.matches
    first, second = (record.getMessage() for record in caplog.records)
    assert "engine runs, since" in first
    assert "engine sequence" in second  # few events: every order is fast
    assert found == cepheid.match(table, QUERY).num_rows


@pytest.mark.slow
def test_the_choice_changes_no_result(spark):
    df = spark.createDataFrame(EVENTS.slice(0, 6000))
    found = cepheid.match(df, QUERY, slices=2).select("match_start", "match_end").collect()
    local = cepheid.match(EVENTS.slice(0, 6000), QUERY, engine="lazy-chain", order="cba")
    assert sorted(map(tuple, found)) == sorted(
        zip(local["match_start"].to_pylist(), local["match_end"].to_pylist(), strict=True)
    )
    assert found


def test_explain_says_how_it_will_be_decided(spark):
    df = spark.createDataFrame(EVENTS.slice(0, 10))
    told = cepheid.query(QUERY).explain(df, slices=3)
    assert "match     engine decided from each partition's own statistics" in told
    assert "because     'sequence', 'runs', 'lazy-tree' or 'lazy-chain', whichever is cheapest" in told
    assert "by 3 slices of time" in told
    fixed = cepheid.query(QUERY).explain(df, engine="sequence")
    assert "match     sequence, by skip_till_any_match" in fixed
    assert "Kleene" in cepheid.query("PATTERN SEQ(Stock+ a[], Stock b) WITHIN 9").explain(df)


def test_explain_takes_the_options_of_streams(spark):
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS id")
    query = cepheid.query("PATTERN SEQ(A a, A b) WHERE [id] WITHIN 5 minutes")
    told = query.explain(stream, delay="1 minute", shards=4)
    assert "exchange  by key [id], 4 shards" in told
    assert "retain    events that some component can take, for 5 minutes" in told
    with pytest.raises(cepheid.CepheidError, match="partitions is an option of Spark batches"):
        query.explain(stream, partitions=4)


def test_what_has_no_use_is_an_error(spark):
    df = spark.createDataFrame(EVENTS.slice(0, 10))
    keyed = "PATTERN SEQ(Stock a, Stock b) WHERE [ticker] WITHIN 9"
    with pytest.raises(cepheid.DataError, match="hot_keys splits keys by time"):
        cepheid.match(df, QUERY, hot_keys="auto")
    with pytest.raises(cepheid.DataError, match=r"slices splits time.*events go by their key \[ticker\]"):
        cepheid.match(df, keyed, slices=4)
    with pytest.raises(cepheid.DataError, match="partitions needs a key or a window"):
        cepheid.match(df, "PATTERN SEQ(Stock a, Stock b)", partitions=4)
    with pytest.raises(cepheid.CepheidError, match="delay is an option of streams"):
        cepheid.match(df, keyed, delay=4)
    with pytest.raises(cepheid.CepheidError, match="partitions='4' is not a whole number"):
        cepheid.match(df, keyed, partitions="4")
    with pytest.raises(cepheid.CepheidError, match="scoring='bogus' is not 'exact', 'paper' or 'posterior'"):
        cepheid.match(df, keyed, scoring="bogus")
