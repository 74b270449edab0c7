"""The engines: what each can run, what it costs, and where it is. A new engine is its module and one line here.

Asking loads no kernel: `supports` and `cost` look at the query, and an engine's module is loaded when it runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from cepheid.engine.data.flink_runs import Arranged
from cepheid.engine.data.matches import Matches
from cepheid.engine.limits import FEW_OVERLAPPING, MAX_BRANCHES, MOST_PLACES
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.linear import refusal
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.printing import expression_text
from cepheid.plan.cost import Work
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.lowering import automaton_of
from cepheid.plan.options import (
    ChainOptions,
    ForecastOptions,
    ImpreciseOptions,
    IntervalOptions,
    Limits,
    MissingOptions,
    NoOptions,
    RunsOptions,
    SequenceOptions,
    TreeOptions,
)
from cepheid.plan.physical import Plan
from cepheid.plan.statistics import Statistics

Supports = Callable[[BoundQuery, bool, bool], str | None]  # query, may events be missing, are times imprecise
Cost = Callable[[Work | None], float]  # None: nothing is known of the events
Run = Callable[..., Matches]  # plan, events, after, until
FlinkRun = Callable[[FlinkAutomaton, Arranged, bool, Limits], Matches]  # automaton, events, runs given up, limits
RowRun = Callable[[BoundClause, pa.Table, int, int], pa.Table | list[list[Any]]]  # clause, table, threads, most matches
RowCount = Callable[[BoundClause, pa.Table, int, int], int]
Running = TypeVar("Running")

NEVER_CHOSEN = float("inf")
MOST_WALKED = 62  # steps of a Flink pattern for each of whose events a condition is to hold


# --- what an engine can run: why not, or None -----------------------------------------------------------------------


def anything(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The reference runs every query, if slowly."""
    return None


