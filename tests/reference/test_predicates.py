"""Predicates, NULL, ANY and equivalence tests: docs/semantics.md, "Predicates"."""

from __future__ import annotations

from typing import Any

import pytest

import cepheid
from reference.written_streams import judged, matches, stream

A = "EVENT A a WHERE "


def passes(condition: str, values: str) -> bool:
    """Does an event with these values pass a condition on it alone?"""
    kinds = stream(f"a1:{values} z9:x=1,y=1,f=0.5,s=text")
    return matches(kinds, A + condition) == {"a1"}


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("a.x = 3", "x=3", True),
        ("a.x == 3", "x=4", False),
        ("a.x <> 3", "x=4", True),
        ("a.x ≠ 3 ∧ a.x ≤ 4", "x=4", True),
        ("a.x ≥ 5 ∨ a.x < 0", "x=4", False),
        ("NOT a.x = 3", "x=4", True),
        ("¬(a.x = 3 AND a.y = 1)", "x=3,y=2", True),
        ("a.x IN (1, 2, 3)", "x=2", True),
        ("a.x NOT IN (1, 2, 3)", "x=2", False),
        ("a.x ∈ {1, 2}", "x=3", False),
        ("a.x BETWEEN 2 AND 4", "x=4", True),
        ("a.x NOT BETWEEN 2 AND 4", "x=4", False),
        ("a.x + 2 * a.y = 7", "x=1,y=3", True),
        ("a.x / a.y = 0.5", "x=1,y=2", True),
        ("a.x % 3 = 1", "x=7", True),
        ("a.x % 3 = -1", "x=-7", True),
        ("a.f = 80%", "f=0.8", True),
        ("a.s = 'text'", "s=text", True),
        ("abs(a.x) = 4", "x=-4", True),
        ("coalesce(a.x, 5) = 5", "x=NULL", True),
        ("a.x IS NULL", "x=NULL", True),
        ("a.x IS NOT NULL", "x=NULL", False),
    ],
)
def test_conditions(condition: str, values: str, expected: bool) -> None:
    assert passes(condition, values) is expected


class TestNull:
    """A comparison with NULL is unknown, and unknown does not select."""

    @pytest.mark.parametrize(
        "condition",
        [
            "a.x = 3",
            "a.x != 3",
            "NOT a.x = 3",
            "a.x = a.x",
            "a.x = NULL",
            "a.x IN (1, 2)",
            "a.x NOT IN (1, 2)",
            "NOT a.x IN (1, 2)",
            "a.x BETWEEN 1 AND 3",
            "a.x NOT BETWEEN 1 AND 3",
            "a.x + 1 > 0",
            "a.x * 0 = 0",
            "abs(a.x) >= 0",
            "NOT (a.x > 1 AND a.y = 1)",
            "(a.x > 1) = FALSE",
            "(a.x > 1 AND a.y = 1) = FALSE",
            "(a.x > 1 OR a.y = 2) = FALSE",
            "(NOT a.x > 1) = TRUE",
        ],
    )
    def test_unknown(self, condition: str) -> None:
        assert not passes(condition, "x=NULL,y=1")

    @pytest.mark.parametrize(
        "condition",
        [
            "a.x = 3 OR a.y = 1",
            "NOT (a.x > 1 AND a.y = 2)",
            "(a.x > 1 AND a.y = 2) = FALSE",
            "(a.x > 1 OR a.y = 1) = TRUE",
            "a.y IN (1, NULL)",
            "a.y NOT BETWEEN 2 AND NULL",
        ],
    )
    def test_known_all_the_same(self, condition: str) -> None:
        assert passes(condition, "x=NULL,y=1")

    def test_not_in_a_list_with_null(self) -> None:
        assert not passes("a.y NOT IN (2, NULL)", "x=1,y=1")

    def test_division_by_zero_is_unknown(self) -> None:
        assert not passes("a.x / a.y > 0", "x=1,y=0")
        assert not passes("a.x % a.y = 0", "x=1,y=0")

    def test_not_a_number_counts_as_null(self) -> None:
        assert passes("a.f IS NULL", "f=nan")
        assert not passes("a.f != 1", "f=nan")

    def test_an_equivalence_test_does_not_hold_on_null(self) -> None:
        events = stream("a1:id=NULL b2:id=NULL a3:id=1 b4:id=1")
        assert matches(events, "PATTERN SEQ(A a, B b) WHERE [id]") == {"a3 b4"}


