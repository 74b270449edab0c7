"""The type of every expression, and errors where types do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from cepheid.errors import QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.functions import AGGREGATES, find_function
from cepheid.language.printing import expression_text
from cepheid.language.schema import NUMBERS, DataType, Schema

Fail = Callable[[str, s.Node, str, str | None], NoReturn]

_LITERALS: dict[type, DataType] = {
    bool: DataType.BOOL,
    int: DataType.INT,
    float: DataType.FLOAT,
    str: DataType.STRING,
    type(None): DataType.NULL,
}


def type_of(node: s.Expression, schema: Schema, fail: Fail | None = None) -> DataType:
    """The type of an expression over events of a schema.

    >>> schema = Schema((("ts", DataType.INT), ("price", DataType.FLOAT)), "ts")
    >>> type_of(s.Comparison("<", s.Attribute(s.Reference("a"), "price"), s.Literal(3)), schema)
    <DataType.BOOL: 'true or false'>
    """
    complain = fail or _raise
    match node:
        case s.Literal(value=value):
            return _LITERALS[type(value)]
        case s.Attribute(name=name, default=default):
            found = schema.type_of(name)
            if found is None:
                guess = closest(name, schema.names)
                hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(schema.names)}"
                complain(f"no attribute '{name}'", node, "unknown-attribute", hint)
            if default is not None:
                other = type_of(default, schema, fail)
                if not comparable(found, other):
                    complain(f"a {found.value} with a {other.value} as default", default, "type-mismatch", None)
            return found
        case s.Length():
            return DataType.INT
        case s.Reference():
            complain("an event is no value", node, "event-as-value", f"name an attribute, such as {node.variable}.x")
        case s.Negative(operand=operand):
            return _number(operand, schema, complain, fail)
        case s.Arithmetic(operator=operator, left=left, right=right):
            return _arithmetic(operator, left, right, schema, complain, fail)
        case s.Call(function=function, arguments=arguments) if function.lower() in AGGREGATES:
            return _aggregate(function.lower(), arguments[0], schema, complain, fail)
        case s.Call():
            return _call(node, schema, complain, fail)
        case s.Comparison(operator=operator, left=left, right=right):
            _compare(left, right, node, schema, complain, fail)
            if operator not in ("=", "!=") and type_of(left, schema, fail) is DataType.BOOL:
                complain("true and false have no order", node, "type-mismatch", "compare them with = or !=")
            return DataType.BOOL
        case s.Membership(operand=operand, values=values):
            assert not isinstance(values, s.Name)
            for member in values:
                _compare(operand, member, member, schema, complain, fail)
            return DataType.BOOL
        case s.Between(operand=operand, low=low, high=high):
            _compare(operand, low, low, schema, complain, fail)
            _compare(operand, high, high, schema, complain, fail)
            return DataType.BOOL
        case s.IsNull(operand=operand):
            type_of(operand, schema, fail)
            return DataType.BOOL
        case s.Not(operand=operand):
            _condition(operand, schema, complain, fail)
            return DataType.BOOL
        case s.And(operands=operands) | s.Or(operands=operands):
            for operand in operands:
                _condition(operand, schema, complain, fail)
            return DataType.BOOL
        case s.Equivalence(tests=tests):
            for name, fixed in tests:
                attribute = s.Attribute(s.Reference(""), name, span=node.span)
                type_of(attribute, schema, fail)
                if fixed is not None:
                    _compare(attribute, fixed, node, schema, complain, fail)
            return DataType.BOOL
    raise TypeError(f"no type for {type(node).__name__}")


def comparable(left: DataType, right: DataType) -> bool:
    """Can values of two types be compared?

    >>> comparable(DataType.INT, DataType.FLOAT), comparable(DataType.INT, DataType.STRING)
    (True, False)
    """
    if DataType.OTHER in (left, right) or DataType.LIST in (left, right):
        return False
    if DataType.NULL in (left, right) or left is right:
        return True
    return {left, right} <= NUMBERS or {left, right} == {DataType.TIME, DataType.INT}


def check_condition(node: s.Expression, schema: Schema, fail: Fail) -> None:
    """Is the expression a condition, all through?"""
    _condition(node, schema, fail, fail)


def _raise(message: str, node: s.Node, code: str, hint: str | None) -> NoReturn:
    raise QueryError(message + (f"; {hint}" if hint else ""), code=code)


def _condition(node: s.Expression, schema: Schema, complain: Fail, fail: Fail | None) -> None:
    found = type_of(node, schema, fail)
    if found not in (DataType.BOOL, DataType.NULL):
        complain(f"a {found.value} is no condition", node, "not-a-condition", "compare it with something")


def _number(node: s.Expression, schema: Schema, complain: Fail, fail: Fail | None) -> DataType:
    found = type_of(node, schema, fail)
    if found not in NUMBERS and found is not DataType.NULL:
        complain(f"'{expression_text(node)}' is a {found.value}, not a number", node, "type-mismatch", None)
    return found


def _arithmetic(
    operator: str, left: s.Expression, right: s.Expression, schema: Schema, complain: Fail, fail: Fail | None
) -> DataType:
    kinds = [type_of(left, schema, fail), type_of(right, schema, fail)]
    if kinds == [DataType.TIME, DataType.TIME] and operator == "-":
        return DataType.INT  # microseconds
    if DataType.TIME in kinds and DataType.INT in kinds and operator in "+-" and kinds[1] is not DataType.TIME:
        return DataType.TIME
    for node in (left, right):
        _number(node, schema, complain, fail)
    return DataType.FLOAT if operator == "/" or DataType.FLOAT in kinds else DataType.INT


def _aggregate(function: str, argument: s.Expression, schema: Schema, complain: Fail, fail: Fail | None) -> DataType:
    if isinstance(argument, s.Reference):
        if function != "count":
            hint = f"name an attribute, such as {function}({argument.variable}[].x)"
            complain(f"{function}() of events, not of values", argument, "event-as-value", hint)
        return DataType.INT
    found = type_of(argument, schema, fail)
    if function == "count":
        return DataType.INT
    if function in ("avg", "sum"):
        _number(argument, schema, complain, fail)
        return DataType.FLOAT if function == "avg" else found
    if found in (DataType.LIST, DataType.OTHER):
        complain(f"{function}() of a {found.value}", argument, "type-mismatch", None)
    return found


def _call(node: s.Call, schema: Schema, complain: Fail, fail: Fail | None) -> DataType:
    function = find_function(node.function)
    assert function is not None  # checked before
    kinds = [type_of(argument, schema, fail) for argument in node.arguments]
    for argument, found in zip(node.arguments, kinds, strict=True):
        if found is DataType.OTHER or (found not in function.accepts and found is not DataType.NULL):
            wanted = " or ".join(sorted(kind.value for kind in function.accepts))
            hint = f"it takes a {wanted}" if not function.user else None
            complain(f"{node.function}() of a {found.value}", argument, "type-mismatch", hint)
    if function.result is not None:
        return function.result
    known = [kind for kind in kinds if kind is not DataType.NULL]
    if set(known) <= NUMBERS:
        return DataType.FLOAT if DataType.FLOAT in known else DataType.INT if known else DataType.NULL
    if len(set(known)) > 1:
        complain(f"{node.function}() of different types", node, "type-mismatch", None)
    return known[0]


def _compare(
    left: s.Expression, right: s.Expression, at: s.Node, schema: Schema, complain: Fail, fail: Fail | None
) -> None:
    kinds = type_of(left, schema, fail), type_of(right, schema, fail)
    if comparable(*kinds):
        return
    hint = None
    if set(kinds) == {DataType.STRING, DataType.INT} or set(kinds) == {DataType.STRING, DataType.FLOAT}:
        literal = next((node for node in (left, right) if isinstance(node, s.Literal)), None)
        if literal is not None and isinstance(literal.value, str):
            hint = f"write {literal.value} without quotes" if _numeric(literal.value) else None
        elif literal is not None:
            hint = f"write '{literal.value}' in quotes"
    complain(f"a {kinds[0].value} cannot be compared with a {kinds[1].value}", at, "type-mismatch", hint)


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
