"""Several live queries in more than one language: each is sent every event, and their results come as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import CepheidError, DataError
from cepheid.runners.arrow_bytes import decoded_from_anyone, encoded
from cepheid.runners.checksums import with_checksum
from cepheid.runners.composition import (
    events_schema,
    keywords_of_matches,
    matches_as_events,
    options_of_matches,
    united,
)
from cepheid.runners.languages import Language, LiveStart
from cepheid.runners.live_events import EventReader
from cepheid.runners.live_face import LiveFace, StepResult
from cepheid.runners.many import QUERY, SHARED, common_schema, dressed, widened
from cepheid.runners.options import Options
from cepheid.runners.stream.saved import checked_state, reading
from cepheid.runners.together import passes_of

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

    def _take(self, held: ChunkCache, events: pa.Table) -> tuple[ChunkCache, StepResult]:
        after, found = self._each(held, lambda part, own: part._take(own, part.reader.declared(events, held.seen)))
        return replace(after, seen=held.seen + events.num_rows), found

    def _pass(self, held: ChunkCache, until: int) -> tuple[ChunkCache, StepResult]:
        return self._each(held, lambda part, own: part._pass(own, until))

    def _end(self, held: ChunkCache) -> tuple[ChunkCache, StepResult]:
        return self._each(held, lambda part, own: part._end(own), ends=True)

    def _read(
        self, reader: Reader, part: LiveFace, own: Any, taken: Mapping[str, tuple[Any, StepResult]], ends: bool
    ) -> tuple[Any, StepResult]:
        """A step of a query that reads what others found in this step: it hears of their matches, and of their time."""
        found = {name: self._matches_of(name, taken) for name in reader.sources}
        known = [taken[name if name in taken else TEXT][0].until for name in reader.sources]
        passed = [until - late for until, late in zip(known, reader.lateness, strict=True) if until is not None]
        tables = []
        if any(table.num_rows for table in found.values()):
            own, first = part._take(own, reader.events(found, part.reader.narrow))
            tables.append(first.table)
        if ends:
            own, last = part._end(own)
            tables.append(last.table)
        elif len(passed) == len(known):
            own, last = part._pass(own, min(passed))
            tables.append(last.table)
        return own, StepResult(pa.concat_tables([part.schema.empty_table(), *tables]))

    def _matches_of(self, name: str, taken: Mapping[str, tuple[Any, StepResult]]) -> pa.Table:
        """What a query found in this step; one that shares its pass with others is among them."""
        if name in taken:
            return taken[name][1].table
        return rows_of(name, taken[TEXT][1].table)

    def _each(
        self, held: ChunkCache, step: Callable[[LiveFace, Any], tuple[Any, StepResult]], ends: bool = False
    ) -> tuple[ChunkCache, StepResult]:
        """A step of each part, and their results as one table. Late are the events that are so for the first part."""
        taken: list[tuple[Any, StepResult]] = []
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
        return after, StepResult(pa.Table.from_batches(batches, self._result), late)

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
    """A query that reads the matches of other parts."""

    sources: tuple[str, ...]
    options: Options
    lateness: tuple[int, ...]  # of each source: how long after its end a match may become known, by the source's clock
    behind: int  # how long after its end a match that it reads may become known, by the clock of the events

    def delay(self, columns: pa.Schema) -> int | str:
        """How much later than the newest match another may come, as a length of time that fits their columns."""
        counted = pa.types.is_integer(columns.field(self.options.time).type)
        return self.behind if counted else f"{self.behind} microseconds"

    def events(self, found: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table:
        """What its sources found, as events."""
        matches = [matches_as_events(name, found[name], self.options) for name in self.sources]
        return in_columns(united(matches), schema)


def rows_of(name: str, found: pa.Table) -> pa.Table:
    """The result of one query in the common result of several, with the columns that it has alone."""
    rows = found.filter(pc.equal(found.column(QUERY), name))
    kind = found.schema.field(name).type
    ends = {each: rows.column(each) for each in SHARED if each in found.column_names}
    return pa.table({**ends, **{field.name: pc.struct_field(rows.column(name), field.name) for field in kind}})


def reader_of(
    name: str, query: Language, parts: Mapping[str, LiveFace], readers: Mapping[str, Reader], options: Options
) -> tuple[Reader, pa.Schema]:
    """A query that reads the matches of live queries, and the columns of these as events."""
    late, behind, schemas = [], 0, {}
    for source in query.sources:
        part = parts[source if source in parts else TEXT]
        own = part.lateness_of(source)
        if own is None:
            message = f"query '{name}' reads '{source}', whose matches become known at no certain time"
            raise CepheidError(message, hint="add WITHIN to it")
        late.append(own)
        behind = max(behind, own + (readers[source].behind if source in readers else 0))
        schemas[source] = part.schema if source in parts else rows_of(source, part.schema.empty_table()).schema
    return Reader(query.sources, options, tuple(late), behind), events_schema(schemas, options)


def live_together(
    queries: Mapping[str, Language], given: Any, start: LiveStart, keywords: Mapping[str, Any]
) -> LiveFace:
    """Queries with names over events of a schema, as they come."""
    passes = passes_of(queries, keywords)
    if len(passes) == 1 and passes[0].first.shares:
        return passes[0].first.live_each(passes[0].queries, given, start, keywords)
    names = [name for each in passes for name in (each.queries if each.reads or not each.first.shares else (TEXT,))]
    states, seen = states_of_parts(start.state, names)
    parts: dict[str, LiveFace] = {}
    readers: dict[str, Reader] = {}
    for each in passes:
        if not each.reads:
            name = TEXT if each.first.shares else next(iter(each.queries))
            own = replace(start, state=states[name])
            parts[name] = each.first.live_each(each.queries, given, own, each.keywords)
            continue
        options = options_of_matches(Options.from_keywords(each.keywords))
        for name, query in each.queries.items():
            readers[name], columns = reader_of(name, query, parts, readers, options)
            own = LiveStart(readers[name].delay(columns), states[name])
            parts[name] = query.of_events().live(columns, own, keywords_of_matches(each.keywords))
    return LiveMany(parts, tuple(queries), seen, readers)


def in_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table in the columns of a schema; those that it lacks are NULL."""
    lacking = [field for field in schema if field.name not in table.column_names]
    for field in lacking:
        table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)
