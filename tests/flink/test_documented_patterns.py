"""Patterns whose results Flink's documentation and its own tests state, in our words and with our events."""

from __future__ import annotations

import pytest

import cepheid
from cepheid.errors import DataError
from cepheid.flink import AfterMatchSkipStrategy, Pattern
from flink.cases import events, found


def named(step: str, name: str, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
    return Pattern.begin(step, skip=skip).where(f"name = '{name}'")


START = named("start", "c")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (named("s", "a").next("e").where("name = 'b'"), []),
        (named("s", "a").followed_by("e").where("name = 'b'"), ["a b1"]),
        (named("s", "a").followed_by_any("e").where("name = 'b'"), ["a b1", "a b2"]),
    ],
)
def test_contiguity(pattern: Pattern, expected: list[str]) -> None:
    assert found("a c b1 b2", pattern) == expected


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("consecutive", ["c a1 a2 a3 b", "c a1 a2 b", "c a1 b"]),
        ("", ["c a1 a2 a3 a4 b", "c a1 a2 a3 b", "c a1 a2 b", "c a1 b"]),
        (
            "allow_combinations",
            [
                "c a1 a2 a3 a4 b",
                "c a1 a2 a3 b",
                "c a1 a2 a4 b",
                "c a1 a2 b",
                "c a1 a3 a4 b",
                "c a1 a3 b",
                "c a1 a4 b",
                "c a1 b",
            ],
        ),
    ],
)
def test_one_or_more_reports_prefixes(how: str, expected: list[str]) -> None:
    middle = START.followed_by("middle").where("name = 'a'").one_or_more()
    middle = getattr(middle, how)() if how else middle
    assert found("c d a1 a2 a3 d a4 b", middle.followed_by("end").where("name = 'b'")) == expected


def test_greedy_waits_for_the_longest() -> None:
    middle = START.followed_by("middle").where("name = 'a'").one_or_more().greedy()
    assert found("c a1 a2 a3 d", middle.followed_by("end").where("name = 'd'")) == ["c a1 a2 a3 d"]
    optional = START.followed_by("middle").where("name = 'a'").one_or_more().optional().greedy()
    assert found("c d", optional.followed_by("end").where("name = 'd'")) == ["c d"]
    at_least = START.followed_by("middle").where("name = 'a'").times(1, 2).greedy()
    assert found("c a1 a2 d", at_least.followed_by("end").where("name = 'd'")) == ["c a1 a2 d"]


def test_times() -> None:
    twice = START.followed_by("middle").where("name = 'a'").times(2)
    end = "name = 'b'"
    assert found("c a1 d a2 a3 b", twice.followed_by("end").where(end)) == ["c a1 a2 b"]
    assert found("c a1 d a2 a3 b", twice.consecutive().followed_by("end").where(end)) == []
    assert found("c d a2 a3 b", twice.consecutive().followed_by("end").where(end)) == ["c a2 a3 b"]
    ranged = START.next("middle").where("name = 'a'").times(0, 2)
    assert found("c a1 a2 b", ranged.followed_by("end").where(end)) == ["c a1 a2 b", "c a1 b", "c b"]
    more = START.next("middle").where("name = 'a'").times_or_more(2)
    assert found("c a1 a2 a3 b", more.next("end").where(end)) == ["c a1 a2 a3 b"]


def test_optional_steps_give_null_and_empty_lists() -> None:
    pattern = START.followed_by("one").where("name = 'a'").optional().followed_by("many").where("name = 'e'")
    pattern = pattern.one_or_more().optional().followed_by("end").where("name = 'b'")
    (match,) = cepheid.match(events("c b"), pattern, time="ts", type=None).to_pylist()
    assert match["one"] is None
    assert match["many"] == []
    assert match["start"] == {"ts": 1, "name": "c", "price": 0.0, "id": 0}


def test_negation() -> None:
    between = START.not_followed_by("no").where("name = 'e'").followed_by("end").where("name = 'b'")
    assert found("c e b1 c b2", between) == ["c b2"]
    directly = START.not_next("no").where("name = 'e'").followed_by("end").where("name = 'b'")
    assert found("c e b1", directly) == []
    assert found("c d e b1", directly) == ["c b1"]
    at_the_end = START.not_followed_by("no").where("name = 'e'").within(3)
    assert found("c d c e d@9", at_the_end) == ["c"]
    assert found("c d", at_the_end) == ["c"]
    # An optional step that took an event frees what follows it from the negation before it.
    freed = (
        named("a", "a").not_followed_by("no").where("name = 'b'").followed_by_any("c").where("name = 'c'").optional()
    )
    freed = freed.followed_by_any("d").where("name = 'd'")
    assert found("a c b d", freed) == ["a c d"]
    assert found("a b d", freed) == []


