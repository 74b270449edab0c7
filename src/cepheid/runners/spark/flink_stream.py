"""Flink patterns over Spark streams: each shard keeps a FlinkStream.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.search.flink.run import result_schema
from cepheid.language.flink.pattern import Pattern
from cepheid.language.zones import IN_UTC
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.runners.flink import automaton_for
from cepheid.runners.options import StreamOptions
from cepheid.runners.spark.incremental_stream import Sought, match_incremental
from cepheid.runners.spark.pack import LATE_EVENT
from cepheid.runners.spark.session import DataFrame
from cepheid.runners.stream.flink import FlinkStream, check_compiled

if TYPE_CHECKING:
    from cepheid.runners.options import FlinkOptions


def match_flink_stream(
    df: DataFrame,
    pattern: Pattern,
    automaton: FlinkAutomaton,
    schema: pa.Schema,
    options: FlinkOptions,
    functions: tuple[bytes, ...],
) -> DataFrame:
    """The matches of a pattern in a stream."""
    check_compiled(automaton)
    result = result_schema(automaton, schema, options.partial)
    aspects: dict[str, Any] = {
        "pattern": [str(pattern), str(automaton.skip), automaton.describe()],
        "parameters": options.parameters or {},
        "window": [automaton.window, [gap or None for gap in automaton.gaps]],
        "columns": [(field.name, str(field.type)) for field in schema],
        "roles of columns": [automaton.schema.time, automaton.schema.type, options.tiebreak, options.time_unit],
        "partial": options.partial,
    }
    in_utc = automaton_for(pattern, schema, replace(options, tz=IN_UTC))
    if [atom.expression for atom in automaton.atoms] != [atom.expression for atom in in_utc.atoms]:
        aspects["time zone"] = automaton.schema.zone
    sought = Sought(
        partial(FlinkStream, automaton, schema, 0, options.partition_by, options.partial, options.limits),
        automaton.schema,
        options.partition_by,
        result,
        aspects,
        schema.names,
        functions,
    )
    found = match_incremental(df, sought, options.part(StreamOptions))
    return found.toDF(*result.names, *([LATE_EVENT] if options.late_events else []))
