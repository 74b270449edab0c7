"""An index by the order of values, for totals: what an event may follow are the matches whose last value is smaller.

Where one comparison ties an event to the one before it (`a[i].x > a[i-1].x`, `a.x < b.x`), the matches that it can
follow are a prefix of those so far in the order of that value. A Fenwick tree keeps the sums of prefixes: to enter an
event and to ask for a prefix takes a logarithm, where asking each event before takes them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import ColumnLayout, Columns, storage
from cepheid.engine.program.carry import AT_HAND, BEFORE, reads
from cepheid.engine.program.tables import BEGIN, TAKE
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.language.schema import DataType
from cepheid.plan.placement import begin_conjuncts, take_conjuncts

NO_TREE = -1
OFFSET, SIZE = range(2)  # columns of `span`
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class OrderIndex(NamedTuple):
    """Which comparisons have a tree, and where each event stands in it."""

    tree: Int64Rows  # by place: of what its first event may follow, of what its further ones may; NO_TREE
    span: Int64Rows  # by tree: where its sums begin, and how many positions it has
    enters: Int64Rows  # by tree and event: the position of the matches that have come to it, from 1; 0: none
    below: Int64Rows  # by tree and event: it may follow what stands up to this position


def compared_with_the_one_before(bound: BoundQuery, place: int, moment: int) -> s.Comparison | None:
    """The one comparison that ties an event to the one before it, with the event at hand on the left."""
    conjuncts: tuple[Conjunct, ...] = take_conjuncts(bound, place) if moment == TAKE else begin_conjuncts(bound, place)
    tying = [conjunct for conjunct in conjuncts if not conjunct.own]
    between = [n for n in bound.negations if n.before == place and n.after is not None]
    if len(tying) != 1 or (moment == BEGIN and (place == 0 or between)):
        return None
    test = tying[0].expression
    if not isinstance(test, s.Comparison) or test.operator not in MIRRORED:
        return None
    sides = (test.left, test.right)
    if not all(isinstance(side, s.Attribute) and side.default is None for side in sides):
        return None
    kinds = [reads(bound, side, place, moment) for side in sides]
    if kinds == [{AT_HAND}, {BEFORE}]:
        return test
    return s.Comparison(MIRRORED[test.operator], *reversed(sides)) if kinds == [{BEFORE}, {AT_HAND}] else None


def order_index(bound: BoundQuery, layout: ColumnLayout, columns: Columns, events: int) -> OrderIndex:
    """The trees of a query over its candidates."""
    tree = np.full((len(bound.positives), 2), NO_TREE, np.int64)
    enters: list[Int64s] = []
    below: list[Int64s] = []
    span: list[tuple[int, int]] = []
    for place, component in enumerate(bound.positives):
        for kind, moment in enumerate((BEGIN, TAKE)):
            if moment == TAKE and not component.kleene:
                continue
            test = compared_with_the_one_before(bound, place, moment)
            sides = None if test is None else _values(test, layout, columns)
            if test is None or sides is None:
                continue
            (current, known), (before, seen) = sides
            distinct = np.unique(before[seen])
            size, above = len(distinct), test.operator in (">", ">=")
            strict = test.operator in (">", "<")
            rank = np.searchsorted(distinct, before)
            reached = np.searchsorted(distinct, current, side="left" if strict == above else "right")
            enters.append(np.where(seen, rank + 1 if above else size - rank, 0))
            below.append(np.where(known, reached if above else size - reached, 0))
            tree[place, kind] = len(span)
            span.append((sum(1 + before for _, before in span), size))
    stacked = [
        np.ascontiguousarray(np.stack(rows), np.int64) if rows else np.zeros((0, events), np.int64)
        for rows in (enters, below)
    ]
    return OrderIndex(tree, np.array(span, np.int64).reshape(-1, 2), *stacked)


def _values(
    test: s.Comparison, layout: ColumnLayout, columns: Columns
) -> list[tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]] | None:
    """Both sides for each event, with where they are known; None: they are not numbers of one kind."""
    found = []
    kinds = set()
    for side in (test.left, test.right):
        assert isinstance(side, s.Attribute)
        if side.name not in [name for name, _, _ in layout.attributes]:
            return None
        kind = layout.type_of(side.name)
        if kind not in (DataType.INT, DataType.FLOAT, DataType.TIME):
            return None
        kinds.add(storage(kind))
        values = columns.number if storage(kind) == "number" else columns.whole
        found.append((values[layout.value_row(side.name)], columns.null[layout.null_row(side.name)] == 0))
    return found if len(kinds) == 1 else None
