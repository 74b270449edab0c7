"""The zone of a timestamp column is a label for output: state and comparisons know instants alone, in UTC.

Spark hands timestamps to workers with the session's zone, pandas with that of the frame. A state that kept the label
could not go on where the zone is another.
"""

from __future__ import annotations

import pyarrow as pa

UTC = "UTC"


def labelled(kind: pa.DataType, zone: str = UTC) -> pa.DataType:
    """A type with another zone wherever it holds instants; times without a zone stay as they are.

    >>> labelled(pa.struct([("at", pa.timestamp("us", "Asia/Kolkata")), ("wall", pa.timestamp("us"))]))
    StructType(struct<at: timestamp[us, tz=UTC], wall: timestamp[us]>)
    """
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, zone)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(labelled(field.type, zone)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(labelled(kind.key_type, zone), labelled(kind.item_type, zone), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(labelled(kind.value_type, zone)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(labelled(kind.value_type, zone)))
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, labelled(kind.value_type, zone), kind.ordered)
    return kind


def labelled_schema(schema: pa.Schema, zone: str = UTC) -> pa.Schema:
    """The same for the columns of a schema."""
    fields = [field.with_type(labelled(field.type, zone)) for field in schema]
    return pa.schema(fields, schema.metadata)


def labelled_table(table: pa.Table, zone: str = UTC) -> pa.Table:
    """A table whose instants carry another zone; nothing else changes, and nothing is copied.

    >>> labelled_table(pa.table({"at": pa.array([0], pa.timestamp("us", "Asia/Kolkata"))})).schema.field("at").type
    TimestampType(timestamp[us, tz=UTC])
    """
    wanted = labelled_schema(table.schema, zone)
    return table if wanted.equals(table.schema) else table.cast(wanted)
