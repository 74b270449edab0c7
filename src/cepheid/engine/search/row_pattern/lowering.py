"""Conditions on the path as expressions over slots, which the one compiler of conditions takes (`values/compiled.py`).

A row that a condition names (FIRST, LAST, PREV, NEXT, a label) is a slot that the search fills, and what it reads there
is a column that is computed for all rows beforehand. Aggregates, the label of a row and the number of the match are
numbers that the search keeps. Times and lengths of time are microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.search.row_pattern import path_state as j
from cepheid.engine.search.row_pattern.columns import read
from cepheid.engine.values.columnwise import value as column_of
from cepheid.engine.values.compiled import Fragment
from cepheid.engine.values.operators import whole
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES as EVERYWHERE
from cepheid.language.evaluate import TAKING_TEXTS
from cepheid.language.functions import find_function
from cepheid.language.match_recognize import bound as b
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of
from cepheid.language.whole import LEAST

# What a value is here: a whole number, a number, a truth value, an instant, a time that a clock shows, a length of
# time, a string, a decimal.
WHOLE, REAL, TRUTH, TIME, WALL, LENGTH = "whole", "real", "truth", "time", "wall", "length"
STRING, NULL, DECIMAL = "string", "null", "decimal"
_TYPES = {REAL: DataType.FLOAT, TRUTH: DataType.BOOL, STRING: DataType.STRING, DECIMAL: DataType.DECIMAL}
_KINDS = {DataType.INT: WHOLE, DataType.FLOAT: REAL, DataType.BOOL: TRUTH, DataType.STRING: STRING}
_CHOOSING = {"case": "case", "if": "case", "iff": "case", "coalesce": "coalesce", "nvl": "coalesce"}
_CHOOSING |= {"ifnull": "coalesce"}
_LISTS = ("array_agg", "collect_list")
_STRICT = frozenset({"||", "add months", "cast", "in zone", "struct field"})  # of what clauses alone call
_SUMS = {(WHOLE, WHOLE): WHOLE, (LENGTH, LENGTH): LENGTH, (TIME, LENGTH): TIME, (WALL, LENGTH): WALL}
_DIFFERENCES = {**_SUMS, (TIME, TIME): LENGTH, (WALL, WALL): LENGTH}

Lowered = tuple[s.Expression, str]  # with what kind of value it is


class UnfitError(Exception):
    """A condition that has no such form."""


def merged(expression: s.Expression) -> s.Expression:
    """Functions of values of one and the same row, as one expression at that row.

    >>> price = b.Navigate(b.Column("price"), frozenset({"A"}))
    >>> merged(s.Arithmetic("*", price, s.Literal(2)))
    Navigate(inner=Arithmetic(operator='*', left=Column(name='price'), right=Literal(value=2), ...), ...)
    """
    if isinstance(expression, s.Literal | b.Navigate | b.Aggregated | b.MatchNumber | b.SequenceNumber):
        return expression
    found = s.rebuild(_label_by_label(expression), merged)
    places = {_where(part) for part in s.children(found) if not isinstance(part, s.Literal)}
    if not _is_strict(found) or len(places) != 1 or None in places:
        return found
    first = next(part for part in s.children(found) if isinstance(part, b.Navigate))
    return replace(first, inner=s.rebuild(found, lambda part: part.inner if isinstance(part, b.Navigate) else part))


def _label_by_label(expression: s.Expression) -> s.Expression:
    """`array_agg(CLASSIFIER()) = ARRAY['A', 'B']` as a condition on the length of the path and on each label.

    To compare them as lists would take as long as the path is, for each of its rows. There is at least one row.
    """
    match expression:
        case s.Comparison("=" | "!=", b.Aggregated(labels=None) as found, s.Call(function="array") as constants):
            plain = found.function in _LISTS and not (found.distinct or found.filtered or found.order or found.final)
            wanted = constants.arguments
            named = all(isinstance(each, s.Literal) and isinstance(each.value, str) for each in wanted)
            if plain and named and wanted and found.arguments == (b.RowLabel(),):
                alike = [s.Comparison("=", b.Aggregated("count", ()), s.Literal(len(wanted)))]
                for place, label in enumerate(wanted):
                    alike.append(s.Comparison("=", b.Navigate(b.RowLabel(), first=True, offset=place), label))
                equal = s.And(tuple(alike))
                return equal if expression.operator == "=" else s.Not(equal)
    return expression


def _is_strict(node: s.Expression) -> bool:
    """Is it NULL where one of its parts is?"""
    if not isinstance(node, s.Call):
        return isinstance(node, s.Arithmetic | s.Comparison | s.Negative | s.Not)
    function = find_function(node.function)
    return node.function in _STRICT or (function is not None and function.strict and not function.user)


def _where(expression: s.Expression) -> tuple[object, ...] | None:
    if not isinstance(expression, b.Navigate) or any(
        isinstance(n, b.RowLabel | b.MatchNumber) for n in s.walk(expression)
    ):
        return None
    return (expression.labels, expression.first, expression.offset, expression.shift, expression.final)


class History(NamedTuple):
    """What an aggregate of a condition in Python reads: columns, or labels, of the rows in a set of labels."""

    group: int
    columns: tuple[str, ...]
    labelled: bool
    once: bool  # neither the order of the values nor how often each occurs matters
    most: int  # values of longer ones need not be told apart; 0: there is no such limit


@dataclass(frozen=True)
class Seen:
    """What the conditions of each label read of the path, besides what they ask for."""

    reads: tuple[frozenset[tuple[int, str]], ...]  # slots of rows, and columns
    numbers: tuple[bool, ...]  # do they read the number of the match?
    values: dict[str, pa.Array]  # of the columns
    sources: dict[str, s.Expression] = field(default_factory=dict)  # what the columns are made of
    histories: tuple[tuple[History, ...], ...] = ()  # per label: what conditions in Python aggregate
    opaque: bool = False  # do some conditions run as Python functions of the whole path?


@dataclass
class Lowering:
    """Makes expressions of conditions; what the search has to hand over is collected on the way."""

    table: pa.Table
    labels: tuple[str, ...]
    text: str
    columns: dict[s.Expression, tuple[str, str]] = field(default_factory=dict)  # the name and the kind of each
    values: dict[str, pa.Array] = field(default_factory=dict)  # by these names
    sets: list[b.Labels] = field(default_factory=lambda: [None])
    rows: list[tuple[int, ...]] = field(default_factory=list)  # the slots of `at`
    aggregates: list[tuple[int, int, int, str]] = field(default_factory=list)
    asks: list[tuple[int, ...]] = field(default_factory=list)  # of the condition at hand, see judge.py
    fragments: dict[s.Expression, Fragment] = field(default_factory=dict)  # of what the search keeps
    slots: dict[str, int] = field(default_factory=dict)  # where it puts that
    reads: set[tuple[int, str]] = field(default_factory=set)  # of the condition at hand, see `Seen`
    histories: dict[History, None] = field(default_factory=dict)
    numbers: bool = False
    counted: int = j.FIXED  # how many whole numbers the search hands over

    @property
    def schema(self) -> Schema:
        """What the columns are."""
        named = tuple((name, _TYPES.get(kind, DataType.INT)) for name, kind in self.columns.values())
        digits = [(name, self.values[name].type) for name, kind in self.columns.values() if kind == DECIMAL]
        return Schema(
            named,
            named[0][0] if named else "",
            decimals=tuple((name, (kind.precision, kind.scale)) for name, kind in digits),
        )

    def lowered(self, condition: s.Expression) -> s.Expression:
        """A condition as an expression; UnfitError if it has no such form."""
        found, kind = self.value(condition)
        if kind not in (TRUTH, NULL):
            raise UnfitError
        parts = list(s.walk(found))
        texts = any(isinstance(part, s.PathValue) and part.kind is DataType.STRING for part in parts)
        if texts and any(isinstance(part, s.Call) and part.function not in _CHOOSING for part in parts):
            raise UnfitError  # of such a text only its rank is known
        if not self.columns and any(isinstance(part, s.Call) for part in parts):
            raise UnfitError
        return found

    def value(self, expression: s.Expression) -> Lowered:
        match expression:
            case s.Literal(value=value):
                return _constant(value)
            case b.MatchNumber():
                self.numbers = True
                return self.kept("number", DataType.INT, (f"counted[{j.NUMBER}]", "False")), WHOLE
            case b.SequenceNumber():
                return self.aggregate(b.Aggregated("count", ()))
            case b.Aggregated():
                return self.aggregate(expression)
            case b.Navigate():
                return self.navigate(expression)
            case b.Column() | b.RowLabel():
                raise UnfitError
        return self.apply(expression)

    def kept(self, name: str, kind: DataType, fragment: Fragment) -> s.Expression:
        node = s.PathValue(name, kind)
        self.fragments[node] = fragment
        return node

    def note(self, condition: s.Expression) -> None:
        """Notes what a condition reads that runs as Python."""
        longest: dict[int, int] = {}  # of lists that are compared with a list of constants, by the aggregate
        for node in s.walk(condition):
            match node:
                case s.Comparison(left=b.Aggregated() as found, right=s.Call(function="array", arguments=constants)):
                    every = found.function in _LISTS and not (found.distinct or found.filtered)
                    if every and found.arguments == (b.RowLabel(),):  # no label is NULL, which lists may leave out
                        longest[id(found)] = len(constants)
                case b.MatchNumber():
                    self.numbers = True
                case b.SequenceNumber():
                    self.aggregate(b.Aggregated("count", ()))
                case b.Navigate(inner=inner):
                    place = (self.group(node.labels), int(node.first), node.offset, node.shift)
                    for name in b.columns_of(inner) or ("",):
                        self.at_row(j.ASK_ROW, place, self.raw(name))
                    if any(isinstance(part, b.RowLabel) for part in s.walk(inner)):
                        self.label_at(place)
                case b.Aggregated():
                    names = tuple(self.raw(name) for name in sorted(b.columns_of(node)))
                    labelled = any(isinstance(part, b.RowLabel) for part in s.walk(node))
                    once = node.distinct and node.function in ("count", "min", "max")
                    most = longest.get(id(node), 0)
                    self.histories[History(self.group(node.labels), names, labelled, once, most)] = None

    def raw(self, name: str) -> str:
        """A column of the table as it is; without a name, one that is the same in all rows."""
        key = f"raw {name}"
        if key not in self.values:
            self.values[key] = _told_apart(self.table.column(name)) if name else pa.nulls(self.table.num_rows)
        return key

    def column(self, inner: s.Expression) -> tuple[str, str]:
        """The values of an expression of one row, for every row: the name of a column, and what they are."""
        if any(isinstance(part, b.RowLabel | b.MatchNumber) for part in s.walk(inner)):
            raise UnfitError
        if inner not in self.columns:
            values = row_values(inner, self.table, self.text)
            kind = kind_of_type(values.type)
            name = f"column {len(self.columns)}"
            self.values[name] = _plain(values, kind)
            self.columns[inner] = name, kind
        return self.columns[inner]

    def group(self, labels: b.Labels) -> int:
        if labels not in self.sets:
            self.sets.append(labels)
        return self.sets.index(labels)

    def ask(self, *numbers: int) -> None:
        asked = (*numbers, *[0] * (6 - len(numbers)))
        if asked not in self.asks:
            self.asks.append(asked)

    def navigate(self, node: b.Navigate) -> Lowered:
        place = (self.group(node.labels), int(node.first), node.offset, node.shift)
        if isinstance(node.inner, b.RowLabel):
            return self.label_at(place), STRING
        name, kind = self.column(node.inner)
        return self.at_row(j.ASK_ROW, place, name), kind

    def label_at(self, place: tuple[int, ...]) -> s.Expression:
        """The label of a row that the search finds."""
        key = f"label at {place}"
        slot = self.slot(key, 1)
        self.ask(j.ASK_LABEL, slot, *place)
        return self.kept(key, DataType.STRING, (f"literal[counted[{slot}]]", f"counted[{slot}] < 0"))

    def at_row(self, what: int, place: tuple[int, ...], name: str) -> s.Expression:
        """A column at a row that the search finds."""
        if (what, *place) not in self.rows:
            self.rows.append((what, *place))
        slot = self.rows.index((what, *place))
        self.ask(what, slot, *place)
        self.reads.add((slot, name))
        return s.Attribute(s.Reference(str(slot)), name)

    def slot(self, name: str, size: int) -> int:
        """Where the search puts a number that it keeps."""
        if name not in self.slots:
            self.slots[name] = self.counted
            self.counted += size
        return self.slots[name]

    def aggregate(self, node: b.Aggregated, limit: int | None = None) -> Lowered:
        """What the search keeps; with a limit, values above it need not be told apart."""
        if node.order or node.filtered or (node.distinct and node.function != "count"):
            raise UnfitError
        if node.distinct:
            return self.distinct(node)
        if node.function in EVERYWHERE and "spread" in EVERYWHERE[node.function].keeps:
            return self.spread(node)
        if node.function not in ("count", "sum", "avg", "mean", "min", "max"):
            raise UnfitError
        group, name, kind, keep = self.group(node.labels), "", WHOLE, j.KEEP_ROWS
        if node.arguments:
            name, kind = self.column(node.arguments[0])
            keep = {"min": j.KEEP_MIN, "max": j.KEEP_MAX, "count": j.KEEP_MIN}.get(node.function, j.KEEP_SUM)
        if node.function != "count":
            self.check_kept(name, kind, keep)
        index, slot = self.keep((keep, group, int(kind == REAL), name))
        if node.function in ("min", "max"):
            return self.at_row(j.ASK_BEST, (index,), name), kind
        if limit is not None and node.function == "sum" and (pc.min(self.values[name]).as_py() or 0) < 0:
            limit = None
        bounded = (0, 0) if limit is None else (1, limit)
        self.ask(j.ASK_KEPT, slot, index, int(node.function != "sum"), *bounded)
        value, empty = f"running[{index}]" if kind == REAL else f"counted[{slot + 1}]", f"counted[{slot}] == 0"
        key = f"{node.function} {index}"
        if node.function == "count":
            return self.kept(key, DataType.INT, (f"counted[{slot}]", "False")), WHOLE
        if node.function in ("avg", "mean"):
            mean = f"({value} / counted[{slot}] if counted[{slot}] != 0 else nan)"
            return self.kept(key, DataType.FLOAT, (mean, empty)), REAL
        return self.kept(key, DataType.FLOAT if kind == REAL else DataType.INT, (value, empty)), kind

    def distinct(self, node: b.Aggregated) -> Lowered:
        """How many different values there are, if these are so few that their set is a number."""
        name, kind = self.column(node.arguments[0])
        if kind not in (WHOLE, STRING, TRUTH):
            raise UnfitError
        values = self.values[name].dictionary_encode()
        if len(values.dictionary) > j.MOST_IN_SET:
            raise UnfitError
        codes = s.Call("code", (node.arguments[0],))  # no function of that name: the key of a column
        if codes not in self.columns:
            self.columns[codes] = f"column {len(self.columns)}", WHOLE
            self.values[self.columns[codes][0]] = values.indices.cast(pa.int64())
        index, slot = self.keep((j.KEEP_SET, self.group(node.labels), 0, self.columns[codes][0]))
        self.ask(j.ASK_KEPT, slot, index, 1)
        return self.kept(f"distinct {index}", DataType.INT, (f"counted[{slot}]", "False")), WHOLE

    def spread(self, node: b.Aggregated) -> Lowered:
        """How far values lie apart: the search keeps their mean, and next to it their spread."""
        inner = node.arguments[0]
        name, kind = self.column(inner)
        if kind == WHOLE:
            name, kind = self.column(s.Arithmetic("*", inner, s.Literal(1.0)))
        if kind != REAL:
            raise UnfitError
        for keep in (j.KEEP_MEAN, j.KEEP_SPREAD):
            index, slot = self.keep((keep, self.group(node.labels), 1, name))
            self.ask(j.ASK_KEPT, slot, index, 1)
        registers = {"spread": f"running[{index}]", "count": f"counted[{slot}]", "known": f"counted[{slot}]"}
        source = EVERYWHERE[node.function].source(registers)
        return self.kept(f"{node.function} {index}", DataType.FLOAT, source), REAL

    def keep(self, wanted: tuple[int, int, int, str]) -> tuple[int, int]:
        """An aggregate that the search keeps, and where it puts its numbers."""
        if wanted not in self.aggregates:
            self.aggregates.append(wanted)
        index = self.aggregates.index(wanted)
        return index, self.slot(f"aggregate {index}", 2)

    def check_kept(self, name: str, kind: str, keep: int) -> None:
        """UnfitError for aggregates that the search cannot keep: of other values, and sums that may pass 64 bits."""
        if kind in (TRUTH, NULL) or (keep == j.KEEP_SUM and kind not in (WHOLE, REAL)):
            raise UnfitError
        if keep == j.KEEP_SUM and kind == WHOLE:
            ends = pc.min_max(self.values[name]).as_py()
            largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
            if largest * max(self.table.num_rows, 1) > -LEAST - 1:
                raise UnfitError

    def apply(self, node: s.Expression) -> Lowered:
        if isinstance(node, s.Call) and node.function in _CHOOSING:
            return self.chosen(_CHOOSING[node.function], node.arguments)
        limit = _limit(node)
        parts = [
            self.aggregate(part, limit) if isinstance(part, b.Aggregated) else self.value(part)
            for part in s.children(node)
        ]
        values, kinds = tuple(value for value, _ in parts), [kind for _, kind in parts]
        match node:
            case s.And() | s.Or() | s.Not():
                if not set(kinds) <= {TRUTH, NULL}:
                    raise UnfitError
                return _with(node, values), TRUTH
            case s.IsNull():
                return _with(node, values), TRUTH
            case s.Membership() | s.Comparison() | s.Between():
                for kind in kinds[1:]:
                    _check_comparable(kinds[0], kind)
                return _with(node, values), TRUTH
            case s.Negative() if kinds[0] in (WHOLE, REAL, LENGTH):
                return s.Negative(values[0]), kinds[0]
            case s.Arithmetic(operator=sign):
                return _arithmetic(sign, values, kinds)
            case s.Call(function="isnull" | "isnotnull" as name):
                return s.IsNull(values[0], negated=name == "isnotnull"), TRUTH
            case s.Call(function="<=>"):
                return _same(values, kinds), TRUTH
            case s.Call(function="abs") if kinds[0] in (WHOLE, REAL, LENGTH):
                return s.Call("abs", values), kinds[0]
            case s.Call():
                return self.called(node, values, kinds)
        raise UnfitError

    def chosen(self, name: str, arguments: tuple[s.Expression, ...]) -> Lowered:
        parts = [self.value(argument) for argument in arguments]
        tests = range(0, len(parts) - 1, 2) if name == "case" else ()
        if any(parts[place][1] not in (TRUTH, NULL) for place in tests):
            raise UnfitError
        kinds = {kind for place, (_, kind) in enumerate(parts) if place not in tests} - {NULL}
        if (len(kinds) > 1 and kinds != {WHOLE, REAL}) or DECIMAL in kinds:
            raise UnfitError
        kind = REAL if REAL in kinds else next(iter(kinds), NULL)
        return s.Call(name, tuple(value for value, _ in parts)), kind

    def called(self, node: s.Call, values: tuple[s.Expression, ...], kinds: list[str]) -> Lowered:
        """A function of the library, or of the user's, of values that are the same in all languages."""
        own = find_function(node.function)
        if own is None or node.function in ("cast", "case") or node.target is not None:
            raise UnfitError
        if not set(kinds) <= {WHOLE, REAL, TRUTH, STRING} or not own.least <= len(values) <= own.most:
            raise UnfitError
        if own.name in TAKING_TEXTS and not own.user and set(kinds) != {STRING}:
            raise UnfitError  # their texts are those of the types that the columns have
        call = s.Call(node.function, values)
        try:
            found = type_of(call, self.schema)
        except QueryError:
            raise UnfitError from None
        if found not in _KINDS:
            raise UnfitError
        return call, _KINDS[found]


