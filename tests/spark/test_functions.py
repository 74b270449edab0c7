"""Functions of one event on Spark: what is pushed below the shuffle is what the engine computes, value by value."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.runners.spark import pushdown
from cepheid.runners.spark.pushdown import exact_column
from language.test_functions_agree import EVERY, filled
from spark.test_stream import FAR, put, reading, run
from strategies import functions as f

EVENTS = f.table(rows=140)
COLUMNS = (
    {"n": "a.i", "s": "a.s", "u": "a.u", "c": "a.flag"},
    {"n": "a.f", "s": "a.t", "u": "a.ts", "c": "a.i > a.j"},
)


def pushed(df, texts):
    """The texts that Spark can compute, each with its column."""
    types = {field.name: field.dataType for field in df.schema.fields}
    found = {}
    for text in texts:
        bound, expression = f.bound_value(text)
        column = exact_column(expression, bound, types)
        if column is not None:
            found[text] = column
    return found


def compare(spark, events, texts):
    """Spark against Arrow, in one pass over the events; which of the texts Spark computed."""
    df = spark.createDataFrame(events)
    columns = pushed(df, texts)
    chosen = [column.alias(f"v{number}") for number, column in enumerate(columns.values())]
    rows = df.coalesce(1).select(*chosen).collect()
    for number, text in enumerate(columns):
        expected = f.by_arrow(text, events)
        for row, (one, other) in enumerate(zip(expected, [each[number] for each in rows], strict=True)):
            assert f.alike(one, other), (text, events.slice(row, 1).to_pylist(), one, other)
    return set(columns)


def test_every_function_that_spark_computes(spark):
    texts = [filled(template, columns) for template in EVERY for columns in COLUMNS]
    done = compare(spark, EVENTS, texts)
    assert len(done) > len(texts) / 2
    assert {"a.s LIKE 'a%'", "a.s RLIKE '^a.b$'", "CAST(a.s AS double)", "hour(a.u)", "trim(a.t)"} <= done


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(f.expressions(), min_size=60, max_size=60), st.integers(0, 50))
def test_drawn_expressions(spark, texts, seed):
    compare(spark, f.table(seed, rows=40), texts)


test_drawn_expressions.cases_each = 30  # for verification/drawn_cases.py: Spark computes more than half of them


@pytest.mark.slow
def test_what_is_kept_before_the_shuffle_is_enough(spark):
    """Forms for ASCII keep all that has other letters; whatever the engine takes is kept."""
    df = spark.createDataFrame(EVENTS)
    types = {field.name: field.dataType for field in df.schema.fields}
    texts = ["lower(a.s) = 'abc'", "a.s ILIKE 'A%'", "upper(a.s) LIKE 'A%' AND a.i > 0", "NOT lower(a.t) = a.t"]
    bounds = [f.bound_value(text) for text in texts]
    columns = [pushdown.conditions([expression], bound, types) for bound, expression in bounds]
    assert all(len(each) == 1 for each in columns)
    kept = df.coalesce(1).select(*[each[0].alias(f"v{number}") for number, each in enumerate(columns)]).collect()
    for number, text in enumerate(texts):
        for row, holds in enumerate(f.by_arrow(text, EVENTS)):
            assert not holds or kept[row][number], (text, EVENTS.slice(row, 1).to_pylist())
        assert not all(each[number] for each in kept)


def shop(n: int = 400) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "ts": np.arange(n),
            "amount": rng.choice([3, 8, 50, 2000], n),
            "user": [{"id": int(each)} for each in rng.integers(0, 12, n)],
            "note": rng.choice(["Gift card", "gift", "rent", "fee 12"], n),
        }
    )


DEFINED = """PATTERN SEQ(small a, !(refund r), large b)
DEFINE small AS amount < 10 AND note ILIKE 'gift%', large AS amount > 1000, refund AS note RLIKE '[0-9]+$' OR amount = 8
WHERE [user.id] AND starts_with(lower(concat(a.note, b.note)), 'gift')
WITHIN 80 RETURN a.*, b.ts AS then, b.user.id AS id"""


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.slow
def test_definitions_and_structs_in_a_batch(spark):
    events = shop()
    df = spark.createDataFrame(events)
    found = cepheid.match(df, DEFINED, type=None)
    local = cepheid.match(events, DEFINED, type=None)
    assert local.num_rows > 3
    assert rows(found.toArrow().select(local.column_names)) == rows(local)
    told = cepheid.query(DEFINED).explain(df, type=None)
    assert "by key [user.id]" in told
    assert ">(amount, 1000)" in told.split("filter")[1]


@pytest.mark.slow
def test_definitions_and_structs_in_a_stream(spark, tmp_path):
    events = shop()
    for number in range(3):
        put(tmp_path / "in", number, events.slice(number * 150, 150))
    end = pa.table({"ts": [FAR], "amount": [0], "user": [{"id": 0}], "note": ["end"]}, events.schema)
    put(tmp_path / "in", 3, end)
    stream = reading(spark, tmp_path / "in", spark.createDataFrame(events).schema)
    run(cepheid.match(stream, DEFINED, type=None, delay=0), tmp_path)
    local = cepheid.match(events, DEFINED, type=None)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert rows(found.select(local.column_names)) == rows(local)
