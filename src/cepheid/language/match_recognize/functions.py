"""The functions a clause may call: navigation, and the functions of values that all languages share.

aggregates.py has the others. Dates and times are Python's here; the library's functions take the microseconds that a
clock shows.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.language.functions import BUILT_IN, find_function
from cepheid.language.library.function import Function
from cepheid.language.library.value_functions import CASTS
from cepheid.language.match_recognize.aggregates import AGGREGATES

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
