"""Results of OUTPUT PARTIAL: the rows of several queries as one table; a column tells matches from the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.table import times_of
from cepheid.language.durations import whole_steps
from cepheid.language.partial import COMPLETE, WAITING, waited_for
from cepheid.language.schema import Schema
from cepheid.language.syntax import QuerySyntax
from cepheid.runners.live import Live
from cepheid.runners.live_face import LiveFace
from cepheid.runners.many import QUERY
from cepheid.runners.options import Options


def finished(found: pa.Table, query: QuerySyntax, columns: pa.Schema, options: Options) -> pa.Table:
    """The common result of the queries as one table: a column for each variable, and three for what was given up."""
    each = {}
    for name in dict.fromkeys([COMPLETE, *(each for each in found.column_names if each.startswith(WAITING))]):
        rows = found.select(("match_start", "match_end", name)).filter(pc.equal(found.column(QUERY), name))
        kinds = found.schema.field(name).type
        own = {kinds.field(at).name: pc.struct_field(rows.column(name), at) for at in range(kinds.num_fields)}
        each[name] = pa.table({"match_start": rows.column(0), "match_end": rows.column(1), **own})
    return united(each, query, columns, options)


def united(found: Mapping[str, pa.Table], query: QuerySyntax, columns: pa.Schema, options: Options) -> pa.Table:
    """The same from the results of the queries, by name."""
    variables = [component.variable for component in query.components if not component.negative]
    time, length = _window(query, columns, options)
    whole, parts = found[COMPLETE].schema, []
    for name, rows in found.items():
        made = {each: rows.column(each) for each in ("match_start", "match_end")}
        for variable in variables:
            has = variable in rows.column_names
            made[variable] = rows.column(variable) if has else pa.nulls(len(rows), whole.field(variable).type)
        waited = name != COMPLETE
        made["timed_out"] = pa.array([waited] * len(rows), pa.bool_())
        made["waiting_for"] = pa.array([waited_for(name) if waited else None] * len(rows), pa.string())
        made["given_up"] = _later(rows.column("match_start"), length, columns.field(time).type, waited)
        parts.append(pa.table(made))
    return pa.concat_tables(parts)


def finished_frame(found: Any, query: QuerySyntax, columns: pa.Schema, options: Options) -> Any:
    """The same on Spark."""
    from pyspark.sql import functions as F

    from cepheid.runners.spark.spelling import quoted

    variables = [component.variable for component in query.components if not component.negative]
    time, length = _window(query, columns, options)
    waited = F.col(QUERY) != COMPLETE
    made = [F.col("match_start"), F.col("match_end")]
    for variable in variables:
        having = [
            F.col(f"{quoted(name)}.{quoted(variable)}")
            for name in found.columns
            if name == COMPLETE or (name.startswith(WAITING) and variable in found.schema[name].dataType.names)
        ]
        made.append(F.coalesce(*having).alias(variable))
    made.append(waited.alias("timed_out"))
    made.append(F.when(waited, F.regexp_extract(F.col(QUERY), f"^{WAITING}(.*?)( after .*)?$", 1)).alias("waiting_for"))
    later = F.col("match_start") + length
    if pa.types.is_timestamp(columns.field(time).type):
        later = F.timestamp_add("MICROSECOND", F.lit(length), F.col("match_start"))
    return found.select(*made, F.when(waited, later).alias("given_up"))


class PartialLive(Live):
    """A live query with OUTPUT PARTIAL: the same as `Live`, its results as one table."""

    def __init__(self, live: Live, query: QuerySyntax, columns: pa.Schema, options: Options) -> None:
        super().__init__(live.resident, live.reader)
        self._fast = None  # which would return what the queries find
        self._query, self._columns, self._options = query, columns, options

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return self._shown(super().schema.empty_table()).schema

    def forecast(self, at: object = None) -> Any:
        """There is none: the partial matches that end are its results."""
        return LiveFace.forecast(self, at)

    def _shown(self, found: pa.Table) -> pa.Table:
        return finished(found, self._query, self._columns, self._options)


def _window(query: QuerySyntax, columns: pa.Schema, options: Options) -> tuple[str, int]:
    """The time column, and the window in its steps; its length is a number, parameters are filled in."""
    schema = Schema.from_arrow(columns, time=options.time, type=options.type, time_unit=options.time_unit)
    assert query.within is not None
    unit, length = query.within.unit, query.within.length
    return schema.time, whole_steps(f"{length} {unit}" if unit else length, schema, "WITHIN")


def _later(start: pa.ChunkedArray, length: int, kind: pa.DataType, waited: bool) -> pa.Array:
    """When a run that began at these times was given up; NULL for matches."""
    if not waited:
        return pa.nulls(len(start), start.type)
    times = times_of(pa.table({"at": start}), "at") if len(start) else np.empty(0, np.int64)
    column = pa.array(times + length)
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(start.type)
    return column.cast(start.type)
