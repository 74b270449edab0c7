"""Missing events (AYAC; docs/semantics.md, "Missing events"): every choice of what was seen and what was not.

A positive component is filled by an event that was seen, or its event is missing; a Kleene group holds at least one
event that was seen. The last positive component must have been seen, unless `missing_last` allows otherwise. Then
the first one must have been: the window is counted from it, and both ends open would leave it nowhere to stand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from cepheid.engine.reference.precise import MAX_MATCHES, MAX_RUNS, Search
from cepheid.engine.reference.stream import Found, Groups, Stream, first_seen, last_seen
from cepheid.errors import LimitError, ModelError, QueryError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.language.units import convert, unit_named
from cepheid.model.loss_model import Model
from cepheid.model.scores import Scoring, SegmentItem, score

ROUNDING = 1e-9  # a probability that reaches its threshold but for rounding has reached it


def find_all(bound: BoundQuery, stream: Stream, probability: Probability, missing_last: bool = False) -> list[Found]:
    """Every match that may have happened, with its probability; before the threshold is applied."""
    search = Search(bound, stream, missing_last)
    found = []
    for groups in assignments(search):
        binding = search.binding(groups)
        if not all(search.evaluator.holds(conjunct, binding) for conjunct in bound.conjuncts):
            continue
        if not search.survives(groups):
            continue
        likely = probability(groups, stream)
        if likely > 0.0:
            found.append(Found(search.completion(groups), groups, likely))
        if len(found) > MAX_MATCHES:
            raise LimitError(f"the reference engine enumerates at most {MAX_MATCHES} matches", hint="use a fast engine")
    return found


def assignments(search: Search) -> Iterator[Groups]:
    """Every way to fill the components with events in order and in window, or to call their events missing."""
    positives, stream = search.bound.positives, search.stream
    candidates = [
        [event for event in range(len(stream)) if passes_alone(search, component, event)] for component in positives
    ]
    pending: list[Groups] = [()]
    steps = 0
    while pending:
        groups = pending.pop()
        steps += 1
        if steps > MAX_RUNS:
            raise LimitError(f"the reference engine enumerates at most {MAX_RUNS} steps", hint="use a fast engine")
        place = len(groups)
        seen = [event for group in groups for event in group]

        def possible(of: int, groups: Groups = groups, seen: list[int] = seen) -> list[int]:
            return [
                event
                for event in candidates[of]
                if (not seen or stream.instants[event] > stream.instants[seen[-1]])
                and (not seen or search.in_window(groups, event))
                and search.equivalent(groups, positives[of], event)
            ]

        if seen and positives[place - 1].kleene:
            pending.extend((*groups[:-1], (*groups[-1], event)) for event in possible(place - 1))
        if place == len(positives):
            yield groups
            continue
        pending.extend((*groups, (event,)) for event in possible(place))
        last = place == len(positives) - 1
        if not positives[place].kleene and (not last or (search.missing_last and groups and groups[0])):
            pending.append((*groups, ()))


def passes_alone(search: Search, component: s.Component, event: int) -> bool:
    """Does the event pass what concerns it alone? Nothing else is tested before a choice is complete."""
    variable = component.variable
    return search.fits(component, event) and all(
        search.evaluator.holds(conjunct, {variable: [search.stream.rows[event]]})
        for conjunct in search.bound.conjuncts
        if conjunct.own and conjunct.variables == {variable} and (not component.kleene or variable in conjunct.every)
    )


# probability

Probability = Callable[[Groups, Stream], float]


def probability_of(bound: BoundQuery, model: Model, scoring: Scoring) -> Probability:
    """How probable is a match? The product of the scores of its gaps, the leading and the trailing one included."""
    assert bound.window is not None
    scale = gap_scale(bound, model)
    length = bound.window.length
    leading = _leading(bound)
    places = bound.place_of
    items: dict[str, SegmentItem] = {}

    def item(component: s.Component) -> SegmentItem:
        name = component.variable
        if name not in items:
            window = length * scale if name in leading else None
            known = model.for_component(name, fixed_attributes(bound, component), window)
            items[name] = SegmentItem("negative" if component.negative else "missing", known.loss, known.gap)
        return items[name]

    @cache
    def gap(inside: tuple[SegmentItem, ...], span: int) -> float:
        return score(inside, span * scale, scoring) if inside else 1.0

    def probability(groups: Groups, stream: Stream) -> float:
        first, last = first_seen(groups), last_seen(groups)
        since = stream.times[last] - length  # the window's opening
        unseen: list[SegmentItem] = []
        scores: list[float] = []
        for component in bound.components:
            group = () if component.negative else groups[places[component.variable]]
            if not group:
                unseen.append(item(component))
                continue
            scores.append(gap(tuple(unseen), stream.times[group[0]] - since))
            unseen, since = [], stream.times[group[-1]]
        scores.append(gap(tuple(unseen), stream.times[first] + length - since))
        return math.prod(scores)

    return probability


def _leading(bound: BoundQuery) -> frozenset[str]:
    """The components that no positive component stands before: their clock starts at the window's opening."""
    variables = [component.variable for component in bound.components]
    return frozenset(variables[: variables.index(bound.positives[0].variable) + 1])


def gap_scale(bound: BoundQuery, model: Model) -> float:
    """What one step of the time column is in the unit that the model's gaps count."""
    schema = bound.schema
    unit = model.unit
    if unit is None:
        is_timestamp = schema.type_of(schema.time) is DataType.TIME
        return float(convert(1, "microseconds", "seconds")) if is_timestamp else 1.0
    named = unit_named(unit)
    if named is None:
        raise ModelError(f"the model counts gaps in {unit!r}, which is no unit of time", hint="use 'seconds', say")
    if schema.time_unit is None:
        told = f"the model counts gaps in {named}, but it is not known what one step of column '{schema.time}' is"
        raise ModelError(told, hint="pass time_unit='ms', or what it counts")
    return float(convert(1, schema.time_unit, named))


def fixed_attributes(bound: BoundQuery, component: s.Component) -> dict[str, Any]:
    """The attributes that the query sets to a constant on a component, such as the reader it stands for."""
    if component.negative:
        parts: Sequence[s.Expression] = [
            part
            for part in bound.branches[0].passed_by(component.variable)
            if all(part in branch.passed_by(component.variable) for branch in bound.branches)
        ]
    else:
        parts = [conjunct.expression for conjunct in bound.conjuncts]
    found: dict[str, Any] = {name: value.value for name, value in bound.fixed}
    for part in parts:
        match part:
            case s.Comparison(operator="=", left=s.Attribute(of=of, name=name), right=s.Literal(value=value)) | (
                s.Comparison(operator="=", left=s.Literal(value=value), right=s.Attribute(of=of, name=name))
            ) if of.variable == component.variable:
                found[name] = value
    return found


def check_missing(bound: BoundQuery, model: Model | None) -> Model:
    """The model, if it and the query are such that missing events have a meaning."""
    if model is None:
        hint = "pass model=cepheid.Model(loss=..., gaps=...), or fit one with cepheid.fit"
        raise ModelError("a query with THRESHOLD needs a loss and gap model", hint=hint)
    if bound.strategy is not s.Strategy.SKIP_TILL_ANY:
        hint = "leave the strategy out, or call without a model"
        raise QueryError("missing events are defined for skip_till_any_match only", hint=hint, code="model-strategy")
    if bound.window is None or bound.window.events:
        hint = "add WITHIN, for example WITHIN 12 hours"
        raise QueryError("a query with a loss model needs a window of time", hint=hint, code="model-without-within")
    return model
