"""Event selection strategies and Kleene plus: docs/semantics.md, "Strategies" and "Kleene plus"."""

from __future__ import annotations

import pytest

import cepheid
from reference.written_streams import matches, stream


def run(strategy: str, pattern: str, events: str, where: str = "", rest: str = "") -> set[str]:
    return matches(stream(events), f"PATTERN {pattern} WHERE {strategy} {{ {where} }} {rest}")


class TestStrictContiguity:
    def test_no_event_of_any_kind_lies_between(self) -> None:
        assert run("strict_contiguity", "SEQ(A a, B b)", "a1 b2 a3 x4 b5") == {"a1 b2"}

    def test_the_next_instant_that_occurs_not_the_next_tick(self) -> None:
        assert run("strict_contiguity", "SEQ(A a, B b)", "a1 b9") == {"a1 b9"}

    def test_concurrent_events_each_continue_the_run(self) -> None:
        assert run("strict_contiguity", "SEQ(A a, B b)", "a1 b2 b2' x2 b3") == {"a1 b2", "a1 b2'"}

    def test_events_concurrent_with_a_chosen_one_do_not_lie_between(self) -> None:
        assert run("strict_contiguity", "SEQ(A a, B b)", "a1 x1 b2") == {"a1 b2"}

    def test_runs_start_everywhere(self) -> None:
        assert run("strict_contiguity", "SEQ(A x, A y)", "a1 a2 a3") == {"a1 a2", "a2 a3"}

    def test_with_an_equivalence_test_other_partitions_still_stand_between(self) -> None:
        assert run("strict_contiguity", "SEQ(A a, B b)", "a1:id=1 x2:id=2 b3:id=1", "[id]") == set()


class TestPartitionContiguity:
    def test_other_partitions_do_not_stand_between(self) -> None:
        events = "a1:id=1 x2:id=2 b3:id=1 a4:id=2 x5:id=2 b6:id=2"
        assert run("partition_contiguity", "SEQ(A a, B b)", events, "[id]") == {"a1 b3"}

    def test_without_equivalence_test_it_is_strict_contiguity(self) -> None:
        assert run("partition_contiguity", "SEQ(A a, B b)", "a1 b2 a3 x4 b5") == {"a1 b2"}

    def test_irrelevant_events_of_the_partition_stand_between(self) -> None:
        assert run("partition_contiguity", "SEQ(A a, B b)", "a1:id=1 x2:id=1 b3:id=1", "[id]") == set()


class TestSkipTillNext:
    def test_passes_what_it_cannot_take(self) -> None:
        assert run("skip_till_next_match", "SEQ(A a, B b)", "a1 x2 b3 b4") == {"a1 b3"}

    def test_what_it_can_take_depends_on_the_predicates(self) -> None:
        assert run("skip_till_next_match", "SEQ(A a, B b)", "a1:x=2 b2:x=1 b3:x=3 b4:x=4", "b.x > a.x") == {"a1 b3"}

    def test_concurrent_events_each_continue_the_run(self) -> None:
        assert run("skip_till_next_match", "SEQ(A a, B b)", "a1 b2 b2' b3") == {"a1 b2", "a1 b2'"}

    def test_runs_start_everywhere(self) -> None:
        assert run("skip_till_next_match", "SEQ(A a, B b)", "a1 a2 b3") == {"a1 b3", "a2 b3"}

    def test_it_judges_one_state_at_a_time(self) -> None:
        """b2 is taken, so c needs b2's value: the run does not go back to b3."""
        events = "a1:x=0 b2:x=5 b3:x=1 c4:x=1"
        assert run("skip_till_next_match", "SEQ(A a, B b, C c)", events, "b.x = c.x") == set()

    def test_negation_does_not_make_it_try_again(self) -> None:
        assert run("skip_till_next_match", "SEQ(A a, !(N n), B b)", "a1 n2 b3 b4") == set()

    def test_an_event_outside_the_window_cannot_be_taken(self) -> None:
        assert run("skip_till_next_match", "SEQ(A a, B b)", "a1 b9", rest="WITHIN 5") == set()


class TestSkipTillAny:
    def test_every_combination(self) -> None:
        assert run("skip_till_any_match", "SEQ(A a, B b)", "a1 a2 b3 b4") == {"a1 b3", "a1 b4", "a2 b3", "a2 b4"}

    def test_it_is_the_default(self) -> None:
        assert matches(stream("a1 b3 b4"), "PATTERN SEQ(A a, B b)") == {"a1 b3", "a1 b4"}

    @pytest.mark.parametrize("written", ["skip_till_next_match(a, b)", "skip-till-next-match(a, b)"])
    def test_a_strategy_can_be_a_conjunct(self, written: str) -> None:
        query = f"PATTERN SEQ(A a, B b) WHERE a.x = 1 AND {written}"
        assert matches(stream("a1:x=1 b3:x=0 b4:x=0"), query) == {"a1 b3"}


