"""Patterns that are expressions: what the contract does not draw."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import cepheid
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.printing import to_text
from cepheid.language.sase.parse import parse
from strategies.expressions import expression_queries


def events(text: str) -> pa.Table:
    """`a1 b2` is an A at 1 with x = 1 and a B at 2 with x = 2."""
    words = text.split()
    values = [int(word[1:]) for word in words]
    return pa.table({"ts": range(1, len(words) + 1), "type": [word[0].upper() for word in words], "x": values})


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    ("query", "stream", "found"),
    [
        ("PATTERN SEQ(A a, (B b | C c), D d) WHERE skip_till_next_match { }", "a1 b1 c1 d1", [(1, 2, None, 4)]),
        ("PATTERN SEQ(A a, B? b, C c)", "a1 b1 c1", [(1, None, 3), (1, 2, 3)]),
        ("PATTERN SEQ((A a, B b)+, C c) WHERE a.x < b.x", "a1 b2 a5 b4 c1", [((1,), (2,), 5), ((1,), (4,), 5)]),
        ("PATTERN SEQ(AND(A a, B b), C c)", "b1 a1 c1", [(2, 1, 3)]),
        ("PATTERN SEQ(A a, B b AFTER 2 WITHIN 4)", "a1 b1 b1 b1 b1", [(1, 3), (1, 4)]),
        (
            "PATTERN SEQ(X? x, A+ a[], B b) WHERE skip_till_next_match { }",
            "a1 a1 b1",
            [(None, (1, 2), 3), (None, (2,), 3)],
        ),
        ("PATTERN SEQ(A a, B* b[]) WHERE count(b[]) = 0", "a1 b1", [(1, ())]),
        # The run takes the C, whether or not the stream has room for a second one: what is to come decides nothing.
        ("PATTERN SEQ(A a, (C{2} c[])?, D d) WHERE skip_till_next_match { }", "a1 c1 d1", []),
        ("PATTERN SEQ(A a, (C{2} c[])?, D d) WHERE skip_till_next_match { }", "a1 d1", [(1, (), 2)]),
        ("PATTERN SEQ(A a, B? b, C c) WITHIN 9 OUTPUT MAXIMAL", "a1 b1 c1 a1 c1", [(1, 2, 3), (1, 2, 5), (4, None, 5)]),
    ],
)
def test_examples(engine: str, query: str, stream: str, found: list[tuple[object, ...]]) -> None:
    def moments(value: object) -> object:
        if isinstance(value, list):
            return tuple(event["ts"] for event in value)
        return value["ts"] if isinstance(value, dict) else value

    rows = cepheid.match(events(stream), query, engine=engine).to_pylist()
    assert {tuple(map(moments, list(row.values())[2:])) for row in rows} == set(found)
    assert len(rows) == len(found)


@pytest.mark.parametrize(
    ("query", "stream"),
    [
        ("PATTERN SEQ(A a, (B+ b[], C c)+, !(D d)) WHERE d.x > a.x WITHIN 9", "a3 b1 c1 b1 c1 d3 a1 b1 c1 d4"),
        ("PATTERN SEQ(!(D d), A a, (B b | C c)) WHERE skip_till_next_match { } WITHIN 3", "d1 a1 b1 d1 c1 a1 b1"),
        ("PATTERN SEQ((A a, B b){1,20}, C c) WHERE skip_till_next_match { a.x <= b.x }", "a1 b1 a2 b1 b3 c1 a1 b2 c1"),
        ("PATTERN SEQ(AND(A a, B b, C c, D d), E e) WHERE a.x < d.x", "d4 b1 c1 a3 e1 d2 e2"),
        ("PATTERN SEQ((A a, B+ b[])+, C c) WHERE skip_till_next_match { b[i].x >= b[i-1].x }", "a1 b1 b2 a1 b1 b3 c1"),
        ("PATTERN SEQ(A a, (B b, !(D n), C c)+, E e) WHERE n.x > b.x", "a1 b1 c1 b1 d2 c1 b3 d2 c2 e1"),
        ("PATTERN SEQ(A a, (B b | C c){2}, (D d)?) WHERE strict_contiguity { a.x <= c.x }", "a1 b1 c1 d1 a2 c1 c3 d1"),
        ("PATTERN SEQ(A a, B{2,3} b[] WITHIN 3, C? c) WHERE avg(b[].x) > 1", "a1 b1 b3 b2 c1 b3"),
    ],
)
def test_states_agree_with_the_reference(query: str, stream: str) -> None:
    found, expected = (
        cepheid.match(events(stream), query, engine=name).to_pylist() for name in ("states", "reference")
    )
    assert expected
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("query", "stream"),
    [
        ("PATTERN SEQ(A a, B+ b[] UNTIL b.x > a.x, C c)", "a1 b1 b0 d2 b1 c1"),
        ("PATTERN SEQ(A a, B+ b[] UNTIL b.x > b[i-1].x) WHERE skip_till_next_match { }", "a1 b3 b2 b4 b1"),
        ("PATTERN SEQ(A a, B+ b[] UNTIL sum(b[..i-1].x) > 2, C? c)", "a1 b1 b2 b1 c1 b1"),
        (
            "PATTERN SEQ((A a, B+ b[] UNTIL b.x > a.x)+, C c) WHERE skip_till_next_match { }",
            "a1 b1 b2 b1 a3 b3 b2 b4 c1",
        ),
        (
            "PATTERN SEQ(A a, (B+ b[] UNTIL b.x < b[1].x | C c), D d) WHERE partition_contiguity { }",
            "a1 b2 b3 d1 a1 c1 d1",
        ),
        (
            "PATTERN SEQ(A a, (B b | C c), D d) WHERE skip_till_next_match { } AND strict_contiguity(d)",
            "a1 b1 d1 a2 c1 b1 d2",
        ),
        (
            "PATTERN SEQ(A a, (B b, C c)+, D? d) WHERE { } AND strict_contiguity(c) AND skip_till_next_match(b[])",
            "a1 b1 c1 b1 b2 c1 d1",
        ),
    ],
)
def test_what_follows_runs_agrees_with_the_reference(query: str, stream: str) -> None:
    found, expected = (cepheid.match(events(stream), query, engine=name).to_pylist() for name in ("auto", "reference"))
    assert expected
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, (B b | C c), D d)",
        "PATTERN SEQ((A a, B b)+, D d) WHERE a.x <= d.x",
        "PATTERN SEQ(A a, B* b[], C? c, D d) WHERE skip_till_next_match { }",
    ],
)
def test_what_is_counted_is_not_listed(query: str) -> None:
    table = events("a1 b1 c1 a1 b2 d1 d1")
    listed = cepheid.match(table, query)
    assert cepheid.match(table, query, output="count") == len(listed)
    shared = cepheid.match(table, query, output="compressed")
    assert shared.count == len(listed)
    assert sorted(map(str, shared.all().to_pylist())) == sorted(map(str, listed.to_pylist()))


def test_explain_says_who_runs_an_expression() -> None:
    def told(query: str) -> str:
        return str(cepheid.query(query).explain(events("a1 b1")))

    assert "states of one automaton" in told("PATTERN SEQ(A a, (B b | C c), D d) WHERE skip_till_next_match { }")
    assert "states of one automaton" in told("PATTERN SEQ(A a, (B b | C c), D d)")
    assert "asks whether an event was chosen" in told("PATTERN SEQ(A a, B* b[], C? c) WHERE count(b[]) = 0")


@pytest.mark.parametrize(
    ("pattern", "condition", "stream"),
    [
        ("A a, (B b, C c)+, D d", "sum(b[].x) < 4", "a1 b3 c1 b2 c1 d1 b1 c1 d2 a1 b1 c1 b2 c2 d1"),
        ("A a, (B b, C c)+, D d", "avg(b[].x) < c[c.LEN].x", "a1 b3 c1 d1 b2 c4 d1 a1 b1 c2 d1"),
        ("A a, B{1,3} b[], C? c, D d", "sum(b[].x) > 4 AND b.LEN > 1", "a1 b1 d1 b2 c1 d1 b2 c1 d1 b5 d1"),
        ("A a, (B b | C c){2,3}, D d", "b[b.LEN].x > a.x", "a1 b1 c1 d1 b2 d1 a1 b2 c1 b1 d1 c1 d1"),
        ("A a, B{2} b[], C? c", "b[1].x < b[b.LEN].x", "a1 b2 b1 b3 c1 a1 b1 c1 b1 b2"),
        ("AND(A a, B+ b[]), D d", "sum(b[].x) < a.x + d.x", "b1 a2 d1 b2 b3 a1 d3 d5"),
    ],
)
def test_whole_groups_are_judged_in_the_automaton(pattern: str, condition: str, stream: str) -> None:
    """Under skip_till_next_match an event is passed where the group before it fails its condition."""
    query, table = f"PATTERN SEQ({pattern}) WHERE skip_till_next_match {{ {condition} }}", events(stream)
    found, expected = (cepheid.match(table, query, engine=name).to_pylist() for name in ("states", "reference"))
    assert expected
    assert sorted(map(str, found)) == sorted(map(str, expected))


@settings(suppress_health_check=list(HealthCheck))
@given(query=expression_queries())
def test_what_is_printed_reads_back(query: s.QuerySyntax) -> None:
    assert check(parse(to_text(query))) == query


@pytest.mark.parametrize(
    ("query", "options", "told"),
    [
        ("PATTERN SEQ(A a, (B b, C c)+) WITHIN 5 THRESHOLD 0.5", {}, "repeated without end"),
        ("PATTERN SEQ(A a, B? b) WHERE skip_till_next_match { } WITHIN 5 THRESHOLD 0.5", {}, "skip_till_next_match"),
        ("PATTERN SEQ(A a, B? b, !(C c)) WITHIN 5", {"lower": "ts", "upper": "ts"}, "negation at the end"),
        ("PATTERN SEQ(A a, B? b WITHIN 3) WITHIN 5", {"lower": "ts", "upper": "ts"}, "compare times"),
        ("PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1) WITHIN 5 THRESHOLD 0.5", {}, "which event came first"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(b) WITHIN 5", {"lower": "ts", "upper": "ts"}, "single steps"),
    ],
)
def test_what_cannot_be_meant_is_refused(query: str, options: dict[str, str], told: str) -> None:
    with pytest.raises(cepheid.errors.CepheidError, match=told):
        cepheid.match(events("a1"), query, **options)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_orders_of_imprecise_events_add_up(engine: str) -> None:
    table = pa.table({"lo": [1, 1], "hi": [3, 3], "type": ["A", "B"]})
    found = cepheid.match(table, "PATTERN SEQ(AND(A a, B b)) WITHIN 9", lower="lo", upper="hi", engine=engine)
    assert found["confidence"].to_pylist() == pytest.approx([2 / 3])  # both orders, but not the same instant


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_most_probable_pattern_counts(engine: str) -> None:
    loss = {"b": 0.5, "c": 0.5, "*": 0.0}
    model = cepheid.Model(loss=loss, gaps={name: cepheid.Exponential(mean=1.0) for name in "abcd"})
    query = "PATTERN SEQ(A a, (B b | C c), D d) WITHIN 9 THRESHOLD 0.01"
    (row,) = cepheid.match(events("a1 e1 d1"), query, model=model, engine=engine).to_pylist()
    plain = cepheid.match(events("a1 e1 d1"), query.replace("(B b | C c)", "B b"), model=model).to_pylist()
    assert row["probability"] == pytest.approx(plain[0]["probability"])
    surely = cepheid.match(events("a1 e1 d1"), query.replace("(B b | C c)", "B? b"), model=model, engine=engine)
    assert surely["probability"].to_pylist() == [1.0]  # b may be left out


def test_why_tells_of_the_sequence_that_came_furthest() -> None:
    query = "PATTERN SEQ(A a, (B b | C c), D d) WHERE b.x > 3 AND c.x > 5 WITHIN 9"
    told = cepheid.why(events("a1 b1 a2 d1"), query)
    assert told.matches.number == 0
    assert told.hints[0].code == "one-of-several"
    assert "SEQ(A a, B b, D d)" in told.hints[0].text
    ended = cepheid.why(events("a1 b1 b2 d1"), "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1, D d) WHERE b.LEN > 1 WITHIN 9")
    assert [(item.kind, item.matches.number) for item in ended.without if item.kind == "until" and item.matches] == [
        ("until", 1)
    ]


def test_totals_over_expressions_count_each_assignment_once() -> None:
    query = "PATTERN SEQ(AND(A a, B b), C? c) WITHIN 9 SUMMARISE count(*) AS n, sum(a.x) AS s"
    found = cepheid.match(events("a1 b1 c1 a5"), query).to_pylist()
    listed = cepheid.match(events("a1 b1 c1 a5"), query.partition(" SUMMARISE")[0]).to_pylist()
    assert found == [{"n": len(listed), "s": sum(row["a"]["x"] for row in listed)}]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("PATTERN SEQ(A a, B+ b[] UNTIL b.x > 3, C c) WHERE skip_till_next_match { }", [(1, (2, 3), 6)]),
        (
            "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { } AND skip_till_any_match(c)",
            [(1, (2,), 6), (1, (2, 3), 6), (1, (2, 3, 5), 6)],
        ),
        (
            "PATTERN SEQ(A a, B+ b[], C c) WHERE { } AND strict_contiguity(b[i]) AND strict_contiguity(c)",
            [(1, (5,), 6)],
        ),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_until_and_strategies_for_steps(engine: str, query: str, found: list[tuple[object, ...]]) -> None:
    rows = cepheid.match(events("a1 b1 b2 d9 b3 c1"), query, engine=engine).to_pylist()
    told = [(row["a"]["ts"], tuple(e["ts"] for e in row["b"]), row["c"]["ts"]) for row in rows]
    assert sorted(told) == sorted(found)


MERGED = (
    "SEQ(A{1,2} a[] AFTER 2, C c)",  # the time of the last event of the group decides
    "SEQ(A{2,3} a[] AFTER 2, B? b, C c)",
    "SEQ((A a, B b)+, !(D d), C c) WHERE d.x > b[1].x",  # what lies behind the last event
    "SEQ((A a, B b)+, C c) WHERE sum(a[].x) > 4",
    "SEQ((A a, B b)+, C c) WHERE a.LEN BETWEEN 2 AND 3",
    "SEQ(A+ a[] UNTIL a.x < a[i-1].x, (B b | C c))",
    "SEQ(A+ a[] UNTIL a.x > 6, (B b | C c)) WHERE partition_contiguity { }",
    "SEQ(AND(A+ a[], B b){1,2}, C c) WHERE partition_contiguity { }",
    "SEQ((A a, B b)+, C? c, D d) WHERE skip_till_any_match { } AND partition_contiguity(d)",
    "SEQ((A a, B? b)+, C c, !(D d)) WHERE d.x > c.x",
)


@pytest.mark.some(3)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("pattern", MERGED)
@pytest.mark.parametrize("seed", range(4))
def test_runs_that_are_merged_go_on_alike(pattern: str, seed: int) -> None:
    draw = random.Random(seed)
    times = sorted(draw.choices(range(12), k=14)) if seed % 2 else range(14)
    values = [draw.randrange(8) for _ in range(14)]
    table = pa.table({"ts": times, "type": draw.choices("AABBCD", k=14), "x": values})
    text = f"PATTERN {pattern} WITHIN 10"
    found, wanted = (cepheid.match(table, text, engine=name) for name in ("auto", "reference"))
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    assert cepheid.match(table, text, output="count") == wanted.num_rows


def test_a_run_that_cannot_go_on_is_not_held() -> None:
    events = pa.table({"ts": range(15), "type": list("ABB" * 5)})
    query = "PATTERN SEQ(A a, B{2} b[]) WHERE skip_till_next_match { } WITHIN 90"
    assert cepheid.match(events, query, engine="states", max_partial_matches=1).num_rows == 5
