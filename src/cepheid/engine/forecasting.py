"""FORECAST: partial matches, with the probability that they complete, at the instant at which it is high enough.

All that hold the same components are listed by a query of their own. The model says after which time without news each
of them reaches the asked probability; it is reported then, unless something has ended it before. So what is reported
at an instant depends on the events up to it alone, and a stream cut anywhere reports what a batch does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.choose import make_plan
from cepheid.engine.data.keys import partition_numbers
from cepheid.engine.data.matches import MISSING, NEVER, Chosen, Float64s, Forecasts, Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.find import find
from cepheid.engine.values.columnwise import condition, value_column
from cepheid.engine.worth.losses import check_missing, gap_scale, unseen_item
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.forecasts import LEAST, Beginning, Ender, forecast_beginnings
from cepheid.model.forecast import ForecastTable, forecast_table
from cepheid.model.loss_model import Model
from cepheid.plan.options import Limits, PlanOptions
from cepheid.plan.physical import Plan

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Held:
    """Partial matches that hold the same components, one element each."""

    beginning: Beginning
    bound: BoundQuery  # of the query that lists them
    matches: Matches
    first: Int64s  # rows of their first and last events
    last: Int64s
    before: Float64s  # the probability of what was not seen in between


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """The partial matches that reach the asked probability at an instant in (after, until]."""
    bound, asked = plan.bound, plan.bound.syntax.forecast
    assert asked is not None
    if plan.options.forecast_at is not None:
        instant = int(plan.options.forecast_at)
        return open_at(plan, events, instant) if after < instant <= until else _together(bound, [])
    model = check_missing(bound, plan.model)
    scale = gap_scale(bound, model)
    parts: list[Matches] = []
    for held in _all_held(plan, events, model, asked):
        table, remaining = _table(bound, model, held), _remaining(bound, events, held)
        waits = _reached(table, remaining.astype(np.float64) * scale, asked / np.maximum(held.before, 1e-300))
        steps = np.ceil(np.where(np.isfinite(waits), waits, 0.0) / scale - 1e-9)
        at = events.time[held.last] + steps.astype(np.int64)
        known = np.isfinite(waits) & (steps < remaining) & (at > after) & (at <= until)
        parts.append(_reported(plan, events, held, table, at, known))
    return _together(bound, parts)


def open_at(plan: Plan, events: EventTable, at: int) -> Matches:
    """All partial matches that are open at an instant; events after it are not there yet."""
    bound = plan.bound
    model = check_missing(bound, plan.model)
    known = int(np.searchsorted(events.time, at, side="right"))
    events = EventTable(events.table.slice(0, known), events.time[:known], events.instant[:known], events.late)
    parts: list[Matches] = []
    for held in _all_held(plan, events, model, LEAST):
        moments = np.full(len(held.matches), at, np.int64)
        still = _remaining(bound, events, held) > at - events.time[held.last]
        parts.append(_reported(plan, events, held, _table(bound, model, held), moments, still))
    return _together(bound, parts)


def _all_held(plan: Plan, events: EventTable, model: Model, least: float) -> list[Held]:
    """All partial matches; of those with missing events in between, the ones that are probable enough."""
    bound = plan.bound
    lossy = _by_value(model) or any(model.loss_of(each.variable) > 0.0 for each in bound.positives)
    found = []
    for beginning in forecast_beginnings(bound.syntax):
        part = replace(bind(beginning.query, bound.schema), window=bound.window)
        unseen = lossy and beginning.held > 2  # something may be missing between the first and the last event
        if unseen:
            part = replace(part, syntax=replace(part.syntax, threshold=least))
        limits: dict[str, Any] = {name: getattr(plan.limits, name) for name in Limits.__dataclass_fields__}
        judged: dict[str, Any] = {"model": model, "scoring": "posterior"} if unseen else {}
        options = PlanOptions(**limits, **judged)
        matches = find(make_plan(part, events, options)[0], events)
        matches = matches.take(np.flatnonzero(matches.chosen[0].first() != MISSING))
        before = matches.probability if matches.probability is not None else np.ones(len(matches))
        found.append(Held(beginning, part, matches, matches.chosen[0].first(), matches.chosen[-1].last(), before))
    return found


def _by_value(model: Model) -> bool:
    """Do losses depend on attributes or the hour?"""
    losses = model.loss.values() if hasattr(model.loss, "values") else [model.loss]
    return not all(isinstance(each, float) for each in losses)


def _table(bound: BoundQuery, model: Model, held: Held) -> ForecastTable:
    assert bound.window is not None
    window = bound.window.length * gap_scale(bound, model)
    items = tuple(unseen_item(bound, model, component, window) for component in held.beginning.awaited)
    return forecast_table(items, window, False)


def _remaining(bound: BoundQuery, events: EventTable, held: Held) -> Int64s:
    """How long after the last event the window ends."""
    assert bound.window is not None
    return np.asarray(events.time[held.first] + bound.window.length - events.time[held.last])


def _reached(table: ForecastTable, remaining: Float64s, asked: Float64s) -> Float64s:
    waits = np.full(len(remaining), np.inf)
    for threshold in np.unique(asked[asked <= 1.0]):
        some = asked == threshold
        waits[some] = table.reached(remaining[some], float(threshold))
    return waits


def _reported(plan: Plan, events: EventTable, held: Held, table: ForecastTable, at: Int64s, known: Bools) -> Matches:
    """Those that nothing has ended by their instant, with their forecast."""
    bound = plan.bound
    some = np.flatnonzero(known)
    some = some[~_ended(plan, events, held, some, at[some])]
    scale = gap_scale(bound, plan.model)
    last = events.time[held.last[some]]
    elapsed = (at[some] - last).astype(np.float64)
    left = _remaining(bound, events, held)[some].astype(np.float64)
    found = table.forecast(elapsed * scale, left * scale)

    def moment(after: Float64s) -> Int64s:
        return np.asarray(last + np.round(after / scale).astype(np.int64))

    forecasts = Forecasts(
        np.full(len(some), held.beginning.held, np.int64), moment(found.expected), moment(found.earliest),
        moment(found.latest),
    )  # fmt: skip
    matches = held.matches.take(some)
    return replace(
        matches,
        chosen=_filled(bound, matches.chosen, len(some)),
        completion=at[some],
        probability=found.probability * held.before[some],
        forecasts=forecasts,
    )


def _filled(bound: BoundQuery, chosen: Sequence[Chosen], size: int) -> tuple[Chosen, ...]:
    """The events of all components; those that are awaited are missing."""
    missing = []
    for component in bound.positives[len(chosen) :]:
        rows = np.zeros(0, np.int64) if component.kleene else np.full(size, MISSING, np.int64)
        missing.append(Chosen(rows, np.zeros(size + 1, np.int64) if component.kleene else None))
    return (*chosen, *missing)


# --- what ends a partial match ----------------------------------------------------------------------------------------


def _ended(plan: Plan, events: EventTable, held: Held, some: Int64s, at: Int64s) -> Bools:
    """Has an event come by their instants that an awaited component takes, or a negated one forbids?"""
    ended = np.zeros(len(some), bool)
    for ender in held.beginning.enders:
        open_ = np.flatnonzero(~ended)
        ended[open_] = _comes(plan, events, held, ender, some[open_], at[open_])
    last = held.bound.positives[-1]
    if last.kleene:
        ended |= _grown(events, held, some, at)
    return ended


def _comes(plan: Plan, events: EventTable, held: Held, ender: Ender, some: Int64s, at: Int64s) -> Bools:
    """Is there an event of a component after the last one held, up to an instant, that passes its conditions?"""
    bound = plan.bound
    rows = _able(bound, events, ender)
    key, valid = partition_numbers(events.table, bound.equivalence, np.ones(len(events), bool))
    code = np.full(len(events), -1, np.int64)
    code[valid] = key[valid] if len(key) == len(events) else key
    rows = rows[code[rows] >= 0] if bound.equivalence else rows
    order = np.lexsort((events.instant[rows], code[rows]))
    rows = rows[order]
    size = int(events.instant[-1]) + 2 if len(events) else 1
    keys = code[rows] * size + events.instant[rows]
    first, last = held.first[some], held.last[some]
    place = np.searchsorted(keys, code[first] * size + events.instant[last], side="right")
    found = np.zeros(len(some), bool)
    waiting = np.arange(len(some))
    while len(waiting):
        here = place[waiting]
        inside = here < len(rows)
        waiting, here = waiting[inside], here[inside]
        inside = (code[rows[here]] == code[first[waiting]]) & (events.time[rows[here]] <= at[waiting])
        waiting, here = waiting[inside], here[inside]
        if not len(waiting):
            break
        passes = _passes(events, held, ender, some[waiting], rows[here])
        found[waiting[passes]] = True
        waiting = waiting[~passes]
        place[waiting] += 1
    return found


def _able(bound: BoundQuery, events: EventTable, ender: Ender) -> Int64s:
    """The events of a component's types that pass its conditions on one event alone."""
    component = ender.component
    keep = np.ones(len(events), bool)
    if bound.schema.type is not None and component.types is not None:
        kinds = value_column(events.table.column(bound.schema.type))
        wanted = pa.array(component.types, kinds.type)
        keep &= pc.fill_null(pc.is_in(kinds, value_set=wanted), False).to_numpy()
    rows = np.flatnonzero(keep)
    table = events.table.take(pa.array(rows))
    own = s.Reference(component.variable)
    tests = [s.Comparison("=", s.Attribute(own, name), literal) for name, literal in bound.fixed]
    tests += [part for part in ender.conditions if s.variables_of(part) == {component.variable}]  # type: ignore[misc]

    def column(node: Any) -> Any:
        return value_column(table.column(node.name))

    passed = np.ones(len(rows), bool)
    for part in tests:
        passed &= _holds(condition(part, column, component.any), len(rows))
    return rows[passed]


