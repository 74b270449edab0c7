"""Conditions that look at the path, as code for the stack machine in judge.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.search.preferred import judge as j
from cepheid.engine.search.preferred.columnwise import evaluate, read, whole
from cepheid.language.library.decimal_columns import as_doubles
from cepheid.language.library.decimals import precision_of
from cepheid.language.library.operators import calculate
from cepheid.language.match_recognize.bound import (
    Aggregated,
    Apply,
    Bound,
    Column,
    Constant,
    Labels,
    MatchNumber,
    Navigate,
    RowLabel,
    SequenceNumber,
    walk,
)
from cepheid.language.match_recognize.functions import FUNCTIONS
from cepheid.language.match_recognize.scalars import OPERATORS
from cepheid.language.whole import LEAST

# What a value is to the machine: a whole number, a number, a truth value, an instant, a time that a clock shows, a
# length of time, a string.
WHOLE, REAL, TRUTH, TIME, WALL, LENGTH = "whole", "real", "truth", "time", "wall", "length"
STRING, NULL = "string", "null"
# Decimals of so few digits compare as their nearest floats do. Sums of them would not be exact, so there are none.
DECIMAL, DIGITS = "decimal", 15
_COMPARE = {"=": j.EQ_I, "!=": j.NE_I, "<": j.LT_I, "<=": j.LE_I, ">": j.GT_I, ">=": j.GE_I}
_SUMS = {"+": j.ADD_I, "-": j.SUB_I, "*": j.MUL_I}
_STRICT = frozenset(set(OPERATORS) - {"and", "or", "is null", "<=>", "in", "case"}) | {"cast", "zoned"}


Bounds: TypeAlias = tuple[Any, Any]  # the least and the greatest number that a value may be
EXACT = 2**53  # whole numbers up to here are doubles, too


class UnfitError(Exception):
    """A condition that the machine cannot judge."""


def merged(expression: Bound) -> Bound:
    """Functions of values of one and the same row, as one expression at that row.

    >>> price = Navigate(Column("price"), frozenset({"A"}))
    >>> merged(Apply("*", (price, Constant(2))))
    Navigate(inner=Apply(function='*', arguments=(Column(name='price'), Constant(value=2)), target=None, ...), ...)
    """
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(merged(argument) for argument in expression.arguments)
    known = FUNCTIONS.get(expression.function)
    strict = expression.function in _STRICT or (known is not None and known.strict)
    where = {_where(argument) for argument in arguments if not isinstance(argument, Constant)}
    if strict and len(where) == 1 and None not in where:
        inner = tuple(a.inner if isinstance(a, Navigate) else a for a in arguments)
        first = next(argument for argument in arguments if isinstance(argument, Navigate))
        joined = Apply(expression.function, inner, expression.target, expression.span)
        return Navigate(joined, first.labels, first.first, first.offset, first.shift, first.final)
    return Apply(expression.function, arguments, expression.target, expression.span)


def _where(expression: Bound) -> tuple[Any, ...] | None:
    if not isinstance(expression, Navigate) or any(isinstance(n, RowLabel | MatchNumber) for n in walk(expression)):
        return None
    return (expression.labels, expression.first, expression.offset, expression.shift, expression.final)


@dataclass
class Coder:
    """Makes code of conditions; what the code reads is collected on the way."""

    table: pa.Table
    labels: tuple[str, ...]
    text: str
    strings: dict[str, int]  # the rank of every string that a condition may see
    code: list[list[int]] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    real_constants: list[float] = field(default_factory=list)
    ints: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]] = field(default_factory=list)
    floats: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]] = field(default_factory=list)
    sets: list[Labels] = field(default_factory=lambda: [None])
    aggregates: list[tuple[int, int, int, int]] = field(default_factory=list)
    slots: dict[Bound, tuple[str, int, Bounds]] = field(default_factory=dict)
    stack: list[Bounds] = field(default_factory=list)  # between which numbers each value on the machine's stack lies

    def emit(self, operation: int, *numbers: int) -> None:
        self.code.append([operation, *numbers, *[0] * (5 - len(numbers))])

    def group(self, labels: Labels) -> int:
        if labels not in self.sets:
            self.sets.append(labels)
        return self.sets.index(labels)

    def slot(self, inner: Bound) -> tuple[str, int, Bounds]:
        """The values of an expression of one row, for every row: what they are, and where they lie."""
        if inner not in self.slots:
            values = row_values(inner, self.table, self.text)
            kind = DECIMAL if _has_few_digits(values) else kind_of_type(values.type)
            nulls = values.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
            if kind in (REAL, DECIMAL):
                self.floats.append((pc.fill_null(as_doubles(values), 0.0).to_numpy(zero_copy_only=False), nulls))
                self.slots[inner] = (kind, len(self.floats) - 1, ends_of(self.floats[-1][0]))
            else:
                self.ints.append((as_whole(values, kind, self.strings), nulls))
                self.slots[inner] = (kind, len(self.ints) - 1, ends_of(self.ints[-1][0]))
        return self.slots[inner]

    def push(self, bounds: Bounds) -> None:
        self.stack.append(bounds)

    def combined(self, operation: str) -> None:
        """The bounds of an operator on the two values on top; UnfitError where the machine would overflow."""
        right, left = self.stack.pop(), self.stack.pop()
        self.push(bounds_of(operation, left, right))

    def either(self, tests: int = 0) -> None:
        """The bounds of one of the two values on top, behind so many tests."""
        right, left = self.stack.pop(), self.stack.pop()
        del self.stack[len(self.stack) - tests :]
        self.push((min(left[0], right[0]), max(left[1], right[1])))

    def add(self, expression: Bound) -> str:
        """Code that leaves the value of an expression on the stack; what kind of value it is."""
        match expression:
            case Constant(value=value):
                return self.constant(value)
            case MatchNumber():
                self.emit(j.NUMBER)
                self.push((1, self.table.num_rows + 1))
                return WHOLE
            case SequenceNumber():
                return self.aggregate(Aggregated("count", ()))
            case Aggregated():
                return self.aggregate(expression)
            case Navigate():
                return self.navigate(expression)
            case Apply():
                return self.apply(expression)
        raise UnfitError

    def constant(self, value: Any) -> str:
        if value is None:
            self.emit(j.NOTHING)
            self.push((0, 0))
            return NULL
        if isinstance(value, float | Decimal):
            if isinstance(value, Decimal) and precision_of(value)[0] > DIGITS:
                raise UnfitError
            self.real_constants.append(float(value))
            self.emit(j.CONST_F, len(self.real_constants) - 1)
            self.push((float(value), float(value)))
            return REAL if isinstance(value, float) else DECIMAL
        kind, number = _constant(value, self.strings)
        self.push((number, number))
        self.constants.append(number)
        self.emit(j.CONST_I, len(self.constants) - 1)
        return kind

    def navigate(self, node: Navigate) -> str:
        place = (self.group(node.labels), int(node.first), node.offset, node.shift)
        if isinstance(node.inner, RowLabel):
            self.emit(j.NAV_LABEL, 0, *place)
            self.push((0, 0))
            return STRING
        if any(isinstance(part, RowLabel | MatchNumber) for part in walk(node.inner)):
            raise UnfitError
        kind, slot, bounds = self.slot(node.inner)
        self.push(bounds)
        self.emit(j.NAV_F if kind in (REAL, DECIMAL) else j.NAV_I, slot, *place)
        return kind

    def aggregate(self, node: Aggregated) -> str:
        group = self.group(node.labels)
        if node.distinct or node.function not in ("count", "sum", "avg", "mean", "min", "max"):
            raise UnfitError
        if not node.arguments:
            self.emit(j.COUNT, self.kept(j.KEEP_ROWS, group, 0, 0))
            self.push((0, self.table.num_rows))
            return WHOLE
        if any(isinstance(part, RowLabel | MatchNumber) for part in walk(node.arguments[0])):
            raise UnfitError
        kind, slot, bounds = self.slot(node.arguments[0])
        real = int(kind in (REAL, DECIMAL))
        if node.function == "count":
            self.emit(j.COUNT, self.kept(j.KEEP_MIN, group, slot, real))
            self.push((0, self.table.num_rows))
            return WHOLE
        if node.function in ("min", "max"):
            if kind in (TRUTH, NULL):
                raise UnfitError
            kept = self.kept(j.KEEP_MIN if node.function == "min" else j.KEEP_MAX, group, slot, real)
            self.emit(j.SUM_F if real else j.SUM_I, kept)
            self.push(bounds)
            return kind
        if kind not in (WHOLE, REAL):
            raise UnfitError
        kept = self.kept(j.KEEP_SUM, group, slot, real)
        total = bounds_of("*", (0, self.table.num_rows), bounds)
        self.push(total if node.function == "sum" else bounds)
        if node.function == "sum":
            self.emit(j.SUM_F if real else j.SUM_I, kept)
            return kind
        self.emit(j.AVERAGE_F if real else j.AVERAGE_I, kept)
        return REAL

    def kept(self, *aggregate: int) -> int:
        wanted = (aggregate[0], aggregate[1], aggregate[2], aggregate[3])
        if wanted not in self.aggregates:
            self.aggregates.append(wanted)
        return self.aggregates.index(wanted)

    def apply(self, node: Apply) -> str:
        name, arguments = node.function, node.arguments
        if name in _COMPARE:
            return self.compare(_COMPARE[name], arguments)
        if name == "<=>":
            return self.compare(j.SAME_I, arguments)
        if name in _SUMS:
            return self.sums(name, arguments)
        if name in ("/", "whole /", "%"):
            return self.division(name, arguments)
        if name in ("and", "or"):
            self.truths(arguments)
            self.emit(j.AND if name == "and" else j.OR)
            self.either()
            return TRUTH
        if name == "not":
            self.truths(arguments)
            self.emit(j.NOT)
            return TRUTH
        if name in ("is null", "isnull"):
            self.add(arguments[0])
            self.emit(j.IS_NULL)
            return TRUTH
        if name == "in":
            for number, item in enumerate(arguments[1:]):
                self.compare(j.EQ_I, (arguments[0], item))
                if number:
                    self.emit(j.OR)
                    self.either()
            return TRUTH
        if name in ("case", "if", "iff"):
            return self.choose(arguments if len(arguments) % 2 else (*arguments, Constant(None)))
        if name in ("coalesce", "nvl", "ifnull"):
            return self.coalesce(arguments)
        if name in ("negative", "abs"):
            kind = self.add(arguments[0])
            if kind not in (WHOLE, REAL, LENGTH, DECIMAL):
                raise UnfitError
            whole_step, real_step = (j.NEG_I, j.NEG_F) if name == "negative" else (j.ABS_I, j.ABS_F)
            self.emit(real_step if kind in (REAL, DECIMAL) else whole_step)
            low, high = self.stack.pop()
            if low <= LEAST and kind not in (REAL, DECIMAL):
                raise UnfitError
            self.push((min(-high, low), max(-low, high)))
            return kind
        raise UnfitError

    def truths(self, arguments: tuple[Bound, ...]) -> None:
        for argument in arguments:
            if self.add(argument) not in (TRUTH, NULL):
                raise UnfitError

    def numbers(self, arguments: tuple[Bound, Bound], real: bool, decimals: bool = False) -> tuple[str, str]:
        """Two operands; with `real`, or if one is a number with a fraction, both are such."""
        left, right = self.add(arguments[0]), self.add(arguments[1])
        if decimals and {left, right} == {WHOLE, DECIMAL}:
            low, high = self.stack[-2 if left == WHOLE else -1]
            if low < -EXACT or high > EXACT:  # as doubles, whole numbers would lose digits
                raise UnfitError
        if decimals or REAL in (left, right):
            left, right = (REAL if kind == DECIMAL else kind for kind in (left, right))
        if real or REAL in (left, right):
            for below, kind in ((1, left), (0, right)):
                if kind not in (WHOLE, REAL, NULL):
                    raise UnfitError
                if kind == WHOLE:
                    self.emit(j.TO_FLOAT, below)
            return REAL, REAL
        return left, right

    def compare(self, step: int, arguments: tuple[Bound, ...]) -> str:
        left, right = self.numbers((arguments[0], arguments[1]), False, decimals=True)
        if left != right and NULL not in (left, right):
            raise UnfitError
        real = left == REAL
        self.either()
        if step == j.SAME_I:
            self.emit(j.SAME_F if real else j.SAME_I)
        else:
            self.emit(step + j.EQ_F - j.EQ_I if real else step)
        return TRUTH

    def sums(self, name: str, arguments: tuple[Bound, ...]) -> str:
        left, right = self.numbers((arguments[0], arguments[1]), False)
        step = _SUMS[name]
        self.combined(name if left != REAL else f"real {name}")
        if left == REAL:
            self.emit(step + j.ADD_F - j.ADD_I)
            return REAL
        self.emit(step)
        if NULL in (left, right):
            return right if left == NULL else left
        known = {(WHOLE, WHOLE): WHOLE} if name == "*" else {(WHOLE, WHOLE): WHOLE, (LENGTH, LENGTH): LENGTH}
        if name != "*":
            known |= {(TIME, LENGTH): TIME, (WALL, LENGTH): WALL}
        if name == "-":
            known |= {(TIME, TIME): LENGTH, (WALL, WALL): LENGTH}
        if (left, right) not in known:
            raise UnfitError
        return known[left, right]

    def division(self, name: str, arguments: tuple[Bound, ...]) -> str:
        left, right = self.numbers((arguments[0], arguments[1]), name == "/")
        self.combined("%" if left != REAL else "real %" if name == "%" else "real /")
        if left == REAL:
            self.emit(j.MOD_F if name == "%" else j.DIV_F)
            return REAL
        if (left, right) != (WHOLE, WHOLE):
            raise UnfitError
        self.emit(j.MOD_I if name == "%" else j.DIV_I)
        return WHOLE

    def choose(self, parts: tuple[Bound, ...]) -> str:
        if len(parts) == 1:
            return self.add(parts[0])
        self.truths((parts[0],))
        kinds = [self.add(parts[1])]
        kinds.append(self.choose(parts[2:]))
        self.either(tests=1)
        return self.unify(kinds, j.CHOOSE)

    def coalesce(self, parts: tuple[Bound, ...]) -> str:
        kind = self.add(parts[0])
        for part in parts[1:]:
            other = self.add(part)
            self.either()
            kind = self.unify([kind, other], j.COALESCE)
        return kind

    def unify(self, kinds: list[str], step: int) -> str:
        """A choice between the two values on top of the stack."""
        if REAL in kinds and WHOLE in kinds:
            self.emit(j.TO_FLOAT, 1 - kinds.index(WHOLE))
            kinds = [REAL, REAL]
        if REAL in kinds and DECIMAL in kinds:
            kinds = [REAL, REAL]
        known = [kind for kind in kinds if kind != NULL]
        if len(set(known)) > 1:
            raise UnfitError
        self.emit(step)
        return known[0] if known else NULL


def ends_of(values: npt.NDArray[Any]) -> Bounds:
    """The least and the greatest of some numbers."""
    return (values.min().item(), values.max().item()) if len(values) else (0, 0)


def bounds_of(operation: str, left: Bounds, right: Bounds) -> Bounds:
    """Between which numbers the results of an operator lie; UnfitError if the machine could not hold them all.

    Whole numbers must not pass 64 bits, and numbers with a fraction must not become NaN, which is NULL.

    >>> bounds_of("*", (-2, 3), (5, 7))
    (-14, 21)
    """
    endless = [math.inf in (*map(abs, bounds),) for bounds in (left, right)]
    if operation in ("real +", "real -", "real *", "+", "-", "*"):
        sign = operation[-1]
        if (all(endless) and sign != "*") or (any(endless) and sign == "*"):
            raise UnfitError
        found = [calculate(sign, one, other) for one in left for other in right]
        if None in found:
            raise UnfitError
        return min(found), max(found)
    if operation == "%":  # also the quotient of whole numbers
        if left[0] <= LEAST or right[0] <= LEAST:
            raise UnfitError
        return min(left[0], -left[1]), max(-left[0], left[1])
    if endless[0] and (operation == "real %" or endless[1]):
        raise UnfitError
    return -math.inf, math.inf


def row_values(inner: Bound, table: pa.Table, text: str) -> pa.Array:
    """An expression of one row, for every row."""

    def resolve(node: Bound) -> Any:
        if isinstance(node, Column):
            return read(table.column(node.name))
        raise UnfitError

    return whole(evaluate(inner, resolve, table.num_rows, text), table.num_rows)


def _has_few_digits(values: pa.Array) -> bool:
    """Are they decimals of few digits, whatever their type allows?"""
    if not pa.types.is_decimal(values.type):
        return False
    ends = pc.min_max(values).as_py()
    largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return bool(Decimal(largest).scaleb(values.type.scale) < 10**DIGITS and values.type.scale <= DIGITS)


def kind_of_type(kind: pa.DataType) -> str:
    """What values of an Arrow type are to the machine."""
    tests: list[tuple[Callable[[pa.DataType], bool], str]] = [
        (pa.types.is_boolean, TRUTH),
        (pa.types.is_integer, WHOLE),
        (pa.types.is_floating, REAL),
        (lambda each: pa.types.is_decimal(each) and each.precision <= DIGITS, DECIMAL),
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


def as_whole(values: pa.Array, kind: str, strings: dict[str, int]) -> npt.NDArray[np.int64]:
    """Values as whole numbers that compare as the values do."""
    if kind == STRING:
        encoded = values.dictionary_encode()
        ranks = np.array([strings[value] for value in encoded.dictionary.to_pylist()] + [0], np.int64)
        codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(ranks[codes])
    if kind == NULL:
        return np.zeros(len(values), np.int64)
    if kind in (TIME, WALL):
        zone = values.type.tz if pa.types.is_timestamp(values.type) else None
        values = values.cast(pa.timestamp("us", zone)).cast(pa.int64())
    elif kind == LENGTH:
        values = values.cast(pa.duration("us")).cast(pa.int64())
    return np.ascontiguousarray(pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False))


def _constant(value: Any, strings: dict[str, int]) -> tuple[str, int]:
    if isinstance(value, bool):
        return TRUTH, int(value)
    if isinstance(value, int) and abs(value) < 2**62:
        return WHOLE, value
    if isinstance(value, str):
        return STRING, strings[value]
    if isinstance(value, timedelta):
        return LENGTH, value // timedelta(microseconds=1)
    if isinstance(value, date):
        instant = isinstance(value, datetime) and value.tzinfo is not None
        at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        number = pa.scalar(at, pa.timestamp("us", "UTC" if instant else None)).cast(pa.int64()).as_py()
        return TIME if instant else WALL, number
    raise UnfitError
