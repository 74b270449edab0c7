"""Expressions of a clause as Spark columns, made from the tree: values travel as values, and no text reaches Spark.

What a string holds can therefore never become code, and a name is a column or a function and nothing else.

This writer and that of `pushdown.py` share tables of operators, and stay two, since they mean different things. Here
the values are Spark's own: functions and types that Cepheid does not know, which no bound tree can hold, decimals with
Spark's precision, instants as timestamps. There a bound condition must be true wherever the engine says true: NaN is
NULL, instants are numbers of microseconds, and what Spark might compute differently is not written at all.
"""

from __future__ import annotations

import operator as op
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any, NoReturn

from cepheid.errors import QueryError, closest
from cepheid.language.library.scalars import TEXT, type_parts
from cepheid.language.match_recognize import syntax as m
from cepheid.language.pattern import Span
from cepheid.runners.spark.pure_functions import PURE_FUNCTIONS
from cepheid.runners.spark.pushdown import COMPARISONS, TRYING, Column
from cepheid.runners.spark.spelling import quoted

_DECIMAL = re.compile(r"[+-]?\s*(\d[\d_]*\.\d*|\.\d+)")
_ARITHMETIC = TRYING | {"whole /": "try_divide"}
_TESTS = COMPARISONS | {"<=>": lambda left, right: left.eqNullSafe(right), "and": op.and_, "or": op.or_}
_OTHER_NAMES = {"iff": "if", "strpos": "instr", "starts_with": "startswith"}  # ours that Spark calls otherwise
_OTHER_TYPES = {"text": "string", "varchar": "string", "char": "string", "datetime": "timestamp", "number": "double"}
_WITH_LAMBDAS = frozenset(
    {"transform", "filter", "exists", "forall", "aggregate", "reduce", "zip_with", "transform_keys"}
    | {"transform_values", "map_filter", "map_zip_with", "array_sort"}
)
_ADDED = frozenset({"timestampadd", "dateadd", "date_add"})
_DIFFERENCES = frozenset({"timestampdiff", "datediff", "date_diff"})
# Parts of a date that EXTRACT knows and that are no functions of their own.
_PARTS = frozenset(
    {"yearofweek", "week", "weeks", "w", "dow", "doy", "dow_iso", "dayofweek_iso", "years", "yr", "yrs", "months"}
    | {"mon", "mons", "days", "hours", "hr", "hrs", "minutes", "mins", "seconds", "secs", "qtr"}
)


