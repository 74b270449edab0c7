"""Flink patterns over tables: pyarrow, pandas and polars in memory, and PySpark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.budget import unbounded, within_budget
from cepheid.engine.cold import answer
from cepheid.engine.data.flink_runs import Arranged, Reported, arranged
from cepheid.engine.engines import FLINK_ENGINES, FlinkEngine
from cepheid.engine.search.flink.run import assemble
from cepheid.errors import CepheidError, DataError, EngineError, QueryError, closest
from cepheid.language.flink.pattern import Pattern
from cepheid.language.schema import DataType, Schema
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_lowering import lower_flink
from cepheid.runners.dispatch import is_spark
from cepheid.runners.options import FlinkOptions
from cepheid.runners.tables import as_local

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


def match_pattern(events: Any, pattern: Pattern, keywords: Mapping[str, Any]) -> Any:
    """The matches of a Flink pattern, as a table of the kind that came."""
    options = FlinkOptions.from_keywords(keywords)
    if is_spark(events):
        from cepheid.runners.spark.flink import match_spark_flink

        with unbounded():
            found = match_spark_flink(events, pattern, replace(options, partial=options.partial and not options.counts))
            if options.counts and events.isStreaming:
                raise CepheidError("output='count' is for tables, and a stream returns rows", hint="leave it out")
            return found.count() if options.counts else found
    options.check_place()
    local = as_local(events)
    if local is None:
        raise DataError(f"events must be a pyarrow, pandas, polars or PySpark table, not {type(events).__name__}")
    options = options.as_they_come(local.arrow.schema)
    automaton = automaton_for(pattern, local.arrow.schema, options)
    if options.counts:
        return count_pattern(automaton, local.arrow, options)
    return local.back(run_pattern(automaton, local.arrow, options))


def automaton_for(pattern: Pattern, columns: pa.Schema, options: FlinkOptions) -> FlinkAutomaton:
    """The automaton of a pattern over the columns of a table."""
    automaton = lower_flink(pattern, events_schema(options, columns), options.parameters or {})
    taken = (*_OWN_COLUMNS, *(_PARTIAL_COLUMNS if options.partial else ()))
    for step in automaton.lists:
        if step in taken:
            raise QueryError(f"a step is called '{step}', as a column of the result", code="flink-pattern")
    return automaton


def run_pattern(automaton: FlinkAutomaton, table: pa.Table, options: FlinkOptions) -> pa.Table:
    """The result over a table in memory."""
    with within_budget(options.limits.timeout, options.limits.max_bytes):
        return _run(automaton, table, options)


def _run(automaton: FlinkAutomaton, table: pa.Table, options: FlinkOptions) -> pa.Table:
    events = arranged(automaton, table, options.partition_by)
    return assemble(automaton, events, _found(automaton, events, options), options.partial)


def count_pattern(automaton: FlinkAutomaton, table: pa.Table, options: FlinkOptions) -> int:
    """How many matches there are in a table in memory."""
    with within_budget(options.limits.timeout, options.limits.max_bytes):
        found = _found(automaton, arranged(automaton, table, options.partition_by), options)
    return int(np.count_nonzero(found.waiting < 0))


def _found(automaton: FlinkAutomaton, events: Arranged, options: FlinkOptions) -> Reported:
    engine = engine_for(automaton, options)
    run = engine.load()
    return answer(engine.module, len(events.time), lambda: run(automaton, events, options.partial, options.limits))


def engine_for(automaton: FlinkAutomaton, options: FlinkOptions) -> FlinkEngine:
    """The engine that was asked for, or the first one that can run a pattern."""
    if options.engine == "auto":
        return next(engine for engine in FLINK_ENGINES.values() if engine.supports(automaton) is None)
    engine = FLINK_ENGINES[options.engine]
    refused = engine.supports(automaton)
    if refused is not None:
        raise EngineError(f"engine '{engine.name}' cannot run this pattern: {refused}", hint="use engine='auto'")
    return engine


def explain_pattern(pattern: Pattern, events: Any, keywords: Mapping[str, Any]) -> str:
    """How a pattern is run: its automaton, and what judges its conditions."""
    options = FlinkOptions.from_keywords(keywords)
    local = as_local(events)
    if local is None:
        from cepheid.runners.spark.session import arrow_schema

        columns = arrow_schema(events)
    else:
        columns = local.arrow.schema
        options = options.as_they_come(columns)
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
