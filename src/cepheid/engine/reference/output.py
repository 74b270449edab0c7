"""Which of the matches are reported: OUTPUT ALL, NON-OVERLAP, MAXIMAL, TOP k BY CONFIDENCE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cepheid.budget import paced
from cepheid.engine.data.matches import sortable
from cepheid.engine.reference.stream import FoundMatch, Groups, OrderKey, Stream, first_event, last_event, partition_of
from cepheid.language.bound import BoundQuery

Ended = Mapping[tuple[Any, ...], OrderKey]  # for each partition, where its last reported match ended


def without_overlap(bound: BoundQuery, stream: Stream, found: Iterable[FoundMatch], ended: Ended) -> list[FoundMatch]:
    """NON-OVERLAP: per partition, a match is reported if it starts after the last reported one ended.

    Matches compete by end (earliest first), then by start (latest first), then in the order of their events.
    """
    carried = dict(ended)
    kept = []
    for match in sorted(found, key=lambda match: _competing(bound, stream, match.groups)):
        partition = partition_of(bound, stream, match.groups)
        before = carried.get(partition)
        start = sortable(stream.key(first_event(bound, match.groups), bound))
        if before is None or start > sortable(before):
            kept.append(match)
            carried[partition] = stream.key(last_event(bound, match.groups), bound)
    return kept


def last_ends(bound: BoundQuery, stream: Stream, reported: Iterable[Groups]) -> dict[tuple[object, ...], OrderKey]:
    """What NON-OVERLAP carries from one interval to the next: the latest end of each partition's matches."""
    ends: dict[tuple[Any, ...], OrderKey] = {}
    for groups in reported:
        partition, end = partition_of(bound, stream, groups), stream.key(last_event(bound, groups), bound)
        if partition not in ends or sortable(end) > sortable(ends[partition]):
            ends[partition] = end
    return ends


def maximal(found: list[FoundMatch]) -> list[FoundMatch]:
    """MAXIMAL: without matches whose events are a proper part of another's, component by component."""
    sets = [tuple(frozenset(group) for group in match.groups) for match in found]

    def within(inner: int, outer: int) -> bool:
        pairs = zip(sets[inner], sets[outer], strict=True)
        return sets[inner] != sets[outer] and all(small <= large for small, large in pairs)

    everyone = range(len(found))
    return [found[each] for each in paced(everyone) if not any(within(each, other) for other in everyone)]


def most_confident(bound: BoundQuery, stream: Stream, found: list[FoundMatch], count: int) -> list[FoundMatch]:
    """TOP k BY CONFIDENCE, per partition; equal ones by the earliest possible end, then in the order of events."""

    def rank(match: FoundMatch) -> tuple[object, ...]:
        assert match.confidence is not None
        return (-round(match.confidence, 9), match.latest, _competing(bound, stream, match.groups))

    taken: dict[tuple[Any, ...], int] = {}
    kept = []
    for match in sorted(found, key=rank):
        partition = partition_of(bound, stream, match.groups)
        taken[partition] = taken.get(partition, 0) + 1
        if taken[partition] <= count:
            kept.append(match)
    return kept


def _competing(bound: BoundQuery, stream: Stream, groups: Groups) -> tuple[object, ...]:
    """End, latest start, then the events' order; concurrent events by their values, since arrival must not matter.

    Events that are alike in everything are told apart by their places, so that the result is one and the same.
    """
    end, start = stream.instants[last_event(bound, groups)], stream.instants[first_event(bound, groups)]
    instants = [tuple(stream.instants[event] for event in group) for group in groups]
    names = sorted(bound.schema.names)
    values = [[sortable(stream.rows[event][name] for name in names) for event in group] for group in groups]
    return end, -start, instants, values, groups
