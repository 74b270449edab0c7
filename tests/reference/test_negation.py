"""Negated components: docs/semantics.md, "Negation"."""

from __future__ import annotations

import pytest

from cepheid import QueryError
from cepheid.model import Model
from reference.written_streams import matches, stream


class TestMiddle:
    QUERY = "PATTERN SEQ(A a, !(N n), B b)"

    def test_an_event_between_kills(self) -> None:
        assert matches(stream("a1 n2 b3"), self.QUERY) == set()

    def test_the_interval_is_open(self) -> None:
        assert matches(stream("a1 n1 n3 b3"), self.QUERY) == {"a1 b3"}

    def test_tiebreakers_make_the_interval_finer(self) -> None:
        events = stream("a1:seq=1 n1:seq=2 b3:seq=1 a4:seq=2 n4:seq=1 n6:seq=3 b6:seq=2")
        assert matches(events, self.QUERY + " WITHIN 4", tiebreak=("seq",)) == {"a4 b6"}

    def test_only_events_that_pass_every_predicate_on_the_component(self) -> None:
        events = stream("a1:x=1,y=1 n2:x=1,y=2 b3:x=1,y=1")
        assert matches(events, self.QUERY + " WHERE n.x = a.x AND n.y = b.y") == {"a1 b3"}
        assert matches(events, self.QUERY + " WHERE n.x = a.x AND n.y > b.y") == set()

    def test_unknown_does_not_pass(self) -> None:
        events = stream("a1:x=1 n2:x=NULL b3:x=1")
        assert matches(events, self.QUERY + " WHERE n.x = a.x") == {"a1 b3"}

    def test_any_of_several_types(self) -> None:
        query = "PATTERN SEQ(A a, !(ANY(M, N) n), B b) WHERE n.x = a.x"
        assert matches(stream("a1:x=1 m2:x=2 n3:x=1 b4:x=1"), query) == set()
        assert matches(stream("a1:x=1 m2:x=2 n3:x=3 b4:x=1"), query) == {"a1 b4"}

    def test_an_attribute_that_a_type_of_any_lacks_counts_as_passed(self) -> None:
        query = "PATTERN SEQ(A a, !(ANY(M, N) n), B b) WHERE n.x = a.x"
        assert matches(stream("a1:x=1 m2:x=NULL b4:x=1"), query) == set()

    def test_two_negated_components_in_one_place(self) -> None:
        query = "PATTERN SEQ(A a, !(M m), !(N n), B b)"
        assert matches(stream("a1 b2 m3 b4"), query) == {"a1 b2"}
        assert matches(stream("a1 n2 b3"), query) == set()

    def test_every_gap_has_its_own(self) -> None:
        query = "PATTERN SEQ(A a, !(M m), B b, !(N n), C c)"
        assert matches(stream("a1 n2 b3 m4 c5"), query) == {"a1 b3 c5"}
        assert matches(stream("a1 m2 b3 c5"), query) == set()

    def test_an_event_may_be_positive_and_negative(self) -> None:
        """No A between the chosen ones: only neighbours match."""
        assert matches(stream("a1 a2 a3"), "PATTERN SEQ(A x, !(A n), A y)") == {"a1 a2", "a2 a3"}


