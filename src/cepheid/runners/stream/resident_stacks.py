"""The streaming step of a plain query with its state in memory: events are prepared once, when they come.

It keeps what resident.py keeps, and beside it what the kernel reads (engine/search/kept_stacks.py). A step then takes
no table apart: it picks numbers of the keys for which a last event has come, and rows of the matches that it found.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.engine.data.matches import Int64s
from cepheid.engine.find import BEGINNING
from cepheid.engine.jit_fallback import answer
from cepheid.engine.search.kept_scans import KeptScans
from cepheid.engine.search.kept_stacks import KeptStacks
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.resident_kept import ResidentKept
from cepheid.runners.stream.state import Step


class ResidentStacks(ResidentKept):
    """A stream's state in memory for one plain query."""

    keeping: type[KeptStacks] = KeptStacks
    engine = "search.stacks"

    def __init__(self, step: Step, schema: pa.Schema, fingerprint: Fingerprint) -> None:
        self._stacks = self.keeping(step.plans[0])
        self._ending: Int64s = np.empty(0, np.int64)  # candidates after `until` that can be the last of a match
        super().__init__(step, schema, fingerprint)

    def __len__(self) -> int:
        return len(self._stacks)

    def append(self, fresh: pa.Table, begins: Int64s) -> None:
        """Prepares new events, and puts those that can take part beside those that are kept."""
        if not fresh.num_rows:
            return
        start = len(self)
        rows, ending = self._stacks.append(fresh, begins)
        if not len(rows):
            return
        self.pieces.append(fresh if len(rows) == fresh.num_rows else fresh.take(pa.array(rows)))
        self._ending = np.concatenate([self._ending, start + np.flatnonzero(ending)])

    def found(self, after: int | None, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The matches that complete in the interval."""
        times = self._stacks.time[self._ending]
        passed = times <= until
        released, self._ending = self._ending[passed], self._ending[~passed]
        if not len(released):
            return ()
        keys = dict.fromkeys(self._stacks.key[released].tolist())
        oldest = BEGINNING if after is None else self.step.gone(after)
        oldest = oldest if self.since is None else max(oldest, self.since + 1)
        begin = BEGINNING if after is None else after
        matches = answer(self.engine, len(self), lambda: self._stacks.find(keys, begin, until, oldest))
        return self.told(matches) if matches is not None and len(matches) else ()

    def forget(self) -> None:
        """Leaves out what no later match can need."""
        assert self.until is not None
        keep = self._stacks.time > self.step.gone(self.until)
        numbers = np.cumsum(keep) - 1
        self._ending = numbers[self._ending]  # those lie after `until`
        self.pieces = [self.table().filter(pa.array(keep)).combine_chunks()]
        self._stacks.keep(keep)
        self.kept = len(self)

    def lay_down(self, table: pa.Table, until: int | None) -> None:
        """Begins anew with these events."""
        self._stacks = self.keeping(self.plan)
        self._ending = np.empty(0, np.int64)
        self.pieces = [table.slice(0, 0)]
        self.append(table, self.step.begins(table))
        if until is not None:
            self._ending = self._ending[self._stacks.time[self._ending] > until]
        self.kept = len(self)


class ResidentScans(ResidentStacks):
    """The same for a query that the run engine searches."""

    keeping = KeptScans
    engine = "search.runs"
