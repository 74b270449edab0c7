"""Expressions over whole columns, for all languages: conditions on one event or row, RETURN and MEASURES.

Arrow's compute functions carry NULL as SQL does; NaN counts as NULL. What is of events or rows (attributes, aggregates,
navigation) the caller resolves. Query text has plain types, which binding checked; its times are whole microseconds.
Clauses keep Arrow's types, and whether operands fit shows here: errors point into the text of the clause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.values.calls import called, each_row, kind_of, typed_call
from cepheid.engine.values.operators import Column, as_64_bits, beside, combined, constant, is_number, opposite, truth
from cepheid.engine.values.plain import value_column
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.evaluate import function_of
from cepheid.language.functions import find_function
from cepheid.language.library.decimal_columns import computed
from cepheid.language.schema import Schema

Resolve = Callable[[s.Expression], Column]  # an attribute, length, aggregate or navigation -> its values, one per row

# What Arrow and Python raise for operands that do not fit.
_MISFITS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError, AttributeError)
_OPERATIONS = s.Arithmetic | s.Comparison | s.Membership | s.Between | s.IsNull | s.And | s.Or | s.Not | s.Negative


def condition(node: s.Expression, resolve: Resolve, any_null: bool = False, lacking: Resolve | None = None) -> Column:
    """True where the condition holds; unknown counts as false.

    With `any_null`, a comparison with a NULL attribute counts as true (components declared with ANY); with `lacking`
    where that says so, and nowhere else (see `lacking_by_type`).
    """
    match node:
        case s.And(operands=operands):
            return _fold(pc.and_, [condition(operand, resolve, any_null, lacking) for operand in operands])
        case s.Or(operands=operands):
            return _fold(pc.or_, [condition(operand, resolve, any_null, lacking) for operand in operands])
        case s.Not(operand=operand):
            return pc.fill_null(pc.invert(truth(value(operand, resolve))), False)
        case s.Comparison() | s.Membership() | s.Between() if any_null or lacking is not None:
            known = pc.fill_null(truth(value(node, resolve)), False)
            attributes = [inner for inner in s.walk(node) if isinstance(inner, s.Attribute)]
            return _fold(pc.or_, [known, *(lacking(a) if lacking else pc.is_null(resolve(a)) for a in attributes)])
    return pc.fill_null(truth(value(node, resolve)), False)


def lacking_by_type(table: pa.Table, schema: Schema) -> Resolve | None:
    """Where events have no such attribute, as a call said of their types with `lacks`; None if it said nothing."""
    if not schema.lacks or schema.type is None:
        return None
    types = value_column(table.column(schema.type))

    def lacking(node: Any) -> Column:
        named = schema.types_lacking(node.name)
        if not named:
            return pa.scalar(False)
        return pc.and_(pc.is_null(table.column(node.name)), pc.is_in(types, value_set=pa.array(named, types.type)))

    return lacking


def value(node: s.Expression, resolve: Resolve, text: str | None = None) -> Column:
    """The values of an expression, NULL where it is unknown; of constants alone, a scalar.

    With the text of a clause, columns have Arrow's own types.
    """
    if isinstance(node, s.Literal):
        return constant(node.value)
    if isinstance(node, s.Call):
        if node.function.lower() in AGGREGATES:
            return resolve(node)
        if text is None:
            return _called(node, resolve)
    elif not isinstance(node, _OPERATIONS):
        return resolve(node)
    elif isinstance(node, s.Membership) and text is None:
        assert isinstance(node.values, tuple)
        found = _member(value(node.operand, resolve), node.values, resolve)
        return pc.invert(found) if node.negated else found
    return applied(node, [value(part, resolve, text) for part in _parts(node)], text)


def _called(node: s.Call, resolve: Resolve) -> Column:
    """A function over columns of plain types."""
    function = find_function(node.function)
    assert function is not None
    arguments = [
        each.value if place in function.constants and isinstance(each, s.Literal) else value(each, resolve)
        for place, each in enumerate(node.arguments)
    ]
    return called(function, arguments)


def _parts(node: s.Expression) -> tuple[s.Expression, ...]:
    """The same as its children; what is frequent is found without a look at all fields."""
    match node:
        case s.Call(arguments=parts) | s.And(operands=parts) | s.Or(operands=parts):
            return parts
        case s.Comparison(left=left, right=right) | s.Arithmetic(left=left, right=right):
            return left, right
    return s.children(node)


def applied(node: s.Expression, parts: list[Column], text: str | None = None) -> Column:
    """The values of an operator or a function, from those of its parts."""
    if text is None:
        return _applied(node, parts)
    try:
        found = _applied(node, parts)
        return each_row(function_of(node), parts, kind_of(node, parts)) if found is None else found
    except _MISFITS as error:
        kinds = ", ".join(str(part.type) for part in parts)
        start, end = node.span
        message = f"{name_of(node).upper()} of {kinds} is not possible"
        hint = "cast one of them" if len(parts) > 1 else None
        raise QueryError(message, text=text or None, start=start, end=end, hint=hint, code="types") from error


def _applied(node: s.Expression, parts: list[Column]) -> Column | None:
    """The same; None where it takes Python's values, row by row."""
    match node:
        case s.Call():
            return typed_call(node, parts)
        case s.Comparison(operator=sign, left=left, right=right):
            return beside(sign, parts[0], parts[1], isinstance(left, s.Literal) or isinstance(right, s.Literal))
        case s.Arithmetic(operator=sign, left=left, right=right):
            one, other = parts
            one = one if isinstance(left, s.Literal) else computed(one, other)
            return combined(sign, one, other if isinstance(right, s.Literal) else computed(other, one))
        case s.Membership(values=tuple() as members, negated=negated):
            written = [isinstance(node.operand, s.Literal) or isinstance(each, s.Literal) for each in members]
            tests = [beside("=", parts[0], each, test) for each, test in zip(parts[1:], written, strict=True)]
            if any(test is None for test in tests):
                return None
            found = _fold(pc.or_kleene, tests)
            return pc.invert(found) if negated else found
        case s.Between(negated=negated):
            tests = [beside(">=", parts[0], parts[1]), beside("<=", parts[0], parts[2])]
            if any(test is None for test in tests):
                return None
            inside = pc.and_kleene(*tests)
            return pc.invert(inside) if negated else inside
        case s.IsNull(negated=negated):
            return pc.is_valid(parts[0]) if negated else pc.is_null(parts[0])
        case s.And():  # as a value, unknown stays unknown
            return _fold(pc.and_kleene, [truth(part) for part in parts])
        case s.Or():
            return _fold(pc.or_kleene, [truth(part) for part in parts])
        case s.Not():
            return pc.invert(truth(parts[0]))
        case s.Negative():
            return opposite(as_64_bits(parts[0])) if is_number(parts[0].type) else None
    raise TypeError(f"no column for {type(node).__name__}")


