"""Equalities that find candidates by value: the same matches as the reference's, in stacks, lazy orders and runs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.language import syntax as s
from cepheid.language.sase.parse import parse
from cepheid.plan.equalities import indexable
from cepheid.plan.physical import Plan
from strategies.agreement import assert_agrees, assert_cuts_agree, bound_to

# Attributes of one type whose values meet; whole numbers and fractions are compared, but never by an index.
PAIRS = [("id", "id"), ("id", "ref"), ("ref", "id"), ("f", "g"), ("s", "t"), ("s", "s"), ("id", "f")]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(2, 12))
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 2]), min_size=size, max_size=size))

    def column(values: list[object]) -> list[object]:
        return draw(st.lists(st.sampled_from([*values, *values, None]), min_size=size, max_size=size))

    return pa.table(
        {
            "ts": pa.array([sum(steps[: index + 1]) for index in range(size)], pa.int64()),
            "type": draw(st.lists(st.sampled_from("ABC"), min_size=size, max_size=size)),
            "id": pa.array(column([0, 1]), pa.int64()),
            "ref": pa.array(column([0, 1]), pa.int64()),
            "f": pa.array(column([0.0, -0.0, 1.5]), pa.float64()),
            "g": pa.array(column([0.0, 1.5]), pa.float64()),
            "s": pa.array(column(["x", "y"]), pa.string()),
            "t": pa.array(column(["x", "z"]), pa.string()),
        }
    )


@st.composite
def queries_with_equalities(draw: st.DrawFn, kleene: bool) -> s.QuerySyntax:
    length = draw(st.integers(2, 3))
    names = "abc"[:length]
    groups = [kleene and draw(st.booleans()) for _ in names]
    parts = [
        f"{draw(st.sampled_from('ABC'))}{'+' if group else ''} {name}{'[]' if group else ''}"
        for name, group in zip(names, groups, strict=True)
    ]
    conditions = []
    for _ in range(draw(st.integers(1, 2))):
        one, two = draw(st.permutations(range(length)))[:2]
        left, right = draw(st.sampled_from(PAIRS))
        if groups[one] and draw(st.booleans()):
            earlier = draw(st.sampled_from(["i-1", "1"]))
            conditions.append(f"{names[one]}[i].{left} = {names[one]}[{earlier}].{right}")
            continue
        events = []
        for place in (one, two):
            which = draw(st.sampled_from(["[1]", "[i]", f"[{names[place]}.LEN]"])) if groups[place] else ""
            events.append(names[place] + which)
        conditions.append(f"{events[0]}.{left} = {events[1]}.{right}")
    if draw(st.booleans()) and length > 2:
        parts.insert(1, "!(C n)")
        conditions += draw(st.sampled_from([[], [f"n.id = {names[0]}{'[1]' if groups[0] else ''}.id"]]))
    strategy = draw(st.sampled_from(["any", "next"])) if kleene else "any"
    window = draw(st.sampled_from(["6", "20", "4 EVENTS"]))
    where = " AND ".join(conditions)
    return parse(f"PATTERN SEQ({', '.join(parts)}) WHERE skip_till_{strategy}_match {{ {where} }} WITHIN {window}")


@pytest.mark.parametrize("engine", ["sequence", "lazy-tree", "lazy-chain"])
@given(queries_with_equalities(kleene=False), tables())
def test_sequences_agree_with_the_reference(engine: str, query: s.QuerySyntax, events: pa.Table) -> None:
    assert_agrees(query, events, engine)


@given(queries_with_equalities(kleene=True), tables())
def test_runs_agree_with_the_reference(query: s.QuerySyntax, events: pa.Table) -> None:
    assert_agrees(query, events, "runs")


@given(queries_with_equalities(kleene=True), tables(), st.lists(st.integers(0, 20), max_size=2))
def test_runs_can_be_cut_anywhere(query: s.QuerySyntax, events: pa.Table, cuts: list[int]) -> None:
    assert_cuts_agree(query, events, "runs", cuts)


def test_a_run_that_is_over_waits_for_no_value_any_more() -> None:
    stream = "A0 A1 A2 A3 A4 B0 B0 B1 B4 B3 B2 B2 A0 A0 A1 B0 B0 B1 B1"
    words = stream.split()
    values = [int(word[1]) for word in words]
    table = pa.table({"ts": range(len(words)), "type": [word[0] for word in words], "id": values, "ref": values})
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.id = b.ref } WITHIN 99"
    found = [(row["match_start"], row["match_end"]) for row in cepheid.match(table, text, engine="runs").to_pylist()]
    assert sorted(found) == [(0, 5), (1, 7), (2, 10), (3, 9), (4, 8), (12, 15), (13, 15), (14, 17)]


EVENTS = pa.table(
    {
        "ts": range(60),
        "type": ["A", "B", "C"] * 20,
        "id": [number % 7 for number in range(60)],
        "ref": [number % 11 for number in range(60)],
        "f": [float(number % 5) for number in range(60)],
    }
)


@pytest.mark.parametrize(
    ("where", "served"),
    [
        ("a.id = b.id AND b.ref = c.ref", ["a.id = b.id", "b.ref = c.ref"]),
        ("a.id = c.ref AND a.id < b.id", ["a.id = c.ref"]),
        ("a.id = b.f", []),  # equal values of two types do not look alike
        ("a.id = b.id + 1", []),
        ("(a.id = b.id OR a.ref = b.ref)", []),
    ],
)
def test_which_equalities_are_indexed(where: str, served: list[str]) -> None:
    query = cepheid.query(f"PATTERN SEQ(A a, B b, C c) WHERE {where} WITHIN 30")
    text = query.explain(EVENTS)
    assert ("candidates by value of " + ", ".join(served) + ";" in text) if served else "by value" not in text


def test_types_that_lack_attributes_are_not_looked_up() -> None:
    bound = bound_to(parse("PATTERN SEQ(ANY(A, B) a, C c) WHERE a.id = c.id WITHIN 9"), EVENTS)
    assert indexable(bound) == ()


def test_an_index_leaves_most_candidates_out() -> None:
    bound = bound_to(parse("PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id AND b.ref = c.ref WITHIN 60"), EVENTS)
    table = ordered(EVENTS, bound.schema)
    plan = Plan(bound, "sequence")
    scanned = Plan(bound, "sequence", indexed=())
    assert find(plan, table).counters["evaluations"] < find(scanned, table).counters["evaluations"] / 2


@pytest.mark.parametrize("keys", ["lo, hi", "hi, lo"])
def test_the_test_with_most_values_parts_the_events(keys: str) -> None:
    events = pa.table(
        {
            "ts": range(90),
            "type": ["A", "B", "C"] * 30,
            "lo": [number % 2 for number in range(90)],
            "hi": [number % 30 for number in range(90)],
        }
    )
    text = cepheid.query(f"PATTERN SEQ(A a, B b) WHERE [{keys}] WITHIN 90").explain(events, equivalence="construction")
    assert "partitioned by [hi]; [lo]" in text


def test_an_error_for_too_many_matches_names_the_clause_that_leaves_few() -> None:
    events = pa.table({"ts": range(31), "type": ["A"] * 30 + ["B"]})
    with pytest.raises(
        cepheid.LimitError,
        match=r"there are 1,073,741,823 matches.*skip_till_next_match leaves 30, OUTPUT MAXIMAL leaves 1,",
    ):
        cepheid.match(events, "PATTERN SEQ(A+ a[], B b)", max_matches=1_000)


def test_matches_of_one_shape_have_one_confidence_and_agree_with_the_reference() -> None:
    events = pa.table({"ts": [0, 2, 4, 6, 8], "type": ["E"] * 5})
    text = "PATTERN SEQ(E a, E b, E c) WHERE skip_till_next_match { } WITHIN 8"
    found = [
        [
            (match["a"]["ts"], match["b"]["ts"], match["c"]["ts"], round(match["confidence"], 12), match["earliest"])
            for match in cepheid.match(events, text, uncertainty=1, engine=engine).to_pylist()
        ]
        for engine in ("intervals", "reference")
    ]
    assert sorted(found[0]) == sorted(found[1])
    shapes: dict[tuple[int, int], set[float]] = {}
    for first, second, third, confidence, _ in found[0]:
        if first >= 2 and third <= 6:
            shapes.setdefault((second - first, third - first), set()).add(confidence)
    assert shapes
    assert all(len(values) == 1 for values in shapes.values())


EXPRESSIONS = [
    "SEQ(A a, (B b | C c), A d) WHERE {strategy} {{ a.{left} = d.{right} }}",
    "SEQ(A a, (B b | C c), A d) WHERE {strategy} {{ a.{left} = b.{right} AND c.{left} = d.{right} }}",
    "SEQ(A a, (B b, C c)+) WHERE {strategy} {{ b.{left} = c.{right} AND b[i].{left} = b[i-1].{left} }}",
    "SEQ(A? a, B+ b[], (C c | A d)?) WHERE {strategy} {{ b[i].{left} = b[1].{left} AND d.{right} = a.{left} }}",
]


@given(
    tables(),
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(PAIRS),
    st.sampled_from(["skip_till_next_match", "skip_till_any_match"]),
)
def test_states_find_runs_by_value(table: pa.Table, pattern: str, pair: tuple[str, str], strategy: str) -> None:
    text = f"PATTERN {pattern.format(left=pair[0], right=pair[1], strategy=strategy)} WITHIN 8"
    found, expected = (cepheid.match(table, text, engine=engine).to_pylist() for engine in ("states", "reference"))
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
