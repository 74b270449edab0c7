"""Expressions over extreme values: query text = clause = Flink condition = both references = Spark SQL itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import cepheid
from strategies import evaluated
from strategies.known_values import KNOWN
from strategies.values import COLUMNS, Drawn, draw, table

EXTREMES = table()
# Without generated code: a hundred expressions over a hundred rows are compiled longer than they are computed.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture
def ansi(spark: Any) -> Iterator[Any]:
    """The session in UTC and in ANSI mode, and afterwards as it was."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def differences(spark: Any, drawn: Sequence[Drawn]) -> list[str]:
    """Where an evaluator does not say what Spark says: the expression and the first such row."""
    expected, pushed = evaluated.by_spark(spark, drawn, EXTREMES)
    found = [_difference("pushed down", each, *both) for each, *both in zip(drawn, pushed, expected, strict=True)]
    for name, by in evaluated.EVALUATORS.items():
        for each, values, wanted in zip(drawn, by(drawn, EXTREMES), expected, strict=True):
            if by is evaluated.by_flink:
                wanted = [value is True if each.kind == "b" else value is not None for value in wanted]
            found.append(_difference(name, each, values, wanted))
    return [each for each in found if each is not None]


def _difference(name: str, each: Drawn, values: Sequence[Any] | None, wanted: Sequence[Any]) -> str | None:
    if values is None:
        return None
    pairs = enumerate(zip(values, wanted, strict=True))
    row = next((row for row, (got, told) in pairs if not evaluated.same(got, told, each.rounded)), None)
    if row is None:
        return None
    read = {column: EXTREMES.column(column)[row].as_py() for column in COLUMNS if f"@{column}" in each.text}
    return f"{name}: {each.text} is {values[row]!r}, and Spark says {wanted[row]!r}, of {read}"


def test_a_hundred_expressions_and_the_known_ones(ansi: Any) -> None:
    assert differences(ansi, [*KNOWN, *(draw(seed) for seed in range(100))]) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 2100, 100))
def test_two_thousand_expressions(ansi: Any, first: int) -> None:
    assert differences(ansi, [draw(seed) for seed in range(first, first + 100)]) == []


@pytest.mark.slow
def test_the_known_ones_over_spark_tables(ansi: Any) -> None:
    """On Spark every language says what it says in memory."""
    events = ansi.createDataFrame(EXTREMES)
    returned = ", ".join(f"{each.over('A')} AS x{place}" for place, each in enumerate(KNOWN))
    text = f"PATTERN SEQ(* A) RETURN A.id AS id, {returned}"
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES A.id AS id, {returned} PATTERN (A) DEFINE A AS TRUE)"
    for query, options in ((text, {"type": None}), (clause, {})):
        here = cepheid.match(EXTREMES, query, **options).sort_by("id")
        there = cepheid.match(events, query, **options).toArrow().sort_by("id")
        for place, each in enumerate(KNOWN):
            pair = zip(*(evaluated.listed(result.column(f"x{place}")) for result in (here, there)), strict=True)
            assert all(evaluated.same(one, other) for one, other in pair), each.text
