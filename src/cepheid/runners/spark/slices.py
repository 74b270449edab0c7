"""Slices of time that run side by side: for queries that no key parts, and for keys that hold more than their share.

The slice (after, until] finds the matches that complete in it and gets every event within their reach, so that each
match comes out of exactly one slice (docs/design.md). Events near an edge are copied into both slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow.compute as pc

from cepheid.language.free_names import free_name
from cepheid.plan.physical import Plan
from cepheid.runners.pieces import Piece
from cepheid.runners.spark.pushdown import Column
from cepheid.runners.spark.session import DataFrame, parallelism
from cepheid.runners.spark.spelling import quoted

WHOLE = -1  # the slice of keys that are not cut
MOST = 256  # slices; each is a term in an expression that Spark evaluates per event
DAY = 86_400_000_000  # microseconds
FINE = 10_000  # how exactly Spark finds the times between slices: one part in this many


@dataclass(frozen=True)
class Slices:
    """How time is cut: slice i is (cuts[i - 1], cuts[i]], the first and the last one being open."""

    cuts: tuple[int, ...]
    width: int = 0  # of the widest interval, for imprecise times
    hot: tuple[tuple[object, ...], ...] | None = None  # the keys that are cut; None: everything
    column: str = ""  # the name of the column that holds the slice of an event

    def interval(self, number: int) -> tuple[int | None, int | None]:
        """After which and until which completion instant a slice finds matches."""
        if number == WHOLE:
            return None, None
        after = self.cuts[number - 1] if number > 0 else None
        return after, self.cuts[number] if number < len(self.cuts) else None

    def parts(self, piece: Piece) -> Iterator[Piece]:
        """The events of each slice in a piece; a piece that was cut in memory holds one slice only."""
        numbers = piece.events.column(self.column)
        events = piece.events.drop_columns([self.column])
        for number in sorted(pc.unique(numbers).to_pylist()):
            after, until = self.interval(number)
            # Inside a slice that was cut again, both intervals hold.
            after = max((edge for edge in (after, piece.after) if edge is not None), default=None)
            until = min((edge for edge in (until, piece.until) if edge is not None), default=None)
            yield replace(piece, events=events.filter(pc.equal(numbers, number)), after=after, until=until)


def plan_slices(events: DataFrame, plans: Sequence[Plan]) -> Slices | None:
    """Where to cut time, or None if the query's events stay in one piece per key.

    It looks at the data once: slices of equal numbers of events need to know when these happened.
    """
    exchange = plans[0].exchange
    keys = exchange.keys
    hot = _hot_keys(events, keys, exchange.hot_keys) if keys else None
    if (keys and not hot) or not all(plan.exchange.sliceable for plan in plans):
        return None
    number = min(exchange.slices or parallelism(events.sparkSession), MOST)
    if number < 2:
        return None
    if hot:
        events = events.where(is_hot(keys, hot))
    slices = _cut(events, plans, number)
    return None if slices is None else replace(slices, hot=hot, column=free_name("__slice", events.columns))


def _reach(plans: Sequence[Plan]) -> int:
    return max(plan.exchange.retention.reach or 0 for plan in plans)


def _cut(events: DataFrame, plans: Sequence[Plan], number: int) -> Slices | None:
    from pyspark.sql import functions as F

    schema = plans[0].bound.schema
    begin = instant(events, schema.lower or schema.time)
    end = instant(events, schema.upper) if schema.upper is not None else begin
    steps = [step / number for step in range(1, number)]
    looked = events.select(
        F.min(begin).alias("first"),
        F.max(begin).alias("last"),
        F.max(end - begin).alias("width"),
        F.percentile_approx(begin, steps, FINE).alias("cuts"),
    ).first()
    if looked is None or looked["first"] is None:
        return None
    back = _reach(plans) + looked["width"]
    # A slice shorter than the reach would hold more copies than events of its own.
    room = max(1, (looked["last"] - looked["first"]) // max(1, back))
    cuts = sorted(set(looked["cuts"]))
    if room < number:
        cuts = sorted({cuts[index] for index in np.linspace(0, len(cuts) - 1, room + 1)[1:-1].astype(int)})
    return Slices(tuple(cuts), looked["width"]) if cuts else None


def spread_slices(events: DataFrame, plans: Sequence[Plan], slices: Slices) -> DataFrame:
    """Each event in every slice within whose reach it lies; events of keys that are not cut in one piece."""
    from pyspark.sql import functions as F

    schema, keys, partitions = plans[0].bound.schema, plans[0].exchange.keys, plans[0].exchange.partitions
    begin = instant(events, schema.lower or schema.time)
    end = (instant(events, schema.upper) if schema.upper is not None else begin) + (_reach(plans) + slices.width)
    numbers = F.sequence(_slice_of(begin, slices.cuts), _slice_of(end, slices.cuts))
    if slices.hot is None:
        spread = events.select("*", F.explode(numbers).alias(slices.column))
        return spread.repartitionById(partitions or len(slices.cuts) + 1, slices.column)
    numbers = F.when(is_hot(keys, slices.hot), numbers).otherwise(F.array(F.lit(WHOLE)))
    spread = events.select("*", F.explode(numbers).alias(slices.column))
    columns = [quoted(name) for name in keys] + [slices.column]
    return spread.repartition(*columns) if partitions is None else spread.repartition(partitions, *columns)


def instant(events: DataFrame, name: str) -> Column:
    """A time column as the engine's whole numbers: microseconds where it is a timestamp or a date."""
    from pyspark.sql import functions as F

    column, kind = F.col(quoted(name)), events.schema[name].dataType.typeName()
    if kind == "timestamp":
        return F.unix_micros(column)
    if kind == "date":
        return F.unix_date(column) * F.lit(DAY)
    if kind != "timestamp_ntz":
        return column.cast("bigint")
    # A timestamp without zone is a wall clock. Turning it into an instant would bring in the session's zone.
    since = column - F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    units = (("DAY", DAY), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000))
    parts = [(F.extract(F.lit(unit), since).cast("decimal(20, 6)") * micros).cast("bigint") for unit, micros in units]
    return reduce(lambda left, right: left + right, parts)


