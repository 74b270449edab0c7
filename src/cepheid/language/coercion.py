"""Values of different types beside each other: literals and strings become what they are compared with.

After it, a decimal stands only where Spark computes with decimals: beside whole numbers and other decimals. Comparisons
of whole numbers with fractions become comparisons of whole numbers, so that no digit is lost and no engine needs more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.functions import find_function
from cepheid.language.library.conversions import number_of_text, truth_of_text, whole_of_text
from cepheid.language.library.decimals import OF_WHOLE, Precision, moved, type_of_result, widest
from cepheid.language.library.decimals import precision_of as precision_of_number
from cepheid.language.library.value_functions import CASTS
from cepheid.language.schema import NUMBERS, TIMES, DataType, Schema
from cepheid.language.typing import Fail, type_of
from cepheid.language.whole import GREATEST, LEAST

NARROW = 18  # digits that 64 bits hold, whatever they are
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_EXTREMES = ("min", "max", "first", "last")


def precision_of(node: s.Expression, schema: Schema) -> Precision:
    """How many digits the values of a whole number or a decimal have.

    >>> precision_of(s.Arithmetic("*", s.Literal(3), s.Literal(Decimal("1.5"))), Schema((), "ts"))
    (4, 1)
    """
    match node:
        case s.Literal(value=int() | Decimal() as number) if not isinstance(number, bool):
            return precision_of_number(number)
        case s.Attribute(name=name) if schema.type_of(name) is DataType.DECIMAL:
            return schema.precision_of(name)
        case s.Negative(operand=operand):
            return precision_of(operand, schema)
        case s.Arithmetic(operator=sign, left=left, right=right) if type_of(node, schema) is DataType.DECIMAL:
            return type_of_result(sign, precision_of(left, schema), precision_of(right, schema))
        case s.Call(function=name, arguments=arguments) if name.lower() not in AGGREGATES:
            if type_of(node, schema) is DataType.DECIMAL:
                return _of_call(name, arguments, schema)
    return OF_WHOLE


def _of_call(name: str, arguments: tuple[s.Expression, ...], schema: Schema) -> Precision:
    function = find_function(name)
    assert function is not None
    constants = function.constants_of([getattr(each, "value", None) for each in arguments])
    given = [each for place, each in enumerate(arguments) if place not in function.constants]
    kinds = [(each, type_of(each, schema)) for each in given]
    exact = name.lower() == "pmod"  # an operator: the digits of a constant count
    types = [
        OF_WHOLE if kind is DataType.INT and not exact else precision_of(each, schema)
        for each, kind in kinds
        if kind in NUMBERS
    ]
    return function.precision(types, constants) if function.precision is not None else widest(types)


class Coercion:
    """Brings values beside each other to one type, for events of a schema."""

    def __init__(self, schema: Schema, fail: Fail) -> None:
        self.schema, self.fail = schema, fail

    def kind(self, node: s.Expression) -> DataType:
        return DataType.OTHER if isinstance(node, s.Reference) else type_of(node, self.schema, self.fail)

    def settled(self, node: s.Expression) -> s.Expression:
        """The node, whose parts are settled."""
        match node:
            case s.Comparison(operator=operator, left=left, right=right):
                if operator not in ("=", "!="):
                    self.check_order(node, left, right)
                return self.compared(replace(node, left=self.beside(left, right), right=self.beside(right, left)))
            case s.Between(operand=operand, low=low, high=high):
                for end in (low, high):
                    self.check_order(node, operand, end)
                if self.kind(operand) is not DataType.STRING:
                    low, high = self.beside(low, operand), self.beside(high, operand)
                if self.kind(operand) in (DataType.INT, DataType.STRING):
                    return self.between(replace(node, low=low, high=high))
                return replace(node, low=low, high=high)
            case s.Membership(operand=operand, values=tuple() as members):
                return self.member(node, operand, members)
            case s.Arithmetic(left=left, right=right):
                return replace(node, left=self.fraction(left, right), right=self.fraction(right, left))
            case s.Attribute(default=s.Expression() as default):
                return replace(node, default=self.beside(default, replace(node, default=None)))
            case s.Equivalence(tests=tests):
                return replace(node, tests=tuple((name, self.fixed(name, value)) for name, value in tests))
            case s.Call():
                return self.call(node)
        return node

    def check_order(self, node: s.Expression, left: s.Expression, right: s.Expression) -> None:
        """A column of strings is most likely not meant to be read as numbers one by one, some of them NULL."""
        for one, other in ((left, right), (right, left)):
            if self.kind(one) is DataType.STRING and not isinstance(one, s.Literal) and self.kind(other) in NUMBERS:
                hint = "cast the column to a number, or pass decimal='.' to read its texts as numbers"
                message = f"a {self.kind(left).value} cannot be compared with a {self.kind(right).value}"
                self.fail(message, node, "type-mismatch", hint)

    def fixed(self, name: str, value: s.Expression | None) -> s.Expression | None:
        if not isinstance(value, s.Literal) or not isinstance(value.value, Decimal):
            return value
        if self.schema.type_of(name) is DataType.DECIMAL:
            return value
        whole = value.value == value.value.to_integral_value() and self.schema.type_of(name) is DataType.INT
        return replace(value, value=int(value.value) if whole else float(value.value))

    # one value beside another

    def beside(self, node: s.Expression, other: s.Expression) -> s.Expression:
        """A value as the type of another one: literals with a fraction as doubles, strings as numbers."""
        wanted = self.kind(other)
        if self.kind(node) is DataType.STRING and wanted in (*NUMBERS, DataType.BOOL):
            return self.as_kind(node, wanted)
        return self.fraction(node, other)

    def fraction(self, node: s.Expression, other: s.Expression) -> s.Expression:
        """A literal with a fraction, which is a double beside doubles."""
        if isinstance(node, s.Literal) and isinstance(node.value, Decimal) and self.kind(other) is DataType.FLOAT:
            return replace(node, value=float(node.value))
        return node

    def as_kind(self, node: s.Expression, wanted: DataType) -> s.Expression:
        """A string beside a number or a truth value."""
        if not isinstance(node, s.Literal):
            name = {DataType.INT: "bigint", DataType.BOOL: "boolean"}.get(wanted, "double")
            return s.Call("cast", (node, s.Literal(name), s.Literal("STRING")), span=node.span)
        text = str(node.value)
        read: int | float | bool | None = number_of_text(text)
        if wanted is DataType.INT:
            read = whole_of_text(text)
        elif wanted is DataType.BOOL:
            read = truth_of_text(text)
        if read is None or (isinstance(read, int) and not LEAST <= read <= GREATEST):
            self.fail(f"'{text}' is not a {wanted.value}", node, "type-mismatch", "it is compared with one")
        return replace(node, value=read)

    # comparisons of whole numbers

    def compared(self, node: s.Comparison) -> s.Expression:
        left, right = self.unscaled(node.left, node.right)
        operator, turned = node.operator, isinstance(left, s.Literal) and not isinstance(right, s.Literal)
        if turned:
            left, right, operator = right, left, TURNED[operator]
        if isinstance(right, s.Literal) and isinstance(right.value, Decimal) and self.kind(left) is DataType.INT:
            return _whole_test(node, operator, left, right.value)
        return node

    def unscaled(self, left: s.Expression, right: s.Expression) -> tuple[s.Expression, s.Expression]:
        """A decimal that is made of a whole number beside a literal: both as whole numbers."""
        for one, other in ((left, right), (right, left)):
            match one, other:
                case s.Call(function="decimal of", arguments=(inner, s.Literal(value=int(scale)))), s.Literal():
                    if isinstance(other.value, int | Decimal) and not isinstance(other.value, bool):
                        literal = replace(other, value=moved(other.value, scale))
                        return (inner, literal) if one is left else (literal, inner)
        return left, right

    def between(self, node: s.Between) -> s.Expression:
        kinds = [self.kind(each) for each in (node.low, node.high)]
        if self.kind(node.operand) is DataType.STRING and any(kind in NUMBERS for kind in kinds):
            operand = self.beside(node.operand, node.low if kinds[0] in NUMBERS else node.high)
            return self.settled(replace(node, operand=operand))
        ends = []
        for end, rounded in ((node.low, math.ceil), (node.high, math.floor)):
            if isinstance(end, s.Literal) and isinstance(end.value, Decimal):
                whole = rounded(end.value)
                end = replace(end, value=whole) if LEAST <= whole <= GREATEST else end
            ends.append(end)
        return replace(node, low=ends[0], high=ends[1])

    def member(self, node: s.Membership, operand: s.Expression, members: tuple[s.Expression, ...]) -> s.Expression:
        if self.kind(operand) is DataType.STRING and any(self.kind(each) in NUMBERS for each in members):
            number = next(each for each in members if self.kind(each) in NUMBERS)
            operand = self.beside(operand, number)
        members = tuple(self.beside(each, operand) for each in members)
        if self.kind(operand) is not DataType.INT or not members:
            return replace(node, operand=operand, values=members)
        kept: list[s.Expression] = []
        for each in members:
            if isinstance(each, s.Literal) and isinstance(each.value, Decimal):
                whole = int(each.value) if each.value == each.value.to_integral_value() else None
                if whole is not None and LEAST <= whole <= GREATEST:
                    kept.append(replace(each, value=whole))
            else:
                kept.append(each)
        if not kept:  # no whole number is among them
            return _never(node, operand) if not node.negated else _always(node, operand)
        return replace(node, operand=operand, values=tuple(kept))

    # functions

    def call(self, node: s.Call) -> s.Expression:
        name, arguments = node.function.lower(), node.arguments
        if name in AGGREGATES:
            return self.aggregate(name, node)
        function = find_function(name)
        assert function is not None
        if name in CASTS and not function.user:
            kind = s.Literal(self.kind(arguments[0]).name)
            return s.Call("cast", (arguments[0], s.Literal(CASTS[name]), kind), span=node.span)
        if name in ("concat", "concat_ws") and not function.user:
            return replace(node, arguments=tuple(map(self.as_text, arguments)))
        if function.user or (function.result is not None and function.precision is None):
            return replace(node, arguments=tuple(map(self.as_double, arguments)))
        if DataType.FLOAT in [self.kind(each) for each in arguments]:
            literals = [isinstance(each, s.Literal) and isinstance(each.value, Decimal) for each in arguments]
            pairs = zip(arguments, literals, strict=True)
            return replace(node, arguments=tuple(self.as_double(each) if test else each for each, test in pairs))
        return node

    def as_text(self, node: s.Expression) -> s.Expression:
        kind = self.kind(node)
        if kind not in (*NUMBERS, *TIMES, DataType.BOOL):
            return node
        return s.Call("cast", (node, s.Literal("string"), s.Literal(kind.name)), span=node.span)

    def as_double(self, node: s.Expression) -> s.Expression:
        if self.kind(node) is not DataType.DECIMAL:
            return node
        if isinstance(node, s.Literal):
            return replace(node, value=float(node.value))  # type: ignore[arg-type]
        return s.Call("cast", (node, s.Literal("double"), s.Literal(DataType.DECIMAL.name)), span=node.span)

    def aggregate(self, name: str, node: s.Call) -> s.Expression:
        """Aggregates of decimals are those of whole numbers, without the point."""
        (argument,) = node.arguments
        if self.kind(argument) is not DataType.DECIMAL or name == "count":
            return node
        precision, scale = precision_of(argument, self.schema)
        of_doubles = AGGREGATES[name].result is DataType.FLOAT
        if (of_doubles and AGGREGATES[name].name != "avg") or precision > NARROW:
            if not of_doubles:
                hint = "write CAST(... AS double) around it, which keeps 15 digits"
                self.fail(f"{name}() of decimals of more than {NARROW} digits", node, "type-mismatch", hint)
            return replace(node, arguments=(self.as_double(argument),))
        whole = s.Call("decimal whole", (argument, s.Literal(scale)), span=argument.span)
        kept = s.Literal(scale)
        if name in _EXTREMES:
            found = replace(node, arguments=(whole,))
            return s.Call("decimal of", (found, kept, s.Literal(precision)), span=node.span)
        digits = s.Literal(min(precision + 10, 38))
        total = s.Call("decimal of", (replace(node, function="sum", arguments=(whole,)), kept, digits), span=node.span)
        if name == "sum":
            return total
        share = s.Arithmetic("/", total, replace(node, function="count", arguments=(whole,)), span=node.span)
        wanted = f"decimal({precision + 4},{scale + 4})"
        return s.Call("cast", (share, s.Literal(wanted), s.Literal(DataType.DECIMAL.name)), span=node.span)


def _whole_test(node: s.Comparison, operator: str, left: s.Expression, bound: Decimal) -> s.Expression:
    """A whole number compared with one that has a fraction."""
    low, high = math.floor(bound), math.ceil(bound)
    if operator in ("=", "!="):
        if low != high or not LEAST <= low <= GREATEST:
            return _never(node, left) if operator == "=" else _always(node, left)
        return replace(node, operator=operator, left=left, right=s.Literal(low))
    limit = high if operator in ("<", ">=") else low
    if LEAST <= limit <= GREATEST:
        return replace(node, operator=operator, left=left, right=s.Literal(limit))
    holds = (limit > 0) == (operator in ("<", "<="))
    return _always(node, left) if holds else _never(node, left)


def _never(node: s.Expression, of: s.Expression) -> s.Expression:
    """False for every whole number, unknown for NULL."""
    return s.Comparison("<", of, s.Literal(LEAST), span=node.span)


def _always(node: s.Expression, of: s.Expression) -> s.Expression:
    return s.Comparison(">=", of, s.Literal(LEAST), span=node.span)
