"""Matches as kernels find them, Kleene groups included: arrays that grow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, called_by_address, inlined, kernel

EVALUATED, JUDGED, REPORTED, OVERFLOW, PARTIAL, PEAK, BOUNDED = range(7)  # counters
COUNTERS = 7
DONE, FULL, STOPPED = range(3)  # how a part of a search ended; FULL: it goes on where it was once there is more room
TOO_MANY_RUNS = 2  # what counters[OVERFLOW] says then; 1: too many matches


class SearchRequest(NamedTuple):
    """Which matches are asked for, and how many of them and of runs there may be at most."""

    after: int
    until: int
    limit: int
    runs: int


class Results(NamedTuple):
    """Matches so far."""

    events: Int64s  # match after match, place after place
    sizes: Int64Rows  # for each match, how many events each place holds
    completion: Int64s
    probability: Float64s
    confidence: Float64s
    earliest: Int64s
    latest: Int64s
    size: Int64s  # how many matches, how many events


@kernel
def no_results(places: int) -> Results:
    """Room for matches with so many places."""
    room = 256
    return Results(
        np.empty(4 * room, np.int64),
        np.empty((room, places), np.int64),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty(room),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(2, np.int64),
    )


@kernel
def grown_numbers(values: Float64s) -> Float64s:
    """The same values with room for as many again."""
    larger = np.empty(2 * len(values))
    larger[: len(values)] = values
    return larger


@inlined
def is_full(results: Results, length: int) -> bool:
    """Is there no room for a match of so many events?"""
    return bool(results.size[0] == len(results.completion) or results.size[1] + length > len(results.events))


@called_by_address
def with_room(results: Results, length: int) -> Results:
    """The same matches with room for one of so many events."""
    events, size = results.events, results.size[0]
    while results.size[1] + length > len(events):
        events = grown(events)
    if size < len(results.completion):
        return Results(
            events,
            results.sizes,
            results.completion,
            results.probability,
            results.confidence,
            results.earliest,
            results.latest,
            results.size,
        )
    return Results(
        events,
        grown_rows(results.sizes),
        grown(results.completion),
        grown_numbers(results.probability),
        grown_numbers(results.confidence),
        grown(results.earliest),
        grown(results.latest),
        results.size,
    )


@borrowing
def put(
    results: Results,
    chosen: Int64s,
    places: Int64s,
    length: int,
    completion: int,
    probability: float,
    confidence: float,
    earliest: int,
    latest: int,
) -> None:
    """One more match: its events and the places they fill, in order; there must be room for it."""
    size, filled = results.size[0], results.size[1]
    results.sizes[size, :] = 0
    for index in range(length):
        results.events[filled + index] = chosen[index]
        results.sizes[size, places[index]] += 1
    results.completion[size] = completion
    results.probability[size], results.confidence[size] = probability, confidence
    results.earliest[size], results.latest[size] = earliest, latest
    results.size[0], results.size[1] = size + 1, filled + length