def _passes(events: EventTable, held: Held, ender: Ender, some: Int64s, rows: Int64s) -> Bools:
    """Do events pass the conditions that tie them to what is held? What mentions a missing event says nothing."""
    passed = np.ones(len(some), bool)
    by_name = dict(zip(held.bound.place_of, held.matches.chosen, strict=True))
    for part in ender.conditions:
        mentioned = s.variables_of(part) - {ender.component.variable}
        if not mentioned:
            continue

        def resolve(node: Any) -> Any:
            column = value_column(events.table.column(node.name))
            if node.of.variable == ender.component.variable:
                return column.take(pa.array(rows))
            chosen = by_name[node.of.variable]
            own = chosen.last() if node.of.element is s.Element.LAST else chosen.first()
            return column.take(pa.array(own[some], mask=own[some] == MISSING))

        missing = np.zeros(len(some), bool)
        for name in mentioned & by_name.keys():
            missing |= by_name[name].first()[some] == MISSING
        passed &= _holds(condition(part, resolve, ender.component.any), len(some)) | missing
    return passed


def _holds(answer: Any, size: int) -> Bools:
    if isinstance(answer, pa.Scalar):
        return np.full(size, bool(answer.as_py()))
    return np.asarray(answer.to_numpy(zero_copy_only=False), bool)


