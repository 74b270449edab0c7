"""What residents share that prepare events once, when they come: how matches become rows of the result.

A step takes no table apart: it picks rows of the matches that it found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.matches import MISSING, Chosen, Matches
from cepheid.engine.data.table import EventTable
from cepheid.plan.physical import Plan
from cepheid.runners.stream.incremental_shard import Resident
from cepheid.runners.worker_plans import MATCHES_AT_ONCE, result_batches


class ResidentKept(Resident):
    """A stream's state in memory for one query, its events numbered as they stand in `pieces`."""

    @property
    def plan(self) -> Plan:
        """The plan of the one query."""
        return self.step.plans[0]

    @property
    def since(self) -> int | None:
        """A query that came later has not been shown what was before."""
        return next(iter(self.queries.values())).since

    def told(self, matches: Matches) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The rows of the result: all events of all matches are taken at once."""
        bound, schema = self.plan.bound, self.step.shipments[0].schema
        if bound.is_linear_of_singles and bound.returns is None and len(matches) <= MATCHES_AT_ONCE:
            batch = self._single_events(matches, schema)
            if batch is not None:
                return ((self.step.numbers[0], batch),)
        # Few of the events are in matches: only these are taken out of the table.
        rows = np.unique(np.concatenate([chosen.rows for chosen in matches.chosen]))
        rows = rows[rows != MISSING]
        events = self._taken(rows)
        order = np.argsort(self.step.begins(events), kind="stable")  # they lie as they came
        places = np.empty(len(rows), np.int64)
        places[order] = np.arange(len(rows))
        renumbered = tuple(Chosen(_places(rows, places, chosen.rows), chosen.offsets) for chosen in matches.chosen)
        in_order = EventTable(events.take(pa.array(order)), order, order)
        found = result_batches(bound, in_order, replace(matches, chosen=renumbered), schema)
        return tuple((self.step.numbers[0], batch) for batch in found)

    def _single_events(self, matches: Matches, schema: pa.Schema) -> pa.RecordBatch | None:
        """The rows where every component is one event; None if the result has other types than the events."""
        number, places = len(matches), len(matches.chosen)
        taken = self._taken(np.concatenate([chosen.rows for chosen in matches.chosen]))
        columns = [column.combine_chunks() for column in taken.columns]
        time = columns[taken.column_names.index(self.plan.bound.schema.time)]
        structs = [
            pa.StructArray.from_arrays([column.slice(place * number, number) for column in columns], taken.column_names)
            for place in range(places)
        ]
        arrays = [time.slice(0, number), time.slice((places - 1) * number, number), *structs]
        if [array.type for array in arrays] != schema.types:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

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


def _places(rows: Int64s, places: Int64s, chosen: Int64s) -> Int64s:
    """The places of chosen rows among some rows, which are in order."""
    found: Int64s = places[np.minimum(np.searchsorted(rows, chosen), len(rows) - 1)]
    return np.where(chosen == MISSING, MISSING, found)
