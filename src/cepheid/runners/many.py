"""Several queries in one pass, and what their common result looks like.

Columns: `query` (the name), `match_start`, `match_end`, and for each query a column of its name, in which a struct
holds the rest of its result; it is NULL in the rows of other queries.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cepheid.errors import QueryError

QUERY = "query"
SHARED = ("match_start", "match_end")
TAKEN = frozenset({QUERY, *SHARED, "late_event"})


def check_names(names: Mapping[str, object]) -> None:
    """Can these be the names of queries? An error if there is none, or one is the name of a column of the result."""
    if not names:
        raise QueryError("there is no query to match", code="no-query")
    for name in names:
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query cannot be called {name!r}", code="bad-query-name", hint="give it a name")
        if name in TAKEN:
            told = f"a query cannot be called '{name}': the result has a column of that name"
            raise QueryError(told, code="bad-query-name", hint="choose another name")


def common_schema(schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema of the common result of queries, from those of their own results.

    >>> own = pa.schema([("match_start", pa.int64()), ("match_end", pa.int64()), ("x", pa.int64())])
    >>> common_schema({"first": own}).names
    ['query', 'match_start', 'match_end', 'first']
    """
    any_one = next(iter(schemas.values()))
    fields = [pa.field(QUERY, pa.string()), *(any_one.field(name) for name in SHARED)]
    for name, schema in schemas.items():
        fields.append(pa.field(name, pa.struct([field for field in schema if field.name not in SHARED])))
    return pa.schema(fields)


def dressed(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of one query's result as rows of the common result.

    >>> batch = pa.record_batch({"match_start": [1], "match_end": [2], "x": [3]})
    >>> dressed("first", batch, common_schema({"first": batch.schema, "other": batch.schema})).to_pylist()
    [{'query': 'first', 'match_start': 1, 'match_end': 2, 'first': {'x': 3}, 'other': None}]
    """
    own = [column for column in batch.schema.names if column not in SHARED]
    columns = {
        QUERY: pa.repeat(pa.scalar(name, pa.string()), batch.num_rows),
        **{shared: batch.column(shared) for shared in SHARED},
        name: pa.StructArray.from_arrays(
            [batch.column(column) for column in own], fields=[batch.schema.field(column) for column in own]
        ),
    }
    return widened(columns, batch.num_rows, schema)


def widened(columns: Mapping[str, pa.Array], rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with all columns of a schema, in its types; NULL where they have none."""
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