class TestTiedTogether:
    """Negated components in one condition kill only together: by different events, each in its own interval."""

    QUERY = "PATTERN SEQ(A a, !(M m), !(N n), B b) WHERE m.x = n.x"

    def test_a_pair_that_passes_the_condition_kills(self) -> None:
        assert matches(stream("a1:x=0 m2:x=1 n3:x=1 b4:x=0"), self.QUERY) == set()

    def test_one_of_them_alone_does_not(self) -> None:
        assert matches(stream("a1:x=0 m2:x=1 b4:x=0"), self.QUERY) == {"a1 b4"}
        assert matches(stream("a1:x=0 m2:x=1 n3:x=2 b4:x=0"), self.QUERY) == {"a1 b4"}

    def test_their_order_does_not_matter_where_the_interval_is_the_same(self) -> None:
        assert matches(stream("a1:x=0 n2:x=1 m3:x=1 b4:x=0"), self.QUERY) == set()

    def test_any_pair_will_do(self) -> None:
        assert matches(stream("a1:x=0 m2:x=1 m2':x=2 n3:x=3 n3':x=2 b4:x=0"), self.QUERY) == set()

    def test_each_in_its_own_interval(self) -> None:
        query = "PATTERN SEQ(A a, !(M m), B b, !(N n), C c) WHERE m.x < n.x"
        assert matches(stream("a1:x=0 m2:x=1 b3:x=0 n4:x=2 c5:x=0"), query) == set()
        assert matches(stream("a1:x=0 n2:x=2 b3:x=0 m4:x=1 c5:x=0"), query) == {"a1 b3 c5"}
        assert matches(stream("a1:x=0 m2:x=2 b3:x=0 n4:x=1 c5:x=0"), query) == {"a1 b3 c5"}

    def test_different_events(self) -> None:
        query = "PATTERN SEQ(A a, !(N m), !(N n), B b) WHERE m.x = n.x"
        assert matches(stream("a1:x=0 n2:x=1 b4:x=0"), query) == {"a1 b4"}
        assert matches(stream("a1:x=0 n2:x=1 n3:x=1 b4:x=0"), query) == set()

    def test_each_must_pass_its_own_conditions(self) -> None:
        query = self.QUERY + " AND m.x > 1 AND n.y = a.x"
        assert matches(stream("a1:x=0,y=0 m2:x=2,y=0 n3:x=2,y=0 b4:x=0,y=0"), query) == set()
        assert matches(stream("a1:x=0,y=0 m2:x=2,y=0 n3:x=2,y=1 b4:x=0,y=0"), query) == {"a1 b4"}
        assert matches(stream("a1:x=0,y=0 m2:x=1,y=0 n3:x=1,y=0 b4:x=0,y=0"), query) == {"a1 b4"}

    def test_in_a_chain(self) -> None:
        query = "PATTERN SEQ(A a, !(M m), !(N n), !(O o), B b) WHERE m.x = n.x AND n.y = o.y"
        assert matches(stream("a1:x=0,y=0 m2:x=1,y=0 n2:x=1,y=2 b4:x=0,y=0"), query) == {"a1 b4"}
        assert matches(stream("a1:x=0,y=0 m2:x=1,y=0 n2:x=1,y=2 o3:x=9,y=2 b4:x=0,y=0"), query) == set()

    def test_others_kill_alone(self) -> None:
        query = "PATTERN SEQ(A a, !(M m), !(N n), !(O o), B b) WHERE m.x = n.x"
        assert matches(stream("a1:x=0 o2:x=1 b4:x=0"), query) == set()

    def test_at_the_edges_of_the_window(self) -> None:
        query = "PATTERN SEQ(!(M m), A a, !(N n)) WHERE m.x = n.x WITHIN 5"
        assert matches(stream("m1:x=1 a5:x=0 n9:x=1"), query) == set()
        assert matches(stream("m1:x=1 a5:x=0 n10:x=1"), query) == {"a5"}

    def test_under_or(self) -> None:
        """In the second disjunct nothing ties them, so each of them kills it alone."""
        query = "PATTERN SEQ(A a, !(M m), !(N n), B b) WHERE m.x = n.x OR a.x = 1"
        assert matches(stream("a1:x=1 m2:x=1 b4:x=0"), query) == {"a1 b4"}
        assert matches(stream("a1:x=1 m2:x=1 n3:x=1 b4:x=0"), query) == set()

    def test_not_with_missing_events(self) -> None:
        query = self.QUERY + " WITHIN 10"
        with pytest.raises(QueryError, match="separately"):
            matches(stream("a1:x=0 b4:x=0"), query, model=Model(loss=0.1))
        with pytest.raises(QueryError, match="separately"):
            matches(stream("a1:x=0 b4:x=0"), query + " THRESHOLD 0.1", model=Model(loss=0.1))


class TestStart:
    QUERY = "PATTERN SEQ(!(N n), A a, B b) WITHIN 5"

    def test_looks_back_one_window_from_the_last_event(self) -> None:
        assert matches(stream("n1 a3 b6"), self.QUERY) == {"a3 b6"}
        assert matches(stream("n2 a3 b6"), self.QUERY) == set()

    def test_up_to_the_first_event(self) -> None:
        assert matches(stream("a3 n3 n4 b6"), self.QUERY) == {"a3 b6"}

    def test_needs_a_window(self) -> None:
        with pytest.raises(QueryError, match="window"):
            matches(stream("n1 a3"), "PATTERN SEQ(!(N n), A a)")

    def test_in_a_window_of_events(self) -> None:
        query = "PATTERN SEQ(!(N n), A a, B b) WITHIN 3 EVENTS"
        assert matches(stream("n1 x2 a3 b6"), query) == {"a3 b6"}
        assert matches(stream("n1 a3 b6"), query) == set()