class ColumnWriter:
    """Writes expressions over the columns of one table; `text` is what their spans point into."""

    def __init__(self, df: Any, text: str, *, unsafe: bool = False) -> None:
        from pyspark.sql import functions

        self.F, self.df, self.text, self.unsafe = functions, df, text, unsafe

    def fail(self, message: str, span: Span, code: str, hint: str | None = None) -> NoReturn:
        raise QueryError(message, text=self.text, start=span[0], end=span[1], hint=hint, code=code)

    def column(self, node: m.Expression, inside: Mapping[str, Column] | None = None) -> Column:
        """The expression as a column; `inside` has the parameters of the lambdas around it."""
        known = inside or {}
        match node:
            case m.Literal():
                return self.value(node)
            case m.Reference(column=column, fields=fields):
                return _fields(self.F.col(quoted(self.name(column))), fields)
            case m.Parameter(name=name, fields=fields) if name in known:
                return _fields(known[name], fields)
            case m.Operation():
                return self.operation(node, known)
            case m.Call():
                return self.call(node, known)
        self.fail("Spark cannot compute this", node.span, "spark-expression")

    def name(self, written: m.Identifier) -> str:
        """The table's name of a column: exactly as written if there is one, else whatever the case.

        Spark would take `current_user` for a function where no column has that name.
        """
        names: list[str] = self.df.columns
        if written.name in names:
            return written.name
        near = [name for name in names if name.lower() == written.name.lower()]
        if len(near) == 1:
            return near[0]
        if near:
            self.fail(f"'{written}' may be {' or '.join(near)}", written.span, "ambiguous-column")
        guess = closest(written.name, names)
        hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(names[:12])}"
        self.fail(f"no column '{written}'", written.span, "unknown-column", hint)

    # values

    def value(self, node: m.Literal) -> Column:
        """A value of the text, or one that a query gave."""
        F, value = self.F, node.value
        match value:
            case float() if _DECIMAL.fullmatch(self.text[slice(*node.span)]):  # as Spark reads it
                exact = Decimal(re.sub(r"[_\s]", "", self.text[slice(*node.span)]))
                return F.lit(exact if len(exact.as_tuple().digits) <= 38 else value)
            case datetime(tzinfo=None):
                return F.lit(value.isoformat(sep=" ")).cast("timestamp")  # in the zone of the session
            case list() | tuple():
                return F.array(*[self.value(m.Literal(each)) for each in value])
            case bytes() | bytearray():
                return F.lit(bytearray(value))
        try:
            return F.lit(value)
        except Exception:
            self.fail(f"Spark has no value {value!r:.60}", node.span, "spark-expression")

    # operators

    def operation(self, node: m.Operation, inside: Mapping[str, Column]) -> Column:
        F, operator = self.F, node.operator
        if operator == "lambda":
            hint = f"such are {', '.join(sorted(_WITH_LAMBDAS))}"
            self.fail("a lambda is an argument of a function of collections", node.span, "lambda", hint)
        parts = [self.column(each, inside) for each in node.operands]
        if operator in _TESTS:
            return _TESTS[operator](parts[0], parts[1])
        if operator in _ARITHMETIC:
            return getattr(F, _ARITHMETIC[operator])(*parts)
        match operator:
            case "not":
                return ~parts[0]
            case "negative":
                return F.negative(parts[0])
            case "is null":
                return parts[0].isNull()
            case "in":
                return parts[0].isin(*parts[1:]) if len(parts) > 1 else F.lit(False)
            case "like" | "ilike" | "rlike" | "named_struct":
                return getattr(F, operator)(*parts)
            case "||":
                return F.concat(*parts)
            case "div":
                return F.call_function("div", *parts)
            case "get":
                return parts[0].getItem(parts[1])
            case "add months":
                return parts[0] + F.make_ym_interval(F.lit(0), parts[1])
            case "case":
                return self.chosen(parts)
            case "cast":
                return self.cast(parts[0], node)
        self.fail(f"Spark has no operator {operator.upper()}", node.span, "spark-expression")

    def chosen(self, parts: list[Column]) -> Column:
        """CASE: test, value, test, value, ..., otherwise."""
        tests = list(zip(parts[:-1:2], parts[1::2], strict=True))
        first = self.F.when(*tests[0])
        return reduce(lambda made, more: made.when(*more), tests[1:], first).otherwise(parts[-1])

    def cast(self, operand: Column, node: m.Operation) -> Column:
        """CAST: NULL where the value cannot be brought to the type."""
        target = str(node.target)
        name, numbers = type_parts(target)
        if name in TEXT and not numbers:
            target = "string"
        return operand.try_cast(_OTHER_TYPES.get(target, target))

    # functions

    def call(self, node: m.Call, inside: Mapping[str, Column]) -> Column:
        F, name = self.F, _OTHER_NAMES.get(node.name, node.name)
        unit = node.arguments[0].value if node.arguments and isinstance(node.arguments[0], m.Literal) else None
        if name in _ADDED | _DIFFERENCES and len(node.arguments) == 3 and isinstance(unit, str):
            others = [self.column(each, inside) for each in node.arguments[1:]]
            return (F.timestamp_add if name in _ADDED else F.timestamp_diff)(unit.rstrip("s").upper(), *others)
        self.check(node, name)
        if name in _WITH_LAMBDAS and any(_is_lambda(each) for each in node.arguments):
            written = [self.function if _is_lambda(each) else self.column for each in node.arguments]
            return getattr(F, name)(*[write(each, inside) for write, each in zip(written, node.arguments, strict=True)])
        arguments = [self.column(each, inside) for each in node.arguments]
        if name in _PARTS and name not in PURE_FUNCTIONS:
            return F.date_part(F.lit(name), *arguments)
        if name == "if" and len(arguments) == 2:
            return F.when(*arguments)
        return F.call_function(quoted(name), *arguments)

    def check(self, node: m.Call, name: str) -> None:
        """Refuses a function that is not known to be pure, unless those are allowed, and what no function takes."""
        if node.distinct or (name in _PARTS and name not in PURE_FUNCTIONS and len(node.arguments) != 1):
            self.fail(f"no function '{node.name}' of this kind", node.span, "unknown-function")
        if name in PURE_FUNCTIONS or name in _PARTS or self.unsafe:
            return
        if not self.df.sparkSession.catalog.functionExists(name):
            self.fail(f"no function '{node.name}'", node.span, "unknown-function")
        hint = "pass unsafe_functions=True if you trust the text of this clause"
        message = f"{node.name} is not among the functions of Spark that a clause may call"
        self.fail(message, node.span, "unsafe-function", hint)

    def function(self, node: m.Expression, inside: Mapping[str, Column]) -> Callable[..., Column]:
        """A lambda as Spark's functions of collections take it: with as many parameters as it has."""
        assert isinstance(node, m.Operation)
        names, body = str(node.target).split(","), node.operands[0]

        def made(*values: Column) -> Column:
            return self.column(body, {**inside, **dict(zip(names, values, strict=True))})

        if len(names) > 3:
            self.fail("a lambda has at most three parameters", node.span, "lambda")
        return (lambda x: made(x), lambda x, y: made(x, y), lambda x, y, z: made(x, y, z))[len(names) - 1]


def _is_lambda(node: m.Expression) -> bool:
    return isinstance(node, m.Operation) and node.operator == "lambda"


def _fields(column: Column, fields: tuple[Any, ...]) -> Column:
    return reduce(lambda made, field: made.getField(field.name), fields, column)
