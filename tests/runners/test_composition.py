"""Queries over the matches of others: in a table as if the matches were events, and in a stream the same."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid.errors import CepheidError
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.composition import events_schema, lateness, options_of_matches
from cepheid.runners.options import Options
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.composed import APART, Level, run_composed
from cepheid.runners.stream.identity import fingerprint
from cepheid.runners.stream.state import StreamStep
from cepheid.runners.worker_plans import ship_here
from contract.steps import END_OF_TIME, Memory, drawn_streams, in_batches

VISIT = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x <= b.x WITHIN 10 RETURN a.id AS id, b.x AS x"
ABSENT = "PATTERN SEQ(A a, !(C c)) WHERE [id] WITHIN 4 RETURN a.id AS id, a.x AS x"
TWICE = "PATTERN SEQ(visit v, visit w) FROM visit WHERE [id] AND v.x <= w.x WITHIN 30 RETURN v.id AS id, w.x AS x"
DEEP = "PATTERN SEQ(twice t, ANY(visit, absent) u) FROM twice, visit, absent WHERE [id] WITHIN 60 RETURN t.id AS id"
QUERIES = {"deep": DEEP, "visit": VISIT, "absent": ABSENT, "twice": TWICE}


def events(n=60, seed=0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, n, n)),
            "type": rng.choice(["A", "B", "C"], n, p=[0.4, 0.4, 0.2]),
            "id": rng.integers(0, 2, n),
            "x": rng.integers(0, 3, n),
        }
    )


def of(result: pa.Table, name: str) -> list:
    rows = result.filter(pa.compute.equal(result["query"], name)).to_pylist()
    return sorted((row["match_start"], row["match_end"], str(row[name])) for row in rows)


def test_matches_are_events_of_the_queries_that_read_them():
    table = events()
    result = cepheid.match(table, QUERIES, engine="reference")
    visits = cepheid.match(table, VISIT, engine="reference")
    made = pa.table(
        {"ts": visits["match_end"], "type": ["visit"] * visits.num_rows, "id": visits["id"], "x": visits["x"]}
    )
    expected = cepheid.match(made, TWICE.replace("FROM visit", ""), engine="reference")
    assert expected.num_rows > 0
    assert len(of(result, "twice")) == expected.num_rows
    assert sorted(row[:2] for row in of(result, "twice")) == sorted(
        zip(expected["match_start"].to_pylist(), expected["match_end"].to_pylist(), strict=True)
    )
    assert of(result, "deep")
    assert str(cepheid.query(TWICE)) == str(cepheid.query(str(cepheid.query(TWICE))))
    assert "FROM visit" in str(cepheid.query(TWICE))


@pytest.mark.parametrize(
    ("queries", "told"),
    [
        ({"a": TWICE}, "did you mean|reads 'visit'"),
        ({"visit": VISIT, "twice": TWICE.replace("FROM visit", "FROM visits")}, "did you mean visit"),
        ({"visit": VISIT.replace("WHERE", "FROM twice WHERE"), "twice": TWICE}, "in a cycle"),
        ({"visit": VISIT.replace("AS x", "AS ts"), "twice": TWICE}, "matches' own time"),
    ],
)
def test_what_cannot_be_read_is_said(queries, told):
    with pytest.raises(CepheidError, match=told):
        cepheid.match(events(), queries)


def test_a_query_alone_reads_nothing():
    with pytest.raises(CepheidError, match="another query"):
        cepheid.match(events(), TWICE)


def composed(
    table: pa.Table, delay: int, queries=QUERIES, above=("twice", "deep")
) -> tuple[StreamStep, list[Level], list[str]]:
    """The step of QUERIES, as Spark's runner puts it together."""
    options = Options()

    def plan_of(name: str, schema: pa.Schema) -> Plan:
        query = cepheid.query(queries[name])
        bound = query.bind(Schema.from_arrow(schema, **options_of_matches(options).roles()))
        return cepheid_plan(bound)

    base = tuple(ship_here(plan_of(name, table.schema), table.schema, name) for name in ("visit", "absent"))
    step = StreamStep(base, (0, 1), delay, plans=tuple(each.plan for each in base))
    known, numbers, levels = {each.name: each for each in base}, {"visit": 0, "absent": 1}, []
    behind = dict.fromkeys(known, 0)
    for name in above:
        sources = cepheid.query(queries[name]).syntax.sources
        schema = events_schema({source: known[source].schema for source in sources}, options)
        worker_plan = ship_here(plan_of(name, schema), schema, name)
        numbers[name] = len(numbers)
        late = tuple(lateness(known[source].plan) for source in sources)
        behind[name] = max(behind[source] + each for source, each in zip(sources, late, strict=True))
        narrow = pa.schema([column for column in schema if column.name in worker_plan.plan.bound.schema.names])
        own = StreamStep((worker_plan,), (numbers[name],), behind[name], plans=(worker_plan.plan,), schema=narrow)
        levels.append(Level(name, tuple((source, numbers[source]) for source in sources), own, options, late))
        known[name] = worker_plan
    return step, levels, list(numbers)


