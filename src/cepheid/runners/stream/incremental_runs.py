"""The streaming step of a query under skip_till_next_match with its state in memory: runs stay from step to step.

Beside the events that incremental_shard.py keeps are the runs that have seen them (engine/search/incremental_runs.py).
So a step costs what its new events cost, however much the window holds. What is saved are the events alone.
"""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.shared import sharing
from cepheid.engine.data.table import ordered
from cepheid.engine.find import BEGINNING
from cepheid.engine.jit_fallback import answer
from cepheid.engine.search.incremental_runs import KeptRuns, TooMany
from cepheid.runners.stream.carried import Pending
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.incremental_replay import ResidentKept
from cepheid.runners.stream.state import StreamStep


class ResidentRuns(ResidentKept):
    """A stream's state in memory for one query, with its runs."""

    def __init__(self, step: StreamStep, schema: pa.Schema, fingerprint: Fingerprint) -> None:
        self._runs = KeptRuns(step.plans[0])
        self._keeps = True  # False: there were too many runs; each step searches the events again
        super().__init__(step, schema, fingerprint)

    def __len__(self) -> int:
        return len(self._runs)

    def append(self, fresh: pa.Table, begins: Int64s) -> None:
        """Prepares new events, and puts those that can take part beside those that are kept."""
        if fresh.num_rows:
            rows = self._runs.append(fresh, begins)
            if len(rows):
                self.pieces.append(fresh if len(rows) == fresh.num_rows else fresh.take(pa.array(rows)))

    def found(self, after: int | None, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The matches that complete in the interval."""
        if not self._keeps:
            return self._found_again(after, until)
        begin = BEGINNING if after is None else after
        try:
            matches = answer("search.incremental_runs", len(self), lambda: self._runs.released(begin, until))
        except TooMany as reached:
            # How many there may be is said of each key, and here are those of all.
            self._keeps = not reached.runs
            return self._found_again(after, until)
        return () if matches is None else self.told(matches)

    def _found_again(self, after: int | None, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The same from the events that are kept, as if there were no runs."""
        rows = self._runs.rows_between(BEGINNING if after is None else self.step.gone(after), until)
        if not len(rows):
            return ()
        events = ordered(self.table().take(pa.array(rows)), self.plan.bound.schema)
        pending = Pending(self.ends)
        with sharing():
            return tuple(self.step.found(pending, events, Clock(after, queries=self.queries), until))

    def forget(self) -> None:
        """Leaves out what no later match can need."""
        assert self.until is not None
        keep = self._runs.time > self.step.gone(self.until)
        self.pieces = [self.table().filter(pa.array(keep)).combine_chunks()]
        self._runs.keep(keep)
        self.kept = len(self)

    def lay_down(self, table: pa.Table, until: int | None) -> None:
        """Begins anew with these events."""
        self._runs = KeptRuns(self.plan)
        self.pieces = [table.slice(0, 0)]
        begins = self.step.begins(table)
        if until is not None and self.since is not None and bool((begins <= self.since).any()):
            later = begins > self.since
            table, begins = table.filter(pa.array(later)), begins[later]
        self.append(table, begins)
        self.kept = len(self)
