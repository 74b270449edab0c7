"""Limits that hold in every phase of a call: planning, compiling, searching, diagnosing, the reference included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.budget import checkpoint, paced, reserve, unbounded, within_budget
from cepheid.engine import match_limits
from cepheid.engine.kernels.stop import in_the_background
from cepheid.engine.search import runs, stacks
from cepheid.language.linear import FEWER


def events(count: int, types: str = "A", **columns: Any) -> pa.Table:
    kinds = [types[number % len(types)] for number in range(count)]
    return pa.table({"ts": range(count), "type": kinds, "x": [n % 7 for n in range(count)], **columns})


def any_order(count: int) -> str:
    return f"PATTERN AND({', '.join(f'A a{number}' for number in range(count))}) WITHIN 100"


# --- what takes long or much, in a process of its own that is killed if it does not come back -------------------------

# Seconds that each of them may take: fewer in `make test`.
EACH = 1.0 if os.environ.get("CEPHEID_TEST_PROFILE") in ("all", "thorough") else 0.3
PROGRAM = """
import json, resource, sys
import pyarrow as pa
import cepheid

seconds = float(sys.argv[1])

def events(count, types="A"):
    return pa.table({"ts": range(count), "type": [types[n % len(types)] for n in range(count)],
                     "x": [n % 7 for n in range(count)], "s": ["aaaa"] * count,
                     "lo": range(count), "hi": [n + 500 for n in range(count)]})

nested = "a.s"
for _ in range(12):
    nested = f"replace({nested}, 'a', 'aaaa')"
six = "PATTERN SEQ(A a, A b, A c, A d, A e, A f)"
never = f"{six} WHERE a.x + b.x + c.x + d.x + e.x + f.x = 999"
rows = "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (%s) DEFINE %s)"
cases = {
    "any order": (events(30), "PATTERN AND(" + ", ".join(f"A a{n}" for n in range(12)) + ") WITHIN 100", {}),
    "rounds": (events(30, "ABC"), "PATTERN SEQ((A a, B b){100000}, C c) WITHIN 100", {}),
    "rounds of rounds": (events(30, "ABC"), "PATTERN SEQ(((A a, B b){1000}){1000}, C c) WITHIN 100", {}),
    "reference": (events(60), six, {"engine": "reference"}),
    "totals of the reference": (events(60), six + " SUMMARISE count(*) AS n", {"engine": "reference"}),
    "text": (events(200), f"PATTERN SEQ(A a, A b) WHERE {nested} = 'x' WITHIN 5", {"max_bytes": 100_000_000}),
    "text of pairs": (events(9), f"PATTERN SEQ(A a, A b) WHERE {nested} = b.s WITHIN 5", {"max_bytes": 100_000_000}),
    "returned text": (events(9), f"PATTERN SEQ(A a, A b) WITHIN 5 RETURN {nested} AS y", {"max_bytes": 100_000_000}),
    "text of rows": (events(50), rows % ("a b", f"a AS {nested} = 'x'"), {"max_bytes": 100_000_000}),
    "repeated text of rows": (events(50), rows % ("a b", "a AS repeat(a.s, 1000000000) = 'x'"), {}),
    "rows of the reference": (events(60), rows % ("(a+)+ b", "b AS FIRST(a.x) < 0"), {"engine": "reference"}),
    "rows in Python": (events(60), rows % ("(a+)+ b", "b AS concat(array_join(array_agg(a.s), ','), '') = 'b'"), {}),
    "nothing, often": (events(9), rows % ("a (()){2000000000}", "a AS x < 0"), {"engine": "reference", "timeout": 10}),
    "one confidence": (events(60, "ABC"), "PATTERN SEQ(A a, B b, C c) WHERE strict_contiguity {} WITHIN 1000",
                       {"lower": "lo", "upper": "hi", "max_partial_matches": 100}),
}
calls = {name: lambda given=given: cepheid.match(given[0], given[1], **{"timeout": seconds, **given[2]})
         for name, given in cases.items()}
calls["why"] = lambda: cepheid.why(events(60), never, timeout=seconds)
calls["explain"] = lambda: cepheid.query(cases["rounds"][1]).explain(events(30, "ABC"), timeout=seconds)
for name, call in calls.items():
    try:
        told = f"finished: {call()}"
    except cepheid.CepheidError as error:
        told = f"{type(error).__name__}: {error.message}"
    print(json.dumps([name, told, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024]), flush=True)
