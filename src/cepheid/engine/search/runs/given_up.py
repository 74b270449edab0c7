"""OUTPUT PARTIAL by runs: those whose window passed before they were complete.

All that runs take on the way is listed; what no run went on from, and is no match, waited in vain. Under contiguity a
run that meets an event which it cannot take is over, not given up: it waited only if nothing came before its window
had passed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.candidates import partitions
from cepheid.engine.data.matches import MISSING, NEVER, Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.program.compile import Automata
from cepheid.language.bound import BoundQuery
from cepheid.plan.automaton import Automaton
from cepheid.plan.lowering import automaton_of
from cepheid.plan.physical import Plan

Taken = tuple[tuple[int, int], ...]  # events with their places, in the order of time
Bools = npt.NDArray[np.bool_]


def find_given_up(plan: Plan, events: EventTable, beginnings: Callable[[Automata], Matches]) -> Matches:
    """The runs that waited for the variables that are asked for until their window had passed."""
    bound = plan.bound
    automaton = automaton_of(bound)
    assert isinstance(automaton, Automaton)
    waiting = frozenset(bound.output.waiting or ())
    names = [component.variable for component in bound.positives]
    found = beginnings("beginnings")
    every = beginnings("beginnings, refused or not") if bound.negations else found
    went_on = {taken[:-1] for taken in taken_by(every)}
    kept = []
    for row, taken in enumerate(taken_by(found)):
        if taken in went_on:
            continue
        state = automaton.states[automaton.start]
        for _, place in taken:
            state = next(automaton.states[edge.target] for edge in state.takes if edge.variable == names[place])
        if automaton.end(state) is None and {edge.variable for edge in state.takes} == waiting:
            kept.append(row)
    found = found.take(np.array(kept, np.int64))
    if bound.contiguous:
        found = found.take(np.flatnonzero(_undisturbed(bound, events, found)))
    return found


def taken_by(matches: Matches) -> list[Taken]:
    """The events of each match, and the places that they fill, in the order of time: rows are in that order."""
    return [
        tuple(sorted((row, place) for place, rows in enumerate(groups) for row in rows if row != MISSING))
        for groups in matches.groups()
    ]


def _undisturbed(bound: BoundQuery, events: EventTable, found: Matches) -> Bools:
    """Is nothing between the last event of a run and the end of its window?"""
    last = np.array([taken[-1][0] for taken in taken_by(found)], np.int64)
    return np.asarray(_next_times(bound, events)[last] >= found.completion)


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
