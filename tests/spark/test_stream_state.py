"""Steps over a stream, cut anywhere and arriving in any order that the delay allows, find what a batch finds."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given

from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.engine.retention import reach
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.arrow_bytes import decoded, encoded
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream import state as stream_state
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.state import StreamStep
from contract.steps import SAME, Memory, drawn_streams, in_batches, signatures
from strategies.intervals import ROLES, intervals
from strategies.models import models
from strategies.queries import queries, streams

FAR = 10_000


def numbered(table: pa.Table) -> pa.Table:
    return table.append_column("event", pa.array(range(table.num_rows), pa.int64()))


def plan_of(query, table: pa.Table, **options) -> Plan:
    roles = ROLES if "upper" in table.column_names else {}
    bound = bind(query, Schema.from_arrow(table.schema, **roles))
    return Plan(bound, "reference", partition=bound.equivalence, **options)


def expected(plan: Plan, table: pa.Table) -> list:
    events = ordered(table, plan.bound.schema)
    ids = events.table["event"].to_pylist()
    return sorted([sorted(ids[row] for row in group) for group in match] for match in find(plan, events).groups())


def numbers_of(plan: Plan, batch: pa.RecordBatch) -> list:
    """The matches as sorted numbers of their events."""
    return [[sorted(group) for group in match] for match in signatures(plan, batch.to_pylist())]


def check_steps(draw, plan: Plan, table: pa.Table, delay: int, cuts: int = 4, few=(1, 2, 1000)) -> None:
    """Steps over drawn micro-batches, and a last one that ends time, find what the whole table gives."""
    step = replace(StreamStep((ship(plan, table.schema),), (0,), delay), plans=(plan,))
    clock, store, found = Clock(), Memory(), []
    stream_state.FEW = draw(st.sampled_from(few))  # how many idle events are laid apart
    for batch in in_batches(draw, table, delay, cuts):
        newest = max(batch["ts"].to_pylist(), default=None)
        outcome = step.run(clock, store, [batch] if batch.num_rows else [], newest)
        clock = Clock.read(outcome.clock.text(SAME), SAME)
        assert outcome.late is None
        assert {chunk.number for chunk in clock.chunks} == set(store.chunks)
        assert {chunk.number for chunk in clock.chunks if chunk.asleep} == set(store.codes)
        assert outcome.state_bytes == sum(map(len, [*store.chunks.values(), *store.codes.values()]))
        found += [match for _, part in outcome.results for match in numbers_of(plan, part)]
    outcome = step.run(clock, store, [], FAR)
    found += [match for _, part in outcome.results for match in numbers_of(plan, part)]
    if not (plan.bound.window.events and plan.bound.postponed):  # there only later events tell that a window passed
        assert sorted(found) == expected(plan, table)
    if not plan.bound.window.events:
        assert outcome.retained == 0
        assert not store.chunks
        assert not store.codes


@drawn_streams
@given(st.data(), queries(window=True, returns=False), streams(max_size=14, ids=3), st.integers(0, 6))
def test_steps_find_what_a_batch_finds(data, query, table, delay):
    table = numbered(table)
    check_steps(data.draw, plan_of(query, table), table, delay)


@drawn_streams
@given(st.data(), queries(threshold=True, returns=False), streams(max_size=8), st.integers(0, 6))
def test_steps_find_what_a_batch_finds_where_events_may_be_missing(data, query, table, delay):
    table = numbered(table)
    model = data.draw(models(component.variable for component in query.components))
    plan = plan_of(query, table, model=model, options={"missing_last": data.draw(st.booleans())})
    check_steps(data.draw, plan, table, delay)


@drawn_streams
@given(
    st.data(),
    queries(window=True, returns=False, event_window=False, output=False, max_components=3),
    intervals(max_size=5),
    st.integers(0, 6),
)
def test_steps_find_what_a_batch_finds_where_times_are_imprecise(data, query, table, delay):
    plan = plan_of(query, numbered(table))
    units = [unit for unit in (1, 2, 3, 5) if plan.bound.window.length % unit == 0]
    unit = data.draw(st.sampled_from(units))
    options = {"probabilities": "odds"} if unit == 1 else {"unit": unit}  # odds are those of single steps
    check_steps(data.draw, replace(plan, options=options), numbered(table), delay)


SLEEPY = [
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN {}",
    "PATTERN SEQ(A a, !(C c), B b) WHERE [id] AND a.x <= b.x WITHIN {}",
    "PATTERN SEQ(!(C c), A a, B b) WHERE [id] WITHIN {}",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) {{ [id] AND b[i].x >= a.x }} WITHIN {}",
    "PATTERN SEQ(A a, B b, C c) WHERE [id, x] WITHIN {}",
]


@drawn_streams
@given(
    st.data(), st.sampled_from(SLEEPY), streams(min_size=8, max_size=20, ids=4), st.integers(0, 3), st.integers(2, 30)
)
def test_steps_find_what_a_batch_finds_where_keys_fall_asleep(data, text, table, delay, window):
    table = numbered(table)
    check_steps(data.draw, written(text.format(window), table), table, delay, cuts=14, few=(1, 2))


def written(text: str, table: pa.Table) -> Plan:
    return plan_of(check(parse(text), text), table)


def ticking(count: int, start: int = 0) -> pa.Table:
    return pa.table({"ts": range(start, start + count), "type": ["A", "B"] * (count // 2), "x": [0] * count})


def run(step: StreamStep, clock: Clock, store: Memory, table: pa.Table):
    return step.run(clock, store, [table], max(table["ts"].to_pylist()))


def test_late_events_are_told_apart():
    table = ticking(10)
    plan = written("PATTERN SEQ(A a, B b) WITHIN 5", table)
    step = replace(StreamStep((ship(plan, table.schema),), (0,), 2), plans=(plan,))
    store = Memory()
    first = run(step, Clock(), store, table)
    assert first.clock.until == 9 - 2 - 1
    second = step.run(first.clock, store, [ticking(8, start=4)], 11)
    assert second.late["ts"].to_pylist() == [4, 5, 6]
    assert second.events == 8


@pytest.mark.slow
def test_a_step_rewrites_little_of_a_large_state(monkeypatch):
    monkeypatch.setattr(stream_state, "SMALL", 500)
    table = ticking(20)
    plan = written("PATTERN SEQ(A a, B b) WHERE a.x > b.x WITHIN 200", table)
    step = replace(StreamStep((ship(plan, table.schema),), (0,), 0), plans=(plan,))
    clock, store = Clock(), Memory()
    for start in range(0, 600, 20):
        outcome = run(step, clock, store, ticking(20, start))
        clock = outcome.clock
    assert outcome.retained <= 220
    assert sum(map(len, store.chunks.values())) <= 11 * len(encoded(ticking(20)))
    assert store.written < 1.5 * 30 * len(encoded(ticking(20)))


@pytest.mark.slow
@pytest.mark.parametrize("arriving", [20, 200])
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(A a, B b, !(C c))"])
def test_state_is_little_more_than_the_events_that_matter(monkeypatch, pattern, arriving):
    monkeypatch.setattr(stream_state, "SMALL", 10_000)
    rng = np.random.default_rng(0)
    count = 100 * arriving
    kinds = rng.choice(["A", "B", "C", "D"], count)
    table = pa.table({"ts": np.arange(count), "type": kinds, "x": rng.integers(0, 9, count)})
    plan = written(f"PATTERN {pattern} WHERE a.x > b.x + 9 WITHIN {25 * arriving}", table)
    step = replace(StreamStep((ship(plan, table.schema),), (0,), 0), plans=(replace(plan, engine="sequence"),))
    clock, store = Clock(), Memory()
    wanted = pa.array([component.types[0] for component in plan.bound.components])
    for start in range(0, count, arriving):
        outcome = run(step, clock, store, table.slice(start, arriving))
        clock = outcome.clock
        seen = table.slice(0, start + arriving)
        matter = pc.and_(pc.greater(seen["ts"], clock.until - reach(plan)), pc.is_in(seen["type"], wanted))
        schemas = (stream_state.MANY + 2) * 1_000  # a chunk begins with its schema
        assert outcome.state_bytes <= 2 * seen.filter(matter).nbytes + schemas
    matter = pc.is_in(table["type"], wanted)
    assert store.written <= 3 * table.filter(matter).nbytes + 300 * 1_000


def test_keys_that_nothing_comes_for_are_not_read(monkeypatch):
    monkeypatch.setattr(stream_state, "FEW", 1000)

    def readings(start: int, ids: range) -> pa.Table:
        count = len(ids)
        return pa.table({"ts": range(start, start + count), "type": ["A"] * count, "id": list(ids)})

    table = readings(0, range(1))
    plan = replace(
        written("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 100000", table), engine="sequence", partition=("id",)
    )
    step = replace(StreamStep((ship(plan, table.schema),), (0,), 0), plans=(plan,))
    clock, store = Clock(), Memory()
    for start in range(0, 3_000, 1_000):
        clock = run(step, clock, store, readings(start, range(start, start + 1_000))).clock
    for start in range(3_000, 4_000, 100):
        store.read_numbers.clear()
        clock = run(step, clock, store, readings(start, range(9_000, 9_010))).clock
    asleep = [chunk for chunk in clock.chunks if chunk.asleep]
    assert sum(chunk.rows for chunk in asleep) >= 2_900
    assert not {chunk.number for chunk in asleep} & set(store.read_numbers)
    comes = pa.table({"ts": [5_000, 5_001], "type": ["B", "B"], "id": [17, 9_003]})
    store.read_numbers.clear()
    outcome = step.run(clock, store, [comes], 5_002)
    assert outcome.matches == 1 + 10  # 17 slept; 9,003 came ten times
    assert set(store.read_numbers) & {chunk.number for chunk in asleep}
    step.run(outcome.clock, store, [], 500_000)
    assert not store.chunks
    assert not store.codes


def test_many_small_chunks_are_joined():
    table = ticking(2)
    plan = written("PATTERN SEQ(A a, B b) WHERE a.x > b.x WITHIN 100000", table)
    step = replace(StreamStep((ship(plan, table.schema),), (0,), 50_000), plans=(plan,))
    clock, store = Clock(), Memory()
    for start in range(0, 200, 2):
        clock = run(step, clock, store, ticking(2, start)).clock
        assert len(store.chunks) <= stream_state.MANY + 2
    rows = pa.concat_tables([decoded(chunk) for chunk in store.chunks.values()])
    assert sorted(rows["ts"].to_pylist()) == list(range(200))
