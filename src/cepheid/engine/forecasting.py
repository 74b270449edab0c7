"""FORECAST: partial matches, with the probability that they complete, at the instant at which it is high enough.

All that hold the same components are listed by a query of their own. The model says after which time without news each
of them reaches the asked probability; it is reported then, unless something has ended it before. So what is reported
at an instant depends on the events up to it alone, and a stream cut anywhere reports what a batch does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.choose import make_plan
from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.keys import partition_numbers
from cepheid.engine.data.matches import MISSING, NEVER, Chosen, Forecasts, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.find import find
from cepheid.engine.scoring.losses import check_missing, gap_scale, unseen_item
from cepheid.engine.values.columnwise import condition
from cepheid.engine.values.plain import value_column
from cepheid.errors import ModelError
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.forecasts import LEAST, Beginning, Ender
from cepheid.language.pattern import Choice, Pattern, Repeat, Single, labels_of, walk
from cepheid.language.pattern import Sequence as InSequence
from cepheid.language.pattern import may_be_empty as vanishes
from cepheid.model.forecast import Continuation, ForecastTable, mixed_table
from cepheid.model.loss_model import EVERY_OTHER, Model
from cepheid.model.segments import SegmentItem
from cepheid.plan.options import Limits, PlanOptions
from cepheid.plan.physical import Plan

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ChunkCache:
    """Partial matches that hold the same components, one element each."""

    number: int  # of the beginning
    beginning: Beginning
    bound: BoundQuery  # of the query that lists them
    matches: Matches
    first: Int64s  # rows of their first and last events
    last: Int64s
    before: Float64s  # the probability of what was not seen in between
    keys: Int64s  # of all events: a number for each partition, -1 for those of none


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """The partial matches that reach the asked probability at an instant in (after, until]."""
    bound, asked = plan.bound, plan.bound.forecast
    assert asked is not None
    if plan.options.forecast_at is not None:
        instant = int(plan.options.forecast_at)
        return open_at(plan, events, instant) if after < instant <= until else _together(bound, [])
    model = check_missing(bound, plan.model)
    parts: list[Matches] = []
    for held in partial_matches(plan, events, model, asked):
        table = table_of(bound, model, held)
        at, reached = reaching(bound, model, events, held, table, asked)
        parts.append(_reported(plan, events, held, table, at, reached & (at > after) & (at <= until)))
    return _together(bound, parts)


def reaching(
    bound: BoundQuery, model: Model, events: EventTable, held: ChunkCache, table: ForecastTable, asked: float
) -> tuple[Int64s, Bools]:
    """When partial matches reach a probability if nothing comes, and whether they do while their window is open."""
    scale, remaining = gap_scale(bound, model), remaining_of(bound, events, held)
    waits = _reached(table, remaining.astype(np.float64) * scale, asked / np.maximum(held.before, 1e-300))
    steps = np.ceil(np.where(np.isfinite(waits), waits, 0.0) / scale - 1e-9)
    at = events.time[held.last] + steps.astype(np.int64)
    return at, np.isfinite(waits) & (steps < remaining)


def open_at(plan: Plan, events: EventTable, at: int) -> Matches:
    """All partial matches that are open at an instant; events after it are not there yet."""
    bound = plan.bound
    assert bound.window is not None
    model = check_missing(bound, plan.model)
    opens, known = np.searchsorted(events.time, [at - bound.window.length, at], side="right").tolist()
    seen = EventTable(
        events.table.slice(opens, known - opens), events.time[opens:known], events.instant[opens:known], events.late
    )
    parts: list[Matches] = []
    for held in partial_matches(plan, seen, model, LEAST):
        moments = np.full(len(held.matches), at, np.int64)
        still = remaining_of(bound, seen, held) > at - seen.time[held.last]
        parts.append(_reported(plan, seen, held, table_of(bound, model, held), moments, still))
    found = _together(bound, parts)
    return replace(found, chosen=tuple(_moved(chosen, opens) for chosen in found.chosen))


def _moved(chosen: Chosen, by: int) -> Chosen:
    return replace(chosen, rows=np.where(chosen.rows == MISSING, MISSING, chosen.rows + by))


def partial_matches(plan: Plan, events: EventTable, model: Model, least: float) -> list[ChunkCache]:
    """All partial matches; of those with missing events in between, the ones that are probable enough."""
    bound = plan.bound
    lossy = _by_value(model) or any(model.loss_of(each.variable) > 0.0 for each in bound.components)
    found = []
    beginnings, keys = bound.beginnings, _keys(bound, events)
    if not bound.is_linear:
        _check_seen(bound, model, beginnings)
    for number, beginning in enumerate(beginnings):
        part = replace(bind(beginning.query, bound.schema), window=bound.window)
        # Something may have happened unseen between the first and the last event.
        unseen = lossy and bound.is_linear and len(beginning.query.components) > 2
        if unseen:
            part = part.asking(threshold=least)
        limits: dict[str, Any] = {name: getattr(plan.limits, name) for name in Limits.__dataclass_fields__}
        judged: dict[str, Any] = {"model": _first_seen(bound, model), "scoring": "posterior"} if unseen else {}
        options = PlanOptions(**limits, **judged)
        matches = find(make_plan(part, events, options)[0], events)
        matches = matches.take(np.flatnonzero(matches.chosen[0].first() != MISSING))
        before = matches.probability if matches.probability is not None else np.ones(len(matches))
        first, last = matches.chosen[0].first(), matches.chosen[-1].last()
        found.append(ChunkCache(number, beginning, part, matches, first, last, before, keys))
    return found


def _first_seen(bound: BoundQuery, model: Model) -> Model:
    """The model for partial matches, all of which hold an event of the first component."""
    losses = model.loss if isinstance(model.loss, Mapping) else {EVERY_OTHER: model.loss}
    return replace(model, loss={**losses, bound.positives[0].variable: 0.0})


def _check_seen(bound: BoundQuery, model: Model, beginnings: Sequence[Beginning]) -> None:
    """Of an expression, what stands between the first and the last event that are held must have been seen."""
    assert bound.window is not None
    optional = {name for node in walk(bound.pattern) if vanishes(node) for name in labels_of(node)}
    between = {component.variable for each in beginnings for component in each.query.components[1:-1]} - optional
    window = bound.window.length * gap_scale(bound, model)
    for component in bound.components:
        name = component.variable
        if name in between and unseen_item(bound, model, component, window).loss > 0.0:
            raise ModelError(
                f"FORECAST of optional parts and alternatives cannot determine whether a lost {name!r} happened",
                hint=f"give {name!r} a loss of 0, or write one query for each alternative",
            )


def _by_value(model: Model) -> bool:
    """Do losses depend on attributes or the hour?"""
    losses = model.loss.values() if hasattr(model.loss, "values") else [model.loss]
    return not all(isinstance(each, float) for each in losses)


def table_of(bound: BoundQuery, model: Model, held: ChunkCache, seen: bool = False) -> ForecastTable:
    """The forecasts of all that wait for the same components; with `seen`, of what is seen to complete."""
    assert bound.window is not None
    window = bound.window.length * gap_scale(bound, model)
    by_name = {component.variable: component for component in bound.components}

    def item(name: str) -> SegmentItem:
        found = unseen_item(bound, model, by_name[name], window)
        if not seen or found.kind == "missing" or found.onward is not None:
            return found
        share = found.gap.happens * (1.0 - found.loss)  # what is lost is not seen to end anything
        return replace(found, loss=0.0, gap=replace(cast(Any, found.gap), happens=share))

    return mixed_table(tuple(_continuations(held.beginning.rest, item)), window, seen)


def _continuations(parts: Sequence[Pattern], item: Callable[[str], SegmentItem]) -> list[Continuation]:
    """The ways in which a partial match may go on: which optional parts and which alternatives happen."""
    continuations = [Continuation(1.0, ())]
    for part in parts:
        continuations = [
            Continuation(each.share * more.share, (*each.items, *more.items), each.completes and more.completes)
            for each in continuations
            for more in _continuations_of(part, item)
        ]
    return continuations


def _continuations_of(part: Pattern, item: Callable[[str], SegmentItem]) -> list[Continuation]:
    match part:
        case Single(label=label):
            return [Continuation(1.0, (item(label),))]
        case InSequence(parts=parts):
            return _continuations(parts, item)
        case Repeat(part=inner, least=1):
            return _continuations_of(inner, item)
        case Repeat(part=inner):
            chosen = _chosen_continuations(inner, item)
            return [*chosen, Continuation(1.0 - sum(each.share for each in chosen), ())]
        case Choice():
            chosen = _chosen_continuations(part, item)
            return [*chosen, Continuation(1.0 - sum(each.share for each in chosen), (), False)]
    raise AssertionError(part)


def _chosen_continuations(part: Pattern, item: Callable[[str], SegmentItem]) -> list[Continuation]:
    """One of some alternatives: each is chosen as often as the first of its components happens."""
    found: list[Continuation] = []
    for alternative in part.parts if isinstance(part, Choice) else [part]:
        for each in _continuations_of(alternative, item):
            first, *others = each.items
            certain = replace(first, gap=replace(cast(Any, first.gap), happens=1.0))
            found.append(Continuation(each.share * first.gap.happens, (certain, *others), each.completes))
    total = sum(each.share for each in found)
    return [replace(each, share=each.share / max(total, 1.0)) for each in found]


def remaining_of(bound: BoundQuery, events: EventTable, held: ChunkCache) -> Int64s:
    """How long after the last event the window ends."""
    assert bound.window is not None
    return np.asarray(events.time[held.first] + bound.window.length - events.time[held.last])


def _reached(table: ForecastTable, remaining: Float64s, asked: Float64s) -> Float64s:
    waits = np.full(len(remaining), np.inf)
    for threshold in np.unique(asked[asked <= 1.0]):
        some = asked == threshold
        waits[some] = table.reached(remaining[some], float(threshold))
    return waits


def _reported(
    plan: Plan, events: EventTable, held: ChunkCache, table: ForecastTable, at: Int64s, known: Bools
) -> Matches:
    """Those that nothing has ended by their instant, with their forecast."""
    bound = plan.bound
    some = np.flatnonzero(known)
    some = some[ended_by(plan, events, held, some, at[some]) == NEVER]
    scale = gap_scale(bound, plan.model)
    last = events.time[held.last[some]]
    elapsed = (at[some] - last).astype(np.float64)
    left = remaining_of(bound, events, held)[some].astype(np.float64)
    found = table.forecast(elapsed * scale, left * scale)

    def moment(after: Float64s) -> Int64s:
        whole = np.round(after / scale)
        # The last event comes before the end of the window; what waits for an absence is complete at the end.
        inside = whole if table.at_end else np.minimum(whole, left - 1)
        return np.asarray(last + inside.astype(np.int64))

    forecasts = Forecasts(
        np.full(len(some), held.number, np.int64), moment(found.expected), moment(found.earliest),
        moment(found.latest),
    )  # fmt: skip
    matches = held.matches.take(some)
    return replace(
        matches,
        chosen=_filled(bound, dict(zip(held.beginning.taken, matches.chosen, strict=True)), len(some)),
        completion=at[some],
        probability=found.probability * held.before[some],
        forecasts=forecasts,
    )


def _filled(bound: BoundQuery, held: Mapping[str, Chosen], size: int) -> tuple[Chosen, ...]:
    """The events of all components; those that are awaited, or were not chosen, are missing."""
    filled = []
    for component in bound.positives:
        rows = np.zeros(0, np.int64) if component.kleene else np.full(size, MISSING, np.int64)
        empty = Chosen(rows, np.zeros(size + 1, np.int64) if component.kleene else None)
        filled.append(held.get(component.variable, empty))
    return tuple(filled)


# --- what ends a partial match ----------------------------------------------------------------------------------------


def ended_by(plan: Plan, events: EventTable, held: ChunkCache, some: Int64s, until: Int64s) -> Int64s:
    """When an event came that an awaited component takes, or a negated one forbids: up to an instant, else NEVER."""
    ended = np.full(len(some), NEVER, np.int64)
    for ender in held.beginning.enders:
        ended = np.minimum(ended, _comes(plan, events, held, ender, some, np.minimum(until, ended)))
    if held.bound.positives[-1].kleene:
        ended = np.minimum(ended, _grown(events, held, some))
    return np.where(ended <= until, ended, NEVER)


def _keys(bound: BoundQuery, events: EventTable) -> Int64s:
    """The partition of each event."""
    key, valid = partition_numbers(events.table, bound.equivalence, np.ones(len(events), bool))
    keys = np.full(len(events), -1, np.int64)
    keys[valid] = key[valid] if len(key) == len(events) else key
    return keys


def _comes(plan: Plan, events: EventTable, held: ChunkCache, ender: Ender, some: Int64s, until: Int64s) -> Int64s:
    """The first event of a component after the last one held that passes its conditions, up to an instant."""
    bound, keys = plan.bound, held.keys
    rows = _able(bound, events, ender)
    rows = rows[keys[rows] >= 0] if bound.equivalence else rows
    rows = rows[np.lexsort((events.instant[rows], keys[rows]))]
    size = int(events.instant[-1]) + 2 if len(events) else 1
    order = keys[rows] * size + events.instant[rows]
    first, last = held.first[some], held.last[some]
    place = np.searchsorted(order, keys[first] * size + events.instant[last], side="right")
    found = np.full(len(some), NEVER, np.int64)
    waiting = np.arange(len(some))
    while len(waiting):
        here = place[waiting]
        inside = here < len(rows)
        waiting, here = waiting[inside], here[inside]
        inside = (keys[rows[here]] == keys[first[waiting]]) & (events.time[rows[here]] <= until[waiting])
        waiting, here = waiting[inside], here[inside]
        if not len(waiting):
            break
        passes = _passes(events, held, ender, some[waiting], rows[here])
        found[waiting[passes]] = events.time[rows[here[passes]]]
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


def _passes(events: EventTable, held: ChunkCache, ender: Ender, some: Int64s, rows: Int64s) -> Bools:
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


def _grown(events: EventTable, held: ChunkCache, some: Int64s) -> Int64s:
    """When an open group has taken one more event."""
    grown: dict[object, int] = {}
    all_rows = held.matches.groups()
    for rows in all_rows:
        shorter = (*rows[:-1], rows[-1][:-1])
        moment = int(events.time[rows[-1][-1]])
        grown[shorter] = min(grown.get(shorter, NEVER), moment)
    return np.array([grown.get(all_rows[each], NEVER) for each in some], np.int64)


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

    def joined(kind: Any, values: Sequence[object]) -> Any:
        return np.concatenate([np.zeros(0, kind), *values])

    reported = [part.forecasts for part in parts if part.forecasts is not None]
    return Matches(
        tuple(chosen),
        joined(np.int64, [part.completion for part in parts]),
        probability=joined(np.float64, [part.probability for part in parts]),
        forecasts=Forecasts(
            joined(np.int64, [each.beginning for each in reported]),
            joined(np.int64, [each.expected for each in reported]),
            joined(np.int64, [each.earliest for each in reported]),
            joined(np.int64, [each.latest for each in reported]),
        ),
    )
