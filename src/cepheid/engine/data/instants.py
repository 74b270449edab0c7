"""When each event may have happened: intervals of whole instants, read from a table and checked.

An instant is one step of the time column, or `unit` steps of it where a unit is given: clocks that disagree by
seconds should not be told apart by microseconds, and what confidence costs grows with the number of instants.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.table import check_bounds, times_of
from cepheid.errors import DataError, closest
from cepheid.language.durations import length_in_steps
from cepheid.language.library.decimal_columns import as_doubles
from cepheid.language.schema import NUMBERS, TIMES, DataType, Schema, data_type
from cepheid.language.units import unit_named
from cepheid.plan.options import EngineOptions

SUM_WITHIN = 1e-6  # how far the probabilities of an event's instants may be from summing to one
FARTHEST = 2**61  # steps of the time column from 0
MAX_WIDTH = 10_000  # instants in one interval, unless the caller says otherwise with max_width


@dataclass(frozen=True)
class Instants:
    """For each row of a table the instants at which its event may have happened, in units of `step`."""

    lower: Int64s
    upper: Int64s
    until: Int64s  # the upper bound as it stands in the table
    step: int = 1  # steps of the time column in one instant
    weights: Float64s | None = None  # one after the other, the probabilities of the rows that have them
    offsets: Int64s | None = None  # row r has weights[offsets[r]:offsets[r + 1]]; none of them: all instants alike
    chance: Float64s | None = None  # that the event happened at all; None: all did

    @property
    def exists(self) -> Float64s:
        """The probability of each row's event that it happened at all."""
        return np.ones(len(self.lower)) if self.chance is None else self.chance


@dataclass(frozen=True)
class Bounded:
    """A table with a lower and an upper bound for each event, and what one instant is."""

    table: pa.Table
    lower: str  # the names of the two columns
    upper: str
    step: int


# --- one time column and how far it may be off -------------------------------------------------------------------


def with_bounds(
    table: pa.Table,
    uncertainty: object,
    *,
    time: str = "ts",
    type: str | None = "type",
    time_unit: str | None = None,
    unit: object = None,
) -> Bounded:
    """Adds the columns `<time>_lower` and `<time>_upper`: the time, rounded to the unit, give or take the uncertainty.

    `uncertainty` is a half-width for all events, the name of a column that holds one for each event, or one for each
    event type, or for each value of a column ({"sensor": {"s1": "2 s"}}); what is not named is exact. A
    half-width that is not a whole number of units is rounded up, so that the interval holds what it held before.

    >>> table = pa.table({"ts": [100, 104], "type": ["Task", "CPU"]})
    >>> bounded = with_bounds(table, {"CPU": "7.5 s"}, time_unit="ms", unit="5 s")
    >>> bounded.table.select(["ts_lower", "ts_upper"]).to_pylist(), bounded.step
    ([{'ts_lower': 0, 'ts_upper': 0}, {'ts_lower': -10000, 'ts_upper': 10000}], 5000)
    """
    if time not in table.column_names:
        raise DataError(f"no column '{time}' for the time; the columns are {', '.join(table.column_names)}")
    names = (f"{time}_lower", f"{time}_upper")
    for name in names:
        if name in table.column_names:
            raise DataError(f"uncertainty makes a column '{name}', but there is one; pass it as lower or upper instead")
    steps_are = _unit_of_column(table, time, time_unit)
    step = step_of(unit, steps_are)
    half = _half_widths(table, uncertainty, type, steps_are, step)
    given = times_of(table, time)
    _check_far(given, time)
    instant = np.floor_divide(given + step // 2, step)
    for name, values in zip(names, (instant - half, instant + half), strict=True):
        table = table.append_column(name, _like_time(values * step, table.schema.field(time).type))
    return Bounded(table, *names, step)


def _unit_of_column(table: pa.Table, time: str, time_unit: str | None) -> str | None:
    if data_type(table.schema.field(time).type) in TIMES:
        return "microseconds"
    if time_unit is None:
        return None
    named = unit_named(time_unit)
    if named is None:
        raise DataError(f"no time unit '{time_unit}'; for example 'ms', 's' or 'minutes'")
    return named


def _half_widths(table: pa.Table, uncertainty: object, type: str | None, steps_are: str | None, step: int) -> Int64s:
    """The half-width of each row, in instants."""
    if isinstance(uncertainty, str) and uncertainty in table.column_names:
        return _half_widths_of_rows(table, uncertainty, steps_are, step)
    if not isinstance(uncertainty, Mapping):
        _check_column(table, uncertainty)
        return np.full(len(table), _instants_in(uncertainty, steps_are, step), np.int64)
    by, widths = by_value(uncertainty, type)
    if by is None or (by == type and by not in table.column_names):
        raise DataError("uncertainty for each event type needs a column of types", hint="pass type='...'")
    if by not in table.column_names:
        guess = closest(by, table.column_names)
        hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(table.column_names)}"
        raise DataError(f"no column '{by}', which uncertainty is keyed by", hint=hint)
    half = np.zeros(len(table), np.int64)
    values = table.column(by).cast(pa.string())
    for name, given in widths.items():
        same = pc.fill_null(pc.equal(values, pa.scalar(str(name), pa.string())), False)
        half[same.to_numpy()] = _instants_in(given, steps_are, step)
    return half


