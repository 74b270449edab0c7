"""Drawn totals over matches, and how rows of totals are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.language.bound import BoundSummary
from cepheid.language.check import check

Draw = Any


@st.composite
def summarised(draw: Draw, query: s.QuerySyntax, every: bool | None = None) -> s.QuerySyntax:
    """A drawn query with drawn totals; `every`: with EVERY, without, or as drawn."""
    positives = [component.variable for component in query.components if not component.negative]
    items = []
    for _ in range(draw(st.integers(0, 4))):
        function = draw(st.sampled_from(("count", "sum", "avg", "min", "max")))
        of = s.Reference(draw(st.sampled_from(positives)))
        column = draw(st.sampled_from(("x", "z", "f", "s" if function in ("min", "max", "count") else "y")))
        argument: s.Expression = s.Attribute(of, column)
        if column == "x" and draw(st.booleans()):
            argument = s.Arithmetic("*", argument, s.Literal(draw(st.integers(-3, 3))))
        items.append(s.Total(function, of if function == "count" and draw(st.booleans()) else argument))
    items = [replace(item, alias=f"total {number}") for number, item in enumerate(items)]
    tests = [name for part in _parts(query) if isinstance(part, s.Equivalence) for name, _ in part.tests]
    by = tuple(name for name in dict.fromkeys(tests) if draw(st.booleans()))
    wanted = draw(st.booleans()) if every is None else every
    length = s.Window(draw(st.integers(1, 9))) if wanted else None
    summary = s.Summary((s.Total("count"), s.Total("approximate_count"), *items), by, length)
    return check(replace(query, summary=summary, returns=None))


def _parts(query: s.QuerySyntax) -> tuple[s.Expression, ...]:
    where = query.where
    return () if where is None else where.operands if isinstance(where, s.And) else (where,)


def assert_same_totals(summary: BoundSummary, found: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> None:
    """The same rows, in any order; fractions may differ as sums in another order do."""
    assert len(found) == len(other)
    for one, two in zip(_sorted(summary, found), _sorted(summary, other), strict=True):
        assert one.keys() == two.keys()
        for name, value in two.items():
            assert same(one[name], value), (name, one, two)


def _sorted(summary: BoundSummary, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = [*summary.by, *(["bucket"] if summary.every is not None else [])]
    return sorted(rows, key=lambda row: [(row[key] is not None, row[key]) for key in keys])


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and other is not None:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool((int(one) if isinstance(one, Decimal) else one) == other)
