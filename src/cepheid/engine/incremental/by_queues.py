"""Matches of which events may be missing, of the keys with an event that may be the last one, by arrival queues."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import (
    AFTER,
    FACTS_AT,
    FACTS_OF_EVENT,
    KNOWN_AT,
    KNOWN_ROOM,
    MATCHED,
    MATCHES,
    MOST_MATCHES,
    NEEDS_MATCHES,
    NUMBERS,
    OUT_AT,
    OUT_ROOM,
    PLACES,
    PREDICATE_AT,
    ROOM,
    ROW,
    SCORES_AT,
    SCORING,
    SIDE_EVENTS_AT,
    SIDE_SIZE,
    SIZES_AT,
    SLOTS,
    STOPPED,
    TOO_MANY_MATCHES,
    UNTIL,
    WHOLES,
    columns_at,
    events_at,
    has_room,
    program_at,
    table_at,
)
from cepheid.engine.incremental.stepping import go_on, step
from cepheid.engine.kernels.asked import SearchRequest
from cepheid.engine.kernels.compile import called_by_address, kernel
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.memory import float64_rows, function_at, int32_row, int64_row, int64_rows
from cepheid.engine.kernels.partial_matches import new_nodes
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.search.queues.generate import Backward, Forward, Scoring, generate
from cepheid.engine.search.queues.query import OVERFLOW, Score
from cepheid.model.table_arrays import TableArrays

_generate = generate.__wrapped__  # type: ignore[attr-defined]
del generate  # by its name it would be one of the kernels that are called here


def arrays_of(scoring: Scoring) -> list[Any]:
    """What matches are scored by, as `scoring_at` reads it."""
    score = scoring.score
    edges = (score.number, score.highest, score.monotone, score.decides, score.known, score.ready, score.allowed)
    found = (np.array([score.threshold, score.scale]), np.array([score.day]), *edges, score.hours, *scoring.tables)
    return [np.ascontiguousarray(each) for each in found]


@kernel
def wholes(arrays: Int64Rows, number: int) -> Int64s:
    """One of the arrays."""
    return int64_row(arrays[number, 0], arrays[number, 2])


@kernel
def whole_rows(arrays: Int64Rows, number: int) -> Int64Rows:
    """One of the arrays, if it is a table."""
    return int64_rows(arrays[number, 0], arrays[number, 1], arrays[number, 2])


@kernel
def fraction_rows(arrays: Int64Rows, number: int) -> Float64Rows:
    """The same of fractions."""
    return float64_rows(arrays[number, 0], arrays[number, 1], arrays[number, 2])


@kernel
def fractions(arrays: Int64Rows, number: int) -> Float64s:
    """One of the arrays of fractions."""
    return fraction_rows(arrays, number)[0]  # type: ignore[no-any-return]


@kernel
def scoring_at(head: Int64s) -> Scoring:
    """What matches are scored by."""
    arrays = table_at(head, SCORING)
    numbers = fractions(arrays, 0)
    score = Score(
        numbers[0],
        numbers[1],
        whole_rows(arrays, 2),
        fraction_rows(arrays, 3),
        whole_rows(arrays, 4),
        whole_rows(arrays, 5),
        wholes(arrays, 6),
        wholes(arrays, 7),
        whole_rows(arrays, 8),
        wholes(arrays, 9),
        wholes(arrays, 1)[0],
    )
    tables = TableArrays(
        fractions(arrays, 10),
        fractions(arrays, 11),
        fractions(arrays, 12),
        fractions(arrays, 13),
        fractions(arrays, 14),
        int32_row(arrays[15, 0], arrays[15, 2]),
        wholes(arrays, 16),
        wholes(arrays, 17),
        fractions(arrays, 18),
        fractions(arrays, 19),
        wholes(arrays, 20),
    )
    return Scoring(score, tables)


@called_by_address
def search_queues(head: Int64s) -> int:
    """The probable matches among the events that lie side by side."""
    slots, whole, numbers = head[SLOTS], head[WHOLES], head[NUMBERS]
    program, columns, predicate = program_at(head), columns_at(head), function_at(head[PREDICATE_AT])
    scratch = new_scratch(slots, whole, numbers, 0)
    found, counters = _generate(
        events_at(head),
        Backward(program, columns, scratch),
        predicate,
        Forward(program, columns, new_nodes(0, slots, whole, numbers, 0, scratch)),  # for skip_till_next_match alone
        predicate,
        scoring_at(head),
        SearchRequest(head[AFTER], head[UNTIL], head[MOST_MATCHES] - head[MATCHES]),
    )
    if stop_flag() != 0:
        return STOPPED
    if counters[OVERFLOW] != 0:
        return TOO_MANY_MATCHES
    if not has_room(head, len(found.score), len(found.event)):
        return NEEDS_MATCHES
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    laid = int64_row(head[SIDE_EVENTS_AT], head[SIDE_SIZE])
    out, when = int64_row(head[OUT_AT], head[OUT_ROOM]), int64_row(head[KNOWN_AT], head[KNOWN_ROOM])
    sizes = int64_rows(head[SIZES_AT], head[KNOWN_ROOM], head[PLACES])
    scores = float64_rows(head[SCORES_AT], 1, head[KNOWN_ROOM])
    for match in range(len(found.score)):
        own = head[MATCHES]
        when[own], scores[0, own], sizes[own] = found.completion[match], found.score[match], 0
        head[MATCHES] += 1
        for entry in range(found.begins[match], found.begins[match + 1]):
            sizes[own, found.place[entry]] += 1
            out[head[MATCHED]] = facts[ROW, laid[found.event[entry]]]
            head[MATCHED] += 1
    return 0


search = Entry(search_queues)

__all__ = ["arrays_of", "go_on", "search", "step"]
