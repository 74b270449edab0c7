"""OUTPUT PARTIAL by runs: those whose window passed before they were complete.

All that runs take on the way is listed; what no run went on from, and is no match, waited in vain. Under contiguity a
run that meets an event which it cannot take is over, not given up: it waited only if nothing came before its window
had passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.budget import checkpoint
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.candidates import partitions
from cepheid.engine.data.matches import MISSING, NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.program.compile import Automata
from cepheid.language.bound import BoundQuery
from cepheid.plan.automaton import Automaton
from cepheid.plan.lowering import automaton_of
from cepheid.plan.physical import Plan

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RunPaths:
    """What runs have taken, in the order of time, which rows are in: run r holds elements starts[r]:starts[r + 1]."""

    starts: Int64s
    rows: Int64s
    places: Int64s


def find_given_up(plan: Plan, events: EventTable, beginnings: Callable[[Automata], Matches]) -> Matches:
    """The runs that waited for the variables that are asked for until their window had passed."""
    bound = plan.bound
    automaton = automaton_of(bound)
    assert isinstance(automaton, Automaton)
    found = beginnings("beginnings")
    paths = _paths(found)
    every = paths
    if bound.negations:
        every = _one_after_the_other(_paths(beginnings("beginnings, refused or not")), paths)
    own, before = _numbered(every, len(bound.positives))
    judged = slice(len(own) - len(found), None)
    others = slice(None) if every is paths else slice(judged.start)
    went_on = np.zeros(int(own.max(initial=0)) + 1, bool)
    went_on[before[others]] = True
    kept = ~went_on[own[judged]] & _waits(bound, automaton)[_ends(bound, automaton, paths)]
    if bound.contiguous:
        kept &= _undisturbed(bound, events, found, paths)
    return found.take(np.flatnonzero(kept))


def _paths(matches: Matches) -> RunPaths:
    """The events of each match, and the places that they fill."""
    sizes = [
        np.ones(len(matches), np.int64) if group.offsets is None else np.diff(group.offsets) for group in matches.chosen
    ]
    match = np.concatenate([np.repeat(np.arange(len(matches)), size) for size in sizes])
    rows = np.concatenate([group.rows for group in matches.chosen])
    places = np.repeat(np.arange(len(sizes)), [int(size.sum()) for size in sizes])
    taken = np.flatnonzero(rows != MISSING)
    order = taken[np.lexsort((places[taken], rows[taken], match[taken]))]
    counts = np.bincount(match[order], minlength=len(matches))
    return RunPaths(np.concatenate([[0], np.cumsum(counts)]), rows[order], places[order])


def _one_after_the_other(first: RunPaths, second: RunPaths) -> RunPaths:
    starts = np.concatenate([first.starts, second.starts[1:] + len(first.rows)])
    return RunPaths(starts, np.concatenate([first.rows, second.rows]), np.concatenate([first.places, second.places]))


def _by_depth(paths: RunPaths) -> Iterator[tuple[Int64s, Int64s]]:
    """The first elements of all runs that have one, then the second ones, and so on: the runs, and the elements."""
    lengths, depth = np.diff(paths.starts), 0
    runs = np.flatnonzero(lengths > 0)
    while len(runs):
        checkpoint()
        yield runs, paths.starts[runs] + depth
        depth += 1
        runs = runs[lengths[runs] > depth]


def _numbered(paths: RunPaths, places: int) -> tuple[Int64s, Int64s]:
    """A number for what each run has taken, and for the same without its last event; equal paths have equal numbers."""
    own, before = np.zeros((2, len(paths.starts) - 1), np.int64)
    last = 0
    for runs, elements in _by_depth(paths):
        taken = paths.rows[elements] * places + paths.places[elements]
        order = np.lexsort((taken, own[runs]))
        ordered = runs[order]
        new = np.ones(len(runs), bool)
        new[1:] = (np.diff(taken[order]) != 0) | (np.diff(own[ordered]) != 0)
        before[ordered] = own[ordered]
        own[ordered] = last + np.cumsum(new)
        last += int(np.count_nonzero(new))
    return own, before


def _ends(bound: BoundQuery, automaton: Automaton[Any], paths: RunPaths) -> Int64s:
    """The state that each run has come to."""
    names = {component.variable: place for place, component in enumerate(bound.positives)}
    targets = np.zeros((len(automaton.states), len(names)), np.int64)
    for number, state in enumerate(automaton.states):
        for edge in reversed(list(state.takes)):  # the first edge of a variable counts
            targets[number, names[edge.variable]] = edge.target
    ends = np.full(len(paths.starts) - 1, automaton.start, np.int64)
    for runs, elements in _by_depth(paths):
        ends[runs] = targets[ends[runs], paths.places[elements]]
    return ends


def _waits(bound: BoundQuery, automaton: Automaton[Any]) -> Bools:
    """In which states does a run wait for the variables that are asked for?"""
    waiting = frozenset(bound.output.waiting or ())
    waits = [
        automaton.end(state) is None and {edge.variable for edge in state.takes} == waiting
        for state in automaton.states
    ]
    return np.array(waits)


def _undisturbed(bound: BoundQuery, events: EventTable, found: Matches, paths: RunPaths) -> Bools:
    """Is nothing between the last event of a run and the end of its window?"""
    last = paths.rows[paths.starts[1:] - 1]
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
