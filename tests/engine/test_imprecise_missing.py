"""Missing events and imprecise times together: the expected score is that of enumerating all possible worlds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.instants import with_bounds
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.engines import intervals as supported
from cepheid.engine.find import find
from cepheid.engine.limits import MAX_BRANCHES
from cepheid.engine.retention import retained
from cepheid.errors import EngineError, LimitError, QueryError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import Schema
from cepheid.model import Exponential, Gamma, Model, Uniform
from cepheid.plan.physical import Limits, Plan
from cepheid.simulate.gaps import Gap
from cepheid.simulate.retail import retail_visits
from strategies.agreement import bound_to, cut
from strategies.intervals import ROLES, assert_same, described, in_order, intervals, run
from strategies.models import models
from strategies.queries import queries, streams

WITHIN = 1e-9
QUERIES = queries(threshold=True, returns=False, output=False, max_window=6)
THRESHOLDS = st.sampled_from([None, 0.001, 0.05, 0.3, 0.7])
SCORINGS = st.sampled_from(["exact", "paper", "posterior"])
MODEL = Model(loss=0.1, gaps={"b": Exponential(mean=20, happens=0.9), "c": Exponential(mean=30)})

pytestmark = pytest.mark.filterwarnings("ignore:THRESHOLD")  # a low threshold is warned of, and many are drawn

Case = tuple[s.QuerySyntax, pa.Table, dict[str, Any]]  # query, stream, and the rest of the plan


GROUPS = queries(
    strategy=(s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT),
    max_components=3,
    window=True,
    event_window=False,
    untyped=False,
    returns=False,
    output=False,
    max_window=6,
)


@st.composite
def following(draw: st.DrawFn) -> s.QuerySyntax:
    """A query with defaults for missing events, under skip_till_next_match."""
    query = draw(QUERIES)
    variables = tuple(component.variable for component in query.components if not component.negative)
    return replace(query, selection=s.Selection(s.Strategy.SKIP_TILL_NEXT, variables))


@st.composite
def cases(draw: st.DrawFn, tables: st.SearchStrategy[pa.Table] = intervals(max_size=6)) -> Case:  # noqa: B008
    """A query with or without a threshold, an imprecise stream, a model, a scoring, and options."""
    query = replace(draw(QUERIES | GROUPS | following()), threshold=draw(THRESHOLDS))
    if draw(st.integers(0, 3)) == 3:
        query = replace(query, output=s.Output(s.OutputMode.MAXIMAL))
    table = draw(tables)
    options: dict[str, Any] = {"missing_last": draw(st.booleans())}
    if draw(st.booleans()):
        options["confidence"] = draw(st.sampled_from([0.1, 0.5]))
    if "odds" in table.column_names and draw(st.booleans()):
        options["probabilities"] = "odds"
    model = draw(models(component.variable for component in query.components))
    return query, table, {"model": model, "scoring": draw(SCORINGS), "options": options}


def planned(case: Case, engine: str = "intervals", **more: Any) -> tuple[Plan, Any]:
    query, table, rest = case
    bound = bound_to(query, table, **ROLES)
    assume(not bound.negations or len(bound.branches) <= MAX_BRANCHES)
    assert supported(bound, True, True) is None
    partition = {} if "compared" in more else {"partition": bound.equivalence}
    return Plan(bound, engine, **partition, **rest, **more), in_order(bound, table)


def assert_agree(found: Matches, expected: Matches) -> None:
    """The same in everything; probabilities and confidences at a limit may fall on either side of it."""
    assert_same(found, expected)
    assert found.probability is not None
    assert expected.probability is not None
    known = dict(zip(expected.groups(), expected.probability.tolist(), strict=True))
    for group, probability in zip(found.groups(), found.probability.tolist(), strict=True):
        assert abs(probability - known[group]) < WITHIN, group


@given(cases(), st.booleans())
def test_it_agrees_with_possible_worlds(case: Case, compared: bool):
    plan, events = planned(case)
    if compared:
        plan = replace(plan, partition=(), compared=plan.bound.equivalence)
    assert_agree(find(plan, events), find(replace(plan, engine="reference"), events))


@given(cases(), st.lists(st.integers(-5, 25), max_size=4))
def test_intervals_of_completion_can_be_cut_anywhere(case: Case, cuts: list[int]):
    plan, events = planned(case)
    pieces = [everything(piece) for piece in cut(plan, events, cuts)]
    whole = everything(find(plan, events))
    assert sum(map(len, pieces)) == len(whole)
    assert {key: value for piece in pieces for key, value in piece.items()} == whole


@given(cases(), st.lists(st.integers(-5, 20), max_size=3))
def test_retained_events_are_enough(case: Case, cuts: list[int]):
    """A stream that keeps only what `retained` says finds what a table holds, with the same probabilities."""
    query, table, rest = case
    table = table.append_column("number", pa.array(range(table.num_rows)))
    plan, events = planned((query, table, rest))
    state, found, before = events.table.slice(0, 0), {}, -100
    for until in [*sorted(set(cuts)), 100]:
        arriving = (events.time > before) & (events.time <= until)
        now = ordered(pa.concat_tables([state, events.table.filter(pa.array(arriving))]), plan.bound.schema)
        piece = by_number(find(plan, now, before, until), now)
        assert not found.keys() & piece.keys()
        found |= piece
        state, before = now.table.filter(pa.array(retained(plan, now, until))), until
    whole = by_number(find(plan, events), events)
    assert found.keys() == whole.keys()
    for key, values in whole.items():
        assert found[key] == pytest.approx(values)


def by_number(matches: Matches, events: EventTable) -> dict[Any, Any]:
    numbers = events.table["number"].to_pylist()
    return {
        tuple(tuple(numbers[row] for row in group) for group in groups): values
        for groups, values in everything(matches).items()
    }


def everything(matches: Matches) -> dict[Any, Any]:
    assert matches.probability is not None
    return {
        group: (*values, probability)
        for (group, values), probability in zip(described(matches).items(), matches.probability, strict=True)
    }


@given(cases(streams(max_size=8)))
def test_with_equal_bounds_it_is_the_precise_result_with_confidence_1(case: Case):
    query, table, rest = case
    rest["options"].pop("confidence", None)
    precise = bound_to(query, table)
    expected = find(Plan(precise, "reference", **rest), ordered(table, precise.schema))
    bounded = table.append_column("lower", table["ts"]).append_column("upper", table["ts"])
    found = find(*planned((query, bounded, rest)))
    assert sorted(zip(found.groups(), found.completion.tolist(), strict=True)) == sorted(
        zip(expected.groups(), expected.completion.tolist(), strict=True)
    )
    assert found.confidence is not None
    assert (found.confidence == 1.0).all()
    scores = dict(zip(expected.groups(), expected.probability, strict=True))  # type: ignore[arg-type]
    for group, probability in zip(found.groups(), found.probability, strict=True):  # type: ignore[arg-type]
        assert probability == pytest.approx(scores[group], abs=WITHIN)


@given(queries(kleene=False, strategy=s.Strategy.SKIP_TILL_ANY, window=True, event_window=False, max_window=6,
               negation=False, untyped=False, output=False, returns=False), intervals())  # fmt: skip
def test_without_loss_it_is_the_engine_that_takes_every_event_as_seen(query: s.QuerySyntax, table: pa.Table):
    bound = bound_to(query, table, **ROLES)
    events = in_order(bound, table)
    model = Model(loss=0.0, gaps={component.variable: Exponential(mean=3.0) for component in query.components})
    found = find(Plan(bound, "intervals", partition=bound.equivalence, model=model), events)
    assert_same(found, run(bound, events, "intervals"))
    assert found.probability == pytest.approx(found.confidence)


@given(cases(), st.integers(2, 3))
def test_coarser_instants_agree_with_possible_worlds(case: Case, unit: int):
    query, table, rest = case
    assert query.within is not None
    query = replace(query, within=replace(query.within, length=query.within.length * unit))
    rest["options"].pop("probabilities", None)
    rest["options"]["unit"] = unit
    plan, events = planned((query, table, rest))
    assert_agree(find(plan, events), find(replace(plan, engine="reference"), events))


# --- by hand --------------------------------------------------------------------------------------------------------

SHOP = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 100 THRESHOLD {}"


def visits(*events: tuple[str, int, int, int]) -> pa.Table:
    """Readings as (reader, tag, earliest, latest)."""
    names = ("type", "tag", "lower", "upper")
    return pa.table({name: [event[index] for event in events] for index, name in enumerate(names)})


def not_paid(span: int) -> float:
    passed = 0.9 * (1 - np.exp(-span / 20))
    return float((1 - passed) / (0.1 * passed + 1 - passed))


def test_the_expectation_is_that_over_the_spans():
    table = visits(("Shelf", 1, 0, 2), ("Exit", 1, 2, 3))
    (found,) = cepheid.match(table, SHOP.format(0.3), model=MODEL, **ROLES).to_pylist()
    spans = [1, 2, 2, 3, 1]  # of six pairs of instants, one comes in no order
    assert found["probability"] == pytest.approx(sum(map(not_paid, spans)) / 6)
    assert found["confidence"] == pytest.approx(5 / 6)
    assert (found["earliest"], found["latest"]) == (0, 3)


def test_a_register_reading_kills_only_where_it_lies_between():
    table = visits(("Shelf", 1, 0, 0), ("Register", 1, 4, 7), ("Exit", 1, 6, 6))
    (found,) = cepheid.match(table, SHOP.format(0.2), model=MODEL, **ROLES).to_pylist()
    assert found["confidence"] == pytest.approx(0.5)  # the reading at 6 or 7
    assert found["probability"] == pytest.approx(0.5 * not_paid(6))


@pytest.mark.parametrize("width", [1, 40])
def test_three_events_far_from_enumeration(width: int):
    """A recurrence over 40 instants each, against sums over all their combinations."""
    gaps = {"b": Uniform(1.0, 60.0), "d": Gamma(shape=2.0, scale=9.0)}
    model = Model(loss=0.2, gaps={**gaps, "a": Exponential(mean=50), "c": Exponential(mean=9)})
    text = "PATTERN SEQ(A a, B b, C c, D d, E e) WITHIN 150 THRESHOLD 1e-6"
    table = pa.table({"type": ["A", "C", "E"], "lower": [0, 20, 50], "upper": [width, 20 + width, 50 + width]})
    (found,) = (
        match
        for match in cepheid.match(
            table, text, model=Model(loss=0.2, gaps={**model.gaps, "e": Uniform(0, 9)}), **ROLES
        ).to_pylist()
        if match["a"] and match["c"] and match["e"]
    )
    instants = np.arange(width + 1)
    first, second, third = np.meshgrid(instants, 20 + instants, 50 + instants, indexing="ij")
    inside = (first < second) & (second < third) & (third - first < 150)
    score = 0.04 * gaps["b"].cdf(np.maximum(second - first, 0.0)) * gaps["d"].cdf(np.maximum(third - second, 0.0))
    assert found["probability"] == pytest.approx(float((score * inside).mean()), abs=WITHIN)
    assert found["confidence"] == pytest.approx(float(inside.mean()), abs=WITHIN)


# --- a store --------------------------------------------------------------------------------------------------------

TO_EXIT = Gap("exponential", mean=20.0)
STORE = Model(loss=0.1, gaps={"y": Gamma(shape=2.0, scale=10.0), "z": Exponential(mean=20.0)}, happens={"x": 1.0})


def store(tags: int, half_width: int, **roles: str) -> tuple[BoundQuery, EventTable]:
    """Visits of some minutes, whose readings may be off by some seconds."""
    to_register = Gap("gamma", mean=20.0, shape=2.0)
    visits = retail_visits(tags, loss=0.1, exit_clock="shelf", to_register=to_register, to_exit=TO_EXIT, seed=3)
    table = with_bounds(visits.events, half_width).table
    text = "PATTERN SEQ(Shelf x, !(Register y), Exit z) WHERE [tag_id] WITHIN 240 THRESHOLD 0.02"
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **roles))
    return bound, ordered(table, bound.schema)


@pytest.mark.parametrize("scoring", ["exact", "posterior"])
def test_a_store_agrees_with_possible_worlds(scoring: str):
    bound, events = store(60, 2, lower="ts_lower", upper="ts_upper")
    plan = Plan(bound, "intervals", partition=("tag_id",), model=STORE, scoring=scoring)
    found = find(plan, events)
    assert len(found) > 30
    assert_agree(found, find(replace(plan, engine="reference"), events))


def test_a_store_of_exact_readings_is_what_the_engine_for_missing_events_finds():
    bound, events = store(4000, 0, lower="ts_lower", upper="ts_upper")
    found = find(Plan(bound, "intervals", partition=("tag_id",), model=STORE), events)
    bound, events = store(4000, 0)
    expected = find(Plan(bound, "queues", partition=("tag_id",), model=STORE), events)
    scores = dict(zip(expected.groups(), expected.probability.tolist(), strict=True))  # type: ignore[union-attr]
    assert len(scores) > 1500
    assert dict(zip(found.groups(), found.probability.tolist(), strict=True)) == pytest.approx(scores, abs=1e-6)  # type: ignore[union-attr]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("engine", ["intervals", "reference"])
def test_worlds_of_score_0_count_in_the_confidence_under_every_scoring(engine: str, negated: bool):
    # b takes at least 2: in some worlds the score is 0, but the events are in order.
    table = pa.table({"type": ["A", "C", "N"], "lower": [1, 3, 1], "upper": [2, 6, 4]})
    gaps = {"b": Uniform(2, 4, happens=0.5), "n": Uniform(0, 5), "c": Exponential(mean=4)}
    model = Model(loss=0.1, gaps=gaps, happens={"a": 1.0})
    text = f"PATTERN SEQ(A a, {'!(N n), ' if negated else ''}B b, C c) WITHIN 9"
    expected = (18 / 32, 1, 6) if negated else (1.0, 1, 6)  # of 32 worlds, n lies between a and c in 14
    for scoring in ("exact", "paper", "posterior"):
        rows = cepheid.match(table, text, model=model, scoring=scoring, engine=engine, **ROLES).to_pylist()
        ((*seen,),) = [(row["confidence"], row["earliest"], row["latest"]) for row in rows if row["a"]]
        assert seen == pytest.approx(list(expected))
    # A match that scores 0 in every world is none.
    never = Model(loss=0.1, gaps={**gaps, "b": Uniform(20, 40)}, happens={"a": 1.0})
    rows = cepheid.match(table, text, model=never, engine=engine, **ROLES).to_pylist()
    assert not [row for row in rows if row["a"] and not row["b"]]


# --- limits and refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, A+ b[]) WITHIN 9 THRESHOLD 0.1",
        "PATTERN SEQ(A a, A b) WHERE skip_till_next_match(a, b) { } WITHIN 9 THRESHOLD 0.1",
        "PATTERN SEQ(A a, A b) WHERE strict_contiguity(a, b) { } WITHIN 9",
        "PATTERN SEQ(A a, A b) WHERE partition_contiguity(a, b) { } WITHIN 9",
    ],
)
@pytest.mark.parametrize("doubt", [ROLES, {"existence": "p", "time": "lower"}], ids=["imprecise", "existence"])
def test_what_the_page_on_imprecise_time_says_that_runs(text: str, doubt: dict[str, Any]):
    table = pa.table({"type": ["A", "A"], "lower": [0, 1], "upper": [3, 4], "p": [0.5, 0.9]})
    given = {"model": MODEL} if "THRESHOLD" in text else {}
    assert cepheid.match(table, text, **given, **doubt).num_rows


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, (A b | A c)) WITHIN 9 THRESHOLD 0.1", "a pattern that is more than a sequence"),
        ("PATTERN SEQ(A a, A? b, A c) WITHIN 9 THRESHOLD 0.1", "a pattern that is more than a sequence"),
        ("PATTERN SEQ(A a, A b) WITHIN 9 THRESHOLD 0.1 OUTPUT TOP 2 BY CONFIDENCE", "TOP k BY CONFIDENCE"),
        ("PATTERN SEQ(A a, A b) WHERE strict_contiguity(a, b) { } WITHIN 9", "a missing event is a gap"),
        ("PATTERN SEQ(A a, A b)", "a window of time"),
        ("PATTERN SEQ(A a, A b) WITHIN 3 EVENTS", "WITHIN n EVENTS"),
        ("PATTERN SEQ(A a, A b) WITHIN 9 OUTPUT NON-OVERLAP", "NON-OVERLAP"),
    ],
)
def test_what_cannot_be_combined_is_refused(text: str, why: str):
    table = pa.table({"type": ["A", "A"], "lower": [0, 1], "upper": [3, 4]})
    for engine in ("auto", "intervals"):
        with pytest.raises((EngineError, QueryError), match=why):
            cepheid.match(table, text, engine=engine, model=MODEL, **ROLES)
    with pytest.raises(EngineError, match="it assumes that every event was seen"):
        cepheid.match(table, "PATTERN SEQ(A a, A b) WITHIN 9 THRESHOLD 0.1", engine="points", model=MODEL, **ROLES)


def test_a_window_of_too_many_instants_is_refused():
    text = "PATTERN SEQ(A a, A b) WITHIN 1000000 THRESHOLD 0.1"
    table = pa.table({"type": ["A", "A"], "lower": [0, 1], "upper": [3, 4]})
    model = Model(loss=0.2, gaps={"b": Exponential(mean=5000.0)})
    with pytest.raises(LimitError, match=r"may hold 200,000 instants, not 1,000,000.*unit="):
        cepheid.match(table, text, model=model, **ROLES)
    assert cepheid.match(table, text, model=model, unit=100, **ROLES).num_rows == 2


def test_limits_are_kept():
    size = 8
    table = pa.table({"type": ["A", "B"] * (size // 2), "lower": range(size), "upper": [t + 9 for t in range(size)]})
    text = "PATTERN SEQ(A a, !(B n), A b, A c) WITHIN 20 THRESHOLD 0.0001"
    gap = Exponential(mean=3.0)
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    plan = Plan(bound, "intervals", model=Model(loss=0.3, gaps=dict.fromkeys("anbc", gap)))
    events = in_order(bound, table)
    assert len(find(plan, events)) > 20
    with pytest.raises(LimitError, match="max_matches=7"):
        find(replace(plan, limits=Limits(max_matches=7)), events)
    with pytest.raises(EngineError, match=r"needs about .* steps"):
        find(replace(plan, options={"max_cost": 50.0}), events)
