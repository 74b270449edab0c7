"""What a query may know about its events: columns with their types, which one is the time, which the event type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TypedDict, Unpack

import pyarrow as pa

from cepheid.errors import DataError, closest
from cepheid.language.units import unit_named
from cepheid.language.zones import IN_UTC, zone_called


class DataType(Enum):
    """The types that predicates distinguish."""

    INT = "whole number"
    FLOAT = "number"
    BOOL = "true or false"
    STRING = "string"
    TIME = "timestamp"
    DATE = "date"
    DECIMAL = "decimal"
    LIST = "list of numbers"
    TEXTS = "list of strings"
    MAP = "map"
    OTHER = "value that predicates cannot use"
    NULL = "NULL"


NUMBERS = frozenset({DataType.INT, DataType.FLOAT, DataType.DECIMAL})
TIMES = frozenset({DataType.TIME, DataType.DATE})
PLAIN = frozenset({*NUMBERS, *TIMES, DataType.BOOL, DataType.STRING})  # values that conditions can compare
ROW = "row"  # as tiebreak: the order of rows, where a table has one
INDEX = b"cepheid.index"  # metadata of a table that was a pandas frame: the names of its index, "" for none


class Roles(TypedDict, total=False):
    """Which columns have a part in matching, and how they are read."""

    time: str
    type: str | None
    time_unit: str | None
    tiebreak: tuple[str, ...]
    lower: str | None
    upper: str | None
    types: frozenset[str] | None
    lacks: Mapping[str, Sequence[str]] | None
    existence: str | None
    ignore_case: bool
    row_column: str | None
    tz: str | None


@dataclass(frozen=True)
class Schema:
    """The columns of an event table and the roles of some of them.

    >>> schema = Schema.from_arrow(pa.schema([("ts", pa.int64()), ("type", pa.string()), ("price", pa.float64())]))
    >>> schema.type_of("price")
    <DataType.FLOAT: 'number'>
    """

    columns: tuple[tuple[str, DataType], ...]
    time: str
    type: str | None = None
    time_unit: str | None = None  # what one step of the time column is; microseconds for timestamps
    types: frozenset[str] | None = None  # the event types that can occur, where they are known
    tiebreak: tuple[str, ...] = ()
    lower: str | None = None  # imprecise time (TIME): the earliest and latest possible instant
    upper: str | None = None
    lacks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # attributes that events of a type do not have
    existence: str | None = None  # the probability that the event happened at all
    # Not in the representation, which checkpoints of earlier versions know (see __str__).
    ignore_case: bool = field(default=False, repr=False)  # are types the same whatever their case?
    nested: tuple[str, ...] = field(
        default=(), repr=False
    )  # columns that were made: of fields of structs, which a query names (`user.id`), and for the order of rows
    elements: tuple[tuple[str, DataType], ...] = field(
        default=(), repr=False
    )  # of columns of lists and maps: the type of what is in them
    dates: frozenset[str] = field(default=frozenset(), repr=False)  # columns of dates; `columns` calls them timestamps
    decimals: tuple[tuple[str, tuple[int, int]], ...] = field(
        default=(), repr=False
    )  # columns of decimals with their precision and scale; `columns` calls them numbers
    others: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # of columns of no use: what they hold
    zone: str = field(default=IN_UTC, repr=False)  # the query's: in which parts of times and literals are read
    walls: tuple[str, ...] = field(default=(), repr=False)  # times that a clock shows, without a zone, and dates

    def __str__(self) -> str:
        """What decides results, as checkpoints keep it."""
        return f"{self!r}{', ignoring case' if self.ignore_case else ''}"

    @cached_property
    def _by_name(self) -> dict[str, DataType]:
        dates = dict.fromkeys(self.dates, DataType.DATE)
        return {**dict(self.columns), **dates, **dict.fromkeys(dict(self.decimals), DataType.DECIMAL)}

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def whole_names(self) -> tuple[str, ...]:
        """The columns as the events came, without those that were made for nested attributes."""
        return tuple(name for name in self.names if name not in self.nested)

    @property
    def row_column(self) -> str | None:
        """The column that was made for tiebreak="row"."""
        return next((name for name in self.tiebreak if name in self.nested and name.lstrip("_") == ROW), None)

    @property
    def is_imprecise(self) -> bool:
        """Are events known to an interval of time, or may they not have happened, so that matches have a confidence?"""
        return self.lower is not None

    @property
    def is_timed_exactly(self) -> bool:
        """Are times points, even where events may not have happened and their bounds are therefore looked at?"""
        return not self.is_imprecise or (self.existence is not None and self.lower == self.upper == self.time)

    def is_lacking(self, type: str | None, attribute: str) -> bool:
        """Do events of this type not have the attribute, as the call said?"""
        return any(name == type and attribute in attributes for name, attributes in self.lacks)

    def types_lacking(self, attribute: str) -> tuple[str, ...]:
        """The event types that do not have the attribute, as the call said."""
        return tuple(name for name, attributes in self.lacks if attribute in attributes)

    def element_of(self, name: str) -> DataType | None:
        """The type of what is in a column of lists or maps, or None if it is no such column."""
        return dict(self.elements).get(name)

    def precision_of(self, name: str) -> tuple[int, int]:
        """The precision and scale of a column of decimals."""
        return dict(self.decimals)[name]

    def unusable(self, name: str) -> tuple[str, str | None] | None:
        """What a column holds that conditions cannot use, and what to do about it."""
        kind = dict(self.others).get(name)
        return None if kind is None else (kind, _ADVICE.get(kind))

    def type_of(self, name: str) -> DataType | None:
        """The type of a column, or None if there is no such column."""
        return self._by_name.get(name)

    @classmethod
    def from_arrow(cls, schema: pa.Schema, **given: Unpack[Roles]) -> Schema:
        """The schema of an Arrow table, with its roles checked; `row_column` was made for tiebreak="row".

        Without `tz` the query's zone is that of the time column, and UTC if that has none.
        """
        roles: Roles = {**_ROLES, **given}
        time, type, lower, upper = roles["time"], roles["type"], roles["lower"], roles["upper"]
        columns = tuple((column.name, _kept_type(data_type(column.type))) for column in schema)
        instants = (time, lower, upper)
        dates = frozenset(
            column.name for column in schema if data_type(column.type) is DataType.DATE and column.name not in instants
        )
        decimals = tuple((column.name, _digits(column.type)) for column in schema if _is_decimal(column.type))
        _check_names(schema, roles)
        clock = lower if lower is not None and time not in schema.names else time
        unit = _checked_unit(schema, clock, roles["time_unit"])
        existence = roles["existence"]
        if type is not None and dict(columns)[type] is not DataType.STRING:
            raise DataError(
                f"column '{type}' holds the event type and must be a string, but it is {schema.field(type).type}; "
                "cast it, or pass type=None for an untyped stream"
            )
        absent = _checked_lacks(roles["lacks"] or {}, schema.names, type)
        if existence is not None:
            if dict(columns)[existence] not in NUMBERS:
                raise DataError(
                    f"column '{existence}' holds the probability that an event happened and must be a number, "
                    f"but it is {schema.field(existence).type}",
                    column=existence,
                    hint="cast it to a floating number from 0 to 1",
                )
            if lower is None:  # a time that is certain is an interval of one instant
                lower = upper = clock
        clock = clock if lower is not None else time
        elements = tuple((column.name, of) for column in schema if (of := _element(column.type)) is not None)
        known = (columns, clock, type, unit, roles["types"], roles["tiebreak"], lower, upper, absent, existence)
        made = roles["row_column"]
        nested = tuple(name for name in schema.names if name == made or field_of(schema, name) is not None)
        others = tuple(
            (column.name, _kind(column.type)) for column in schema if data_type(column.type) is DataType.OTHER
        )
        zone = zone_called(roles["tz"] or getattr(schema.field(clock).type, "tz", None) or IN_UTC)
        cased = roles["ignore_case"] and type is not None
        return cls(*known, cased, nested, elements, dates, decimals, others, zone, wall_columns(schema))


_ROLES: Roles = {
    "time": "ts",
    "type": "type",
    "time_unit": None,
    "tiebreak": (),
    "lower": None,
    "upper": None,
    "types": None,
    "lacks": None,
    "existence": None,
    "ignore_case": False,
    "row_column": None,
    "tz": None,
}


def _check_names(schema: pa.Schema, roles: Roles) -> None:
    """An error for two columns of one name, and for a role whose column is not there."""
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise DataError(f"two columns are called '{twice}'")
    named = {
        "time": roles["time"],
        "type": roles["type"],
        "lower": roles["lower"],
        "upper": roles["upper"],
        "existence": roles["existence"],
    }
    for role, name in named.items():
        if name is not None and name not in schema.names and not (role == "time" and roles["lower"] is not None):
            kinds = {column.name: _kept_type(data_type(column.type)) for column in schema}
            texts = [column for column, kind in kinds.items() if kind is DataType.STRING]
            times = [column for column, kind in kinds.items() if kind in (DataType.TIME, DataType.DATE)]
            _raise_in_index(role, name, schema)
            only = times[0] if role == "time" and len(times) == 1 else None
            _raise_missing(role, name, schema.names, texts if role == "type" else schema.names, only)
    _check_tiebreak(roles["tiebreak"], schema.names)


def _checked_unit(schema: pa.Schema, clock: str, asked: str | None) -> str | None:
    """The unit of the time column: that which was asked for, or a timestamp's own."""
    arrow = schema.field(clock).type
    found = _kept_type(data_type(arrow))
    if found not in (DataType.INT, DataType.TIME):
        message = f"column '{clock}' holds the time and must be a whole number or a timestamp, but it is {arrow}"
        raise DataError(message, hint=_AS_TIME.get(_kind(arrow), "cast it first"))
    if asked is None:
        return "microseconds" if found is DataType.TIME else None
    unit = unit_named(asked)
    if unit is None:
        raise DataError(f"no time unit '{asked}'; for example 'ms', 's' or 'minutes'")
    if found is DataType.TIME and unit != "microseconds":
        raise DataError(f"column '{clock}' is a timestamp and carries its own unit; leave time_unit out")
    return unit