"""


def test_every_phase_holds_to_its_limits() -> None:
    """None of them would come back in an hour, or would take gigabytes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(EACH)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    told = {name: message for name, message, _ in found}
    refused = {"any order", "rounds", "rounds of rounds", "explain"}
    for name, message in told.items():
        kinds: tuple[str, ...] = ("TimeoutReached", "LimitError")
        if name in refused:
            kinds = ("EngineError", "TimeoutReached")
        elif name == "nothing, often":
            kinds = ("finished",)
        assert message.startswith(kinds), (name, message)
    assert len(told) == 16
    assert max(peak for _, _, peak in found) < 1_500  # megabytes


# --- the budget -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_an_error_once_the_time_is_over() -> None:
    checkpoint()
    with within_budget(0.0, None), pytest.raises(cepheid.TimeoutReached, match=r"timeout=0 seconds"):
        list(paced(range(10**9)))


def test_the_tighter_of_two_budgets_holds() -> None:
    with within_budget(0.0, None), within_budget(1000.0, None), pytest.raises(cepheid.TimeoutReached):
        list(paced(range(10**9)))


def test_waiting_for_others_does_not_count() -> None:
    with within_budget(0.0, 1):
        with unbounded():
            assert len(list(paced(range(1000)))) == 1000
        with pytest.raises(cepheid.TimeoutReached):
            list(paced(range(10**9)))


def test_what_would_not_fit_is_refused_before_it_is_built() -> None:
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("the system does not say how much memory is taken")
    reserve(2**60)
    with within_budget(None, 10**8), pytest.raises(cepheid.LimitError, match="max_bytes=100000000"):
        reserve(2**30)


def test_the_compiler_is_left_alone_at_the_deadline() -> None:
    goes_on = threading.Event()
    made: list[int] = []

    def compiles() -> int:
        goes_on.wait(60)
        made.append(1)
        return 1

    with within_budget(0.1, None), pytest.raises(cepheid.TimeoutReached):
        in_the_background(compiles)
    goes_on.set()
    with within_budget(60.0, None):
        assert in_the_background(compiles) == 1
    assert in_the_background(compiles) == 1
    with within_budget(60.0, None), pytest.raises(ZeroDivisionError):
        in_the_background(lambda: 1 // 0)


# --- expansions are counted before they are built ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (any_order(12), "more than 120 linear patterns"),
        (any_order(40), "more than 120 linear patterns"),
        ("PATTERN SEQ((A a, B b){100000}, C c) WITHIN 9", "more than 60 events"),
        ("PATTERN SEQ((A a, B b){1,100000}, C c) WITHIN 9", "more than 60 events"),
    ],
)
def test_what_stands_for_too_many_patterns_is_refused_with_a_hint(text: str, told: str) -> None:
    with pytest.raises(cepheid.EngineError, match=told) as caught:
        cepheid.match(events(5, "ABC"), f"{text} OUTPUT MAXIMAL")
    assert caught.value.hint == FEWER
    with pytest.raises(cepheid.CepheidError, match=r"too many sequences|too many linear"):
        cepheid.why(events(5, "ABC"), text)


def test_parts_that_may_be_left_out_are_counted_once() -> None:
    """In 24 orders, each of 4 parts in or out: 384, of which 65 differ."""
    text = "PATTERN AND(A? a, B? b, C? c, D d) WITHIN 9"
    found = cepheid.match(events(4, "ABCD"), text, engine="expansion")
    assert found.num_rows == 8
    assert found.num_rows == cepheid.match(events(4, "ABCD"), text, engine="reference").num_rows


def test_more_components_than_an_event_has_bits_are_refused() -> None:
    text = "PATTERN SEQ((A a, B b)+) WHERE skip_till_next_match {} WITHIN 200"
    with pytest.raises(cepheid.LimitError, match="components, over 62"):
        cepheid.match(events(34, "AB"), text, engine="expansion")


# --- the reference ----------------------------------------------------------------------------------------------------


def test_the_reference_holds_to_the_number_of_matches() -> None:
    text = "PATTERN SEQ(A a, A b) WITHIN 100"
    with pytest.raises(cepheid.LimitError, match="max_matches=10"):
        cepheid.match(events(20), text, engine="reference", max_matches=10)
    cut = cepheid.match(events(20), text, engine="reference", max_matches=10, truncate=True)
    assert cut.num_rows == 10
    assert json.loads(cut.schema.metadata[b"cepheid"])["truncated"]


