"""What Flink's builder and compiler refuse, we refuse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import reduce

import pytest

import cepheid
from cepheid.errors import CepheidError, EngineError, QueryError
from cepheid.flink import AfterMatchSkipStrategy, Pattern
from flink.cases import events

A = Pattern.begin("a")

MALFORMED: dict[str, Callable[[], Pattern]] = {
    "taken several times": lambda: A.greedy(),
    "allow_combinations": lambda: A.one_or_more().allow_combinations().greedy(),
    "not for a group": lambda: Pattern.begin(A).one_or_more().greedy(),
    "ends a loop": lambda: A.times(2).until("price = 1"),
    "one until": lambda: A.one_or_more().until("price = 1").until("price = 2"),
    "after a greedy one": lambda: A.one_or_more().greedy().followed_by("b").optional(),
    "given twice": lambda: A.optional().optional(),
    "cannot be optional": lambda: A.not_next("n").optional(),
    "one quantifier": lambda: A.one_or_more().times(2),
    "negated step": lambda: A.not_next("n").one_or_more(),
    "after an optional part": lambda: A.optional().not_followed_by("n"),
    "after an optional": lambda: A.one_or_more().optional().not_next("n"),
    "consecutive is for": lambda: A.consecutive(),
    "consecutive is given": lambda: A.one_or_more().consecutive().consecutive(),
    "cannot be combined with": lambda: A.one_or_more().consecutive().allow_combinations(),
    "is not a valid number of events": lambda: A.times(0),
    "at least 3": lambda: A.times(3, 2),
    "conditions inside the group": lambda: Pattern.begin(A).where("price = 1"),
    "longer than zero": lambda: A.within(0),
    "takes a text": lambda: A.where(lambda event: True),  # type: ignore[arg-type]
    "not a strategy": lambda: Pattern.begin("a", skip="skip_to_next"),  # type: ignore[arg-type]
    "name of a step is a string": lambda: A.next(3),  # type: ignore[arg-type]
    "neither True nor False": lambda: A.next("b").within(3, "PREVIOUS_AND_CURRENT"),  # type: ignore[arg-type]
    "longer than zero; for example times": lambda: A.times(2, within=0),
    "'3' is not a valid number of events": lambda: A.times(2, "3"),
    "one_or_more after times": lambda: A.times(2).one_or_more(),
    "names no step": lambda: Pattern.begin("a", AfterMatchSkipStrategy.no_skip().throw_exception_on_miss()),
}

NOT_COMPILED: dict[str, Pattern] = {
    "two steps are called 'a'": A.next("a"),
    "called 'b'": A.next(Pattern.begin("b").next("c")).next("b"),
    "needs a window": A.not_followed_by("n"),
    "names 'x'": Pattern.begin("a", AfterMatchSkipStrategy.skip_to_first("x")),
    "longer than that of the whole": A.next("b").within(5, between_events=True).within(3),
    "may be empty": Pattern.begin(A.optional()).one_or_more(),
    "no attribute 'prize'": A.where("prize > 3"),
    "step 'b' comes later": A.where("price < b.price").next("b"),
    "no step 'z'": A.where("price > z.price"),
    "counts the events of the step itself": A.next("b").where("price > a[i-1].price"),
    "more than a condition": A.where("price > 3 WITHIN 4"),
    "cannot be used in one step": A.where("[name]"),
    "in backticks": Pattern.begin("first-one").next("b").where("price > first-one.price"),
    "is not a condition": A.where("price"),
    "needs the types": A.subtype("b"),
    "as a column of the result": Pattern.begin("match_start"),
}


@pytest.mark.parametrize("told", MALFORMED)
def test_a_malformed_pattern(told: str) -> None:
    with pytest.raises(QueryError, match=told):
        MALFORMED[told]()


@pytest.mark.parametrize("told", NOT_COMPILED)
def test_a_pattern_that_cannot_be_compiled(told: str) -> None:
    with pytest.raises(QueryError, match=told):
        cepheid.match(events("a b"), NOT_COMPILED[told], type=None)


def test_an_error_points_into_the_condition() -> None:
    with pytest.raises(QueryError) as raised:
        cepheid.match(events("a"), A.where("name = 'a' AND prise > 2"), type=None)
    assert str(raised.value).splitlines() == [
        "line 1, column 16: no attribute 'prise'",
        "name = 'a' AND prise > 2",
        "               ^^^^^ did you mean 'price'?",
    ]


def test_a_length_of_time_may_stand_where_flink_has_it() -> None:
    assert str(A.times(3, timedelta(seconds=2))) == str(A.times(3, within=timedelta(seconds=2)))
    assert str(A.times(3, "2 seconds")) == str(A.times(3, within="2 seconds"))
    assert str(A.times(2, 3, "2 seconds")) == "Pattern.begin('a').times(2, 3, within='2 seconds')"


def test_options_are_checked() -> None:
    with pytest.raises(CepheidError, match="did you mean partition_by"):
        cepheid.match(events("a"), A, partition_bye="name")
    with pytest.raises(EngineError, match="cannot run a Flink pattern"):
        cepheid.match(events("a"), A, engine="stacks")
    with pytest.raises(QueryError, match="a Flink pattern has no losses to fit"):
        cepheid.fit(events("a"), A)


def test_a_pattern_reads_as_it_was_written() -> None:
    skip = AfterMatchSkipStrategy.skip_to_last("b")
    group = Pattern.begin("c").where("price > 1").or_("price < 0")
    pattern = Pattern.begin("a", skip=skip).where("name = 'a'").followed_by("b").times(2, 3, within=4)
    pattern = pattern.next(group).one_or_more().consecutive().optional().within(9)
    assert str(pattern) == (
        "Pattern.begin('a', skip=AfterMatchSkipStrategy.skip_to_last('b')).where(\"name = 'a'\")"
        ".followed_by('b').times(2, 3, within=4)"
        ".next(Pattern.begin('c').where('price > 1').or_('price < 0')).one_or_more().consecutive().optional().within(9)"
    )


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(QueryError, match="groups nested more than 50 deep") as caught:
        reduce(lambda group, _: Pattern.begin(group), range(3_000), A)
    assert caught.value.code == "too-deep"
    with pytest.raises(QueryError, match="more than 200 conditions of one step"):
        reduce(lambda step, _: step.where("price > 0"), range(3_000), A)
    for condition in ("(" * 50 + "price > 0" + ")" * 50, " AND ".join(["price > 0"] * 3_000)):
        assert cepheid.match(events("a1"), A.where(condition), type="name").num_rows == 1
    for condition in ("NOT " * 3_000 + "price > 0", "CASE WHEN price > 0 THEN " * 1_000 + "true" + " END" * 1_000):
        with pytest.raises(QueryError) as caught:
            cepheid.match(events("a1"), A.where(condition), type="name")
        assert caught.value.code == "too-deep"