def name_of(node: s.Expression) -> str:
    """What an operator or a function is called in messages."""
    match node:
        case s.Call(function=name) | s.Arithmetic(operator=name) | s.Comparison(operator=name):
            return name
    return {s.Membership: "in", s.IsNull: "is null"}.get(type(node), type(node).__name__)


def _fold(combine: Callable[[Any, Any], object], parts: list[Column]) -> Column:
    result = parts[0]
    for part in parts[1:]:
        result = combine(result, part)
    return result


def _member(operand: Column, members: tuple[s.Expression, ...], resolve: Resolve) -> Column:
    literal = [member.value for member in members if isinstance(member, s.Literal)]
    if len(literal) == len(members) and None not in literal and not isinstance(operand, pa.Scalar):
        kind = operand.type
        alike: set[type] = {int} if pa.types.is_integer(kind) else {str} if pa.types.is_string(kind) else {int, float}
        alike = {bool} if pa.types.is_boolean(kind) else alike
        if not pa.types.is_decimal(kind) and {type(item) for item in literal} <= alike:
            if pa.types.is_floating(kind):  # -0.0 is 0.0, but hashes differ
                operand = pc.add(operand, 0.0)
                literal = [float(item) + 0.0 for item in literal if isinstance(item, int | float)]
            found = pc.is_in(operand, value_set=pa.array(literal, kind))
            return pc.if_else(pc.is_null(operand), pa.scalar(None, pa.bool_()), found)
    return _fold(pc.or_kleene, [beside("=", operand, value(member, resolve)) for member in members])
