"""OUTPUT PARTIAL by runs: those whose window passed before they were complete.

All that runs take on the way is listed; what no run went on from, and is no match, waited in vain. Under contiguity a
run that meets an event which it cannot take is over, not given up: it waited only if nothing came before its window
had passed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.candidates import partitions
from cepheid.engine.data.matches import MISSING, NEVER, Matches
from cepheid.engine.data.shared import once
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.program.compile import Automata
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.automaton import Automaton
from cepheid.plan.lowering import automaton_of
from cepheid.plan.physical import Plan

Bools = npt.NDArray[np.bool_]


class Ways(NamedTuple):
    """What runs have taken: of each, a number for it, one for the same without the last event, the state, the last row.

    Equal ways have equal numbers.
    """

    own: Int64s
    before: Int64s
    ends: Int64s
    last: Int64s


def find_given_up(plan: Plan, events: EventTable, beginnings: Callable[[Automata], Matches], *span: int) -> Matches:
    """The runs that waited for the variables that are asked for until their window had passed."""
    bound = plan.bound
    automaton = automaton_of(bound)
    assert isinstance(automaton, Automaton)
    asked = bound.asking(output=s.Output()).syntax  # queries that wait for something else have the same runs
    key = ("given up", asked, plan.limits, *span)
    found, given_up, ends = once(events, key, lambda: _given_up(bound, automaton, events, beginnings))
    return found.take(np.flatnonzero(given_up & _waits(bound, automaton)[ends]))


def _given_up(
    bound: BoundQuery, automaton: Automaton[Any], events: EventTable, beginnings: Callable[[Automata], Matches]
) -> tuple[Matches, Bools, Int64s]:
    """The runs, which of them took nothing more, and the states that they have come to."""
    found = beginnings("beginnings")
    every = [beginnings("beginnings, refused or not"), found] if bound.negations else [found]
    ways = _ways(bound, automaton, every)
    judged = slice(len(ways.own) - len(found), None)
    others = slice(None) if len(every) == 1 else slice(judged.start)
    went_on = np.zeros(int(ways.own.max(initial=0)) + 1, bool)
    went_on[ways.before[others]] = True
    kept = ~went_on[ways.own[judged]]
    if bound.contiguous:
        kept &= _next_times(bound, events)[ways.last[judged]] >= found.completion
    return found, kept, ways.ends[judged]


def _ways(bound: BoundQuery, automaton: Automaton[Any], every: list[Matches]) -> Ways:
    """What the runs of several lists have taken, one list after the other."""
    names = {component.variable: place for place, component in enumerate(bound.positives)}
    targets = np.zeros((len(automaton.states), len(names)), np.int64)
    for number, state in enumerate(automaton.states):
        for edge in reversed(list(state.takes)):  # the first edge of a variable counts
            targets[number, names[edge.variable]] = edge.target
    rows, edges, filled = [], [], 0
    for place in range(len(names)):
        begins = [np.zeros(0, np.int64)]
        for matches in every:
            group = matches.chosen[place]
            offsets = np.arange(len(matches) + 1) if group.offsets is None else group.offsets
            rows.append(group.rows[offsets[0] : offsets[-1]])
            begins.append(offsets[:-1] - offsets[0] + filled)
            filled += len(rows[-1])
        edges.append(np.append(np.concatenate(begins), filled))
    taken, ends = np.concatenate(rows), np.array(edges)
    ways = Ways(*followed(taken, ends, targets, automaton.start, ends.shape[1] - 1))
    if len(ways.own) == ends.shape[1] - 1:
        return ways
    return Ways(*followed(taken, ends, targets, automaton.start, len(taken)))


@kernel
def followed(
    rows: Int64s, edges: Int64Rows, targets: Int64Rows, start: int, most: int
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """The ways of runs: run r has filled place p with rows[edges[p, r] : edges[p, r + 1]].

    Nothing, if there are more than `most` different ways. Mostly each way is one of the runs, and a table for as many
    as there are rows is so large that to look a way up waits for memory.
    """
    places, runs = edges.shape[0], edges.shape[1] - 1
    own, before, last = np.zeros(runs, np.int64), np.zeros(runs, np.int64), np.full(runs, -1, np.int64)
    ends = np.full(runs, start, np.int64)
    longest = 1
    for run in range(runs):
        length = 0
        for place in range(places):
            length += edges[place, run + 1] - edges[place, run]
        longest = max(longest, length)
    taken = np.empty(longest, np.int64)  # in order: rows are in the order of time
    size = 4
    while size < 2 * most + 2:
        size *= 2
    table = np.zeros(size, np.int64)  # a hash table of ways
    shorter, added = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    known = 0
    for run in range(runs):
        length = 0
        for place in range(places):
            for index in range(edges[place, run], edges[place, run + 1]):
                if rows[index] != MISSING:
                    at, one = length, rows[index] * places + place
                    while at > 0 and taken[at - 1] > one:
                        taken[at] = taken[at - 1]
                        at -= 1
                    taken[at] = one
                    length += 1
        way = 0
        for index in range(length):
            one = taken[index]
            slot = way * 2654435761 + one * 40503
            slot = 31 * (slot ^ (slot >> 17)) & (size - 1)
            while table[slot] and (shorter[table[slot]] != way or added[table[slot]] != one):
                slot = (slot + 1) & (size - 1)
            if table[slot] == 0:
                if known == most:
                    return own[:0], before[:0], ends[:0], last[:0]
                known += 1
                table[slot], shorter[known], added[known] = known, way, one
            before[run], way = way, table[slot]
            ends[run] = targets[ends[run], one % places]
            last[run] = one // places
        own[run] = way
    return own, before, ends, last


def _waits(bound: BoundQuery, automaton: Automaton[Any]) -> Bools:
    """In which states does a run wait for the variables that are asked for?"""
    waiting = frozenset(bound.output.waiting or ())
    waits = [
        automaton.end(state) is None and {edge.variable for edge in state.takes} == waiting
        for state in automaton.states
    ]
    return np.array(waits)


def _next_times(bound: BoundQuery, events: EventTable) -> Int64s:
    """For each event when the next one comes, of its partition or, under strict contiguity, of any."""
    times = np.full(len(events), NEVER, np.int64)
    order, starts = (np.arange(len(events)), np.array([0, len(events)])) if bound.strict else partitions(bound, events)
    for begin, end in pairwise(starts):
        rows = order[begin:end]
        after = np.searchsorted(events.instant[rows], events.instant[rows], side="right")
        known = after < len(rows)
        times[rows[known]] = events.time[rows[after[known]]]
    return times
