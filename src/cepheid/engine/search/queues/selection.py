"""skip_till_next_match where events may be missing: no event that was seen may be passed over that could be selected.

What was seen must be a skip-till-next match of the pattern without its missing components.
"""

from __future__ import annotations

from typing import Any

from numba import types

from cepheid.engine.data.columns import COLUMNS, Columns
from cepheid.engine.kernels.apart import apart
from cepheid.engine.kernels.arrays import EVENTS, Events
from cepheid.engine.kernels.partial_matches import FUNCTION, NODES, Nodes, add_node, more_nodes
from cepheid.engine.program.tables import KLEENE, PROGRAM, Program
from cepheid.engine.search.queues.conditions import first_beyond
from cepheid.engine.search.queues.query import PATH, QUEUES, Path, Queues
from cepheid.engine.search.runs.buffer import EVENT, RIGHT
from cepheid.engine.worth.confidence.rivals import could_join


@apart(
    types.boolean(EVENTS, PROGRAM, COLUMNS, FUNCTION, NODES, QUEUES, PATH, types.int64, types.int64),
)
def selects_next(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    queues: Queues,
    path: Path,
    depth: int,
    missing: int,
) -> bool:
    """Does a complete path pass no event that it could have selected instead of one of its own?"""
    entries, instant, stacks = path.entries, events.instant, queues.stacks
    while len(nodes.closed) < depth + 1:
        nodes = more_nodes(nodes)
    for entry in range(depth, -1, -1):  # in order of time
        node, event, place = depth - entry, entries[entry, EVENT], entries[entry, RIGHT]
        begins = node == 0 or entries[entry + 1, RIGHT] != place
        if node > 0:
            before = entries[entry + 1, EVENT]
            row = entries[entry + 1, RIGHT]
            if program.place[row, KLEENE] == 0:  # else an open group is only held up by what it could take
                row = place
            low = first_beyond(stacks, row, 0, queues.sizes[row], instant, instant[before])
            high = first_beyond(stacks, row, low, queues.sizes[row], instant, instant[event] - 1)
            for index in range(low, high):
                other = stacks[row, index]
                if could_join(
                    events.mask, events.compared, program, columns, predicate, nodes, node - 1, other, row, missing
                ):
                    return False
        add_node(events.compared, program, columns, predicate, nodes, node - 1, node, event, place, begins, missing)
    return True
