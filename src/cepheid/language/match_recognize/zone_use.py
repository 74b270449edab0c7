"""Does the answer of a clause depend on the query's time zone? A stream of it may go on in another zone if not."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from cepheid.language.match_recognize.bound import Apply, BoundClause, Constant, columns_of, walk
from cepheid.language.match_recognize.functions import FUNCTIONS


def zone_matters(clause: BoundClause, instants: Collection[str]) -> bool:
    """Are hours read, or texts, dates and times without an offset compared? `instants` are columns with a zone."""
    roots = [*clause.conditions.values(), *(measure for _, measure in clause.measures)]
    return any(
        isinstance(node, Apply) and _reads_clocks(node, frozenset(instants)) for root in roots for node in walk(root)
    )


def _reads_clocks(node: Apply, instants: frozenset[str]) -> bool:
    if node.function == "zoned":
        return True
    if not columns_of(node) & instants:
        return False
    function = FUNCTIONS.get(node.function)
    if node.function in ("cast", "||") or (function is not None and function.result is not None):
        return function is None or not function.instant
    return any(isinstance(each, Constant) and isinstance(each.value, str | date) for each in node.arguments)
