"""Flink patterns over tables: pyarrow, pandas and polars in memory, and PySpark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.flink_runs import arranged
from cepheid.engine.data.matches import COMPLETE, Matches
from cepheid.engine.engines import FLINK_ENGINES, FlinkEngine
from cepheid.engine.jit_fallback import answer
from cepheid.errors import DataError, EngineError, QueryError, closest
from cepheid.language.flink.pattern import Pattern
from cepheid.language.schema import DataType, Schema
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_lowering import lower_flink
from cepheid.runners.languages import PatternLanguage, StepSearch
from cepheid.runners.options import FlinkOptions
from cepheid.runners.results import assemble_steps, steps_schema

if TYPE_CHECKING:  # all of the live search comes with it, which a match of a table does not need
    from cepheid.runners.stream.flink import FlinkStream

_OWN_COLUMNS = ("match_start", "match_end")
_PARTIAL_COLUMNS = ("timed_out", "waiting_for", "given_up")


def events_schema(options: FlinkOptions, columns: pa.Schema) -> Schema:
    """The events as conditions see them. A column for types is needed only where a step asks for one."""
    type = options.type if options.type in columns.names or options.type != "type" else None
    for name in options.partition_by:
        if name not in columns.names:
            guess = closest(name, columns.names)
            hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(columns.names)}"
            raise DataError(f"no column '{name}' to partition by", hint=hint)
    roles = {"time": options.time, "type": type, "time_unit": options.time_unit, "tiebreak": options.tiebreak}
    found = Schema.from_arrow(columns, **roles, tz=options.tz)  # type: ignore[arg-type]
    # A column of nothing but NULL, as empty pandas frames have them, can be compared with anything.
    empty = {field.name for field in columns if pa.types.is_null(field.type)}
    kinds = tuple((name, DataType.NULL if name in empty else kind) for name, kind in found.columns)
    return replace(found, columns=kinds)


@dataclass(frozen=True)
class FlinkSearch(StepSearch):
    """A pattern over the columns of a table."""

    automaton: FlinkAutomaton
    columns: pa.Schema
    options: FlinkOptions
    functions: tuple[bytes, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of partition_by."""
        return self.options.partition_by

    @property
    def clock(self) -> Schema:
        """The events as conditions see them."""
        return self.automaton.schema

    @property
    def result(self) -> pa.Schema:
        """The columns of the result."""
        return steps_schema(self.automaton, self.columns, self.options.partial)

    def found(self, events: pa.Table, threads: int) -> pa.Table:
        """The result over a table in memory."""
        return assemble_steps(self.automaton, *self._matches(events), self.options.partial)

    def counted(self, events: pa.Table) -> int:
        """How many matches there are."""
        return int(np.count_nonzero(self._matches(events)[1].waiting == COMPLETE))

    def _matches(self, table: pa.Table) -> tuple[pa.Table, Matches]:
        automaton, asked = self.automaton, self.options
        engine = engine_for(automaton, asked)
        run = engine.load()

        def search() -> tuple[pa.Table, Matches]:
            events = arranged(automaton, table, asked.partition_by)
            return events.table, run(automaton, events, asked.partial, asked.limits)

        return answer(engine.module, table.num_rows, search, once=True)

    def check_stream(self) -> None:
        """An error for conditions that the kernel cannot evaluate."""
        from cepheid.runners.stream.flink import check_compiled

        check_compiled(self.automaton)

    def lateness(self) -> int:
        """A match is known with its last event, or at the end of its window where something must not follow."""
        windows = [self.automaton.window, *self.automaton.gaps]
        return max(window or 0 for window in windows)

    def begin(self, delay: int = 0) -> FlinkStream:
        """The pattern over events as they come."""
        from cepheid.runners.stream.flink import FlinkStream

        asked = self.options
        return FlinkStream(self.automaton, self.columns, delay, asked.partition_by, asked.partial, asked.limits)


@dataclass(frozen=True)
class FlinkLanguage(PatternLanguage):
    """A pattern of `cepheid.flink`."""

    pattern: Pattern
    parameters: Mapping[str, object] = field(default_factory=dict)
    options = FlinkOptions

    @property
    def subject(self) -> Pattern:
        """The pattern."""
        return self.pattern

    @property
    def known_by(self) -> str:
        """Its text: a builder makes a new pattern in every call, and the text says all that is in it."""
        return str(self.pattern)

    def asked(self, keywords: Mapping[str, object]) -> FlinkOptions:
        """The options of a call, with the values of parameters."""
        return FlinkOptions.from_keywords({**keywords, "parameters": self.parameters or None})

    def bind(self, columns: pa.Schema, options: FlinkOptions) -> FlinkSearch:
        """The pattern over the columns of a table."""
        return FlinkSearch(automaton_for(self.pattern, columns, options), columns, options)

    def times(self, options: FlinkOptions) -> tuple[str, ...]:
        """The time column."""
        return (options.time,)

    def described(self, columns: pa.Schema | None, options: FlinkOptions) -> str:
        """The automaton, what judges its conditions, and the engine."""
        if columns is None:
            return f"Pattern\n  {self.pattern}\n\nPass events for the automaton, the conditions and the engine."
        return explain_pattern(self.pattern, columns, options)

    def timed(self) -> FlinkLanguage:
        """The pattern itself: its matches have times."""
        return self

    def rows_spark(self, df: object, options: FlinkOptions, above: Any = None) -> Any:
        """The matches in a Spark table."""
        from cepheid.runners.spark.flink import match_spark_flink

        return match_spark_flink(df, self.pattern, options, above)

    def count_spark(self, df: object, options: FlinkOptions) -> int:
        """How many matches there are in a Spark table."""
        return int(self.rows_spark(df, replace(options, partial=False)).count())


def automaton_for(pattern: Pattern, columns: pa.Schema, options: FlinkOptions) -> FlinkAutomaton:
    """The automaton of a pattern over the columns of a table."""
    automaton = lower_flink(pattern, events_schema(options, columns), options.parameters or {})
    taken = (*_OWN_COLUMNS, *(_PARTIAL_COLUMNS if options.partial else ()))
    for step in automaton.lists:
        if step in taken:
            raise QueryError(f"a step is called '{step}', as a column of the result", code="flink-pattern")
    return automaton


def engine_for(automaton: FlinkAutomaton, options: FlinkOptions) -> FlinkEngine:
    """The engine that was asked for, or the first one that can run a pattern."""
    if options.engine == "auto":
        return next(engine for engine in FLINK_ENGINES.values() if engine.supports(automaton) is None)
    engine = FLINK_ENGINES[options.engine]
    refused = engine.supports(automaton)
    if refused is not None:
        raise EngineError(f"engine '{engine.name}' cannot run this pattern: {refused}", hint="use engine='auto'")
    return engine


def explain_pattern(pattern: Pattern, columns: pa.Schema, options: FlinkOptions) -> str:
    """How a pattern is run: its automaton, and what judges its conditions."""
    automaton = automaton_for(pattern, columns, options)
    engine = "automaton: every run is extended by every event, in a compiled kernel"
    if engine_for(automaton, options).name == "reference":
        why = FLINK_ENGINES["automaton"].supports(automaton) or "it was asked for"
        engine = f"reference: {why}, so runs are extended in Python, slowly"
    judged = [
        f"  {atom.text}: {'over whole columns' if atom.is_simple else 'during matching'}" for atom in automaton.atoms
    ]
    lines = ["Pattern", f"  {pattern}", "", "Automaton", *(f"  {line}" for line in automaton.describe().splitlines())]
    return "\n".join([*lines, "", "Conditions", *judged, "", "Engine", f"  {engine}"])
