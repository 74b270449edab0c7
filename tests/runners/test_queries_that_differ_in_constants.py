"""Queries that differ in constants share a search where that is exact, and each finds what it finds alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.incremental import alike
from cepheid.engine.values import constants

EVENTS, DELAY = 240, 3
NUMBERS = [0.5, 1.5, -0.0, 0.0, 7.0, float("nan"), None]
TEXTS = ["u", "v", "", "ü", None]

# Conditions with a place for a constant, the constants, and do queries that differ in these alone share one search?
VARIED: list[tuple[str, list[Any], bool]] = [
    ("a.x > {}", [1, 3, 5, 8], True),
    ("{} >= b.x", [1, 3, 5, 8], True),
    ("a.x > {}", [1.5, 3.0, 5.25], True),
    ("b.n <= {}", [0.5, 0.0, 3.0], True),
    ("a.x = {}", [1, 3, 5, 8], True),
    ("b.n = {}", [0.0, 0.5, 7.0], True),
    ("b.s = {}", ["'u'", "'v'", "''", "'none'"], True),
    ("a.x < b.x + {}", [0, -2, -5], True),
    ("b.x - {} > a.x", [0, 2, 5], True),
    ("a.n + {} < b.x", [0.5, 2.0], True),
    ("a.x < b.x + {}", [3, 1], False),  # a sum past 64 bits is NULL
    ("a.x <> {}", [1, 3], False),
    ("c.x > {}", [1, 5], False),  # a negated event
    ("b.s > {}", ["'u'", "'v'"], False),
    ("a.x * {} > b.x", [1, 2], False),
    ("a.x < b.x AND (a.x > {0} OR b.x > {0})", [1, 5], False),
]


def events(seed: int = 0) -> pa.Table:
    """Events that come up to so many steps late."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, EVENTS * 2 // 3, EVENTS))
    table = pa.table(
        {
            "ts": times,
            "type": np.array(list("ABCD"))[rng.integers(0, 4, EVENTS)],
            "id": pa.array(rng.integers(0, 4, EVENTS), mask=rng.random(EVENTS) < 0.05),
            "x": pa.array(rng.integers(0, 10, EVENTS), mask=rng.random(EVENTS) < 0.1),
            "n": pa.array([NUMBERS[row] for row in rng.integers(0, len(NUMBERS), EVENTS)], pa.float64()),
            "s": [TEXTS[row] for row in rng.integers(0, len(TEXTS), EVENTS)],
        }
    )
    return table.take(np.argsort(times + np.arange(EVENTS) % DELAY, kind="stable"))


def live_of(asked: dict[str, str], table: pa.Table, **more: Any) -> Any:
    return cepheid.live(asked, table.schema, time="ts", delay=DELAY, **more)


def check(asked: dict[str, str], table: pa.Table, size: int, restores: int = 20) -> None:
    """Sends a table in pieces of a size, with a saved state in between, and compares with each query alone."""
    live, found = live_of(asked, table), list[Any]()
    for number, start in enumerate(range(0, EVENTS, size)):
        piece = table.slice(start, size)
        rows = live.send(piece.to_pylist()[0] if size == 1 else piece)
        found += rows if size == 1 else rows.to_pylist()
        if number % restores == restores // 2:
            live = live_of(asked, table, state=live.save())
    ends = live.finish()
    found += ends if isinstance(ends, list) else ends.to_pylist()
    for name, text in asked.items():
        alone = cepheid.match(table, text, time="ts").drop_columns(["match_start", "match_end"]).to_pylist()
        assert sorted(repr(row[name]) for row in found if row["query"] == name) == sorted(map(repr, alone)), text


def queries(pattern: str, condition: str, values: list[Any], strategy: str = "skip_till_any_match") -> dict[str, str]:
    where = [f"{strategy} {{ [id] AND {condition.format(each)} }}" for each in values]
    texts = [f"PATTERN {pattern} WHERE {each} WITHIN 20" for each in where]
    return {f"q{number}": text for number, text in enumerate(texts)}


@pytest.mark.some(12)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("size", [1, 60])
@pytest.mark.parametrize(("condition", "constants", "shares"), VARIED)
def test_each_finds_what_it_finds_alone(condition: str, constants: list[Any], shares: bool, size: int) -> None:
    table = events()
    asked = queries("SEQ(A a, !(C c), B b)" if "c.x" in condition else "SEQ(A a, B b)", condition, constants)
    assert (len(live_of(asked, table).resident.cores) == 1) == shares
    check(asked, table, size)


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("SEQ(A a, B+ b[], C c)", "b[i].x > {}"),
        ("SEQ(A a, B+ b[], C c)", "avg(b[].x) > {}"),
        ("SEQ(A a, B? b, C c)", "b.x > {}"),
        ("SEQ(ANY(A) a, B b)", "a.x > {}"),
        ("SEQ(A a, B b, !(C c))", "a.x > {}"),
    ],
)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
def test_where_a_constant_decides_more_each_has_its_own_search(pattern: str, condition: str) -> None:
    asked = queries(pattern, condition, [5, 7, 8])
    assert len(live_of(asked, events()).resident.cores) == 3
    check(asked, events(), 60)


OTHERS = ["skip_till_next_match", "strict_contiguity", "partition_contiguity"]


