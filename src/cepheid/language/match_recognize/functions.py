"""The functions a clause may call: navigation, and the functions of values that all languages share.

aggregates.py has the others. Dates and times are Python's here; the library's functions take the microseconds that a
clock shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime

from cepheid.language.functions import BUILT_IN, find_function
from cepheid.language.library.function import Function
from cepheid.language.library.operators import day_of, in_utc, in_zone, known, micros_of, midnight, time_of
from cepheid.language.library.time_functions import keeps_offset
from cepheid.language.library.value_functions import CASTS
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.scalars import Value, text_of
from cepheid.language.schema import DataType
from cepheid.language.zones import name_of, to_instant

MANY = 64  # arguments at most
# Functions that go to another row; Snowflake calls two of them LAG and LEAD.
NAVIGATIONS = frozenset({"first", "last", "prev", "next", "lag", "lead"})
MATCH_FUNCTIONS = frozenset({"classifier", "match_number", "match_sequence_number", "match_rowtime"})
MATCH_FUNCTIONS |= {"match_row_number"}  # BigQuery's name for the second
# The time at which a query begins.
CLOCKS = frozenset({"current_timestamp", "now", "localtimestamp", "current_date"})
# Functions whose first argument may be a unit of time written as a bare word; with two arguments they count days.
WITH_UNITS = frozenset({"datediff", "date_diff", "timestampdiff"})
# Operators that have a form of their own in a clause.
_OPERATORS = frozenset({"case", "cast", "try_cast", "like_pattern", "ilike_pattern", "rlike_pattern"})


def _in_clauses(function: Function) -> Function:
    if function.name in WITH_UNITS:
        return replace(function, most=3)
    if function.name == "if":
        return replace(function, least=2)
    return replace(function, most=MANY) if function.most > 3 else function


TAKING_TEXTS = frozenset({"concat", "concat_ws"})  # which take other values as their texts
FUNCTIONS: dict[str, Function] = {
    name: _in_clauses(function)
    for name, function in BUILT_IN.items()
    if name not in _OPERATORS and name not in AGGREGATES
}


def is_built_in(name: str) -> bool:
    """Does a call of this name mean a function of the library? The user's own go first, in every language."""
    found = find_function(name)
    return name in FUNCTIONS and found is not None and not found.user


def written_for(name: str, arguments: int) -> tuple[str, str | None]:
    """The function or operator that a call means, and the type of a CAST.

    >>> written_for("mod", 2), written_for("to_date", 1), written_for("datediff", 3)
    (('%', None), ('cast', 'date'), ('timestampdiff', None))
    """
    if name == "mod":
        return "%", None
    if name in CASTS:
        return "cast", CASTS[name]
    return ("timestampdiff" if name in WITH_UNITS and arguments == 3 else name), None


def called(function: Function) -> Callable[..., Value]:
    """A function of the library over values as clauses have them."""
    takes_texts = function.name in TAKING_TEXTS

    def call(*values: Value) -> Value:
        given = [known(value) for value in values]
        if function.strict and any(value is None for value in given):
            return None
        if takes_texts:
            given = [value if value is None or isinstance(value, list) else text_of(value) for value in given]
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


def _value(found: Value, function: Function, near: datetime | None, offset: bool) -> Value:
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
