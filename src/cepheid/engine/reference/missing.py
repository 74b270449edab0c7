"""Missing events (AYAC; docs/semantics.md, "Missing events"): every choice of what was seen and what was not.

A positive component is filled by an event that was seen, or its event is missing; a Kleene group holds at least one
event that was seen, or is missing as a whole, if the model has a gap for it. The last positive component must have been
seen, unless `missing_last` allows otherwise. Then the first one must have been: the window is counted from it, and both
ends open would leave it nowhere to stand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from cepheid.engine.reference.precise import MAX_MATCHES, MAX_RUNS, Search, check_open
from cepheid.engine.reference.stream import FoundMatch, Groups, Stream, first_seen, last_seen
from cepheid.engine.scoring.losses import (
    NEGLIGIBLE,
    check_missing,
    day_of_losses,
    ends_of,
    fixed_attributes,
    gap_scale,
    hour_of,
    leading_components,
    unseen_item,
)
from cepheid.errors import LimitError, ModelError
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Branch
from cepheid.language.missing import TRUE, without_missing
from cepheid.model.loss_model import Model
from cepheid.model.scores import Scoring, score
from cepheid.model.segments import Ends, SegmentItem

__all__ = ["ROUNDING", "assignments", "check_missing", "find_all", "missable", "probability_of"]

ROUNDING = 1e-9  # a probability that reaches its threshold but for rounding has reached it


def find_all(
    bound: BoundQuery,
    stream: Stream,
    probability: Probability,
    may_miss: frozenset[str],
    missing_last: bool = False,
    impossible: bool = False,
    most_open: int = MAX_RUNS,
) -> list[FoundMatch]:
    """Every match that may have happened, with its probability; before the threshold is applied.

    With `impossible`, those that score 0 are listed, too: this stream is one of several possible worlds.
    """
    search = Search(bound, stream, missing_last, most_open)

    @cache
    def searched(absent: frozenset[str]) -> Search:
        return Search(seen_part(bound, absent), stream, most_open=most_open)

    @cache
    def selected(absent: frozenset[str]) -> frozenset[Groups]:
        return frozenset(searched(absent).matches())

    found = []
    for groups in assignments(search, may_miss):
        seen = tuple(group for group in groups if group)
        absent = frozenset(c.variable for c, group in zip(bound.positives, groups, strict=True) if not group)
        # skip_till_next_match: what was seen must be a match of the pattern without what was not.
        if bound.strategy is s.Strategy.SKIP_TILL_NEXT and seen not in selected(absent):
            continue
        conjuncts, binding = searched(absent).bound.conjuncts, search.binding(groups)
        if not all(search.evaluator.holds(conjunct, binding) for conjunct in conjuncts):
            continue
        if not search.survives(groups):
            continue
        likely = probability(groups, stream)
        if likely > 0.0 or impossible:
            found.append(FoundMatch(search.completion(groups), groups, likely))
        if len(found) > MAX_MATCHES:
            raise LimitError(f"the reference engine enumerates at most {MAX_MATCHES} matches", hint="use a fast engine")
    return found


def seen_part(bound: BoundQuery, absent: frozenset[str]) -> BoundQuery:
    """The pattern without some components and without negated ones; conditions as they read without the former."""
    kept = [component for component in bound.positives if component.variable not in absent]
    conditions = (without_missing(conjunct.expression, absent) for conjunct in bound.conjuncts)
    return replace(
        bound.in_order(tuple(kept), bound.where),
        conjuncts=tuple(place_conjunct(condition, kept) for condition in conditions if condition != TRUE),
        branches=(Branch((), ()),),
    )


def assignments(search: Search, may_miss: frozenset[str]) -> Iterator[Groups]:
    """Every way to fill the components with events in order and in window, or to call their events missing."""
    positives, stream = search.bound.positives, search.stream
    candidates = [
        [event for event in range(len(stream)) if passes_alone(search, component, event)] for component in positives
    ]
    pending: list[Groups] = [()]
    steps = 0
    while pending:
        groups = pending.pop()
        check_open(len(pending), search.most_open)
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

        if place and groups[-1] and positives[place - 1].kleene:
            pending.extend((*groups[:-1], (*groups[-1], event)) for event in possible(place - 1))
        if place == len(positives):
            yield groups
            continue
        pending.extend((*groups, (event,)) for event in possible(place))
        last = place == len(positives) - 1
        if positives[place].variable in may_miss and (not last or (search.missing_last and groups and groups[0])):
            pending.append((*groups, ()))


def passes_alone(search: Search, component: s.Component, event: int) -> bool:
    """Does the event pass what concerns it alone? Nothing else is tested before a choice is complete."""
    variable = component.variable
    return search.fits(component, event) and all(
        search.evaluator.holds(conjunct, {variable: [search.stream.rows[event]]})
        for conjunct in search.bound.conjuncts
        if conjunct.own and conjunct.variables == {variable} and (not component.kleene or variable in conjunct.every)
    )


def missable(bound: BoundQuery, model: Model) -> frozenset[str]:
    """The positive components whose events may be missing; a Kleene group only if the model has a gap for it.

    For a single event the model must have one: where it has not, that is an error when it is asked for.
    """
    assert bound.window is not None
    length = bound.window.length * gap_scale(bound, model)
    leading = leading_components(bound)

    def known(component: s.Component) -> bool:
        name = component.variable
        try:
            model.for_component(name, fixed_attributes(bound, component), length if name in leading else None)
        except ModelError:
            return False
        return True

    return frozenset(each.variable for each in bound.positives if not each.kleene or known(each))


# probability

Probability = Callable[[Groups, Stream], float]


def probability_of(bound: BoundQuery, model: Model, scoring: Scoring) -> Probability:
    """How probable is a match? The product of the scores of its gaps, the leading and the trailing one included."""
    assert bound.window is not None
    scale = gap_scale(bound, model)
    length = bound.window.length
    places = bound.place_of
    day = day_of_losses(bound, model)

    @cache
    def item(component: s.Component, hour: int | None) -> tuple[str, SegmentItem]:
        return component.variable, unseen_item(bound, model, component, length * scale, hour)

    @cache
    def gap(
        unseen: tuple[s.Component, ...], hour: int | None, span: int, target: s.Component | None, leading: bool
    ) -> float:
        if not unseen:
            return 1.0
        items = [item(component, hour) for component in unseen]
        ends = ends_of(model, items, target, leading) if scoring == "posterior" else Ends()
        # The window's opening is not in the window: a gap that begins with it is a hair shorter than the window, which
        # matters where a density jumps there.
        time = span * scale * (1.0 - 1e-12) if leading and span == length else span * scale
        found = score([each for _, each in items], time, scoring, ends)
        return found if found >= NEGLIGIBLE else 0.0

    def probability(groups: Groups, stream: Stream) -> float:
        first, last = first_seen(groups), last_seen(groups)
        since = stream.times[last] - length  # the window's opening
        unseen: list[s.Component] = []
        scores: list[float] = []
        for component in bound.components:
            group = () if component.negative else groups[places[component.variable]]
            if not group:
                unseen.append(component)
                continue
            now = stream.times[group[0]]
            hour = hour_of((since + now) // 2 if scores else now, day) if day else None
            scores.append(gap(tuple(unseen), hour, now - since, component, not scores))
            unseen, since = [], stream.times[group[-1]]
        hour = hour_of(since, day) if day else None
        scores.append(gap(tuple(unseen), hour, stream.times[first] + length - since, None, False))
        return math.prod(scores)

    return probability
