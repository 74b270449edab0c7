"""A schema and a shorthand for the examples in docstrings and the documentation."""

from __future__ import annotations

from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema
from cepheid.plan.logical import LogicalPlan, to_logical

EXAMPLE_SCHEMA = Schema(
    (
        ("ts", DataType.INT),
        ("type", DataType.STRING),
        ("id", DataType.INT),
        ("x", DataType.INT),
        ("y", DataType.INT),
        ("s", DataType.STRING),
    ),
    time="ts",
    type="type",
)


def example(text: str) -> LogicalPlan:
    """The basic logical plan of a query over events with ts, type, id, x, y and s."""
    return to_logical(bind(check(parse(text)), EXAMPLE_SCHEMA))