class TestKleene:
    EVENTS = "a1 a2 b3 a4 b5"

    def test_skip_till_next(self) -> None:
        found = run("skip_till_next_match", "SEQ(A+ a[], B b)", self.EVENTS)
        assert found == {"a1+a2 b3", "a2 b3", "a1+a2+a4 b5", "a2+a4 b5", "a4 b5"}

    def test_skip_till_any(self) -> None:
        groups_before_b3 = {"a1", "a2", "a1+a2"}
        groups_before_b5 = groups_before_b3 | {"a4", "a1+a4", "a2+a4", "a1+a2+a4"}
        expected = {f"{group} b3" for group in groups_before_b3} | {f"{group} b5" for group in groups_before_b5}
        assert run("skip_till_any_match", "SEQ(A+ a[], B b)", self.EVENTS) == expected

    def test_contiguity(self) -> None:
        assert run("strict_contiguity", "SEQ(A+ a[], B b)", self.EVENTS) == {"a1+a2 b3", "a2 b3", "a4 b5"}
        assert run("strict_contiguity", "SEQ(A+ a[], B b)", "a1 x2 a3 b4") == {"a3 b4"}

    def test_an_open_group_lives_on_after_a_close(self) -> None:
        assert run("skip_till_next_match", "SEQ(A+ a[], B b)", "a1 b2 b3") == {"a1 b2", "a1 b3"}

    def test_it_does_not_close_on_an_event_that_cannot_begin_the_next_component(self) -> None:
        """SASE+ section 3.2, step 6: b3 fails, and by b5 the group has grown."""
        events = "a1:x=1 a2:x=1 b3:x=0 a4:x=1 b5:x=1"
        assert run("skip_till_next_match", "SEQ(A+ a[], B b)", events, "b.x = 1") == {
            "a1+a2+a4 b5",
            "a2+a4 b5",
            "a4 b5",
        }

    def test_an_event_that_could_be_taken_and_begin_does_both(self) -> None:
        found = run("skip_till_next_match", "SEQ(A+ a[], A b)", "a1 a2 a3")
        assert found == {"a1 a2", "a1+a2 a3", "a2 a3"}

    def test_the_last_component_closes_on_every_event(self) -> None:
        assert run("skip_till_next_match", "SEQ(A a, B+ b[])", "a1 b2 b3") == {"a1 b2", "a1 b2+b3"}

    def test_a_group_alone(self) -> None:
        assert run("skip_till_next_match", "A+ a[]", "a1 a2") == {"a1", "a1+a2", "a2"}

    def test_concurrent_events_never_stand_in_one_group(self) -> None:
        assert run("skip_till_any_match", "A+ a[]", "a1 a1' a2") == {"a1", "a1'", "a2", "a1+a2", "a1'+a2"}

    def test_the_window_limits_the_group(self) -> None:
        assert run("skip_till_next_match", "A+ a[]", "a1 a2 a4", rest="WITHIN 3") == {
            "a1",
            "a1+a2",
            "a2",
            "a2+a4",
            "a4",
        }

    def test_two_groups(self) -> None:
        found = run("skip_till_next_match", "SEQ(A+ a[], B+ b[])", "a1 b2 b3")
        assert found == {"a1 b2", "a1 b2+b3", "a1 b3"}

    def test_long_groups_do_not_exhaust_the_stack(self) -> None:
        events = stream(" ".join(f"a{n}" for n in range(1200)) + " b2000")
        query = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { a[1].ts = 0 }"
        found = cepheid.match(events, query, engine="reference")
        assert [len(group) for group in found["a"].to_pylist()] == [1200]


