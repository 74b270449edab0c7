"""What a match without groups is worth: who judges it reads it as nodes, one for each place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.timed import Stacks, Timed, widest
from cepheid.engine.kernels.compile import borrowing_by_address, inlined, kernel
from cepheid.engine.kernels.conditions import EVENT, LEFT, RIGHT
from cepheid.engine.kernels.partial_matches import Nodes, PartialMatches
from cepheid.engine.output.top import raise_bar
from cepheid.engine.program.tables import Program
from cepheid.engine.scoring.confidence.competing import Chain
from cepheid.engine.scoring.confidence.memory import fits_decide, is_worth_asking, shape_of
from cepheid.engine.scoring.confidence.order import Workspace, workspace
from cepheid.engine.scoring.edges import CERTAIN
from cepheid.engine.scoring.evaluate import judge, recalled
from cepheid.engine.scoring.match_score import MatchScore, completion_of
from cepheid.engine.search.intervals.results import (
    BOUNDED,
    JUDGED,
    OVERFLOW,
    REPORTED,
    Results,
    SearchRequest,
    put,
)


class InPatternOrder(NamedTuple):
    """A query whose places are filled in the order of the pattern, but for its predicate."""

    program: Program
    columns: Columns
    nodes: Nodes


class Placed(NamedTuple):
    """The conditions as a search tests them, but for their predicate."""

    program: Program
    columns: Columns


class Judging(NamedTuple):
    """The query in the order of the pattern, which matches are judged by, and room for that."""

    partial: PartialMatches
    chain: Int64s  # the nodes of a match, one after the other
    table: Int64s  # of each gap the table of its scores: all are certain
    room: Workspace
    remembers: bool  # is the shape of a match known before its competitors are?


@kernel
def new_judging(timed: Timed, query: InPatternOrder, predicate: PredicateCall) -> Judging:
    """All that matches are judged by, with room for the widest interval."""
    program, columns, nodes = query
    length = program.places
    room = workspace(widest(timed), length)
    return Judging(
        PartialMatches(program, columns, predicate, nodes),
        np.arange(length),
        np.full(length + 1, CERTAIN),
        room,
        fits_decide(program, timed.compared),
    )


@inlined
def as_nodes(program: Program, nodes: Nodes, timed: Timed, at: Int64s) -> None:
    """Writes a complete match without groups as nodes, one for each place, for who judges it.

    All of them hold all events: conditions of a place read none behind it.
    """
    for place in range(program.places):
        nodes.entries[place, EVENT], nodes.entries[place, LEFT], nodes.entries[place, RIGHT] = (
            at[place],
            place - 1,
            place,
        )
        for other in range(program.places):
            nodes.at[place, other] = at[other]
        for row in range(nodes.codes.shape[1]):
            code = nodes.codes[place - 1, row] if place > 0 else WILD
            nodes.codes[place, row] = timed.compared[row, at[place]] if code == WILD else code


class Complete(NamedTuple):
    """A complete match: its events with their valid bounds, and what is counted."""

    at: Int64s
    low: Int64s
    high: Int64s
    counters: Int64s
    cost: Float64s  # one number: above 0, what a confidence costs that is too expensive


@borrowing_by_address
def report(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    judging: Judging,
    part: int,
    match: Complete,
    asked: SearchRequest,
    results: Results,
) -> bool:
    """Judges a complete match, and puts it to the results if it is worth it; False: the search must end.

    There must be room for it.
    """
    at, low, high, counters = match.at, match.low, match.high, match.counters
    length = len(judging.chain)
    known = completion_of(timed, match_score, at[0], at[length - 1], True)
    if known <= asked.after or known > asked.until:
        return True
    counters[JUDGED] += 1
    remembered, confidence, earliest, latest, size, memory = False, 0.0, 0, 0, 0, judging.room.memory
    if judging.remembers and is_worth_asking(memory):  # at regular distances most matches are known by their shape
        size = shape_of(timed, stacks, memory, part, at, low, high)
        remembered, confidence, earliest, latest = recalled(match_score, memory, size, low[0])
        for place in range(length):
            confidence *= timed.exists[at[place]]
    if not remembered:
        as_nodes(judging.partial.program, judging.partial.nodes, timed, at)
        _, confidence, earliest, latest, cost = judge(
            timed,
            match_score,
            stacks,
            judging.partial,
            Chain(part, judging.chain, low, high, judging.table, 0),
            size,
            judging.room,
        )
        if cost > 0.0:
            match.cost[0] = cost
            return False
    counters[BOUNDED] = judging.room.memory.tally[0]
    if confidence <= 0.0 or confidence < match_score.least[0]:
        return True
    if counters[REPORTED] == asked.limit:
        counters[OVERFLOW] = 1
        return False
    put(results, at, judging.chain, length, known, 1.0, confidence, earliest, latest)
    raise_bar(match_score, confidence)
    counters[REPORTED] += 1
    return True
