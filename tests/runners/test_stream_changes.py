"""A state goes on with the queries that it may go on with: unchanged ones, new ones from now on, earlier formats."""

from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.errors import DataError
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.identity import aspects, body_of, fingerprint
from cepheid.runners.stream.state import StreamStep
from cepheid.runners.worker_plans import ship_here
from contract.steps import END_OF_TIME, Memory, drawn_streams, in_batches, signatures
from strategies.queries import queries, streams

STATES = Path(__file__).parent / "states"
RISING = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x WITHIN 20"
APART = "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 20 OUTPUT NON-OVERLAP"


def plan_of(query, table: pa.Table, **parts) -> Plan:
    checked = check(parse(query), query) if isinstance(query, str) else query
    bound = bind(checked, Schema.from_arrow(table.schema))
    return Plan(bound, "reference", partition=bound.equivalence, **parts)


def step_of(plans: dict, table: pa.Table, delay: int) -> StreamStep:
    group = tuple(ship_here(plan, table.schema, name) for name, plan in plans.items())
    narrowed = tuple(each.plan for each in group)
    return StreamStep(group, tuple(range(len(group))), delay, plans=narrowed, schema=table.schema)


def matches_of(plan: Plan, table: pa.Table) -> list:
    events = ordered(table, plan.bound.schema)
    ids = events.table["event"].to_pylist()
    return sorted([sorted(ids[row] for row in group) for group in match] for match in find(plan, events).groups())


# --- earlier formats ------------------------------------------------------------------------------------------------


def stored_state(name: str) -> tuple[str, Memory]:
    """A state that an earlier version wrote after 40 of the events."""
    rows = pa.ipc.open_file(STATES / f"{name}.arrow").read_all().to_pylist()
    of = {
        kind: {row["number"]: row["packed"] for row in rows if row["kind"] == kind}
        for kind in ("chunk", "codes", "ended")
    }
    clock = next(row["packed"] for row in rows if row["kind"] == "clock").decode()
    return clock, Memory(of["chunk"], of["codes"], of["ended"])


def earlier_events() -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "ts": pa.array(range(60), pa.int64()),
            "type": rng.choice(["A", "B", "C"], 60).tolist(),
            "id": pa.array(rng.integers(0, 3, 60)),
            "x": pa.array(rng.integers(0, 50, 60)),
        }
    )


@pytest.mark.parametrize("name", ["first", "rebuilt"])
def test_a_state_of_an_earlier_version_goes_on(name):
    table = earlier_events()
    plans = {"rising": plan_of(RISING, table), "apart": plan_of(APART, table)}
    step = step_of(plans, table, delay=3)
    text, store = stored_state(name)
    same = fingerprint(step.shipments, 2)
    clock = Clock.read(text, same)
    assert (clock.until, clock.newest) == (35, 39)
    found = 19  # that version found these in the first 40 events
    for start in (40, 50):
        outcome = step.run(clock, store, [table.slice(start, 10)], start + 9)
        clock, found = Clock.read(outcome.clock.text(same), same), found + outcome.matches
    found += step.run(clock, store, [], END_OF_TIME).matches
    events = ordered(table, plans["rising"].bound.schema)
    assert found == sum(len(find(plan, events)) for plan in plans.values())


def test_a_state_of_another_query_or_a_later_version_is_refused():
    table = earlier_events()
    step = step_of({"rising": plan_of(RISING.replace("20", "30"), table), "apart": plan_of(APART, table)}, table, 3)
    text, _ = stored_state("rebuilt")
    with pytest.raises(DataError, match="another query"):
        Clock.read(text, fingerprint(step.shipments, 2))
    with pytest.raises(DataError, match="format 7"):
        Clock.read('{"version": 7}', fingerprint(step.shipments, 2))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 3}', '{"version": true}', '{"version": 3, "queries": 1}']
)
def test_a_damaged_state_is_an_error_that_says_so(text):
    step = step_of({"rising": plan_of(RISING, earlier_events())}, earlier_events(), 3)
    with pytest.raises(DataError):
        Clock.read(text, fingerprint(step.shipments, 2))


# --- what has changed is said ---------------------------------------------------------------------------------------


