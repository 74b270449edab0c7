"""Why a clause or a Flink pattern finds nothing: where it stops, and what would help."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import DataError, LimitError
from cepheid.flink import Pattern

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6],
        "type": ["A", "X", "B", "A", "X", "C"],
        "id": [1, 1, 1, 2, 2, 2],
        "v": [1, 2, 3, 4, 5, 6],
    }
)


def clause(pattern: str, define: str) -> str:
    return f"MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.v AS av PATTERN ({pattern}) DEFINE {define})"


def codes(told: cepheid.Diagnosis) -> list[str]:
    return [hint.code for hint in told.hints]


def test_rows_between_two_labels() -> None:
    told = cepheid.why(EVENTS, clause("A B", "A AS type = 'A', B AS type = 'B'"))
    assert [(step.text, step.count.number) for step in told.steps] == [("A", 2), ("A B", 0)]
    assert codes(told) == ["stops-here", "events-between"]
    assert "A X* B" in told.hints[1].text
    assert cepheid.match(EVENTS, clause("A X* B", "A AS type = 'A', B AS type = 'B'")).num_rows == 1


def test_a_definition_that_no_row_passes() -> None:
    told = cepheid.why(EVENTS, clause("A B", "A AS type = 'A', B AS type = 'b'"))
    assert codes(told) == ["no-candidates"]
    assert "B: type = 'b'" in told.hints[0].text
    assert [item.matches.number for item in told.without if item.matches is not None] == [0, 2, 0]


def test_rows_of_other_partitions() -> None:
    told = cepheid.why(EVENTS, clause("B A", "A AS type = 'A', B AS type = 'B'"))
    assert codes(told) == ["stops-here", "other-key"]


def test_conditions_on_the_way_are_marked() -> None:
    told = cepheid.why(EVENTS, clause("A B", "B AS B.v > A.v + 9 AND type = 'X'"))
    assert [component.passed for component in told.components] == [6, 2]
    assert "the part that a single row decides" in str(told)
    assert str(told.without[0].matches) == "2"


def test_an_empty_table_and_limits() -> None:
    text = clause("A B", "A AS type = 'A'")
    assert codes(cepheid.why(EVENTS.slice(0, 0), text)) == ["no-events"]
    with pytest.raises(LimitError):
        cepheid.why(EVENTS, "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v > 0)", max_matches=2)
    with pytest.raises(DataError, match="pyarrow, pandas or polars"):
        cepheid.why([{"ts": 1}], text)


def test_a_flink_pattern_with_events_between() -> None:
    pattern = Pattern.begin("a").where("type = 'A'").next("b").where("type = 'B'")
    told = cepheid.why(EVENTS, pattern, partition_by="id")
    assert [step.count.number for step in told.steps] == [2, 0]
    assert codes(told) == ["stops-here", "events-between"]
    assert "followed_by" in told.hints[1].text


def test_a_flink_pattern_that_looks_back_and_has_a_window() -> None:
    first = Pattern.begin("a").where("type = 'A'").followed_by("b").where("type = 'B'").where("v > a.v + 9")
    told = cepheid.why(EVENTS, first.not_followed_by("c").where("type = 'C'").within(4))
    assert [component.negative for component in told.components] == [False, False, True]
    assert "looks back at other events" in str(told)
    assert told.matches.number == 0
    assert codes(told) == ["stops-here"]
    short = Pattern.begin("a").where("type = 'A'").followed_by("c").where("type = 'C'").within(2)
    without = {item.kind: item.matches for item in cepheid.why(EVENTS, short, partition_by="id").without}
    assert str(without["window"]) == "1"
