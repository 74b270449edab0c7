"""A schema and a shorthand for the examples in docstrings and the documentation."""

from __future__ import annotations

from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema
from cepheid.plan.explain import operator_lines
from cepheid.plan.physical import Plan, basic_plan

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


def example(text: str) -> Plan:
    """The basic plan of a query over events with ts, type, id, x, y and s."""
    return basic_plan(bind(check(parse(text)), EXAMPLE_SCHEMA))


def show(plan: Plan, *operators: str) -> None:
    """Prints the lines of some operators."""
    print("\n".join(line for line in operator_lines(plan) if line.split()[0] in operators))
