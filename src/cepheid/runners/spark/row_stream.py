"""Row patterns over Spark streams: each shard keeps a RowStream.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from cepheid.engine.search.preferred.released import check_stream
from cepheid.engine.search.preferred.run import result_schema
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.syntax import Clause
from cepheid.language.match_recognize.tokens import tokens
from cepheid.language.match_recognize.zone_use import zone_matters
from cepheid.language.schema import Schema
from cepheid.runners.options import RowOptions, StreamOptions
from cepheid.runners.spark.incremental_stream import Sought, match_incremental
from cepheid.runners.spark.session import DataFrame, arrow_schema
from cepheid.runners.stream.rows import RowStream


def match_row_stream(
    rows: DataFrame,
    clause: BoundClause,
    written: Clause,
    columns: list[str],
    options: RowOptions,
) -> DataFrame:
    """The rows that a clause makes of a stream, under names of the form `_0`; `columns` are those of the source."""
    check_stream(clause, options.max_rows)
    schema = arrow_schema(rows)
    time = clause.order_by[0].column
    aspects: dict[str, Any] = {
        "text": [token.text for token in tokens(written.text)],
        "dialect": written.dialect,
        "columns": [(field.name, str(field.type)) for field in schema],
    }
    if zone_matters(clause, [field.name for field in schema if getattr(field.type, "tz", None)]):
        aspects["time zone"] = clause.zone
    sought = Sought(
        partial(RowStream, clause, schema, 0, options.max_rows, options.limits),
        Schema.from_arrow(pa.schema([schema.field(time)]), time=time, type=None),
        clause.partition_by,
        result_schema(clause, schema),
        aspects,
        columns,
    )
    return match_incremental(rows, sought, options.part(StreamOptions))
