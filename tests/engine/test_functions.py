"""Functions between events: every engine as the reference, compiled or as Python; DEFINE, RETURN *, structs."""

from __future__ import annotations

import math
import re

import numba
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.engine.values.calls import each_row
from cepheid.language.functions import find_function
from strategies import functions as f

ATTRIBUTE = re.compile(r"\ba\.")
EXAMPLES = 120 if numba.config.DISABLE_JIT else 12  # compiling a condition takes a second


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """A condition over two events."""
    text = draw(f.expressions("c"))
    return ATTRIBUTE.sub(lambda _: draw(st.sampled_from(["a.", "b."])), text)


def pairs(events: pa.Table, text: str, engine: str, **options: object) -> list[tuple[int, ...]]:
    found = cepheid.match(events, text, engine=engine, **options)
    return sorted(tuple(row.values()) for row in found.select(found.column_names[2:]).to_pylist())


def typed(events: pa.Table) -> pa.Table:
    half = events.num_rows // 2
    kinds = pa.array(["A"] * half + ["B"] * (events.num_rows - half))
    times = pa.array(range(events.num_rows))
    return events.drop_columns("ts").append_column("type", kinds).append_column("at", times)


@settings(max_examples=EXAMPLES, deadline=None)
@given(conditions(), st.integers(0, 50))
def test_engines_agree_on_conditions_between_events(condition: str, seed: int) -> None:
    events = typed(f.table(seed, rows=16))
    condition = condition.replace(".ts", ".u")
    text = f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 99 RETURN a.at AS x, b.at AS y"
    assert pairs(events, text, "sequence", time="at") == pairs(events, text, "reference", time="at")


def test_a_length_of_time_beside_a_computed_instant_is_in_its_unit() -> None:
    """Whatever the column of times counts, and also where that is not known."""
    late = pa.table({"at": [1, 2], "type": ["A", "B"], "s": ["2026-01-01 00:00:00", "2026-01-01 00:04:00"]})
    text = "PATTERN SEQ(A a, B b) WHERE timestamp_at(b.s, 'UTC') - timestamp_at(a.s, 'UTC') < {} minutes WITHIN 99"
    text += " RETURN a.at AS x, b.at AS y"
    for engine in ("reference", "auto"):
        assert pairs(late, text.format(4), engine, time="at") == []
        assert pairs(late, text.format(5), engine, time="at") == [(1, 2)]


EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6],
        "type": ["A", "B", "b", "A", "B", "C"],
        "card": ["x", "x", "x", "y", "y", "x"],
        "amount": [5, 2000, 7, 3, 5000, 9999],
        "name": ["anna", "bob", "Bob", None, "abc", "zz"],
        "user": [{"id": 1}, {"id": 1}, {"id": 2}, {"id": 3}, {"id": 3}, {"id": 1}],
        "tags": [["p", "q"], ["q"], [], None, ["p"], ["q"]],
    }
)
DEFINED = "DEFINE small AS amount < 10, large AS amount > 1000, odd AS name = 'bob' OR amount = 7"
PICKED = "WITHIN 10 RETURN a.ts AS x, b.ts AS y"
BY_DEFINITION = {
    "SEQ(small a, large b) {} WHERE [card]": [(1, 2), (1, 6), (3, 6), (4, 5)],
    "SEQ(small a, !(odd n), large b) {}": [(1, 2), (3, 5), (3, 6), (4, 5), (4, 6)],
    "SEQ(ANY(small, odd) a, large b) {} WHERE [card]": [(1, 2), (1, 6), (2, 6), (3, 6), (4, 5)],
    "SEQ(small a, small b) {}": [(1, 3), (1, 4), (3, 4)],
    "SEQ(A a, large b) {} WHERE skip_till_next_match(a, b)": [(1, 2), (4, 5)],
}


@pytest.mark.parametrize("engine", ["reference", "auto", "runs"])
@pytest.mark.parametrize("pattern", BY_DEFINITION)
def test_components_by_a_condition(pattern: str, engine: str) -> None:
    used = [part for part in DEFINED.removeprefix("DEFINE ").split(", ") if part.split()[0] in pattern]
    text = f"PATTERN {pattern.format('DEFINE ' + ', '.join(used))} {PICKED}".replace("(a, b)", "(a, b) { }")
    assert pairs(EVENTS, text, engine) == BY_DEFINITION[pattern]


def test_definitions_in_the_explanation_and_in_why() -> None:
    text = "PATTERN SEQ(small a, large b) DEFINE small AS amount < 0, large AS amount > 1000 WITHIN 10"
    told = cepheid.query(text).explain(EVENTS, type=None)
    assert "DEFINE small AS amount < 0, large AS amount > 1000" in told
    assert "small a (a.amount < 0), large b (b.amount > 1000)" in told
    assert "small a" in str(cepheid.why(EVENTS, text, type=None))


