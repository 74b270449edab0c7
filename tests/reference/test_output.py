"""Which matches are reported: docs/semantics.md, "Output"."""

from __future__ import annotations

import itertools

import pytest

import cepheid
from cepheid import CepheidError, QueryError
from cepheid.engine import reference
from cepheid.model import Exponential, Model
from reference.written_streams import found_between, matches, named, planned, stream

AB = "PATTERN SEQ(A a, B b) "
BOUNDS = {"lower": "lower", "upper": "upper"}


class TestNonOverlap:
    def test_the_earliest_end_wins(self) -> None:
        assert matches(stream("a1 b2 b3"), AB + "OUTPUT NON-OVERLAP") == {"a1 b2"}

    def test_then_the_latest_start(self) -> None:
        assert matches(stream("a1 a2 b3"), AB + "OUTPUT NON-OVERLAP") == {"a2 b3"}

    def test_then_the_order_of_events(self) -> None:
        assert matches(stream("a1 b2 b3 c4"), "PATTERN SEQ(A a, B b, C c) OUTPUT NON-OVERLAP") == {"a1 b2 c4"}

    def test_concurrent_events_by_their_values(self) -> None:
        tokens = ["a1:x=5", "a1':x=4", "b2:x=0"]
        for arrival in itertools.permutations(tokens):
            assert matches(stream(" ".join(arrival)), AB + "OUTPUT NON-OVERLAP") == {"a1 b2"}

    def test_the_next_match_must_start_after_the_last_reported_one_ended(self) -> None:
        query = "PATTERN SEQ(A x, A y) OUTPUT NON-OVERLAP"
        assert matches(stream("a1 a2 a3 a4"), query) == {"a1 a2", "a3 a4"}
        assert matches(stream("a1 b2 a2 b3 a3 b4"), AB + "OUTPUT NON-OVERLAP") == {"a1 b2", "a3 b4"}

    def test_a_match_that_was_not_reported_keeps_nobody_out(self) -> None:
        """a1 b4 overlaps a2 b3 and is dropped; it does not keep a4 b5 out, which begins when it ends."""
        assert matches(stream("a1 a2 b3 a4 b4 b5"), AB + "OUTPUT NON-OVERLAP") == {"a2 b3", "a4 b5"}

    def test_each_partition_by_itself(self) -> None:
        events = stream("a1:id=1 a2:id=2 b3:id=1 b4:id=2")
        assert matches(events, AB + "WHERE [id] OUTPUT NON-OVERLAP") == {"a1 b3", "a2 b4"}

    def test_concurrent_with_the_end_is_not_after_it(self) -> None:
        assert matches(stream("a1 b2 a2' b3"), AB + "OUTPUT NON-OVERLAP") == {"a1 b2"}

    def test_with_tiebreakers(self) -> None:
        events = stream("a1:seq=0 b2:seq=1 a2:seq=2 b3:seq=0")
        assert matches(events, AB + "OUTPUT NON-OVERLAP", tiebreak=("seq",)) == {"a1 b2", "a2 b3"}

    def test_matches_killed_at_the_end_of_their_window_do_not_compete(self) -> None:
        query = "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10 OUTPUT NON-OVERLAP"
        events = stream("a1 b2 a3 b4 n5 a20 b21")
        assert matches(events, query) == {"a20 b21"}

    def test_a_postponed_match_is_decided_one_window_after_its_end(self) -> None:
        """a8 b9 is known at 18, but a match that ends before 9 could still be decided until then."""
        plan, events = planned(stream("a1 b3 a8 b9"), "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10 OUTPUT NON-OVERLAP")
        found = found_between(plan, events)
        assert dict(zip(named(events, found), found.completion.tolist(), strict=True)) == {"a1 b3": 13, "a8 b9": 19}

    @pytest.mark.parametrize("negation", ["", ", !(N n)"])
    def test_the_ends_carry_over_from_one_interval_to_the_next(self, negation: str) -> None:
        text = "a1:id=1 a2:id=2 b3:id=1 a4:id=2 b5:id=2 a6:id=1 b6:id=2 n7:id=2 b8:id=1 b9:id=1"
        query = f"PATTERN SEQ(A a, B b{negation}) WHERE [id] WITHIN 6 OUTPUT NON-OVERLAP"
        plan, events = planned(stream(text), query)
        whole = named(events, found_between(plan, events))
        assert whole
        for cut in range(20):
            early = found_between(plan, events, until=cut, ended={})
            ended = reference.ends(plan, events, early)
            # What ended before the cut may be forgotten, but for where it ended.
            late = found_between(plan, events, after=cut, ended=ended)
            assert named(events, early) + named(events, late) == whole

    def test_not_for_imprecise_time(self) -> None:
        events = stream("a1[1,2] b3[2,3]")
        with pytest.raises(CepheidError, match="NON-OVERLAP"):
            matches(events, AB + "WITHIN 5 OUTPUT NON-OVERLAP", lower="lower", upper="upper")


