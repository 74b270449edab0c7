"""`find`: the matches whose completion instant lies in an interval. Every runner calls this and nothing else.

It is a pure function of plan, events and interval, so that a batch, a stream cut anywhere and slices of time that
run side by side give the same matches.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cepheid.engine import abilities
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.output.maximal import find_maximal
from cepheid.engine.output.overlap import Ended, find_apart, last_ends
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

__all__ = ["BEGINNING", "ENGINES", "Engine", "automaton_text", "find", "last_ends"]

Run = Callable[..., Matches]  # plan, events, after, until
BEGINNING = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Engine:
    """A way to find matches. Its module is loaded on first use, since loading kernels takes time."""

    name: str
    refuses: Callable[[BoundQuery], str | None]  # why it cannot run a query, or None
    module: str
    function: str = "run"
    automaton: str | None = None  # the function that draws its automaton as text

    @property
    def run(self) -> Run:
        """The function that runs a plan."""
        run: Run = getattr(importlib.import_module(f"cepheid.engine.{self.module}"), self.function)
        return run


ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("reference", abilities.anything, "reference", "find"),
        Engine("sequence", abilities.sequences, "search.stacks"),
        Engine("runs", abilities.precise, "search.runs", automaton="automaton_text"),
        Engine("backtrack", abilities.precise, "search.runs", "run_backtracking", "automaton_text"),
        Engine("lazy-chain", abilities.sequences, "search.lazy", "run_chain", "chain_text"),
        Engine("lazy-tree", abilities.sequences, "search.lazy", "run_tree", "tree_text"),
        Engine("queues", abilities.missing, "search.queues", automaton="describe_edges"),
        Engine("points", abilities.points, "search.points", "run_points"),
        Engine("intervals", abilities.imprecise, "search.intervals.run", "run_intervals"),
    )
}


def find(
    plan: Plan, events: EventTable, after: int | None = None, until: int | None = None, ended: Ended | None = None
) -> Matches:
    """The matches with after < completion <= until; None stands for the beginning and the end of time.

    OUTPUT NON-OVERLAP looks back: `ended` says where the last match of each partition ended that was reported up to
    `after` (`last_ends` of what was found, on top of what was carried before). Without it, that is found again.
    """
    low = BEGINNING if after is None else after
    high = NEVER if until is None else until
    run = ENGINES[plan.engine].run
    if plan.engine == "reference":  # it judges what is reported by itself
        return run(plan, events, low, high, ended)
    match plan.bound.syntax.output.mode:
        case s.OutputMode.NON_OVERLAP:
            return find_apart(run, plan, events, low, high, ended)
        case s.OutputMode.MAXIMAL:
            return find_maximal(run, plan, events, low, high)
    return run(plan, events, low, high)


def automaton_text(plan: Plan) -> str | None:
    """The automaton that the engine walks, where it has one to show."""
    engine = ENGINES[plan.engine]
    if engine.automaton is None:
        return None
    draw: Callable[[Plan], str] = getattr(importlib.import_module(f"cepheid.engine.{engine.module}"), engine.automaton)
    return draw(plan)