def test_types_without_regard_to_case() -> None:
    text = f"PATTERN SEQ(a a, B b) {PICKED}"
    for engine in ("reference", "auto"):
        assert pairs(EVENTS, text, engine, ignore_case=True) == [(1, 2), (1, 3), (1, 5), (4, 5)]
        assert pairs(EVENTS, text, engine) == []


def test_nested_attributes_as_keys_and_values() -> None:
    text = f"PATTERN SEQ(A a, B b) WHERE [user.id] {PICKED}, a.user.id AS u"
    for engine in ("reference", "auto"):
        assert pairs(EVENTS, text, engine) == [(1, 2, 1), (4, 5, 3)]
    whole = cepheid.match(EVENTS, "PATTERN SEQ(A a, B b) WHERE [user.id] WITHIN 10")
    assert set(whole["a"][0].as_py()) == set(EVENTS.column_names)
    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [user.id] WITHIN 10", EVENTS.schema)
    assert len(live.send(EVENTS)) + len(live.finish()) == 2


def test_return_stars() -> None:
    every = cepheid.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 2 RETURN *, b.ts - a.ts AS lasted")
    assert every.column_names[2:] == ["a", "b", "lasted"]
    one = cepheid.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 2 RETURN a.*, b.ts AS then")
    assert one.column_names[2:] == [*EVENTS.column_names, "then"]
    both = cepheid.match(EVENTS, "PATTERN SEQ(A+ a[], B b) WITHIN 2 RETURN a.*, b.*")
    assert both["a_ts"].to_pylist() == [[1], [4]]
    assert both["b_ts"].to_pylist() == [2, 5]


# --- functions of the user's ------------------------------------------------------------------------------------------


def test_a_function_whose_compiled_result_could_differ_runs_as_python() -> None:
    @cepheid.function(result=int)
    def digits(x):  # type: ignore[no-untyped-def]
        return len(str(x))

    @cepheid.function(result=int)
    def cubed(x: int) -> int:
        return x * x * x  # beyond 64 bits for large numbers: NULL, never another number

    @cepheid.function(result=bool)
    def before(x: str, y: str) -> bool:
        return x.lower() < y.lower()

    @cepheid.function
    def apart(x: float, y: float) -> float:
        return abs(x - y)

    conditions = ["digits(a.amount + b.amount) = 4", "digits(a.name) = 4", "cubed(b.amount * 1000) > 0"]
    conditions += ["before(a.name, b.name)", "apart(a.amount, b.amount) > 1000", "cubed(a.amount * b.amount) IS NULL"]
    for condition in conditions:
        text = f"PATTERN SEQ(A a, B b) WHERE {condition} {PICKED}"
        assert pairs(EVENTS, text, "sequence") == pairs(EVENTS, text, "reference"), condition
    told = cepheid.query(f"PATTERN SEQ(A a, B b) WHERE {' AND '.join(conditions)} WITHIN 9").explain(EVENTS)
    section = told.split("As Python\n")[1]
    assert "digits(a.name)" in section
    assert "apart" not in section


def test_which_functions_are_compiled() -> None:
    from cepheid.language.compilable import calculates

    assert calculates(lambda x, y: x > y or x < 3) is False
    assert calculates(lambda x, y: max(x, y) / 2 - 1.5) is True
    for differs in (
        lambda x: str(x),
        lambda x, y: x / y,
        lambda x: x**2,
        lambda x: math.sqrt(x),
        lambda x: EXAMPLES + x,
        lambda *x: x[0],
        lambda x: [x][0],
        lambda x: x // 2,
    ):
        assert calculates(differs) is None

    @cepheid.function(compiled=True)
    def root(x: float) -> float:
        return math.sqrt(x)

    found = find_function("root")
    assert found is not None
    assert found.vouched


def test_functions_of_several_texts_are_called_once_for_each_combination() -> None:
    calls: list[tuple[object, ...]] = []

    def joined(one: str | None, other: str | None, third: str) -> str | None:
        calls.append((one, other))
        return None if one is None else f"{one}{other}{third}"

    one, other = pa.chunked_array([["a", "b", None], ["a"] * 5]), pa.array(["x", None, "x", "x", "x", "y", "x", "y"])
    found = each_row(joined, [one, other, pa.scalar("!")], pa.string())
    assert found.to_pylist() == ["ax!", "bNone!", None, "ax!", "ax!", "ay!", "ax!", "ay!"]
    assert sorted(calls, key=repr) == [("a", "x"), ("a", "y"), ("b", None), (None, "x")]
