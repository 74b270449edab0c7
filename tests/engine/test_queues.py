"""The engine for missing events (AYAC) against the reference, which enumerates what was seen and what was not."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.find import ENGINES, find
from cepheid.engine.scoring.edges import describe_edges
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.model import ByAttribute, ByHour, Exponential, Model, Uniform
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to, cut
from strategies.models import models
from strategies.queries import queries, streams

TOLERANCE = 2e-6  # twice what a score table may be off
SHOPLIFTING = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 100 THRESHOLD {threshold}"
MODEL = Model(loss=0.1, gaps={"b": Exponential(mean=20, happens=0.9), "c": Exponential(mean=30)})

Scored = dict[tuple[Any, ...], float]


def scored(matches: Matches) -> Scored:
    """Each match with its probability; nothing may be found twice."""
    assert matches.probability is not None
    keys = list(zip(matches.groups(), matches.completion.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, matches.probability.tolist(), strict=True))


def assert_close(found: Scored, expected: Scored, threshold: float) -> None:
    """The same matches with the same probabilities; at the threshold itself, either answer will do."""
    for key in found.keys() | expected.keys():
        near = abs(found.get(key, expected.get(key, 0.0)) - threshold) <= TOLERANCE
        assert near or found.get(key, -1.0) == pytest.approx(expected.get(key, -2.0), abs=TOLERANCE), key


@st.composite
def cases(draw: st.DrawFn) -> tuple[s.QuerySyntax, pa.Table, Model, str, bool]:
    """A query with THRESHOLD, a stream, a model, a scoring, and whether the last event may be missing."""
    query = draw(queries(threshold=True, returns=False, output=False, max_components=4))
    if draw(st.booleans()):
        variables = tuple(component.variable for component in query.components if not component.negative)
        query = dataclasses.replace(query, selection=s.Selection(s.Strategy.SKIP_TILL_NEXT, variables))
    query = dataclasses.replace(query, threshold=draw(st.sampled_from([0.001, 0.05, 0.3, 0.7])))
    events = draw(streams(max_size=8))
    model = draw(models(component.variable for component in query.components))
    return query, events, model, draw(st.sampled_from(["exact", "paper", "posterior"])), draw(st.booleans())


@st.composite
def groups(draw: st.DrawFn) -> tuple[s.QuerySyntax, pa.Table, Model, str, bool]:
    """The same with Kleene groups next to events that may be missing."""
    query = draw(
        queries(
            strategy=(s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT),
            window=True,
            event_window=False,
            untyped=False,
            returns=False,
            output=False,
            max_components=4,
        )
    )
    query = check(dataclasses.replace(query, threshold=draw(st.sampled_from([0.001, 0.05, 0.3, 0.7]))))
    events = draw(streams(max_size=7))
    assume(ENGINES["queues"].refuses(bound_to(query, events)) is None)
    model = draw(models(component.variable for component in query.components))
    return query, events, model, draw(st.sampled_from(["exact", "paper", "posterior"])), draw(st.booleans())


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(cases() | groups(), st.booleans(), st.booleans())
def test_it_agrees_with_the_reference(case: tuple[Any, ...], split: bool, largest: bool) -> None:
    query, events, model, scoring, missing_last = case
    if largest:
        query = dataclasses.replace(query, output=s.Output(s.OutputMode.MAXIMAL))
    bound = bound_to(query, events)
    assert ENGINES["queues"].refuses(bound) is None
    table = ordered(events, bound.schema)
    common: dict[str, Any] = {"model": model, "scoring": scoring, "options": {"missing_last": missing_last}}
    partition = bound.equivalence if split else ()
    compared = () if split else bound.equivalence
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = find(Plan(bound, "queues", partition=partition, compared=compared, **common), table)
    expected = find(Plan(bound, "reference", **common), table)
    assert_close(scored(found), scored(expected), query.threshold)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(cases() | groups(), st.lists(st.integers(-5, 30), max_size=4), st.booleans())
def test_it_can_be_cut_anywhere(case: tuple[Any, ...], cuts: list[int], largest: bool) -> None:
    query, events, model, scoring, missing_last = case
    if largest:
        query = dataclasses.replace(query, output=s.Output(s.OutputMode.MAXIMAL))
    bound = bound_to(query, events)
    table = ordered(events, bound.schema)
    options = {"missing_last": missing_last}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = Plan(bound, "queues", partition=bound.equivalence, model=model, scoring=scoring, options=options)
        pieces = [scored(piece) for piece in cut(plan, table, cuts)]
        whole = scored(find(plan, table))
    assert sum(map(len, pieces)) == len(whole)
    assert {key: value for piece in pieces for key, value in piece.items()} == whole


@given(
    queries(
        kleene=False,
        negation=False,
        strategy=s.Strategy.SKIP_TILL_ANY,
        window=True,
        event_window=False,
        output=False,
        returns=False,
        untyped=False,
    ),
    streams(),
)
def test_without_loss_it_is_the_precise_engine(query: s.QuerySyntax, events: pa.Table) -> None:
    bound = bound_to(query, events)
    table = ordered(events, bound.schema)
    model = Model(loss=0.0, gaps={component.variable: Exponential(mean=3.0) for component in query.components})
    found = find(Plan(bound, "queues", partition=bound.equivalence, model=model), table)
    precise = find(Plan(bound, "sequence", partition=bound.equivalence), table)
    assert sorted(found.groups()) == sorted(precise.groups())
    assert found.probability is not None
    assert np.allclose(found.probability, 1.0)


def visits(*events: tuple[int, str, int]) -> pa.Table:
    """Readings as (time, reader, tag)."""
    return pa.table({"ts": [e[0] for e in events], "type": [e[1] for e in events], "tag": [e[2] for e in events]})


def test_shoplifting_with_a_missed_shelf_reading() -> None:
    events = visits((0, "Shelf", 1), (50, "Exit", 1), (60, "Exit", 2))
    found = cepheid.match(events, SHOPLIFTING.format(threshold=0.001), model=MODEL).to_pylist()
    # Each exit without a register reading; for tag 1 also with its shelf reading, which makes it far more probable.
    assert [(match["a"] is None, match["c"]["tag"]) for match in found] == [(True, 1), (False, 1), (True, 2)]
    # S^N over 50 steps: not seen at the register, so probably not there.
    passed = 0.9 * (1 - np.exp(-50 / 20))
    assert found[1]["probability"] == pytest.approx((1 - passed) / (0.1 * passed + 1 - passed), abs=1e-6)
    assert found[0]["probability"] < 0.1 < found[1]["probability"]


def test_a_default_speaks_for_a_missing_event_even_in_a_condition_on_it_alone() -> None:
    text = "PATTERN SEQ(Shelf a, Exit c) WHERE a.tag[{default}] > 5 WITHIN 100 THRESHOLD 0.001"
    events = visits((50, "Exit", 1))
    found = [cepheid.match(events, text.format(default=default), model=MODEL).num_rows for default in (5, 6)]
    assert found == [0, 1]


def test_a_growing_group_is_maximal_once_its_window_has_passed() -> None:
    text = "PATTERN SEQ(Shelf a, Exit+ c[]) WITHIN 10 THRESHOLD 0.01 OUTPUT MAXIMAL"
    events = visits((0, "Shelf", 1), (4, "Exit", 1), (8, "Exit", 1))
    bound = bound_to(cepheid.query(text).syntax, events)
    plan, table = Plan(bound, "queues", model=MODEL), ordered(events, bound.schema)
    assert [find(plan, table, after, after + 1).groups() for after in (3, 7, 9)] == [[], [], [((0,), (1, 2))]]


def test_the_automaton_shows_its_scores_and_what_the_threshold_removed() -> None:
    told = cepheid.query(SHOPLIFTING.format(threshold=0.2)).explain(visits((0, "Shelf", 1)), model=MODEL)
    assert "a -> c: S(N), at most 1" in told
    assert "(opening) -> c: S(PN)" in told
    assert "dropped: below the threshold" in told


def test_edges_can_be_described_without_events() -> None:
    bound = bound_to(cepheid.query(SHOPLIFTING.format(threshold=0.01)).syntax, visits((0, "Shelf", 1)))
    assert len(describe_edges(Plan(bound, "queues", model=MODEL)).splitlines()) == 4


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"model": None}, "needs a loss and gap model"),
        ({"model": Model(loss=0.1, gaps={"c": Uniform(0, 9)})}, "no gap distribution for 'b'"),
        ({"model": {"loss": 0.1}}, "not a loss and gap model"),
        ({"model": "model.json"}, "load_model"),
        ({"model": MODEL, "scoring": "exakt"}, "scoring='exakt' is not .*did you mean 'exact'"),
        ({"model": MODEL, "engine": "sequence"}, "assumes that every event was seen"),
    ],
)
def test_bad_models_are_clear_errors(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(cepheid.CepheidError, match=problem):
        cepheid.match(visits((0, "Shelf", 1), (5, "Exit", 1)), SHOPLIFTING.format(threshold=0.01), **change)


def test_a_model_without_threshold_is_not_ignored_by_engines_that_do_not_know_it() -> None:
    events = visits((0, "Shelf", 1), (5, "Exit", 1))
    text = "PATTERN SEQ(Shelf a, Exit c) WITHIN 10"
    assert cepheid.match(events, text, model=MODEL).num_rows == 2
    with pytest.raises(cepheid.EngineError, match="assumes that every event was seen"):
        cepheid.match(events, text, model=MODEL, engine="runs")


def test_what_the_engine_cannot_do_is_said() -> None:
    names = "abcdefg"
    parts = " + ".join(f"{name}.tag" for name in names)
    text = f"PATTERN SEQ({', '.join(f'Shelf {name}' for name in names)}) WHERE {parts} > 3 WITHIN 10 THRESHOLD 0.1"
    model = Model(loss=0.1, gaps=dict.fromkeys(names, Uniform(0, 9)))
    with pytest.raises(cepheid.EngineError, match="mentions more than 6 components that may be missing"):
        cepheid.match(visits((0, "Shelf", 1)), text, model=model)


def test_aggregates_count_what_was_seen() -> None:
    text = "PATTERN SEQ(Shelf+ a[], Register b, Exit c) WHERE sum(a[].tag) > 3 AND a.LEN < 3 WITHIN 10 THRESHOLD 0.01"
    events = visits((0, "Shelf", 1), (1, "Shelf", 2), (2, "Shelf", 3), (5, "Exit", 1))
    found = cepheid.match(events, text, model=MODEL).to_pylist()
    assert sorted([event["tag"] for event in match["a"]] for match in found) == [[1, 3], [2, 3]]
    assert all(match["b"] is None for match in found)


def test_the_next_match_is_selected_among_what_was_seen() -> None:
    text = "PATTERN SEQ(Shelf a, Register b, Exit c) WHERE skip_till_next_match(a, b, c) { } WITHIN 20 THRESHOLD 0.01"
    events = visits((0, "Shelf", 1), (5, "Exit", 1), (6, "Register", 1), (9, "Exit", 2))
    found = cepheid.match(events, text, model=MODEL).to_pylist()
    seen = [tuple(match[name]["ts"] if match[name] else None for name in "abc") for match in found]
    # Where the register was not seen, the first exit is the next event; where it was, the exit behind it.
    assert (0, None, 5) in seen
    assert (0, None, 9) not in seen
    assert (0, 6, 9) in seen


def test_loss_may_depend_on_the_type_of_a_component() -> None:
    by_type = ByAttribute("type", {"Shelf": 0.2, "Register": 0.1, "Exit": 0.1})
    found = [
        cepheid.match(
            visits((60, "Exit", 2)), "PATTERN SEQ(Shelf a, Exit c) WITHIN 100", model=Model(loss, gaps=MODEL.gaps)
        )["probability"].to_pylist()
        for loss in (by_type, {"a": 0.2, "c": 0.1})
    ]
    assert found[0] == found[1] == [pytest.approx(0.2)]


@pytest.mark.parametrize("threshold", ["0", "1.5", "-0.1"])
def test_bad_thresholds_are_clear_errors(threshold: str) -> None:
    with pytest.raises(cepheid.QueryError, match="outside"):
        cepheid.query(SHOPLIFTING.format(threshold=threshold))


def test_a_threshold_below_the_product_of_losses_is_legal_but_warned_of() -> None:
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 100 THRESHOLD 0.001"
    model = Model(loss=0.2, gaps={"b": Exponential(mean=20), "c": Exponential(mean=30)})
    events = pa.table({"ts": [1], "type": ["C"]})
    with pytest.warns(UserWarning, match="product of two losses"):
        cepheid.match(events, text, model=model)


@st.composite
def by_hour(draw: st.DrawFn) -> tuple[s.QuerySyntax, pa.Table, Model, str, bool]:
    """The same with losses that depend on the hour of the day; one step of time is an hour."""
    query, events, model, scoring, missing_last = draw(cases())
    losses = st.dictionaries(st.integers(1, 23), st.sampled_from([0.05, 0.2, 0.5]), max_size=2)
    loss = {c.variable: ByHour({0: 0.1, **draw(losses)}) if draw(st.booleans()) else 0.2 for c in query.components}
    return query, events, dataclasses.replace(model, loss=loss), scoring, missing_last


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(by_hour(), st.integers(-30, 30))
def test_losses_may_depend_on_the_hour(case: tuple[Any, ...], offset: int) -> None:
    query, events, model, scoring, missing_last = case
    events = events.set_column(0, "ts", pc.add(events["ts"], offset))
    bound = bound_to(query, events, time_unit="hours")
    table = ordered(events, bound.schema)
    common: dict[str, Any] = {"model": model, "scoring": scoring, "options": {"missing_last": missing_last}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = find(Plan(bound, "queues", partition=bound.equivalence, **common), table)
    assert_close(scored(found), scored(find(Plan(bound, "reference", **common), table)), query.threshold)


def test_losses_by_the_hour_need_a_clock() -> None:
    events = pa.table({"ts": [1, 40], "type": ["Shelf", "Exit"], "tag": [1, 1]})
    model = dataclasses.replace(MODEL, loss=ByHour({0: 0.1, 18: 0.5}))
    query = SHOPLIFTING.format(threshold=0.1)
    with pytest.raises(cepheid.ModelError, match="not known what one step of 'ts' is"):
        cepheid.match(events, query, model=model)
    shifted = events.set_column(0, "ts", pc.add(events["ts"], 19 * 3600))
    low, high = (cepheid.match(each, query, model=model, time_unit="s") for each in (shifted, events))
    assert low["probability"][0].as_py() < high["probability"][0].as_py()