class TestEnd:
    QUERY = "PATTERN SEQ(A a, B b, !(N n)) WITHIN 5"

    def test_looks_ahead_one_window_from_the_first_event(self) -> None:
        assert matches(stream("a1 b3 n5"), self.QUERY) == set()
        assert matches(stream("a1 b3 n6"), self.QUERY) == {"a1 b3"}

    def test_from_the_last_event_on(self) -> None:
        assert matches(stream("a1 n2 n3 b3"), self.QUERY) == {"a1 b3"}

    def test_the_end_of_the_table_counts_as_time_having_passed(self) -> None:
        assert matches(stream("a1 b3"), self.QUERY) == {"a1 b3"}

    def test_needs_a_window(self) -> None:
        with pytest.raises(QueryError, match="window"):
            matches(stream("a1 n3"), "PATTERN SEQ(A a, !(N n))")

    def test_in_a_window_of_events(self) -> None:
        query = "PATTERN SEQ(A a, B b, !(N n)) WITHIN 3 EVENTS"
        assert matches(stream("a1 b2 n3"), query) == set()
        assert matches(stream("a1 b2 x3 n4"), query) == {"a1 b2"}
        assert matches(stream("a1 b2"), query) == {"a1 b2"}

    def test_at_both_ends(self) -> None:
        query = "PATTERN SEQ(!(M m), A a, !(N n)) WITHIN 3"
        assert matches(stream("a5"), query) == {"a5"}
        assert matches(stream("m2 a5 n8"), query) == {"a5"}
        assert matches(stream("m3 a5"), query) == set()
        assert matches(stream("a5 n7"), query) == set()


class TestNextToKleene:
    def test_counts_from_the_last_event_of_the_group(self) -> None:
        query = "PATTERN SEQ(A+ a[], !(N n), B b) WHERE skip_till_any_match { } WITHIN 9"
        assert matches(stream("a1 n2 a3 b4"), query) == {"a3 b4", "a1+a3 b4"}

    def test_counts_to_the_first_event_of_the_group(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B+ b[]) WHERE skip_till_any_match { } WITHIN 9"
        assert matches(stream("a1 b2 n3 b4"), query) == {"a1 b2", "a1 b2+b4"}


class TestOr:
    """The match stands if for some disjunct its positive part holds and nothing passes its negative part."""

    def test_each_disjunct_is_judged_by_itself(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B b) WHERE (a.x = 1 AND n.y = 1) OR (a.x = 1 AND n.y = 2)"
        assert matches(stream("a1:x=1,y=0 n2:x=0,y=1 b3:x=0,y=0"), query) == {"a1 b3"}
        assert matches(stream("a1:x=1,y=0 n2:x=0,y=1 n2':x=0,y=2 b3:x=0,y=0"), query) == set()

    def test_the_positive_part_must_hold(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B b) WHERE (a.x = 1 AND n.y = 1) OR (a.x = 2 AND n.y = 2)"
        assert matches(stream("a1:x=1,y=0 n2:x=0,y=1 b3:x=0,y=0"), query) == set()
        assert matches(stream("a1:x=2,y=0 n2:x=0,y=1 b3:x=0,y=0"), query) == {"a1 b3"}

    def test_a_disjunct_that_does_not_mention_the_component_is_killed_by_all_its_events(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B b) WHERE a.x = 1 OR (a.x = 2 AND n.y = 2)"
        assert matches(stream("a1:x=1,y=0 n2:x=0,y=1 b3:x=0,y=0"), query) == set()
        assert matches(stream("a1:x=2,y=0 n2:x=0,y=1 b3:x=0,y=0"), query) == {"a1 b3"}

    def test_two_components_must_not_share_the_disjunct_that_saves_them(self) -> None:
        """One disjunct must survive all negated components, not one disjunct for each of them."""
        query = "PATTERN SEQ(A a, !(M m), B b, !(N n), C c) WHERE (m.y = 1 AND n.y = 1) OR (m.y = 2 AND n.y = 2)"
        assert matches(stream("a1:y=0 m2:y=1 b3:y=0 n4:y=2 c5:y=0"), query) == set()
        assert matches(stream("a1:y=0 m2:y=1 b3:y=0 n4:y=1 c5:y=0"), query) == {"a1 b3 c5"}

    def test_or_about_positive_events_is_judged_for_each_element_of_a_group(self) -> None:
        where = "skip_till_next_match { (a.x = 1 OR a.y = 1) AND n.x = 7 }"
        query = f"PATTERN SEQ(A+ a[], !(N n), B b) WHERE {where} WITHIN 9"
        assert "a1+a2 b3" in matches(stream("a1:x=1,y=0 a2:x=0,y=1 b3:x=0,y=0"), query)
