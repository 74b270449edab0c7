"""Funnels: how many get how far through some steps, and how long each step takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.api import match
from cepheid.errors import CepheidError, DataError
from cepheid.runners.tables import as_local, is_spark, no_table

if TYPE_CHECKING:
    Steps = Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]]

COLUMNS = ("step", "count", "conversion", "from_previous", "median_time")


def funnel(
    events: object, steps: Steps, *, within: str | int, by: str | Sequence[str], time: str = "ts", type: str = "type"
) -> Any:
    """How many get how far: a row for each step, as a table of the kind that came.

    `steps` are event types in order; a list in place of a type stands for any of its types, and a mapping gives steps
    names. A visitor, told apart by the columns `by`, reaches a step if it follows the steps before it, in order, within
    `within` of the first one. Columns: `step`, `count` (visitors who reach it), `conversion` (their share of those who
    reach the first step), `from_previous` (of those who reach the step before), `median_time` (since the step before).
    Of several attempts of one visitor the one that gets furthest counts, and of these the first.

    >>> from cepheid import examples
    >>> steps = ["View", "Cart", "Ordered", "Paid"]
    >>> funnel(examples.orders(), steps, within="2 days", by="customer")[["step", "count"]]
          step  count
    0     View     80
    1     Cart     57
    2  Ordered     43
    3     Paid     32
    """
    named = _named(steps)
    keys = (by,) if isinstance(by, str) else tuple(by)
    _check(events, named, keys)
    variables = [f"step{number}" for number in range(1, len(named) + 1)]
    query = _query(list(named.values()), variables, keys, within)
    if is_spark(events):
        return _on_spark(match(events, query, time=time, type=type), list(named), variables, keys, time)
    local = as_local(events)
    if local is None:
        raise no_table(events)
    found = match(local.arrow, query, time=time, type=type)
    return local.back(_counted(found, list(named), variables, keys, time))


def _named(steps: object) -> dict[str, tuple[str, ...]]:
    """The steps by name, each with its types."""
    if isinstance(steps, str) or not isinstance(steps, Sequence | Mapping):
        raise CepheidError(f"steps={steps!r}: expected event types in order", hint="as in ['View', 'Cart', 'Paid']")
    pairs = steps.items() if isinstance(steps, Mapping) else [(_name(each), each) for each in steps]
    named = {name: (kinds,) if isinstance(kinds, str) else tuple(kinds) for name, kinds in pairs}
    if len(named) < 2 or len(named) < len(steps):
        raise CepheidError("a funnel has at least two steps with different names", hint="name them: {'first': 'View'}")
    for name, kinds in named.items():
        if not kinds or not all(isinstance(each, str) for each in kinds):
            raise CepheidError(f"step {name!r} names no event type", hint="a step is a type, or a list of types")
    return named


def _name(step: Any) -> str:
    return step if isinstance(step, str) else " or ".join(map(str, step))


def _check(events: object, named: Mapping[str, tuple[str, ...]], keys: tuple[str, ...]) -> None:
    if not keys:
        raise CepheidError("by= names no column", hint="by='customer', for example")
    if getattr(events, "isStreaming", False):
        raise DataError("a funnel counts a whole table, and a stream has no end", hint="use OUTPUT PARTIAL there")


def _query(steps: Sequence[tuple[str, ...]], variables: Sequence[str], keys: Sequence[str], within: str | int) -> str:
    def component(kinds: tuple[str, ...], variable: str) -> str:
        quoted = ", ".join("`" + kind.replace("`", "``") + "`" for kind in kinds)
        return f"ANY({quoted}) {variable}" if len(kinds) > 1 else f"{quoted} {variable}"

    pattern = ", ".join(map(component, steps, variables))
    tests = ", ".join(f"`{key}`" for key in keys)
    return f"PATTERN SEQ({pattern}) WHERE skip_till_next_match {{ [{tests}] }} WITHIN {within} OUTPUT PARTIAL"


def _counted(found: pa.Table, names: list[str], variables: list[str], keys: tuple[str, ...], time: str) -> pa.Table:
    """The rows of the funnel, from the attempts of all visitors."""
    depth = np.sum([np.asarray(found.column(each).is_valid()) for each in variables], axis=0)
    first = found.column(variables[0])
    who = {f"key{number}": pc.struct_field(first, key) for number, key in enumerate(keys)}
    attempts = pa.table({**who, "depth": depth, "start": found.column("match_start"), "row": np.arange(len(found))})
    attempts = attempts.sort_by([("depth", "descending"), ("start", "ascending"), ("row", "ascending")])
    best = attempts.group_by(list(who), use_threads=False).aggregate([("row", "first"), ("depth", "first")])
    rows, reached = np.asarray(best.column("row_first"), np.int64), np.asarray(best.column("depth_first"), np.int64)
    counts = [int((reached >= number).sum()) for number in range(1, len(names) + 1)]
    times = [pc.struct_field(found.column(each), time) for each in variables]
    medians: list[Any] = [None]
    for number in range(1, len(names)):
        some = pa.array(rows[reached > number])
        passed = pc.subtract(times[number].take(some), times[number - 1].take(some))
        medians.append(_median(passed))
    return pa.table(
        {
            "step": names,
            "count": counts,
            "conversion": _shares(counts, [counts[0]] * len(counts)),
            "from_previous": _shares(counts, [counts[0], *counts[:-1]]),
            "median_time": pa.array(medians, _kind(times[0].type)),
        }
    )


def _shares(parts: Sequence[int], wholes: Sequence[int]) -> pa.Array:
    return pa.array([part / whole if whole else None for part, whole in zip(parts, wholes, strict=True)], pa.float64())


def _kind(time: pa.DataType) -> pa.DataType:
    """The type of a difference of two times."""
    return pa.duration(time.unit) if pa.types.is_timestamp(time) else pa.float64()


def _median(passed: pa.ChunkedArray) -> Any:
    if not len(passed):
        return None
    middle = float(np.median(np.asarray(passed.combine_chunks().cast(pa.int64()))))
    if not pa.types.is_duration(passed.type):
        return middle
    return pa.scalar(round(middle), pa.int64()).cast(passed.type)


def _on_spark(found: Any, names: list[str], variables: list[str], keys: tuple[str, ...], time: str) -> Any:
    """The same on Spark, as a DataFrame with a row for each step."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    depth = sum((F.col(each).isNotNull().cast("int") for each in variables), F.lit(0))
    who = [F.col(f"{variables[0]}.`{key}`").alias(f"key{number}") for number, key in enumerate(keys)]
    times = [F.col(f"{each}.`{time}`").alias(f"at{number}") for number, each in enumerate(variables)]
    attempts = found.select(*who, depth.alias("depth"), F.col("match_start").alias("start"), *times)
    order = Window.partitionBy(*[f"key{number}" for number in range(len(keys))]).orderBy(F.desc("depth"), "start")
    best = attempts.withColumn("number", F.row_number().over(order)).filter("number = 1")
    timed = str(found.schema["match_start"].dataType.typeName()).startswith("timestamp")

    def passed(number: int) -> Any:
        ends = [F.col(f"at{each}") for each in (number, number - 1)]
        if timed:
            ends = [F.unix_micros(each.cast("timestamp")) for each in ends]
        return ends[0] - ends[1]

    counted = [
        F.sum(F.when(F.col("depth") > number, 1).otherwise(0)).alias(f"n{number}") for number in range(len(names))
    ]
    medians = [F.median(F.when(F.col("depth") > number, passed(number))) for number in range(1, len(names))]
    summary = best.agg(*counted, *(each.alias(f"m{number}") for number, each in enumerate(medians, start=1)))
    rows = []
    for number, name in enumerate(names):
        before = F.col(f"n{max(number - 1, 0)}")
        median = F.lit(None).cast("double") if number == 0 else F.col(f"m{number}")
        if timed:
            median = F.expr(f"make_dt_interval(0, 0, 0, {'NULL' if number == 0 else f'm{number} / 1000000'})")
        rows.append(
            F.struct(
                F.lit(name).alias("step"),
                F.coalesce(F.col(f"n{number}"), F.lit(0)).alias("count"),
                F.try_divide(F.col(f"n{number}"), F.col("n0")).alias("conversion"),
                F.try_divide(F.col(f"n{number}"), before).alias("from_previous"),
                median.alias("median_time"),
            )
        )
    return summary.select(F.inline(F.array(*rows)))
