"""Which queries the incremental search runs, and what it has to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.choose import decide
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import ColumnLayout, storage
from cepheid.engine.data.table import EventTable
from cepheid.engine.incremental import linking
from cepheid.engine.program.compile import CompiledProgram, compile_program, compile_runs
from cepheid.engine.program.graph import Graph
from cepheid.engine.program.tables import KEYS_FROM, MERGEABLE
from cepheid.engine.search.runs.moves import Widths
from cepheid.engine.search.runs.scan import Machine
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.pattern import edge, fewest, without
from cepheid.language.schema import DataType
from cepheid.plan.lowering import automaton_of
from cepheid.plan.operators import AUTO
from cepheid.plan.physical import Plan

FAR = 2**61
_KEYS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean)


def decided(plan: Plan) -> Plan:
    """The plan with the engine that it gets where there are too few events to measure any."""
    if plan.engine != AUTO:
        return plan
    nothing = np.empty(0, np.int64)
    return decide(plan, EventTable(pa.table({}), nothing, nothing))


def refusal(plan: Plan, schema: pa.Schema) -> str | None:
    """Why a query is searched anew at each step, over the events that are kept; None: it is not."""
    plan = decided(plan)
    bound = plan.bound
    if plan.engine not in ("sequence", "runs", "states") or plan.is_lossy or plan.is_imprecise:
        return f"engine {plan.engine} has no incremental form"
    if set(plan.partition) != set(bound.equivalence) or plan.compared or bound.may_lack:
        return "an equivalence test does not part its events"
    if bound.summary is not None or plan.output.mode is not s.OutputMode.ALL:
        return "matches are summed up or compared with each other"
    if bound.postponed or bound.untils:
        return "matches are known only when their window has passed" if bound.postponed else "UNTIL looks at all events"
    if bound.strict and plan.partition:
        return "strict contiguity looks at the events of all keys"
    if bound.schema.tiebreak:
        return "a tiebreak orders events of one time"
    if bound.window is None:
        return "it has no window"
    if plan.limits.timeout or plan.limits.max_bytes or plan.limits.truncate:
        return "a search that may be cut off is begun anew"
    if not all(any(test(schema.field(name).type) for test in _KEYS) for name in plan.partition):
        return "its key has a type that Python does not compare as SQL does"
    if plan.engine != "sequence" and isinstance(automaton_of(bound), str):
        return "its pattern has no automaton"
    return _refused_columns(form_of(plan).compiled)


def _refused_columns(compiled: CompiledProgram) -> str | None:
    layout: ColumnLayout = compiled.layout
    # The ranks of texts change with the texts that occur.
    if any(kind is DataType.STRING or storage(kind) == "list" for _, kind, _ in layout.attributes):
        return "its conditions compare texts or lists of two events"
    if layout.read or layout.literals or compiled.predicate.form is not None or not compiled.predicate.compiled:
        return "its conditions are not compiled"
    return None


@dataclass(frozen=True)
class Form:
    """A query as the incremental search reads it."""

    plan: Plan
    compiled: CompiledProgram
    graph: Graph | None  # None: instance stacks

    @property
    def by_runs(self) -> bool:
        """Is it for the run engine?"""
        return self.graph is not None

    @cached_property
    def machine(self) -> Machine:
        """Its conditions and its states."""
        assert self.graph is not None
        return Machine(self.compiled.program, self.graph)

    @property
    def merging(self) -> bool:
        """Are equal runs merged?"""
        program = self.compiled.program
        return bool(self.plan.options.get("merge", True)) and bool(program.place[:, MERGEABLE].any())

    @cached_property
    def widths(self) -> Widths:
        """How wide the parts of a run are."""
        compiled = self.compiled
        keys = int(np.diff(compiled.program.place[:, KEYS_FROM]).max(initial=0))
        return Widths(0, compiled.slots, compiled.whole, compiled.number, 2 + keys if self.merging else 0)

    @property
    def literals(self) -> Int64s:
        """The codes of texts in conditions."""
        return np.empty(0, np.int64)

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """The components that events have to fill one after the other, as bits: of an expression, first and last."""
        bound = self.plan.bound
        if bound.is_linear:
            return tuple(1 << place for place in range(len(bound.positives)))
        absent = frozenset(negation.component.variable for negation in bound.negations)
        pattern = without(bound.pattern, absent)
        ends = [_bits(bound, edge(pattern, last=last)) for last in (False, True)]
        return tuple(ends) if fewest(pattern) >= 2 else (ends[1],)

    @property
    def ending(self) -> int:
        """The components that a match can end with, as bits."""
        return self.stages[-1]

    @cached_property
    def tables(self) -> list[Any]:
        """The tables of the program and the graph."""
        program = self.compiled.program
        nothing = np.zeros((0, 1), np.int64)
        graph = (nothing,) * 3 if self.graph is None else (self.graph.states, self.graph.edges, self.graph.passed)
        own = (program.place, program.kept, program.moments, program.tests, program.walks, program.negations)
        return [np.ascontiguousarray(table) for table in (*own, program.keys, *graph)]

    @cached_property
    def numbers(self) -> dict[int, int]:
        """What is written into `head` once."""
        plan, program, widths = self.plan, self.compiled.program, self.widths
        bound, retention = plan.bound, plan.exchange.retention
        assert bound.window is not None
        any_groups = bound.has_kleene and s.Strategy.SKIP_TILL_ANY in bound.strategies
        return {
            linking.LASTS: FAR if bound.window.events else bound.window.length,
            linking.REACH: retention.reach or 0,
            linking.REACHED_EVENTS: retention.events or 0,
            linking.COUNTS: int(plan.scan.every_event),
            linking.CONTIGUOUS: int(bound.contiguous),
            linking.BY_RUNS: int(self.by_runs),
            linking.MANY: int(any_groups or (self.by_runs and s.Strategy.SKIP_TILL_ANY in bound.strategies)),
            linking.MOST_MATCHES: plan.limits.max_matches,
            linking.MOST_RUNS: plan.limits.max_partial_matches,
            linking.PUSH_WINDOW: int(plan.push_window),
            linking.PUSH_CONDITIONS: int(plan.push_predicates),
            linking.MERGING: int(self.by_runs and self.merging),
            linking.SLOTS: widths.slots,
            linking.WHOLES: widths.whole,
            linking.NUMBERS: widths.number,
            linking.KEY_WIDTH: widths.key,
            linking.PLACES: program.places,
            linking.NEGATIVES: program.negatives,
            linking.STRATEGY: program.strategy,
            linking.WINDOW_KIND: program.window_kind,
            linking.WINDOW: program.window,
            linking.POSTPONED: int(program.postponed),
            linking.JUDGED: int(program.judged),
            linking.BRANCHES: program.branches,
            linking.WALK_WHOLE: program.walk_whole,
            linking.WALK_NUMBER: program.walk_number,
            linking.WIDEST: 0 if self.graph is None else self.graph.widest,
        }


def _bits(bound: BoundQuery, variables: Any) -> int:
    return sum(1 << place for place, each in enumerate(bound.positives) if each.variable in variables)


def form_of(plan: Plan) -> Form:
    """A query as the incremental search reads it; its program is the one for compiled or interpreted kernels."""
    plan = decided(plan)
    if plan.engine == "sequence":
        order = tuple(range(len(plan.bound.positives) - 1, -1, -1))  # construction walks backwards
        return Form(plan, compile_program(plan.bound, order=order, push=plan.push_predicates), None)
    return Form(plan, *compile_runs(plan.bound))
