"""The planner: which engine, why, and plans that differ only in speed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid.language import syntax as s
from cepheid.plan.examples import example
from cepheid.plan.explain import operator_lines
from cepheid.plan.rules import optimise
from strategies.queries import queries, streams

EVENTS = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "C", "B"], "id": [1, 1, 1, 2], "x": [5, 6, 7, 8]})
TEXT = "PATTERN SEQ(A a, !(B b), C c) WHERE a.id = b.id AND a.id = c.id AND a.x > 1 AND a.x < c.x WITHIN 9"


def test_rules_move_the_work_down() -> None:
    before, after = operator_lines(example(TEXT)), operator_lines(optimise(example(TEXT)))
    assert before[-1] == "scan      A a, C c, !(B b)"
    assert after[-1] == "scan      A a (a.x > 1), C c, !(B b)"
    assert [line.split()[0] for line in after] == ["transform", "negate", "match", "exchange", "scan"]
    assert after[2] == "match     by skip_till_any_match; partitioned by [id]; a.x < c.x; within 9 steps of ts"


def test_equalities_that_leave_a_component_out_are_no_equivalence_test() -> None:
    plan = optimise(example("PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id WITHIN 9"))
    assert plan.partition == ()
    assert len(plan.match.conditions) == 1


def test_an_equality_with_a_negated_component_alone_is_no_equivalence_test() -> None:
    # An event a without an id is not tied to anything, and matches; an equivalence test would not select it.
    assert optimise(example("PATTERN SEQ(A a, !(B b)) WHERE a.id = b.id WITHIN 9")).partition == ()
    tied_by_negation = "PATTERN SEQ(A a, !(B b), C c) WHERE a.id = b.id AND b.id = c.id WITHIN 9"
    assert optimise(example(tied_by_negation)).partition == ()


def test_explain_says_engine_reason_and_counts() -> None:
    told = cepheid.query(TEXT).explain(EVENTS, analyze=True)
    for part in ("engine      sequence", "because", "partitioned by [id]", "by key [id]", "scanned", "matches"):
        assert part in told


def test_explain_needs_no_events() -> None:
    assert "engine" in cepheid.query(TEXT).explain()
    assert "runs" in cepheid.query("PATTERN SEQ(A+ a[], B b) WHERE avg(a[].x) > 2 WITHIN 1 hour").explain()


def test_an_engine_that_cannot_run_the_query_is_a_clear_error() -> None:
    with pytest.raises(cepheid.EngineError, match="cannot run this query: it does not support Kleene plus"):
        cepheid.match(EVENTS, "PATTERN SEQ(A+ a[], B b) WITHIN 9", engine="sequence")
    with pytest.raises(cepheid.EngineError, match="did you mean 'sequence'"):
        cepheid.match(EVENTS, TEXT, engine="sequnce")


def test_a_misspelt_option_is_an_error() -> None:
    with pytest.raises(cepheid.CepheidError, match="did you mean time"):
        cepheid.match(EVENTS, TEXT, tme="ts")


def test_the_order_of_a_rare_event_is_found() -> None:
    random = np.random.default_rng(0)
    kinds = random.choice(["A", "B", "C"], 20_000, p=[0.45, 0.545, 0.005])
    events = pa.table({"ts": np.arange(20_000), "type": kinds, "x": random.integers(0, 100, 20_000)})
    tied = " AND ".join(f"c.x < {name}.x - 97" for name in "abde")
    told = cepheid.query(f"PATTERN SEQ(A a, B b, C c, A d, B e) WHERE {tied} WITHIN 200").explain(events)
    assert "engine      lazy-tree" in told
    assert "in the order c" in told
    # Rare and first: runs begin with it, and test as few events as that order does, each in less time.
    told = cepheid.query("PATTERN SEQ(C c, A a, B b) WHERE c.x < a.x - 90 AND a.x = b.x WITHIN 500").explain(events)
    assert "engine      runs" in told


def test_many_matches_that_overlap_are_left_to_runs() -> None:
    random = np.random.default_rng(0)
    events = pa.table({"ts": np.arange(5_000), "type": random.choice(["A", "B"], 5_000)})
    text = "PATTERN SEQ(A a, A b, B c) WITHIN 500"
    assert "engine      runs" in cepheid.query(f"{text} OUTPUT NON-OVERLAP").explain(events)
    limited = cepheid.query(f"{text} OUTPUT NON-OVERLAP").explain(events, max_partial_matches=1_000)
    assert "engine      runs" not in limited


@given(queries(kleene=False, strategy=s.Strategy.SKIP_TILL_ANY, output=False, returns=False), streams())
def test_rules_change_no_result(query: s.QuerySyntax, events: pa.Table) -> None:
    asked = cepheid.Query(query)
    plain = cepheid.match(events, asked, pushdown=False).sort_by("match_end")
    pushed = cepheid.match(events, asked).sort_by("match_end")
    assert sorted(map(repr, plain.to_pylist())) == sorted(map(repr, pushed.to_pylist()))
