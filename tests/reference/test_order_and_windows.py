"""Events and order, patterns and windows: docs/semantics.md, "Events and order" and "Windows"."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import cepheid
from cepheid import QueryError
from reference.written_streams import matches, stream

AB = "PATTERN SEQ(A a, B b)"


class TestOrder:
    def test_an_event_precedes_another_if_its_time_is_smaller(self) -> None:
        assert matches(stream("b1 a2 b3"), AB) == {"a2 b3"}

    def test_events_of_one_instant_are_concurrent(self) -> None:
        assert matches(stream("a1 b1"), AB) == set()

    def test_tiebreakers_order_them(self) -> None:
        events = stream("a1:seq=1 b1:seq=2 b1':seq=0 b1'':seq=1")
        assert matches(events, AB, tiebreak=("seq",)) == {"a1 b1"}

    def test_several_tiebreakers(self) -> None:
        events = stream("a1:p=1,q=2 b1:p=1,q=3 b1':p=0,q=9")
        assert matches(events, AB, tiebreak=("p", "q")) == {"a1 b1"}

    def test_a_null_tiebreaker_comes_first(self) -> None:
        assert matches(stream("a1:seq=NULL b1:seq=0"), AB, tiebreak=("seq",)) == {"a1 b1"}

    @pytest.mark.parametrize("strategy", ["strict_contiguity", "skip_till_next_match", "skip_till_any_match"])
    def test_the_order_of_arrival_of_concurrent_events_does_not_matter(self, strategy: str) -> None:
        tokens = ["a1:x=1", "a1':x=2", "b2:x=1", "b2':x=3", "c2:x=2"]
        query = f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ a.x <= b.x }} WITHIN 5 OUTPUT NON-OVERLAP"
        results = {frozenset(matches(stream(" ".join(p)), query)) for p in itertools.permutations(tokens)}
        assert len(results) == 1

    def test_one_event_never_fills_two_places(self) -> None:
        assert matches(stream("a1 a2"), "PATTERN SEQ(A a, A b)") == {"a1 a2"}
        assert matches(stream("a1"), "PATTERN SEQ(A a, A b)") == set()

    def test_tables_need_not_be_sorted(self) -> None:
        assert matches(stream("b3 a2 b1"), AB) == {"a2 b3"}


class TestPattern:
    def test_a_single_component_is_a_filter(self) -> None:
        events = stream("a1:x=1 a2:x=5 b3:x=5")
        assert matches(events, "EVENT A WHERE x = 5") == {"a2"}

    def test_any_of_several_types(self) -> None:
        assert matches(stream("a1 b2 c3 d4"), "PATTERN SEQ(A a, ANY(B, C) b)") == {"a1 b2", "a1 c3"}

    def test_untyped_components_take_every_type(self) -> None:
        events = stream("a1:x=1 b2:x=2 c3:x=1")
        assert matches(events, "SEQUENCE(p, q) WHERE p.x = 1 AND q.x = 2") == {"a1 b2"}

    def test_hyphenated_types(self) -> None:
        events = pa.table({"name": ["s", "e"], "ts": [1, 2], "type": ["SHELF-READING", "EXIT-READING"]})
        assert matches(events, "EVENT SEQ(SHELF-READING x, EXIT-READING y)") == {"s e"}

    def test_a_row_without_a_type_is_of_no_type(self) -> None:
        events = pa.table({"name": ["s", "e"], "ts": [1, 2], "type": ["A", None]})
        assert matches(events, "PATTERN SEQ(A a, p) WHERE p.ts > 0") == {"s e"}
        assert matches(events, "PATTERN SEQ(A a, B p)") == set()

    def test_no_match_keeps_the_result_schema(self) -> None:
        empty = cepheid.match(stream("a1"), AB, engine="reference")
        assert len(empty) == 0
        assert empty.column_names == ["match_start", "match_end", "a", "b"]

    def test_no_events_at_all(self) -> None:
        assert matches(stream(""), AB) == set()


class TestWindow:
    def test_a_match_lasts_less_than_the_window(self) -> None:
        assert matches(stream("a1 b3 b4"), AB + " WITHIN 3") == {"a1 b3"}

    def test_it_is_measured_on_time_alone_not_on_tiebreakers(self) -> None:
        events = stream("a1:seq=9 b3:seq=0 b4:seq=0")
        assert matches(events, AB + " WITHIN 3", tiebreak=("seq",)) == {"a1 b3"}

    def test_from_the_first_to_the_last_event(self) -> None:
        assert matches(stream("a1 b3 c5"), "PATTERN SEQ(A a, B b, C c) WITHIN 4") == set()
        assert matches(stream("a1 b3 c5"), "PATTERN SEQ(A a, B b, C c) WITHIN 5") == {"a1 b3 c5"}

    def test_a_window_of_events_counts_all_events(self) -> None:
        events = stream("a1 x2 x3 b4")
        assert matches(events, AB + " WITHIN 3 EVENTS") == set()
        assert matches(events, AB + " WITHIN 4 EVENTS") == {"a1 b4"}

    def test_a_window_of_events_counts_within_the_equivalence_tests(self) -> None:
        events = stream("a1:id=1 x2:id=2 x3:id=1 b4:id=1")
        assert matches(events, AB + " WHERE [id] WITHIN 3 EVENTS") == {"a1 b4"}
        assert matches(events, AB + " WHERE [id] WITHIN 2 EVENTS") == set()

    def test_the_position_is_the_number_of_events_that_precede(self) -> None:
        """Concurrent events share a position: both B follow three events."""
        events = stream("a1 x2 x2' b3 b3'")
        assert matches(events, AB + " WITHIN 4 EVENTS") == {"a1 b3", "a1 b3'"}
        assert matches(events, AB + " WITHIN 3 EVENTS") == set()

    def test_timestamps_need_a_unit(self) -> None:
        start = datetime(2026, 1, 1)
        events = pa.table({"name": ["a", "b"], "ts": [start, start + timedelta(minutes=5)], "type": ["A", "B"]})
        assert matches(events, AB + " WITHIN 6 minutes") == {"a b"}
        assert matches(events, AB + " WITHIN 5 minutes") == set()
        with pytest.raises(QueryError, match="unit"):
            matches(events, AB + " WITHIN 5")

    def test_whole_numbers_are_in_the_columns_own_unit_unless_the_call_says_which(self) -> None:
        events = stream("a1000 b3000")
        assert matches(events, AB + " WITHIN 3 seconds", time_unit="ms") == {"a1000 b3000"}
        assert matches(events, AB + " WITHIN 2 seconds", time_unit="ms") == set()
        with pytest.raises(QueryError, match="time_unit"):
            matches(events, AB + " WITHIN 2 seconds")