def test_until_ends_a_loop() -> None:
    loop = START.followed_by("middle").where("name = 'a'").one_or_more().until("price = 3")
    assert found("c a1 a2 a3 a4 b", loop.followed_by("end").where("name = 'b'")) == ["c a1 a2 b", "c a1 b"]
    greedy = START.followed_by("middle").where("name = 'a'").one_or_more().greedy().until("price = 3")
    assert found("c a1 a2 a3 a4 b", greedy.followed_by("end").where("name = 'b'")) == ["c a1 a2 b"]


def test_conditions_look_back() -> None:
    growing = START.followed_by("middle").where("name = 'a'").where("sum(middle[..i-1].price) + middle[i].price < 5")
    growing = (
        growing.one_or_more().followed_by("end").where("name = 'b' AND price > start.price AND count(middle[]) = 2")
    )
    assert found("c1 a1 a2 a3 b4", growing) == ["c1 a1 a2 b4"]
    rising = START.followed_by("middle").where("name = 'a' AND price > middle[i-1].price").one_or_more().consecutive()
    assert found("c a2 a3 a1", rising) == ["c a2", "c a2 a3"]
    either = START.followed_by("end").where("name = 'b'").or_("price > 7")
    assert found("c d8 b1", either) == ["c d8"]


def test_groups() -> None:
    pair = Pattern.begin("x").where("name = 'a'").followed_by("y").where("name = 'b'")
    twice = START.followed_by(pair).times(2).followed_by("end").where("name = 'd'")
    assert found("c a1 b1 a2 b2 d", twice) == ["c a1 b1 a2 b2 d"]
    looping = START.followed_by(pair).one_or_more().optional().followed_by("end").where("name = 'd'")
    assert found("c a1 b1 a2 b2 d", looping) == ["c a1 b1 a2 b2 d", "c a1 b1 d", "c d"]
    first = Pattern.begin(pair).times(2).consecutive()
    assert found("a1 b1 a2 b2", first) == ["a1 b1 a2 b2"]


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        (AfterMatchSkipStrategy.no_skip(), ["a1 a2", "a1 a2 a3", "a2 a3", "a1", "a2", "a3"]),
        (AfterMatchSkipStrategy.skip_to_next(), ["a1", "a2", "a3"]),
        (AfterMatchSkipStrategy.skip_past_last_event(), ["a1", "a2", "a3"]),
    ],
)
def test_skipping_after_a_loop(skip: AfterMatchSkipStrategy, expected: list[str]) -> None:
    assert found("a1 a2 a3", named("s", "a", skip).one_or_more()) == sorted(expected)


def test_skipping_past_and_to_steps() -> None:
    past = AfterMatchSkipStrategy.skip_past_last_event()
    three = named("s", "a", past).next("t").where("name = 'a'").next("u").where("name = 'a'")
    assert found("a1 a2 a3 a4 a5 a6", three) == ["a1 a2 a3", "a4 a5 a6"]
    for strategy in (AfterMatchSkipStrategy.skip_to_first("t"), AfterMatchSkipStrategy.skip_to_last("t")):
        pair = named("s", "a", strategy).next("t").where("name = 'a'").times(2).next("u").where("name = 'a'")
        expected = {
            "skip_to_first": ["a1 a2 a3 a4", "a2 a3 a4 a5", "a3 a4 a5 a6"],
            "skip_to_last": ["a1 a2 a3 a4", "a3 a4 a5 a6"],
        }
        assert found("a1 a2 a3 a4 a5 a6", pair) == expected[strategy.skip.value]


def test_a_strict_strategy_says_what_it_misses() -> None:
    skip = AfterMatchSkipStrategy.skip_to_first("t").throw_exception_on_miss()
    pattern = named("s", "a", skip).next("t").where("name = 'b'").optional().next("u").where("name = 'c'")
    for engine in ("automaton", "reference"):
        with pytest.raises(DataError, match="no event of step 't'"):
            cepheid.match(events("a c"), pattern, type=None, engine=engine)
    back = named("s", "a", AfterMatchSkipStrategy.skip_to_first("s").throw_exception_on_miss())
    with pytest.raises(DataError, match="begins with step 's'"):
        cepheid.match(events("a"), back, type=None)


def test_windows() -> None:
    whole = named("s", "a").followed_by("e").where("name = 'b'").within(3)
    assert found("a1 b1@3 a2@9 b2@12", whole) == ["a1 b1"]
    between = named("s", "a").followed_by("m").where("name = 'b'").followed_by("e").where("name = 'c'")
    between = between.within(3, between_events=True)
    assert found("a b@9 c@11", between) == ["a b c"]
    assert found("a b@9 c@12", between) == []
    rounds = named("s", "a").times(3, within=2).followed_by("e").where("name = 'b'")
    assert found("a1 a2 a3 b", rounds) == ["a1 a2 a3 b"]
    assert found("a1 a2@9 a3 b", rounds) == []


def test_keys_and_types() -> None:
    table = events("a1 a2 b1 b2").append_column("key", [["x", "y", "y", "x"]])
    pattern = Pattern.begin("s").subtype("a").next("e").subtype("b")
    result = cepheid.match(table, pattern, type="name", partition_by="key")
    assert sorted((row["s"]["id"], row["e"]["id"]) for row in result.to_pylist()) == [(0, 3), (1, 2)]