def test_what_changed_is_named():
    table = earlier_events()
    alone = step_of({None: plan_of(RISING, table)}, table, 3)
    text = Clock(until=1, queries=fingerprint(alone.shipments, 4).begun()).text(fingerprint(alone.shipments, 4))
    model = cepheid.Model(loss=0.1, gaps={})
    for change, told in [
        (plan_of(RISING.replace("<", ">"), table), "text"),
        (plan_of(RISING, table, model=model), "model"),
        (plan_of(RISING, table, options={"missing_last": True}), "missing_last"),
        (plan_of(RISING, table, options={"confidence": 0.5}), "confidence"),
        (plan_of(RISING, table, scoring="paper"), "scoring"),
    ]:
        with pytest.raises(DataError, match=f"changed since it was written: .*{told}"):
            Clock.read(text, fingerprint(step_of({None: change}, table, 3).shipments, 4))
    with pytest.raises(DataError, match="shards=4, which is 8 now"):
        Clock.read(text, fingerprint(alone.shipments, 8))
    with pytest.raises(DataError, match="uncertainty"):
        Clock.read(text, fingerprint(alone.shipments, 4, {"uncertainty": "2 seconds"}))
    with pytest.raises(DataError, match="without a name"):
        Clock.read(text, fingerprint(step_of({"a": plan_of(RISING, table)}, table, 3).shipments, 4))


def test_the_body_of_a_function_is_part_of_a_query():
    table, text = earlier_events(), "PATTERN SEQ(A a, B b) WHERE far_apart(a.x, b.x) WITHIN 20"
    seen = []
    for limit in (3, 3, 4):
        cepheid.function(name="far_apart", result=bool)(lambda x, y, limit=limit: abs(x - y) > limit)
        seen.append(aspects(plan_of(text, table))["function far_apart"])
    assert seen[0] == seen[1] != seen[2]
    assert body_of(len) == body_of(len)


# --- queries that come and go ---------------------------------------------------------------------------------------

NAMES = ("p", "q", "r")


@drawn_streams
@given(st.data(), streams(min_size=6, max_size=18, ids=3), st.integers(0, 4))
def test_queries_that_come_and_go_find_what_a_batch_of_the_events_after_their_coming_finds(data, table, delay):
    """Drawn queries, drawn disorder, drawn cuts, drawn changes: each query finds what a batch finds since it came."""
    table = table.append_column("event", pa.array(range(table.num_rows), pa.int64()))
    drawn = [data.draw(queries(window=True, event_window=False, returns=False, max_components=3)) for _ in range(3)]
    text, store, found, newest = None, Memory(), {}, None
    running: dict[str, int] = {}  # the number of the query under each name
    since: dict[tuple[str, int], int | None] = {}
    for batch in in_batches(data.draw, table, delay, most=6):
        chosen = data.draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), min_size=1))
        for name, number in chosen.items():
            if running.get(name) != number:
                since[name, number] = newest
                found[name, number] = []
        running = chosen
        plans = {name: plan_of(drawn[number], table) for name, number in chosen.items()}
        step = step_of(plans, table, delay)
        same = replace(fingerprint(step.shipments, 1), keys=())
        newest = max([*batch["ts"].to_pylist(), *([] if newest is None else [newest])], default=None)
        outcome = step.run(Clock.read(text, same), store, [batch] if batch.num_rows else [], newest)
        text = outcome.clock.text(same)
        keep(found, running, plans, outcome)
    outcome = step.run(Clock.read(text, same), store, [], END_OF_TIME)
    keep(found, running, plans, outcome)
    for name, number in running.items():
        plan, begin = plans[name], since[name, number]
        seen = table if begin is None else table.filter(pa.array(np.array(table["ts"].to_pylist()) > begin))
        assert sorted(found[name, number]) == matches_of(plan, seen)


def keep(found, running, plans, outcome):
    names = list(plans)
    for number, part in outcome.results:
        name = names[number]
        matches = signatures(plans[name], part.to_pylist())
        found[name, running[name]] += [[sorted(group) for group in match] for match in matches]


def test_a_query_may_need_columns_that_the_state_does_not_have():
    table = earlier_events()
    narrow, query, store = table.drop_columns(["x"]), "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20", Memory()
    first = step_of({"same": plan_of(query, narrow)}, narrow, 3)
    same = fingerprint(first.shipments, 1)
    clock = first.run(Clock.read(None, same), store, [narrow.slice(0, 30)], 29).clock
    plans = {"same": plan_of(query, table), "more": plan_of(RISING, table)}
    second = step_of(plans, table, 3)
    going = Clock.read(clock.text(same), fingerprint(second.shipments, 1))
    assert going.queries["more"].since == 29
    outcome = second.run(going, store, [table.slice(30)], END_OF_TIME)
    more = sum(part.num_rows for number, part in outcome.results if number == 1)
    assert more == len(find(plans["more"], ordered(table.slice(30), plans["more"].bound.schema)))
    text = table.set_column(2, "id", table["id"].cast(pa.string()))
    third = step_of({"same": plan_of(RISING, text)}, text, 3)
    clock = first.run(Clock.read(None, same), store, [narrow.slice(0, 30)], 29).clock
    with pytest.raises(DataError, match="'id' is int64, and it is string now"):
        third.run(replace(clock, queries={}), store, [text.slice(30)], 60)
