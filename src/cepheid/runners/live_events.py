"""Events as they are sent to a live query, as a table in the columns and types that it was made for.

Nothing is changed on the way: a value that its column cannot hold as it is, such as 1.9 among whole numbers, is an
error. So is a time with a zone in a column without one, and the other way round. Times may come as text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.data.table import times_of
from cepheid.errors import DataError, closest
from cepheid.language.durations import whole_steps
from cepheid.language.schema import DataType, Schema, data_type
from cepheid.language.units import UNITS
from cepheid.language.zones import IN_UTC, zone_called
from cepheid.runners.nested import with_paths
from cepheid.runners.options import Options
from cepheid.runners.readings import read_times
from cepheid.runners.records import Problem, Records, as_text, by_policy, read_records, write_aside
from cepheid.runners.tables import as_local
from cepheid.runners.ties import with_rows

_ARROW = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    datetime: pa.timestamp("us"),
    date: pa.date32(),
    timedelta: pa.duration("us"),
}
# The types of values that Arrow takes for a kind of column without changing them, or refuses.
_PLAIN: dict[str, frozenset[type]] = {
    "whole number": frozenset({int, type(None)}),
    "number": frozenset({float, int, type(None)}),
    "decimal": frozenset({Decimal, type(None)}),
    "truth value": frozenset({bool, type(None)}),
    "text": frozenset({str, type(None)}),
    "date": frozenset({date, type(None)}),
}
# Besides a kind itself: what a table may hold where the schema has it. The cast fails if a value would change.
_INTO = {
    "whole number": ("number", "decimal"),
    "number": ("whole number", "decimal"),
    "decimal": ("whole number",),
    "time": ("date", "whole number"),
    "time with a zone": ("whole number",),
}
# What Arrow raises for a value that it does not take; pandas' NaT fails in ways of its own.
_REFUSED = (pa.ArrowException, OverflowError, ValueError, TypeError, AttributeError)


class Read(NamedTuple):
    """Events that were sent, as a table, and the way back to the kind that they came in."""

    table: pa.Table
    back: Callable[[pa.Table], Any]
    bad: int = 0  # records that are left out
    aside: pa.Table | None = None  # those of them that are set aside...
    where: Any = None  # ...and where to

    def set_aside(self) -> None:
        """Gives records away that were left out."""
        write_aside(self.aside, self.where)


@dataclass(frozen=True)
class EventReader:
    """Reads events of a schema."""

    given: pa.Schema  # as the user gave it; times may be text here...
    schema: pa.Schema  # ...and are timestamps here
    narrow: pa.Schema  # the columns that are needed
    clocks: tuple[str, ...]  # the columns that hold times of events
    query: Any = None  # of several the first, for how records are read
    options: Options = field(default_factory=Options)
    most_ahead: tuple[str, int, int, Any] | None = None  # see `most_ahead`
    first_row: int = 0  # the number of the first event, with tiebreak="row"
    clock: pa.Field | None = None  # the time, where it is computed from columns

    def read(self, events: Any, before: int = 0) -> Read:
        """The events in the columns and types that the query was made for; so many have been read before them."""
        if isinstance(events, Mapping):
            events = [events]
        if isinstance(events, Sequence) and not isinstance(events, str | bytes):
            return self._fitted(self._from_mappings(events), pa.Table.to_pylist, before)
        local = as_local(events)
        if local is None:
            message = "events must be a mapping, a list of them, or a pyarrow, pandas or polars table"
            hint = f"for example {{{', '.join(f'{name!r}: ...' for name in self.given.names)}}}"
            raise DataError(f"{message}, not {_kind(events)}", hint=hint)
        return self._fitted(local.arrow, local.back, before)

    def steps_of(self, time: Any, name: str) -> int:
        """A time in steps of the time column."""
        columns = self.schema if self.clock is None else pa.schema([self.clock])
        return steps_of(time, columns, name, self.options.time_format)

    def _from_mappings(self, events: Sequence[Any]) -> pa.Table:
        names = self._names
        for row, event in enumerate(events):
            if not isinstance(event, Mapping):
                raise DataError(f"an event is a mapping of names to values, not {_kind(event)}", row=row)
            if not names >= event.keys():
                name = next(name for name in event if name not in names)
                guess = closest(str(name), names)
                hint = f"did you mean '{guess}'?" if guess else f"the schema has {', '.join(self.given.names)}"
                raise DataError(f"the event has '{name}', which the schema does not have", row=row, hint=hint)
        columns = [self._column([event.get(each.name) for event in events], each) for each in self.given]
        if [column.type for column in columns] == self.given.types:
            return pa.Table.from_arrays(columns, schema=self.given)
        return pa.Table.from_arrays(columns, names=self.given.names)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.given.names)

    def _column(self, values: list[Any], field: pa.Field) -> pa.Array:
        """One attribute of several events; times are text if one is."""
        kind = kind_of(field.type)
        if kind in _TIMES and any(isinstance(value, str) for value in values):
            field, kind = field.with_type(pa.string()), "text"
            values = [value.isoformat() if isinstance(value, date) else value for value in values]
        elif kind == "text" and field.name in self.clocks:
            values = [value.isoformat() if isinstance(value, date) else value for value in values]
        return column_of(values, field)

    def _fitted(self, table: pa.Table, back: Callable[[pa.Table], Any], before: int) -> Read:
        """The events in the columns and types of the query, without those that cannot be events."""
        options = self.options
        if options.bad_records is None and not options.dedupe and self.most_ahead is None:
            return Read(self.declared(table, before), back)
        came = table.num_rows
        records = Records(table)
        if options.bad_records is not None or options.dedupe:
            records = read_records(self.query, table, options)
        duplicates, aside = records.counts.get("duplicates", 0), records.bad
        records = Records(self.declared(self._in_utc(records.table, table), before))
        if self.most_ahead is not None:
            name, steps, unit, said = self.most_ahead
            ahead = times_of(records.table, name) - time.time_ns() // unit > steps
            message = f"lies more than max_ahead={said!r} in the future"
            policy = replace(options, bad_records=options.bad_records or "drop")
            records = by_policy(records, [Problem(name, ahead, message)], policy, records.table)
            if records.bad is not None:
                parts = [each for each in (aside, records.bad) if each is not None]
                aside = pa.concat_tables(map(as_text, parts), promote_options="permissive")
        return Read(records.table, back, came - duplicates - records.table.num_rows, aside, options.aside)

    def _in_utc(self, read: pa.Table, came: pa.Table) -> pa.Table:
        """Times that came as text without a zone are in UTC, if their column has a zone."""
        for name in self.clocks:
            naive = name in came.column_names and kind_of(came.schema.field(name).type) == "text"
            if naive and kind_of(read.schema.field(name).type) == "time":
                kind = pa.timestamp("us", getattr(self.schema.field(name).type, "tz", None))
                read = read.set_column(read.column_names.index(name), name, read.column(name).cast(kind))
        return read

    def declared(self, table: pa.Table, before: int) -> pa.Table:
        """The events in the columns and types of the query, numbered if it asks for that."""
        if self.options.row_column is not None:
            first = self.first_row + before
            table = with_rows(table, self.options, np.arange(first, first + table.num_rows))
        if table.schema == self.narrow:
            return table
        table = with_paths(table, self.narrow.names)
        columns = []
        for each in self.narrow:
            if each.name not in table.column_names:
                raise DataError(f"the events have no column '{each.name}', which the schema has")
            columns.append(in_type(table.column(each.name), each, self.options.time_format))
        return pa.table(columns, schema=self.narrow)


def steps_of(time: Any, schema: pa.Schema, name: str, time_format: str | None = None) -> int:
    """A time in steps of the time column."""
    kind = schema.field(name).type
    try:
        column = pa.chunked_array([column_of([time], schema.field(name), time_format)])
    except DataError:
        hint = "pass a whole number" if pa.types.is_integer(kind) else "pass a datetime, or a text in ISO 8601"
        raise DataError(f"{time!r} is not a time of column '{name}', which is {kind}", hint=hint) from None
    return int(times_of(pa.table({name: column}), name)[0])


# --- values and columns as a schema has them ------------------------------------------------------------------------


def column_of(values: Sequence[Any], field: pa.Field, time_format: str | None = None) -> pa.Array:
    """Values as a column; an error names the first that would be another one there.

    >>> column_of([1, 2.0, None], pa.field("id", pa.int64())).to_pylist()
    [1, 2, None]
    >>> column_of([1, 1.9], pa.field("id", pa.int64()))
    Traceback (most recent call last):
    ...
    cepheid.errors.DataError: column 'id', row 1: 1.9 does not fit a column of int64; ...
    """
    kind, wanted = field.type, kind_of(field.type)
    fits = _PLAIN.get(wanted, frozenset())
    if wanted in _TIMES and kind.unit in ("us", "ns"):
        zoned = wanted == "time with a zone"
        plain = all(
            value is None or (type(value) is datetime and (value.tzinfo is not None) == zoned) for value in values
        )
    else:
        plain = fits.issuperset(map(type, values))
    if plain:
        try:
            return pa.array(values, kind)
        except _REFUSED:
            pass
    parts = [_one(value, field, row, time_format) for row, value in enumerate(values)]
    return pa.concat_arrays(parts) if parts else pa.array([], kind)


def _one(value: Any, field: pa.Field, row: int, time_format: str | None) -> pa.Array:
    kind = field.type
    try:
        if isinstance(value, str) and data_type(kind) is DataType.TIME:
            text = pa.chunked_array([[value]], pa.string())
            return in_type(text, field, time_format).combine_chunks()
        if kind_of(kind) == "time" and type(value) is date:
            value = datetime(value.year, value.month, value.day)  # its first instant, as in a table
        made = pa.array([value], kind)
        if _same(value, made[0].as_py(), kind_of(kind)):
            return made
    except (*_REFUSED, DataError):
        pass
    message = f"{value!r} does not fit a column of {kind}"
    hint = f"send a value of that type, or give '{field.name}' another one in the schema"
    raise DataError(message, column=field.name, row=row, hint=hint) from None


def _same(value: Any, back: Any, kind: str) -> bool:
    """Is what a column holds the value that it was given?"""
    match value:
        case None:
            return back is None
        case Mapping():
            held = back if isinstance(back, Mapping) else dict(back)
            return all(_same(each, held.get(name), _NESTED) for name, each in value.items())
        case list() | tuple():
            return len(value) == len(back) and all(map(_same, value, back, [_NESTED] * len(back)))
    truth = isinstance(value, bool) or type(value).__name__ == "bool"  # numpy's, too
    if truth != isinstance(back, bool):
        return False
    if isinstance(back, float):
        return isinstance(value, int | float) or type(value).__module__ == "numpy"
    if kind in _TIMES and isinstance(value, int):
        return True  # in steps of the column
    return bool(value == back)


_NESTED = "value of a list"


def in_type(column: pa.ChunkedArray, field: pa.Field, time_format: str | None = None) -> pa.ChunkedArray:
    """A column of a table in the type that the schema gives it; an error if that would change a value.

    >>> in_type(pa.chunked_array([["2026-01-31T12:00:00Z"]]), pa.field("ts", pa.timestamp("us", "UTC"))).type
    TimestampType(timestamp[us, tz=UTC])
    """
    kind = field.type
    if column.type == kind:
        return column
    wanted, came = kind_of(kind), kind_of(column.type)
    if came == "text" and pa.types.is_timestamp(kind):
        column = _times(column, field, time_format)
        came = wanted if wanted == "time with a zone" else kind_of(column.type)
    try:
        if came not in (wanted, "nothing", *_INTO.get(wanted, ())):
            raise pa.ArrowTypeError(f"it holds a {came}, and the schema has a {wanted}")
        return column.cast(kind)
    except _REFUSED as error:
        message = f"the events do not have the types of the schema: column '{field.name}' is {column.type}"
        hint = f"cast it to {kind}, or give it another type in the schema"
        raise DataError(f"{message}, not {kind}: {error}", column=field.name, hint=hint) from None


def _times(column: pa.ChunkedArray, field: pa.Field, time_format: str | None) -> pa.ChunkedArray:
    """Texts as times. One without a zone is in UTC, if the column has a zone."""
    reading = read_times(column, time_format, field.type.tz)
    read = reading.column
    wrong = reading.bad & column.is_valid().to_numpy()
    if not pa.types.is_timestamp(read.type):
        wrong = column.is_valid().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        wanted = reading.wanted if time_format is not None else "a time, such as 2026-01-31T12:00:00"
        hint = "pass its format, such as time_format='%d/%m/%Y %H:%M'" if time_format is None else None
        raise DataError(f"{column[row].as_py()!r} is not {wanted}", column=field.name, row=row, hint=hint)
    return read


@lru_cache(maxsize=1024)
def kind_of(kind: pa.DataType) -> str:
    """What a type holds, however wide it is.

    >>> kind_of(pa.int8()), kind_of(pa.dictionary(pa.int8(), pa.large_string())), kind_of(pa.list_(pa.float32()))
    ('whole number', 'text', 'list of number')
    """
    if pa.types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if pa.types.is_decimal(kind):
        return "decimal"
    if pa.types.is_timestamp(kind):
        return "time" if kind.tz is None else "time with a zone"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"list of {kind_of(kind.value_type)}"
    if pa.types.is_null(kind):
        return "nothing"
    return _NAMES.get(data_type(kind), str(kind))


_TIMES = ("time", "time with a zone")
_NAMES = {
    DataType.INT: "whole number",
    DataType.FLOAT: "number",
    DataType.BOOL: "truth value",
    DataType.STRING: "text",
}


# --- schemas --------------------------------------------------------------------------------------------------------


def as_schema(given: Any) -> pa.Schema:
    """The columns as Arrow's schema: from one, from a table, or from names with Python's types."""
    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, Mapping):
        for name, kind in given.items():
            if not isinstance(kind, pa.DataType) and kind not in _ARROW:
                names = ", ".join(each.__name__ for each in _ARROW)
                hint = f"use {names} or a type of pyarrow, such as pa.decimal128(9, 2)"
                raise DataError(f"the schema gives column '{name}' the type {kind!r}", hint=hint)
        return pa.schema([(name, _ARROW.get(kind, kind)) for name, kind in given.items()])
    local = as_local(given)
    if local is None:
        hint = "pass a pyarrow schema, {'ts': int, 'type': str, ...}, or a table with the same columns"
        raise DataError(f"{_kind(given)} is not a schema", hint=hint)
    return local.arrow.schema.remove_metadata()


def with_times(
    given: Any, schema: pa.Schema, clocks: Sequence[str], time_format: str | None, tz: str | None = None
) -> pa.Schema:
    """The schema with timestamps where times come as text: of the kind that a table or the format shows, or in UTC.

    With `tz` they are times of that zone.
    """
    local = None if isinstance(given, pa.Schema | Mapping) else as_local(given)
    for place, each in enumerate(schema):
        if each.name in clocks and kind_of(each.type) == "text":
            kind = pa.timestamp("us", zone_called(tz or IN_UTC))
            texts = pa.chunked_array([[]], pa.string()) if local is None else local.arrow.column(each.name)
            if time_format is not None or texts.length():
                read = read_times(texts, time_format, tz).column.type
                kind = read if pa.types.is_timestamp(read) else kind
            schema = schema.set(place, each.with_type(kind))
    return schema


def most_ahead(max_ahead: Any, schema: Schema) -> tuple[str, int, int, Any] | None:
    """How far ahead of the machine's clock an event may lie: the column, steps of it, and nanoseconds of a step."""
    if max_ahead is None:
        return None
    clock = schema.lower or schema.time
    if schema.time_unit is None:
        hint = f"pass time_unit='ms' (or what '{clock}' counts)"
        raise DataError("max_ahead looks at the machine's clock, but the unit of the time column is unknown", hint=hint)
    return clock, whole_steps(max_ahead, schema, "max_ahead"), UNITS[schema.time_unit], max_ahead


def _kind(value: object) -> str:
    return type(value).__name__