def _grown(events: EventTable, held: Held, some: Int64s, at: Int64s) -> Bools:
    """Has an open group taken one more event by their instants?"""
    group = held.matches.chosen[-1]
    assert group.offsets is not None
    grown: dict[object, int] = {}
    all_rows = held.matches.groups()
    for rows in all_rows:
        shorter = (*rows[:-1], rows[-1][:-1])
        moment = int(events.time[rows[-1][-1]])
        grown[shorter] = min(grown.get(shorter, NEVER), moment)
    return np.array([grown.get(all_rows[each], NEVER) <= moment for each, moment in zip(some, at, strict=True)], bool)


def _together(bound: BoundQuery, parts: Sequence[Matches]) -> Matches:
    """The partial matches of all beginnings."""
    chosen = []
    for place, component in enumerate(bound.positives):
        groups = [part.chosen[place] for part in parts]
        rows = np.concatenate([np.zeros(0, np.int64), *(group.rows for group in groups)])
        offsets = None
        if component.kleene:
            sizes = [np.diff(group.offsets) for group in groups if group.offsets is not None]
            offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))])
        chosen.append(Chosen(rows, offsets))

    def joined(kind: Any, values: Sequence[Any]) -> Any:
        return np.concatenate([np.zeros(0, kind), *values])

    told = [part.forecasts for part in parts if part.forecasts is not None]
    return Matches(
        tuple(chosen),
        joined(np.int64, [part.completion for part in parts]),
        probability=joined(np.float64, [part.probability for part in parts]),
        forecasts=Forecasts(
            joined(np.int64, [each.held for each in told]),
            joined(np.int64, [each.expected for each in told]),
            joined(np.int64, [each.earliest for each in told]),
            joined(np.int64, [each.latest for each in told]),
        ),
    )
