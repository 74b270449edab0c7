"""Missing events and imprecise times on Spark: batch, slices of time, and streams."""

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from spark.test_stream import cut, reading, run

MODEL = cepheid.Model(
    loss=0.1, gaps={"b": cepheid.Exponential(mean=20, happens=0.9), "c": cepheid.Exponential(mean=30)}
)
MISSING = "PATTERN SEQ(A a, !(B b), C c) WHERE [id] WITHIN 60 THRESHOLD 0.3"
UNTYPED_KEY = "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN 40 THRESHOLD 0.02"
IMPRECISE = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 12 CONFIDENCE 0.2"
IMPRECISE_KEYLESS = "PATTERN SEQ(A a, B b) WHERE a.x = b.x AND a.x > 30 WITHIN 12"


def events(n=240, seed=0) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = np.arange(n)
    return pa.table(
        {
            "ts": times,
            "type": rng.choice(["A", "B", "C"], n),
            "id": rng.integers(0, 12, n),
            "x": rng.integers(0, 50, n),
            "upper": times + rng.integers(0, 4, n),
        }
    )


def rows(table: pa.Table) -> list[str]:
    """Rows as text; probabilities that differ in the last digits are the same."""
    found = []
    for row in table.to_pylist():
        found.append(str({name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()}))
    return sorted(found)


CASES = [
    (MISSING, {"model": MODEL}, {}),
    (UNTYPED_KEY, {"model": MODEL}, {"slices": 3}),
    (IMPRECISE, {"lower": "ts", "upper": "upper"}, {}),
    (IMPRECISE_KEYLESS, {"lower": "ts", "upper": "upper"}, {"slices": 3}),
]


@pytest.mark.parametrize(("text", "options", "ways"), CASES)
def test_batches(spark, text, options, ways):
    table = events()
    local = cepheid.match(table, text, **options)
    assert local.num_rows > 0
    found = cepheid.match(spark.createDataFrame(table), text, **options, **ways)
    assert found.columns == local.column_names
    assert rows(found.toArrow()) == rows(local)


@pytest.mark.parametrize(("text", "options"), [CASES[0][:2], CASES[2][:2]])
def test_streams(spark, tmp_path, text, options):
    table = events()
    cut(tmp_path / "in", table, 3, delay=6)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(df, text, delay=6, shards=3, **options), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert rows(found) == rows(cepheid.match(table, text, **options))
