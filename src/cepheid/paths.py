"""What comes next, and who comes back: counts over the events of each visitor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import CepheidError, DataError, closest
from cepheid.language.durations import length_in_steps
from cepheid.runners.readings import read_times
from cepheid.runners.tables import LocalTable, as_local, no_table

Int64s = npt.NDArray[np.int64]


def next_events(events: object, after: str, *, by: str | Sequence[str], time: str = "ts", type: str = "type") -> Any:
    """What comes next: how often an event of each type follows one of type `after`, by the same visitor.

    A row for each type that follows, the most frequent first, as a table of the kind that came: `next` (NULL: nothing
    more comes), `count`, `share` and `median_time` until it. Events of one time are taken in the order of their rows.

    >>> from cepheid import examples
    >>> next_events(examples.orders(), "Cart", by="customer")[["next", "count"]]
          next  count
    0  Ordered     43
    1     None     14
    """
    local = _local(events)
    table, who, when = _ordered(local.arrow, by, time, type)
    kinds = table.column(type)
    _only(table, after, type)
    here = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(kinds, after), False)))
    goes_on = np.zeros(len(here), bool)
    inside = here + 1 < len(who)
    goes_on[inside] = who[here[inside] + 1] == who[here[inside]]
    following = kinds.take(pa.array(here + 1, mask=~goes_on))
    passed = np.where(goes_on, when[np.minimum(here + 1, len(when) - 1)] - when[here], 0)
    rows = []
    for kind in pc.unique(following).to_pylist():
        some = np.asarray(following.is_null() if kind is None else pc.fill_null(pc.equal(following, kind), False))
        rows.append((kind, int(some.sum()), None if kind is None else round(float(np.median(passed[some])))))
    rows.sort(key=lambda row: (-row[1], row[0] is None, str(row[0])))
    counts = [count for _, count, _ in rows]
    result = {
        "next": pa.array([kind for kind, _, _ in rows], pa.string()),
        "count": pa.array(counts, pa.int64()),
        "share": pa.array([count / len(here) for count in counts], pa.float64()),
        "median_time": pa.array([median for _, _, median in rows], pa.int64()).cast(_length_type(local.arrow, time)),
    }
    return local.back(pa.table(result))


def retention(
    events: object,
    *,
    by: str | Sequence[str],
    every: str | int,
    periods: int = 8,
    of: str | None = None,
    time: str = "ts",
    type: str = "type",
) -> Any:
    """Who comes back: of the visitors whose first event is in one period, how many have events in each later one.

    A row for each period in which someone is seen first (`cohort`, its start) and each period after it, up to
    `periods`: `period` (0 is the cohort's own), `count` and `share`. `every` is the length of a period, such as
    "7 days"; periods begin with the first event of the table. `of` counts events of one type only. Periods that lie
    beyond the end of the table have no row.

    >>> from cepheid import examples
    >>> retention(examples.orders(), by="customer", every="1 day", periods=2).head(2)[["period", "count", "share"]]
       period  count  share
    0       0     25   1.00
    1       1      3   0.12
    """
    if isinstance(periods, bool) or not isinstance(periods, int) or periods < 1:
        raise CepheidError(f"periods={periods!r}", hint="give a whole number from 1 on")
    local = _local(events)
    arrow = local.arrow
    stamped = pa.types.is_temporal(_time_type(arrow, time))
    step = int(length_in_steps(every, "microseconds" if stamped else None, "every"))
    if step < 1:
        raise CepheidError(f"every={every!r} is too short", hint="give a length such as '7 days'")
    _, who, when = _ordered(arrow if of is None else _only(arrow, of, type), by, time, None)
    begin = int(when.min()) if len(when) else 0
    period = (when - begin) // step
    first = np.full(int(who.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, who, period)
    last = int(period.max(initial=-1))
    seen = np.unique(np.stack([who, period]), axis=1) if len(who) else np.empty((2, 0), np.int64)
    cohort = first[seen[0]]
    rows = []
    for each in np.unique(cohort).tolist():
        ages = seen[1][cohort == each] - each
        size = int((ages == 0).sum())
        for age in range(min(periods, last - each + 1)):
            count = int((ages == age).sum())
            rows.append((begin + each * step, age, count, count / size))
    kind = _time_type(local.arrow, time)
    starts = pa.array([row[0] for row in rows], pa.int64())
    if stamped:
        starts = starts.cast(pa.timestamp("us", getattr(kind, "tz", None)))
    columns = {"period": pa.int64(), "count": pa.int64(), "share": pa.float64()}
    values = {name: pa.array([row[place] for row in rows], of) for place, (name, of) in enumerate(columns.items(), 1)}
    return local.back(pa.table({"cohort": starts, **values}))


def _local(events: object) -> LocalTable:
    local = as_local(events)
    if local is None:
        if hasattr(events, "isStreaming"):
            hint = "bring a part of it here first, for example with .toArrow()"
            raise DataError("this counts a pyarrow, pandas or polars table, not one of Spark's", hint=hint)
        raise no_table(events, "pyarrow, pandas or polars")
    return local


def _ordered(table: pa.Table, by: str | Sequence[str], time: str, type: str | None) -> tuple[pa.Table, Int64s, Int64s]:
    """The events by visitor and time, with the number of the visitor and the time of each; without NULL keys."""
    keys = [by] if isinstance(by, str) else list(by)
    if not keys:
        raise CepheidError("by= names no column", hint="by='customer', for example")
    for name in (*keys, time, *([type] if type is not None else [])):
        if name not in table.column_names:
            near = closest(name, table.column_names)
            hint = f"did you mean '{near}'?" if near else f"the columns are {', '.join(table.column_names)}"
            raise DataError(f"no column '{name}'", hint=hint)
    for name in keys:
        table = table.filter(table.column(name).is_valid())
    read = read_times(table.column(time))
    if read.bad.any():
        row = int(np.flatnonzero(read.bad)[0])
        raise DataError(f"{table.column(time)[row].as_py()!r} is not {read.wanted}", column=time, row=row)
    moments = read.column
    if pa.types.is_temporal(moments.type):
        moments = moments.cast(pa.timestamp("us", getattr(moments.type, "tz", None)), safe=False).cast(pa.int64())
    when = np.asarray(moments, np.int64)
    who = np.zeros(len(table), np.int64)
    for name in keys:
        codes = np.asarray(table.column(name).combine_chunks().dictionary_encode().indices, np.int64)
        who = np.unique(who * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((when, who))
    return table.take(pa.array(order)), who[order], when[order]


def _only(table: pa.Table, kind: str, type: str) -> pa.Table:
    """The events of one type, of which there must be some."""
    kinds = table.column(type) if type in table.column_names else pa.chunked_array([], pa.string())
    found = table.filter(pc.equal(kinds, kind)) if len(kinds) else table.slice(0, 0)
    if not found.num_rows:
        near = closest(kind, [each for each in pc.unique(kinds).to_pylist() if isinstance(each, str)])
        hint = f"did you mean '{near}'?" if near else f"look at what the column '{type}' holds"
        raise DataError(f"no event of type '{kind}'", hint=hint)
    return found


def _time_type(table: pa.Table, time: str) -> pa.DataType:
    if time not in table.column_names:
        near = closest(time, table.column_names)
        hint = f"did you mean time='{near}'?" if near else f"the columns are {', '.join(table.column_names)}"
        raise DataError(f"no column '{time}' for the time", hint=hint)
    return read_times(table.column(time).slice(0, 1)).column.type


def _length_type(table: pa.Table, time: str) -> pa.DataType:
    return pa.duration("us") if pa.types.is_temporal(_time_type(table, time)) else pa.int64()