def _slice_of(time: Column, cuts: Sequence[int]) -> Column:
    from pyspark.sql import functions as F

    return reduce(lambda left, right: left + right, [(time > F.lit(cut)).cast("int") for cut in cuts])


def is_hot(keys: Sequence[str], hot: Sequence[tuple[object, ...]]) -> Column:
    """True for events of some keys."""
    from pyspark.sql import functions as F

    if len(keys) == 1:
        return F.col(quoted(keys[0])).isin(*[value for (value,) in hot])
    columns = [F.col(quoted(name)) for name in keys]
    tests = [reduce(lambda a, b: a & b, [c == v for c, v in zip(columns, key, strict=True)]) for key in hot]
    return reduce(lambda left, right: left | right, tests)


def _hot_keys(events: DataFrame, keys: Sequence[str], hot_keys: Any) -> tuple[tuple[object, ...], ...]:
    """The keys to cut: those given, or with "auto" those that hold more than one task's share of the events."""
    from pyspark.sql import functions as F

    if hot_keys is None:
        return ()
    if hot_keys != "auto":
        return tuple(key if isinstance(key, tuple) else (key,) for key in hot_keys)
    from pyspark.sql import Observation

    seen = Observation()
    count = free_name("__events", events.columns)
    counted = events.groupBy(*[quoted(name) for name in keys]).agg(F.count("*").alias(count))
    tasks = parallelism(events.sparkSession)
    most = counted.observe(seen, F.sum(count).alias("total")).orderBy(F.desc(count)).limit(MOST).collect()
    share = (seen.get["total"] or 0) / tasks if tasks > 1 else float("inf")
    return tuple(tuple(row[name] for name in keys) for row in most if row[count] > share)