def test_a_loop_whose_sum_is_bounded() -> None:
    """Every prefix whose prices add up to less than 5; with combinations, every choice."""
    middle = named("start", "s").followed_by("middle").where("name = 'f'").one_or_more()
    bounded = "sum(middle[..i-1].price) + middle[i].price < 5"
    stream = "s1 f1 f2 s2 f3 f1@5 n e"
    eager = middle.where(bounded).followed_by("end").where("name = 'e'")
    assert len(found(stream, eager)) == 5
    any_choice = middle.where(bounded).allow_combinations().followed_by("end").where("name = 'e'")
    assert len(found(stream, any_choice)) == 7
    first = Pattern.begin("start").where("name = 's' AND sum(start[].price) + price < 5").one_or_more().optional()
    assert found("s1 s2 s3 e", first.followed_by("end").where("name = 'e'")) == ["e", "s1 e", "s1 s2 e", "s2 e", "s3 e"]
    later = named("start", "s").one_or_more().followed_by("end").where("name = 'e' AND sum(start[].price) >= 2")
    assert found("s1 s2 e", later) == ["s1 s2 e", "s2 e"]


def test_absence_at_the_end_with_other_steps() -> None:
    stream = "a1 b1@2 a2@4 c@5 b2@10 a3@11 b3@13"
    for between in (False, True):
        alone = named("a", "a").not_followed_by("b").where("name = 'b'").within(3, between_events=between)
        assert found(stream, alone) == ["a2"]
    some = named("a", "a").not_followed_by("b").where("name = 'b'").followed_by("c").where("name = 'c'").times(0, 2)
    stream = "a1 b1 a2@10 c1 c2 a3@20 c3 c4@24"
    assert found(stream, some.within(3)) == ["a1", "a2", "a2 c1", "a2 c1 c2", "a3", "a3 c3"]
    past = named("a", "a", AfterMatchSkipStrategy.skip_past_last_event()).one_or_more().allow_combinations()
    past = past.followed_by("c").where("name = 'c'").not_followed_by("b").where("name = 'b'").within(5)
    assert found("a1 a2 a3 c1 c2@10", past) == ["a1 a2 a3 c1"]


@pytest.mark.parametrize("how", ["followed_by", "followed_by_any"])
def test_a_negation_before_zero_or_more(how: str) -> None:
    start = named("a", "a").not_followed_by("not c").where("name = 'c'")
    loop = getattr(start, how)("b*").where("name = 'b'").one_or_more().optional()
    expected = ["a b1 b4 b5 b6 d", "a b1 b4 b5 d", "a b1 b4 d", "a b1 d"]
    assert found("a b1 c b4 b5 b6 d", loop.followed_by("d").where("name = 'd'")) == expected


def test_skipping_waits_for_matches_that_began_earlier() -> None:
    to_c = AfterMatchSkipStrategy.skip_to_first("c")
    pattern = named("a", "a", to_c).followed_by("c").where("name = 'c'")
    pattern = pattern.followed_by("b").where("name = 'b' AND price = a.price")
    assert found("a0 c0 a1 c0 b1 b0", pattern) == ["a0 c0 b0", "a1 c0 b1"]
    greedy = named("a", "a", AfterMatchSkipStrategy.skip_to_last("a")).one_or_more().consecutive().greedy()
    assert found("a1 a2 a3 b1", greedy.next("b").where("name = 'b'")) == ["a1 a2 a3 b1", "a3 b1"]
    odd = Pattern.begin("a or c", skip=AfterMatchSkipStrategy.skip_to_first("c*")).where("name IN ('a', 'c')")
    odd = odd.followed_by("b or c").where("name IN ('b', 'c')").followed_by("c*").where("name = 'c'").one_or_more()
    odd = odd.greedy().followed_by("d").where("name = 'd' AND count(`c*`[]) > 0")
    assert found("a b c1 c2 c3 d", odd) == ["a b c1 c2 c3 d", "c1 c2 c3 d"]


def test_rounds_of_a_group_need_not_follow_each_other_at_once() -> None:
    assert found("b1 d2 b3", Pattern.begin(named("x", "b")).one_or_more()) == ["b1", "b1 b3", "b3"]


def test_combinations_and_what_follows_each() -> None:
    pattern = named("s", "b").times(1, 3).allow_combinations().followed_by("e").where("name = 'c'")
    expected = ["b1 b3 b5 c6", "b1 b3 c6", "b1 b5 c6", "b1 c4", "b3 b5 c6", "b3 c6", "b5 c6"]
    assert found("b1 c4 b3 b5 c6", pattern) == expected


def test_a_window_of_an_earlier_step() -> None:
    first = named("s", "a").within(3).followed_by("e").where("name = 'b'")
    assert found("a1 c4 b3", first) == ["a1 b3"]
    assert found("a1 c4 c5 b3", first) == []
    assert found("a1 c4 c5 b3", first.within(9)) == []