class TestAny:
    """On a component declared with ANY, a comparison with an attribute that is NULL there counts as true."""

    EVENTS = stream("a1:id=1,x=5 b2:id=1,x=NULL c3:id=1,x=2 c4:id=1,x=9")

    def test_a_comparison_holds(self) -> None:
        assert matches(self.EVENTS, "PATTERN SEQ(A a, ANY(B, C) b) WHERE a.x < b.x") == {"a1 b2", "a1 c4"}
        assert matches(self.EVENTS, "PATTERN SEQ(A a, ANY(B, C) b) WHERE NOT a.x < b.x") == {"a1 b2", "a1 c3"}

    def test_a_single_type_has_no_such_rule(self) -> None:
        assert matches(self.EVENTS, "PATTERN SEQ(A a, B b) WHERE a.x < b.x") == set()

    def test_membership_and_between(self) -> None:
        assert matches(self.EVENTS, "PATTERN SEQ(A a, ANY(B, C) b) WHERE b.x IN (9)") == {"a1 b2", "a1 c4"}
        assert matches(self.EVENTS, "PATTERN SEQ(A a, ANY(B, C) b) WHERE b.x BETWEEN 0 AND 3") == {"a1 b2", "a1 c3"}

    def test_is_null_is_no_comparison(self) -> None:
        assert matches(self.EVENTS, "PATTERN SEQ(A a, ANY(B, C) b) WHERE b.x IS NULL") == {"a1 b2"}
        assert matches(self.EVENTS, "PATTERN SEQ(A a, ANY(B, C) b) WHERE b.x IS NOT NULL") == {"a1 c3", "a1 c4"}

    def test_equivalence_tests_never_hold_on_null(self) -> None:
        """An event without the key belongs to no partition."""
        events = stream("a1:id=1 b2:id=NULL c3:id=2 c3':id=1 d4:id=1 d5:id=2")
        assert matches(events, "PATTERN SEQ(A a, ANY(B, C) b, D d) WHERE [id]") == {"a1 c3' d4"}
        assert matches(events, "PATTERN SEQ(A a, ANY(B, C) b, D d) WHERE [id = 1]") == {"a1 c3' d4"}
        assert matches(events, "PATTERN SEQ(A a, ANY(B, C) b, D d) WHERE [id] OR a.id = 7") == {"a1 c3' d4"}

    def test_nor_do_they_for_a_negated_component(self) -> None:
        query = "PATTERN SEQ(A a, !(ANY(B, C) b), D d) WHERE [id]"
        assert matches(stream("a1:id=1 b2:id=NULL d4:id=1"), query) == {"a1 d4"}
        assert matches(stream("a1:id=1 b2:id=1 d4:id=1"), query) == set()

    def test_a_null_elsewhere_stays_unknown(self) -> None:
        events = stream("a1:x=NULL b2:x=1")
        assert matches(events, "PATTERN SEQ(A a, ANY(B, C) b) WHERE a.x < b.x") == set()

    def test_the_element_before_in_a_group(self) -> None:
        events = stream("b1:x=1 c2:x=NULL b3:x=0")
        query = "PATTERN ANY(B, C)+ b[] WHERE skip_till_any_match { b[i].x > b[i-1].x }"
        assert matches(events, query) == {"b1", "c2", "b3", "b1+c2", "c2+b3", "b1+c2+b3"}

    def test_aggregates_pass_over_nulls_by_themselves(self) -> None:
        events = stream("b1:x=NULL c2:x=1")
        query = "PATTERN ANY(B, C)+ b[] WHERE skip_till_any_match { max(b[].x) > 1 }"
        assert matches(events, query) == set()


