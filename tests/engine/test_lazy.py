"""The lazy engines (LAZY) find what every engine finds, in any order, and count what they save."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from typing import Any

import numba
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.engine.search.lazy import chain_text, scopes, tree_text
from cepheid.language import syntax as s
from cepheid.language.schema import Schema
from cepheid.plan.physical import Limits, Plan
from strategies.agreement import assert_agrees, bound_to, cut, everything
from strategies.queries import queries, streams

SEQUENCES = queries(kleene=False, strategy=s.Strategy.SKIP_TILL_ANY, output=False)
LAZY = st.sampled_from(["lazy-chain", "lazy-tree"])
SHIFTING = [
    "PATTERN SEQ(A a, B b, C c) WITHIN {}",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x <= c.x + 1 WITHIN {} EVENTS",
    "PATTERN SEQ(C c, !(B n), A a, B b) WHERE [x] WITHIN {}",
    "PATTERN SEQ(B b, C c, !(A n), !(D m)) WHERE m.x = b.x AND n.x > c.x WITHIN {}",
    "PATTERN SEQ(A a, A b, B c) WHERE a.x = c.x OR b.x = 2 WITHIN {}",
]


@st.composite
def shifting_streams(draw: Any) -> pa.Table:
    """Intervals in which one type is rare, each time another."""
    rarest = draw(st.lists(st.sampled_from("ABC"), min_size=3, max_size=5))
    kinds = [
        draw(st.lists(st.sampled_from("D" + rare + 5 * "ABC".replace(rare, "")), min_size=12, max_size=15))
        for rare in rarest
    ]
    steps = draw(st.lists(st.integers(0, 2), min_size=75, max_size=75))
    types = list(itertools.chain(*kinds))
    times = list(itertools.accumulate(steps[: len(types)]))
    values = draw(st.lists(st.integers(0, 2), min_size=75, max_size=75))[: len(types)]
    return pa.table({"ts": times, "type": types, "x": values})


def plan_for(query: s.QuerySyntax, events: pa.Table, engine: str, **more: Any) -> Plan:
    bound = bound_to(query, events)
    return Plan(bound, engine, **{"partition": bound.equivalence, **more})


def run(text: str, events: pa.Table, engine: str, **plan: Any) -> Matches:
    bound = cepheid.query(text).bind(Schema.from_arrow(events.schema))
    return find(Plan(bound, engine, **plan), ordered(events, bound.schema))


def orders(places: int) -> list[tuple[int, ...]]:
    return list(itertools.permutations(range(places)))


# --- the same matches -----------------------------------------------------------------------------------------------


@given(SEQUENCES, streams(), st.randoms(use_true_random=False), st.sampled_from(["all", "first", "none"]))
def test_chains_agree_with_the_reference_in_any_order(query: s.QuerySyntax, events: pa.Table, random: Any, split: str):
    bound = bound_to(query, events)
    order = list(range(len(bound.positives)))
    random.shuffle(order)
    partition = {"all": bound.equivalence, "first": bound.equivalence[:1], "none": ()}[split]
    compared = tuple(name for name in bound.equivalence if name not in partition)
    assert assert_agrees(query, events, "lazy-chain", partition=partition, compared=compared, order=tuple(order))


@given(SEQUENCES, streams(), st.booleans(), st.sampled_from(["all", "first", "none"]))
def test_trees_agree_with_the_reference(query: s.QuerySyntax, events: pa.Table, learn: bool, split: str):
    names = bound_to(query, events).equivalence
    partition = {"all": names, "first": names[:1], "none": ()}[split]
    compared = tuple(name for name in names if name not in partition)
    assert assert_agrees(query, events, "lazy-tree", partition=partition, compared=compared, options={"learn": learn})


@given(SEQUENCES, streams(), LAZY, st.lists(st.integers(-5, 40), max_size=4))
def test_they_can_be_cut_anywhere(query: s.QuerySyntax, events: pa.Table, engine: str, cuts: list[int]):
    plan = plan_for(query, events, engine)
    ranked = ordered(events, plan.bound.schema)
    pieces = [match for piece in cut(plan, ranked, cuts) for match in everything(piece)]
    assert sorted(pieces) == everything(find(Plan(plan.bound, "reference"), ranked))


@given(st.sampled_from(SHIFTING), st.integers(3, 6), shifting_streams(), st.lists(st.integers(0, 75), max_size=3))
def test_roots_that_change_along_the_stream_lose_and_repeat_nothing(
    text: str, window: int, events: pa.Table, cuts: list[int]
):
    plan = plan_for(cepheid.query(text.format(window)).syntax, events, "lazy-tree")
    ranked = ordered(events, plan.bound.schema)
    expected = everything(find(Plan(plan.bound, "reference"), ranked))
    assert everything(find(plan, ranked)) == expected
    assert sorted(match for piece in cut(plan, ranked, cuts) for match in everything(piece)) == expected


def test_every_order_of_four_components_with_negation_finds_the_same():
    kinds = "ABNCDABCNDACBDNABCD"
    events = pa.table({"ts": range(19), "type": list(kinds), "x": [(7 * i) % 5 for i in range(19)]})
    text = "PATTERN SEQ(A a, !(N n), B b, C c, D d) WHERE a.x <= b.x AND a.x + c.x < d.x + 6 AND n.x > a.x WITHIN 12"
    expected = everything(run(text, events, "reference"))
    assert len(expected) == 8
    for order in orders(4):
        assert everything(run(text, events, "lazy-chain", order=order)) == expected
    assert everything(run(text, events, "lazy-tree")) == expected


@pytest.mark.parametrize("engine", ["lazy-chain", "lazy-tree"])
def test_a_match_that_is_decided_at_the_cut_belongs_to_what_was_before(engine: str) -> None:
    """A window of events of each key, where keys are compared instead of parting the stream."""
    keys = [1, 2, 1, 2, 1, 1, 1, 2, 1, 2, 1, 2]
    events = pa.table({"ts": range(1, 13), "type": list("AABBNBDDDDDD"), "k": keys})
    query = cepheid.query("PATTERN SEQ(A a, B b, !(N n)) WHERE [k] WITHIN 4 EVENTS").syntax
    plan = plan_for(query, events, engine, partition=(), compared=("k",))
    pieces = cut(plan, ordered(events, plan.bound.schema), list(range(13)))
    found = {piece: [groups for groups, _ in everything(each)] for piece, each in enumerate(pieces)}
    assert {piece: groups for piece, groups in found.items() if groups} == {7: [((0,), (5,))], 12: [((1,), (3,))]}


# --- what it costs --------------------------------------------------------------------------------------------------

FIGURE_1 = """PATTERN SEQ(E a, E b, E c) WHERE a.ticker = 'MSFT' AND b.ticker = 'GOOG' AND c.ticker = 'AAPL'
    AND a.price < b.price AND b.price < c.price WITHIN 14400"""


def quotes(*events: tuple[str, int]) -> pa.Table:
    tickers, prices = zip(*events, strict=True)
    return pa.table({"ts": range(len(events)), "type": ["E"] * len(events), "ticker": tickers, "price": prices})


def section_4() -> pa.Table:
    """LAZY section 4: a hundred MSFT, a hundred GOOG, one AAPL, and one GOOG below its price."""
    return quotes(
        *(("MSFT", 1 + i) for i in range(100)), ("GOOG", 200), *(("GOOG", 400 + i) for i in range(99)), ("AAPL", 300)
    )


def evaluations(text: str, events: pa.Table, engine: str, **plan: Any) -> int:
    return run(text, events, engine, **plan).counters["evaluations"]


def test_the_papers_example_takes_two_hundred_evaluations_instead_of_ten_thousand():
    counted = {order: run(FIGURE_1, section_4(), "lazy-chain", order=order).counters for order in orders(3)}
    c_b_a, c_a_b, a_b_c = (2, 1, 0), (2, 0, 1), (0, 1, 2)
    assert counted[c_b_a]["evaluations"] == 1 + 100 + 100
    assert counted[c_b_a]["peak_partial_matches"] == 1
    # a and c share no condition: taken after c, every a passes and meets every b.
    assert counted[c_a_b]["evaluations"] == 1 + 100 + 100 * 100
    # In the order of the sequence, as an eager automaton does it: every a, every pair, and c for each of the pairs.
    assert counted[a_b_c]["evaluations"] == 100 + 100 * 100 + 100 * 100
    assert counted[a_b_c]["peak_partial_matches"] == 100 + 100 * 100
    assert all(counters["peak_buffered_events"] == 201 for counters in counted.values())
    tree = run(FIGURE_1, section_4(), "lazy-tree")
    assert len(tree) == 100
    assert tree.counters["evaluations"] == 201
    assert tree.counters["peak_partial_matches"] == 1
    assert tree.counters["states"] == 4  # q(), q(c), q(c, b), F: of the eleven, those that were reached


def test_evaluations_are_counted_as_in_the_papers_section_7():
    passing = quotes(("MSFT", 3), ("GOOG", 7), ("AAPL", 9))
    failing = quotes(("MSFT", 3), ("GOOG", 13), ("AAPL", 9))
    assert evaluations(FIGURE_1, passing, "lazy-chain", order=(0, 1, 2)) == 3
    assert evaluations(FIGURE_1, failing, "lazy-chain", order=(0, 2, 1)) == 3
    assert evaluations(FIGURE_1, failing, "lazy-chain", order=(2, 1, 0)) == 2


def test_the_tree_evaluates_nothing_before_every_component_has_a_candidate():
    # No window holds an A, a B and a C.
    events = pa.table({"ts": [0, 1, 2, 20, 21, 40, 41, 60, 61], "type": list("AABBCCAAB")})
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 10"
    assert evaluations(text, events, "lazy-tree") == 0
    assert evaluations(text, events, "lazy-chain", order=(0, 1, 2)) > 0


def test_partial_matches_are_held_while_they_wait_for_the_stream():
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 10"
    events = pa.table({"ts": [0, 1, 2, 3, 30, 31, 32], "type": list("AABBABC")})
    # a, a, and each with either b; all gone when the next a comes.
    assert run(text, events, "lazy-chain", order=(0, 1, 2)).counters["peak_partial_matches"] == 6
    # Each b takes its two a's at once, and the pairs wait; the second b is there while its pairs are made.
    assert run(text, events, "lazy-chain", order=(1, 0, 2)).counters["peak_partial_matches"] == 4 + 1
    assert run(text, events, "lazy-chain", order=(2, 1, 0)).counters["peak_partial_matches"] == 1
    assert run(text, events, "lazy-chain", order=(2, 1, 0)).counters["peak_buffered_events"] == 4


@given(
    shifting_streams(), st.integers(3, 9), st.sampled_from(["", "WHERE a.x < b.x AND b.x <= c.x", "WHERE a.x = c.x"])
)
def test_in_the_order_of_the_sequence_a_chain_costs_what_the_eager_engine_costs(
    events: pa.Table, window: int, where: str
):
    """At different times: of concurrent events, the eager engine also tests some that no other precedes."""
    apart = [time + number for number, time in enumerate(events["ts"].to_pylist())]
    events = events.set_column(0, "ts", pa.array(apart))
    text = f"PATTERN SEQ(A a, B b, C c) {where} WITHIN {window}"
    eager = run(text, events, "runs", options={"merge": False}).counters
    chain = run(text, events, "lazy-chain", order=(0, 1, 2)).counters
    for name in ("scanned", "evaluations", "peak_partial_matches"):
        assert chain[name] == eager[name]


def test_without_an_order_the_chain_starts_with_the_rarest():
    events = pa.table({"ts": range(41), "type": ["A"] * 20 + ["B"] * 20 + ["C"], "x": [1] * 41})
    text = "PATTERN SEQ(A a, B b, C c) WHERE b.x > c.x WITHIN 100"
    assert evaluations(text, events, "lazy-chain") == 1 + 20


# --- orders, limits, functions --------------------------------------------------------------------------------------


def test_scopes_of_the_papers_figure_4():
    assert scopes("abc", (0, 1, 2)) == [("a", "start", "finish"), ("b", "a", "finish"), ("c", "b", "finish")]
    assert scopes("abc", (2, 0, 1)) == [("c", "start", "finish"), ("a", "start", "c"), ("b", "a", "c")]


@given(st.permutations("abcdef"))
def test_a_scope_lies_between_the_nearest_neighbours_taken_before(order: list[str]):
    names = "abcdef"
    for step, (name, begin, end) in enumerate(scopes(names, [names.index(each) for each in order])):
        taken = sorted(order[:step])
        assert name == order[step]
        assert begin == max((each for each in taken if each < name), default="start")
        assert end == min((each for each in taken if each > name), default="finish")


def test_automata_say_what_is_taken_from_where():
    bound = cepheid.query(FIGURE_1).bind(Schema.from_arrow(section_4().schema))
    lines = chain_text(Plan(bound, "lazy-chain", order=(2, 1, 0))).splitlines()
    assert lines[2] == "q2 -> q3  take(b) from (start, c) if b.ticker = 'GOOG' and b.price < c.price"
    assert lines[3] == "q2 -> q2  store a; ignore c"
    assert "take(a) if a.ticker = 'MSFT' and a.price < b.price" in tree_text(Plan(bound, "lazy-tree"))


def test_an_order_must_name_every_component_once():
    with pytest.raises(cepheid.EngineError, match="order"):
        run(FIGURE_1, section_4(), "lazy-chain", order=(0, 0, 1))


@pytest.mark.parametrize("engine", ["lazy-chain", "lazy-tree"])
def test_limits_are_errors_that_name_themselves_or_a_cut_that_says_so(engine: str):
    events = pa.table({"ts": range(40), "type": ["A"] * 40})
    text = "PATTERN SEQ(A a, A b, A c) WITHIN 50"
    with pytest.raises(cepheid.LimitError, match="max_matches=100"):
        run(text, events, engine, limits=Limits(max_matches=100))
    cut_short = run(text, events, engine, limits=Limits(max_matches=100, truncate=True))
    assert (len(cut_short), cut_short.truncated) == (100, True)


@pytest.mark.parametrize("engine", ["lazy-chain", "lazy-tree"])
def test_kleene_plus_and_other_strategies_are_refused(engine: str):
    events = pa.table({"ts": [1], "type": ["A"]})
    with pytest.raises(cepheid.EngineError, match="Kleene"):
        cepheid.match(events, "PATTERN SEQ(A+ a[], B b) WITHIN 5", engine=engine)
    with pytest.raises(cepheid.EngineError, match="skip_till_next_match"):
        cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { } WITHIN 5", engine=engine)


@pytest.mark.filterwarnings("ignore:numba cannot compile")
@pytest.mark.parametrize("engine", ["lazy-chain", "lazy-tree"])
def test_a_function_that_numba_refuses_runs_as_python_negation_included(engine: str):
    @cepheid.function(name="same_text", result=bool)
    def same_text(x: float, y: float) -> bool:
        return json.dumps(x) == json.dumps(y)

    events = pa.table({"ts": [1, 2, 3, 4], "type": list("ACBB"), "x": [1.0, 3.0, 1.0, 2.0]})
    text = "PATTERN SEQ(A a, !(C c), B b) WHERE same_text(a.x, b.x) AND same_text(a.x, {}) WITHIN 9"
    assert run(text.format("c.x"), events, engine).groups() == [((0,), (2,))]
    assert run(text.format("c.x - 2.0"), events, engine).groups() == []


WITHOUT_JIT = """
import pyarrow as pa, cepheid
events = pa.table({"ts": [1, 2, 3, 4, 5], "type": list("ANBBC"), "id": [1, 2, 1, 1, 1], "x": [1, 0, 3, 0, 2]})
text = "PATTERN SEQ(A a, !(N n), B b, C c) WHERE [id] AND a.x < b.x WITHIN 9 RETURN b.ts AS at"
print([cepheid.match(events, text, engine=engine)["at"].to_pylist() for engine in ("lazy-chain", "lazy-tree")])
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compares with what is compiled; once is enough")
def test_the_answers_do_not_depend_on_compilation():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0" if numba.config.DISABLE_JIT else "1"}
    done = subprocess.run([sys.executable, "-c", WITHOUT_JIT], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "[[3], [3]]", done.stderr
