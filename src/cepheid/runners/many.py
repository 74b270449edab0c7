"""Several queries in one pass, and what their common result looks like.

Columns: `query` (the name), `match_start`, `match_end`, and for each query a column of its name, in which a struct
holds the rest of its result; it is NULL in the rows of other queries. Totals have neither start nor end: those columns
are NULL in their rows, and left out where all queries ask for totals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from cepheid.errors import QueryError
from cepheid.remembered import Remembered

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
            message = f"a query cannot be called '{name}': the result has a column of that name"
            raise QueryError(message, code="bad-query-name", hint="choose another name")


def common_schema(schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema of the common result of queries, from those of their own results.

    >>> own = pa.schema([("match_start", pa.int64()), ("match_end", pa.int64()), ("x", pa.int64())])
    >>> common_schema({"first": own}).names
    ['query', 'match_start', 'match_end', 'first']
    """
    listing = [schema for schema in schemas.values() if SHARED[0] in schema.names]  # totals are of no one match
    fields = [pa.field(QUERY, pa.string()), *(field for field in (listing or [()])[0] if field.name in SHARED)]
    for name, schema in schemas.items():
        fields.append(pa.field(name, pa.struct([field for field in schema if field.name not in SHARED])))
    return pa.schema(fields)


def dressed(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of one query's result as rows of the common result.

    >>> batch = pa.record_batch({"match_start": [1], "match_end": [2], "x": [3]})
    >>> dressed("first", batch, common_schema({"first": batch.schema, "other": batch.schema})).to_pylist()
    [{'query': 'first', 'match_start': 1, 'match_end': 2, 'first': {'x': 3}, 'other': None}]
    """
    columns = {
        QUERY: pa.repeat(pa.scalar(name, pa.string()), batch.num_rows),
        **{shared: batch.column(shared) for shared in SHARED if shared in batch.schema.names},
        name: _as_struct(batch),
    }
    return widened(columns, batch.num_rows, schema)


def as_result(name: str | None, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of one query's result as rows of the common result; a query without a name is the only one."""
    if name is not None:
        return dressed(name, batch, schema)
    return widened(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows, schema)


def as_one(results: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of several queries as one table, with a column for each query."""
    schema = common_schema({name: result.schema for name, result in results.items()})
    batches = [dressed(name, batch, schema) for name, result in results.items() for batch in result.to_batches()]
    return pa.Table.from_batches(batches, schema)


def dressed_together(found: Mapping[str, Sequence[pa.RecordBatch]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the results of several queries as rows of the common result, query by query in the order of its columns.

    One batch has the columns of all queries once: with a batch for each, a hundred queries take ten thousand columns.

    >>> batch = pa.record_batch({"match_start": [1], "match_end": [2], "x": [3]})
    >>> common = common_schema({"first": batch.schema, "other": batch.schema})
    >>> dressed_together({"first": [batch], "other": [batch]}, common).column("other").to_pylist()
    [None, {'x': 3}]
    """
    found = {name: found[name] for name in schema.names if name in found}
    rows = {name: sum(batch.num_rows for batch in batches) for name, batches in found.items()}
    total = sum(rows.values())
    kinds, nothing = _kinds.of(schema, lambda: _kinds_of(schema)), dict[int, pa.Array]()

    def nulls(kind: int, number: int) -> pa.Array:
        if kind not in nothing:
            nothing[kind] = pa.nulls(total, schema.field(kind).type)
        return nothing[kind] if number == total else nothing[kind].slice(0, number)

    arrays, start = [], 0
    for kind, name in zip(kinds, schema.names, strict=True):
        own = found.get(name, ())
        if name == QUERY:
            parts = [pa.repeat(pa.scalar(each, pa.string()), number) for each, number in rows.items()]
        elif name in SHARED:
            parts = [
                _as_kind(batch.column(name), schema.field(kind).type)
                if name in batch.schema.names
                else nulls(kind, batch.num_rows)
                for batches in found.values()
                for batch in batches
            ]
        elif not own:
            parts = [nulls(kind, total)]
        else:
            parts = [nulls(kind, start), *(_as_kind(_as_struct(batch), schema.field(kind).type) for batch in own)]
            start += rows[name]
            parts.append(nulls(kind, total - start))
        arrays.append(pa.concat_arrays(parts) if len(parts) > 1 else parts[0])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_kinds = Remembered[list[int]](most=64)  # a look at a type of many fields takes longer than a column of them


def _kinds_of(schema: pa.Schema) -> list[int]:
    """For each column of a schema the first one of its type."""
    first: dict[pa.DataType, int] = {}
    return [first.setdefault(field.type, place) for place, field in enumerate(schema)]


def _as_kind(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


def _as_struct(batch: pa.RecordBatch) -> pa.StructArray:
    """The columns of one query's result that are its own."""
    own = [column for column in batch.schema.names if column not in SHARED]
    return pa.StructArray.from_arrays(
        [batch.column(column) for column in own], fields=[batch.schema.field(column) for column in own]
    )


def widened(columns: Mapping[str, pa.Array], rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with all columns of a schema, in its types; NULL where they have none."""
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
