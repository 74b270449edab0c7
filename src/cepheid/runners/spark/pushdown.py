"""Conditions on one event as Catalyst expressions, so that Spark drops irrelevant events before any byte moves.

The filter may keep too much, never too little: the engine tests everything again. What Spark would judge otherwise
than the engine (lower-casing of rare letters, the last bit of exp) is left to the engine.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.functions import find_function
from cepheid.language.library.dates import DAY
from cepheid.language.schema import DataType
from cepheid.language.typing import type_of
from cepheid.plan.operators import Takes
from cepheid.plan.physical import Plan
from cepheid.runners.spark.spelling import quoted

Column: TypeAlias = Any  # pyspark.sql.Column
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# NULL instead of an error where a result overflows or a divisor is zero
TRYING = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
COMPARISONS: dict[str, Callable[[Column, Column], Column]]
COMPARISONS = {"=": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}


class _Unknown(Exception):
    """An expression that Catalyst may judge otherwise than the engine, or not at all."""


def needed_events(plan: Plan, types: dict[str, Any]) -> Column | None:
    """True for the events that the plan's scan must see; None if that is all of them, or nothing can be said.

    `types` maps each column to its Spark type.
    """
    if plan.scan.every_event:
        return fixed_keys(plan.bound, types) if plan.exchange.keys else None
    parts = [component_filter(plan.bound, takes, types) for takes in plan.scan.takes]
    known = [part for part in parts if part is not None]
    return reduce(op.or_, known) if len(known) == len(parts) else None


def component_filter(bound: BoundQuery, takes: Takes, types: dict[str, Any]) -> Column | None:
    """True for every event that the component could take."""
    from pyspark.sql import functions as F

    component = takes.component
    parts: list[Column] = []
    if component.types is not None and bound.schema.type is not None:
        parts.append(F.col(quoted(bound.schema.type)).isin(*component.types))
    parts += conditions(takes.conditions, bound, types, component.any or bool(bound.schema.lacks))
    return reduce(op.and_, parts) if parts else None


def fixed_keys(bound: BoundQuery, types: dict[str, Any]) -> Column | None:
    """True for events with the values that equivalence tests fix, which every event of a match must have."""
    tests = [s.Comparison("=", s.Attribute(s.Reference(""), name), value) for name, value in bound.fixed]
    parts = conditions(tests, bound, types, any_null=bound.may_lack)
    return reduce(op.and_, parts) if parts else None


def conditions(
    expressions: Iterable[s.Expression], bound: BoundQuery, types: dict[str, Any], any_null: bool = False
) -> list[Column]:
    """Those of the conditions that Catalyst can test, as columns."""
    writer = _Writer(bound, types, any_null)
    found = []
    for expression in expressions:
        for written in (writer.condition, writer.in_ascii):
            try:
                found.append(written(expression))
                break
            except _Unknown:
                continue
    return found


class _Writer:
    """Writes conditions on one event as columns that are true wherever the engine says true."""

    def __init__(self, bound: BoundQuery, types: dict[str, Any], any_null: bool) -> None:
        from pyspark.sql import functions

        self.F, self.bound, self.types, self.any_null = functions, bound, types, any_null
        self.ascii = False  # may forms be used that are right for ASCII only?

    def condition(self, node: s.Expression) -> Column:
        match node:
            case s.And(operands=operands):
                return reduce(op.and_, self.testable(operands))
            case s.Or(operands=operands):
                return reduce(op.or_, [self.condition(part) for part in operands])
            case s.Literal(value=bool() as value):
                return self.F.lit(value)
            case s.Attribute(name=name) if self.bound.schema.type_of(name) is DataType.BOOL:
                return self.F.col(quoted(name))
            case s.IsNull():
                return self.null_test(node)
            case s.Comparison(operator=operator, left=left, right=right):
                return self.leaf(node, self.compared(operator, left, right))
            case s.Between(operand=operand, low=low, high=high, negated=False):
                inside = self.compared(">=", operand, low) & self.compared("<=", operand, high)
                return self.leaf(node, inside)
            case s.Between(operand=operand, low=low, high=high):
                outside = self.compared("<", operand, low) | self.compared(">", operand, high)
                return self.leaf(node, outside)
            case s.Membership(operand=operand, values=tuple() as members):
                return self.leaf(node, self.member(node, operand, members))
            case s.Call() | s.Not() if not self.any_null:
                return self.exact(node)
        raise _Unknown  # "keeps too much" under NOT would be "keeps too little"

    def in_ascii(self, node: s.Expression) -> Column:
        """True where the engine says true if all text is ASCII, and wherever it is not."""
        if self.any_null:
            raise _Unknown
        self.ascii = True
        try:
            known = self.exact(node)
        finally:
            self.ascii = False
        names = sorted({inner.name for inner in s.walk(node) if isinstance(inner, s.Attribute)})
        texts = [name for name in names if self.bound.schema.type_of(name) is DataType.STRING]
        others = [self.F.rlike(self.attribute(name), self.F.lit(r"[^\x00-\x7F]")) for name in texts]
        return reduce(op.or_, others, known)

    def testable(self, operands: Iterable[s.Expression]) -> list[Column]:
        """Those of several conditions that can be tested: fewer of them keep more."""
        found = []
        for operand in operands:
            try:
                found.append(self.condition(operand))
            except _Unknown:
                continue
        if not found:
            raise _Unknown
        return found

    def leaf(self, node: s.Expression, known: Column) -> Column:
        """The test, and what it misses: an attribute that an ANY component's type does not have."""
        attributes = [inner for inner in s.walk(node) if isinstance(inner, s.Attribute)]
        if self.any_null:
            for attribute in attributes:
                known = known | self.absent(attribute)
        return known

    def null_test(self, node: s.IsNull) -> Column:
        if not isinstance(node.operand, s.Attribute):
            if self.any_null:
                raise _Unknown
            return self.exact(node)
        return self.F.col(quoted(node.operand.name)).isNotNull() if node.negated else self.absent(node.operand)

    def absent(self, attribute: s.Attribute) -> Column:
        """NULL, or NaN, which the engine takes for NULL."""
        column = self.F.col(quoted(attribute.name))
        is_float = self.types[attribute.name].typeName() in ("float", "double")
        return column.isNull() | self.F.isnan(column) if is_float else column.isNull()

    # NaN is greater than everything in Spark and NULL in the engine: every comparison keeps at least as much.

    def compared(self, operator: str, left: s.Expression, right: s.Expression) -> Column:
        if self.plain_time(left) and isinstance(right, s.Literal):
            first, second = self.column(left), self.instant(left, right)
        elif self.plain_time(right) and isinstance(left, s.Literal):
            first, second = self.instant(right, left), self.column(right)
        else:
            first, second = self.value(left), self.value(right)
        return COMPARISONS[operator](first, second)

    def member(self, node: s.Membership, operand: s.Expression, members: Sequence[s.Expression]) -> Column:
        tests = [self.compared("!=" if node.negated else "=", operand, member) for member in members]
        if not tests:
            return self.F.lit(node.negated)
        plain = [member.value for member in members if isinstance(member, s.Literal)]
        alike = len({type(value) for value in plain}) == 1 and len(plain) == len(members) and None not in plain
        if alike and not node.negated and not self.plain_time(operand):
            return self.value(operand).isin(*plain)  # a form that Parquet's filters understand
        return reduce(op.and_ if node.negated else op.or_, tests)

    # times: compared with a constant they stay timestamps, so that Parquet can skip row groups

    def plain_time(self, node: s.Expression) -> bool:
        return isinstance(node, s.Attribute) and self.bound.schema.type_of(node.name) is DataType.TIME

    def column(self, node: s.Expression) -> Column:
        assert isinstance(node, s.Attribute)
        return self.F.col(quoted(node.name))

    def instant(self, time: s.Expression, literal: s.Literal) -> Column:
        assert isinstance(time, s.Attribute)
        if literal.value is None:
            return self.F.lit(None)
        if not isinstance(literal.value, int) or isinstance(literal.value, bool):
            raise _Unknown
        kind = self.types[time.name].typeName()
        if kind == "timestamp":
            return self.F.timestamp_micros(self.F.lit(literal.value).cast("bigint"))
        if kind != "timestamp_ntz":
            raise _Unknown
        try:
            moment = _EPOCH + timedelta(microseconds=literal.value)
        except OverflowError:
            raise _Unknown from None
        return self.F.lit(moment.replace(tzinfo=None).isoformat(sep=" ")).cast("timestamp_ntz")

    # values: what the engine computes, to the last bit, NULLs included

    def value(self, node: s.Expression) -> Column:
        """A side of a comparison: a plain column where it is one, so that files can skip what does not fit."""
        if isinstance(node, s.Attribute):
            return self.attribute(node.name)
        if isinstance(node, s.Literal):
            return self.F.lit(node.value)
        return self.exact(node)

    def exact(self, node: s.Expression) -> Column:
        """The value of an expression exactly as the engine has it, where Spark can say it."""
        F = self.F
        if not isinstance(node, s.Literal) and self.type_of(node) is DataType.DECIMAL:
            raise _Unknown
        match node:
            case s.Literal(value=bool() | None | str() | float() | Decimal() as literal):
                return F.lit(literal)
            case s.Literal(value=literal):
                return F.lit(literal).cast("bigint")
            case s.Attribute(name=name):
                return self.known(name)
            case s.Negative(operand=operand):
                if self.type_of(operand) is DataType.FLOAT:
                    return -self.exact(operand)
                return F.try_subtract(F.lit(0).cast("bigint"), self.exact(operand))
            case s.Arithmetic(operator=operator, left=left, right=right):
                return self.arithmetic(operator, left, right)
            case s.Comparison(operator=operator, left=left, right=right):
                return COMPARISONS[operator](self.exact(left), self.exact(right))
            case s.Between(operand=operand, low=low, high=high, negated=negated):
                middle = self.exact(operand)
                inside = (middle >= self.exact(low)) & (middle <= self.exact(high))
                return ~inside if negated else inside
            case s.Membership(operand=operand, values=tuple() as members, negated=negated) if members:
                first = self.exact(operand)
                found = reduce(op.or_, [first == self.exact(each) for each in members])
                return ~found if negated else found
            case s.IsNull(operand=operand, negated=negated):
                inner = self.exact(operand)
                return inner.isNotNull() if negated else inner.isNull()
            case s.Not(operand=operand):
                return ~self.exact(operand)
            case s.And(operands=operands):
                return reduce(op.and_, map(self.exact, operands))
            case s.Or(operands=operands):
                return reduce(op.or_, map(self.exact, operands))
            case s.Call():
                return self.call(node)
        raise _Unknown

    def type_of(self, node: s.Expression) -> DataType:
        return type_of(node, self.bound.schema)

    def arithmetic(self, operator: str, left: s.Expression, right: s.Expression) -> Column:
        sides = [self.exact(left), self.exact(right)]
        whole = DataType.FLOAT not in (self.type_of(left), self.type_of(right))
        if operator == "/" or not whole:
            sides = [side.cast("double") for side in sides]
        found = getattr(self.F, TRYING[operator])(*sides)
        return found if whole and operator != "/" else self.F.when(~self.F.isnan(found), found)

    def call(self, node: s.Call) -> Column:
        function = find_function(node.function)
        form = None if function is None else function.spark or (function.ascii if self.ascii else None)
        if function is None or form is None:
            raise _Unknown
        given = [
            argument.value if place in function.constants and isinstance(argument, s.Literal) else self.exact(argument)
            for place, argument in enumerate(node.arguments)
        ]
        column = form(self.F, *given)
        if column is None:
            raise _Unknown
        return column

    def known(self, name: str) -> Column:
        """An attribute, with NaN as the NULL that it is to the engine."""
        column = self.attribute(name)
        is_float = self.types[name].typeName() in ("float", "double")
        return self.F.when(~self.F.isnan(column), column) if is_float else column

    def attribute(self, name: str) -> Column:
        F = self.F
        column, kind = F.col(quoted(name)), self.types[name].typeName()
        match self.bound.schema.type_of(name):
            case DataType.INT:
                return column if kind == "long" else column.cast("bigint")
            case DataType.FLOAT:
                return column if kind == "double" else column.cast("double")
            case DataType.STRING if self.types[name].simpleString() == "string":  # not one with a collation
                return column
            case DataType.BOOL:
                return column
            case DataType.TIME if kind == "timestamp":
                return F.unix_micros(column)
            case DataType.TIME if kind == "date":
                return F.unix_date(column).cast("bigint") * F.lit(DAY).cast("bigint")
            case DataType.TIME if kind == "timestamp_ntz":
                return F.timestamp_diff("MICROSECOND", F.lit("1970-01-01").cast("timestamp_ntz"), column)
        raise _Unknown


def exact_column(expression: s.Expression, bound: BoundQuery, types: dict[str, Any]) -> Column | None:
    """The value of an expression over one event as Spark computes it; None where Spark might differ."""
    try:
        return _Writer(bound, types, any_null=False).exact(expression)
    except _Unknown:
        return None
