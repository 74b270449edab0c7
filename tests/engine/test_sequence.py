"""The sequence engine (SASE) against the reference, under every combination of pushdowns."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.language import syntax as s
from strategies.agreement import assert_agrees, bound_to
from strategies.queries import queries, streams

SEQUENCES = queries(kleene=False, strategy=s.Strategy.SKIP_TILL_ANY, output=False)


@given(SEQUENCES, streams(), st.booleans(), st.booleans(), st.sampled_from(["all", "first", "none"]))
def test_it_agrees_with_the_reference(
    query: s.QuerySyntax, events: pa.Table, predicates: bool, window: bool, split: str
) -> None:
    names = bound_to(query, events).equivalence
    partition = {"all": names, "first": names[:1], "none": ()}[split]
    assert assert_agrees(
        query,
        events,
        "sequence",
        partition=partition,
        compared=tuple(name for name in names if name not in partition),
        push_predicates=predicates,
        push_window=window,
    )


def test_whole_numbers_stay_exact() -> None:
    big = 2**53
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "id": [big, big, big + 1], "x": [big, big + 1, big]})
    found = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9 RETURN b.ts AS at")
    assert found["at"].to_pylist() == [2]
    found = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 RETURN b.ts AS at")
    assert found["at"].to_pylist() == [2]


def test_limits_are_errors_that_name_themselves_or_a_cut_that_says_so() -> None:
    events = pa.table({"ts": range(40), "type": ["A"] * 40})
    text = "PATTERN SEQ(A a, A b, A c) WITHIN 50"
    with pytest.raises(cepheid.LimitError, match="max_matches=100"):
        cepheid.match(events, text, max_matches=100)
    cut = cepheid.match(events, text, max_matches=100, truncate=True)
    assert cut.num_rows == 100
    assert b'"truncated": true' in cut.schema.metadata[b"cepheid"]


def test_a_user_function_runs_compiled_and_one_that_numba_refuses_runs_as_python() -> None:
    @cepheid.function
    def nearness(x: float, y: float) -> float:
        return 1.0 / (1.0 + abs(x - y))

    @cepheid.function(name="in_words", result=bool)
    def in_words(x: float) -> bool:
        return len(str(x).split("e")) == 1

    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [1.0, 9.0, 1.5]})
    near = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE nearness(a.x, b.x) > 0.5 WITHIN 9 RETURN b.ts AS at")
    assert near["at"].to_pylist() == [3]
    words = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE in_words(a.x + b.x) WITHIN 9")
    assert words.num_rows == 2


def test_correlation_over_list_columns() -> None:
    events = pa.table(
        {
            "ts": [1, 2, 3],
            "type": ["Stock"] * 3,
            "ticker": ["MSFT", "GOOG", "GOOG"],
            "history": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.1], [3.0, 2.0, 1.0]],
        }
    )
    text = "PATTERN SEQ(Stock a, Stock b) WHERE b.ticker = GOOG AND Corr(a.history, b.history) > T WITHIN 9"
    found = cepheid.match(events, text, parameters={"GOOG": "GOOG", "T": 0.9})
    assert [match["b"]["ts"] for match in found.to_pylist() if match["a"]["ticker"] == "MSFT"] == [2]


SAME_WITHOUT_JIT = """
import pyarrow as pa, cepheid
events = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "N", "B", "B"], "id": [1, 2, 1, 1], "x": [1, 0, 3, 0]})
text = "PATTERN SEQ(A a, !(N n), B b) WHERE [id] AND a.x < b.x WITHIN 9 RETURN b.ts AS at"
print(cepheid.match(events, text)["at"].to_pylist())
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compares with what is compiled; once is enough")
@pytest.mark.parametrize("off", ["0", "1"])
def test_the_answers_do_not_depend_on_compilation(off: str) -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": off}
    done = subprocess.run([sys.executable, "-c", SAME_WITHOUT_JIT], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "[3]", done.stderr


def test_rounding_infinity_is_unknown() -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [float("inf"), 2.5]})
    for engine in ("sequence", "reference"):
        found = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE floor(a.x) > b.x WITHIN 9", engine=engine)
        assert found.num_rows == 0
        found = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE ceil(b.x) = 3 AND b.x < a.x WITHIN 9", engine=engine)
        assert found.num_rows == 1


def test_a_condition_as_a_value_may_be_unknown() -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [None, 2], "y": [1, 3]})
    cases = {
        "(a.x > 1 AND b.y > 2) = FALSE": 0,  # unknown, since a.x is
        "(a.x > 1 AND b.y > 5) = FALSE": 1,  # false, whatever a.x is
        "(a.x > 1 OR b.y > 2) = TRUE": 1,
        "(a.x > 1 OR b.y > 5) = FALSE": 0,
        "((a.x > b.y) = TRUE) IS NULL": 1,
        "(a.x IS NULL AND b.y > 2) = TRUE": 1,
        "(a.x > 1 AND a.y > 0) = FALSE": 0,  # the same about one event, which is tested over whole columns
        "(a.x > 1 AND a.y > 1) = FALSE": 1,
    }
    for condition, expected in cases.items():
        for engine in ("sequence", "reference"):
            found = cepheid.match(events, f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 9", engine=engine)
            assert found.num_rows == expected, (condition, engine)


def test_zero_with_and_without_a_sign_is_one_key() -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [0.0, -0.0]})
    for engine in ("reference", "sequence"):
        assert cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 9", engine=engine).num_rows == 1
