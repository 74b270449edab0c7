"""The run engine over events that stay, where its runs do not (kept_runs.py): negation, or groups of any combination.

As with stacks, each event is prepared once, and a step looks again at the events of those keys alone for which one has
come that can be the last of a match.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.engine.data.columns import ColumnLayout, Columns
from cepheid.engine.data.layout import Events
from cepheid.engine.data.matches import Int64s, Matches
from cepheid.engine.kernels.handing import with_known_addresses
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import compile_runs
from cepheid.engine.program.tables import KEYS_FROM, MERGEABLE
from cepheid.engine.search.kept_events import can_be_read_once
from cepheid.engine.search.kept_runs import NO_WAITS
from cepheid.engine.search.kept_stacks import KeptStacks
from cepheid.engine.search.runs.enumerate import nothing_listed
from cepheid.engine.search.runs.moves import OVERFLOW, Widths
from cepheid.engine.search.runs.prepare import matches_of
from cepheid.engine.search.runs.scan import MATCHES_REACHED, RUNS_REACHED, VERBOSE, Asked, Machine, scan
from cepheid.plan.physical import Plan


def can_keep_scans(plan: Plan, schema: pa.Schema) -> bool:
    """Is it for the run engine, one key at a time, and of each event all is known when it comes?"""
    if plan.engine != "runs" or not plan.partition or plan.bound.untils or plan.limits.truncate:
        return False
    return can_be_read_once(plan, schema, compile_runs(plan.bound)[0].layout)


class KeptScans(KeptStacks):
    """The candidates of a query as they come, numbered from 0 on."""

    def layout(self) -> ColumnLayout:
        """What conditions read of an event."""
        return compile_runs(self.plan.bound)[0].layout

    def search(self, events: Events, columns: Columns, rows: Int64s, interval: tuple[int, int]) -> Matches:
        """The matches among the events of these rows."""
        plan, limits = self.plan, self.plan.limits
        compiled, graph = compile_runs(plan.bound)
        program = compiled.program
        merging = bool(plan.options.get("merge", True)) and bool(program.place[:, MERGEABLE].any())
        keys = int(np.diff(program.place[:, KEYS_FROM]).max(initial=0))
        listed, _, _, state = scan(
            events,
            Machine(program, graph),
            columns,
            with_known_addresses(compiled.predicate.call),
            NO_WAITS,
            Widths(0, compiled.slots, compiled.whole, compiled.number, 2 + keys if merging else 0),
            nothing_listed(program.places),
            Asked(VERBOSE, merging, False, *interval, limits.max_partial_matches, limits.max_matches),
        )
        check_limit(plan, "max_partial_matches", bool(state[OVERFLOW] == RUNS_REACHED))
        check_limit(plan, "max_matches", bool(state[OVERFLOW] == MATCHES_REACHED))
        return matches_of(plan.bound, listed, rows)
