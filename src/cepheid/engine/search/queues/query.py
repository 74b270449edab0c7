"""What the search for missing events keeps: what is asked of a match, the queues, and the path that is being built."""

from __future__ import annotations

from typing import NamedTuple

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s
from cepheid.engine.kernels.conditions import Scratch

STACKED, EVALUATED, KILLED, DROPPED, OVERFLOW = range(5)
NOTHING, CONDITION, NEGATION = 0, 1, 2  # what a step of a path decides: NEGATION if a negated component alone


class Score(NamedTuple):
    """What is asked of a match some of whose events are missing. Edges are found by [source + 1, target].

    "Known" is twice the place from which all is decided that a condition or a negated component needs, backwards; one
    less, and so odd, if that place is a group, which must have been left.
    """

    threshold: float  # the logarithm of the least probability
    scale: float  # what one step of the time column is in the unit of the gaps
    number: Int64Rows  # edges: table, CERTAIN or CLOSED
    highest: Float64Rows  # edges: log of the best score
    monotone: Int64Rows  # edges: FALLS, RISES or NEITHER
    decides: Int64Rows  # edges: what is decided when a path grows that far
    known: Int64s  # by test: from where it is known
    ready: Int64s  # by negated component: from where all is known that it needs
    # [source + 1, bits of what is missing behind]: may a path come to this place so? Of no rows: every path may.
    allowed: Int64Rows
    # Where losses depend on the hour, by hour of the day: how far behind an edge's table, which is a bound, its own
    # table lies. Else of no entries.
    hours: Int64s
    day: int  # in steps of time


class Path(NamedTuple):
    """The path being built, from the last event backwards."""

    entries: Int64Rows  # event, the entry that comes before it in time, place
    scratch: Scratch  # what conditions see of it
    reached: Float64s  # by entry: the score so far
    missing: Int64s  # bits of the components that were skipped
    place: Int64s  # the queue that is being tried
    tried: Int64s  # the entry of it that was tried last


class Queues(NamedTuple):
    """The queues of one partition: row by row the positive components, then the negated ones."""

    stacks: Int64Rows  # their events, in order
    bounds: Float64Rows  # the best score of any path that arrives there, as a logarithm
    sizes: Int64s
    falling: Int64Rows  # entries that may still be the best of their queue, bounds falling
    marks: Int64Rows  # per component: FALLING_FIRST, FALLING_END, SETTLED, OLDEST