class TestLacks:
    """A call says which types lack which attributes: exactly these comparisons hold, every other NULL is SQL's."""

    EVENTS = stream("a1:id=1,x=5 b2:id=1,x=NULL c3:id=1,x=NULL c4:id=1,x=9")

    def test_exactly_what_is_named(self) -> None:
        query = "PATTERN SEQ(A a, ANY(B, C) b) WHERE a.x < b.x"
        assert judged(self.EVENTS, query) == {"a1 b2", "a1 c3", "a1 c4"}
        assert judged(self.EVENTS, query, lacks={"B": ["x"]}) == {"a1 b2", "a1 c4"}
        assert judged(self.EVENTS, query, lacks={"B": ["id"]}) == {"a1 c4"}

    def test_by_the_type_of_the_event_however_the_component_is_declared(self) -> None:
        assert judged(self.EVENTS, "PATTERN SEQ(A a, B b) WHERE a.x < b.x", lacks={"B": ["x"]}) == {"a1 b2"}

    def test_in_equivalence_tests_too(self) -> None:
        events = stream("a1:id=1 b2:id=NULL c3:id=NULL d4:id=1 d5:id=2")
        query = "PATTERN SEQ(A a, ANY(B, C) b, D d) WHERE [id]"
        assert judged(events, query, lacks={"B": ["id"]}) == {"a1 b2 d4"}
        assert judged(events, "PATTERN SEQ(A a, ANY(B, C) b, D d) WHERE [id = 1]", lacks={"B": ["id"]}) == {"a1 b2 d4"}
        assert judged(events, query.replace("[id]", "[id] OR a.id = 7"), lacks={"B": ["id"]}) == {"a1 b2 d4"}

    def test_a_negated_event_that_lacks_the_key_kills_in_every_partition(self) -> None:
        query = "PATTERN SEQ(A a, !(ANY(B, C) b), D d) WHERE [id]"
        events = stream("a1:id=1 a1':id=2 b2:id=NULL d4:id=1 d5:id=2")
        assert judged(events, query) == {"a1 d4", "a1' d5"}
        assert judged(events, query, lacks={"B": ["id"]}) == set()

    @pytest.mark.parametrize("lacks", [{"B": "x"}, {"B": ["nothing"]}])
    def test_what_makes_no_sense(self, lacks: Any) -> None:
        with pytest.raises(cepheid.DataError, match="lacks"):
            judged(self.EVENTS, "PATTERN SEQ(A a, B b)", lacks=lacks)


class TestEquivalence:
    def test_equal_on_all_components_negative_ones_included(self) -> None:
        events = stream("a1:id=1 n2:id=2 b3:id=1")
        assert matches(events, "PATTERN SEQ(A a, !(N n), B b) WHERE [id]") == {"a1 b3"}
        events = stream("a1:id=1 n2:id=1 b3:id=1")
        assert matches(events, "PATTERN SEQ(A a, !(N n), B b) WHERE [id]") == set()

    def test_with_a_fixed_value(self) -> None:
        events = stream("a1:id=1 b2:id=1 a3:id=2 b4:id=2")
        assert matches(events, "PATTERN SEQ(A a, B b) WHERE [id = 2]") == {"a3 b4"}
        events = stream("a1:id=1 n2:id=2 b3:id=1")
        assert matches(events, "PATTERN SEQ(A a, !(N n), B b) WHERE [id = 1]") == {"a1 b3"}

    def test_several(self) -> None:
        events = stream("a1:p=1,q=1 b2:p=1,q=2 b3:p=1,q=1")
        assert matches(events, "PATTERN SEQ(A a, B b) WHERE [p, q]") == {"a1 b3"}

    def test_under_or_it_is_a_condition_like_any_other(self) -> None:
        events = stream("a1:id=1,x=0 b2:id=2,x=0 b3:id=1,x=0 b4:id=2,x=7")
        assert matches(events, "PATTERN SEQ(A a, B b) WHERE [id] OR b.x = 7") == {"a1 b3", "a1 b4"}

    def test_an_empty_block_is_no_predicate(self) -> None:
        assert matches(stream("a1 b2"), "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { }") == {"a1 b2"}


def test_user_functions_and_list_columns() -> None:
    @cepheid.function
    def close_to(x: float, y: float) -> bool:
        return abs(x - y) < 2

    events = stream("a1:x=1 b2:x=2 b3:x=9", history=[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 2.0, 1.0]])
    assert matches(events, "PATTERN SEQ(A a, B b) WHERE close_to(a.x, b.x)") == {"a1 b2"}
    assert matches(events, "PATTERN SEQ(A a, B b) WHERE Corr(a.history, b.history) > 0.9") == {"a1 b2"}
