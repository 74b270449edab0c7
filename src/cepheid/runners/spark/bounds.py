"""`uncertainty` on Spark: when each event may have happened, as two more columns that Catalyst computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.table import times_of
from cepheid.errors import DataError
from cepheid.runners.options import Options
from cepheid.runners.spark.pushdown import Column
from cepheid.runners.spark.session import DataFrame, arrow_schema
from cepheid.runners.spark.slices import instant
from cepheid.runners.spark.spelling import quoted


@dataclass(frozen=True)
class Uncertain:
    """How far the times of events may be off, in steps of the time column."""

    lower: str  # the names of the columns with the bounds
    upper: str
    step: int  # in one instant
    by: str | None  # the column that the half-widths go by
    half: Mapping[str | None, int]  # the half-width of each of its values; None: of all others
    second: float = 1.0  # steps in what a column of half-widths counts

    @property
    def early(self) -> int:
        """How much further apart the lower bounds of two events can be than their times."""
        return max(self.half.values()) + self.step - 1


def with_spark_bounds(df: DataFrame, options: Options) -> tuple[DataFrame, Options, int | None]:
    """The events with the columns that `uncertainty` asks for, if it does, options that name them, and `early`."""
    schema = arrow_schema(df)
    if isinstance(options.uncertainty, str) and options.uncertainty in schema.names and df.isStreaming:
        hint = "add the columns of the bounds to the stream, and pass lower='...' and upper='...'"
        raise DataError("a stream cannot take uncertainty from a column", hint=hint)
    asked = uncertain(schema, options)
    if asked is None:
        return df, options, None
    from pyspark.sql import functions as F

    half: Column = F.lit(asked.half[None])
    for name, width in asked.half.items():
        if name is not None:
            half = F.when(F.col(quoted(asked.by or "")).cast("string") == F.lit(name), F.lit(width)).otherwise(half)
    if isinstance(options.uncertainty, str) and options.uncertainty in schema.names:
        half = _half_of_rows(df, options.uncertainty, asked)
    moved = instant(df, options.time) + F.lit(asked.step // 2)
    rounded = moved - F.pmod(moved, F.lit(asked.step))
    kind = df.schema[options.time].dataType.typeName()
    bounded = df.select(
        "*", as_time(rounded - half, kind).alias(asked.lower), as_time(rounded + half, kind).alias(asked.upper)
    )
    return bounded, replace(options, lower=asked.lower, upper=asked.upper, uncertainty=None), asked.early


def uncertain(schema: pa.Schema, options: Options) -> Uncertain | None:
    """What `uncertainty` means for events of a schema, or None if it was not passed.

    The rules are those for tables in memory: they are asked what becomes of one event of each type at time 0.
    """
    uncertainty = options.uncertainty
    if uncertainty is None:
        return None
    if isinstance(uncertainty, str) and uncertainty in schema.names:
        return _by_row(schema, options, uncertainty)
    from cepheid.engine.data.instants import by_value, with_bounds  # with kernels that others do not need

    by, widths = by_value(uncertainty, options.type) if isinstance(uncertainty, Mapping) else (None, {})
    names = [*map(str, widths), None]
    columns = {field.name: pa.nulls(len(names), field.type) for field in schema}
    if options.time in columns:
        columns[options.time] = pa.array(np.zeros(len(names), np.int64)).cast(_numbered(columns[options.time].type))
    if options.type in columns:
        columns[options.type] = pa.nulls(len(names), pa.string())
    if by in columns:
        columns[by] = pa.array(names, pa.string())
    bounded = with_bounds(
        pa.table(columns),
        uncertainty,
        time=options.time,
        type=options.type,
        time_unit=options.time_unit,
        unit=options.unit,
    )
    half = dict(zip(names, times_of(bounded.table, bounded.upper).tolist(), strict=True))
    return Uncertain(bounded.lower, bounded.upper, bounded.step, by, half)


def _by_row(schema: pa.Schema, options: Options, name: str) -> Uncertain:
    """The same for a column that says it of each event: asked of one that may be off by 1, and by nothing."""
    from cepheid.engine.data.instants import with_bounds

    columns = {field.name: pa.nulls(1, field.type) for field in schema}
    columns[options.time] = pa.array([0]).cast(_numbered(columns[options.time].type))
    if pa.types.is_duration(schema.field(name).type):
        columns[name] = pa.array([1], pa.duration("us"))
    elif pa.types.is_integer(schema.field(name).type) or pa.types.is_floating(schema.field(name).type):
        columns[name] = pa.array([1.0])
    roles: dict[str, Any] = {"time": options.time, "type": options.type, "time_unit": options.time_unit}
    bounded = with_bounds(pa.table(columns), name, **roles, unit=options.unit)
    exact = with_bounds(pa.table(columns), name, **roles)
    second = float(times_of(exact.table, exact.upper)[0])
    return Uncertain(bounded.lower, bounded.upper, bounded.step, None, {None: 0}, second)


def _half_of_rows(df: DataFrame, name: str, asked: Uncertain) -> Column:
    """The half-widths that a column holds, in steps, rounded up to whole instants; an error for one that is none."""
    from pyspark.sql import functions as F

    column = F.col(quoted(name))
    number = column
    if df.schema[name].dataType.typeName().startswith(("daytime", "interval day")):
        number = F.unix_micros(F.lit("1970-01-01 00:00:00 UTC").cast("timestamp") + column)
    told = F.concat(
        F.lit(f"column '{name}': "),
        F.coalesce(column.cast("string"), F.lit("NULL")),
        F.lit(" is not a valid uncertainty of the event's time; it should be 0 or more"),
    )
    steps = F.ceil(number.cast("double") * F.lit(asked.second) / F.lit(asked.step)) * F.lit(asked.step)
    return F.when(number >= 0, steps.cast("long")).otherwise(F.raise_error(told).cast("long"))


def _numbered(kind: pa.DataType) -> pa.DataType:
    """A type of the same meaning that whole numbers can be cast to."""
    return pa.timestamp("us") if pa.types.is_date(kind) else kind


def as_time(steps: Column, kind: str) -> Column:
    """Whole numbers as what the time column holds."""
    from pyspark.sql import functions as F

    if kind == "timestamp":
        return F.timestamp_micros(steps)
    if kind not in ("timestamp_ntz", "date"):
        return steps
    seconds = (steps.cast("decimal(20, 0)") / F.lit(1_000_000)).cast("decimal(18, 6)")
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz") + F.make_dt_interval(secs=seconds)