@pytest.mark.some(6)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("strategy", OTHERS)
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(A a, !(C c), B b)", "SEQ(A a, B+ b[], D d)"])
@pytest.mark.parametrize("condition", ["a.x > {}", "a.x = {}"])
def test_a_first_event_decides_nothing_of_what_follows(condition: str, pattern: str, strategy: str) -> None:
    asked = queries(pattern, condition, [1, 3, 5], strategy)
    assert len(live_of(asked, events()).resident.cores) == 1
    check(asked, events(), 60)


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
def test_a_query_may_read_columns_that_others_do_not() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE [id]{} WITHIN 6{}"
    check({"few": text.format("", " RETURN a.ts AS f"), "more": text.format(" AND b.s > 'u'", "")}, events(), 60)


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
def test_queries_that_search_by_themselves_keep_their_results_apart() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE strict_contiguity {{ [id] AND {} }} WITHIN 6 EVENTS{}"
    asked = {"weak": text.format("a.x > 1", ""), "other": text.format("a.x > 1 AND a.x > 1", "")}
    asked["shown"] = text.format("a.x > 3", " RETURN a.ts AS f")  # the first one would search for it
    check(asked, events(), 60)


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("SEQ(A a, B b)", "b.x > {}"),  # a stricter condition takes another event
        ("SEQ(A a, B b)", "a.x < b.x - {}"),
        ("SEQ(A+ a[], B b)", "a[1].x > {}"),
        ("SEQ(A a, B? b, C c)", "a.x > {}"),
    ],
)
def test_a_next_event_depends_on_its_conditions(pattern: str, condition: str) -> None:
    asked = queries(pattern, condition, [1, 3, 5], "skip_till_next_match")
    assert len(live_of(asked, events()).resident.cores) == 3
    check(asked, events(), 60)


def test_a_search_looks_for_no_pairs_of_values_that_no_query_asks_for() -> None:
    asked = queries("SEQ(A a, B b)", "a.x = {0} AND b.x = {0}", [1, 3, 5])
    assert len(live_of(asked, events()).resident.cores) == 3
    asked = queries("SEQ(A a, B b)", "a.x > {0} AND b.x > {0}", [1, 3, 5])
    assert len(live_of(asked, events()).resident.cores) == 1
    crossed = {"one": "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 1 AND b.x > 8 WITHIN 20"}
    crossed["other"] = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 8 AND b.x > 1 WITHIN 20"
    assert len(live_of(crossed, events()).resident.cores) == 2
    check(crossed, events(), 60)


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
def test_many_values_are_several_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "MOST_VALUES", 4)
    monkeypatch.setattr(constants, "AT_ONCE", 50)
    asked = queries("SEQ(A a, B b, C c)", "b.x = {} AND a.x < b.x", list(range(10)))
    assert len(live_of(asked, events()).resident.cores) == 3
    check(asked, events(), 60)


def test_the_limit_of_matches_is_that_of_each_query() -> None:
    table = pa.table({"ts": range(40), "type": ["A", "B"] * 20, "id": [1] * 40, "x": [1, 1, 2, 2] * 10})
    for condition, values in (("a.x = {}", [1, 2]), ("a.x > {}", [0, 1])):
        asked = queries("SEQ(A a, B b)", condition, values)
        alone = [cepheid.match(table, text, time="ts").num_rows for text in asked.values()]
        live = cepheid.live(asked, table.schema, time="ts", max_matches=max(alone))
        assert live.send(table).num_rows + live.finish().num_rows == sum(alone)
        live = cepheid.live(asked, table.schema, time="ts", max_matches=max(alone) - 30)
        with pytest.raises(cepheid.LimitError):
            live.send(table)


@st.composite
def several(draw: st.DrawFn) -> dict[str, str]:
    """Queries of a few shapes with drawn constants, windows and RETURN."""
    patterns = draw(
        st.lists(st.sampled_from(["SEQ(A a, B b)", "SEQ(A a, B b, C c)", "SEQ(A a, B b, D+ d[])"]), max_size=2)
    )
    used = draw(st.lists(st.sampled_from([each for each in VARIED if "c.x" not in each[0]]), min_size=1, max_size=3))
    strategies = draw(st.lists(st.sampled_from(["skip_till_any_match", *OTHERS]), min_size=1, max_size=2))
    texts = []
    for _ in range(draw(st.integers(2, 9))):
        parts = [condition.format(draw(st.sampled_from(constants))) for condition, constants, _ in used]
        where = " AND ".join(["[id]", *(part for part in parts if draw(st.booleans()) or draw(st.booleans()))])
        window = draw(st.sampled_from([6, 12, 12]))
        shown = draw(st.sampled_from(["", "", " RETURN a.ts AS f, b.x AS l"]))
        pattern = draw(st.sampled_from([*patterns, "SEQ(A a, B b)"]))
        strategy = draw(st.sampled_from(strategies))
        texts.append(f"PATTERN {pattern} WHERE {strategy} {{ {where} }} WITHIN {window}{shown}")
    return {f"q{number}": text for number, text in enumerate(texts)}


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@given(several(), st.integers(0, 5), st.sampled_from([1, 7, 60, 240]))
def test_drawn_queries_find_what_each_finds_alone(asked: dict[str, str], seed: int, size: int) -> None:
    check(asked, events(seed), size, restores=9)
