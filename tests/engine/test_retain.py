"""Any cuts, with only the retained events carried over, give the matches of the whole table."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given

from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import find, last_ends
from cepheid.engine.retention import reach, retained
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.model import Exponential, Model
from cepheid.plan.physical import Plan
from strategies.models import models
from strategies.queries import SCHEMA, queries, streams


def numbered(table: pa.Table) -> pa.Table:
    """The table with a column that tells its rows apart, whatever order they get into."""
    return table.append_column("event", pa.array(range(table.num_rows), pa.int64()))


def signatures(matches: Matches, events: EventTable) -> list[tuple[tuple[int, ...], ...]]:
    ids = events.table["event"].to_pylist()
    return sorted(tuple(tuple(sorted(ids[row] for row in group)) for group in match) for match in matches.groups())


def found_in_cuts(plan: Plan, table: pa.Table, cuts: list[int]) -> list[tuple[tuple[int, ...], ...]]:
    """What comes out of intervals one after another, each given the events that the one before retained."""
    schema = plan.bound.schema
    everything = ordered(table, schema)
    state = everything.table.slice(0, 0)
    ended: dict = {}
    found = []
    before: int | None = None
    for until in [*sorted(set(cuts)), None]:
        arriving = np.ones(len(everything), bool) if until is None else everything.time <= until
        if before is not None:
            arriving &= everything.time > before
        events = ordered(pa.concat_tables([state, everything.table.filter(pa.array(arriving))]), schema)
        matches = find(plan, events, before, until, ended)
        ended |= last_ends(plan, events, matches)
        found += signatures(matches, events)
        if until is not None:
            state = events.table.filter(pa.array(retained(plan, events, until)))
        before = until
    return sorted(found)


@given(
    st.data(), queries(threshold=True, returns=False), streams(max_size=8), st.lists(st.integers(-3, 25), max_size=3)
)
def test_retained_events_are_enough_where_events_may_be_missing(data, query, table, cuts):
    table = numbered(table)
    query = replace(query, output=s.Output(data.draw(st.sampled_from([query.output.mode, s.OutputMode.MAXIMAL]))))
    bound = bind(query, Schema.from_arrow(table.schema))
    model = data.draw(models(component.variable for component in query.components))
    plan = Plan(bound, "reference", model=model, options={"missing_last": data.draw(st.booleans())})
    events = ordered(table, bound.schema)
    assert found_in_cuts(plan, table, cuts) == signatures(find(plan, events), events)


@given(
    st.data(),
    queries(window=True, returns=False, event_window=False, output=False, max_components=3),
    streams(max_size=5),
    st.lists(st.integers(-3, 15), max_size=3),
)
def test_retained_events_are_enough_where_times_are_imprecise(data, query, table, cuts):
    widths = data.draw(st.lists(st.integers(0, 3), min_size=len(table), max_size=len(table)))
    upper = pa.array([time + width for time, width in zip(table["ts"].to_pylist(), widths, strict=True)], pa.int64())
    table = numbered(table).append_column("upper", upper)
    bound = bind(query, Schema.from_arrow(table.schema, lower="ts", upper="upper"))
    plan = Plan(bound, "reference")
    events = ordered(table, bound.schema)
    assert found_in_cuts(plan, table, cuts) == signatures(find(plan, events), events)


@given(queries(window=True, returns=False), streams(max_size=14), st.integers(-3, 30))
def test_old_events_go(query, table, until):
    bound = bind(query, SCHEMA)
    plan = Plan(bound, "reference", partition=bound.equivalence)
    events = ordered(table, bound.schema)
    keep = retained(plan, events, until)
    back = reach(plan)
    if plan.exchange.retention.for_ever is not None:
        assert keep.all()
    elif back is not None:
        assert not keep[events.time + back <= until].any()
    elif not bound.contiguous:
        length = plan.exchange.retention.events
        values = [table[name].to_pylist() for name in bound.equivalence]
        for key in set(zip(*values, strict=True)) if values else {()}:
            of_key = np.ones(len(events), bool)
            for name, value in zip(bound.equivalence, key, strict=True):
                of_key &= np.array([other == value for other in events.table[name].to_pylist()], bool)
            times = events.time[of_key & keep & (events.time <= until)]
            assert len(times[times < times.max(initial=-100)]) < length


def plan_of(text: str) -> Plan:
    return Plan(bind(check(parse(text), text), SCHEMA), "reference")


def test_what_no_component_takes_is_not_kept():
    plan = plan_of("PATTERN SEQ(A a, B b) WHERE a.x > 0 AND [id] WITHIN 10")
    table = pa.table(
        {
            "ts": [1, 2, 3, 4],
            "type": ["A", "A", "C", "B"],
            "id": [1, 1, 1, 1],
            "x": [1, -1, 1, -1],
            "y": [0, 0, 0, 0],
            "z": [0, 0, 0, 0],
            "s": ["a", "a", "a", "a"],
            "f": [0.0, 0.0, 0.0, 0.0],
        }
    )
    events = ordered(table, plan.bound.schema)
    assert retained(plan, events, 4).tolist() == [True, False, False, True]
    assert retained(plan, events, 9).tolist() == [True, False, False, True]
    assert retained(plan, events, 10).tolist() == [False, False, False, True]


def test_a_late_decision_looks_back_from_the_first_event_seen():
    """The first event is missing, so the negated one is looked for back to the window's opening."""
    table = numbered(pa.table({"ts": [1, 9], "type": ["B", "C"]}))
    text = "PATTERN SEQ(A a, !(B n), C c, !(D d)) WITHIN 10 THRESHOLD 0.001"
    bound = bind(check(parse(text), text), Schema.from_arrow(table.schema))
    plan = Plan(bound, "reference", model=Model(loss=0.3, gaps=dict.fromkeys("ancd", Exponential(mean=3.0))))
    assert found_in_cuts(plan, table, [12]) == []
    assert found_in_cuts(plan, table.slice(1), [12]) == [((), (1,))]


def test_what_never_forgets_says_why():
    assert "WITHIN" in (plan_of("PATTERN SEQ(A a, B b)").exchange.retention.for_ever or "")
    assert plan_of("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS").exchange.retention.for_ever is None
    assert "ANY" in (
        plan_of("PATTERN SEQ(ANY(A, B) a, B b) WHERE [id] WITHIN 3 EVENTS").exchange.retention.for_ever or ""
    )