class TestElements:
    """Which element a predicate means, and when it is tested."""

    EVENTS = "a1:x=3 a2:x=5 a3:x=4 a4:x=7"

    def groups(self, where: str, strategy: str = "skip_till_any_match") -> set[str]:
        return run(strategy, "A+ a[]", self.EVENTS, where)

    def test_plain_and_current_hold_for_every_element_the_first_included(self) -> None:
        expected = {"a1", "a2", "a1+a2"}
        assert self.groups("a.x < 6 AND a.x != 4") == self.groups("a[i].x < 6 AND a[i].x != 4") == expected

    def test_the_first(self) -> None:
        assert {group[:2] for group in self.groups("a[1].x = 5")} == {"a2"}

    def test_the_one_before_holds_from_the_second_on(self) -> None:
        assert self.groups("a[i].x < a[i-1].x") == {"a1", "a2", "a3", "a4", "a2+a3"}

    def test_compared_with_the_first_holds_from_the_second_on(self) -> None:
        found = self.groups("a[i].x > a[1].x")
        assert {"a1+a2+a3+a4", "a1+a3", "a2+a4", "a4"} <= found
        assert "a2+a3" not in found

    def test_all_before(self) -> None:
        found = self.groups("a[i].x > avg(a[..i-1].x)", "skip_till_next_match")
        assert found == {"a1", "a1+a2", "a1+a2+a4", "a2", "a2+a4", "a3", "a3+a4", "a4"}

    def test_the_last_and_the_whole_group_are_tested_when_it_closes(self) -> None:
        found = self.groups("a[a.LEN].x = 4 AND sum(a[].x) > 8")
        assert found == {"a2+a3", "a1+a2+a3"}

    def test_length(self) -> None:
        assert self.groups("a.LEN >= 4") == {"a1+a2+a3+a4"}

    @pytest.mark.parametrize(
        ("aggregate", "value"),
        [("avg", 19 / 4), ("sum", 19), ("min", 3), ("max", 7), ("count", 4), ("first", 3), ("last", 7)],
    )
    def test_aggregates(self, aggregate: str, value: float) -> None:
        found = run("strict_contiguity", "A+ a[]", self.EVENTS, f"a.LEN = 4 AND {aggregate}(a[].x) = {value}")
        assert found == {"a1+a2+a3+a4"}

    def test_aggregates_pass_over_nulls(self) -> None:
        events = "a1:x=NULL a2:x=4"
        assert run("strict_contiguity", "A+ a[]", events, "avg(a[].x) = 4") == {"a1+a2", "a2"}
        assert run("strict_contiguity", "A+ a[]", events, "count(a[].x) = 0") == {"a1"}
        assert run("strict_contiguity", "A+ a[]", events, "count(a[]) = 2 AND first(a[].x) IS NULL") == {"a1+a2"}

    def test_a_condition_on_the_group_must_hold_when_the_next_component_begins(self) -> None:
        events = "a1:x=1 b2:x=0 a3:x=1 b4:x=0"
        found = run("skip_till_next_match", "SEQ(A+ a[], B b)", events, "sum(a[].x) >= 2")
        assert found == {"a1+a3 b4"}

    def test_a_later_component_compared_with_every_element(self) -> None:
        events = "a1:x=1 a2:x=5 b3:x=3 b4:x=6"
        found = run("skip_till_next_match", "SEQ(A+ a[], B b)", events, "b.x > a[i].x")
        assert found == {"a1+a2 b4", "a2 b4"}

    def test_a_later_component_compared_with_all_but_the_last_element(self) -> None:
        events = "a1:x=1 a2:x=9 b3:x=5"
        found = run("skip_till_any_match", "SEQ(A+ a[], B b)", events, "b.x > a[i-1].x")
        assert found == {"a1 b3", "a2 b3", "a1+a2 b3"}

    def test_or_may_hold_for_each_element_by_another_part(self) -> None:
        events = "a1:x=1,y=0 a2:x=0,y=1 a3:x=0,y=0"
        assert "a1+a2" in run("skip_till_any_match", "A+ a[]", events, "a.x = 1 OR a.y = 1")
        assert "a1+a3" not in run("skip_till_any_match", "A+ a[]", events, "a.x = 1 OR a.y = 1")


class TestStrategiesOfSingleSteps:
    """`b[1]` governs the first event of a group, `b[i]` the further ones, `b[]` both; all else is any match."""

    @pytest.mark.parametrize(
        ("named", "groups"),
        [
            ("b[i]", {"b2", "b4", "b4+b5", "b5"}),
            ("b[1]", {"b2", "b2+b4", "b2+b5", "b2+b4+b5"}),
            ("b", {"b2", "b2+b4", "b2+b5", "b2+b4+b5"}),
            ("b[]", {"b2"}),
            ("c", {"b5", "b2+b5", "b4+b5", "b2+b4+b5"}),
        ],
    )
    def test_a_strategy_governs_the_steps_that_it_names(self, named: str, groups: set[str]) -> None:
        events = stream("a1 b2 x3 b4 b5 c6")
        pattern = f"PATTERN SEQ(A a, B+ b[], C c) WHERE strict_contiguity({named}) WITHIN 10"
        assert matches(events, pattern) == {f"a1 {group} c6" for group in groups}
