"""The states of a tree (LAZY section 6): made when they are reached, each with what it learned about its take edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int64Rows, Int64s
from cepheid.engine.data.layout import INSTANT, Events
from cepheid.engine.data.value_index import ValueIndex
from cepheid.engine.kernels.arrays import grown_rows
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.program.tables import NEEDS, NEGATION_NEEDS, Program
from cepheid.engine.search.lazy.conditions import newly
from cepheid.engine.search.lazy.scope import Buffer, narrowed, scope

# What a step into a state is told: the depth, the places filled so far, the state reached, and whether the tree learns.
DEPTH, FILLED, TARGET, LEARN = range(4)

UNCONDITIONAL, UNKNOWN = 0.0, 2.0  # in place of a number of tests: there is nothing to test; nothing was tested yet
MEMORY = 4096.0  # candidates after which what was learned about an edge counts half
FADING = 1.0 - 1.0 / 256.0  # an edge that is not taken seems a little more selective with time, so it is tried again


class Edges(NamedTuple):
    """What was learned about take edges, a row per state: candidates looked at, and those that passed."""

    tested: Float64Rows
    passed: Float64Rows


@borrowing
def tests_something(program: Program, compares: bool, filled: int, place: int) -> bool:
    """Can a candidate fail on the take edge of this place?"""
    both = filled | (1 << place)
    if compares and filled != 0:
        return True
    for test in range(program.moments[1]):
        if newly(program.tests[test, NEEDS], filled, both):
            return True
    if program.judged:
        return bool(both == (1 << program.places) - 1)
    for negation in range(program.negatives):
        if newly(program.negations[negation, NEGATION_NEEDS], filled, both):
            return True
    return False


@borrowing
def make_edges(program: Program, compares: bool, edges: Edges, row: int, filled: int) -> None:
    """The edges of a state for partial matches with these places filled, with nothing known about them."""
    for place in range(program.places):
        # An edge without conditions lets everything pass; another is given one half until it is known better.
        edges.tested[row, place] = UNKNOWN if tests_something(program, compares, filled, place) else UNCONDITIONAL
        edges.passed[row, place] = 1.0


class States(NamedTuple):
    """The states made so far, with the state that each edge leads to (-1: not made yet)."""

    following: Int64Rows
    edges: Edges
    made: Int64s  # one number: how many


MAX_STATES = 1 << 16  # orders beyond these share the last state; nothing but counters and speed depends on it


@kernel
def initial_states(program: Program, compares: bool) -> States:
    """The state in which no place is filled."""
    shape = 16, program.places
    states = States(np.full(shape, -1), Edges(np.empty(shape), np.empty(shape)), np.ones(1, np.int64))
    make_edges(program, compares, states.edges, 0, 0)
    return states


@kernel
def with_state(states: States, program: Program, compares: bool, state: int, place: int, filled: int) -> States:
    """The same states and the one that an edge leads to, for partial matches with these places filled."""
    following, edges, made = states
    count = made[0]
    if count < MAX_STATES:
        if count == len(following):
            rows, places = edges.tested.shape
            tested, passed = np.empty((2 * rows, places)), np.empty((2 * rows, places))
            tested[:rows], passed[:rows] = edges.tested, edges.passed
            following, edges = grown_rows(following), Edges(tested, passed)
        following[count] = -1
        make_edges(program, compares, edges, count, filled)
        made[0] = count + 1
    following[state, place] = made[0] - 1
    return States(following, edges, made)


@borrowing
def learn_edge(edges: Edges, row: int, place: int, taken: bool) -> None:
    """Takes in what became of a candidate on a state's edge."""
    if edges.tested[row, place] == UNCONDITIONAL:
        return
    edges.tested[row, place] += 1.0
    if taken:
        edges.passed[row, place] += 1.0
    if edges.tested[row, place] > MEMORY:
        edges.tested[row, place] /= 2.0
        edges.passed[row, place] /= 2.0


class Next(NamedTuple):
    """The open place to fill next, and where its candidates lie: from, to, and in which index (-1: in its stack)."""

    place: int
    low: int
    high: int
    link: int
    ready: int  # the instant from which every open place has a candidate


@borrowing
def choose(
    events: Events,
    program: Program,
    buffer: Buffer,
    index: ValueIndex,
    at: Int64s,
    filled: int,
    edges: Edges,
    step: Int64s,
) -> Next:
    """The open place to fill next. `step` says which state's edges these are, and whether the tree learns.

    Place -1: one has none (the paper's p_ne), so nothing is evaluated. By counters alone the fewest candidates win
    (p_se). With `learn`, the share that passed before counts, too: the rank of join ordering, (count * share - 1) /
    count, which is the order of the counts where nothing is known to fail.
    """
    best, best_low, best_high, best_link, ready = -1, 0, 0, -1, 0
    best_rank = np.inf
    row, learn = step[TARGET], step[LEARN] == 1
    for place in range(program.places):
        if filled & (1 << place):
            continue
        begin, end = scope(events, program, buffer, at, filled, place)
        if begin < end:
            ready = max(ready, events.facts[INSTANT, buffer.stacks[place, begin]])
        begin, end, link = narrowed(buffer, index, at, filled, place, begin, end)
        if begin >= end:
            return Next(-1, 0, 0, -1, 0)
        tested = edges.tested[row, place]
        share = edges.passed[row, place] / tested if learn and tested != UNCONDITIONAL else 1.0
        rank = share - 1.0 / (end - begin)
        if rank < best_rank:
            best, best_low, best_high, best_link, best_rank = place, begin, end, link, rank
    for place in range(program.places):
        if place != best:
            edges.passed[row, place] *= FADING
    return Next(best, best_low, best_high, best_link, ready)


@borrowing
def lacks(events: Events, program: Program, buffer: Buffer, at: Int64s, filled: int) -> bool:
    """Has some open place no candidate in its scope?"""
    for place in range(program.places):
        if filled & (1 << place) == 0:
            begin, end = scope(events, program, buffer, at, filled, place)
            if begin >= end:
                return True
    return False
