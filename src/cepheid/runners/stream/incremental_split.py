"""Queries of one call of which some searches go on where they stopped, and others search again what is kept.

The state is that of queries that search again: all events that some query may need. Beside it stands the search of
the others, which is made of the same events and so made again whenever they are laid down anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.queries import refusal
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.incremental_pushed import ResidentIncremental
from cepheid.runners.stream.incremental_shard import Resident, types_of_events
from cepheid.runners.stream.state import StreamStep


class ResidentSplit(Resident):
    """A stream's state in memory, with searches for those queries that can go on."""

    def __init__(self, step: StreamStep, schema: pa.Schema, fingerprint: Fingerprint) -> None:
        able = [refusal(plan, schema) is None for plan in step.plans]
        self.going_on = ResidentIncremental(_part(step, able), schema, fingerprint)
        super().__init__(step, schema, fingerprint)
        self.searching = _part(step, [not each for each in able])
        self._types = types_of_events(step.plans, self.searching.plans)

    def append(self, fresh: pa.Table, begins: Int64s) -> None:
        """Puts new events beside those that are kept."""
        super().append(fresh, begins)
        self.going_on.append(fresh, begins)

    def lay_down(self, table: pa.Table, until: int | None) -> None:
        """Begins anew with these events."""
        super().lay_down(table, until)
        self.going_on.queries = self.queries
        self.going_on.lay_down(table, until)

    def found(self, after: int | None, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The matches that complete in the interval, query by query."""
        results = [*super().found(after, until), *self.going_on.found(after, until)]
        return tuple(sorted(results, key=lambda each: each[0]))


def _part(step: StreamStep, chosen: Sequence[bool]) -> StreamStep:
    """The step of some of the queries."""
    places = [place for place, each in enumerate(chosen) if each]
    return replace(
        step,
        shipments=tuple(step.shipments[place] for place in places),
        numbers=tuple(step.numbers[place] for place in places),
        plans=tuple(step.plans[place] for place in places),
    )
