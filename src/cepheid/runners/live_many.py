"""Several live queries in more than one language: each is sent every event, and their results come as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.errors import CepheidError, DataError
from cepheid.runners.arrow_bytes import decoded_from_anyone, encoded
from cepheid.runners.checksums import with_checksum
from cepheid.runners.composition import events_schema, matches_as_events, sources_of, united
from cepheid.runners.live_events import EventReader
from cepheid.runners.live_face import Found, LiveFace
from cepheid.runners.many import SHARED, common_schema, dressed, widened
from cepheid.runners.options import Options
from cepheid.runners.stream.saved import checked_state, reading

TEXT = ""  # the name of all queries of query text together


@dataclass(frozen=True)
class ChunkCache:
    """What each part holds, and how many events were sent."""

    each: tuple[Any, ...]
    seen: int = 0

    def __len__(self) -> int:
        return max(map(len, self.each))

    @property
    def nbytes(self) -> int:
        """The size of the events that are kept."""
        return sum(held.nbytes for held in self.each)

    @property
    def until(self) -> int | None:
        """All matches up to here are known."""
        known = [held.until for held in self.each]
        return None if None in known else min(known)


class LiveMany(LiveFace):
    """Live queries with names.

    `parts` are those of other languages, those of query text as one (TEXT), and at last those that read the matches of
    other parts (`readers`).
    """

    def __init__(
        self,
        parts: Mapping[str, LiveFace],
        names: Sequence[str],
        seen: int = 0,
        readers: Mapping[str, Reader] | None = None,
    ) -> None:
        self._parts, self._readers = dict(parts), dict(readers or {})
        of_events = {name: part for name, part in parts.items() if name not in self._readers}
        super().__init__(_reader_of(of_events), ChunkCache(tuple(part.held for part in parts.values()), seen))
        common = common_schema({name: part.schema for name, part in parts.items() if name != TEXT})
        fields = {field.name: field for field in common}
        fields |= {field.name: field for field in (parts[TEXT].schema if TEXT in parts else ())}
        shared = [name for name in ("query", *SHARED) if name in fields]
        self._result = pa.schema([fields[name] for name in (*shared, *names)])

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        return self._result

    @property
    def _clock(self) -> str:
        return next(iter(self._parts.values()))._clock

    def _take(self, held: ChunkCache, events: pa.Table) -> tuple[ChunkCache, Found]:
        after, found = self._each(held, lambda part, own: part._take(own, part.reader.declared(events, held.seen)))
        return replace(after, seen=held.seen + events.num_rows), found

    def _pass(self, held: ChunkCache, until: int) -> tuple[ChunkCache, Found]:
        return self._each(held, lambda part, own: part._pass(own, until))

    def _end(self, held: ChunkCache) -> tuple[ChunkCache, Found]:
        return self._each(held, lambda part, own: part._end(own), ends=True)

    def _read(
        self, reader: Reader, part: LiveFace, own: Any, taken: Mapping[str, tuple[Any, Found]], ends: bool
    ) -> tuple[Any, Found]:
        """A step of a query that reads what others found in this step: it hears of their matches, and of their time."""
        found = {name: taken[name][1].table for name in reader.sources}
        known = [taken[name][0].until for name in reader.sources]
        tables = []
        if any(table.num_rows for table in found.values()):
            own, first = part._take(own, reader.events(found, part.reader.narrow))
            tables.append(first.table)
        if ends:
            own, last = part._end(own)
            tables.append(last.table)
        elif None not in known:
            own, last = part._pass(own, min(known) - reader.lateness)
            tables.append(last.table)
        return own, Found(pa.concat_tables([part.schema.empty_table(), *tables]))

    def _each(
        self, held: ChunkCache, step: Callable[[LiveFace, Any], tuple[Any, Found]], ends: bool = False
    ) -> tuple[ChunkCache, Found]:
        """A step of each part, and their results as one table. Late are the events that are so for the first part."""
        taken: list[tuple[Any, Found]] = []
        for (name, part), own in zip(self._parts.items(), held.each, strict=True):
            if name in self._readers:
                so_far = dict(zip(self._parts, taken, strict=False))
                taken.append(self._read(self._readers[name], part, own, so_far, ends))
            else:
                taken.append(step(part, own))
        batches = []
        for name, (_, found) in zip(self._parts, taken, strict=True):
            for batch in found.table.to_batches():
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                own = widened(columns, batch.num_rows, self._result) if name == TEXT else None
                batches.append(dressed(name, batch, self._result) if own is None else own)
        late = next((found.late for _, found in taken if found.late is not None), None)
        after = replace(held, each=tuple(own for own, _ in taken))
        return after, Found(pa.Table.from_batches(batches, self._result), late)

    def _packed(self, held: ChunkCache) -> tuple[ChunkCache, bytes]:
        taken = [part._packed(own) for part, own in zip(self._parts.values(), held.each, strict=True)]
        packed = pa.array([state for _, state in taken], pa.binary())
        table = pa.table({"part": list(self._parts), "packed": packed, "seen": [held.seen] * len(taken)})
        return replace(held, each=tuple(own for own, _ in taken)), with_checksum(encoded(table))


def _reader_of(parts: Mapping[str, LiveFace]) -> EventReader:
    """What reads events for all parts: every column, with times where one part has them."""
    readers = [part.reader for part in parts.values()]
    first = readers[0]
    fields = []
    for field in first.given:
        kinds = [reader.schema.field(field.name).type for reader in readers]
        fields.append(field.with_type(next((kind for kind in kinds if kind != field.type), field.type)))
    schema, clocks = pa.schema(fields), tuple(dict.fromkeys(name for reader in readers for name in reader.clocks))
    options = replace(first.options, row_column=None)
    return replace(first, schema=schema, narrow=schema, clocks=clocks, options=options)


def states_of_parts(state: bytes | None, names: Sequence[str]) -> tuple[dict[str, bytes | None], int]:
    """The saved state of each part, and how many events were sent."""
    if state is None:
        return dict.fromkeys(names), 0
    packed = checked_state(state)
    with reading("several live queries"):
        rows = decoded_from_anyone(packed).to_pylist()
        found = {row["part"]: row["packed"] for row in rows}
    if set(found) != set(names):
        raise DataError("the state is of other queries than these", hint="pass the queries under their old names")
    return found, rows[0]["seen"]


@dataclass(frozen=True)
class Reader:
    """A query that reads the matches of queries in other languages."""

    sources: tuple[str, ...]
    options: Options
    lateness: int  # how long after its end a match that it reads may become known

    def delay(self, columns: pa.Schema) -> int | str:
        """The same as a length of time that fits the columns of the matches."""
        counted = pa.types.is_integer(columns.field(self.options.time).type)
        return self.lateness if counted else f"{self.lateness} microseconds"

    def events(self, found: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table:
        """What its sources found, as events."""
        matches = [matches_as_events(name, found[name], self.options) for name in self.sources]
        return in_columns(united(matches), schema)


def reader_of(name: str, query: Any, parts: Mapping[str, Any], options: Options) -> tuple[Reader, pa.Schema]:
    """A query that reads the matches of live queries in other languages, and the columns of these as events."""
    sources = sources_of(query)
    for source in sources:
        told = f"query '{name}' reads '{source}'"
        if source not in parts:
            hint = "send what one live query finds to another, as events"
            raise CepheidError(f"{told} beside a query in another language, which a live query cannot", hint=hint)
        if parts[source].lateness is None:
            raise CepheidError(f"{told}, whose matches become known at no certain time", hint="add WITHIN to it")
    late = max(parts[source].lateness for source in sources)
    return Reader(sources, options, late), events_schema({source: parts[source].schema for source in sources}, options)


def in_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table in the columns of a schema; those that it lacks are NULL."""
    lacking = [field for field in schema if field.name not in table.column_names]
    for field in lacking:
        table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)
