"""Funnels on Spark count as those in memory do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from cepheid import examples, funnel

STEPS = ["View", "Cart", "Ordered", "Paid", "Shipped"]


def test_the_same_as_in_memory(spark: Any) -> None:
    orders = examples.orders()
    local = funnel(orders, STEPS, within="2 days", by="customer")
    found = funnel(spark.createDataFrame(orders), STEPS, within="2 days", by="customer").collect()
    assert [(row["step"], row["count"]) for row in found] == list(zip(local["step"], local["count"], strict=True))
    assert [round(row["conversion"], 9) for row in found] == [round(each, 9) for each in local["conversion"]]
    assert found[0]["median_time"] is None
    for row, median in zip(found[1:], local["median_time"][1:], strict=True):
        assert abs(row["median_time"] - median.to_pytimedelta()) < timedelta(milliseconds=1)
