"""`find`: the matches whose completion instant lies in an interval. Every runner calls this and nothing else.

It is a pure function of plan, events and interval, so that a batch, a stream cut anywhere and slices of time that
run side by side give the same matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepheid.engine import reference, sequence
from cepheid.engine.events import EventTable
from cepheid.engine.matches import NEVER, Matches
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

Run = Callable[[Plan, EventTable, int, int], Matches]


@dataclass(frozen=True)
class Engine:
    """A way to find matches."""

    name: str
    refuses: Callable[[BoundQuery], str | None]  # why it cannot run a query, or None
    run: Run


def _anything(bound: BoundQuery) -> str | None:
    return None


ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("reference", _anything, reference.find),
        Engine("sequence", sequence.refuses, sequence.run),
    )
}
AUTOMATA: Mapping[str, Callable[[Plan], str]] = {}
BEGINNING = np.iinfo(np.int64).min


def find(plan: Plan, events: EventTable, after: int | None = None, until: int | None = None, **carried: Any) -> Matches:
    """The matches with after < completion <= until; None stands for the beginning and the end of time."""
    low = BEGINNING if after is None else after
    high = NEVER if until is None else until
    return ENGINES[plan.engine].run(plan, events, low, high)


def automaton_text(plan: Plan) -> str | None:
    """The automaton that the engine walks, where it has one to show."""
    return AUTOMATA[plan.engine](plan) if plan.engine in AUTOMATA else None
