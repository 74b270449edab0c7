"""Functions of one event on Spark: what is pushed below the shuffle is what the engine computes, value by value."""

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cepheid.runners.spark.pushdown import exact_column
from language.test_functions_agree import EVERY, filled
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