class TestMaximal:
    MODEL = Model(loss=0.2, gaps={"b": Exponential(mean=2), "c": Exponential(mean=2)})

    def test_a_match_that_saw_less_is_dropped(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 10 THRESHOLD 0.01 "
        events = stream("a1 b3 c5")
        assert matches(events, query, model=self.MODEL) == {"a1 b3 c5", "a1 - c5", "- b3 c5", "- - c5"}
        assert matches(events, query + "OUTPUT MAXIMAL", model=self.MODEL) == {"a1 b3 c5"}

    def test_only_a_reported_match_drops_another(self) -> None:
        """Without losses of b there is nothing but the incomplete match for the killed complete one."""
        query = "PATTERN SEQ(A a, B b, C c) WHERE b.x[1] = 1 WITHIN 10 THRESHOLD 0.01 OUTPUT MAXIMAL"
        assert matches(stream("a1:x=1 b3:x=2 c5:x=1"), query, model=self.MODEL) == {"a1 - c5"}

    def test_other_events_in_the_same_place_do_not(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 10 THRESHOLD 0.01 OUTPUT MAXIMAL"
        assert matches(stream("a1 b3 b4 c5"), query, model=self.MODEL) == {"a1 b3 c5", "a1 b4 c5"}

    def test_a_smaller_kleene_group_is_dropped(self) -> None:
        query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { } WITHIN 10 OUTPUT MAXIMAL"
        assert matches(stream("a1 a2 b3"), query) == {"a1+a2 b3"}

    def test_a_group_at_the_end_is_decided_when_it_cannot_grow_any_more(self) -> None:
        query = "PATTERN SEQ(A a, B+ b[]) WITHIN 5 OUTPUT MAXIMAL"
        plan, events = planned(stream("a1 b2 b3 b7"), query)
        found = found_between(plan, events)
        assert named(events, found) == ["a1 b2+b3"]
        assert found.completion.tolist() == [6]


class TestTop:
    EVENTS = stream("a1[1,4]:id=1 b2[2,3]:id=1 b3[2,5]:id=1 b4[9,9]:id=1 a5[1,1]:id=2 b6[2,2]:id=2")

    def test_the_most_confident_of_each_partition(self) -> None:
        query = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20 OUTPUT TOP {} BY CONFIDENCE"
        assert matches(self.EVENTS, query.format(1), **BOUNDS) == {"a1 b4", "a5 b6"}
        assert matches(self.EVENTS, query.format(2), **BOUNDS) == {"a1 b4", "a1 b3", "a5 b6"}

    def test_it_is_known_at_the_end_only(self) -> None:
        plan, events = planned(self.EVENTS, AB + "WITHIN 20 OUTPUT TOP 1 BY CONFIDENCE", **BOUNDS)
        assert len(found_between(plan, events, until=1000)) == 0
        assert len(found_between(plan, events)) == 1

    def test_it_needs_imprecise_time(self) -> None:
        with pytest.raises(QueryError, match="imprecise"):
            matches(stream("a1 b2"), AB + "OUTPUT TOP 1 BY CONFIDENCE")


def test_all_is_the_default() -> None:
    assert matches(stream("a1 b2 b3"), AB) == matches(stream("a1 b2 b3"), AB + "OUTPUT ALL") == {"a1 b2", "a1 b3"}


def test_return_picks_what_is_output() -> None:
    query = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { } RETURN b.x, sum(a[].x) AS total, a[1].name AS first"
    found = cepheid.match(stream("a1:x=1 a2:x=2 b3:x=9"), query, engine="reference").to_pylist()
    assert sorted(found, key=lambda row: row["total"]) == [
        {"match_start": 2, "match_end": 3, "x": 9, "total": 2, "first": "a2"},
        {"match_start": 1, "match_end": 3, "x": 9, "total": 3, "first": "a1"},
    ]
