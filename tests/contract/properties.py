"""What every engine must do, as functions of a case: these are the contract."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
import pandas
import polars
import pyarrow as pa

import cepheid
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import find, last_ends
from cepheid.engine.retention import retained
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan
from contract.cases import Case, is_imprecise, may_be_untrue
from contract.steps import Signature, found_in_steps, in_batches, signatures

PROBABILITY = 2e-6  # twice what a score table may be off
CONFIDENCE = 1e-9
Facts = tuple[int, float | None, float | None, int | None, int | None]


def agrees_with_the_reference(case: Case, engine: str) -> None:
    """The same matches, each once, known at the same time, with the same probabilities and ranges."""
    events = case.events()
    found, expected = described(_find(case.plan(engine), events)), described(_find(case.plan("reference"), events))
    threshold, confidence = case.query.threshold or 0.0, case.query.confidence or 0.0
    for match in found.keys() | expected.keys():
        if match not in found or match not in expected:
            _, probability, sure, *_ = found.get(match) or expected[match]
            at_the_limit = probability is not None and abs(probability - threshold) <= PROBABILITY
            at_the_limit |= sure is not None and abs(sure - confidence) <= CONFIDENCE
            assert at_the_limit, f"{match} is in {'the reference' if match in expected else engine} only"
            continue
        one, other = found[match], expected[match]
        assert (one[0], *one[3:]) == (other[0], *other[3:]), match
        assert close(one[1], other[1], PROBABILITY), match
        assert close(one[2], other[2], CONFIDENCE), match


def can_be_cut_anywhere(case: Case, engine: str, cuts: Sequence[int]) -> None:
    """Intervals of completion that follow each other find together what the whole finds, each match once."""
    plan, events = case.plan(engine), case.events()
    edges: list[int | None] = [None, *sorted(set(cuts)), None]
    pieces = [described(_find(plan, events, after, until)) for after, until in itertools.pairwise(edges)]
    whole = described(_find(plan, events))
    assert sum(map(len, pieces)) == len(whole)
    assert {match: facts for piece in pieces for match, facts in piece.items()} == whole


def retained_events_are_enough(case: Case, engine: str, cuts: Sequence[int]) -> None:
    """Interval after interval, each with the events that the one before retained, finds what the whole finds."""
    plan, everything = case.plan(engine), case.events()
    begins = everything.table["lower"].to_numpy() if is_imprecise(case.kind) else everything.time
    state = everything.table.slice(0, 0)
    ended: dict[Any, Any] = {}
    found: list[Signature] = []
    before: int | None = None
    for until in [*sorted(set(cuts)), None]:
        arriving = (begins == begins) if until is None else begins <= until
        arriving = arriving if before is None else arriving & (begins > before)
        events = ordered(pa.concat_tables([state, everything.table.filter(pa.array(arriving))]), plan.bound.schema)
        matches = _find(plan, events, before, until, ended)
        ended |= last_ends(plan, events, matches)
        found += _signatures(matches, events.table)
        if until is not None:
            state = events.table.filter(pa.array(retained(plan, events, until)))
        before = until
    assert sorted(found) == sorted(_signatures(_find(plan, everything), everything.table))


def takes_every_kind_of_table(case: Case, engine: str) -> None:
    """pyarrow, pandas and polars in, the same kind out, and the same matches in each."""
    bound = case.bound()
    options: dict[str, Any] = {"engine": engine, **case.parts, **case.parts.get("options", {})}
    options.pop("options", None)
    if is_imprecise(case.kind):
        options |= {"lower": "lower", "upper": "upper"}
    if may_be_untrue(case.kind):
        options |= {"existence": "chance"}
    names = [component.variable for component in bound.positives]
    query = cepheid.Query(case.query)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrow = query.match(case.table, **options)
        panda = query.match(case.table.to_pandas(types_mapper=pandas.ArrowDtype), **options)
        frame = query.match(polars.from_arrow(case.table), **options)
    assert isinstance(frame, polars.DataFrame)
    assert isinstance(panda, pandas.DataFrame)
    plan = case.plan(engine)
    expected = sorted(signatures(plan, arrow.select(names).to_pylist()))
    assert sorted(signatures(plan, frame.select(names).to_dicts())) == expected
    assert sorted(signatures(plan, pa.Table.from_pandas(panda[names]).to_pylist())) == expected


def streams_like_a_batch(case: Case, engine: str, draw: st.DrawFn) -> None:
    """The streaming step over drawn micro-batches finds what the whole table gives."""
    plan, delay = case.plan(engine), draw(st.integers(0, 6))
    if plan.exchange.retention.for_ever is not None:
        return
    window = plan.bound.window
    assert window is not None
    largest = case.query.output.mode is s.OutputMode.MAXIMAL and not plan.bound.is_linear
    if window.events and (plan.bound.postponed or case.query.output.count or largest):
        return  # there only later events tell that a window has passed, and time alone does not
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = found_in_steps(plan, in_batches(draw, case.table, delay), delay)
    events = case.events()
    assert found == sorted(_signatures(_find(plan, events), events.table))


def signatures_of(plan: Plan, events: EventTable) -> list[Signature]:
    """What a plan finds in a whole table, as numbers of events."""
    return _signatures(_find(plan, events), events.table)


def described(matches: Matches) -> dict[Any, Facts]:
    """For each match when it is known, its probability, its confidence and its range; nothing may be there twice."""
    groups = matches.groups()
    assert len(set(groups)) == len(groups), "a match is reported twice"
    none = [None] * len(groups)
    columns = [matches.probability, matches.confidence, matches.earliest, matches.latest]
    values = [none if column is None else column.tolist() for column in columns]
    return dict(zip(groups, zip(matches.completion.tolist(), *values, strict=True), strict=True))


def close(one: float | None, other: float | None, within: float) -> bool:
    """Are two numbers equal but for rounding, or both absent?"""
    return one is other if one is None or other is None else abs(one - other) <= within


def _find(
    plan: Plan, events: Any, after: int | None = None, until: int | None = None, ended: Mapping[Any, Any] | None = None
) -> Matches:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a low threshold is warned of, and many are drawn
        return find(plan, events, after, until, ended)


def _signatures(matches: Matches, table: pa.Table) -> list[Signature]:
    numbers = table["event"].to_pylist()
    return [[[numbers[row] for row in group] for group in match] for match in matches.groups()]
