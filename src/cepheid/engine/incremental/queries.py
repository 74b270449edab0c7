"""Which queries the incremental search runs, and what it has to know of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.choose import decide
from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import ColumnLayout, storage
from cepheid.engine.data.table import EventTable
from cepheid.engine.incremental import linking
from cepheid.engine.incremental.endings import with_ending_events
from cepheid.engine.incremental.side_by_side import FEW
from cepheid.engine.program.compile import CompiledProgram, compile_program, compile_runs
from cepheid.engine.program.graph import Graph
from cepheid.engine.program.tables import KEYS_FROM, MERGEABLE
from cepheid.engine.search.incremental_events import COMPARED
from cepheid.engine.search.runs.moves import Widths
from cepheid.engine.search.runs.scan import Machine
from cepheid.engine.values.python_first import python_first
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.pattern import Pattern, edge, fewest, without
from cepheid.language.schema import DataType, Schema
from cepheid.plan.lowering import automaton_of
from cepheid.plan.operators import AUTO
from cepheid.plan.physical import Plan

FAR = 2**61
MOST_LISTED = 10_000  # matches of a step that are listed though most overlap, or though they are only counted
FEW_EVENTS = 48  # of a key, that are laid out anew sooner than a search goes on


def decided(plan: Plan) -> Plan:
    """The plan with the engine that it gets where there are too few events to measure any."""
    if plan.engine != AUTO:
        return plan
    nothing = np.empty(0, np.int64)
    return decide(plan, EventTable(pa.table({}), nothing, nothing))


def refusal(plan: Plan, schema: pa.Schema) -> str | None:
    """Why the events of a key are searched by the engine as a table of their own; None: they are not."""
    plan = decided(plan)
    bound = plan.bound
    if plan.engine not in ("sequence", "runs", "states", "queues") or plan.is_imprecise:
        return f"engine {plan.engine} has no incremental form"
    if plan.is_lossy and (why := _refused_loss(plan)) is not None:
        return why
    if set(plan.partition) != set(bound.equivalence) or plan.compared or bound.may_lack:
        return "an equivalence test does not part its events"
    if (why := _refused_output(plan)) is not None:
        return why
    if bound.forecast is not None:
        return "partial matches are reported as time passes"
    if bound.strict and plan.partition and bound.window is not None and bound.window.events:
        return "strict contiguity looks at the events of all keys, and the window counts those of one"
    if (untied := _refused_ties(bound.schema, schema)) is not None:
        return untied
    if bound.window is None:
        return "it has no window"
    if bound.postponed and bound.window.events:
        return "matches are known only when so many events have come"
    if plan.limits.truncate:
        return "a search that may be cut off is begun anew"
    if not _are_plain(plan.partition, schema):
        return "its key has a type that Python does not compare as SQL does"
    plan = with_ending_events(plan)
    if plan.engine in ("runs", "states") and isinstance(automaton_of(plan.bound), str):
        return "its pattern has no automaton"
    return _refused_columns(_compiled(plan)[0])


def tie_columns(schema: Schema) -> tuple[str, ...]:
    """The columns that order events of one time; the number of a row orders all of them: behind it none is needed."""
    row = schema.row_column
    return schema.tiebreak if row is None else schema.tiebreak[: schema.tiebreak.index(row)]


def _refused_ties(schema: Schema, columns: pa.Schema) -> str | None:
    kinds = [columns.field(name).type for name in tie_columns(schema)]
    if all(any(test(kind) for test in _IN_ORDER) for kind in kinds):
        return None
    return "events of one time are ordered by a column that holds no whole numbers, truth values or times"


def _refused_loss(plan: Plan) -> str | None:
    """The same where events may be missing."""
    if plan.engine != "queues" or plan.match.hashed is not None:
        return "events that may be missing are tied together by equal values"
    if plan.bound.strategies != _ANY or plan.exchange.retention.decides_late:
        return "events that may be missing are looked for in order of time"
    return "the window counts events" if plan.bound.window is not None and plan.bound.window.events else None


def _refused_output(plan: Plan) -> str | None:
    """The same where matches are compared with each other or summed up."""
    bound, mode = plan.bound, plan.output.mode
    if bound.summary is None and mode is s.OutputMode.ALL:
        return None
    if mode not in _COMPARED_AT_ENDS or plan.is_lossy:
        return "matches are compared by their probability, or partial ones are reported"
    if mode is not s.OutputMode.ALL and plan.exchange.retention.decides_late:
        return "matches are compared when windows have passed"
    if mode is s.OutputMode.NON_OVERLAP and (bound.schema.tiebreak or (bound.strict and plan.partition)):
        return "matches of a key are compared by the order of all events"
    return None


def _are_plain(keys: Sequence[str], schema: pa.Schema) -> bool:
    return all(any(test(schema.field(name).type) for test in COMPARED) for name in keys)


def _refused_columns(compiled: CompiledProgram) -> str | None:
    layout: ColumnLayout = compiled.layout
    # The ranks of texts change with the texts that occur.
    if any(kind is DataType.STRING or storage(kind) == "list" for _, kind, _ in layout.attributes):
        return "its conditions compare texts or lists of two events"
    if layout.read or layout.literals or compiled.predicate.form is not None or not compiled.predicate.compiled:
        return "its conditions are not compiled"
    return None


_ANY = {s.Strategy.SKIP_TILL_ANY}
# Which matches are reported is known as soon as all are that end at one time.
_COMPARED_AT_ENDS = (s.OutputMode.ALL, s.OutputMode.NON_OVERLAP, s.OutputMode.MAXIMAL)
_IN_ORDER: tuple[Callable[[pa.DataType], bool], ...] = (  # types whose values are in the order of 64-bit numbers
    pa.types.is_signed_integer,
    pa.types.is_boolean,
    pa.types.is_date32,
    lambda kind: pa.types.is_timestamp(kind) and kind.unit != "ns",
)


class Moments(NamedTuple):
    """When a key is searched."""

    ends: bool = True  # time passes an event that may be the last one of a match
    deadline: int = 0  # so much time has passed after an event that may be the first one; 0: not by that
    always: bool = False  # whenever time passes: then all events are of one key


def moments_of(plan: Plan) -> Moments:
    """When a match of a query can become known."""
    bound, late = plan.bound, plan.exchange.retention.decides_late
    compared = plan.output.mode in (s.OutputMode.TOP, s.OutputMode.PARTIAL)
    if plan.is_imprecise or bound.may_lack or bound.forecast is not None or compared:
        return Moments(always=True)
    window = bound.window
    counts = window is not None and window.events
    if counts and (set(plan.partition) != set(bound.equivalence) or (bound.strict and plan.partition)):
        return Moments(always=True)  # it counts the events of a key, and those of all keys are looked at
    if not late:
        return Moments()
    if window is None or counts or plan.output.mode is not s.OutputMode.ALL:
        return Moments(always=True)
    return Moments(not bound.postponed or plan.is_lossy, window.length)


@dataclass(frozen=True)
class Form:
    """A query as the incremental search reads it."""

    plan: Plan
    compiled: CompiledProgram | None  # None: the engine searches a table of the events
    graph: Graph | None  # None: instance stacks
    why: str | None = None  # that is so

    @cached_property
    def layout(self) -> ColumnLayout:
        """What conditions read, and behind it the columns that order events of one time."""
        if self.compiled is None:
            return ColumnLayout(())
        layout, schema = self.compiled.layout, self.plan.bound.schema
        ties = [(name, schema.type_of(name) or DataType.INT, None) for name in tie_columns(schema)]
        return replace(layout, attributes=(*layout.attributes, *ties))

    @cached_property
    def ties(self) -> Int64Rows:
        """Where the columns lie that order events of one time: rows of values, and of what is NULL."""
        number = 0 if self.compiled is None else len(tie_columns(self.plan.bound.schema))
        attributes = self.layout.attributes
        whole = sum(storage(kind) == "whole" for _, kind, _ in attributes)
        rows = [(whole - number + tie, len(attributes) - number + tie) for tie in range(number)]
        return np.array(rows, np.int64).reshape(number, 2)

    @property
    def replays(self) -> bool:
        """Does the engine search a table of the events of some keys?"""
        return self.compiled is None

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that part the events."""
        together = self.moments.always or (self.plan.bound.strict and self.replays)
        return () if together else self.plan.partition

    @cached_property
    def moments(self) -> Moments:
        """When a key is searched."""
        bound = self.plan.bound
        counts = bound.window is not None and bound.window.events
        if self.replays and counts and bound.schema.tiebreak:
            return Moments(always=True)  # only the engine knows how many events precede another at one time
        return moments_of(self.plan)

    @property
    def carries(self) -> bool:
        """Does a match depend on more than events: on earlier matches, or a sum of them?"""
        return self.plan.bound.summary is not None or self.plan.output.mode is s.OutputMode.NON_OVERLAP

    @property
    def gives_way(self) -> bool:
        """Are many matches of a key better not listed: do most overlap, or are they only counted?"""
        bound, mode = self.plan.bound, self.plan.output.mode
        return not self.replays and (bound.summary is not None or mode is not s.OutputMode.ALL)

    @property
    def most_matches(self) -> int:
        """How many matches a search may list."""
        most = self.plan.limits.max_matches
        return min(most, MOST_LISTED) if self.gives_way else most

    @property
    def by_queues(self) -> bool:
        """Is it for the engine of missing events?"""
        return self.compiled is not None and self.plan.is_lossy

    @property
    def by_runs(self) -> bool:
        """Is it for the run engine?"""
        return self.graph is not None

    @cached_property
    def machine(self) -> Machine:
        """Its conditions and its states."""
        assert self.compiled is not None
        assert self.graph is not None
        return Machine(self.compiled.program, self.graph)

    @property
    def merging(self) -> bool:
        """Are equal runs merged?"""
        assert self.compiled is not None
        program = self.compiled.program
        return bool(self.plan.options.get("merge", True)) and bool(program.place[:, MERGEABLE].any())

    @cached_property
    def widths(self) -> Widths:
        """How wide the parts of a run are."""
        compiled = self.compiled
        assert compiled is not None
        keys = int(np.diff(compiled.program.place[:, KEYS_FROM]).max(initial=0))
        return Widths(0, compiled.slots, compiled.whole, compiled.number, 1 + keys if self.merging else 0)

    @property
    def literals(self) -> Int64s:
        """The codes of texts in conditions."""
        return np.empty(0, np.int64)

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """The components that events have to fill one after the other, as bits: of an expression, first and last."""
        bound = self.plan.bound
        if self.plan.is_lossy or (self.replays and bound.schema.tiebreak):  # which orders events of one time
            return (self._lasts,)
        if bound.is_linear or self._pattern == s.in_order(bound.positives):
            return tuple(1 << place for place in range(len(bound.positives)))
        firsts, lasts = self._edges
        return (firsts, lasts) if fewest(self._pattern) >= 2 else (lasts,)

    @property
    def _lasts(self) -> int:
        """The components that the event that was seen last can fill."""
        every = (1 << len(self.plan.bound.positives)) - 1
        return every if self.plan.options.missing_last else self._edges[1]

    @property
    def _pattern(self) -> Pattern:
        bound = self.plan.bound
        return without(bound.pattern, frozenset(negation.component.variable for negation in bound.negations))

    @property
    def _edges(self) -> tuple[int, int]:
        first, last = (_bits(self.plan.bound, edge(self._pattern, last=last)) for last in (False, True))
        return first, last

    @property
    def ending(self) -> int:
        """The components that a match can end with, as bits."""
        return self.stages[-1]

    @cached_property
    def tables(self) -> list[Any]:
        """The tables of the program and the graph."""
        if self.compiled is None:
            return []
        program = self.compiled.program
        nothing = np.zeros((0, 1), np.int64)
        graph = (nothing,) * 3 if self.graph is None else (self.graph.states, self.graph.edges, self.graph.passed)
        own = (program.place, program.kept, program.moments, program.tests, program.walks, program.negations)
        return [np.ascontiguousarray(table) for table in (*own, program.keys, *graph)]

    @cached_property
    def numbers(self) -> dict[int, int]:
        """What is written into `head` once."""
        plan, moments = self.plan, self.moments
        bound, retention = plan.bound, plan.exchange.retention
        timed = bound.window is not None and not bound.window.events
        known = {
            linking.LASTS: bound.window.length if bound.window is not None and timed else FAR,
            linking.REACH: FAR if moments.always else retention.reach or 0,
            linking.REACHED_EVENTS: 0 if moments.always else retention.events or 0,
            linking.COUNTS: int(plan.scan.every_event),
            linking.AT_ENDS: int(moments.ends and not moments.always),
            linking.DEADLINE: moments.deadline,
            linking.FIRSTS: (1 << len(bound.positives)) - 1 if plan.is_lossy else self._edges[0],
            linking.ALWAYS: int(moments.always),
            linking.REPLAYS: int(self.replays),
            linking.APART: int(not self.replays and bound.schema.row_column is not None),
            linking.STRICT: int(bound.strict and bool(self.keys)),
            linking.LIMITED: int(plan.limits.timeout is not None or plan.limits.max_bytes is not None),
        }
        return known | self._of_program()

    def _of_program(self) -> dict[int, int]:
        """What the kernels of an engine are told."""
        if self.compiled is None:
            return {}
        plan, program, widths = self.plan, self.compiled.program, self.widths
        bound = plan.bound
        any_match = s.Strategy.SKIP_TILL_ANY in bound.strategies and (bound.has_kleene or self.by_runs)
        return {
            linking.CONTIGUOUS: self._contiguity,
            linking.FEW_EVENTS: self._few_events(any_match),
            linking.BY_RUNS: int(self.by_runs),
            linking.BY_QUEUES: int(self.by_queues),
            linking.MANY: int(any_match),
            linking.MOST_MATCHES: self.most_matches,
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

    @property
    def _contiguity(self) -> int:
        """Of which events must the next one be the next?"""
        bound = self.plan.bound
        if not bound.contiguous:
            return 0
        parted = s.Strategy.PARTITION_CONTIGUITY in bound.strategies and bool(bound.equivalence)
        return linking.IN_PARTITION if parted else linking.IN_ORDER

    def _few_events(self, any_match: bool) -> int:
        """How many events a key has at most that is laid out anew for each search; 0: all are, whatever they have.

        A search that looks at what comes later cannot go on from where it was.
        """
        moments = self.moments
        if self.by_queues or moments.always or moments.deadline or self.plan.bound.postponed:
            return 0
        return FEW if any_match else FEW_EVENTS


def _bits(bound: BoundQuery, variables: Any) -> int:
    return sum(1 << place for place, each in enumerate(bound.positives) if each.variable in variables)


def _compiled(plan: Plan) -> tuple[CompiledProgram, Graph | None]:
    """The program of a query, for compiled or interpreted kernels.

    Its conditions are called by address and with columns that have no literals, so they never run as Python first.
    """
    with python_first(False):
        if plan.engine == "sequence":
            order = tuple(range(len(plan.bound.positives) - 1, -1, -1))  # construction walks backwards
            return compile_program(plan.bound, order=order, push=plan.push_predicates), None
        if plan.is_lossy:
            return compile_program(plan.bound, order="any", variants=True), None
        return compile_runs(plan.bound)


def form_of(plan: Plan, schema: pa.Schema) -> Form:
    """A query over events of a schema as the incremental search reads it."""
    why = refusal(plan, schema)
    if why is not None:
        return Form(plan, None, None, why)
    plan = with_ending_events(decided(plan))
    return Form(plan, *_compiled(plan))


def compiled_for_now(form: Form) -> Form:
    """The same with the program that fits compiled or interpreted kernels, whichever run now."""
    return form if form.replays else Form(form.plan, *_compiled(form.plan))
