"""Tables as Arrow IPC bytes: how events travel to shards and lie in their state. Instants are in UTC there."""

from __future__ import annotations

import pyarrow as pa

from cepheid.language.zone_labels import labelled_table


def encoded(table: pa.Table) -> bytes:
    """A table as Arrow IPC bytes."""
    table = labelled_table(table)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def decoded(packed: bytes) -> pa.Table:
    """The table behind Arrow IPC bytes; those of earlier versions may carry the zone of a session."""
    return labelled_table(pa.ipc.open_stream(packed).read_all())


def decoded_from_anyone(packed: bytes) -> pa.Table:
    """The same for bytes that may be damaged, or made up: Arrow itself reads beyond the end of what they hold."""
    table = decoded(packed)
    table.validate(full=True)
    return table