def by_value(uncertainty: Mapping[Any, object], type: str | None) -> tuple[str | None, Mapping[object, object]]:
    """The column that half-widths go by, and one for each of its values.

    >>> by_value({"CPU": "7.5 s"}, "type"), by_value({"sensor": {"s1": "2 s", "s2": "5 s"}}, "type")
    (('type', {'CPU': '7.5 s'}), ('sensor', {'s1': '2 s', 's2': '5 s'}))
    """
    if len(uncertainty) == 1:
        ((column, widths),) = uncertainty.items()
        if isinstance(widths, Mapping):
            return str(column), widths
    return type, uncertainty


def _check_column(table: pa.Table, given: object) -> None:
    """A word without a number is the name of a column."""
    if isinstance(given, str) and given.isidentifier() and unit_named(given) is None:
        guess = closest(given, table.column_names)
        hint = f"did you mean uncertainty='{guess}'?" if guess else "give a length, such as '7.5 s', or a column"
        raise DataError(f"uncertainty='{given}' is neither a length of time nor a column", hint=hint)


def _half_widths_of_rows(table: pa.Table, name: str, steps_are: str | None, step: int) -> Int64s:
    """A half-width for each event: a duration, or a number of seconds, or of steps where the time is a whole number.

    >>> table = pa.table({"ts": [10, 20], "sigma": [2.5, 0.0]})
    >>> _half_widths_of_rows(table, "sigma", None, 1).tolist()
    [3, 0]
    """
    column = table.column(name)
    if pa.types.is_duration(column.type):
        in_microseconds = pc.cast(column, pa.duration("us"), safe=False).cast(pa.int64())
        values = in_microseconds.cast(pa.float64()).to_numpy(zero_copy_only=False)
        scale = length_in_steps("1 microsecond", steps_are, "uncertainty")
    elif data_type(column.type) in NUMBERS:
        values = as_doubles(column).to_numpy(zero_copy_only=False)
        stamped = steps_are == "microseconds"  # what a step is, is told by its own name elsewhere
        scale = length_in_steps("1 second", steps_are, "uncertainty") if stamped else Fraction(1)
    else:
        message = f"column '{name}' holds the uncertainty of times, but it is {column.type}"
        raise DataError(message, hint="it should hold durations, or numbers")
    wrong = np.flatnonzero(~((values >= 0) & (values * float(scale) <= FARTHEST)))
    if len(wrong):
        row = int(wrong[0])
        message = f"{column[row].as_py()!r} is not a valid uncertainty of the event's time"
        raise DataError(message, column=name, row=row, hint="it should be 0 or more")
    half: Int64s = np.ceil(values * float(scale) / step).astype(np.int64)
    return half


def _instants_in(given: object, steps_are: str | None, step: int) -> int:
    half = math.ceil(length_in_steps(given, steps_are, "uncertainty") / step)
    if half * step > FARTHEST:
        raise DataError(f"uncertainty={given!r} is too long")
    return half


def check_types(table: pa.Table, uncertainty: object, type: str | None, named: Collection[str]) -> None:
    """An error if an uncertainty is given for a type that neither the events have nor the query names."""
    if not isinstance(uncertainty, Mapping) or type is None or type not in table.column_names or not table.num_rows:
        return
    by, widths = by_value(uncertainty, type)
    if by != type:
        return
    occurring = [name for name in pc.unique(table.column(type)).to_pylist() if name is not None]
    known = dict.fromkeys([*occurring, *named])
    for name in widths:
        if name in known:
            continue
        guess = closest(str(name), map(str, known))
        hint = f"did you mean {guess!r}?" if guess else f"the types are {', '.join(map(str, known))}"
        message = f"uncertainty names the type {name!r}, which neither the events have nor the query names"
        raise DataError(message, column=type, hint=hint)


def _check_far(times: Int64s, column: str) -> None:
    """Times and windows are added up in 64 bits."""
    far = np.flatnonzero((times > FARTHEST) | (times < -FARTHEST))
    if len(far):
        row = int(far[0])
        message = f"the time {times[row]} is out of range: imprecise times lie between -2^61 and 2^61"
        raise DataError(message, column=column, row=row)


def step_of(unit: object, steps_are: str | None) -> int:
    """How many steps of the time column one instant is; `steps_are` names what the column counts, if that is known.

    >>> step_of("0.1 s", "microseconds"), step_of(None, None), step_of(5, None)
    (100000, 1, 5)
    """
    if unit is None:
        return 1
    steps = length_in_steps(unit, steps_are, "unit")
    if steps.denominator != 1 or steps < 1:
        raise DataError(f"unit={unit!r} is not a whole number of steps of the time column, but {float(steps):g}")
    return int(steps)


def _like_time(values: Int64s, kind: pa.DataType) -> pa.Array:
    column = pa.array(values)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column.cast(pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None))
    return column


