"""The streaming step of a plain query with its state in memory: events are prepared once, when they come.

It keeps what resident.py keeps, and beside it what the kernel reads (engine/search/kept_stacks.py). A step then takes
no table apart: it picks numbers of the keys for which a last event has come, and rows of the matches that it found.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.engine.cold import answer
from cepheid.engine.data.matches import Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.find import BEGINNING
from cepheid.engine.search.kept_stacks import KeptStacks, can_keep
from cepheid.plan.physical import Plan
from cepheid.runners.spark.shipment import MATCHES_AT_ONCE, result_batches
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.resident import Resident
from cepheid.runners.stream.state import Step


def is_plain(step: Step, schema: pa.Schema) -> bool:
    """Can the step be taken this way?"""
    return bool(step.keys) and len(step.plans) == 1 and can_keep(step.plans[0], schema)


class ResidentStacks(Resident):
    """A stream's state in memory for one plain query."""

    def __init__(self, step: Step, schema: pa.Schema, fingerprint: Fingerprint) -> None:
        self._plan: Plan = step.plans[0]
        self._stacks = KeptStacks(self._plan)
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
        keys = list(dict.fromkeys(self._stacks.key[released].tolist()))
        oldest = BEGINNING if after is None else self.step.gone(after)
        since = next(iter(self.queries.values())).since  # a query that came later has not been shown what was before
        oldest = oldest if since is None else max(oldest, since + 1)
        begin = BEGINNING if after is None else after
        matches = answer("search.stacks", len(self), lambda: self._stacks.find(keys, begin, until, oldest))
        if not len(matches):
            return ()
        return tuple((self.step.numbers[0], batch) for batch in self._results(matches))

    def _results(self, matches: Matches) -> list[pa.RecordBatch]:
        """The rows of the result: all events of all matches are taken at once."""
        bound, schema = self._plan.bound, self.step.shipments[0].schema
        number, places = len(matches), len(matches.chosen)
        if bound.returns is None and number <= MATCHES_AT_ONCE:
            taken = self._taken(np.concatenate([chosen.rows for chosen in matches.chosen]))
            columns = [column.combine_chunks() for column in taken.columns]
            time = columns[taken.column_names.index(bound.schema.time)]
            structs = [
                pa.StructArray.from_arrays(
                    [column.slice(place * number, number) for column in columns], taken.column_names
                )
                for place in range(places)
            ]
            arrays = [time.slice(0, number), time.slice((places - 1) * number, number), *structs]
            if [array.type for array in arrays] == schema.types:
                return [pa.RecordBatch.from_arrays(arrays, schema=schema)]
        events = EventTable(self.table(), self._stacks.time, self._stacks.time)
        return list(result_batches(bound, events, matches, schema))

    def _taken(self, rows: Int64s) -> pa.Table:
        """Some of the events. Arrow would copy a column of several pieces whole to take from it."""
        if len(self.pieces) > 1:
            small = pa.concat_tables(self.pieces[1:]).combine_chunks()
            large = self.pieces[0]
            grown = 2 * small.num_rows > large.num_rows  # the large one is copied only when that pays
            self.pieces = [pa.concat_tables([large, small]).combine_chunks()] if grown else [large, small]
        if len(self.pieces) == 1:
            return self.pieces[0].take(pa.array(rows))
        large, small = self.pieces
        new = rows >= large.num_rows
        if not new.any():
            return large.take(pa.array(rows))
        parts = [large.take(pa.array(rows[~new])), small.take(pa.array(rows[new] - large.num_rows))]
        places = np.argsort(np.concatenate([np.flatnonzero(~new), np.flatnonzero(new)]))
        return pa.concat_tables(parts).take(pa.array(places))

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
        self._stacks = KeptStacks(self._plan)
        self._ending = np.empty(0, np.int64)
        self.pieces = [table.slice(0, 0)]
        self.append(table, self.step.begins(table))
        if until is not None:
            self._ending = self._ending[self._stacks.time[self._ending] > until]
        self.kept = len(self)
