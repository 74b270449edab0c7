"""Patterns that are expressions, as the union of the linear queries that they stand for.

Each linear query is planned and run like any other, so that it gets the engine that suits it. A group that is repeated
without end is run with one round more at a time, until nothing in the events begins with so many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.choose import make_plan
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.endings import with_endings
from cepheid.engine.data.matches import MISSING, Chosen, Matches
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.find import BEGINNING, find
from cepheid.engine.scoring.losses import linear_model
from cepheid.engine.scoring.match_score import ROUNDING
from cepheid.engine.values.plain import value_column
from cepheid.errors import LimitError
from cepheid.language.bound import BoundQuery
from cepheid.language.competing import Competition
from cepheid.language.linear import (
    FEWER,
    Linear,
    LinearQuery,
    TooManyError,
    beginning,
    grows,
    linear_patterns,
    linear_query,
)
from cepheid.model.loss_model import Model
from cepheid.plan.options import Limits, PlanOptions
from cepheid.plan.physical import Plan
from cepheid.plan.rules.scan_every_event import looks_at_all_events
from cepheid.plan.states import MOST_BITS

MOST = 0.8  # a pattern whose types are more than this share of the events looks at all of them
EXISTENCE = Limits(max_matches=1, max_partial_matches=Limits().max_partial_matches, truncate=True)


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """The matches with after < completion <= until."""
    if plan.is_lossy or plan.is_imprecise:
        return _run_unsure(plan, events, after, until)
    plan, events = with_endings(plan, events)
    events, rows = _of_its_types(plan.bound, events)
    queries = _queries(plan, events)
    # An assignment that one pattern knows at once and another one only at the end of its window is known at once.
    mixed = len({query.bound.postponed for query in queries}) > 1
    found: list[tuple[LinearQuery, Matches]] = []
    for query in queries:
        low = BEGINNING if mixed else after
        # Where the result may be cut short, nobody asks of how many matches each part of it is one.
        part = find(_plan(plan, query, plan.limits), events, low, until, explains=not plan.limits.truncate)
        found.append((query, part))
    matches = _together(plan.bound, found)
    matches = matches.take(_first_of_each(found, matches))
    if rows is not None:
        matches = replace(matches, chosen=tuple(_at_rows(group, rows) for group in matches.chosen))
    return matches.take(np.flatnonzero(matches.completion > after)) if mixed else matches


def _run_unsure(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """The same where events may be missing or times are imprecise: what each linear pattern says, put together.

    With imprecise times the orders of an AND exclude each other: their confidences add up, and the sum is known when
    the last of the events has surely passed. Where events may be missing, the most probable pattern counts.
    """
    bound, imprecise = plan.bound, plan.is_imprecise
    patterns = _patterns(bound, 1)
    competition = Competition(bound, patterns) if bound.competes else None
    found: list[tuple[LinearQuery, Matches]] = []
    for linear in patterns:
        query = linear_query(
            bound, linear, tuple(competition.competing_events(linear)) if competition is not None else ()
        )
        if query is None:
            continue
        _check_width(query)
        query = replace(query, bound=query.bound.asking(threshold=bound.threshold))
        part = find(_unsure_plan(plan, query), events, BEGINNING if imprecise else after, until)
        found.append((query, part))
    matches = _together(bound, found)
    values = {name: _values(found, name) for name in ("probability", "confidence", "earliest", "latest")}
    if not imprecise:
        values = {"probability": values["probability"]}
    matches = replace(matches, **values)
    if imprecise:
        matches = _added_up(found, matches, times_of(events.table, bound.schema.upper or bound.schema.time))
        asked = plan.options.confidence if plan.options.confidence is not None else plan.score.confidence
        sure = matches.confidence is not None and matches.confidence >= (asked or 0.0) - ROUNDING
        return matches.take(np.flatnonzero(sure & (matches.completion > after) & (matches.completion <= until)))
    assert matches.probability is not None
    order = np.argsort(-matches.probability, kind="stable")
    first: dict[object, int] = {}
    for row, groups in zip(order, matches.take(order).groups(), strict=True):
        first.setdefault(groups, int(row))
    return matches.take(np.array(sorted(first.values()), np.int64))


def _unsure_plan(plan: Plan, query: LinearQuery) -> Plan:
    model = linear_model(plan.model, query.bound) if isinstance(plan.model, Model) else plan.model
    given = {name: getattr(plan.options, name) for name in ("probabilities", "unit", "max_width", "max_cost")}
    limits = {each.name: getattr(plan.limits, each.name) for each in fields(plan.limits)}
    return make_plan(query.bound, None, PlanOptions(model=model, scoring=plan.scoring, **given, **limits))[0]


def _values(found: Sequence[tuple[LinearQuery, Matches]], name: str) -> Any:
    kind = np.float64 if name in ("probability", "confidence") else np.int64
    parts = [getattr(matches, name) for _, matches in found]
    if any(part is None for part in parts):
        return None
    return np.concatenate([np.zeros(0, kind), *parts])


def _added_up(found: Sequence[tuple[LinearQuery, Matches]], matches: Matches, upper: Int64s) -> Matches:
    """Each assignment once: the sum of its confidences, the widest range, known when its last event has passed."""
    own = np.arange(len(matches))
    for rows in (rows for rows, is_shared in _by_variables(found) if is_shared):
        first: dict[object, int] = {}
        for row, each in zip(rows, matches.take(rows).groups(), strict=True):
            own[row] = first.setdefault(each, int(row))
    assert matches.confidence is not None
    assert matches.earliest is not None
    assert matches.latest is not None
    confidence = np.bincount(own, matches.confidence, len(matches)) if len(matches) else matches.confidence
    earliest, latest = matches.earliest.copy(), matches.latest.copy()
    np.minimum.at(earliest, own, matches.earliest)
    np.maximum.at(latest, own, matches.latest)
    return replace(
        matches,
        confidence=np.minimum(confidence, 1.0),
        earliest=earliest,
        latest=latest,
        completion=_latest_of(matches, upper),
    ).take(np.unique(own))


def _latest_of(matches: Matches, upper: Int64s) -> Int64s:
    """The latest upper bound of the events of each match."""
    latest = np.full(len(matches), np.iinfo(np.int64).min)
    for group in matches.chosen:
        if group.offsets is None:
            filled = group.rows != MISSING
            here = upper[group.rows[filled]]
        else:
            filled = np.diff(group.offsets) > 0
            begins = group.offsets[:-1][filled]
            here = np.maximum.reduceat(upper[group.rows], begins) if len(begins) else upper[:0]
        latest[filled] = np.maximum(latest[filled], here)
    return latest


def _of_its_types(bound: BoundQuery, events: EventTable) -> tuple[EventTable, Int64s | None]:
    """The events of the types that the pattern names, and their rows: all its linear queries look at no others."""
    name, wanted = bound.schema.type, [component.types for component in bound.components]
    if name is None or looks_at_all_events(bound) or any(types is None for types in wanted):
        return events, None
    kinds = value_column(events.table.column(name))
    named = sorted({kind for types in wanted for kind in types or ()})
    rows = np.flatnonzero(pc.is_in(kinds, value_set=pa.array(named, kinds.type)).to_numpy())
    if len(rows) > MOST * len(events):
        return events, None
    instant = events.instant[rows]
    ranks = np.cumsum(np.diff(instant, prepend=instant[:1]) != 0)  # instants of other events do not count
    return EventTable(events.table.take(pa.array(rows)), events.time[rows], ranks), rows


def _at_rows(chosen: Chosen, rows: Int64s) -> Chosen:
    """The same events in the whole table."""
    known = chosen.rows != MISSING
    found = chosen.rows.copy()
    found[known] = rows[chosen.rows[known]]
    return Chosen(found, chosen.offsets)


def _queries(plan: Plan, events: EventTable) -> list[LinearQuery]:
    """The linear queries that can have matches among the events."""
    bound = plan.bound
    patterns = _patterns(bound, 1)
    rounds = 1
    competes = bound.competes
    # A pattern competes with those of one round more, too.
    competition = Competition(bound, _patterns(bound, 2)) if competes else None
    while grows(bound):
        new = [linear for linear in patterns if any(count == rounds for step in linear for _, count in step.rounds)]
        if not any(_begins(plan, events, linear, rounds, competition) for linear in new):
            break
        rounds += 1
        patterns = _patterns(bound, rounds)
        competition = Competition(bound, _patterns(bound, rounds + 1)) if competes else None
    competitors = (
        {linear: tuple(competition.competing_events(linear)) for linear in patterns} if competition is not None else {}
    )
    queries = (linear_query(bound, linear, competitors.get(linear, ())) for linear in patterns)
    found = [query for query in queries if query is not None]
    for query in found:
        _check_width(query)
    return found


def _check_width(query: LinearQuery) -> None:
    """An event has a bit for each component, and so has what competes with it."""
    width = len(query.bound.components)
    if width > MOST_BITS:
        raise LimitError(f"one of the linear patterns has {width} components, over {MOST_BITS}", hint=FEWER)


def _patterns(bound: BoundQuery, rounds: int) -> list[Linear]:
    try:
        return linear_patterns(bound, rounds)
    except TooManyError as error:
        raise LimitError(f"{error.message} in these events", hint=error.hint) from None


def _begins(plan: Plan, events: EventTable, linear: Linear, rounds: int, competition: Competition | None) -> bool:
    query = beginning(plan.bound, linear, rounds, competition.competing_events if competition is not None else None)
    if query is not None:
        _check_width(query)
    return query is not None and len(find(_plan(plan, query, EXISTENCE), events, explains=False)) > 0


def _plan(plan: Plan, query: LinearQuery, limits: Limits) -> Plan:
    options = PlanOptions(
        max_matches=limits.max_matches, max_partial_matches=limits.max_partial_matches, truncate=limits.truncate
    )
    return make_plan(query.bound, None, options)[0]


def _together(bound: BoundQuery, found: Sequence[tuple[LinearQuery, Matches]]) -> Matches:
    """All matches, with a column for each variable of the pattern."""
    chosen = []
    for place, component in enumerate(bound.positives):
        parts = [_chosen(matches, query.places[place], component.kleene) for query, matches in found]
        chosen.append(_joined(parts, component.kleene))
    completion = np.concatenate([np.zeros(0, np.int64), *(matches.completion for _, matches in found)])
    counters: dict[str, int] = {}
    for _, matches in found:
        for name, count in matches.counters.items():
            counters[name] = counters.get(name, 0) + count
    truncated = any(matches.truncated for _, matches in found)
    return Matches(tuple(chosen), completion, counters=counters, truncated=truncated)


def _chosen(matches: Matches, places: tuple[int, ...], many: bool) -> Chosen:
    """The events of one variable: of a Kleene component, of one component for each round, or none."""
    groups = [matches.chosen[place] for place in places]
    if len(groups) == 1 and (groups[0].offsets is not None or not many):
        return groups[0]
    if not many:
        return Chosen(np.full(len(matches), MISSING, np.int64))
    rows = np.stack([group.rows for group in groups], axis=1).ravel() if groups else np.zeros(0, np.int64)
    return Chosen(rows, np.arange(len(matches) + 1, dtype=np.int64) * len(groups))


def _joined(parts: Sequence[Chosen], many: bool) -> Chosen:
    rows = np.concatenate([np.zeros(0, np.int64), *(part.rows for part in parts)])
    if not many:
        return Chosen(rows)
    sizes = [np.diff(part.offsets) for part in parts if part.offsets is not None]
    return Chosen(rows, np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))]))


def _by_variables(found: Sequence[tuple[LinearQuery, Matches]]) -> Iterator[tuple[Int64s, bool]]:
    """The rows of patterns over the same variables, and whether these are several: others share no assignment."""
    by_variables: dict[tuple[str, ...], list[int]] = {}
    many = {step.variable for query, _ in found for step in query.steps if step.many}
    for number, (query, _) in enumerate(found):
        names = [step.variable for step in query.steps if not _negative(query, step.variable)]
        names = [name for place, name in enumerate(names) if name not in many or name not in names[:place]]
        by_variables.setdefault(tuple(sorted(names)), []).append(number)
    starts = np.cumsum([0, *(len(part) for _, part in found)])
    for numbers in by_variables.values():
        rows = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in numbers])
        yield rows, len(numbers) > 1


def _first_of_each(found: Sequence[tuple[LinearQuery, Matches]], matches: Matches) -> Int64s:
    """Each assignment once, as soon as it is known."""
    kept = []
    for rows, is_shared in _by_variables(found):
        if is_shared:
            rows = rows[np.argsort(matches.completion[rows], kind="stable")]
            unique: dict[object, int] = {}
            for row, groups in zip(rows, matches.take(rows).groups(), strict=True):
                unique.setdefault(groups, int(row))
            rows = np.array(list(unique.values()), np.int64)
        kept.append(rows)
    return np.sort(np.concatenate([np.zeros(0, np.int64), *kept])).astype(np.int64)


def _negative(query: LinearQuery, variable: str) -> bool:
    return any(n.component.variable.partition("#")[0] == variable for n in query.bound.negations)
