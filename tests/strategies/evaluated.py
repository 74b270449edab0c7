"""One expression over every row of a table, by each evaluator that the languages have, and by Spark SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

import cepheid
from cepheid.engine.reference.values import Evaluator
from cepheid.engine.values.plain import value_column
from cepheid.flink import Pattern
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.check import check
from cepheid.language.library.dates import DAY
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema
from cepheid.language.syntax import Expression
from cepheid.language.typing import type_of
from cepheid.runners.spark.pushdown import exact_column
from rows.row_cases import by_the_book, by_the_engine
from strategies.values import Drawn

_MANY = 25  # expressions of one query
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def by_query_text(drawn: Sequence[Drawn], table: pa.Table) -> list[list[Any]]:
    """RETURN of a filter query."""
    found: list[list[Any]] = []
    for start in range(0, len(drawn), _MANY):
        part = drawn[start : start + _MANY]
        returned = ", ".join(f"{each.over('a')} AS x{place}" for place, each in enumerate(part))
        result = cepheid.match(table, f"PATTERN SEQ(* a) RETURN a.id AS id, {returned}", type=None).sort_by("id")
        found += [listed(result.column(f"x{place}")) for place in range(len(part))]
    return found


def by_evaluator(drawn: Sequence[Drawn], table: pa.Table) -> list[list[Any]]:
    """The reference of query text."""
    schema = Schema.from_arrow(table.schema, type=None)
    columns = {name: value_column(table.column(name)).to_pylist() for name in table.column_names}
    rows = [{name: values[row] for name, values in columns.items()} for row in range(table.num_rows)]
    judge = Evaluator(frozenset(), schema)
    found = []
    for each in drawn:
        _, expression = _bound(each, schema)
        kind = type_of(expression, schema)
        found.append([_time(judge.value(expression, {"a": [row]}, {}), kind) for row in rows])
    return found


def _time(value: Any, kind: DataType) -> Any:
    """Microseconds as a date or a time; None outside of the years that Python has."""
    if value is None or kind not in (DataType.TIME, DataType.DATE):
        return value
    try:
        at = _EPOCH + dt.timedelta(microseconds=value)
    except OverflowError:
        return None
    return at.date() if kind is DataType.DATE else at


def listed(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column."""
    if pa.types.is_timestamp(column.type):
        return [_time(value, DataType.TIME) for value in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(column.type):
        days = column.cast(pa.int32()).to_pylist()
        return [_time(None if day is None else day * DAY, DataType.DATE) for day in days]
    found: list[Any] = column.to_pylist()
    return found


def by_clause(drawn: Sequence[Drawn], table: pa.Table, *, book: bool = False) -> list[list[Any]]:
    """MEASURES of a row pattern, by the engine or by the reference."""
    found: list[list[Any]] = []
    for start in range(0, len(drawn), _MANY):
        part = drawn[start : start + _MANY]
        measures = ", ".join(f"{each.over('A')} AS x{place}" for place, each in enumerate(part))
        clause = f"ORDER BY id MEASURES {measures} PATTERN (A) DEFINE A AS TRUE"
        rows = (by_the_book if book else by_the_engine)(clause, table, "spark")
        found += [[row[place] for row in rows] for place in range(len(part))]
    return found


def by_flink(drawn: Sequence[Drawn], table: pa.Table) -> list[list[bool]]:
    """For which rows a Flink pattern finds that a condition holds; of other values, that they are known."""
    found = []
    for each in drawn:
        test = each.text.replace("@", "")
        pattern = Pattern.begin("a").where(test if each.kind == "b" else f"({test}) IS NOT NULL")
        ids = {row["a"]["id"] for row in cepheid.match(table, pattern, type=None).select(["a"]).to_pylist()}
        found.append([row in ids for row in table.column("id").to_pylist()])
    return found


EVALUATORS: dict[str, Callable[[Sequence[Drawn], pa.Table], list[list[Any]]]] = {
    "query text": by_query_text,
    "its reference": by_evaluator,
    "clause": by_clause,
    "its reference in turn": partial(by_clause, book=True),
    "Flink condition": by_flink,
}


def by_spark(spark: Any, drawn: Sequence[Drawn], table: pa.Table) -> tuple[list[list[Any]], list[list[Any] | None]]:
    """Spark SQL in ANSI mode, NULL where that raises, and what is pushed down to Spark: all in one query."""
    from pyspark.sql import functions as F

    _register_try_eval(spark)
    events = spark.createDataFrame(table).coalesce(1)
    types = {field.name: field.dataType for field in events.schema.fields}
    schema = Schema.from_arrow(table.schema, type=None)
    columns = [F.expr(each.spark).alias(f"x{place}") for place, each in enumerate(drawn)]
    kinds: dict[int, DataType] = {}
    for place, each in enumerate(drawn):
        bound, expression = _bound(each, schema)
        column = exact_column(expression, bound, types)
        if column is not None:
            kinds[place] = type_of(expression, schema)
            columns.append(column.alias(f"p{place}"))
    result = events.select("id", *columns).toArrow().sort_by("id")
    pushed = [
        [_time(value, kinds[place]) for value in result.column(f"p{place}").to_pylist()] if place in kinds else None
        for place in range(len(drawn))
    ]
    return [listed(result.column(f"x{place}")) for place in range(len(drawn))], pushed


def _bound(each: Drawn, schema: Schema) -> tuple[BoundQuery, Expression]:
    text = f"PATTERN SEQ(* a) RETURN {each.over('a')} AS x"
    bound = bind(check(parse(text), text), schema, {}, text)
    assert bound.returns is not None
    return bound, bound.returns[0][1]


def _register_try_eval(spark: Any) -> None:
    """A function of SQL that is NULL where its argument raises: Catalyst's TryEval, which has no name of its own."""
    from pyspark.java_gateway import ensure_callback_server_started

    jvm = spark._jvm

    class Builder:
        def apply(self, children: Any) -> Any:
            return jvm.org.apache.spark.sql.catalyst.expressions.TryEval(children.head())

        class Java:
            implements = ("scala.Function1",)

    ensure_callback_server_started(spark.sparkContext._gateway)
    registry = spark._jsparkSession.sessionState().functionRegistry()
    registry.createOrReplaceTempFunction("try_eval", Builder(), "built-in")


def same(one: Any, other: Any, rounded: bool = False) -> bool:
    """Are two values the same?"""
    if one is None or other is None:
        return one is other
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dt.datetime) and isinstance(other, dt.datetime):
        return (
            one.astimezone(dt.UTC) == other.astimezone(dt.UTC)
            if one.tzinfo and other.tzinfo
            else (one.replace(tzinfo=None) == other.replace(tzinfo=None))
        )
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (rounded and abs(one - other) <= 1e-9 * max(abs(one), abs(other)))
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one == other and one.as_tuple().exponent == other.as_tuple().exponent
    return type(one) is type(other) and bool(one == other)
