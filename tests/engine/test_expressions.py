"""Patterns that are expressions: what the contract does not draw."""

from __future__ import annotations

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


@settings(suppress_health_check=list(HealthCheck))
@given(query=expression_queries())
def test_what_is_printed_reads_back(query: s.QuerySyntax) -> None:
    assert check(parse(to_text(query))) == query


def test_what_is_not_built_is_refused() -> None:
    with pytest.raises(cepheid.errors.CepheidError, match="plain sequence"):
        cepheid.match(events("a1"), "PATTERN SEQ(A a, B? b) WITHIN 5 THRESHOLD 0.5")
    with pytest.raises(cepheid.errors.CepheidError, match="plain sequences"):
        cepheid.why(events("a1"), "PATTERN SEQ(A a, B? b) WITHIN 5")
