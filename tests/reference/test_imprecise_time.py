"""Imprecise time: docs/semantics.md, "Imprecise time"."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid import DataError, LimitError
from cepheid.engine.data.matches import NEVER
from cepheid.model import Exponential, Model
from reference.written_streams import by_match, found_between, judged, matches, named, planned, stream

BOUNDS: dict[str, Any] = {"lower": "lower", "upper": "upper"}
AB = "PATTERN SEQ(A a, B b) WITHIN 10"


def confidence(text: str, query: str, **options: Any) -> dict[str, float]:
    return by_match(stream(text), query, "confidence", **BOUNDS, **options)


class TestConfidence:
    def test_the_share_of_worlds_that_contain_the_match(self) -> None:
        # a in {1, 2, 3}, b in {2, 3}: a < b in (1,2) (1,3) (2,3) of six worlds.
        assert confidence("a1[1,3] b2[2,3]", AB) == {"a1 b2": pytest.approx(3 / 6)}

    def test_events_at_one_instant_of_a_world_are_concurrent(self) -> None:
        assert confidence("a1[2,2] b2[2,2]", AB) == {}

    def test_the_window_is_judged_in_each_world(self) -> None:
        assert confidence("a1[1,2] b2[4,4]", "PATTERN SEQ(A a, B b) WITHIN 3") == {"a1 b2": pytest.approx(0.5)}

    def test_one_event_fills_one_place_in_each_world(self) -> None:
        found = confidence("a1[1,2] a2[1,2]", "PATTERN SEQ(A x, A y) WITHIN 10")
        assert found == {"a1 a2": pytest.approx(0.25), "a2 a1": pytest.approx(0.25)}

    def test_given_probabilities(self) -> None:
        events = stream("a1[1,3] b2[2,3]", weights=[[0.5, 0.25, 0.25], [0.9, 0.1]])
        found = by_match(events, AB, "confidence", probabilities="weights", **BOUNDS)
        assert found == {"a1 b2": pytest.approx(0.5 * 0.9 + 0.5 * 0.1 + 0.25 * 0.1)}

    def test_some_probabilities(self) -> None:
        events = stream("a1[1,3] b2[2,3]", weights=[None, [0.9, 0.1]])
        found = by_match(events, AB, "confidence", probabilities="weights", **BOUNDS)
        assert found == {"a1 b2": pytest.approx((0.9 + 0.1 + 0.1) / 3)}

    def test_at_least(self) -> None:
        events = "a1[1,3] b2[2,3] b3[9,9]"
        assert confidence(events, AB + " CONFIDENCE 0.6") == {"a1 b3": pytest.approx(1.0)}
        assert set(confidence(events, AB + " CONFIDENCE 0.5")) == {"a1 b2", "a1 b3"}
        assert set(confidence(events, AB, confidence=0.6)) == {"a1 b3"}

    def test_the_range_is_the_tightest_over_the_worlds_that_contain_it(self) -> None:
        events = stream("a1[1,9] b2[2,4] c3[3,12]")
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 5"
        assert by_match(events, query, "earliest", **BOUNDS) == {"a1 b2 c3": 1}
        assert by_match(events, query, "latest", **BOUNDS) == {"a1 b2 c3": 7}

    def test_with_certain_times_it_is_the_precise_meaning(self) -> None:
        text = "a1[1,1]:id=1 b3[3,3]:id=1 b4[4,4]:id=1 c5[5,5]:id=1 a6[6,6]:id=2 b20[20,20]:id=2"
        for where in ("[id]", "skip_till_next_match { [id] }", "strict_contiguity { [id] }"):
            query = f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 10"
            assert confidence(text, query) == dict.fromkeys(matches(stream(text), query), 1.0)


class TestStrategies:
    def test_next_excludes_other_events_of_the_same_place_strictly_between(self) -> None:
        query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 10"
        # b3 is next unless b2 is earlier: in one of four worlds; together they are both next.
        found = confidence("a1[1,1] b2[2,3] b3[2,3]", query)
        assert found == {"a1 b2": pytest.approx(0.75), "a1 b3": pytest.approx(0.75)}

    def test_an_event_that_fails_the_predicates_excludes_nothing(self) -> None:
        query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.x = 1 } WITHIN 10"
        found = confidence("a1[1,1]:x=0 b2[2,3]:x=0 b3[2,3]:x=1", query)
        assert found == {"a1 b3": pytest.approx(1.0)}

    def test_contiguity(self) -> None:
        query = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 10"
        assert confidence("a1[1,1] x2[2,3] b3[3,3]", query) == {"a1 b3": pytest.approx(0.5)}

    def test_contiguity_in_a_partition(self) -> None:
        """Every other event of the partition is a rival, whatever its type; those of other partitions are not."""
        query = "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [id] } WITHIN 10"
        events = "a1[1,1]:id=1 x2[2,5]:id={} b3[4,4]:id=1"
        assert confidence(events.format(1), query) == {"a1 b3": pytest.approx(2 / 4)}
        assert confidence(events.format(2), query) == {"a1 b3": pytest.approx(1.0)}

    def test_contiguity_of_a_group(self) -> None:
        query = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { } WITHIN 10"
        found = confidence("a1[1,2] a2[2,3] b3[3,4]", query)
        worlds = list(product((1, 2), (2, 3), (3, 4)))
        assert found["a1+a2 b3"] == pytest.approx(sum(a < b < c for a, b, c in worlds) / 8)
        assert found["a1 b3"] == pytest.approx(sum(a < c and not a < b < c for a, b, c in worlds) / 8)

    def test_kleene(self) -> None:
        query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { } WITHIN 10"
        found = confidence("a1[1,2] a2[2,3] b3[3,4]", query)
        # Worlds (a1, a2, b3): 122 123 132 133 112... written out: a1 in 1 2, a2 in 2 3, b3 in 3 4.
        both = sum(a < b < c for a, b, c in product((1, 2), (2, 3), (3, 4)))
        assert found["a1+a2 b3"] == pytest.approx(both / 8)
        alone = sum(a < c and not a < b < c for a, b, c in product((1, 2), (2, 3), (3, 4)))
        assert found["a1 b3"] == pytest.approx(alone / 8)

    def test_a_group_in_another_order_is_another_result(self) -> None:
        query = "PATTERN A+ a[] WHERE skip_till_any_match { a.LEN = 2 } WITHIN 10"
        found = confidence("a1[1,2] a2[1,2]", query)
        assert found == {"a1+a2": pytest.approx(0.25), "a2+a1": pytest.approx(0.25)}

    def test_windows_of_events_count_in_each_world(self) -> None:
        query = "PATTERN SEQ(A a, B b) WITHIN 2 EVENTS"
        assert confidence("a1[1,1] x2[2,4] b3[3,3]", query) == {"a1 b3": pytest.approx(2 / 3)}


class TestNegation:
    def test_middle(self) -> None:
        query = "PATTERN SEQ(A a, !(N n), B b) WITHIN 10"
        assert confidence("a1[1,1] n2[1,4] b3[4,4]", query) == {"a1 b3": pytest.approx(2 / 4)}

    def test_start(self) -> None:
        query = "PATTERN SEQ(!(N n), A a) WITHIN 3"
        assert confidence("n1[1,4] a5[5,5]", query) == {"a5": pytest.approx(2 / 4)}

    def test_end(self) -> None:
        query = "PATTERN SEQ(A a, !(N n)) WITHIN 3"
        assert confidence("a5[5,6] n8[7,9]", query) == {"a5": pytest.approx((2 / 3 + 1 / 3) / 2)}


class TestCompletion:
    """No event that begins after the completion can change the result."""

    def known_at(self, text: str, query: str) -> dict[str, int]:
        plan, events = planned(stream(text), query, **BOUNDS)
        found = found_between(plan, events)
        return dict(zip(named(events, found), found.completion.tolist(), strict=True))

    def test_when_the_last_event_has_surely_happened(self) -> None:
        assert self.known_at("a1[1,9] b2[2,4] b3[3,30]", AB) == {"a1 b2": 4, "a1 b3": 30}

    def test_a_decision_at_the_end_waits_for_the_latest_window(self) -> None:
        assert self.known_at("a1[1,9]", "PATTERN SEQ(A a, !(N n)) WITHIN 5") == {"a1": 14}

    def test_in_windows_of_events_such_a_decision_waits_for_the_end(self) -> None:
        assert self.known_at("a1[1,9]", "PATTERN SEQ(A a, !(N n)) WITHIN 5 EVENTS") == {"a1": NEVER}

    def test_negated_components_that_a_condition_ties_together(self) -> None:
        query = "PATTERN SEQ(A a, !(M m), !(N n), B b) WHERE m.x = n.x WITHIN 10"
        events = "a1[1,1]:x=0 m2[2,5]:x=1 n3[3,5]:x={} b4[4,4]:x=0"
        # Both lie between a and b in two of four and one of three instants.
        assert confidence(events.format(1), query) == {"a1 b4": pytest.approx(1 - 2 / 4 * 1 / 3)}
        assert confidence(events.format(2), query) == {"a1 b4": pytest.approx(1.0)}


class TestWithMissingEvents:
    MODEL = Model(loss=0.2, gaps={"b": Exponential(mean=4.0), "c": Exponential(mean=4.0)})
    QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 10 THRESHOLD 0.001"

    def test_the_probability_is_the_expected_score(self) -> None:
        text = "a1[1,2] c5[5,6]"
        found = by_match(stream(text), self.QUERY, model=self.MODEL, **BOUNDS)
        gaps = [c - a for a, c in product((1, 2), (5, 6))]
        expected = sum(0.2 * (1 - math.exp(-gap / 4)) for gap in gaps) / 4
        assert found["a1 - c5"] == pytest.approx(expected, abs=1e-9)

    def test_of_a_group_too(self) -> None:
        query = "PATTERN SEQ(A a, B+ b[], C c) WITHIN 10 THRESHOLD 0.001"
        found = by_match(stream("a1[1,1] b2[2,3] b3[2,3] c5[3,6]"), query, model=self.MODEL, **BOUNDS)
        times = list(product((2, 3), (2, 3), (3, 4, 5, 6)))
        assert found["a1 b2+b3 c5"] == pytest.approx(sum(p < q < c for p, q, c in times) / len(times))
        missing = sum(0.2 * (1 - math.exp(-(c - 1) / 4)) for c in (3, 4, 5, 6)) / 4
        assert found["a1 - c5"] == pytest.approx(missing, abs=1e-9)

    def test_the_next_match_in_each_world(self) -> None:
        where = "WHERE skip_till_next_match { } WITHIN 10 THRESHOLD 0.001"
        query = f"PATTERN SEQ(A a, B b, C c) {where}"
        found = by_match(stream("a1[1,1] c2[2,4] c3[3,3]"), query, model=self.MODEL, **BOUNDS)
        # With b missing, c3 is next unless c2 came before it: at 3 they are concurrent, at 4 it is later.
        assert found["a1 - c3"] == pytest.approx(0.2 * (1 - math.exp(-2 / 4)) * 2 / 3, abs=1e-9)

    def test_worlds_that_do_not_contain_the_match_count_nothing(self) -> None:
        text = "a1[1,4] c5[3,3]"
        found = by_match(stream(text), self.QUERY, model=self.MODEL, **BOUNDS)
        expected = 0.2 * ((1 - math.exp(-2 / 4)) + (1 - math.exp(-1 / 4))) / 4
        assert found["a1 - c5"] == pytest.approx(expected, abs=1e-9)
        sure = by_match(stream(text), self.QUERY, "confidence", model=self.MODEL, **BOUNDS)
        assert sure["a1 - c5"] == pytest.approx(0.5)

    def test_the_threshold_is_for_the_expectation(self) -> None:
        text = "a1[1,4] c5[3,3]"
        low = "PATTERN SEQ(A a, B b, C c) WITHIN 10 THRESHOLD {}"
        expected = by_match(stream(text), self.QUERY, model=self.MODEL, **BOUNDS)["a1 - c5"]
        assert "a1 - c5" in matches(stream(text), low.format(expected), model=self.MODEL, **BOUNDS)
        assert "a1 - c5" not in matches(stream(text), low.format(expected + 1e-6), model=self.MODEL, **BOUNDS)


class TestData:
    @pytest.mark.parametrize(
        ("text", "weights", "told"),
        [
            ("a1[3,1]", None, "above the upper bound"),
            ("a1[1,2]", [0.5], "1 probabilities for 2 instants"),
            ("a1[1,2]", [0.5, None], "a probability that is NULL"),
            ("a1[1,2]", [0.5, 0.4], "sum to 0.9"),
            ("a1[1,2]", [1.5, -0.5], "a probability of -0.5"),
        ],
    )
    def test_bounds_and_probabilities_that_make_no_sense(self, text: str, weights: Any, told: str) -> None:
        events = stream(text, weights=pa.array([weights], pa.list_(pa.float64())))
        with pytest.raises(DataError, match=told):
            matches(events, AB, probabilities="weights", **BOUNDS)

    def test_null_bounds(self) -> None:
        events = pa.table(
            {"name": ["a"], "ts": [1], "type": ["A"], "lower": [1], "upper": pa.array([None], pa.int64())}
        )
        with pytest.raises(DataError, match="upper"):
            matches(events, AB, **BOUNDS)

    def test_too_many_worlds(self) -> None:
        text = " ".join(f"a{n}[1,9] b{n}[1,9]" for n in range(9))
        with pytest.raises(LimitError, match="possible worlds"):
            matches(stream(text), AB, **BOUNDS)

    def test_events_that_change_nothing_are_not_enumerated(self) -> None:
        text = "a1[1,3] b2[2,3] " + " ".join(f"x{n}[1,9]" for n in range(30))
        assert confidence(text, AB) == {"a1 b2": pytest.approx(3 / 6)}

    def test_partitions_and_distant_events_are_enumerated_apart(self) -> None:
        text = " ".join(f"a{n}[{n},{n + 2}]:id={n % 2} b{n + 1}[{n + 1},{n + 2}]:id={n % 2}" for n in range(0, 400, 25))
        found = confidence(text, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
        assert found == {f"a{n} b{n + 1}": pytest.approx(3 / 6) for n in range(0, 400, 25)}

    def test_other_partitions_count_under_strict_contiguity(self) -> None:
        query = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [id] } WITHIN 10"
        found = confidence("a1[1,1]:id=1 x2[2,3]:id=2 b3[3,3]:id=1", query)
        assert found == {"a1 b3": pytest.approx(0.5)}

    def test_an_event_whose_type_lacks_the_attribute_may_be_of_every_partition(self) -> None:
        query = "PATTERN SEQ(A a, ANY(B, C) b) WHERE [id] WITHIN 10"
        events = stream("a1[1,3]:id=1 b2[2,3]:id=NULL a3[1,1]:id=2")
        assert judged(events, query, **BOUNDS) == set()
        plan, ready = planned(events, query, lacks={"B": ["id"]}, **BOUNDS)
        found = found_between(plan, ready)
        assert found.confidence is not None
        sure = dict(zip(named(ready, found), found.confidence.tolist(), strict=True))
        assert sure == {"a1 b2": pytest.approx(3 / 6), "a3 b2": pytest.approx(1.0)}

    def test_windows_of_events_reach_any_distance(self) -> None:
        assert confidence("a1[1,1] b90[90,99]", "PATTERN SEQ(A a, B b) WITHIN 2 EVENTS") == {"a1 b90": pytest.approx(1)}

    def test_tiebreakers_mean_nothing_here(self) -> None:
        with pytest.raises(DataError, match="tiebreak"):
            matches(stream("a1[1,2]:seq=1"), AB, tiebreak=("seq",), **BOUNDS)


# The definition of confidence by sums over the events of a match alone (TIME, equations 1 to 3).


def summed(chosen: list[range], others: list[list[range]], window: int, exclude: bool) -> float:
    """Over all instants of the chosen events, in order and in window, the chance that nothing intervenes."""
    total = 0.0
    for instants in product(*chosen):
        if any(a >= b for a, b in pairwise(instants)) or instants[-1] - instants[0] >= window:
            continue
        free = 1.0
        for place in range(1, len(chosen)):
            for other in others[place] if exclude else ():
                between = sum(instants[place - 1] < t < instants[place] for t in other)
                free *= 1 - between / len(other)
        total += free / math.prod(len(each) for each in chosen)
    return total


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=6),
    st.sampled_from(["any", "next"]),
    st.integers(2, 6),
)
def test_confidence_against_sums(drawn: list[tuple[str, int, int]], strategy: str, window: int) -> None:
    text = " ".join(f"{kind.lower()}{n}[{low},{low + width}]" for n, (kind, low, width) in enumerate(drawn))
    query = f"PATTERN SEQ(A a, B b, C c) WHERE skip_till_{strategy}_match {{ }} WITHIN {window}"
    ranges = [range(low, low + width + 1) for _, low, width in drawn]
    places = [[n for n, (kind, _, _) in enumerate(drawn) if kind == wanted] for wanted in "ABC"]
    expected = {}
    for rows in product(*places):
        others = [[ranges[n] for n in place if n not in rows] for place in places]
        likely = summed([ranges[n] for n in rows], others, window, strategy == "next")
        if likely > 0:
            expected[" ".join(f"{drawn[n][0].lower()}{n}" for n in rows)] = likely
    assert confidence(text, query) == pytest.approx(expected, abs=1e-12)