def _check_tiebreak(tiebreak: Sequence[str], names: Sequence[str]) -> None:
    """An error for a column that is not there, and for the order of rows where there is none."""
    for name in tiebreak:
        if name in names:
            continue
        if name == ROW:
            message = f"tiebreak='{ROW}' is the order of rows, and these events come without one, as on Spark"
            raise DataError(message, hint="name a column that orders events of one time: tiebreak='...'")
        _raise_missing("tiebreak", name, names, [*names, ROW])


def _kept_type(kind: DataType) -> DataType:
    """The type under which a schema's representation lists a column, as checkpoints of earlier versions know it."""
    return {DataType.DATE: DataType.TIME, DataType.DECIMAL: DataType.FLOAT}.get(kind, kind)


def _is_decimal(arrow: pa.DataType) -> bool:
    return data_type(arrow) is DataType.DECIMAL


def _digits(arrow: pa.DataType) -> tuple[int, int]:
    kind = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    return min(kind.precision, 38), kind.scale


def wall_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The columns of times that a clock shows: timestamps without a zone, and dates.

    >>> wall_columns(pa.schema([("ts", pa.timestamp("us", "UTC")), ("at", pa.timestamp("us")), ("day", pa.date32())]))
    ('at', 'day')
    """
    return tuple(
        column.name for column in schema if data_type(column.type) in TIMES and getattr(column.type, "tz", None) is None
    )


def field_of(schema: pa.Schema, path: str) -> pa.Field | None:
    """The field of a struct that a path such as `user.id` names, if there is such a struct.

    >>> field_of(pa.schema([("user", pa.struct([("id", pa.int64())]))]), "user.id")
    pyarrow.Field<id: int64>
    """
    first, *rest = path.split(".")
    if not rest or first not in schema.names:
        return None
    found = schema.field(first)
    for name in rest:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(name) < 0:
            return None
        found = found.type.field(name)
    return found


def data_type(arrow: pa.DataType) -> DataType:
    """What predicates see of an Arrow type.

    >>> data_type(pa.int32()), data_type(pa.list_(pa.float64()))
    (<DataType.INT: 'whole number'>, <DataType.LIST: 'list of numbers'>)
    """
    if pa.types.is_dictionary(arrow):
        return data_type(arrow.value_type)
    if pa.types.is_integer(arrow):
        return DataType.INT
    if pa.types.is_floating(arrow):
        return DataType.FLOAT
    if pa.types.is_decimal(arrow):
        return DataType.DECIMAL
    if pa.types.is_boolean(arrow):
        return DataType.BOOL
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return DataType.STRING
    if pa.types.is_timestamp(arrow):
        return DataType.TIME
    if pa.types.is_date(arrow):
        return DataType.DATE
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        of = data_type(arrow.value_type)
        return DataType.LIST if of in NUMBERS else DataType.TEXTS if of is DataType.STRING else DataType.OTHER
    if pa.types.is_map(arrow) and _element(arrow) is not None:
        return DataType.MAP
    return DataType.OTHER


_DURATION, _CLOCK = "length of time", "time of day"
_ADVICE = {
    _DURATION: "make it a number first, such as seconds (in pandas column.dt.total_seconds())",
    _CLOCK: "make it a number or a text first (in pandas column.astype(str))",
}
_AS_TIME = {
    _DURATION: "a length of time is not an instant: add it to a date, or make whole numbers of it "
    "(in pandas column // pd.Timedelta('1us')) and pass time_unit='us'",
    _CLOCK: "a time of day has no date: combine it with the date "
    "(in pandas pd.to_datetime(date.astype(str) + ' ' + time.astype(str)))",
}


def _kind(arrow: pa.DataType) -> str:
    """A type that predicates do not know, in words."""
    if pa.types.is_duration(arrow):
        return _DURATION
    if pa.types.is_time(arrow):
        return _CLOCK
    return "struct" if pa.types.is_struct(arrow) else DataType.OTHER.value


def _element(arrow: pa.DataType) -> DataType | None:
    """The type of what is in lists and maps, where predicates can use it."""
    if pa.types.is_map(arrow):
        key, of = data_type(arrow.key_type), _kept_type(data_type(arrow.item_type))
        return of if key in (DataType.STRING, DataType.INT, DataType.BOOL) and of in PLAIN else None
    if data_type(arrow) in (DataType.LIST, DataType.TEXTS):
        return _kept_type(data_type(arrow.value_type))
    return None


def _checked_lacks(
    lacks: Mapping[str, Sequence[str]], names: list[str], type: str | None
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(lacks, Mapping) or any(isinstance(each, str) for each in lacks.values()):
        raise DataError(f"lacks={lacks!r} is not a valid value", hint="for example lacks={'Login': ['amount', 'card']}")
    if lacks and type is None:
        raise DataError("lacks lists attributes per event type, and the stream has no types", hint="pass type='...'")
    for attribute in (name for attributes in lacks.values() for name in attributes):
        if attribute not in names:
            _raise_missing("lacks", attribute, names)
    return tuple((name, tuple(sorted(set(lacks[name])))) for name in sorted(lacks))


def _raise_in_index(role: str, name: str, schema: pa.Schema) -> None:
    """An error if the column that is wanted is the index of a pandas frame, which is not read."""
    index = json.loads((schema.metadata or {}).get(INDEX, "[]"))
    if name in index:
        raise DataError(f"no column '{name}' for the {role}: it is the frame's index", hint="pass events.reset_index()")
    if role == "time" and index == [""]:
        message = f"no column '{name}' for the time, but the frame's index holds times"
        raise DataError(message, hint=f"pass events.reset_index(names='{name}')")


def _raise_missing(
    role: str, name: str, names: Sequence[str], likely: Sequence[str] | None = None, only: str | None = None
) -> None:
    """An error that proposes the nearest of the likely names, or the only column that could be meant."""
    names = [each for each in names if not each.startswith(f"__{ROW}")]  # made for tiebreak="row"
    guess = closest(name, names if likely is None else likely) or only
    hint = f"did you mean {role}='{guess}'?" if guess else f"the columns are {', '.join(names)}"
    if not names:
        hint = "the table has no columns"
    hint += " (pass type=None for an untyped stream)" if role == "type" else ""
    raise DataError(f"no column '{name}' for the {role}; {hint}")