def precise(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The run engines: every strategy and Kleene plus, over streams that are exact."""
    if _ends_across_partitions(bound):
        return "UNTIL looks at the events of a partition, and some events belong to every partition"
    if not bound.is_linear:
        return "its patterns are plain sequences"
    if imprecise:
        return (
            "it assumes that every event happened"
            if bound.schema.is_timed_exactly
            else "it assumes that times are precise"
        )
    return "it assumes that every event was seen" if lossy else None


def _ends_across_partitions(bound: BoundQuery) -> bool:
    """Has it UNTIL, and may an event that ends a group lack the attribute that parts events?"""
    return bool(bound.untils) and any(bound.schema.types_lacking(name) for name in bound.equivalence)


def sequences(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The sequence engine and the lazy ones: single events, in any combination."""
    if bound.has_kleene:
        return "it does not support Kleene plus"
    if bound.strategies != {s.Strategy.SKIP_TILL_ANY}:
        return f"it selects events by skip_till_any_match, not {bound.strategy_text}"
    return precise(bound, lossy, imprecise)


def expressions(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """Patterns with optional parts, alternatives, groups and any order, by the linear ones they stand for."""
    if bound.is_linear:
        return "it is for patterns that are more than a sequence"
    if bound.given_up:
        return "it does not support OUTPUT PARTIAL"
    if bound.follows_runs:
        return "UNTIL depends on the events taken so far"
    if _ends_across_partitions(bound):
        return "UNTIL looks at the events of a partition, and some events belong to every partition"
    unsure = _imprecise(bound, lossy) if imprecise else _unseen(bound) if lossy else None
    return unsure or refusal(bound)


def states(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The same patterns by one automaton: groups, alternatives and optional parts are states and edges."""
    if bound.is_linear:
        return "it is for patterns that are more than a sequence"
    if imprecise or lossy:
        return "it assumes that every event was seen, at a known time"
    found = automaton_of(bound)
    return found if isinstance(found, str) else None


def missing(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The queues engine: events that nobody saw."""
    if not bound.is_linear:
        return "its patterns are plain sequences"
    if imprecise:
        exact = bound.schema.is_timed_exactly
        return "it assumes that every event that was seen happened" if exact else "its times are points, not intervals"
    return _unseen(bound) if lossy else "it is for events that may be missing; pass model=... or write THRESHOLD"


def intervals(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The engine for times that are only known to an interval."""
    if not bound.is_linear:
        return "its patterns are plain sequences"
    if not imprecise:
        return "it is for imprecise times; pass lower='...' and upper='...'"
    return _imprecise(bound, lossy)


def _imprecise(bound: BoundQuery, lossy: bool) -> str | None:
    """What imprecise times ask of a query."""
    unsure = "events that may not have happened" if bound.schema.is_timed_exactly else "imprecise times"
    if bound.window is not None and bound.window.events:
        return f"WITHIN n EVENTS counts events in order, and {unsure} do not fix the order"
    if bound.output.mode is s.OutputMode.NON_OVERLAP:
        return f"NON-OVERLAP needs to know which match ended first, and {unsure} do not fix the order"
    if bound.has_tied_negations:
        return (
            f"a condition relates negated components to each other, and {unsure} do not fix the order of their events"
        )
    return _both(bound) if lossy else None


def forecasts(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The engine for partial matches and how likely they are to complete."""
    if imprecise:
        return "FORECAST needs exact times"
    return None if lossy else "FORECAST needs a loss and gap model: pass model=..., or fit one with cepheid.fit"


def points(bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
    """The same by point events, one for each instant of an event that was seen."""
    return "it assumes that every event was seen" if lossy else intervals(bound, lossy, imprecise)


def _both(bound: BoundQuery) -> str | None:
    """Imprecise times and missing events together: narrower than either alone."""
    if bound.output.mode is s.OutputMode.TOP:
        return "TOP k BY CONFIDENCE is not defined where events are missing: use THRESHOLD or CONFIDENCE"
    if bound.negations and len(bound.branches) > MAX_BRANCHES:
        number = f"the condition has {len(bound.branches)} alternatives"
        return f"{number}; with negation and imprecise time at most {MAX_BRANCHES} are supported"
    return _unseen(bound)


def _unseen(bound: BoundQuery) -> str | None:
    """What missing events ask of a query, whatever its times are."""
    if bound.contiguous:
        return f"{bound.strategy.value} requires events without gaps, and a missing event is a gap"
    if bound.has_tied_negations:
        return "with missing events, negated components are evaluated separately, and a condition relates some of them"
    if bound.window is None or bound.window.events:
        return "missing events need a window of time"
    names = set(bound.place_of)
    conditions = [conjunct.expression for conjunct in bound.conjuncts]
    for branch in bound.branches:
        conditions += [*branch.positive, *(part for _, parts in branch.negative for part in parts)]
    for condition in conditions:
        mentioned = {node.variable for node in s.walk(condition) if isinstance(node, s.Reference | s.Length)}
        if len(mentioned & names) > MOST_PLACES:
            return f"'{expression_text(condition)}' mentions more than {MOST_PLACES} components that may be missing"
    return None


# --- what it costs: microseconds beyond what every engine takes -----------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """The same for every query."""

    value: float

    def __call__(self, work: Work | None) -> float:
        return self.value


@dataclass(frozen=True)
class Price:
    """Microseconds of the processor for what an engine does, beyond what the sequence engine takes for reading events.

    Fitted (least squares of relative errors, no negative price) to the times of 82 queries that `bench planner` draws,
    of 20,000 events each, without negation and NON-OVERLAP, by the counters of each run: sequence 3,800 + 0.10 for each
    candidate + 0.30 for each partition + 0.092 for each test + 0.056 for each match; lazy-tree 5,100 + 0.17 + 0.93 +
    0.29 + 0; runs 4,300 + 0.12 + 0.99 + 0.125 + 0.117. Half of the times are within 25% of that.
    """

    unmeasured: float  # how it ranks where nothing is known of the events
    test: float
    match: float = 0.0
    event: float = 0.0
    partition: float = 0.0
    start: float = 0.0  # besides what was measured, something for a kernel that may have to be loaded

    def __call__(self, statistics: Statistics, tests: float, matches: float) -> float:
        reading = self.start + self.event * sum(statistics.passing) + self.partition * statistics.partitions
        return reading + self.test * tests + self.match * matches


BACKWARDS = Price(1.0, 0.09, match=0.055)
RUNS = Price(10.0, 0.125, match=0.115, event=0.015, partition=0.7, start=1_500.0)
LAZY = Price(4.0, 0.29, event=0.065, partition=0.65, start=1_500.0)


@dataclass(frozen=True)
class Runs:
    """Tests against runs, the first component first, and matches that are written down from what they share."""

    times: float = 1.0  # as expensive as the engine whose price was measured

    def __call__(self, work: Work | None) -> float:
        if work is None:
            return self.times * RUNS.unmeasured
        return self.times * RUNS(work.statistics, *work.runs)


@dataclass(frozen=True)
class Backwards:
    """Tests in the one order that the engine has."""

    def __call__(self, work: Work | None) -> float:
        if work is None:
            return BACKWARDS.unmeasured
        return _listing(BACKWARDS, work, work.backwards * work.stacked)


@dataclass(frozen=True)
class BestOrder:
    """Tests in the cheapest order (LAZY section 5), which nobody knows before the events are measured."""

    times: float = 1.0  # as expensive as the engine whose price was measured

    def __call__(self, work: Work | None) -> float:
        if work is None:
            return self.times * LAZY.unmeasured
        return self.times * _listing(LAZY, work, work.cheapest_order[1])


def _listing(price: Price, work: Work, tests: float) -> float:
    """What an engine takes that lists all matches. Of many that may overlap it lists some, then runs begin anew."""
    statistics, most = work.statistics, FEW_OVERLAPPING * work.statistics.events
    if work.bound.output.mode is not s.OutputMode.NON_OVERLAP or work.matches <= most:
        return price(statistics, tests, work.matches)
    return price(statistics, tests * most / work.matches, most) + RUNS(statistics, *work.runs)


# --- the engines ----------------------------------------------------------------------------------------------------


class Registered(Generic[Running]):
    """An engine that is named here, and loaded on first use, since loading kernels takes time."""

    run: str  # where the function is that runs it, below cepheid.engine

    @property
    def module(self) -> str:
        """The module that holds it, below cepheid.engine."""
        return self.run.partition(":")[0]

    def load(self) -> Running:
        """The function that runs it."""
        run: Running = self.beside(self.run.partition(":")[2])
        return run

    def beside(self, name: str) -> Any:
        """A function of its module."""
        return getattr(importlib.import_module(f"cepheid.engine.{self.module}"), name)


@dataclass(frozen=True)
class Engine(Registered[Run]):
    """A way to find the matches of query text."""

    name: str
    options: type  # the options that it reads
    supports: Supports
    cost: Cost
    run: str
    automaton: str | None = None  # the function beside it that draws its automaton as text
    forecasts: bool = False  # does it report partial matches (FORECAST), and nothing else?

    @property
    def any_order(self) -> bool:
        """Can it fill components in any order, so that statistics matter?"""
        return isinstance(self.cost, BestOrder)

    def refuses(self, bound: BoundQuery, model: object = None) -> str | None:
        """Why it cannot run a query, or None."""
        return self.refusal(bound, bound.may_miss(model), bound.schema.is_imprecise)

    def refusal(self, bound: BoundQuery, lossy: bool, imprecise: bool) -> str | None:
        """The same, where it is known whether events may be missing and times are imprecise."""
        if (bound.forecast is not None) != self.forecasts:
            return "it is for FORECAST" if self.forecasts else "FORECAST returns partial matches"
        return self.supports(bound, lossy, imprecise)

    def draw(self, plan: Plan) -> str | None:
        """The automaton that it walks, where it has one to show."""
        if self.automaton is None:
            return None
        drawn: str = self.beside(self.automaton)(plan)
        return drawn


@dataclass(frozen=True)
class ReferenceOptions(MissingOptions, ImpreciseOptions):
    """Of the reference, which reads what changes results."""


def of_runs(bound: BoundQuery) -> str:
    """The engine whose runs share what they have in common, so that matches can be counted without being listed."""
    return "runs" if bound.is_linear else "states"


ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("reference", ReferenceOptions, anything, Fixed(NEVER_CHOSEN), "reference:find"),
        Engine("sequence", SequenceOptions, sequences, Backwards(), "search.stacks:run"),
        Engine("runs", RunsOptions, precise, Runs(), "search.runs:run", "automaton_text"),
        Engine("backtrack", NoOptions, precise, Runs(10.0), "search.runs:run_backtracking", "automaton_text"),
        Engine("lazy-tree", TreeOptions, sequences, BestOrder(), "search.lazy:run_tree", "tree_text"),
        Engine("lazy-chain", ChainOptions, sequences, BestOrder(2.0), "search.lazy:run_chain", "chain_text"),
        Engine("expansion", ImpreciseOptions, expressions, Fixed(1.0), "expansion:run"),
        Engine("states", NoOptions, states, Fixed(0.5), "search.runs:run", "automaton_text"),
        Engine("queues", MissingOptions, missing, Fixed(1.0), "search.queues:run", "describe_edges"),
        Engine("intervals", IntervalOptions, intervals, Fixed(1.0), "search.intervals.run:run_intervals"),
        Engine("forecast", ForecastOptions, forecasts, Fixed(1.0), "forecasting:run", forecasts=True),
        Engine("points", ImpreciseOptions, points, Fixed(10.0), "search.points:run_points"),
    )
}


# --- Flink's patterns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlinkEngine(Registered[FlinkRun]):
    """A way to find the matches of a Flink pattern."""

    name: str
    supports: Callable[[FlinkAutomaton], str | None]  # why not, or None
    run: str


def compiled_automaton(automaton: FlinkAutomaton) -> str | None:
    """The kernel has a bit for each step that a condition quantifies over."""
    walked = {step for atom in automaton.atoms for step in automaton.walked(atom.expression)}
    return f"its conditions hold for each event of over {MOST_WALKED} steps" if len(walked) > MOST_WALKED else None


def any_automaton(automaton: FlinkAutomaton) -> str | None:
    """The reference runs every pattern, if slowly."""
    return None


FLINK_ENGINES: Mapping[str, FlinkEngine] = {  # the first that supports a pattern runs it
    engine.name: engine
    for engine in (
        FlinkEngine("automaton", compiled_automaton, "search.flink.run:find"),
        FlinkEngine("reference", any_automaton, "reference.flink:find"),
    )
}


# --- row patterns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowEngine(Registered[RowRun]):
    """A way to find the rows that a MATCH_RECOGNIZE clause returns: as a table, or as values without types."""

    name: str
    run: str
    count: str | None = None  # the function beside it that counts matches without listing them

    def load_count(self) -> RowCount | None:
        """The function that counts matches, where it has one."""
        return None if self.count is None else self.beside(self.count)


ROW_ENGINES: Mapping[str, RowEngine] = {  # the first one is chosen: each of them runs every clause
    engine.name: engine
    for engine in (
        RowEngine("preferred", "search.row_pattern.run:match_table", "count_matches"),
        RowEngine("reference", "reference.rows:find"),
    )
}
