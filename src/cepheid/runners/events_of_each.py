"""The events of each of several queries: those of its types, so that queries do not look at each other's events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.table import EventTable
from cepheid.language.bound import BoundQuery
from cepheid.plan.rules.scan_every_event import looks_at_all_events

MOST = 0.8  # a query that needs more than this share of the events gets all of them


def events_of_each(queries: Sequence[BoundQuery], events: EventTable) -> Iterator[EventTable]:
    """For each query the events of its types, so that ten queries do not look at each other's events.

    >>> from cepheid.plan.examples import example
    >>> from cepheid.engine.data.table import ordered
    >>> queries = [example(f"PATTERN SEQ({types}) WITHIN 10").bound for types in ("A a, B b", "C c, D d")]
    >>> table = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "C", "D", "B"]})
    >>> [part.time.tolist() for part in events_of_each(queries, ordered(table, queries[0].schema))]
    [[1, 4], [2, 3]]
    """
    wanted = [types_of(query) for query in queries]
    schema = queries[0].schema
    if len(queries) == 1 or schema.type is None or all(types is None for types in wanted):
        yield from [events] * len(queries)
        return
    table = with_type_codes(events.table, schema.type)
    kinds = table.column(schema.type).combine_chunks()
    names = kinds.dictionary.to_pylist()
    codes = pc.fill_null(kinds.indices, len(names)).to_numpy()
    known: dict[frozenset[str] | None, EventTable] = {}  # queries of the same types get the same table
    for types in wanted:
        if types in known:
            yield known[types]
            continue
        rows = np.arange(0)
        if types is not None:
            rows = np.flatnonzero(np.array([*(name in types for name in names), False])[codes])
        own = events
        if types is not None and len(rows) <= MOST * len(events):
            instant = events.instant[rows]
            ranks = np.cumsum(np.diff(instant, prepend=instant[:1]) != 0)  # instants of other events do not count
            own = EventTable(table.take(pa.array(rows)), events.time[rows], ranks)
        yield known.setdefault(types, own)


def with_type_codes(events: pa.Table, name: str | None) -> pa.Table:
    """The events with their types as numbers, which are quicker to compare and to move than texts."""
    if name is None or pa.types.is_dictionary(events.schema.field(name).type):
        return events
    kinds = pc.dictionary_encode(events.column(name))
    return events.set_column(events.column_names.index(name), name, kinds)


def types_of(query: BoundQuery) -> frozenset[str] | None:
    """The event types that a query looks at; None: all."""
    if looks_at_all_events(query) or any(component.types is None for component in query.components):
        return None
    return frozenset(name for component in query.components for name in component.types or ())
