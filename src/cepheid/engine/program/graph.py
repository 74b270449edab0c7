"""The automaton of a query as the run kernels read it: a row for each state that a run can be in, and its edges.

In a sequence the state that is reached by filling a place has that place's number: a Kleene group takes a further event
or, once it may close, begins the next component. The last row is the state before the first event, which is also -1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.program.tables import BEGIN, CLOSE, CONTIGUOUS, TAKE
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.automaton import Kind, QueryAutomaton, QueryEdge, QueryState, Tests
from cepheid.plan.ends import is_end


class Graph(NamedTuple):
    """An automaton, as kernels see it."""

    states: Int64Rows
    edges: Int64Rows
    passed: Int64Rows  # what must not lie before an edge: see the columns below
    widest: int  # the most edges of a state


# Columns of `passed`: the negated component, the moment of what kills, does it end a group, and does that depend on the
# event that the edge takes?
NEGATED, KILLS_AT, ENDS, DEPENDS = range(4)
UNENDED = 2  # in FINAL: only if nothing that must not happen has ended all edges
# Columns of `states`: the place filled last; its edges, from : to; can a match end here; the moment of what must hold
# then, and for a group to close (-1: nothing); has it an edge to a further round; as bit masks, the places that a first
# and that a further event can fill; and do runs end with the next instant, whatever it holds, if they cannot go on?
FILLED, EDGES_FROM, EDGES_TO, FINAL, CLOSING, LOOPS, BEGINNING, TAKING, HURRIED = range(9)
# Columns of `edges`: the place that the event fills; the state it leads to; is the event the first one of its place;
# is it a further round; must the group before be closed; the moment of its conditions; negated components, from : to;
# and by which strategy the event is reached from the one before it.
FILLS, LEADS_TO, FIRST, FURTHER, CLOSED_FIRST, MOMENT, PASSED_FROM, PASSED_TO, REACHED_BY = range(9)


def graph_of(
    automaton: QueryAutomaton, bound: BoundQuery, strategies: Mapping[s.Strategy, int], *, unended: bool = False
) -> Graph:
    """The tables of an automaton: a row for each state that an event leads to, the start in the last one.

    Kernels do not proceed: the edges of the state that a group proceeds to stand in the group's own row.
    `unended`: a run ends in a state only if some edge is left to it till the end of its window.
    """
    place_of = bound.place_of
    filled = {edge.target: place_of[edge.variable] for state in automaton.states for edge in state.takes}
    numbers = (*sorted(filled), automaton.start)
    row_of = {number: row for row, number in enumerate(numbers)}
    moments = moments_of(automaton, bound)
    negated = {negation.component.variable: number for number, negation in enumerate(bound.negations)}
    edges: list[list[tuple[int, ...]]] = []
    passed: list[tuple[int, ...]] = []
    for number in numbers:
        own: list[tuple[int, ...]] = []
        for source in (number, *(edge.target for edge in automaton.proceeds(automaton.states[number], final=False))):
            for index, edge in enumerate(automaton.states[source].takes):
                moment, begun = moments[source][index], len(passed)
                kills = enumerate(edge.forbids, moment + 1)
                passed += [(negated[name], at, is_end(name), _depends(edge, tests)) for at, (name, tests) in kills]
                fills, by = place_of[edge.variable], strategies[edge.reached_by]
                closed = source != number
                row = (fills, row_of[edge.target], edge.first, edge.further, closed, moment, begun, len(passed), by)
                own.append(row)
        edges.append(own)
    inside = [automaton.states[number] for number in numbers[:-1]]
    final = [int(state.kind is Kind.FINAL or automaton.end(state) is not None) for state in inside]
    if unended:
        guarded = [any(edge.forbids for edge in state.takes) for state in inside]
        final = [UNENDED if ends and ended else ends for ends, ended in zip(final, guarded, strict=True)]
    closing = [moments[number][-1] for number in numbers[:-1]]
    return make_graph([filled.get(number, 0) for number in numbers], edges, final, closing, passed)


def _depends(edge: QueryEdge, tests: Tests) -> bool:
    return any(edge.variable in s.variables_of(test.expression) for test in tests)


def moments_of(automaton: QueryAutomaton, bound: BoundQuery) -> list[list[int]]:
    """For each state the moments of the edges that take an event, then that of what must hold to proceed (-1: nothing).

    A sequence has its moments by place. In an expression they are in the order in which `place_on_edges` puts them in
    a row: for each state those of each edge and of what the edge forbids, then that of the end.
    """
    if bound.is_linear:
        return [_moments_of_place(state, bound) for state in automaton.states]
    found: list[list[int]] = []
    moment = 3 * len(bound.positives) + len(bound.negations)
    for state in automaton.states:
        own: list[int] = []
        for edge in state.takes:
            own.append(moment)
            moment += 1 + len(edge.forbids)
        end = automaton.end(state)
        found.append([*own, moment if end is not None and end.guard else -1])
        moment += 1
    return found


def _moments_of_place(state: QueryState, bound: BoundQuery) -> list[int]:
    found, closing = [], -1
    for edge in state.takes:
        place = 3 * bound.place_of[edge.variable]
        found.append(place + (BEGIN if edge.first else TAKE))
        closing = -1 if edge.first else place + CLOSE
    return [*found, closing]


def make_graph(
    filled: Sequence[int],
    edges: Sequence[Sequence[tuple[int, ...]]],
    final: Sequence[int],
    closing: Sequence[int],
    passed: Sequence[tuple[int, ...]],
) -> Graph:
    """The tables of an automaton whose last state is the one before the first event."""
    starts = [0, *accumulate(len(own) for own in edges)]
    states = []
    for number, own in enumerate(edges):
        begins = sum(1 << place for place in {edge[FILLS] for edge in own if edge[FIRST]})
        takes = sum(1 << place for place in {edge[FILLS] for edge in own if not edge[FIRST]})
        inside = number < len(final)
        states.append(
            (
                filled[number],
                starts[number],
                starts[number + 1],
                final[number] if inside else 0,
                closing[number] if inside else -1,
                int(any(edge[FURTHER] for edge in own)),
                begins,
                takes,
                int(bool(own) and inside and all(edge[REACHED_BY] >= CONTIGUOUS for edge in own)),
            )
        )
    every = [edge for own in edges for edge in own]
    return Graph(
        np.array(states, np.int64).reshape(-1, 9),
        np.array(every, np.int64).reshape(-1, 9),
        np.array(passed, np.int64).reshape(-1, 4),
        max(len(own) for own in edges),
    )
