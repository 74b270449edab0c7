"""The type of every expression, and errors where types do not fit."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn

from cepheid.errors import QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.functions import find_function
from cepheid.language.library.function import Function
from cepheid.language.library.value_functions import common_type
from cepheid.language.printing import expression_text, name_text
from cepheid.language.schema import NUMBERS, PLAIN, TIMES, DataType, Schema

Fail = Callable[[str, s.Node, str, str | None], NoReturn]

_LITERALS: dict[type, DataType] = {
    bool: DataType.BOOL,
    int: DataType.INT,
    float: DataType.FLOAT,
    str: DataType.STRING,
    Decimal: DataType.DECIMAL,
    type(None): DataType.NULL,
}
_CONDITIONS = (DataType.BOOL, DataType.NULL)


def type_of(node: s.Expression, schema: Schema, fail: Fail | None = None) -> DataType:
    """The type of an expression over events of a schema; every part is looked at once.

    >>> schema = Schema((("ts", DataType.INT), ("price", DataType.FLOAT)), "ts")
    >>> type_of(s.Comparison("<", s.Attribute(s.Reference("a"), "price"), s.Literal(3)), schema)
    <DataType.BOOL: 'true or false'>
    """
    complain = fail or _raise

    def visit(inner: s.Expression) -> DataType:
        return type_of(inner, schema, complain)

    match node:
        case s.Literal(value=value):
            return _LITERALS[type(value)]
        case s.Attribute(name=name, default=default):
            found = _column(name, node, schema, complain)
            if default is not None:
                _need_comparable(found, visit(default), node, default, default, complain, "cannot have as its default")
            return found
        case s.Length():
            return DataType.INT
        case s.PathValue(kind=kind):
            return kind
        case s.Reference():
            complain("an event is not a value", node, "event-as-value", f"name an attribute, such as {node.variable}.x")
        case s.Negative(operand=operand):
            return _need_number(visit(operand), operand, complain)
        case s.Arithmetic(operator=operator, left=left, right=right):
            return _arithmetic(operator, (left, visit(left)), (right, visit(right)), complain)
        case s.Call(function=function, arguments=arguments) if function.lower() in AGGREGATES:
            return _aggregate(function.lower(), arguments[0], visit, complain)
        case s.Call():
            return _visited_call(node, visit, schema, complain)
        case s.Comparison(operator=operator, left=left, right=right):
            kinds = visit(left), visit(right)
            _need_comparable(*kinds, left, right, node, complain)
            if operator not in ("=", "!=") and DataType.BOOL in kinds:
                complain("true and false have no order", node, "type-mismatch", "compare them with = or !=")
            return DataType.BOOL
        case s.Membership(operand=operand, values=tuple() as values):
            found = visit(operand)
            for member in values:
                _need_comparable(found, visit(member), operand, member, member, complain)
            return DataType.BOOL
        case s.Between(operand=operand, low=low, high=high):
            found = visit(operand)
            for end in (low, high):
                _need_comparable(found, visit(end), operand, end, end, complain)
            if found is DataType.BOOL:
                complain("true and false have no order", node, "type-mismatch", "compare them with = or !=")
            return DataType.BOOL
        case s.IsNull(operand=operand):
            visit(operand)
            return DataType.BOOL
        case s.Not(operand=operand):
            _need_condition(visit(operand), operand, complain)
            return DataType.BOOL
        case s.And(operands=operands) | s.Or(operands=operands):
            for operand in operands:
                _need_condition(visit(operand), operand, complain)
            return DataType.BOOL
        case s.Equivalence(tests=tests):
            for name, fixed in tests:
                found = _column(name, node, schema, complain)
                if found not in PLAIN and found is not DataType.NULL:
                    hint = "name a column of numbers, strings or times"
                    complain(f"'{name}' is a {found.value}, which cannot be compared", node, "type-mismatch", hint)
                if fixed is not None:
                    _need_comparable(found, visit(fixed), node, fixed, node, complain)
            return DataType.BOOL
    raise TypeError(f"no type for {type(node).__name__}")


def is_duration(node: s.Expression, schema: Schema) -> bool:
    """Is it a length of time, in microseconds: a difference of two times, or computed from such?

    >>> schema = Schema((("ts", DataType.TIME),), "ts")
    >>> first, last = (s.Attribute(s.Reference(name), "ts") for name in "ab")
    >>> is_duration(s.Arithmetic("-", last, first), schema), is_duration(first, schema)
    (True, False)
    """
    match node:
        case s.Arithmetic(operator="-" | "+" as operator, left=left, right=right):
            both = type_of(left, schema), type_of(right, schema)
            if set(both) <= TIMES and operator == "-":
                return True
            return is_duration(left, schema) and is_duration(right, schema)
        case s.Negative(operand=operand):
            return is_duration(operand, schema)
        case s.Call(function=function, arguments=(argument,)):
            return function.lower() in ("min", "max", "sum", "abs") and is_duration(argument, schema)
    return False


def comparable(left: DataType, right: DataType) -> bool:
    """Can values of two types be compared?

    >>> comparable(DataType.INT, DataType.FLOAT), comparable(DataType.TIME, DataType.BOOL)
    (True, False)
    """
    if not {left, right} <= PLAIN | {DataType.NULL}:
        return False
    if DataType.NULL in (left, right) or left is right:
        return True
    kinds = {left, right}
    if DataType.STRING in kinds and kinds & {*NUMBERS, DataType.BOOL}:
        return True  # the string is read as a number or a truth value
    return kinds <= NUMBERS or kinds <= TIMES or (DataType.INT in kinds and bool(kinds & TIMES))


def check_condition(node: s.Expression, schema: Schema, fail: Fail) -> None:
    """Is the expression a condition, all through?"""
    fail = _naming_what_is_unusable(schema, fail)
    _need_condition(type_of(node, schema, fail), node, fail)


def _naming_what_is_unusable(schema: Schema, fail: Fail) -> Fail:
    """The same with words for the kind of column that no condition can use, and what to do about that kind."""

    def told(message: str, node: s.Node, code: str, hint: str | None) -> NoReturn:
        parts = list(s.walk(node)) if isinstance(node, s.Expression) else []
        names = [part.name for part in parts if isinstance(part, s.Attribute)]
        names += [name for part in parts if isinstance(part, s.Equivalence) for name, _ in part.tests]
        kind, advice = next((schema.unusable(name) for name in names if schema.unusable(name)), None) or ("", None)
        if kind and DataType.OTHER.value in message:
            message, hint = message.replace(DataType.OTHER.value, kind), advice or hint
        fail(message, node, code, hint)

    return told


def _raise(message: str, node: s.Node, code: str, hint: str | None) -> NoReturn:
    raise QueryError(message, hint=hint, code=code)


def _column(name: str, node: s.Node, schema: Schema, complain: Fail) -> DataType:
    found = schema.type_of(name)
    if found is None:
        guess = closest(name, schema.names)
        hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(schema.names)}"
        if name == "ts" and guess is None:
            hint = f"the time is in column {name_text(schema.time)}"
        complain(f"no attribute '{name}'", node, "unknown-attribute", hint)
    return found


def _need_condition(found: DataType, node: s.Expression, complain: Fail) -> None:
    if found not in _CONDITIONS:
        complain(f"a {found.value} is not a condition", node, "not-a-condition", "compare it with something")


def _need_number(found: DataType, node: s.Expression, complain: Fail) -> DataType:
    if found not in NUMBERS and found is not DataType.NULL:
        written = expression_text(node)
        if isinstance(node, s.Literal):
            complain(f"{written} is a {found.value}, not a number", node, "type-mismatch", "write a number")
        hint = f"write CAST({written} AS DOUBLE)" if found in (DataType.STRING, DataType.BOOL) else None
        complain(f"'{written}' is a {found.value}, not a number", node, "type-mismatch", hint)
    return found


def _need_comparable(
    left: DataType,
    right: DataType,
    left_node: s.Expression,
    right_node: s.Expression,
    at: s.Node,
    complain: Fail,
    relation: str = "cannot be compared with",
) -> None:
    kinds = {left, right}
    compared = relation == "cannot be compared with"
    if comparable(left, right) and (compared or len(kinds) == 1 or DataType.STRING not in kinds):
        return
    hint = None
    if DataType.OTHER in kinds:
        node = left_node if left is DataType.OTHER else right_node
        hint = f"if it is a struct, name one of its fields, such as {expression_text(node)}.id"
    complain(f"a {left.value} {relation} a {right.value}", at, "type-mismatch", hint)


def _arithmetic(
    operator: str, left: tuple[s.Expression, DataType], right: tuple[s.Expression, DataType], complain: Fail
) -> DataType:
    kinds = [left[1], right[1]]
    if kinds[0] in TIMES and kinds[1] in TIMES and operator == "-":
        return DataType.INT  # microseconds
    if kinds[0] in TIMES and kinds[1] is DataType.INT and operator in "+-":
        return DataType.TIME
    for node, found in (left, right):
        _need_number(found, node, complain)
    if DataType.DECIMAL in kinds and DataType.FLOAT not in kinds:
        return DataType.DECIMAL
    return DataType.FLOAT if operator == "/" or DataType.FLOAT in kinds else DataType.INT


def _aggregate(
    function: str, argument: s.Expression, visit: Callable[[s.Expression], DataType], complain: Fail
) -> DataType:
    aggregate = AGGREGATES[function]
    if isinstance(argument, s.Reference):
        if not aggregate.counts:
            hint = f"name an attribute, such as {function}({argument.variable}[].x)"
            complain(f"{function}() of events, not of values", argument, "event-as-value", hint)
        return DataType.INT
    found = visit(argument)
    if aggregate.numbers:
        _need_number(found, argument, complain)
    elif not aggregate.counts and found not in PLAIN and found is not DataType.NULL:
        complain(f"{function}() of a {found.value}", argument, "type-mismatch", None)
    return aggregate.result or found


def _visited_call(node: s.Call, visit: Callable[[s.Expression], DataType], schema: Schema, complain: Fail) -> DataType:
    """The type of a call. Each argument is visited once, those of an array whose element is asked for, too."""
    of = node.arguments[0] if node.arguments and node.function.lower() in ("get", "element_at") else None
    if not isinstance(of, s.Call) or of.function.lower() != "array":
        return _call(node, [visit(argument) for argument in node.arguments], schema, complain)
    elements = [visit(argument) for argument in of.arguments]
    kinds = [_call(of, elements, schema, complain), *(visit(argument) for argument in node.arguments[1:])]
    found = _call(node, kinds, schema, complain)
    return found if found is DataType.STRING else common_type(elements) or found


def _call(node: s.Call, kinds: list[DataType], schema: Schema, complain: Fail) -> DataType:
    function = find_function(node.function)
    assert function is not None  # checked before
    for place, (argument, found) in enumerate(zip(node.arguments, kinds, strict=True)):
        accepted = function.accepted(place)
        if found is DataType.OTHER or (found not in accepted and found is not DataType.NULL):
            wanted = " or ".join(sorted(kind.value for kind in accepted))
            hint = f"it takes a {wanted}" if not function.user else None
            if DataType.STRING in accepted and found in PLAIN:
                hint = f"{hint}; write CAST({expression_text(argument)} AS string)"
            complain(f"{node.function}() of a {found.value}", argument, "type-mismatch", hint)
    constants = _constants(node, function, complain)
    element = _element(node, kinds, schema, complain) if node.function.lower() in ("get", "element_at") else None
    if element is not None:
        return element
    if function.typed is not None:
        found_type = function.typed(kinds, constants)
        if isinstance(found_type, str):
            complain(found_type, node, "type-mismatch", f"it is written {function.shown}")
        return found_type
    if function.result is not None:
        return function.result
    common = common_type(kinds)
    if common is None:
        complain(f"{node.function}() of different types", node, "type-mismatch", "CAST makes them one type")
    return common


def _constants(node: s.Call, function: Function, complain: Fail) -> list[object]:
    """The arguments that must be constants, checked."""
    given: list[object] = []
    for place in function.constants:
        if place >= len(node.arguments):
            continue
        argument = node.arguments[place]
        if not isinstance(argument, s.Literal):
            hint = f"it is written {function.shown}"
            complain(f"argument {place + 1} of {node.function}() must be a constant", argument, "not-constant", hint)
        given.append(argument.value)
    wrong = function.wrong(given) if function.wrong is not None and given else None
    if wrong is not None:
        at = node.arguments[function.constants[0]]
        complain(wrong, at, "bad-argument", f"it is written {function.shown}")
    return given


def _element(node: s.Call, kinds: list[DataType], schema: Schema, complain: Fail) -> DataType | None:
    """The type of an element of a column of lists or maps."""
    of = node.arguments[0]
    found = schema.element_of(of.name) if isinstance(of, s.Attribute) else None
    if found is not None and kinds[0] is not DataType.MAP and kinds[1] not in (DataType.INT, DataType.NULL):
        hint = "write a number of at least 0, as in a.list[0]"
        complain(f"'{expression_text(of)}' is a {kinds[0].value}", node.arguments[1], "type-mismatch", hint)
    return found