def _limit(node: s.Expression) -> int | None:
    """The largest number that a count or a sum is compared with; None: it is compared with something else, too.

    A count above it stays above it on every path that goes on.
    """
    if not isinstance(node, s.Comparison | s.Between | s.Membership):
        return None
    rest = [part for part in s.children(node) if not isinstance(part, b.Aggregated)]
    values = [part.value for part in rest if isinstance(part, s.Literal)]
    numbers = [value for value in values if isinstance(value, int | float) and abs(value) < 2**53]
    one = len(rest) == len(s.children(node)) - 1
    return ceil(max(numbers)) if one and len(numbers) == len(rest) else None


def _told_apart(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column, or numbers in their place where Arrow does not compare such values."""
    try:
        column.slice(0, 0).dictionary_encode()
    except pa.ArrowNotImplementedError:
        return pa.array(np.arange(len(column)))
    return read(column)


def _constant(value: object) -> Lowered:
    if value is None:
        return s.Literal(None), NULL
    if isinstance(value, bool):
        return s.Literal(value), TRUTH
    if isinstance(value, int) and -LEAST > value > LEAST:
        return s.Literal(value), WHOLE
    for kind, named in ((float, REAL), (Decimal, DECIMAL), (str, STRING)):
        if isinstance(value, kind):
            return s.Literal(value), named
    if isinstance(value, timedelta):
        return s.Literal(value // timedelta(microseconds=1)), LENGTH
    if isinstance(value, date):
        instant = isinstance(value, datetime) and value.tzinfo is not None
        at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        number = pa.scalar(at, pa.timestamp("us", "UTC" if instant else None)).cast(pa.int64()).as_py()
        return s.Literal(number), TIME if instant else WALL
    raise UnfitError


def _with(node: s.Expression, values: tuple[s.Expression, ...]) -> s.Expression:
    """The same operator of other values."""
    rest = iter(values)
    return s.rebuild(node, lambda _: next(rest))


def _check_comparable(left: str, right: str) -> None:
    if NULL in (left, right) or left == right or {left, right} <= {WHOLE, REAL, DECIMAL}:
        return
    raise UnfitError


def _same(values: tuple[s.Expression, ...], kinds: list[str]) -> s.Expression:
    """IS NOT DISTINCT FROM."""
    _check_comparable(*kinds)
    known = tuple(s.IsNull(value, negated=True) for value in values)
    unknown = tuple(s.IsNull(value) for value in values)
    return s.Or((s.And(unknown), s.And((*known, s.Comparison("=", *values)))))


def _arithmetic(name: str, values: tuple[s.Expression, ...], kinds: list[str]) -> Lowered:
    left, right = kinds
    numbers = {left, right} <= {WHOLE, REAL, DECIMAL}
    if numbers and REAL in kinds and name != "div":
        return s.Arithmetic("/" if name == "whole /" else name, *values), REAL
    if (left, right) == (WHOLE, WHOLE):
        if name == "/":
            return s.Arithmetic("/", *values), REAL
        return s.Arithmetic("div" if name == "whole /" else name, *values), WHOLE
    known = {"+": _SUMS, "-": _DIFFERENCES}.get(name, {}).get((left, right))
    if known is None:
        raise UnfitError
    return s.Arithmetic(name, *values), known


def row_values(inner: s.Expression, table: pa.Table, text: str) -> pa.Array:
    """An expression of one row, for every row."""

    def resolve(node: s.Expression) -> Any:
        if isinstance(node, b.Column):
            return read(table.column(node.name))
        raise UnfitError

    return whole(column_of(inner, resolve, text), table.num_rows)


def kind_of_type(kind: pa.DataType) -> str:
    """What values of an Arrow type are; UnfitError if conditions have no form of them."""
    tests: list[tuple[Callable[[pa.DataType], bool], str]] = [
        (pa.types.is_boolean, TRUTH),
        (pa.types.is_integer, WHOLE),
        (pa.types.is_floating, REAL),
        (pa.types.is_decimal, DECIMAL),
        (pa.types.is_string, STRING),
        (pa.types.is_null, NULL),
        (pa.types.is_date32, WALL),
        (lambda each: pa.types.is_timestamp(each) and each.unit != "ns" and each.tz is None, WALL),
        (lambda each: pa.types.is_timestamp(each) and each.unit != "ns", TIME),
        (lambda each: pa.types.is_duration(each) and each.unit != "ns", LENGTH),
    ]
    for test, named in tests:
        if test(kind):
            return named
    raise UnfitError


def _plain(values: pa.Array, kind: str) -> pa.Array:
    """Values as the compiler's columns have them."""
    if kind in (TIME, WALL):
        zone = values.type.tz if pa.types.is_timestamp(values.type) else None
        return values.cast(pa.timestamp("us", zone)).cast(pa.int64())
    if kind == LENGTH:
        return values.cast(pa.duration("us")).cast(pa.int64())
    if kind == REAL:
        return values.cast(pa.float64())
    return values.cast(pa.int64()) if kind in (WHOLE, NULL) else values
