"""`find`: the matches whose completion instant lies in an interval. Every runner calls this and nothing else.

It is a pure function of plan, events and interval, so that a batch, a stream cut anywhere and slices of time that
run side by side give the same matches.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.choose import decide
from cepheid.engine.cold import answer
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.engines import ENGINES, Engine
from cepheid.engine.kernels.stop import within_budget
from cepheid.engine.output.maximal import find_maximal
from cepheid.engine.output.overlap import Ended, find_non_overlapping, last_ends
from cepheid.language import syntax as s
from cepheid.plan.operators import AUTO
from cepheid.plan.physical import Plan

__all__ = ["BEGINNING", "ENGINES", "Engine", "automaton_text", "find", "last_ends"]

BEGINNING = np.iinfo(np.int64).min


def find(
    plan: Plan, events: EventTable, after: int | None = None, until: int | None = None, ended: Ended | None = None
) -> Matches:
    """The matches with after < completion <= until; None stands for the beginning and the end of time.

    OUTPUT NON-OVERLAP looks back: `ended` says where the last match of each partition ended that was reported up to
    `after` (`last_ends` of what was found, on top of what was carried before). Without it, that is found again.
    """
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
            return find_maximal(run, plan, events, low, high)
    return run(plan, events, low, high)


def automaton_text(plan: Plan) -> str | None:
    """The automaton that the engine walks, where it has one to show."""
    return None if plan.engine == AUTO else ENGINES[plan.engine].draw(plan)
