"""A model fitted on Spark is the model fitted on the same table in memory."""

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import ModelError
from cepheid.simulate import retail_visits, route_visits
from cepheid.simulate.gaps import Gap

SHOPLIFTING = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN {window}"


def assert_same_model(found, expected):
    """Equal but for the order in which sums were added."""
    assert found.loss == expected.loss
    assert found.loss_intervals == expected.loss_intervals
    assert found.unit == expected.unit
    assert found.gaps.keys() == expected.gaps.keys()
    for name, gap in expected.gaps.items():
        times = gap.mean * np.linspace(0.0, 4.0, 41)
        assert type(found.gaps[name]) is type(gap)
        assert found.gaps[name].cdf(times) == pytest.approx(gap.cdf(times), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("timestamps", [False, True])
def test_a_store(spark, timestamps):
    to_exit = Gap("gamma", 2400.0, 2.0)
    history = retail_visits(8_000, loss=0.1, exit_clock="shelf", to_exit=to_exit, timestamps=timestamps, seed=1).events
    query = SHOPLIFTING.format(window="12 hours" if timestamps else 43_200)
    frame = spark.createDataFrame(history).repartition(3)
    assert_same_model(cepheid.fit(frame, query), cepheid.fit(history, query))


@pytest.mark.slow
def test_a_route_with_stated_losses(spark):
    route = route_visits(1_500, readers=4, seed=1)
    frame = spark.createDataFrame(route.events)
    options = {"loss": {"v3": 0.15}}
    assert_same_model(cepheid.fit(frame, route.query, **options), cepheid.fit(route.events, route.query, **options))


def test_without_a_key_all_events_are_one_story(spark):
    times = np.cumsum(np.random.default_rng(1).integers(1, 9, 400))
    history = pa.table({"ts": times, "type": np.tile(["A", "B", "A", "C"], 100)})
    query = "PATTERN SEQ(A a, B b, A c, C d) WITHIN 100"
    frame = spark.createDataFrame(history).repartition(2)
    assert_same_model(cepheid.fit(frame, query, loss=0.1), cepheid.fit(history, query, loss=0.1))


def test_an_empty_history(spark):
    frame = spark.createDataFrame([], "ts long, type string, tag_id long")
    with pytest.raises(ModelError, match="the history is empty"):
        cepheid.fit(frame, SHOPLIFTING.format(window=100))


def test_a_stream_is_no_history(spark):
    frame = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'Shelf' AS type", "value AS tag_id")
    with pytest.raises(ModelError, match="a stream has no end"):
        cepheid.fit(frame, SHOPLIFTING.format(window="12 hours"))
