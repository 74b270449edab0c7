"""skip_till_next_match where events may be missing: no event that was seen may be passed over that could be selected.

What was seen must be a skip-till-next match of the pattern without its missing components.
"""

from __future__ import annotations

from cepheid.engine.data.layout import BEGINS, INSTANT
from cepheid.engine.kernels.compile import called_by_address
from cepheid.engine.kernels.conditions import EVENT, RIGHT
from cepheid.engine.kernels.partial_matches import Nodes, PartialMatches, add_node, more_nodes
from cepheid.engine.kernels.query import Query
from cepheid.engine.kernels.windows import first_above
from cepheid.engine.program.tables import KLEENE
from cepheid.engine.scoring.confidence.competing import could_join
from cepheid.engine.search.queues.query import Path, Queues


@called_by_address
def selects_next(query: Query, nodes: Nodes, queues: Queues, path: Path, depth: int, missing: int) -> bool:
    """Does a complete path pass no event that it could have selected instead of one of its own?

    The query's conditions must be placed in the order of the pattern.
    """
    program, events = query.program, query.events
    entries, facts, begins_groups = path.entries, events.facts, events.facts[BEGINS]
    while len(nodes.closed) < depth + 1:
        nodes = more_nodes(nodes)
    partial = PartialMatches(program, query.columns, query.predicate, nodes)
    for entry in range(depth, -1, -1):  # in order of time
        node, event, place = depth - entry, entries[entry, EVENT], entries[entry, RIGHT]
        begins = node == 0 or entries[entry + 1, RIGHT] != place
        if node > 0:
            before, row = entries[entry + 1, EVENT], entries[entry + 1, RIGHT]
            if program.place[row, KLEENE] == 0:  # else an open group is only held up by what it could take
                row = place
            stack, size = queues.stacks[row], queues.sizes[row]
            low = first_above(stack, 0, size, facts, INSTANT, facts[INSTANT, before])
            high = first_above(stack, low, size, facts, INSTANT, facts[INSTANT, event] - 1)
            for index in range(low, high):
                if could_join(begins_groups, events.compared, partial, node - 1, stack[index], row, missing):
                    return False
        add_node(events.compared, partial, node - 1, node, event, place, begins, missing)
    return True
