"""`uncertainty` on Spark: when each event may have happened, as two more columns that Catalyst computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.engine.data.table import times_of
from cepheid.errors import DataError
from cepheid.runners.options import Options
from cepheid.runners.spark.pushdown import Column, quoted
from cepheid.runners.spark.session import DataFrame, arrow_schema
from cepheid.runners.spark.slices import instant


@dataclass(frozen=True)
class Uncertain:
    """How far the times of events may be off, in steps of the time column."""

    lower: str  # the names of the columns with the bounds
    upper: str
    step: int  # in one instant
    half: Mapping[str | None, int]  # the half-width of each event type; None: of all others

    @property
    def early(self) -> int:
        """How much further apart the lower bounds of two events can be than their times."""
        return max(self.half.values()) + self.step - 1


def with_spark_bounds(df: DataFrame, options: Options) -> tuple[DataFrame, Options, int | None]:
    """The events with the columns that `uncertainty` asks for, if it does, options that name them, and `early`."""
    schema = arrow_schema(df)
    if isinstance(options.uncertainty, str) and options.uncertainty in schema.names:
        hint = "add the columns of the bounds to the table, and pass lower='...' and upper='...'"
        raise DataError("on Spark, uncertainty is a length, or one for each event type, not a column", hint=hint)
    asked = uncertain(schema, options)
    if asked is None:
        return df, options, None
    from pyspark.sql import functions as F

    half: Column = F.lit(asked.half[None])
    for name, width in asked.half.items():
        if name is not None:
            half = F.when(F.col(quoted(options.type or "")) == F.lit(name), F.lit(width)).otherwise(half)
    moved = instant(df, options.time) + F.lit(asked.step // 2)
    rounded = moved - F.pmod(moved, F.lit(asked.step))
    kind = df.schema[options.time].dataType.typeName()
    bounded = df.select(
        "*", _as_time(rounded - half, kind).alias(asked.lower), _as_time(rounded + half, kind).alias(asked.upper)
    )
    return bounded, replace(options, lower=asked.lower, upper=asked.upper, uncertainty=None), asked.early


def uncertain(schema: pa.Schema, options: Options) -> Uncertain | None:
    """What `uncertainty` means for events of a schema, or None if it was not passed.

    The rules are those for tables in memory: they are asked what becomes of one event of each type at time 0.
    """
    uncertainty = options.uncertainty
    if uncertainty is None:
        return None
    from cepheid.engine.data.instants import with_bounds  # with kernels that others do not need

    names = [*uncertainty, None] if isinstance(uncertainty, Mapping) else [None]
    columns = {field.name: pa.nulls(len(names), field.type) for field in schema}
    if options.time in columns:
        columns[options.time] = pa.array(np.zeros(len(names), np.int64)).cast(_numbered(columns[options.time].type))
    if options.type in columns:
        columns[options.type] = pa.array(names, pa.string())
    bounded = with_bounds(
        pa.table(columns),
        uncertainty,
        time=options.time,
        type=options.type,
        time_unit=options.time_unit,
        unit=options.unit,
    )
    half = dict(zip(names, times_of(bounded.table, bounded.upper).tolist(), strict=True))
    return Uncertain(bounded.lower, bounded.upper, bounded.step, half)


def _numbered(kind: pa.DataType) -> pa.DataType:
    """A type of the same meaning that whole numbers can be cast to."""
    return pa.timestamp("us") if pa.types.is_date(kind) else kind


def _as_time(steps: Column, kind: str) -> Column:
    """Whole numbers as what the time column holds."""
    from pyspark.sql import functions as F

    if kind == "timestamp":
        return F.timestamp_micros(steps)
    if kind not in ("timestamp_ntz", "date"):
        return steps
    seconds = (steps.cast("decimal(20, 0)") / F.lit(1_000_000)).cast("decimal(18, 6)")
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz") + F.make_dt_interval(secs=seconds)
