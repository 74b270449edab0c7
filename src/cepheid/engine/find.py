"""`find`: the matches whose completion instant lies in an interval. Every runner calls this and nothing else.

It is a pure function of plan, events and interval, so that a batch, a stream cut anywhere and slices of time that
run side by side give the same matches.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np

from cepheid.engine.choose import decide, make_plan
from cepheid.engine.cold import answer
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.totals import COUNT_ALL, GroupTotals
from cepheid.engine.engines import ENGINES, Engine, Run
from cepheid.engine.kernels.stop import within_budget
from cepheid.engine.output.closed import can_close, find_closed
from cepheid.engine.output.maximal import find_maximal
from cepheid.engine.output.overlap import Ended, find_non_overlapping, last_ends
from cepheid.engine.statistics import split_by_most_selective
from cepheid.errors import LimitError, TimeoutReached
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.operators import AUTO
from cepheid.plan.physical import Plan

__all__ = ["BEGINNING", "ENGINES", "Engine", "automaton_text", "find", "last_ends"]

BEGINNING = np.iinfo(np.int64).min
MOST_COUNTED = 20_000  # events, for which an error may take the time to count
EXACT_BELOW = 1e38


def find(
    plan: Plan, events: EventTable, after: int | None = None, until: int | None = None, ended: Ended | None = None
) -> Matches:
    """The matches with after < completion <= until; None stands for the beginning and the end of time.

    OUTPUT NON-OVERLAP looks back: `ended` says where the last match of each partition ended that was reported up to
    `after` (`last_ends` of what was found, on top of what was carried before). Without it, that is found again.
    """
    plan = split_by_most_selective(plan, events)
    if plan.engine == AUTO:
        plan = decide(plan, events)
    with within_budget(plan.limits.timeout, plan.limits.max_bytes):
        return answer(ENGINES[plan.engine].module, len(events), lambda: _find(plan, events, after, until, ended))


def _find(plan: Plan, events: EventTable, after: int | None, until: int | None, ended: Ended | None) -> Matches:
    low = BEGINNING if after is None else after
    high = NEVER if until is None else until
    run = ENGINES[plan.engine].load()
    if plan.engine == "reference":  # it judges what is reported by itself
        return run(plan, events, low, high, ended)
    match plan.output.mode:
        case s.OutputMode.NON_OVERLAP:
            return find_non_overlapping(run, plan, events, low, high, ended)
        case s.OutputMode.MAXIMAL:
            closes = ENGINES["runs"].refuses(plan.bound, plan.model) is None and can_close(plan.bound)
            return find_maximal(_closed_first(run) if closes else run, plan, events, low, high)
    try:
        return run(plan, events, low, high)
    except TimeoutReached:
        raise
    except LimitError as error:
        raise _with_count(error, plan, events, low, high) from None


def _closed_first(run: Run) -> Run:
    """Only matches whose groups leave nothing out, where these can be had without all the others."""

    def closed(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
        def single(bound: BoundQuery) -> Matches:
            simpler = make_plan(bound)[0]
            simpler = replace(simpler, match=replace(simpler.match, limits=plan.limits))
            return ENGINES[simpler.engine].load()(simpler, events, after, until)

        found = find_closed(plan, events, single)
        return run(plan, events, after, until) if found is None else found

    return closed


def _with_count(error: LimitError, plan: Plan, events: EventTable, after: int, until: int) -> LimitError:
    """The same error with the number of matches there are, where that can be had without listing them."""
    if len(events) > MOST_COUNTED or ENGINES["runs"].refuses(plan.bound, plan.model) is not None:
        return error
    totals = importlib.import_module("cepheid.engine.search.totals")  # kernels that only this needs
    found: GroupTotals | None = totals.total(plan, COUNT_ALL, events, after, until)
    if found is None:
        return error
    near = float(found.near[:, 0].sum())
    number = f"{sum(row[0] for row in found.exact):,}" if near < EXACT_BELOW else f"about {near:.2g}"
    hint = f"{error.hint}; {_tamed_by(plan.bound)}; SUMMARISE adds them up without listing them"
    return LimitError(f"{error.message}; there are {number} matches", hint=hint)


def _tamed_by(bound: BoundQuery) -> str:
    """The clause that would leave few of very many matches."""
    if bound.strategy is s.Strategy.SKIP_TILL_ANY and bound.has_kleene:
        group = next(component.variable for component in bound.positives if component.kleene)
        return (
            f"under skip_till_any_match every part of {group}[] is a match of its own: skip_till_next_match, "
            "OUTPUT MAXIMAL or OUTPUT NON-OVERLAP keeps one of them"
        )
    if bound.window is None:
        return "WITHIN bounds how far apart events may be"
    if not bound.equivalence and len(bound.positives) > 1:
        return "an equivalence test such as [id] or a shorter WITHIN leaves fewer"
    return "OUTPUT NON-OVERLAP or a shorter WITHIN leaves fewer"


def automaton_text(plan: Plan) -> str | None:
    """The automaton that the engine walks, where it has one to show."""
    return None if plan.engine == AUTO else ENGINES[plan.engine].draw(plan)