# --- reading ----------------------------------------------------------------------------------------------------


def instants_of(table: pa.Table, schema: Schema, options: EngineOptions | Mapping[str, Any]) -> Instants:
    """When each event of a table may have happened; a DataError names the first row for which that makes no sense.

    Options: `probabilities` (a column that lists the probability of each instant; NULL: all alike), `unit` and
    `max_width` (how many instants an interval may hold).
    """
    if schema.lower is None or schema.upper is None:
        raise DataError("imprecise time needs both bounds", hint="pass lower='...' and upper='...'")
    if schema.tiebreak:
        message = "tiebreak orders events of one instant, but with lower and upper the order is not certain"
        if schema.is_timed_exactly:
            message = "tiebreak and existence cannot be used together"
        raise DataError(message, hint="leave tiebreak out")
    step = step_of(options.get("unit"), schema.time_unit)
    kinds = [table.schema.field(name).type for name in (schema.lower, schema.upper)]
    if data_type(kinds[0]) is not data_type(kinds[1]):
        message = (
            f"the bounds have two types: column '{schema.lower}' is {kinds[0]}, column '{schema.upper}' is {kinds[1]}"
        )
        raise DataError(message, hint="cast one of them")
    lower, upper = times_of(table, schema.lower), times_of(table, schema.upper)
    _check_far(lower, schema.lower)
    _check_far(upper, schema.upper)
    check_bounds(lower, upper, schema.lower)
    until = upper
    if step > 1:
        lower, upper = lower // step, upper // step
    limit = int(options.get("max_width", MAX_WIDTH))
    width = upper - lower
    wide = np.flatnonzero((width >= limit) | (width < 0))  # below 0: it does not fit 64 bits
    if len(wide):
        row = int(wide[0])
        message = (
            f"an interval of {int(upper[row]) - int(lower[row]) + 1:,} instants is too long; the limit is {limit:,}"
        )
        hint = "count in larger steps, for example unit='1 s', or raise max_width"
        raise DataError(message, column=schema.upper, row=row, hint=hint)
    named = options.get("probabilities")
    chance = existence_of(table, schema)
    if named is None:
        return Instants(lower, upper, until, step, chance=chance)
    weights, offsets = _weights(table, named, upper - lower + 1)
    return Instants(lower, upper, until, step, weights, offsets, chance)


def existence_of(table: pa.Table, schema: Schema) -> Float64s | None:
    """The probability of each event that it happened at all; None where all did.

    >>> table = pa.table({"ts": [1, 2], "p": [0.5, 1.5]})
    >>> existence_of(table, Schema.from_arrow(table.schema, type=None, existence="p"))
    Traceback (most recent call last):
    cepheid.errors.DataError: column 'p', row 1: an event that happened with probability 1.5; give a number from 0 to 1
    """
    if schema.existence is None:
        return None
    column = pc.cast(table.column(schema.existence), pa.float64())
    chance = np.array(column.fill_null(np.nan).to_numpy(), np.float64)
    wrong = np.flatnonzero(~((chance >= 0.0) & (chance <= 1.0)))
    if len(wrong):
        row = int(wrong[0])
        message = f"an event that happened with probability {'NULL' if np.isnan(chance[row]) else f'{chance[row]:g}'}"
        raise DataError(message, column=schema.existence, row=row, hint="give a number from 0 to 1")
    return chance


def _weights(table: pa.Table, name: str, widths: Int64s) -> tuple[Float64s, Int64s]:
    if name not in table.column_names:
        raise DataError(f"no column '{name}' for the probabilities; the columns are {', '.join(table.column_names)}")
    kind = table.schema.field(name).type
    if data_type(kind) is not DataType.LIST:
        raise DataError(f"column '{name}' must list the probability of each instant, but it is {kind}", column=name)
    column = pc.cast(table.column(name), pa.large_list(pa.float64())).combine_chunks()
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    given = column.is_valid().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(given & (sizes != widths))
    if len(wrong):
        row = int(wrong[0])
        message = f"{sizes[row]} probabilities for {widths[row]} instants"
        raise DataError(message, column=name, row=row, hint="give one for each instant from lower to upper")
    flat = column.flatten()
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    weights = np.array(pc.fill_null(flat, np.nan).to_numpy(zero_copy_only=False), np.float64)
    row_of = np.repeat(np.arange(len(sizes)), sizes)
    bad = np.flatnonzero(~(weights >= 0.0))
    if len(bad):
        row, value = int(row_of[bad[0]]), weights[bad[0]]
        message = "a probability that is NULL" if math.isnan(value) else f"a probability of {value:g}"
        raise DataError(message, column=name, row=row, hint="they must be at least 0 and sum to 1")
    totals = np.bincount(row_of, weights, len(sizes))
    off = np.flatnonzero(given & ~(np.abs(totals - 1.0) <= SUM_WITHIN))
    if len(off):
        row = int(off[0])
        message = f"the probabilities sum to {totals[row]:.9g}"
        raise DataError(message, column=name, row=row, hint="they must be at least 0 and sum to 1")
    return weights / totals[row_of], offsets
