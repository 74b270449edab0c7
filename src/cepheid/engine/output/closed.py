"""OUTPUT MAXIMAL without listing every subset of a group: only groups that leave nothing out can be maximal.

Under skip_till_any_match, where no condition ties the elements of a group to anything, a match stays one if its group
takes in every event that fits between its first event and the event behind the group. So every match is part of one
whose groups are closed in this way, and the maximal ones are among those: as many as choices of the other events and
of first events, instead of all subsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.candidates import Candidates, candidates
from cepheid.engine.data.matches import Chosen, Matches
from cepheid.engine.data.table import EventTable
from cepheid.language import syntax as s
from cepheid.language.bind import rebound
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan


def can_close(bound: BoundQuery) -> bool:
    """Does a match stay one if its groups take in all that fits between?"""
    if (
        bound.mixed
        or bound.strategy is not s.Strategy.SKIP_TILL_ANY
        or not bound.has_kleene
        or bound.positives[-1].kleene
    ):
        return False
    if (
        bound.untils
        or bound.schema.is_imprecise
        or bound.schema.lacks
        or any(component.any for component in bound.components)
    ):
        return False
    kleene = {component.variable for component in bound.positives if component.kleene}
    if any(n.after is not None and bound.positives[n.after].kleene for n in bound.negations):
        return False
    mentioned = [part for branch in bound.branches for _, parts in branch.negative for part in parts]
    if any(s.variables_of(part) & kleene for part in mentioned) or len(bound.branches) > 1:
        return False
    for conjunct in bound.conjuncts:
        if conjunct.variables & kleene and not (conjunct.own and conjunct.every):
            return False
    return True


def find_closed(plan: Plan, events: EventTable, find: Callable[[BoundQuery], Matches]) -> Matches | None:
    """The matches whose groups leave nothing out; None where events of a group are concurrent.

    `find` gives the matches of a query over single events.
    """
    found = candidates(plan, events)
    if len(found.compared) > 0:
        return None
    for place, component in enumerate(plan.bound.positives):
        if component.kleene and _concurrent(found, place):
            return None
    matches = find(_of_single_events(plan.bound))
    partition = np.full(len(events), -1, np.int64)
    partition[found.rows] = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
    chosen = list(matches.chosen)
    for place, component in enumerate(plan.bound.positives):
        if component.kleene:
            fitting = found.rows[(found.mask >> place) & 1 == 1]
            following = matches.chosen[place + 1].rows
            chosen[place] = _filled(matches.chosen[place].rows, following, fitting, partition, events.instant)
    return replace(matches, chosen=tuple(chosen))


def _of_single_events(bound: BoundQuery) -> BoundQuery:
    """The same query with the first event of each group in its place."""

    def change(node: s.Expression) -> s.Expression:
        if isinstance(node, s.Reference):
            return replace(node, element=s.Element.SINGLE)
        return s.rebuild(node, change)

    where = change(bound.where) if bound.where is not None else None
    single = bound.in_order(tuple(replace(component, kleene=False) for component in bound.components), where)
    return rebound(single, within=None, returns=None, summary=None, output=s.Output())


def _concurrent(found: Candidates, place: int) -> bool:
    """Do two events of one partition that could fill a place share an instant? Then only one of them is in a group."""
    fits = (found.mask >> place) & 1 == 1
    part = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))[fits]
    instant = found.instant[fits]
    return bool(((part[1:] == part[:-1]) & (instant[1:] == instant[:-1])).any())


def _filled(first: Int64s, following: Int64s, fitting: Int64s, partition: Int64s, instant: Int64s) -> Chosen:
    """For each match all fitting events of its partition from the first of the group to before the one behind it."""
    # Partitions lie side by side, each in order: (partition, instant) rises along the fitting events.
    width = int(instant.max(initial=0)) + 1
    key = partition[fitting] * width + instant[fitting]
    low = np.searchsorted(key, partition[first] * width + instant[first], side="left")
    high = np.searchsorted(key, partition[first] * width + instant[following], side="left")
    sizes = high - low
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    spread = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes) + np.repeat(low, sizes)
    return Chosen(fitting[spread], offsets)
