"""`find`: the matches whose completion instant lies in an interval. Every runner calls this and nothing else.

It is a pure function of plan, events and interval, so that a batch, a stream cut anywhere and slices of time that
run side by side give the same matches.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cepheid.budget import within_budget
from cepheid.engine.choose import Choice, chosen, decide, make_plan
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.engines import ENGINES, Engine, Run
from cepheid.engine.jit_fallback import answer
from cepheid.engine.limits import FEW_OVERLAPPING
from cepheid.engine.match_limits import counted_soon, explained, limited, list_or_count
from cepheid.engine.output.closed import can_close, find_closed
from cepheid.engine.output.maximal import find_maximal
from cepheid.engine.output.overlap import Ended, find_non_overlapping, last_ends
from cepheid.engine.shorter_window import with_shorter_window
from cepheid.engine.statistics import split_by_most_selective
from cepheid.errors import LimitError, TimeoutReached
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.operators import AUTO
from cepheid.plan.physical import Plan

__all__ = ["BEGINNING", "ENGINES", "Engine", "automaton_text", "find", "last_ends"]

BEGINNING = np.iinfo(np.int64).min


def find(
    plan: Plan,
    events: EventTable,
    after: int | None = None,
    until: int | None = None,
    ended: Ended | None = None,
    *,
    explains: bool = True,
) -> Matches:
    """The matches with after < completion <= until; None stands for the beginning and the end of time.

    OUTPUT NON-OVERLAP looks back: `ended` says where the last match of each partition ended that was reported up to
    `after` (`last_ends` of what was found, on top of what was carried before). Without it, that is found again.

    A result that is cut short, and an error, say how many matches there are in all if `explains`.
    """
    plan = with_shorter_window(split_by_most_selective(plan, events))
    if plan.engine == AUTO:
        plan = decide(plan, events)
    with within_budget(plan.limits.timeout, plan.limits.max_bytes):
        once = after is None and until is None
        module = ENGINES[plan.engine].module
        return answer(
            module, len(events), lambda: _find(plan, events, after, until, ended, explains=explains), once=once
        )


def _find(
    plan: Plan, events: EventTable, after: int | None, until: int | None, ended: Ended | None, *, explains: bool = True
) -> Matches:
    low = BEGINNING if after is None else after
    high = NEVER if until is None else until
    run = ENGINES[plan.engine].load()
    if plan.engine == "reference":  # it judges what is reported by itself
        return run(plan, events, low, high, ended)
    listed = list_or_count(run, _complete) if explains else run
    match plan.output.mode:
        case s.OutputMode.NON_OVERLAP:
            try:
                return find_non_overlapping(_pruned_later(run), plan, events, low, high, ended)
            except TimeoutReached:
                raise
            except LimitError as error:
                if not explains:
                    raise
                counted = counted_soon(plan.bound, plan.model, events, low, high)
                raise explained(error, plan, events, counted) from None
        case s.OutputMode.MAXIMAL:
            closes = ENGINES["runs"].refuses(plan.bound, plan.model) is None and can_close(plan.bound)
            return find_maximal(_closed_first(listed) if closes else listed, plan, events, low, high)
    return listed(plan, events, low, high)


def _complete(plan: Plan, events: EventTable) -> Matches:
    """All that a plan reports; what is too much is an error that explains nothing."""
    return _find(plan, events, None, None, None, explains=False)


def _pruned_later(run: Run) -> Run:
    """Few matches are listed and compared; many are better not made, which runs can: they end with the first match."""

    def separate(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
        prunes = bool(plan.options.get("non_overlapping", False)) and not plan.bound.postponed
        few = FEW_OVERLAPPING * max(len(events), 1_000)
        if not prunes or plan.engine == "runs" or ENGINES["runs"].refuses(plan.bound, plan.model) is not None:
            return run(plan, events, after, until)
        if few >= plan.limits.max_matches:
            return run(plan, events, after, until)
        try:
            return run(limited(plan, few, plan.limits.max_partial_matches), events, after, until)
        except TimeoutReached:
            raise
        except LimitError:
            return ENGINES["runs"].load()(chosen(plan, Choice("runs")), events, after, until)

    return separate


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


def automaton_text(plan: Plan) -> str | None:
    """The automaton that the engine walks, where it has one to show."""
    return None if plan.engine == AUTO else ENGINES[plan.engine].draw(plan)