@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, A b, A c) WITHIN 100", "PATTERN SEQ(A a, (A b | A c)) WITHIN 100"])
def test_the_reference_holds_to_the_number_of_partial_matches(text: str) -> None:
    with pytest.raises(cepheid.LimitError, match="max_partial_matches=5"):
        cepheid.match(events(20), text, engine="reference", max_partial_matches=5)


# --- what a limit that is reached says --------------------------------------------------------------------------------

TIES = "PATTERN SEQ(A a, (B b, C c)+, D d) WHERE skip_till_next_match {}"


def test_numbers_beyond_counting_are_exact_where_they_are_asked_for() -> None:
    many = pa.table({"ts": [n // 2 for n in range(560)], "type": ["ABABCCDD"[n % 8] for n in range(560)]})
    counted = cepheid.match(many, TIES, output="count")
    assert counted > 2**63
    assert counted == cepheid.match(many, TIES, output="compressed").count


def test_numbers_beyond_counting_are_exact_where_a_window_moves_past_them() -> None:
    """Few of them are that large, and the others are counted while the search goes on."""
    kinds = ["ABABCCDD"[n % 8] if 400 <= n < 960 else "AABCDDDD"[n % 8] for n in range(1_600)]
    some = pa.table({"ts": [n // 2 for n in range(1_600)], "type": kinds})
    counted = cepheid.match(some, f"{TIES} WITHIN 250", output="count")
    assert counted > 2**63
    assert counted == int(cepheid.match(some, f"{TIES} WITHIN 250 SUMMARISE count(*) AS n")["n"][0].as_py())


def test_of_a_part_of_a_union_nobody_counts_the_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is a match with one round more is asked again and again."""

    def never(*arguments: object) -> None:
        raise AssertionError("nobody asks for their number")

    text = "PATTERN SEQ(A{2,} a[], (B? b, !(C c)){1,2}) WHERE skip_till_next_match { } WITHIN 9"
    found = cepheid.match(events(12, "AAB"), text)
    monkeypatch.setattr(match_limits, "counted_soon", never)
    assert cepheid.match(events(12, "AAB"), text).equals(found)
    assert found.num_rows > 0


def test_a_count_of_more_than_300_digits_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "count", lambda *arguments: 10**400)
    with pytest.raises(cepheid.LimitError, match="more than 38 digits"):
        cepheid.match(events(5, "ABCD"), TIES, output="count")


def test_a_count_that_takes_long_is_left_out_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_limits, "PATIENCE", 0.0)
    with pytest.raises(cepheid.LimitError, match=r"reached max_matches=10.* counting them takes long"):
        cepheid.match(events(50), "PATTERN SEQ(A+ a[], A b)", max_matches=10)


def test_what_is_cheap_to_count_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list that is dropped, counted and made again takes twice its time."""
    asked: list[int] = []
    limited = match_limits.limited

    def seen(plan: Any, matches: int, runs: int, **more: Any) -> Any:
        asked.append(matches)
        return limited(plan, matches, runs, **more)

    monkeypatch.setattr(match_limits, "limited", seen)
    monkeypatch.setattr(match_limits, "WORTH_COUNTING", 100)
    found = cepheid.match(events(100), "PATTERN SEQ(A a, A b) WITHIN 1000", max_matches=10_000)
    assert found.num_rows == 4950
    assert asked == [100]  # and then all of them, not first a tenth of what may be listed


# --- live queries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [30, 400, 100_000])
def test_many_matches_within_the_limit_are_listed_once(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_limits, "WORTH_COUNTING", 200)
    monkeypatch.setattr(match_limits, "CHEAP_STEPS", 0)
    table = events(600, "AB")
    text = f"PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN {window}"
    number = cepheid.match(table, text, engine="sequence", max_matches=200_000).num_rows  # compiles the condition
    listed: list[int] = []
    counted: list[float] = []
    plain, count = stacks.run, match_limits.count

    def run(*given: Any) -> Any:
        found = plain(*given)
        listed.append(len(found))
        return found

    def count_with(*given: Any) -> Any:
        counted.append(given[-1])
        return count(*given)

    monkeypatch.setattr(stacks, "run", run)
    monkeypatch.setattr(match_limits, "count", count_with)
    assert cepheid.match(table, text, engine="sequence", max_matches=200_000).num_rows == number
    assert listed == [200, number]
    assert counted == [0]
