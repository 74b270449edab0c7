"""A stream that the console feeds: a table replayed at a chosen speed, or the files that come into a directory.

The state is the table of events that a later match may need, and a step is `find` over the interval between two
watermarks, as on Spark (docs/design.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.console.workspace import OpenTable
from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import ordered, times_of
from cepheid.engine.find import find, last_ends
from cepheid.engine.output.overlap import Ended
from cepheid.engine.retention import retained
from cepheid.files.event_files import read_events
from cepheid.files.input_files import EventFiles
from cepheid.language import syntax as s
from cepheid.language.schema import Schema
from cepheid.plan.options import PlanOptions
from cepheid.plan.physical import Plan
from cepheid.runners.results import assemble


@dataclass(frozen=True)
class Numbers:
    """How far a stream has come."""

    events: int = 0
    matches: int = 0
    late: int = 0
    retained: int = 0  # events that later matches may need
    state_bytes: int = 0
    step_seconds: float = 0.0  # that the last step took
    watermark: int | None = None  # all matches that complete by then are known


class LiveQuery:
    """A query over events as they come: `send` takes a table of them and gives the matches that are known now."""

    def __init__(self, query: cepheid.Query, table: OpenTable, delay: int = 0, **given: Any) -> None:
        schema = Schema.from_arrow(table.events.schema, **table.roles.arguments())
        self.plan: Plan = make_plan(query.bind(schema), None, PlanOptions(**given))[0]
        self.delay = delay
        self.state = table.events.slice(0, 0)
        self.ended: Ended | None = {} if query.syntax.output.mode is s.OutputMode.NON_OVERLAP else None
        self.numbers = Numbers()

    def send(self, events: pa.Table) -> pa.Table:
        """The matches that complete before the newest event, less the delay."""
        watermark = self.numbers.watermark
        if events.num_rows:
            newest = int(times_of(events, self._clock()).max()) - self.delay - 1
            watermark = newest if watermark is None else max(newest, watermark)
        return self._step(events, watermark)

    def finish(self) -> pa.Table:
        """The matches that are left: no more events come, so time has passed."""
        return self._step(self.state.slice(0, 0), None)

    def _clock(self) -> str:
        schema = self.plan.bound.schema
        return schema.lower or schema.time

    def _step(self, events: pa.Table, until: int | None) -> pa.Table:
        """One step; `until` None stands for the end of time."""
        begin, after = time.perf_counter(), self.numbers.watermark
        arrived = events.cast(self.state.schema)
        if after is not None and arrived.num_rows:
            arrived = arrived.filter(pa.array(times_of(arrived, self._clock()) > after))
        waiting = ordered(pa.concat_tables([self.state, arrived]), self.plan.bound.schema)
        released = waiting
        if until is not None:
            inside = times_of(waiting.table, self._clock()) <= until
            released = ordered(waiting.table.filter(pa.array(inside)), self.plan.bound.schema)
        matches = find(self.plan, released, after, until, self.ended)
        if self.ended is not None:
            self.ended = {**self.ended, **last_ends(self.plan, released, matches)}
        found = assemble(self.plan.bound, released.table, matches.take(np.argsort(matches.completion, kind="stable")))
        kept = np.zeros(len(waiting), bool) if until is None else retained(self.plan, waiting, until)
        self.state = waiting.table.filter(pa.array(kept)).combine_chunks()
        spent = time.perf_counter() - begin
        self.numbers = Numbers(
            self.numbers.events + events.num_rows,
            self.numbers.matches + found.num_rows,
            self.numbers.late + events.num_rows - arrived.num_rows,
            self.state.num_rows,
            self.state.nbytes,
            spent,
            after if until is None else until,
        )
        return found


def replayed(table: OpenTable, per_second: float, steps_per_second: float = 4.0) -> Iterator[pa.Table]:
    """The events of a table in order of time, so many a second; the caller waits between the pieces."""
    schema = Schema.from_arrow(table.events.schema, **table.roles.arguments())
    events = ordered(table.events, schema).table
    size = max(1, int(per_second / steps_per_second))
    for start in range(0, events.num_rows, size):
        yield events.slice(start, size)


class Watched:
    """The files of a directory that have not been read yet, in the order of their times."""

    def __init__(self, folder: Path, time: str) -> None:
        self.folder, self.time = folder, time
        self.seen: set[Path] = set()

    def new_events(self, like: pa.Schema, format_of: EventFiles) -> Iterator[pa.Table]:
        """The events of each new file, with the columns of those that were there at first."""
        files = [path for path in self.folder.iterdir() if path.is_file() and not path.name.startswith((".", "_"))]
        fresh = [path for path in files if path not in self.seen and path.stat().st_size > 0]
        for path in sorted(fresh, key=lambda path: (path.stat().st_mtime_ns, path.name)):
            self.seen.add(path)
            events = read_events(replace(format_of, paths=(path,), partitions=None), time=self.time)
            yield events.select(like.names).cast(like)
