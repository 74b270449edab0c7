"""Missing events: docs/semantics.md, "Missing events"."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cepheid
from cepheid import ModelError, QueryError
from cepheid.model import ByAttribute, Exponential, Gamma, GapDistribution, Model, Uniform
from reference.integrals import Item, integrated
from reference.written_streams import by_match, found_between, matches, named, planned, stream

ABC = "PATTERN SEQ(A a, B b, C c) WITHIN 10 THRESHOLD 0.001"
GAPS: dict[str, GapDistribution] = {
    "b": Exponential(mean=4.0),
    "c": Gamma(shape=2.0, scale=1.5),
    "n": Exponential(mean=3.0, happens=0.7),
    "m": Uniform(1.0, 6.0),
}
MODEL = Model(loss={"*": 0.2, "b": 0.3, "m": 0.1}, gaps=GAPS, happens={"a": 1.0})


def items(written: str, leading: float | None = None) -> list[Item]:
    """`b !n`: b is missing, n is a negated component that was not seen."""
    found: list[Item] = []
    for token in written.split():
        name = token.lstrip("!")
        gap = GAPS[name] if name in GAPS else Uniform(0.0, leading or 0.0)
        found.append(("negative" if token.startswith("!") else "missing", MODEL.loss_of(name), gap))
    return found


class TestWhatIsEnumerated:
    def test_each_component_is_seen_or_missing_but_the_last_is_seen(self) -> None:
        found = matches(stream("a1 b3 c5"), ABC, model=MODEL)
        assert found == {"a1 b3 c5", "a1 - c5", "- b3 c5", "- - c5"}

    def test_seen_events_are_in_order_and_in_window(self) -> None:
        assert matches(stream("a1 c1 b3 c20"), ABC, model=MODEL) == {"- - c1", "- - c20"}

    def test_a_group_was_seen_at_least_once_or_is_missing_as_a_whole(self) -> None:
        query = "PATTERN SEQ(A a, B+ b[], C c) WITHIN 10 THRESHOLD 0.001"
        found = by_match(stream("a1 b2 b3 c5"), query, model=MODEL)
        assert set(found) == {f"{a} {b} c5" for a in ("a1", "-") for b in ("-", "b2", "b3", "b2+b3")}
        assert found["a1 - c5"] == pytest.approx(integrated(items("b"), 4), abs=1e-9)

    def test_a_group_that_the_model_has_no_gap_for_cannot_be_missing(self) -> None:
        query = "PATTERN SEQ(A a, B+ b[], C c) WITHIN 10 THRESHOLD 0.001"
        model = Model(loss=0.2, gaps={"c": GAPS["c"]})
        found = matches(stream("a1 b2 b3 c5"), query, model=model)
        assert found == {f"{a} {b} c5" for a in ("a1", "-") for b in ("b2", "b3", "b2+b3")}

    def test_a_column_says_how_probable_each_match_is(self) -> None:
        assert by_match(stream("a1 b3 c5"), ABC, model=MODEL)["a1 b3 c5"] == 1.0

    def test_below_the_threshold_nothing_is_reported(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 10 THRESHOLD {}"
        likely = by_match(stream("a1 c5"), ABC, model=MODEL)["a1 - c5"]
        assert "a1 - c5" in matches(stream("a1 c5"), query.format(likely), model=MODEL)
        assert "a1 - c5" not in matches(stream("a1 c5"), query.format(likely + 1e-6), model=MODEL)

    def test_a_model_without_threshold_reports_whatever_is_possible(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 10"
        assert "- - c5" in matches(stream("a1 c5"), query, model=MODEL)
        lossless = Model(loss={"a": 0.5, "*": 0.0}, gaps=GAPS)
        assert matches(stream("a1 b3 c5"), query, model=lossless) == {"a1 b3 c5", "- b3 c5"}


class TestScores:
    def test_one_missing(self) -> None:
        """S^P: the loss times the probability that it happened in the gap."""
        found = by_match(stream("a1 c5"), ABC, model=MODEL)
        assert found["a1 - c5"] == pytest.approx(0.3 * (1 - math.exp(-4 / 4)), abs=1e-9)

    def test_one_negated(self) -> None:
        """S^N: it did not happen, given that it was not seen."""
        query = "PATTERN SEQ(A a, !(N n), C c) WITHIN 10 THRESHOLD 0.001"
        happens = 0.7 * (1 - math.exp(-4 / 3))
        expected = (1 - happens) / (0.2 * happens + 1 - happens)
        assert by_match(stream("a1 c5"), query, model=MODEL)["a1 c5"] == pytest.approx(expected, abs=1e-9)

    def test_several_negated(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), !(M m), C c) WITHIN 10 THRESHOLD 0.001"
        expected = integrated(items("!n"), 4) * integrated(items("!m"), 4)
        assert by_match(stream("a1 c5"), query, model=MODEL)["a1 c5"] == pytest.approx(expected, abs=1e-9)

    def test_two_missing_exactly_and_as_printed(self) -> None:
        query = "PATTERN SEQ(A a, B b, D d, C c) WITHIN 10 THRESHOLD 0.001"
        model = Model(loss=0.5, gaps={"b": Exponential(mean=2.0), "d": Exponential(mean=2.0), "c": Exponential(2.0)})
        found = by_match(stream("a1 c5"), query, model=model)
        # b and d within 4 of a: an Erlang distribution of two stages of mean 2.
        assert found["a1 - - c5"] == pytest.approx(0.25 * (1 - math.exp(-2) * 3), abs=1e-9)
        printed = by_match(stream("a1 c5"), query, model=model, scoring="paper")
        # ε² ∫ f(t) F(t) dt = ε² F(T)² / 2 for equal densities
        assert printed["a1 - - c5"] == pytest.approx(0.25 * (1 - math.exp(-2)) ** 2 / 2, abs=1e-9)

    def test_posterior_of_one_missing(self) -> None:
        """What always happens has happened; what may be bypassed is told by when the next event came."""
        found = by_match(stream("a1 c5"), ABC, model=MODEL, scoring="posterior")
        assert found["a1 - c5"] == 1.0
        may_be_bypassed = Model(loss=0.3, gaps=GAPS | {"b": Exponential(mean=4.0, happens=0.8)}, happens={"a": 1.0})
        found = by_match(stream("a1 c5"), ABC, model=may_be_bypassed, scoring="posterior")
        expected = integrated([("missing", 0.3, Exponential(4.0, 0.8))], 4, "posterior", GAPS["c"])
        assert found["a1 - c5"] == pytest.approx(expected, abs=1e-7)

    def test_the_share_of_the_first_component_must_be_known(self) -> None:
        unknown = Model(loss=0.2, gaps=GAPS)
        with pytest.raises(ModelError, match="needs the share of 'a' that happens at all"):
            by_match(stream("b3 c5"), ABC, model=unknown, scoring="posterior")
        known = Model(loss=0.2, gaps=GAPS, happens={"a": 0.7})
        found = by_match(stream("b3 c5"), ABC, model=known, scoring="posterior")
        come = 1 - math.exp(-8 / 4)  # b comes within 8 of an a that came at any time since the opening
        assert found["- b3 c5"] == pytest.approx(
            integrated([("missing", 0.2, Uniform(0.0, 10.0, 0.7))], 8, "posterior", GAPS["b"], leading=True), abs=1e-7
        )
        assert found["- b3 c5"] == pytest.approx(0.2 * 0.7 * come / (0.2 * 0.7 * come + 0.3), abs=1e-6)

    def test_whoever_waits_for_a_negated_event(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), C c) WITHIN 10 THRESHOLD 0.001"
        model = Model(loss=0.2, gaps=GAPS | {"c after n": Exponential(mean=1.0)}, happens={"a": 1.0})
        found = by_match(stream("a1 c5"), query, model=model, scoring="posterior")
        expected = integrated(items("!n"), 4, "posterior", GAPS["c"], onward={0: Exponential(mean=1.0)})
        assert found["a1 c5"] == pytest.approx(expected, abs=1e-7)
        with pytest.raises(ModelError, match="is neither a negated component"):
            by_match(stream("a1 c5"), ABC, model=model, scoring="posterior")

    @pytest.mark.some(3)
    @pytest.mark.parametrize("scoring", ["exact", "posterior"])
    @pytest.mark.parametrize(
        ("pattern", "unseen"),
        [
            ("SEQ(A a, B b, !(N n), C c)", "b !n"),
            ("SEQ(A a, !(N n), B b, C c)", "!n b"),
            ("SEQ(A a, !(M m), B b, !(N n), C c)", "!m b !n"),
            ("SEQ(A a, B b, !(N n), D d, C c)", "b !n d"),
            ("SEQ(A a, !(N n), B b, D d, !(M m), C c)", "!n b d !m"),
        ],
    )
    def test_against_integrals(self, pattern: str, unseen: str, scoring: str) -> None:
        gaps = GAPS | {"d": Gamma(shape=2.0, scale=1.5)}
        model = Model(loss={"*": 0.2, "b": 0.3, "m": 0.1}, gaps=gaps, happens={"a": 0.9})
        written = unseen.replace("d", "c")  # the same gap and loss
        query = f"PATTERN {pattern} WITHIN 10 THRESHOLD 0.0001"
        found = by_match(stream("a1 c6"), query, model=model, scoring=scoring)
        name = "a1 " + "- " * sum(1 for token in unseen.split() if not token.startswith("!")) + "c6"
        assert found[name] == pytest.approx(integrated(items(written), 5, scoring, GAPS["c"]), abs=1e-7)

    def test_the_product_over_all_gaps(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B b, !(M m), C c) WITHIN 10 THRESHOLD 0.001"
        expected = integrated(items("!n"), 2) * integrated(items("!m"), 3)
        assert by_match(stream("a1 b3 c6"), query, model=MODEL)["a1 b3 c6"] == pytest.approx(expected, abs=1e-9)

    def test_a_group_counts_from_its_last_event_and_to_its_first(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B+ b[], !(M m), C c) WITHIN 10 THRESHOLD 0.001"
        expected = integrated(items("!n"), 2) * integrated(items("!m"), 4)
        found = by_match(stream("a1 b3 b4 c8"), query, model=MODEL)
        assert found["a1 b3+b4 c8"] == pytest.approx(expected, abs=1e-9)


class TestLeadingGap:
    """For components with no positive one before them the clock starts at the window's opening, last.time - W."""

    def test_uniform_over_the_window_by_default(self) -> None:
        found = by_match(stream("b3 c5"), ABC, model=MODEL)
        # The window opens at -5, and b is seen at 3: a had 8 of 10.
        assert found["- b3 c5"] == pytest.approx(0.2 * 0.8, abs=1e-9)

    def test_a_given_gap_is_used(self) -> None:
        model = Model(loss=0.2, gaps=GAPS | {"a": Exponential(mean=5.0)})
        found = by_match(stream("b3 c5"), ABC, model=model)
        assert found["- b3 c5"] == pytest.approx(0.2 * (1 - math.exp(-8 / 5)), abs=1e-9)

    def test_two_missing_at_the_start(self) -> None:
        found = by_match(stream("c5"), ABC, model=MODEL)
        assert found["- - c5"] == pytest.approx(integrated(items("a b", leading=10.0), 10), abs=1e-7)

    def test_a_negated_start_counts(self) -> None:
        query = "PATTERN SEQ(!(N n), A a, C c) WITHIN 10 THRESHOLD 0.001"
        found = by_match(stream("a1 c5"), query, model=MODEL)
        assert found["a1 c5"] == pytest.approx(integrated(items("!n"), 6), abs=1e-9)

    def test_nothing_unseen_at_the_start_costs_nothing(self) -> None:
        assert by_match(stream("a1 b3 c5"), ABC, model=MODEL)["a1 b3 c5"] == 1.0


