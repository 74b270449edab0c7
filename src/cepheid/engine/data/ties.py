"""Events of one time: they do not follow each other, so that no match has them one after the other."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.keys import codes, combined
from cepheid.engine.data.table import EventTable
from cepheid.language.bound import BoundQuery
from cepheid.language.pattern import Repeat, Sequence, walk
from cepheid.plan.physical import Plan


def may_tie(bound: BoundQuery, events: EventTable) -> bool:
    """Could events of one time change what the query finds? Costs nothing where every event has its own time."""
    shared = len(events) > 0 and int(events.instant[-1]) + 1 < len(events)
    return shared and order_matters(bound)


def order_matters(bound: BoundQuery) -> bool:
    """Does the query ask which of two events came first, and nothing but their times says so?"""
    if bound.schema.tiebreak or bound.schema.is_imprecise:
        return False
    return any(isinstance(node, Sequence | Repeat) for node in walk(bound.pattern))


def count_ties(plan: Plan, events: EventTable) -> int:
    """How many events share time and key with another one that could stand before or after them in a match.

    Inside a block of `sharing` it takes what the search has worked out: call it after that.
    """
    if not may_tie(plan.bound, events):
        return 0
    found = candidates(plan, events)
    if _looks_at_all(plan.bound):
        return _beside_any(plan.bound, events, found.rows[found.mask != 0])
    starting = np.ones(len(found) + 1, bool)  # is an event the first of its time, in its partition?
    starting[1:-1] = found.instant[1:] != found.instant[:-1]
    starting[found.starts] = True
    several = np.flatnonzero(~(starting[:-1] & starting[1:]))
    if not len(several):
        return 0
    groups, mask = np.cumsum(starting[:-1])[several], found.mask[several]
    for code in found.compared[:, several]:  # keys that do not part the events
        pairs = np.stack([groups, code])
        groups = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    return _ordered_by_nothing(groups - groups.min(), mask, _repeated(plan.bound))


def _looks_at_all(bound: BoundQuery) -> bool:
    """Do events matter that no component takes: for contiguity, or in a window of so many events?"""
    return bound.contiguous or (bound.window is not None and bound.window.events)


def _beside_any(bound: BoundQuery, events: EventTable, rows: Int64s) -> int:
    """How many candidates share time and key with any other event."""
    keys = () if bound.strict else bound.equivalence
    groups = combined([events.instant, *(codes(events.table.column(name)) for name in keys)], len(events))
    groups = np.unique(groups, return_inverse=True)[1].reshape(-1)
    return int((np.bincount(groups)[groups[rows]] > 1).sum())


def _ordered_by_nothing(groups: Int64s, mask: Int64s, repeated: int) -> int:
    """The events of groups in which two could fill two places of one match.

    >>> groups, mask = np.array([0, 0, 1, 1, 2]), np.array([0b01, 0b10, 0b01, 0b01, 0b11])
    >>> _ordered_by_nothing(groups, mask, 0), _ordered_by_nothing(groups, mask, 0b01)
    (2, 4)
    """
    able = mask != 0
    size = np.bincount(groups[able], minlength=int(groups.max(initial=0)) + 1)
    places, again = np.zeros(len(size), np.int64), np.zeros(len(size), bool)
    for place in range(int(mask.max(initial=0)).bit_length()):
        count = np.bincount(groups[(mask >> place) & 1 == 1], minlength=len(size))
        places += count > 0
        if (repeated >> place) & 1:
            again |= count > 1
    return int(size[(size > 1) & ((places > 1) | again)].sum())


def _repeated(bound: BoundQuery) -> int:
    """The places that take several events, as bits."""
    return sum(1 << place for place, component in enumerate(bound.positives) if component.kleene)
