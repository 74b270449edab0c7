"""The streaming step without Spark: chunks in a dictionary, events that arrive in any order the delay allows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import settings

from cepheid.engine.search import incremental_events
from cepheid.plan.physical import Plan
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream import remembered
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.state import StreamStep

END_OF_TIME = 10_000
# A drawn stream is many searches and a reference for each of its queries: of these fewer are drawn in the longest runs.
drawn_streams = settings(max_examples=min(settings.default.max_examples, 500))
SAME = Fingerprint(1)
Signature = list[list[int]]


@dataclass
class Memory:
    """Where chunks lie: in dictionaries. It counts what is written and remembers what was read."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    codes: dict[int, bytes] = field(default_factory=dict)
    ends: dict[int, bytes] = field(default_factory=dict)
    remembered: dict[int, Any] = field(default_factory=dict)
    written: int = 0
    read_numbers: list[int] = field(default_factory=list)

    def read(self, number: int) -> bytes:
        self.read_numbers.append(number)
        return self.chunks[number]

    def write(self, number: int, chunk: bytes) -> None:
        assert number not in self.chunks
        self.chunks[number] = chunk
        self.written += len(chunk)

    def remove(self, number: int) -> None:
        del self.chunks[number]

    def keys(self, number: int) -> bytes:
        return self.codes[number]

    def write_keys(self, number: int, keys: bytes) -> None:
        assert number not in self.codes
        self.codes[number] = keys
        self.written += len(keys)

    def remove_keys(self, number: int) -> None:
        del self.codes[number]

    def ended(self, query: int) -> bytes | None:
        return self.ends.get(query)

    def end(self, query: int, ended: bytes) -> None:
        self.ends[query] = ended

    def forget(self, query: int) -> None:
        self.ends.pop(query, None)


def in_batches(draw: st.DrawFn, table: pa.Table, delay: int, most: int = 4) -> list[pa.Table]:
    """The rows in an order that never leaves one more than `delay` behind the newest, cut into micro-batches."""
    times = table["ts"].to_pylist()
    left, order, newest = list(range(len(times))), [], None
    while left:
        oldest = min(times[row] for row in left)
        able = [row for row in left if max(times[row], times[row] if newest is None else newest) - oldest <= delay]
        row = draw(st.sampled_from(able or [min(left, key=lambda row: times[row])]))
        newest = times[row] if newest is None else max(newest, times[row])
        left.remove(row)
        order.append(row)
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=most)))
    return [table.take(pa.array(order[a:b], pa.int64())) for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]


def found_in_steps(plan: Plan, batches: list[pa.Table], delay: int) -> list[Signature]:
    """What a stream reports, batch by batch, the end of time included; its state is read back between the steps.

    It reports the same where searches are remembered from step to step, and forgotten after every third, and however
    many events are read one by one.
    """
    found = stepped(plan, batches, delay, None)
    for forgets, few in ((3, 100), (len(batches) + 1, 0)):
        with mock.patch.object(incremental_events, "FEW", few):
            assert stepped(plan, batches, delay, forgets) == found
    return found


def stepped(plan: Plan, batches: list[pa.Table], delay: int, forgets: int | None) -> list[Signature]:
    """The same, over the retained events (None), or with searches that are forgotten after so many steps."""
    step = replace(StreamStep((ship(plan, batches[0].schema),), (0,), delay, schema=batches[0].schema), plans=(plan,))
    clock, store = Clock(), Memory()
    found: list[Signature] = []
    times = [(batch, max(batch["ts"].to_pylist(), default=None)) for batch in batches]
    for number, (batch, newest) in enumerate([*times, (None, END_OF_TIME)], 1):
        fresh = [batch] if batch is not None and batch.num_rows else []
        run = step.run if forgets is None else partial(remembered.run_step, step)
        outcome = run(clock, store, fresh, newest)
        if forgets is not None and number % forgets == 0:
            store.remembered.clear()
        assert [chunk.number for chunk in outcome.clock.chunks] == sorted(store.chunks)
        assert outcome.late is None
        clock = Clock.read(outcome.clock.text(SAME), SAME)
        found += [match for _, part in outcome.results for match in signatures(plan, part.to_pylist())]
    return sorted(found)


def signatures(plan: Plan, rows: list[dict[str, Any]]) -> list[Signature]:
    """The matches of result rows as numbers of events."""
    found = []
    for row in rows:
        groups = [row[component.variable] for component in plan.bound.positives]
        groups = [group if isinstance(group, list) else [group] if group is not None else [] for group in groups]
        found.append([[event["event"] for event in group] for group in groups])
    return found
