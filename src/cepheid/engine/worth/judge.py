"""What a complete match at imprecise times is worth: its confidence and its tightest range, and its expected score.

The same judgement for every search, whatever order it fills places in, and whether events may be missing or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64S, Columns
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed
from cepheid.engine.kernels.compile import called_by_address
from cepheid.engine.kernels.conditions import EVENT, FUNCTION
from cepheid.engine.kernels.partial_matches import NODES, Nodes, standing
from cepheid.engine.program.tables import PROGRAM, Program
from cepheid.engine.worth.confidence.alternatives import alternatives
from cepheid.engine.worth.confidence.memory import (
    CONFIDENCE,
    EARLIEST,
    LATEST,
    UNKNOWN,
    fits_decide,
    is_known,
    place_in_memory,
    remember,
    shape_of,
)
from cepheid.engine.worth.confidence.order import WORKSPACE, Workspace, ordered_within
from cepheid.engine.worth.confidence.rivals import RIVALS, Rivals, has_rivals, rivals
from cepheid.engine.worth.confidence.shared_rivals import Weighing, unweighed
from cepheid.engine.worth.expected import expected, expected_cost, possible_everywhere
from cepheid.engine.worth.worth import WORTH, Worth

Int64s = npt.NDArray[np.int64]

Judged = tuple[float, float, int, int, float]  # probability, confidence, earliest, latest; above 0: too many steps
JUDGED = types.Tuple((types.float64, types.float64, types.int64, types.int64, types.float64))


@called_by_address(JUDGED(TIMED, WORTH, INT64S, INT64S, INT64S, INT64S, RIVALS, types.int64, types.float64, WORKSPACE))
def score(
    timed: Timed,
    worth: Worth,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    table: Int64s,
    found: Rivals,
    stand: int,
    ordered: float,
    room: Workspace,
) -> Judged:
    """The expected score of a match and the probability of the worlds in which it is above 0."""
    window, spans, length = worth.window, worth.spans, len(chosen)
    everywhere = possible_everywhere(spans, low, high, table, window)
    if everywhere and ordered > 0.0 and len(found.keys) == 0:
        cost = expected_cost(low, high, table, window)
        if cost > worth.budget:
            return 0.0, 0.0, 0, 0, cost
        probability = expected(timed, spans, chosen, low, high, table, window, room)
        return probability, min(ordered, 1.0), low[0], high[length - 1], 0.0
    scores = Weighing(spans.score, spans.first, table)
    probability, earliest, latest, cost = alternatives(
        timed, chosen, low, high, window, found, stand, scores, worth.budget
    )
    if cost > 0.0:
        return 0.0, 0.0, 0, 0, cost
    possible = unweighed() if everywhere else Weighing(spans.indicator, spans.first, table)
    confidence, earliest, latest, cost = alternatives(
        timed, chosen, low, high, window, found, stand, possible, worth.budget
    )
    return probability, confidence, earliest, latest, cost


@called_by_address(
    JUDGED(
        TIMED,
        WORTH,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
        WORKSPACE,
    )
)
def judge(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    part: int,
    chain: Int64s,
    low: Int64s,
    high: Int64s,
    table: Int64s,
    missing: int,
    room: Workspace,
) -> Judged:
    """The worth of the match along a chain of nodes, whose events have the valid bounds low .. high.

    `table` has for each gap the table of its scores, `missing` the bits of the components that were not seen.
    """
    length, holes, exist = len(chain), 0, 1.0
    chosen = np.empty(length, np.int64)
    for index in range(length):
        chosen[index] = nodes.entries[chain[index], EVENT]
        holes |= timed.holes[chosen[index]]
        exist *= timed.exists[chosen[index]]  # independently of all else
    memory, slot, size = room.memory, UNKNOWN, 0
    if missing == 0 and not worth.scored and fits_decide(program, timed.compared):
        size = shape_of(timed, stacks, memory, part, chosen, low, high)
    if size > 0:
        slot = place_in_memory(memory, size)
        if is_known(memory, slot, size):
            earliest = low[0] + int(memory.values[slot, EARLIEST])
            latest = low[0] + int(memory.values[slot, LATEST])
            return 1.0, memory.values[slot, CONFIDENCE] * exist, earliest, latest, 0.0
    ordered = ordered_within(timed, chosen, low, high, length, worth.window, room)
    if ordered * exist < worth.least[0]:
        return 0.0, 0.0, 0, 0, 0.0
    found, stand = Rivals(np.empty(0, np.int64), np.empty(0, np.int64)), 1
    if has_rivals(program):
        found = rivals(timed, worth, stacks, program, columns, predicate, nodes, part, chain, low, high, missing)
    if len(found.keys) > 0 or program.judged:
        stand = standing(program, columns, predicate, nodes, chain[length - 1], missing)
    if stand == 0:
        return 0.0, 0.0, 0, 0, 0.0
    simple = ordered if holes == 0 else 0.0  # what is 0 is found out instant by instant
    if worth.scored:
        probability, confidence, earliest, latest, cost = score(
            timed, worth, chosen, low, high, table, found, stand, simple, room
        )
        return probability * exist, confidence * exist, earliest, latest, cost
    if simple > 0.0 and len(found.keys) == 0:
        return 1.0, min(ordered, 1.0) * exist, low[0], high[length - 1], 0.0
    confidence, earliest, latest, cost = alternatives(
        timed, chosen, low, high, worth.window, found, stand, unweighed(), worth.budget
    )
    if size > 0 and cost == 0.0:
        remember(memory, slot, size, low[0], confidence, earliest, latest)
    return 1.0, confidence * exist, earliest, latest, cost