class TestPredicates:
    def test_a_default_stands_in_for_a_missing_event(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WHERE b.x[c.x] = a.x WITHIN 10 THRESHOLD 0.001"
        assert "a1 - c5" in matches(stream("a1:x=1 c5:x=1"), query, model=MODEL)
        assert "a1 - c5" not in matches(stream("a1:x=1 c5:x=2"), query, model=MODEL)

    def test_an_event_that_was_seen_does_not_use_its_default(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WHERE b.x[c.x] = a.x WITHIN 10 THRESHOLD 0.001"
        assert "a1 b3 c5" in matches(stream("a1:x=1 b3:x=1 c5:x=2"), query, model=MODEL)

    def test_without_a_default_the_predicate_is_vacuous(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WHERE b.x = a.x WITHIN 10 THRESHOLD 0.001"
        assert matches(stream("a1:x=1 b3:x=2 c5:x=1"), query, model=MODEL) == {"a1 - c5", "- b3 c5", "- - c5"}

    def test_a_default_may_be_missing_too(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WHERE a.x[b.x] = 7 WITHIN 10 THRESHOLD 0.001"
        assert "- - c5" in matches(stream("c5:x=1"), query, model=MODEL)
        assert "- b3 c5" not in matches(stream("b3:x=1 c5:x=1"), query, model=MODEL)

    def test_under_or_each_part_is_vacuous_by_itself(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WHERE b.x = 1 OR c.x = 1 WITHIN 10 THRESHOLD 0.001"
        assert matches(stream("a1:x=0 b3:x=0 c5:x=0"), query, model=MODEL) == {"a1 - c5", "- - c5"}

    def test_under_and_the_rest_still_counts(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WHERE (b.x = 1 AND a.x = 1) OR c.x = 1 WITHIN 10 THRESHOLD 0.001"
        assert matches(stream("a1:x=0 c5:x=0"), query, model=MODEL) == {"- - c5"}

    def test_elements_of_a_group_next_to_a_missing_event(self) -> None:
        where = "b[i].x > b[i-1].x AND b[1].x > a.x"
        query = f"PATTERN SEQ(A a, B+ b[], C c) WHERE {where} WITHIN 10 THRESHOLD 0.001"
        found = matches(stream("a1:x=3 b2:x=1 b3:x=2 b4:x=9 b5:x=4 c6:x=0"), query, model=MODEL)
        rising = {"b2", "b3", "b4", "b5", "b2+b3", "b2+b4", "b2+b5", "b3+b4", "b3+b5", "b2+b3+b4", "b2+b3+b5"}
        missing = {"- - c6", "a1 - c6"}
        assert found == {f"- {group} c6" for group in rising} | {"a1 b4 c6", "a1 b5 c6"} | missing

    def test_the_default_of_a_component_declared_with_any(self) -> None:
        """Where a is missing the predicate needs b's x, which a type of b's may simply not have."""
        query = "PATTERN SEQ(A a, ANY(B, D) b, C c) WHERE a.x[b.x] = c.x WITHIN 10 THRESHOLD 0.001"
        assert "- b3 c5" in matches(stream("b3:x=NULL c5:x=1"), query, model=MODEL)
        assert "a1 b3 c5" not in matches(stream("a1:x=2 b3:x=NULL c5:x=1"), query, model=MODEL)

    def test_equivalence_tests_hold_among_the_events_seen(self) -> None:
        query = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 10 THRESHOLD 0.001"
        assert matches(stream("a1:id=1 b3:id=2 c5:id=1"), query, model=MODEL) == {"a1 - c5", "- - c5"}


class TestAggregates:
    """A missing event contributes nothing: a missing group has LEN 0 and count 0, and its other aggregates are NULL."""

    QUERY = "PATTERN SEQ(A a, B+ b[], C c) WHERE {} WITHIN 10 THRESHOLD 0.001"
    EVENTS = stream("a1:x=1 b2:x=2 b3:x=4 c5:x=9")

    def groups(self, where: str) -> set[str]:
        """The second component of the matches in which a was seen."""
        found = matches(self.EVENTS, self.QUERY.format(where), model=MODEL)
        return {match.split()[1] for match in found if match.startswith("a1")}

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("b.LEN >= 2", {"b2+b3"}),
            ("b.LEN < 2", {"b2", "b3", "-"}),
            ("count(b[]) = 0", {"-"}),
            ("sum(b[].x) > 3", {"b3", "b2+b3"}),
            ("avg(b[].x) = 3", {"b2+b3"}),
            ("NOT sum(b[].x) > 3", {"b2"}),
            ("sum(b[].x) IS NULL", {"-"}),
            ("coalesce(max(b[].x), 7) = 7", {"-"}),
            ("b[i].x > sum(b[..i-1].x)", {"b2", "b3", "b2+b3", "-"}),
            ("count(b[..i-1]) > 1", {"b2", "b3", "-"}),
            ("sum(b[].x) > 3 OR b[1].x = 7", {"b3", "b2+b3", "-"}),
            ("b[i].x[c.x] = 9", {"-"}),
            ("b[i].x[c.x] = 4", {"b3"}),
        ],
    )
    def test_conditions(self, where: str, expected: set[str]) -> None:
        assert self.groups(where) == expected

    def test_what_is_returned_of_a_missing_group(self) -> None:
        returned = "RETURN b, b[].x AS xs, b.LEN AS size, count(b[].x) AS n, sum(b[].x) AS s, first(b[].x) AS f"
        query = self.QUERY.format("a.x = 1 AND (b.LEN = 0 OR b.LEN = 2)") + " " + returned
        found = cepheid.match(self.EVENTS, query, engine="reference", model=MODEL).to_pylist()
        rows = {row["size"]: (row["xs"], row["n"], row["s"], row["f"]) for row in found}
        assert rows == {0: (None, 0, None, None), 2: ([2, 4], 2, 6, 2)}


class TestNextMatch:
    """skip_till_next_match: what was seen is a match of the pattern without what was not."""

    QUERY = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match {{ {} }} WITHIN 10 THRESHOLD 0.001"

    def test_the_next_event_among_those_seen(self) -> None:
        found = matches(stream("a1 b2 b3 c4 c5"), self.QUERY.format(""), model=MODEL)
        assert found == {"a1 b2 c4", "a1 - c4", "- b2 c4", "- b3 c4", "- - c4", "- - c5"}

    def test_an_event_that_fails_a_condition_is_passed(self) -> None:
        found = matches(stream("a1:x=1 b2:x=2 b3:x=1 c4:x=1"), self.QUERY.format("a.x = b.x"), model=MODEL)
        assert found == {"a1 b3 c4", "a1 - c4", "- b2 c4", "- b3 c4", "- - c4"}

    def test_conditions_read_as_without_the_missing_event(self) -> None:
        query = self.QUERY.format("b.x[a.x] = c.x")
        found = matches(stream("a1:x=1 c2:x=2 c3:x=1"), query, model=MODEL)
        assert found == {"a1 - c3", "- - c2", "- - c3"}

    def test_a_group(self) -> None:
        query = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { } WITHIN 10 THRESHOLD 0.001"
        found = matches(stream("a1 b2 b3 c4"), query, model=MODEL)
        assert found == {"a1 b2+b3 c4", "a1 - c4", "- b2+b3 c4", "- b3 c4", "- - c4"}

    def test_negated_components_as_ever(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B b, C c) WHERE skip_till_next_match { } WITHIN 10 THRESHOLD 0.001"
        assert matches(stream("a1 n2 b3 c4"), query, model=MODEL) == set()
        assert "a1 b2 c4" in matches(stream("a1 b2 n3 c4"), query, model=MODEL)
        assert "a1 - c4" not in matches(stream("a1 b2 n3 c4"), query, model=MODEL)


class TestObservedNegatives:
    QUERY = "PATTERN SEQ(A a, !(N n), B b, C c) WITHIN 10 THRESHOLD 0.001"

    def test_between_seen_neighbours_it_kills(self) -> None:
        assert matches(stream("a1 n2 b3 c5"), self.QUERY, model=MODEL) == set()

    def test_outside_its_place_it_does_not(self) -> None:
        assert "a1 b3 c5" in matches(stream("a1 b3 n4 c5"), self.QUERY, model=MODEL)

    def test_where_the_neighbour_is_missing_it_kills_up_to_the_next_one_seen(self) -> None:
        assert "a1 - c5" not in matches(stream("a1 b3 n4 c5"), self.QUERY, model=MODEL)
        assert "- b3 c5" not in matches(stream("n0 b3 c5"), self.QUERY, model=MODEL)

    def test_but_not_beyond_the_window(self) -> None:
        assert "- b13 c15" in matches(stream("n5 b13 c15"), self.QUERY, model=MODEL)
        assert "- b13 c15" not in matches(stream("n6 b13 c15"), self.QUERY, model=MODEL)

    def test_only_if_it_passes_what_can_be_evaluated(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B b, C c) WHERE n.x = b.x AND n.y = 1 WITHIN 10 THRESHOLD 0.001"
        seen = "a1:x=0,y=0 n2:x=1,y={} b3:x=2,y=0 c5:x=0,y=0"
        assert "a1 b3 c5" in matches(stream(seen.format(1)), query, model=MODEL)
        assert "a1 - c5" not in matches(stream(seen.format(1)), query, model=MODEL)
        assert "a1 - c5" in matches(stream(seen.format(0)), query, model=MODEL)


class TestMissingAtTheEnd:
    """A missing last event and a negated last component are decided when the window has passed."""

    def test_the_last_event_must_be_seen_unless_asked_otherwise(self) -> None:
        assert matches(stream("a1 b3"), ABC, model=MODEL) == set()

    def found(self, text: str, query: str = ABC, **options: Any) -> dict[str, tuple[int, float]]:
        plan, events = planned(stream(text), query, model=MODEL, missing_last=True, **options)
        found = found_between(plan, events)
        assert found.probability is not None
        pairs = zip(found.completion.tolist(), found.probability.tolist(), strict=True)
        return dict(zip(named(events, found), pairs, strict=True))

    def test_over_what_is_left_of_the_window(self) -> None:
        found = self.found("a1 b3")
        # From b at 3 to the end of the window at 11.
        assert found["a1 b3 -"] == (11, pytest.approx(integrated(items("c"), 8), abs=1e-9))
        assert found["a1 - -"] == (11, pytest.approx(integrated(items("b c"), 10), abs=1e-7))

    def test_the_first_event_must_be_seen_then(self) -> None:
        assert set(self.found("a1 b3")) == {"a1 b3 -", "a1 - -"}
        assert self.found("b3") == {}

    def test_seen_last_events_are_known_at_once(self) -> None:
        assert self.found("a1 b3 c5")["a1 b3 c5"] == (5, 1.0)

    def test_a_negated_last_component(self) -> None:
        query = "PATTERN SEQ(A a, C c, !(N n)) WITHIN 10 THRESHOLD 0.001"
        plan, events = planned(stream("a1 c5"), query, model=MODEL)
        found = found_between(plan, events)
        assert named(events, found) == ["a1 c5", "- c5"]
        assert found.completion.tolist() == [11, 15]
        assert found.probability is not None
        expected = [integrated(items("!n"), 6), 0.2 * 1.0 * integrated(items("!n"), 10)]
        assert found.probability.tolist() == pytest.approx(expected, abs=1e-9)

    def test_a_negated_last_component_that_was_seen_kills(self) -> None:
        query = "PATTERN SEQ(A a, C c, !(N n)) WITHIN 10 THRESHOLD 0.001"
        assert matches(stream("a1 c5 n12"), query, model=MODEL) == {"a1 c5"}
        assert matches(stream("a1 c5 n10"), query, model=MODEL) == set()

    def test_a_missing_last_event_before_a_negated_one(self) -> None:
        query = "PATTERN SEQ(A a, C c, !(N n)) WITHIN 10 THRESHOLD 0.001"
        found = self.found("a1", query)
        assert found == {"a1 -": (11, pytest.approx(integrated(items("c !n"), 10), abs=1e-7))}
        assert self.found("a1 n9", query) == {}


class TestModels:
    def test_loss_by_the_reader_that_the_query_names(self) -> None:
        model = Model(loss={"b": ByAttribute("reader", {"B1": 0.4, "B2": 0.1}), "*": 0.0}, gaps=GAPS)
        query = "PATTERN SEQ(A a, B b, C c) WHERE b.reader = '{}' WITHIN 10 THRESHOLD 0.001"
        events = stream("a1:reader=A1 c5:reader=C1")
        happens = 1 - math.exp(-1)
        for reader, loss in [("B1", 0.4), ("B2", 0.1)]:
            found = by_match(events, query.format(reader), model=model)
            assert found["a1 - c5"] == pytest.approx(loss * happens, abs=1e-9)
        with pytest.raises(ModelError, match="reader"):
            matches(events, ABC, model=model)

    def test_gaps_in_another_unit(self) -> None:
        events, query = stream("a0 c4000"), "PATTERN SEQ(A a, B b, C c) WITHIN 10 seconds THRESHOLD 0.001"
        model = Model(loss=0.3, gaps=GAPS, unit="seconds")
        found = by_match(events, query, model=model, time_unit="ms")
        assert found["a0 - c4000"] == pytest.approx(0.3 * (1 - math.exp(-1)), abs=1e-9)

    def test_timestamps_count_in_seconds_unless_the_model_says_otherwise(self) -> None:
        times = [datetime(2026, 1, 1), datetime(2026, 1, 1) + timedelta(seconds=4)]
        events = pa.table({"name": ["a0", "c4"], "ts": times, "type": ["A", "C"]})
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 10 seconds THRESHOLD 0.001"
        found = by_match(events, query, model=Model(loss=0.3, gaps=GAPS))
        assert found["a0 - c4"] == pytest.approx(0.3 * (1 - math.exp(-1)), abs=1e-9)

    def test_a_unit_needs_to_know_the_columns_own(self) -> None:
        with pytest.raises(ModelError, match="time_unit"):
            matches(stream("a0 c4"), ABC, model=Model(loss=0.3, gaps=GAPS, unit="seconds"))

    def test_a_threshold_needs_a_model(self) -> None:
        with pytest.raises(ModelError, match="model"):
            matches(stream("a1 c5"), ABC)

    def test_a_gap_that_the_model_lacks(self) -> None:
        with pytest.raises(ModelError, match="'b'"):
            matches(stream("a1 c5"), ABC, model=Model(loss=0.1))

    @pytest.mark.parametrize(
        "query",
        [
            "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { } WITHIN 10",
            "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { } WITHIN 10",
            "PATTERN SEQ(A a, B b)",
            "PATTERN SEQ(A a, B b) WITHIN 10 EVENTS",
        ],
    )
    def test_queries_for_which_missing_events_mean_nothing(self, query: str) -> None:
        with pytest.raises(QueryError):
            matches(stream("a1 b3"), query, model=MODEL)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("ABCX"), st.integers(0, 12), st.integers(1, 2)), min_size=0, max_size=9, unique=True
    )
)
def test_without_losses_and_negation_it_is_the_precise_meaning(drawn: list[tuple[str, int, int]]) -> None:
    tokens = " ".join(f"{kind.lower()}{time}'{id}:id={id}" for kind, time, id in drawn)
    query = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 6"
    lossless = Model(loss=0.0, gaps=GAPS)
    precise = matches(stream(tokens + " z99:id=0"), query)
    assert by_match(stream(tokens + " z99:id=0"), query, model=lossless) == dict.fromkeys(precise, 1.0)