def cepheid_plan(bound) -> Plan:
    from cepheid.engine.choose import make_plan

    return make_plan(bound, None, Options(engine="reference"), decide_later=True)[0]


@drawn_streams
@given(st.data(), st.integers(0, 4), st.integers(0, 10_000))
def test_a_stream_of_composed_queries_finds_what_a_batch_finds(data, delay, seed):
    table = events(20, seed)
    step, levels, names = composed(table, delay)
    same = fingerprint([*step.shipments, *(level.step.shipments[0] for level in levels)], 1)
    text, store, found = None, Memory(), {name: [] for name in names}
    batches = [*in_batches(data.draw, table, delay, most=6), None]
    for batch in batches:
        newest = END_OF_TIME if batch is None else max(batch["ts"].to_pylist(), default=None)
        fresh = [batch] if batch is not None and batch.num_rows else []
        outcome = run_composed(step, levels, Clock.read(text, same), store, fresh, newest)
        text = outcome.clock.text(same)
        for number, part in outcome.results:
            found[names[number]] += [(row["match_start"], row["match_end"]) for row in part.to_pylist()]
    whole = cepheid.match(table, QUERIES, engine="reference")
    for name in names:
        assert sorted(found[name]) == sorted(row[:2] for row in of(whole, name)), name


CHANGED = {**QUERIES, "twice": TWICE.replace("30", "20")}


@drawn_streams
@given(st.data(), st.integers(0, 2), st.integers(0, 10_000), st.sampled_from(["changed", "removed", "added"]))
def test_queries_over_matches_may_change_when_a_stream_starts_again(data, delay, seed, how):
    """Those that stay, and read what stays, find what a batch finds; others read the matches that come from then on."""
    table = events(20, seed)
    sets = {
        "changed": (composed(table, delay), composed(table, delay, CHANGED)),
        "removed": (composed(table, delay), composed(table, delay, above=("twice",))),
        "added": (composed(table, delay, above=("twice",)), composed(table, delay)),
    }[how]
    stay = ["visit", "absent"] if how == "changed" else ["visit", "absent", "twice"]
    text, store, found = None, Memory(), {name: [] for name in QUERIES}
    batches = [*in_batches(data.draw, table, delay, most=6), None]
    again = data.draw(st.integers(0, len(batches)))
    for place, batch in enumerate(batches):
        step, levels, names = sets[place >= again]
        own = fingerprint([*step.shipments, *(level.step.shipments[0] for level in levels)], 1)
        newest = END_OF_TIME if batch is None else max(batch["ts"].to_pylist(), default=None)
        fresh = [batch] if batch is not None and batch.num_rows else []
        outcome = run_composed(step, levels, Clock.read(text, own), store, fresh, newest)
        text = outcome.clock.text(own)
        for number, part in outcome.results:
            found[names[number]] += [(row["match_start"], row["match_end"]) for row in part.to_pylist()]
        laid = {chunk.number for chunk in outcome.clock.chunks}
        for level in outcome.clock.levels.values():
            laid |= {level.apart * APART + chunk.number for chunk in level.chunks}
        assert set(store.chunks) == laid
    whole = cepheid.match(table, QUERIES, engine="reference")
    for name in stay:
        assert sorted(found[name]) == sorted(row[:2] for row in of(whole, name)), name
    assert set(found["deep"]) <= {row[:2] for row in of(whole, "deep")}


@drawn_streams
@given(st.data(), st.integers(0, 10_000), st.integers(0, 3))
def test_a_live_query_reads_the_matches_of_others(data, seed, delay):
    """Sent in parts, saved and taken up again anywhere, it finds what a table gives."""
    table = events(24, seed)
    expected = cepheid.match(table, QUERIES)
    live = cepheid.live(QUERIES, table.schema, delay=delay)
    found = []
    for batch in in_batches(data.draw, table, delay):
        if data.draw(st.booleans()):
            live = cepheid.live(QUERIES, table.schema, delay=delay, state=live.save())
        found.append(live.send(batch))
    found.append(live.finish())
    whole = pa.concat_tables(found)
    for name in QUERIES:
        assert of(whole, name) == of(expected, name)
