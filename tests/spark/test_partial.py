"""OUTPUT PARTIAL on Spark gives what it gives on a table in memory."""

from __future__ import annotations

from typing import Any

import pytest

import cepheid

pytestmark = pytest.mark.spark

QUERY = "PATTERN SEQ(O a, P b, S c) WHERE skip_till_next_match { [id] } WITHIN 1 minute OUTPUT PARTIAL"


def test_a_table(spark: Any) -> None:
    kind = "element_at(array('O', 'P', 'S', 'X'), CAST(id * 7 DIV 4 % 4 AS INT) + 1) AS type"
    df = spark.sql(f"SELECT timestamp_seconds(id * 7) AS ts, {kind}, id % 3 AS id FROM range(120)")
    expected = cepheid.match(df.toPandas(), QUERY)
    found = cepheid.match(df, QUERY).toPandas()
    assert list(found.columns) == list(expected.columns)
    names = ["match_start", "timed_out", "waiting_for", "given_up"]
    assert sorted(map(str, found[names].values.tolist())) == sorted(map(str, expected[names].values.tolist()))
    assert found["timed_out"].nunique() == 2
