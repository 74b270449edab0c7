"""Imprecise time (TIME; docs/semantics.md, "Imprecise time"): every possible world, judged like a precise stream.

A world picks one instant for each event, or leaves it out where it may not have happened. What a result says is
gathered over the worlds that contain it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from cepheid.budget import paced
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.reference.missing import passes_alone
from cepheid.engine.reference.precise import Search
from cepheid.engine.reference.stream import FoundMatch, Groups, Stream, first_event, first_seen, last_event, last_seen
from cepheid.errors import DataError, LimitError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import Schema

MAX_WORLDS = 2_000_000
SUM_WITHIN = 1e-6  # how far the probabilities of an event's instants may be from summing to one

PathState = Callable[[Stream], Sequence[FoundMatch]]  # all matches of one world


@dataclass(frozen=True)
class Interval:
    """When an event may have happened, and how probable each instant is (None: all alike)."""

    lower: int
    upper: int
    weights: tuple[float, ...] | None = None
    unit: int = 1  # from one instant to the next
    exists: float = 1.0  # the probability that the event happened at all

    @property
    def width(self) -> int:
        """How many instants it holds."""
        return (self.upper - self.lower) // self.unit + 1

    def choices(self) -> list[tuple[int | None, float]]:
        """What a world can say of the event, with its probability: each possible instant, or that it never happened."""
        weights = self.weights or (1.0 / self.width,) * self.width
        instants = [
            (self.lower + step * self.unit, weight * self.exists)
            for step, weight in enumerate(weights)
            if weight * self.exists > 0.0
        ]
        return [*instants, (None, 1.0 - self.exists)] if self.exists < 1.0 else [*instants]


@dataclass
class _Gathered:
    """What the worlds so far say of one signature."""

    weights: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    earliest: int = NEVER
    latest: int = -NEVER


def find_all(bound: BoundQuery, stream: Stream, intervals: Sequence[Interval], judge: PathState) -> list[FoundMatch]:
    """Every sequence of events that is a match in some world: its range, its confidence and its expected score."""
    clusters = independent(bound, stream, intervals)
    worlds = sum(math.prod(len(intervals[event].choices()) for event in cluster) for cluster in clusters)
    if worlds > MAX_WORLDS:
        message = f"{worlds:,} possible worlds; the reference engine enumerates at most {MAX_WORLDS:,}"
        raise LimitError(message, hint="use a fast engine, fewer events or a coarser unit of time")
    gathered: dict[Groups, _Gathered] = {}
    for cluster in clusters:
        for weight, order, world in possible_worlds(stream, intervals, cluster):
            for match in judge(world):
                entry = gathered.setdefault(_renamed(match.groups, order), _Gathered())
                entry.weights.append(weight)
                if match.probability is not None:
                    entry.scores.append(weight * match.probability)
                entry.earliest = min(entry.earliest, world.times[first_event(bound, match.groups)])
                entry.latest = max(entry.latest, world.times[last_event(bound, match.groups)])
    return [
        FoundMatch(
            completion(bound, intervals, groups),
            groups,
            probability=math.fsum(entry.scores) if entry.scores else None,
            confidence=min(math.fsum(entry.weights), 1.0),
            earliest=entry.earliest,
            latest=entry.latest,
        )
        for groups, entry in gathered.items()
    ]


def _renamed(groups: Groups, order: Sequence[int]) -> Groups:
    return tuple(tuple(order[event] for event in group) for group in groups)


def possible_worlds(
    stream: Stream, intervals: Sequence[Interval], cluster: Sequence[int]
) -> Iterator[tuple[float, list[int], Stream]]:
    """Each world of some events: its probability, the events in their order there, and the precise stream it is."""
    for choice in paced(product(*(intervals[event].choices() for event in cluster))):
        happened = zip(choice, cluster, strict=True)
        chosen = sorted((instant, event) for (instant, _), event in happened if instant is not None)
        times = [instant for instant, _ in chosen]
        order = [event for _, event in chosen]
        ranks = {instant: rank for rank, instant in enumerate(sorted(set(times)))}
        world = Stream([stream.rows[event] for event in order], times, [ranks[instant] for instant in times])
        yield math.prod(weight for _, weight in choice), order, world


def completion(bound: BoundQuery, intervals: Sequence[Interval], groups: Groups) -> int:
    """The instant such that no event that begins later (lower bound) can change the result.

    The events of the match, and any that could come between them, begin before the last one's upper bound. For
    decisions at the end of the window they begin before the window that opens with the first one has surely passed.
    """
    mode = bound.output.mode
    if not bound.is_linear:  # any of its events may be the last one, in an order that counts, too
        return max(intervals[event].upper for group in groups for event in group)
    if mode is s.OutputMode.TOP:
        return NEVER
    growing = mode is s.OutputMode.MAXIMAL and bound.positives[-1].kleene
    if bound.postponed or not groups[-1] or growing:
        if bound.window is None or bound.window.events:
            return NEVER
        return intervals[first_seen(groups)].upper + bound.window.length
    return intervals[last_seen(groups)].upper


# which events must be enumerated together


def independent(bound: BoundQuery, stream: Stream, intervals: Sequence[Interval]) -> list[list[int]]:
    """Sets of events such that no result depends on two of them; events that no result depends on are in none."""
    counted = bound.window is not None and bound.window.events
    events = list(range(len(stream)))
    if not bound.contiguous and not counted:
        search = Search(bound, stream)
        events = [e for e in events if any(passes_alone(search, c, e) for c in bound.components)]
    parts: dict[tuple[object, ...], list[int]] = {(): events}
    lacking = any(name in bound.equivalence for _, attributes in bound.schema.lacks for name in attributes)
    whole = bound.strict or lacking
    if bound.equivalence and not whole:
        parts = {}
        for event in events:
            values = tuple(stream.rows[event][name] for name in bound.equivalence)
            if None not in values:
                parts.setdefault(values, []).append(event)
    if bound.window is None or counted:
        return [part for part in parts.values() if part]
    return [piece for part in parts.values() for piece in _separate_pieces(part, intervals, bound.window.length)]


def _separate_pieces(events: list[int], intervals: Sequence[Interval], length: int) -> Iterator[list[int]]:
    """Pieces so far apart in every world that no window reaches from one into the next."""
    piece: list[int] = []
    until = 0
    for event in sorted(events, key=lambda event: intervals[event].lower):
        if piece and intervals[event].lower - until >= length:
            yield piece
            piece = []
        until = max(until, intervals[event].upper) if piece else intervals[event].upper
        piece.append(event)
    if piece:
        yield piece


# reading


def intervals_of(events: EventTable, schema: Schema, probabilities: str | None = None, unit: int = 1) -> list[Interval]:
    """When each event may have happened; a DataError names the first row for which that makes no sense.

    Instants are multiples of the unit, in steps of the time column.
    """
    if schema.lower is None or schema.upper is None:
        raise DataError("imprecise time needs both bounds", hint="pass lower='...' and upper='...'")
    if schema.tiebreak:
        message = "tiebreak orders events of one instant, but with lower and upper the order is not certain"
        raise DataError(message, hint="leave tiebreak out")
    lower, upper = times_of(events.table, schema.lower), times_of(events.table, schema.upper)
    weights: list[list[float | None] | None] = [None] * len(events)
    if probabilities is not None:
        if probabilities not in events.table.column_names:
            raise DataError(f"no column '{probabilities}' for the probabilities")
        weights = events.table.column(probabilities).to_pylist()
    found = []
    for row, (low, high, given) in enumerate(zip(lower.tolist(), upper.tolist(), weights, strict=True)):
        if low > high:
            message = f"the lower bound {low} is above the upper bound {high}"
            raise DataError(message, column=schema.lower, row=row, hint="swap them, or drop such rows")
        interval = Interval(low // unit * unit, high, unit=unit)
        if given is not None:
            interval = replace(interval, weights=_checked(given, interval.width, probabilities, row))
        found.append(interval)
    chances = _existence(events, schema)
    return [replace(interval, exists=chance) for interval, chance in zip(found, chances, strict=True)]


def _existence(events: EventTable, schema: Schema) -> list[float]:
    """The probability of each event that it happened at all."""
    if schema.existence is None:
        return [1.0] * len(events)
    chances = events.table.column(schema.existence).to_pylist()
    for row, chance in enumerate(chances):
        if chance is None or not 0.0 <= chance <= 1.0:
            message = f"an event that happened with probability {'NULL' if chance is None else chance}"
            raise DataError(message, column=schema.existence, row=row, hint="give a number from 0 to 1")
    return [float(chance) for chance in chances]


def _checked(given: Sequence[float | None], width: int, column: str | None, row: int) -> tuple[float, ...]:
    known = tuple(float(weight) for weight in given if weight is not None)
    if len(given) != width or len(known) != width:
        message = f"{len(known)} probabilities for {width} instants"
        raise DataError(message, column=column, row=row, hint="give one for each instant from lower to upper")
    total = math.fsum(known)
    if min(known) < 0.0 or not abs(total - 1.0) <= SUM_WITHIN:
        message = f"the probabilities sum to {total:.9g}" if min(known) >= 0.0 else f"a probability of {min(known):g}"
        raise DataError(message, column=column, row=row, hint="they must be at least 0 and sum to 1")
    return tuple(weight / total for weight in known)
