"""What operators and functions of the expression tree compute from Python's values, for all languages.

The library's functions take times as the microseconds that a clock shows; here they are Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.library import scalars
from cepheid.language.library.function import Function
from cepheid.language.library.growth import bounded_text
from cepheid.language.library.operators import day_of, in_utc, in_zone, known, micros_of, midnight, negative, time_of
from cepheid.language.library.time_functions import keeps_offset
from cepheid.language.schema import DataType
from cepheid.language.zones import name_of, to_instant

TAKING_TEXTS = frozenset({"concat", "concat_ws"})  # which take other values as their texts


def function_of(node: s.Expression) -> Callable[..., scalars.Value]:
    """What an operator or a function computes from the values of its parts, constants included.

    >>> function_of(s.Arithmetic("+", s.Literal(1), s.Literal(None)))(1, None) is None
    True
    """
    match node:
        case s.Arithmetic(operator=sign, target=target):
            wanted = None if target is None else scalars.decimal_parts(scalars.type_parts(target)[1])
            return scalars.divide_whole(wanted) if sign == "whole /" else scalars.arithmetic(sign, wanted)
        case s.Comparison(operator=sign):
            return scalars.COMPARISONS[sign]
        case s.Membership(negated=negated):
            return _negated(scalars.member) if negated else scalars.member
        case s.Between(negated=negated):
            return _negated(scalars.between) if negated else scalars.between
        case s.IsNull(negated=negated):
            return lambda value: (known(value) is None) != negated
        case s.And():
            return scalars.conjunction
        case s.Or():
            return scalars.disjunction
        case s.Not():
            return scalars.opposite
        case s.Negative():
            return negative
        case s.Call(function=name, target=target):
            call = _called(name)
            return call if target is None else _as_type(call, target)
    raise TypeError(f"{type(node).__name__} is no function")


def _called(name: str) -> Callable[..., scalars.Value]:
    if name in scalars.OPERATORS:
        return bounded_text(name, scalars.OPERATORS[name])
    function = find_function(name)
    assert function is not None
    return _strict(function.apply) if function.user else bounded_text(name, called(function))


def _negated(call: Callable[..., scalars.Value]) -> Callable[..., scalars.Value]:
    return lambda *values: scalars.opposite(call(*values))


def _as_type(call: Callable[..., scalars.Value], target: str) -> Callable[..., scalars.Value]:
    """A function whose results are brought to one type."""
    return lambda *values: scalars.cast(call(*values), target)


def _strict(call: Callable[..., scalars.Value]) -> Callable[..., scalars.Value]:
    def function(*values: scalars.Value) -> scalars.Value:
        return None if any(value is None for value in values) else call(*values)

    return function


def called(function: Function) -> Callable[..., scalars.Value]:
    """A function of the library over values as clauses have them."""
    takes_texts = function.name in TAKING_TEXTS

    def call(*values: scalars.Value) -> scalars.Value:
        given = [known(value) for value in values]
        if function.strict and any(value is None for value in given):
            return None
        if takes_texts:
            given = [value if value is None or isinstance(value, list) else scalars.text_of(value) for value in given]
        near = next((value for value in given if isinstance(value, datetime) and value.tzinfo), None)
        if function.result is not None:
            given = [_micros(value, function) if isinstance(value, date) else value for value in given]
        constants = function.constants_of(given)
        if constants and function.wrong is not None and function.wrong(constants) is not None:
            return None
        try:
            return _value(function.apply(*given), function, near, isinstance(given[0], str) and keeps_offset(given[0]))
        except (ArithmeticError, ValueError, KeyError, MemoryError):
            return None

    return call


def _micros(value: date, function: Function) -> int:
    at = midnight(value)
    return micros_of(at.astimezone(UTC) if function.instant and at.tzinfo else at)


def _value(found: scalars.Value, function: Function, near: datetime | None, offset: bool) -> scalars.Value:
    found = known(found.item() if hasattr(found, "item") else found)
    if function.result is DataType.TIME:
        if function.gives_instant:
            return time_of(found, UTC)
        return time_of(found) if near is None or function.gives_instant is False else _shown_at(found, near, offset)
    return day_of(found) if function.result is DataType.DATE else found


def _shown_at(micros: int | None, near: datetime, offset: bool) -> datetime | None:
    """When the clocks that show another time show this one; with `offset`, put as they were at the other."""
    if micros is None or near.tzinfo is None:
        return time_of(micros)
    found = time_of(to_instant(micros, name_of(near.tzinfo), micros_of(in_utc(near)) if offset else None), UTC)
    return None if found is None else in_zone(found, near.tzinfo)
