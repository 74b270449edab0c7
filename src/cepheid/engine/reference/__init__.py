"""The reference: the meaning of queries as slow, plain Python that enumerates. Every fast engine must agree with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from cepheid.engine.data.matches import Matches, from_groups
from cepheid.engine.data.table import EventTable
from cepheid.engine.limits import check_limit
from cepheid.engine.reference import expansion, missing, output, precise, worlds
from cepheid.engine.reference.stream import FoundMatch, Stream
from cepheid.engine.values.plain import value_column
from cepheid.errors import LimitError, QueryError
from cepheid.language import syntax as s
from cepheid.language.schema import DataType
from cepheid.model.scores import Scoring
from cepheid.plan.checks import check_meaning
from cepheid.plan.physical import Plan

MAX_EVENTS = 5_000  # beyond this, enumeration in Python is not a judgement but a wait


def find(plan: Plan, events: EventTable, after: int, until: int, ended: output.Ended | None = None) -> Matches:
    """All matches of the plan's query with after < completion <= until, by enumeration.

    OUTPUT NON-OVERLAP looks back: `ended` says where the last match of each partition ended that was reported up to
    `after` (see `ends`). Without it, what was reported before is found again from the events.
    """
    if len(events) > MAX_EVENTS:
        raise LimitError(f"the reference engine enumerates; it takes at most {MAX_EVENTS} events, not {len(events)}")
    bound, stream = plan.bound, stream_of(plan, events)
    check_output(plan)
    found = reported(plan, stream, everything(plan, events, stream), after, ended)
    found = sorted(
        (match for match in found if after < match.completion <= until),
        key=lambda match: (match.completion, match.groups),
    )
    most = plan.limits.max_matches
    truncated = check_limit(plan, "max_matches", len(found) > most)
    found = found[:most]
    kleene = [component.kleene for component in bound.positives]
    matches = from_groups([match.groups for match in found], [match.completion for match in found], kleene)
    matches = replace(matches, truncated=truncated)
    if plan.is_lossy:
        matches = replace(matches, probability=np.array([match.probability for match in found], np.float64))
    if bound.schema.is_imprecise:
        matches = replace(
            matches,
            confidence=np.array([match.confidence for match in found], np.float64),
            earliest=np.array([match.earliest for match in found], np.int64),
            latest=np.array([match.latest for match in found], np.int64),
        )
    return matches


def everything(plan: Plan, events: EventTable, stream: Stream) -> list[FoundMatch]:
    """Every match that is certain or probable enough, before OUTPUT picks among them.

    Options of the plan: `missing_last` allows the last positive event to be missing, `probabilities` names a column
    with the probability of each instant, `unit` says how far instants are apart, `confidence` stands in for CONFIDENCE.
    """
    bound, options = plan.bound, plan.options
    judge = partial(expansion.find_all if not bound.is_linear else precise.find_all, bound)
    if bound.given_up:
        judge = partial(expansion.find_given_up, bound)
    elif plan.is_lossy and not bound.is_linear:
        judge = partial(expansion.find_likely, bound, model=plan.model, scoring=cast(Scoring, plan.scoring))
    elif plan.is_lossy:
        model = missing.check_missing(bound, plan.model)
        probability = missing.probability_of(bound, model, cast(Scoring, plan.scoring))
        judge = partial(
            missing.find_all,
            bound,
            probability=probability,
            may_miss=missing.missable(bound, model),
            missing_last=bool(options.get("missing_last", False)),
            impossible=bound.schema.is_imprecise,  # a match that scores 0 in one world may be one in another
        )
    judge = partial(judge, most_open=min(plan.limits.max_partial_matches, precise.MAX_RUNS))
    if not bound.schema.is_imprecise:
        found = list(judge(stream))
    else:
        intervals = worlds.intervals_of(events, bound.schema, options.get("probabilities"), unit_of(plan))
        found = worlds.find_all(bound, stream, intervals, judge)
    least = bound.threshold or 0.0
    surest = options.get("confidence", bound.confidence) or 0.0
    return [
        match
        for match in found
        if (match.probability is None or (match.probability > 0.0 and match.probability >= least - missing.ROUNDING))
        and (match.confidence is None or match.confidence >= surest - missing.ROUNDING)
    ]


def unit_of(plan: Plan) -> int:
    """How many steps of the time column one instant is."""
    if plan.options.get("unit") is None:
        return 1
    from cepheid.engine.data.instants import step_of

    return step_of(plan.options["unit"], plan.bound.schema.time_unit)


def check_output(plan: Plan) -> None:
    """Can what OUTPUT asks for be said of this stream?"""
    mode, imprecise = plan.bound.output.mode, plan.bound.schema.is_imprecise
    if mode is s.OutputMode.NON_OVERLAP and imprecise:
        message = "NON-OVERLAP needs to know which match ended first, and imprecise times do not fix the order"
        raise QueryError(message, hint="use OUTPUT TOP k BY CONFIDENCE, or CONFIDENCE", code="overlap-of-imprecise")
    check_meaning(plan.bound)


def reported(
    plan: Plan, stream: Stream, found: list[FoundMatch], after: int, ended: output.Ended | None = None
) -> list[FoundMatch]:
    """What OUTPUT picks among the matches."""
    bound, chosen = plan.bound, plan.bound.output
    match chosen.mode:
        case s.OutputMode.NON_OVERLAP:
            if ended is not None:
                found = [match for match in found if match.completion > after]
            return output.without_overlap(bound, stream, found, ended or {})
        case s.OutputMode.MAXIMAL:
            return output.maximal(found)
        case s.OutputMode.TOP:
            return output.most_confident(bound, stream, found, chosen.count or 1)
    return found


def ends(plan: Plan, events: EventTable, matches: Matches) -> output.Ended:
    """Where the last of these matches ended in each partition: with what was carried before, the next `ended`."""
    return output.last_ends(plan.bound, stream_of(plan, events), matches.groups())


def stream_of(plan: Plan, events: EventTable) -> Stream:
    """The events as plain Python rows, with values as predicates see them."""
    schema = plan.bound.schema
    read = plan.bound.attributes()
    columns = {
        name: (value_column(column) if kind is not DataType.OTHER and name in read else column)
        for (name, kind), column in zip(schema.columns, events.table.select(schema.names).columns, strict=True)
    }
    lists = {name: column.to_pylist() for name, column in columns.items()}
    rows = [{name: values[row] for name, values in lists.items()} for row in range(len(events))]
    return Stream(rows, events.time.tolist(), events.instant.tolist())
