"""What a lazy kernel needs to know of a query: which condition can be tested once which components are filled.

The order in which components are filled is not known here, so every condition is a case of its own and carries the
set of places it needs, as a bit mask; so does every negated component.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types

from cepheid.engine.data.candidates import WILD, Candidates
from cepheid.engine.data.columns import INT64S
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENT_WINDOW, NO_WINDOW, TIME_WINDOW
from cepheid.engine.values.cases import any_variables, branch_cases, negative_conditions, slots_of
from cepheid.engine.values.compiled import Case, Predicate, compile_cases
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery


class Shape(NamedTuple):
    """The query, as a kernel sees it. Cases: the conjuncts, the negated components, then disjunct by disjunct."""

    positives: int
    negatives: int
    window_kind: int
    window: int
    rising: bool  # do positions rise along a partition, so that they can be bisected?
    postponed: bool
    needs: Int64s  # per conjunct: the places it mentions
    neg_after: Int64s  # per negated component: the positive before it, -1 for the window's edge
    neg_before: Int64s  # ... and the positive behind it
    neg_needs: Int64s  # ... and the places that must be filled before it can be judged
    tested: Int64s  # per case: 1 if there is a condition to test
    branches: int  # disjuncts of the condition; with more than one, negation is judged per disjunct


SHAPE = types.NamedTuple(
    (
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.boolean,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
    ),
    Shape,
)


@dataclass(frozen=True)
class Compiled:
    """A query's shape and its compiled conditions."""

    shape: Shape
    predicate: Predicate


def compile_query(bound: BoundQuery, prepared: Candidates) -> Compiled:
    """One case per condition, with the places each needs."""
    count = len(bound.positives)
    _, slot = slots_of(bound)
    conjuncts = [conjunct for conjunct in bound.conjuncts if not conjunct.own]
    negative = negative_conditions(bound)
    cases = [Case((conjunct.expression,), slot) for conjunct in conjuncts]
    cases += [Case(tuple(parts), slot) for parts in negative]
    cases += branch_cases(bound, slot)
    predicate = compile_cases(cases, bound.schema, any_variables(bound))
    window = bound.window
    # Of absent keys, equal to everything, one may agree with the events chosen so far and not with the next.
    wild = bool(np.any(prepared.compared == WILD))
    everything = (1 << count) - 1
    needs = [everything if wild else _negation_needs(bound, j, parts) for j, parts in enumerate(negative)]
    shape = Shape(
        count,
        len(bound.negations),
        NO_WINDOW if window is None else EVENT_WINDOW if window.events else TIME_WINDOW,
        window.length if window is not None else 0,
        len(prepared.compared) == 0,  # positions count the events of one key; keys compared later mix in a partition
        bound.postponed,
        np.array([_mask(bound, conjunct.variables) for conjunct in conjuncts], np.int64),
        np.array([-1 if n.after is None else n.after for n in bound.negations], np.int64),
        np.array([-1 if n.before is None else n.before for n in bound.negations], np.int64),
        np.array(needs, np.int64),
        np.array(predicate.cases, np.int64),
        len(bound.branches),
    )
    return Compiled(shape, predicate)


def _mask(bound: BoundQuery, variables: frozenset[str]) -> int:
    return sum(1 << bound.place_of[name] for name in variables)


def _negation_needs(bound: BoundQuery, index: int, parts: list[s.Expression]) -> int:
    """Its neighbours, what its conditions mention and, at the edge, both ends: the window hangs on them."""
    negation = bound.negations[index]
    last = len(bound.positives) - 1
    places = {0, last} if negation.after is None or negation.before is None else {negation.after, negation.before}
    mentioned = frozenset(name for part in parts for name in s.variables_of(part)) - {negation.component.variable}
    return sum(1 << place for place in places) | _mask(bound, mentioned)
