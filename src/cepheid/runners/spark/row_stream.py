"""Row patterns over Spark streams: each shard keeps a RowStream.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from cepheid.engine.search.preferred.released import check_stream
from cepheid.engine.search.preferred.run import result_schema
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.plan.options import Limits
from cepheid.runners.spark.packed_stream import Shard, found_by_shard, unpacker
from cepheid.runners.spark.session import DataFrame, spark_schema
from cepheid.runners.stream.rows import RowStream


def match_row_stream(
    rows: DataFrame,
    clause: BoundClause,
    schema: pa.Schema,
    delay: str,
    shards: int | None,
    max_rows: int | None,
    limits: Limits | None = None,
) -> DataFrame:
    """The rows that a clause makes of a stream; its columns are those of the schema, in this order."""
    check_stream(clause, max_rows)
    shard = Shard(partial(RowStream, clause, schema, 0, max_rows, limits))
    found = found_by_shard(rows, schema, clause.order_by[0].column, clause.partition_by, shards, delay, shard)
    result = result_schema(clause, schema)
    unique = pa.schema([field.with_name(f"_{number}") for number, field in enumerate(result)])
    return found.mapInArrow(unpacker(unique), spark_schema(unique)).toDF(*result.names)
