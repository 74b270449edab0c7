"""States and edges as the run kernels read them: of a sequence, or of a pattern that is an expression.

In a sequence the state that is reached by filling a place has that place's number: a Kleene group takes a further event
or, once it may close, begins the next component. The last row is the state before the first event, which is also -1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import INT64_ROWS
from cepheid.engine.program.tables import BEGIN, BEGUN_BY, CLOSE, CONTIGUOUS, KLEENE, TAKE, TAKEN_BY, Program
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.ends import is_end
from cepheid.plan.states import States

Rows = npt.NDArray[np.int64]


class Graph(NamedTuple):
    """An automaton, as kernels see it."""

    states: Rows
    edges: Rows
    passed: (
        Rows  # what must not lie before an edge: the negated component, the moment of what kills, does it end a group?
    )
    widest: int  # the most edges of a state


GRAPH = types.NamedTuple((INT64_ROWS, INT64_ROWS, INT64_ROWS, types.int64), Graph)

# Columns of `passed`: the negated component, the moment of what kills, and does it end a group?
NEGATED, KILLS_AT, ENDS = range(3)
# Columns of `states`: the place filled last; its edges, from : to; can a match end here; the moment of what must hold
# then, and for a group to close (-1: nothing); has it an edge to a further round; as bit masks, the places that a first
# and that a further event can fill; and do runs end with the next instant, whatever it holds, if they cannot go on?
FILLED, EDGES_FROM, EDGES_TO, FINAL, CLOSING, LOOPS, BEGINNING, TAKING, HURRIED = range(9)
# Columns of `edges`: the place that the event fills; the state it leads to; is the event the first one of its place;
# is it a further round; must the group before be closed; the moment of its conditions; negated components, from : to;
# and by which strategy the event is reached from the one before it.
FILLS, LEADS_TO, FIRST, FURTHER, CLOSED_FIRST, MOMENT, PASSED_FROM, PASSED_TO, REACHED_BY = range(9)


def sequence_graph(program: Program) -> Graph:
    """The states of a plain sequence."""
    places = program.places
    edges: list[list[tuple[int, ...]]] = []
    for place in range(places):
        kleene = bool(program.place[place, KLEENE])
        taken, begun = int(program.place[place, TAKEN_BY]), int(program.place[place + 1, BEGUN_BY])
        own: list[tuple[int, ...]] = [(place, place, 0, 1, 0, 3 * place + TAKE, 0, 0, taken)] if kleene else []
        if place + 1 < places:
            own.append((place + 1, place + 1, 1, 0, int(kleene), 3 * (place + 1) + BEGIN, 0, 0, begun))
        edges.append(own)
    edges.append([(0, 0, 1, 0, 0, BEGIN, 0, 0, 0)])
    closing = [3 * place + CLOSE if program.place[place, KLEENE] else -1 for place in range(places)]
    return make_graph([*range(places), 0], edges, [place == places - 1 for place in range(places)], closing, [])


def expression_graph(automaton: States, bound: BoundQuery, strategies: Mapping[s.Strategy, int]) -> Graph:
    """The states of an expression; its moments are in the order in which `place_on_edges` puts them in a row."""
    place_of = bound.place_of
    negated = {negation.component.variable: number for number, negation in enumerate(bound.negations)}
    moment = 3 * len(bound.positives) + len(negated)
    edges: list[list[tuple[int, ...]]] = []
    closing: list[int] = []
    passed: list[tuple[int, int, int]] = []
    for state in automaton.states:
        own: list[tuple[int, ...]] = []
        for edge in state.edges:
            begun = len(passed)
            passed += [
                (negated[name], moment + 1 + number, is_end(name)) for number, (name, _) in enumerate(edge.negated)
            ]
            fills, by = place_of[edge.variable], strategies[edge.reached_by]
            own.append((fills, edge.target, edge.first, edge.further, 0, moment, begun, len(passed), by))
            moment += 1 + len(edge.negated)
        edges.append(own)
        closing.append(moment if state.final and state.tests else -1)
        moment += 1
    filled = [place_of.get(state.key.last or "", 0) for state in automaton.states]
    return make_graph(filled, edges, [state.final for state in automaton.states[:-1]], closing[:-1], passed)


def make_graph(
    filled: Sequence[int],
    edges: Sequence[Sequence[tuple[int, ...]]],
    final: Sequence[bool],
    closing: Sequence[int],
    passed: Sequence[tuple[int, int, int]],
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
                int(inside and final[number]),
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
        np.array(passed, np.int64).reshape(-1, 3),
        max(len(own) for own in edges),
    )
