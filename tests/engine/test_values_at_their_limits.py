"""Numbers, times and text at the ends of their types: the right answer or a clear error, the same in every engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.engines import ENGINES
from cepheid.language.whole import OVERFLOWS, within_64_bits

LEAST, GREATEST = -(2**63), 2**63 - 1
ENDS = [
    LEAST,
    LEAST + 1,
    GREATEST,
    GREATEST - 1,
    0,
    1,
    -1,
    2,
    -3,
    2**31,
    -(2**32),
    2**53 + 1,
    GREATEST // 3,
    LEAST // 2,
]
WHOLE = st.sampled_from(ENDS) | st.integers(LEAST, GREATEST)
FRACTION = st.sampled_from([0.0, -0.0, 0.5, 1e300, -1e300, float("inf"), float("nan"), 2.0**63, -(2.0**63), 2.0**53])
CONDITIONS = [
    "a.x + 1 > 0",
    "a.x + b.x > b.x",
    "a.x - b.x < 0",
    "(a.x * b.x) IS NULL",
    "-a.x > b.x",
    "abs(a.x) >= abs(b.x)",
    "a.x % b.x = 0",
    "a.x % 7 = b.x % 7",
    "a.x / b.x > 0.5",
    "a.x + 0.5 > b.x",
    "a.x = b.y",
    "a.y = b.y",
    "[y]",
    "floor(a.y) > b.x",
    "ceil(b.y) IS NULL",
    "a.x IN (1, 0.5, 9007199254740992)",
    "(a.x + b.x) * 2 - b.x != 0",
]
PAIR = "PATTERN SEQ(A a, B b) WHERE {} WITHIN 10"
GROUP = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) {{ {} }} WITHIN 10"
SUMS = [
    "sum(a[].x) > b.x",
    "sum(a[].x) IS NULL",
    "avg(a[].x) >= b.x",
    "avg(a[].x) IS NULL",
    "a[i].x > sum(a[..i-1].x)",
    "a[i].x <= avg(a[..i-1].x)",
]


def pair(**columns: Any) -> pa.Table:
    """One A and one B behind it."""
    return pa.table({"ts": [1, 2], "type": ["A", "B"], **columns})


def rows(events: pa.Table, text: str, engine: str) -> list[str]:
    """The matches, in no order."""
    return sorted(map(str, cepheid.match(events, text, engine=engine).to_pylist()))


@given(st.integers(LEAST, GREATEST) | st.sampled_from(ENDS), st.integers(LEAST, GREATEST) | st.sampled_from(ENDS))
def test_it_is_known_which_results_fit(a: int, b: int) -> None:
    exact = {"+": a + b, "-": a - b, "*": a * b}
    for sign, overflows in OVERFLOWS.items():
        assert overflows(a, b) == (within_64_bits(exact[sign]) is None)


@given(st.lists(WHOLE, min_size=2, max_size=2), st.lists(FRACTION, min_size=2, max_size=2), st.sampled_from(CONDITIONS))
def test_conditions_agree_with_the_reference(x: list[int], y: list[float], condition: str) -> None:
    events = pair(x=x, y=y)
    expected = rows(events, PAIR.format(condition), "reference")
    for engine in ("sequence", "runs"):
        assert rows(events, PAIR.format(condition), engine) == expected, engine


@given(st.lists(WHOLE, min_size=3, max_size=6), st.sampled_from(SUMS))
def test_sums_are_exact_or_null(x: list[int], condition: str) -> None:
    count = len(x)
    events = pa.table({"ts": list(range(count)), "type": ["A"] * (count - 1) + ["B"], "x": x})
    text = GROUP.format(condition) + " RETURN sum(a[].x) AS s, avg(a[].x) AS v"
    assert rows(events, text, "runs") == rows(events, text, "reference")


def test_sums_of_nanoseconds_do_not_wrap_around() -> None:
    now = 1_700_000_000_000_000_000
    x = [now + step for step in range(7)]
    events = pa.table({"ts": list(range(8)), "type": ["A"] * 7 + ["B"], "x": [*x, 0]})
    text = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity(a[], b) { a[1].ts = 0 } WITHIN 100 RETURN sum(a[].x) AS s"
    assert cepheid.match(events, text, engine="runs").to_pylist()[0]["s"] is None  # 1.19e19 is beyond 64 bits
    few = events.slice(3)
    (row,) = cepheid.match(few, text.replace("= 0", "= 3"), engine="runs").to_pylist()
    assert row["s"] == sum(x[3:])


@pytest.mark.parametrize("times", [[LEAST, GREATEST], [GREATEST - 4, GREATEST - 1], [0, 2**62]])
@pytest.mark.parametrize("engine", ["reference", "sequence", "runs"])
def test_times_that_cannot_be_subtracted_are_an_error(times: list[int], engine: str) -> None:
    events = pa.table({"ts": times, "type": ["A", "B"]})
    with pytest.raises(cepheid.DataError, match="more than 2\\^62 steps from 0"):
        cepheid.match(events, "PATTERN SEQ(A a, B b) WITHIN 10", engine=engine)


def test_seconds_beyond_64_bits_of_microseconds_are_an_error() -> None:
    events = pa.table({"ts": pa.array([10**18, 10**18 + 1], pa.timestamp("s")), "type": ["A", "B"]})
    with pytest.raises(cepheid.DataError, match="does not fit 64 bits"):
        cepheid.match(events, "PATTERN SEQ(A a, B b) WITHIN 10 seconds")
    later = pair(when=pa.array([10**18, 10**18 + 1], pa.timestamp("s")))
    with pytest.raises(cepheid.DataError, match="beyond 64 bits"):
        cepheid.match(later, PAIR.format("a.when < b.when"))


@pytest.mark.parametrize("engine", ["reference", "auto"])
@pytest.mark.parametrize(
    "ties",
    [
        pa.array(["x", "y"], pa.string_view()),
        pa.array([1, 2**64 - 1], pa.uint64()),
        pa.array(["x", "y"]).dictionary_encode(),
    ],
    ids=str,
)
def test_tiebreakers_of_every_kind(ties: pa.Array, engine: str) -> None:
    events = pa.table({"ts": [1, 1], "type": ["A", "B"], "k": ties})
    assert cepheid.match(events, "PATTERN SEQ(A a, B b) WITHIN 10", tiebreak="k", engine=engine).num_rows == 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.date32(), pa.duration("us")], ids=str)
def test_a_table_without_events_has_no_ties(kind: pa.DataType) -> None:
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("k", kind)])
    query = "PATTERN SEQ(A a, B b) WITHIN 10"
    assert not cepheid.match(schema.empty_table(), query, tiebreak="k").num_rows
    assert not cepheid.live(query, schema, tiebreak="k").finish()


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_views_are_text(engine: str) -> None:
    events = pair(k=pa.array(["x", "x"], pa.string_view()))
    events = events.set_column(1, "type", pa.array(["A", "B"], pa.string_view()))
    assert cepheid.match(events, PAIR.format("[k] AND a.k = b.k AND a.k = 'x'"), engine=engine).num_rows == 1


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_is_null_of_structs_and_maps(engine: str) -> None:
    for column in (pa.array([{"z": 1}, None]), pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))):
        events = pair(k=column, x=[1, 2])
        assert cepheid.match(events, PAIR.format("a.x > b.x OR b.k IS NULL"), engine=engine).num_rows == 1
        assert cepheid.match(events, PAIR.format("a.x > b.x OR a.k IS NULL"), engine=engine).num_rows == 0


def test_what_cannot_be_said_in_64_bits_is_an_error_that_points() -> None:
    events = pair(k=["x", "y"], x=[1, 2])
    query = PAIR.format("a.x < limit")
    for value, told in ((10**30, "beyond 64 bits"), ("\ud800", "surrogate")):
        with pytest.raises(cepheid.QueryError, match=told):
            cepheid.match(events, query if value == 10**30 else PAIR.format("a.k = limit"), parameters={"limit": value})
    with pytest.raises(cepheid.QueryError, match="surrogate"):
        cepheid.match(events, PAIR.format("a.k = '\ud800'"))
    unsigned = pair(k=pa.array([2**64 - 1] * 2, pa.uint64()))
    with pytest.raises(cepheid.DataError, match="beyond 64 bits"):
        cepheid.match(unsigned, PAIR.format("a.k = b.k"))


def test_a_pattern_has_at_most_63_components() -> None:
    def text(count: int) -> str:
        return f"PATTERN SEQ({', '.join(f'T{number} v{number}' for number in range(count))}) WITHIN 100"

    events = pa.table({"ts": list(range(64)), "type": [f"T{number}" for number in range(64)]})
    for engine in ("sequence", "runs", "lazy-chain"):
        assert engine in ENGINES
        assert cepheid.match(events, text(63), engine=engine).num_rows == 1
    with pytest.raises(cepheid.QueryError, match="at most 63"):
        cepheid.match(events, text(64))


KINDS = {
    pa.int8(): [1, 1],
    pa.uint64(): [1, 1],
    pa.float32(): [1, 1],
    pa.decimal128(20, 2): [1, 1],
    pa.decimal256(50, 2): [1, 1],
    pa.bool_(): [True, True],
    pa.string(): ["a", "a"],
    pa.large_string(): ["a", "a"],
    pa.string_view(): ["a", "a"],
    pa.binary(): [b"a", b"a"],
    pa.date32(): [1, 1],
    pa.date64(): [86_400_000, 86_400_000],
    pa.time64("us"): [1, 1],
    pa.timestamp("s"): [1, 1],
    pa.timestamp("ns", "Europe/Berlin"): [1, 1],
    pa.duration("s"): [1, 1],
    pa.list_(pa.int8()): [[1], [1]],
    pa.list_(pa.string()): [["a"], ["a"]],
    pa.large_list(pa.float32()): [[1], [1]],
    pa.map_(pa.string(), pa.int8()): [[("k", 1)], [("k", 1)]],
    pa.struct([("q", pa.int8())]): [{"q": 1}, {"q": 1}],
    pa.null(): [None, None],
    pa.dictionary(pa.int8(), pa.string()): ["a", "a"],
    pa.dictionary(pa.int8(), pa.int64()): [1, 1],
}
OF_ANY_KIND = [
    "a.c = b.c",
    "[c]",
    "a.c IS NOT NULL",
    "coalesce(a.c, b.c) = b.c",
    "CAST(a.c AS string) = 'a'",
    "a.c[0] = 1",
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_of_column_gives_the_right_answer_or_a_clear_error(kind: pa.DataType) -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "c": pa.array(KINDS[kind], kind)})

    def answer(condition: str, engine: str) -> Any:
        try:
            return cepheid.match(events, PAIR.format(condition), engine=engine).num_rows
        except cepheid.CepheidError as error:
            return str(error)

    for condition in OF_ANY_KIND:
        assert answer(condition, "sequence") == answer(condition, "reference"), condition
