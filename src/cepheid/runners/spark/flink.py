"""Flink patterns on Spark: the events of a key go to one task; a stream keeps a FlinkStream per shard."""

from __future__ import annotations

from dataclasses import replace

from cepheid.language.flink.pattern import Pattern
from cepheid.language.zones import IN_UTC
from cepheid.runners.flink import FlinkLanguage, FlinkSearch, automaton_for
from cepheid.runners.options import FlinkOptions
from cepheid.runners.spark.searches import Above, match_search
from cepheid.runners.spark.session import DataFrame, arrow_schema, session_zone
from cepheid.runners.spark.worker_plan import called, user_functions
from cepheid.runners.spark.workers import with_workers


@with_workers
def match_spark_flink(df: DataFrame, pattern: Pattern, options: FlinkOptions, above: Above | None = None) -> DataFrame:
    """The matches of a pattern in a Spark table. Spark keeps no order of arrival: `tiebreak` orders equal times."""
    columns = arrow_schema(df)
    options = replace(options, tz=options.tz or session_zone(df.sparkSession))
    search = FlinkLanguage(pattern).bind(columns, options)
    functions = user_functions(called(atom.expression for atom in search.automaton.atoms))
    search = replace(search, functions=tuple(functions))
    found = match_search(df, search, options, lambda: flink_aspects(pattern, search), columns.names, above)
    if above is not None:
        return found
    result = search.result.names
    return found.toDF(*result, *found.columns[len(result) :])


def flink_aspects(pattern: Pattern, search: FlinkSearch) -> dict[str, object]:
    """What decides the matches of a pattern in a stream, under the names a user knows."""
    automaton, options = search.automaton, search.options
    aspects: dict[str, object] = {
        "pattern": [str(pattern), str(automaton.skip), automaton.describe()],
        "parameters": options.parameters or {},
        "window": [automaton.window, [gap or None for gap in automaton.gaps]],
        "columns": [(field.name, str(field.type)) for field in search.columns],
        "roles of columns": [automaton.schema.time, automaton.schema.type, options.tiebreak, options.time_unit],
        "partial": options.partial,
    }
    in_utc = automaton_for(pattern, search.columns, replace(options, tz=IN_UTC))
    if [atom.expression for atom in automaton.atoms] != [atom.expression for atom in in_utc.atoms]:
        aspects["time zone"] = automaton.schema.zone
    return aspects
