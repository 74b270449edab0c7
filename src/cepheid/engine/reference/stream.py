"""Events in order and the matches found among them, as plain Python values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cepheid.engine.reference.values import Row
from cepheid.language.bound import BoundQuery

Groups = tuple[tuple[int, ...], ...]  # for each positive component so far, the indices of its events; (): missing
OrderKey = tuple[Any, ...]  # the time, then the tiebreakers


@dataclass(frozen=True)
class Stream:
    """Events in order: rows, their time, and the rank of their order key (concurrent events share one)."""

    rows: Sequence[Row]
    times: Sequence[int]
    instants: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, instant: int) -> range:
        """The events of one instant."""
        return range(bisect_left(self.instants, instant), bisect_right(self.instants, instant))

    def key(self, event: int, bound: BoundQuery) -> OrderKey:
        """The order key of an event: it means the same in every table that holds the event, unlike its rank."""
        return (self.times[event], *(self.rows[event][name] for name in bound.schema.tiebreak))


@dataclass(frozen=True)
class FoundMatch:
    """A match: when it is known, which events fill each positive component, and how sure it is."""

    completion: int
    groups: Groups
    probability: float | None = None  # missing events
    confidence: float | None = None  # imprecise time
    earliest: int | None = None
    latest: int | None = None


def first_seen(groups: Groups) -> int:
    """The first event of a match that was seen."""
    return next(group[0] for group in groups if group)


def last_seen(groups: Groups) -> int:
    """The last event of a match that was seen."""
    return next(group[-1] for group in reversed(groups) if group)


def first_event(bound: BoundQuery, groups: Groups) -> int:
    """The first event of a match; in a pattern that is an expression, any component may hold it."""
    if bound.is_linear:
        return first_seen(groups)
    return min(event for group in groups for event in group)


def last_event(bound: BoundQuery, groups: Groups) -> int:
    """The last event of a match."""
    if bound.is_linear:
        return last_seen(groups)
    return max(event for group in groups for event in group)


def partition_of(bound: BoundQuery, stream: Stream, groups: Groups) -> tuple[object, ...]:
    """The equivalence-test values of a match: an event of an ANY component may lack some, the others have them."""
    events = [event for group in groups for event in group]
    values = ([stream.rows[event][name] for event in events] for name in bound.equivalence)
    return tuple(next((value for value in known if value is not None), None) for known in values)
