"""Bounds on what a stream keeps: what goes first, what is counted, and that duplicates count once."""

from collections import Counter
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from cepheid.engine.find import find
from cepheid.errors import LimitError, TimeoutReached
from cepheid.plan.options import Limits
from cepheid.runners.stream.budget import KEY_EVENTS, LARGEST, OLDEST, SAMPLE, SEARCH, STATE_BYTES, TIME, Budget
from cepheid.runners.stream.changing import Registered, SearchRequest, Serving, as_rows
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.state import StreamStep
from contract.steps import END_OF_TIME, Memory, drawn_streams, in_batches
from runners.test_stream_changes import RISING, matches_of, plan_of, signatures, step_of
from strategies.queries import streams


def busy(count: int, ids: int = 4) -> pa.Table:
    """Events of several keys; the first has half of them."""
    rng = np.random.default_rng(count)
    keys = np.where(rng.random(count) < 0.5, 0, rng.integers(1, ids, count))
    return pa.table({"ts": np.arange(count), "type": ["A", "B"] * (count // 2), "id": keys, "x": [1] * count})


QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 1000"


@pytest.mark.some(3)
@pytest.mark.parametrize("policy", [OLDEST, LARGEST, SAMPLE])
@pytest.mark.parametrize("bounds", [{"max_key_events": 5}, {"max_bytes": 2_000}])
def test_what_is_kept_fits_and_what_goes_is_counted(policy, bounds):
    table = busy(200)
    step = replace(step_of({None: plan_of(QUERY, table)}, table, 0), budget=Budget(**bounds, policy=policy))
    clock, store, shed, used, found = Clock(), Memory(), 0, 0, 0
    for start in range(0, 200, 20):
        outcome = step.run(clock, store, [table.slice(start, 20)], start + 19)
        clock, shed, used = outcome.clock, shed + outcome.shed, used + outcome.used
        found += outcome.matches
        assert sum(count for _, count in outcome.shed_for) == sum(count for _, count in outcome.shed_by) == outcome.shed
        assert {reason for reason, _ in outcome.shed_for} <= {KEY_EVENTS if "max_key_events" in bounds else STATE_BYTES}
        if "max_bytes" in bounds:
            assert outcome.retained * table.nbytes / table.num_rows <= 2_000
        else:
            assert outcome.retained <= 5 * 4
        assert outcome.lost >= 0
        assert {chunk.number for chunk in clock.chunks} == set(store.chunks)
    assert shed > 0
    assert used + shed == 200  # read = used + shed: nothing was late, malformed or irrelevant
    assert 0 < found < len(matches_of(plan_of(QUERY, numbered(table)), numbered(table)))


def numbered(table: pa.Table) -> pa.Table:
    return table.append_column("event", pa.array(range(table.num_rows), pa.int64()))


def test_without_a_policy_a_bound_is_an_error():
    table = busy(40)
    step = replace(step_of({None: plan_of(QUERY, table)}, table, 0), budget=Budget(max_key_events=5))
    with pytest.raises(LimitError, match="max_key_events allows 5"):
        step.run(Clock(), Memory(), [table], 39)


def test_a_search_that_meets_a_limit_takes_fewer_events():
    table = busy(400)
    plan = plan_of("PATTERN SEQ(A a, B b) WITHIN 1000", table)
    plan = replace(plan, engine="sequence", match=replace(plan.match, limits=Limits(max_matches=1_000)))
    step = step_of({None: plan}, table, 0)
    with pytest.raises(LimitError):
        step.run(Clock(), Memory(), [table], END_OF_TIME)
    outcome = replace(step, budget=Budget(policy=OLDEST)).run(Clock(), Memory(), [table], END_OF_TIME)
    assert 0 < outcome.matches <= 1_000
    assert outcome.shed >= 200
    assert outcome.shed_for == ((SEARCH, outcome.shed),)


def test_a_step_that_takes_too_long_is_taken_again_with_fewer_events(monkeypatch):
    """The searches are made to take as long as they have events, so that nothing depends on the machine."""
    table = busy(400)
    step = step_of({None: plan_of(QUERY, table)}, table, 0)
    tried = []

    def slow(plan, own, after, until, ended=None):
        tried.append(len(own))
        if len(own) > 100:
            raise TimeoutReached("too long")
        return find(plan, own, after, until, ended)

    monkeypatch.setattr("cepheid.runners.stream.state.find", slow)
    with pytest.raises(TimeoutReached):
        replace(step, budget=Budget(max_seconds=1000)).run(Clock(), Memory(), [table], END_OF_TIME)
    bounded = replace(step, budget=Budget(policy=OLDEST, max_seconds=1000))
    outcome = bounded.run(Clock(), Memory(), [table], END_OF_TIME)
    assert tried[1:] == [400, 200, 100]
    assert outcome.shed_for == ((TIME, 300),)
    assert outcome.matches > 0
    assert outcome.used + outcome.shed == 400


@drawn_streams
@given(st.data(), streams(min_size=4, max_size=14, ids=3), st.integers(0, 4))
def test_the_books_of_each_query_balance(data, table, delay):
    """Of the events of a query's types each is used, late, a duplicate or shed."""
    table = table.append_column("event", pa.array(range(table.num_rows), pa.int64()))
    texts = {
        "ab": "PATTERN SEQ(A a, B b) WITHIN 6",
        "c": "PATTERN SEQ(C c, A a) WITHIN 3",
        "any": "PATTERN SEQ(a, b) WHERE a.x <= b.x WITHIN 2",
    }
    plans = {name: plan_of(text, table) for name, text in texts.items()}
    step = replace(step_of(plans, table, delay), dedupe=("event",), budget=Budget(max_key_events=4, policy=OLDEST))
    clock, store, run_pool = Clock(), Memory(), Counter()
    sent = data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=20))  # late ones and duplicates among them
    for start in range(0, len(sent), 5):
        batch = table.take(pa.array(sent[start : start + 5], pa.int64()))
        outcome = step.run(clock, store, [batch], max(batch["ts"].to_pylist()))
        clock = outcome.clock
        for part in (outcome.used_by, outcome.late_by, outcome.duplicates_by):
            run_pool.update(dict(part))
    kinds = [table["type"].to_pylist()[row] for row in sent]
    wanted = [sum(kind in types for kind in kinds) for types in ("AB", "AC")]
    assert [run_pool[number] for number in range(3)] == [*wanted, len(sent)]


def test_a_clock_that_jumps_back_takes_nothing_back():
    """The newest time that a source, a heartbeat or the machine's clock tells may be earlier than the one before."""
    table = busy(40)
    step = step_of({None: plan_of(QUERY, numbered(table))}, numbered(table), 0)
    clock, store, found, until = Clock(), Memory(), 0, []
    for start, newest in ((0, 9), (10, 5), (20, -(2**40)), (30, END_OF_TIME)):
        outcome = step.run(clock, store, [numbered(table).slice(start, 10)], max(newest, start + 9))
        clock, found = outcome.clock, found + outcome.matches
        outcome = step.run(clock, store, [], newest - 1000)  # no event, and an earlier time
        clock, found = outcome.clock, found + outcome.matches
        until.append(clock.until)
    assert until == sorted(until)
    assert found == len(matches_of(plan_of(QUERY, numbered(table)), numbered(table)))


@drawn_streams
@given(st.data(), streams(min_size=4, max_size=14, ids=3), st.integers(0, 4))
def test_duplicates_count_once(data, table, delay):
    """Redelivered events, anywhere after the first, change nothing but the counts."""
    table = table.append_column("event", pa.array(range(table.num_rows), pa.int64()))
    plan = plan_of("PATTERN SEQ(A a, B b) WHERE a.x <= b.x WITHIN 6", table)
    step = replace(step_of({None: plan}, table, delay), dedupe=("event",))
    clock, store, found, extra, counted = Clock(), Memory(), [], 0, 0
    seen = table.slice(0, 0)
    for batch in in_batches(data.draw, table, delay):
        seen = pa.concat_tables([seen, batch])
        rows = data.draw(st.lists(st.integers(0, seen.num_rows - 1), max_size=3)) if seen.num_rows else []
        sent = pa.concat_tables([batch, seen.take(pa.array(rows, pa.int64()))])
        extra += len(rows)
        newest = max(batch["ts"].to_pylist(), default=None)
        outcome = step.run(clock, store, [sent] if sent.num_rows else [], newest)
        counted += outcome.duplicates + (0 if outcome.late is None else outcome.late.num_rows)
        clock = outcome.clock
        found += [match for _, part in outcome.results for match in signatures(plan, part.to_pylist())]
    outcome = step.run(clock, store, [], END_OF_TIME)
    found += [match for _, part in outcome.results for match in signatures(plan, part.to_pylist())]
    assert sorted([sorted(group) for group in match] for match in found) == matches_of(plan, table)
    assert counted <= extra  # a duplicate of an event that no component takes is not known as one


def test_a_table_of_queries_is_followed_row_by_row():
    table = busy(20)
    serving = Serving(
        table.schema, {"time": "ts", "type": "type"}, ("id",), 2, StreamStep((), (), 0, schema=table.schema)
    )
    rows = [
        {"name": "good", "text": RISING},
        {"name": "bad", "text": "PATTERN SEQ("},
        {"name": "for ever", "text": "PATTERN SEQ(A a, B b) WHERE [id]"},
        {"name": "option", "text": RISING, "options": '{"shards": 3}'},
        {"name": None, "text": RISING},
        {"name": "json", "text": RISING, "options": "{"},
    ]
    today = Registered().changed(rows, serving)
    assert today.queries == {"good": SearchRequest(RISING)}
    assert [name for name, _ in today.errors] == ["bad", "for ever", "option", None, "json"]
    again = Registered.read(today.text())
    assert again.queries == today.queries
    assert not again.changed([{"name": "good", "enabled": False}], serving).queries
    step, fingerprint = serving.ready(today.queries)
    outcome = step.run(
        Clock.read(None, fingerprint), Memory(), [busy(20).set_column(3, "x", pa.array(range(20)))], 10**6
    )
    rows = [row for number, batch in outcome.results for row in as_rows("good", batch).to_pylist()]
    assert rows
    assert rows[0]["query"] == "good"
