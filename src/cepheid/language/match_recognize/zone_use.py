"""Does the answer of a clause depend on the query's time zone? A stream of it may go on in another zone if not."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.match_recognize.bound import BoundClause, columns_of


def zone_matters(clause: BoundClause, instants: Collection[str]) -> bool:
    """Are hours read, or texts, dates and times without an offset compared? `instants` are columns with a zone."""
    roots = [*clause.conditions.values(), *(measure for _, measure in clause.measures)]
    return any(_reads_clocks(node, frozenset(instants)) for root in roots for node in s.walk(root))


def _reads_clocks(node: s.Expression, instants: frozenset[str]) -> bool:
    name = node.function if isinstance(node, s.Call) else ""
    if name == "in zone":
        return True
    if not columns_of(node) & instants:
        return False
    if name in ("cast", "||"):
        return True
    function = find_function(name)
    if function is not None and function.result is not None and not function.user:
        return not function.instant
    return any(isinstance(each, s.Literal) and isinstance(each.value, str | date) for each in s.children(node))
