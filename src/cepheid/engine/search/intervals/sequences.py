"""What a match without groups is worth: who judges it reads it as nodes, one for each place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import COLUMNS, INT64S, Columns
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, widest
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.conditions import EVENT, FUNCTION, LEFT, RIGHT
from cepheid.engine.kernels.partial_matches import NODES, Nodes
from cepheid.engine.program.tables import PROGRAM, Program
from cepheid.engine.worth.confidence.order import WORKSPACE, Workspace, workspace
from cepheid.engine.worth.edges import CERTAIN
from cepheid.engine.worth.judge import judge
from cepheid.engine.worth.worth import WORTH, Worth

Int64s = npt.NDArray[np.int64]


class Judging(NamedTuple):
    """The query in the order of the pattern, which matches are judged by, and room for that."""

    program: Program
    columns: Columns
    predicate: Any
    nodes: Nodes
    chain: Int64s  # the nodes of a match, one after the other
    table: Int64s  # of each gap the table of its scores: all are certain
    room: Workspace


JUDGING = types.NamedTuple((PROGRAM, COLUMNS, FUNCTION, NODES, INT64S, INT64S, WORKSPACE), Judging)


@kernel(JUDGING(TIMED, PROGRAM, COLUMNS, FUNCTION, NODES))
def new_judging(timed: Timed, program: Program, columns: Columns, predicate: Any, nodes: Nodes) -> Judging:
    """All that matches are judged by, with room for the widest interval."""
    length = program.places
    room = workspace(widest(timed), length)
    return Judging(program, columns, predicate, nodes, np.arange(length), np.full(length + 1, CERTAIN), room)


@borrowing(types.void(PROGRAM, NODES, TIMED, INT64S), inline=True)
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


@borrowing(
    types.Tuple((types.float64, types.int64, types.int64, types.float64))(
        TIMED, WORTH, STACKS, JUDGING, types.int64, INT64S, INT64S, INT64S
    ),
    inline=True,
)
def judge_sequence(
    timed: Timed, worth: Worth, stacks: Stacks, judging: Judging, part: int, at: Int64s, low: Int64s, high: Int64s
) -> tuple[float, int, int, float]:
    """Confidence and tightest range of a match whose events have the valid bounds low .. high; above 0: the cost of
    what was too expensive."""
    program, columns, predicate, nodes, chain, table, room = judging
    as_nodes(program, nodes, timed, at)
    _, confidence, earliest, latest, cost = judge(
        timed, worth, stacks, program, columns, predicate, nodes, part, chain, low, high, table, 0, room
    )
    return confidence, earliest, latest, cost
