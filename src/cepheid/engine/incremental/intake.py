"""A table of events into the searches of all queries of a step at once.

What can be said of an event alone is worked out once for all of them: its type, its keys and the answers to conditions.
A kernel then gives each query the events that it may need. What has expired is forgotten in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64Rows, Int64s, Uint8Rows
from cepheid.engine.data.columns import fill
from cepheid.engine.data.layout import BEGINS, MASK, POSITION, TIME
from cepheid.engine.data.shared import of_any_variable, sharing, told_of_any
from cepheid.engine.incremental import linking
from cepheid.engine.incremental.core import Core
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import (
    BEFORE,
    DECIDED,
    FACTS_AT,
    FACTS_OF_EVENT,
    HEAD_SIZE,
    KEY,
    KEY_ROOM,
    KEYS_AT,
    LATEST,
    LINK,
    LINKED,
    NULL_AT,
    NULL_ROWS,
    NUMBER_AT,
    NUMBER_ROWS,
    OF_NO_KEY,
    REACHED_EVENTS,
    ROOM,
    ROW,
    SIZE,
    STAGES,
    STRICT,
    WHOLE_AT,
    WHOLE_ROWS,
)
from cepheid.engine.incremental.pushed_matches import Found
from cepheid.engine.incremental.side_by_side import drop_sides
from cepheid.engine.incremental.stepping import step_all
from cepheid.engine.jit_fallback import FEW_EVENTS
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int64_row, int64_rows, uint8_rows
from cepheid.engine.search.incremental_events import KeyNumbers, OneEventTest, passed
from cepheid.engine.values.constants import WithConstant, with_constant
from cepheid.engine.values.constants import answers as answers_of
from cepheid.engine.values.plain import columns_of
from cepheid.language import syntax as s
from cepheid.language.schema import Schema

# What is known of a query: where its `head` is; which row of keys is its own (-1: it has no key); its conditions on all
# events, and behind them those on first ones; does it need all events; its own numbers of keys, the shared numbers of
# these, and how many there are; what conditions read of the whole table; the events that it took, and are they out of
# order? How many keys there is room for, by shared numbers and by its own.
HEAD, KEY_ROW, TESTS, FIRSTS, TESTS_END, EVERY, OWN_AT, OF_OWN_AT, KNOWN, WHOLES_AT, NUMBERS_AT, NULLS_AT = range(12)
TAKEN, DISORDER, OWN_ROOM, OF_OWN_ROOM, OF_QUERY = range(12, 17)


@borrowing
def own_number(query: Int64s, shared: int, keys: int) -> int:
    """The number that a key has in a query, a new one gets the next."""
    own = int64_row(query[OWN_AT], keys)
    if own[shared] < 0:
        own[shared] = query[KNOWN]
        int64_row(query[OF_OWN_AT], query[KNOWN] + 1)[query[KNOWN]] = shared
        query[KNOWN] += 1
    return int(own[shared])


@borrowing
def passing(tests: Int64Rows, answers: Uint8Rows, begin: int, end: int, row: int, mask: int) -> int:
    """The components that an event can fill by conditions on it alone."""
    for test in range(begin, end):
        if mask & tests[test, 0] != 0 and answers[tests[test, 1], row] == 0:
            mask &= ~tests[test, 0]
    return mask


@borrowing
def copy_values(head: Int64s, query: Int64s, row: int, event: int, rows: int) -> None:
    """What conditions read of an event, out of the whole table."""
    for column in range(head[WHOLE_ROWS]):
        value = int64_rows(query[WHOLES_AT], head[WHOLE_ROWS], rows)[column, row]
        int64_rows(head[WHOLE_AT], head[WHOLE_ROWS], head[ROOM])[column, event] = value
    for column in range(head[NUMBER_ROWS]):
        number = float64_rows(query[NUMBERS_AT], head[NUMBER_ROWS], rows)[column, row]
        float64_rows(head[NUMBER_AT], head[NUMBER_ROWS], head[ROOM])[column, event] = number
    for column in range(head[NULL_ROWS]):
        null = uint8_rows(query[NULLS_AT], head[NULL_ROWS], rows)[column, row]
        uint8_rows(head[NULL_AT], head[NULL_ROWS], head[ROOM])[column, event] = null


@kernel
def lacking_room(queries: Int64Rows, counts: Int64s, shared: Int64s, places: Int64s) -> int:
    """Which queries lack room for so many events more, or for their keys; how many these are."""
    found = 0
    for number in range(len(queries)):
        query, count = queries[number], counts[number]
        head = int64_row(query[HEAD], HEAD_SIZE)
        lacks, keys = head[SIZE] + count > head[ROOM], np.int64(1)
        if query[KEY_ROW] >= 0:
            known = shared[query[KEY_ROW]]
            keys = min(query[KNOWN] + count, known)
            lacks = lacks or known > query[OWN_ROOM] or query[KNOWN] + count > query[OF_OWN_ROOM]
        if lacks or keys > head[KEY_ROOM]:
            places[found] = number
            found += 1
    return int(found)


@kernel
def taken_in(
    queries: Int64Rows,
    codes: Int64s,
    times: Int64s,
    keys: Int64Rows,
    answers: Uint8Rows,
    masks: Int64Rows,
    tests: Int64Rows,
    wanted: Uint8Rows,
    shared: int,
) -> int:
    """Puts the events of a table behind those of each query that may need them; there is room for all."""
    found = 0
    for number in range(len(queries)):
        query = queries[number]
        head = int64_row(query[HEAD], HEAD_SIZE)
        facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
        begin = event = head[SIZE]
        latest = facts[TIME, event - 1] if event > head[LINKED] else times[0]
        query[DISORDER] = 0
        for row in range(len(codes)):
            mask = masks[number, codes[row]]
            if mask != 0:
                mask = passing(tests, answers, query[TESTS], query[FIRSTS], row, mask)
            if mask == 0 and query[EVERY] == 0:
                continue
            key = 0
            if query[KEY_ROW] >= 0:
                key = keys[query[KEY_ROW], row]
                if key < 0 and head[STRICT] == 0:
                    continue
                mask = OF_NO_KEY if key < 0 else mask
                key = 0 if key < 0 else own_number(query, key, shared)
            facts[TIME, event], facts[KEY, event], facts[MASK, event] = times[row], key, mask
            facts[BEGINS, event] = passing(tests, answers, query[FIRSTS], query[TESTS_END], row, mask)
            facts[ROW, event] = row
            copy_values(head, query, row, event, len(codes))
            wanted[0, row] = 1
            if times[row] < latest:
                query[DISORDER] = 1
            latest = times[row]
            event += 1
        query[TAKEN] = event - begin
        head[SIZE] = event
        found += event - begin
    return int(found)


@kernel
def numbered(queries: Int64Rows, numbers: Int64s) -> int:
    """Events that were taken out of a table get their numbers in the log."""
    for number in range(len(queries)):
        head = int64_row(queries[number, HEAD], HEAD_SIZE)
        facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
        for event in range(head[SIZE] - queries[number, TAKEN], head[SIZE]):
            facts[ROW, event] = numbers[facts[ROW, event]]
    return 0


@kernel
def marked(queries: Int64Rows, ends: Int64s, needed: Uint8Rows) -> int:
    """Marks the events of the log that some query needs: those after a time, or the last ones of each key."""
    for number in range(len(queries)):
        head = int64_row(queries[number, HEAD], HEAD_SIZE)
        facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
        keys = int64_rows(head[KEYS_AT], head[KEY_ROOM], linking.CHAINS + head[STAGES])
        for event in range(head[SIZE]):
            if is_needed(head, facts, keys, ends[number], event):
                needed[0, facts[ROW, event]] = 1
    return 0


@borrowing
def is_needed(head: Int64s, facts: Int64Rows, keys: Int64Rows, end: int, event: int) -> bool:
    """Can a match that is not known yet need an event? Those up to a time are gone, unless events are counted."""
    if head[REACHED_EVENTS] == 0:
        return bool(facts[TIME, event] > end)
    counted = keys[facts[KEY, event], BEFORE] - head[REACHED_EVENTS]
    return bool(event >= head[LINKED] or facts[POSITION, event] > counted)


@kernel
def dropped(queries: Int64Rows, ends: Int64s, numbers: Int64s) -> int:
    """Drops the events that no query needs; the others get new numbers."""
    for number in range(len(queries)):
        head = int64_row(queries[number, HEAD], HEAD_SIZE)
        size, stay = head[SIZE], 0
        facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
        keys = int64_rows(head[KEYS_AT], head[KEY_ROOM], linking.CHAINS + head[STAGES])
        moved, linked, done = np.full(size, -1, np.int64), head[LINKED], head[DECIDED]
        for event in range(size):
            if is_needed(head, facts, keys, ends[number], event):
                moved[event] = stay
                facts[ROW, event] = numbers[facts[ROW, event]]
                facts[LINK, event] = moved[facts[LINK, event]] if facts[LINK, event] >= 0 else -1
                stay += 1
            else:
                linked -= 1 if event < head[LINKED] else 0
                done -= 1 if event < head[DECIDED] else 0
        for fact in range(FACTS_OF_EVENT):
            for event in range(size):
                if moved[event] >= 0:
                    facts[fact, moved[event]] = facts[fact, event]
        whole = int64_rows(head[WHOLE_AT], head[WHOLE_ROWS], head[ROOM])
        values = float64_rows(head[NUMBER_AT], head[NUMBER_ROWS], head[ROOM])
        null = uint8_rows(head[NULL_AT], head[NULL_ROWS], head[ROOM])
        for event in range(size):
            if moved[event] < 0:
                continue
            for column in range(head[WHOLE_ROWS]):
                whole[column, moved[event]] = whole[column, event]
            for column in range(head[NUMBER_ROWS]):
                values[column, moved[event]] = values[column, event]
            for column in range(head[NULL_ROWS]):
                null[column, moved[event]] = null[column, event]
        for key in range(head[KEY_ROOM]):
            if keys[key, LATEST] >= 0:
                keys[key, LATEST] = moved[keys[key, LATEST]]
        head[SIZE], head[LINKED], head[DECIDED] = stay, linked, done
        drop_sides(head)
    return 0


take_in, number_events, mark_needed, drop = Entry(taken_in), Entry(numbered), Entry(marked), Entry(dropped)
look_for_room = Entry(lacking_room)


def load() -> None:
    """Loads or compiles the kernels that drop events now: what Ctrl-C meets later should not be numba."""
    mark_needed.direct()
    drop.direct()


class Intake:
    """What takes tables into the searches of all queries of a step."""

    def __init__(self, cores: Sequence[Core], shared: Sequence[KeyNumbers]) -> None:
        self._cores, self._shared = cores, shared
        self._type = cores[0].plan.bound.schema.type if cores else None
        names = sorted(frozenset().union(*(core.reader.types for core in cores)))
        self._types = pa.array(names, pa.string())
        self._masks = np.array(
            [[core.reader.mask_of_type(name) for name in (*names, None)] for core in cores], np.int64
        )
        self._needs = np.array([core.every_event for core in cores])[:, None] | (self._masks != 0)
        self._queries = np.zeros((len(cores), OF_QUERY), np.int64)
        self._conditions: list[OneEventTest] = []
        conditions: dict[tuple[str, bool], int] = {}
        schemas: list[Schema] = []  # of the query that each was found in, which knows the columns that it reads
        tests: list[tuple[int, int]] = []
        places: dict[KeyNumbers | None, int] = {keys: place for place, keys in enumerate(shared)}
        for query, core in zip(self._queries, cores, strict=True):
            ends = [len(tests)]
            for own in core.reader.tests:
                for place, component, part in own:
                    key = told_of_any(part), component.any
                    if key not in conditions:
                        conditions[key] = len(conditions)
                        self._conditions.append((place, component, part))
                        schemas.append(core.plan.bound.schema)
                    tests.append((1 << place, conditions[key]))
                ends.append(len(tests))
            query[HEAD], query[EVERY] = core.head.ctypes.data, core.every_event
            query[TESTS], query[FIRSTS], query[TESTS_END] = ends
            query[KEY_ROW] = places.get(core.reader.shared, -1)
        self._tests = np.array(tests or [(0, 0)], np.int64)
        self._alone, self._alike = self._by_shape(schemas)
        self._heads = np.ascontiguousarray(self._queries[:, HEAD])
        self._numbered: list[tuple[Any, ...]] = [()] * len(cores)  # the numbers of keys, as the kernel knows them
        self._layouts: dict[tuple[str, Any], list[int]] = {}  # queries that read the same, by what that is
        for place, core in enumerate(cores):
            if core.form.layout.attributes:
                read = repr(core.form.layout), core.plan.bound.schema.lacks
                self._layouts.setdefault(read, []).append(place)

    def _by_shape(self, schemas: Sequence[Schema]) -> tuple[list[int], list[tuple[list[int], s.Comparison, list[Any]]]]:
        """The numbers of conditions that are evaluated one by one, and those that differ in a constant alone."""
        shapes: dict[str, list[tuple[int, WithConstant]]] = {}
        for number, ((_, component, part), schema) in enumerate(zip(self._conditions, schemas, strict=True)):
            found = None if component.any else with_constant(of_any_variable(part), schema)
            if found is not None:
                shapes.setdefault(found.name, []).append((number, found))
        alike = [own for own in shapes.values() if len(own) > 1]
        known = {number for own in alike for number, _ in own}
        together = [([number for number, _ in own], own[0][1].shape, [each.value for _, each in own]) for own in alike]
        return [number for number in range(len(self._conditions)) if number not in known], together

    def is_ready(self, events: int) -> bool:
        """Do the queries share their keys, and are the kernels there, or are there events enough to wait for them?"""
        for core in self._cores:
            if core.calls is None or (core.reader.shared is None and core.keys):
                return False
        return events > FEW_EVENTS or all(each.is_ready() for each in (take_in, number_events, look_for_room))

    def take(self, table: pa.Table, times: Int64s) -> npt.NDArray[np.bool_]:
        """Takes a table in; which of its events some query may need. Then their numbers in the log are asked for."""
        rows = table.num_rows
        with sharing():
            codes = self._codes(table)
            counts = self._needs @ np.bincount(codes, minlength=self._masks.shape[1])  # the most that each can need
            any_needs = np.flatnonzero(self._needs.any(axis=0)[codes])
            keys = np.full((len(self._shared), rows), -1, np.int64)
            for own, shared in zip(keys, self._shared, strict=True):
                own[any_needs] = shared.of_rows(table, any_needs)
            answers = np.zeros((max(1, len(self._conditions)), rows), np.uint8)
            for number in self._alone:
                _, component, part = self._conditions[number]
                answers[number] = passed(table, part, component.any)
            for numbers, shape, values in self._alike:
                answers[numbers] = answers_of(shape, values, rows, columns_of(table))
            columns = self._columns(table)
        self._make_room(counts)
        wanted = np.zeros((1, rows), np.uint8)
        most = max((len(shared) for shared in self._shared), default=0)
        times = np.ascontiguousarray(times)
        take_in.direct()(self._queries, codes, times, keys, answers, self._masks, self._tests, wanted, most)
        del columns  # its addresses are those of what was copied
        for core, known in zip(self._cores, self._queries[:, KNOWN].tolist(), strict=True):
            core.reader.known = known
        taken: npt.NDArray[np.bool_] = wanted[0].view(bool)
        return taken

    def _make_room(self, counts: Int64s) -> None:
        """Room for so many events more of each query, and for their keys."""
        for place, (query, core) in enumerate(zip(self._queries, self._cores, strict=True)):
            reader = core.reader
            if reader.shared is None:
                continue
            known = self._numbered[place]
            if not known or known[0] is not reader.own or known[1] is not reader.of_own:
                self._numbered[place] = reader.own, reader.of_own
                query[OWN_AT], query[OWN_ROOM] = reader.own.ctypes.data, len(reader.own)
                query[OF_OWN_AT], query[OF_OWN_ROOM] = reader.of_own.ctypes.data, len(reader.of_own)
        self._queries[:, KNOWN] = [core.reader.known for core in self._cores]
        shared = np.array([*map(len, self._shared), 0], np.int64)
        lacking = np.empty(len(counts), np.int64)
        number = look_for_room.direct()(self._queries, counts, shared, lacking)
        for place in lacking[:number].tolist():
            query, core, count = self._queries[place], self._cores[place], int(counts[place])
            core.make_room(count)
            reader = core.reader
            if reader.shared is None:
                core.make_room_for_keys(1)
                continue
            reader.make_room_for_keys(count)
            core.make_room_for_keys(min(reader.known + count, len(reader.shared)))
            self._numbered[place] = reader.own, reader.of_own
            query[OWN_AT], query[OWN_ROOM] = reader.own.ctypes.data, len(reader.own)
            query[OF_OWN_AT], query[OF_OWN_ROOM] = reader.of_own.ctypes.data, len(reader.of_own)

    def step(self, until: int) -> list[tuple[int, list[Found]]]:
        """The matches that are known when time has passed, by the places of the searches."""
        if len(self._cores) == 1 or any(core.calls is None for core in self._cores) or not step_all.is_ready():
            return [(place, core.step(until)) for place, core in enumerate(self._cores)]
        returned = np.zeros(len(self._cores), np.int64)
        step_all.direct()(self._heads, until, returned)
        told = returned.tolist()
        return [(place, self._cores[place].results(told[place])) for place in np.flatnonzero(returned).tolist()]

    def number(self, numbers: Int64s) -> None:
        """The events that were taken have these numbers in the log."""
        number_events.direct()(self._queries, numbers)
        for place in np.flatnonzero(self._queries[:, DISORDER]).tolist():
            self._cores[place].put_in_order()

    def _codes(self, table: pa.Table) -> Int64s:
        """The number of the type of each event."""
        if self._type is None:
            return np.full(table.num_rows, len(self._types), np.int64)
        column = table.column(self._type)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            return np.full(table.num_rows, len(self._types), np.int64)
        found = pc.index_in(column.cast(pa.string()), self._types).fill_null(len(self._types))
        codes: Int64s = found.to_numpy().astype(np.int64)
        return codes

    def _columns(self, table: pa.Table) -> list[Any]:
        """What conditions read of the whole table, whose addresses queries get."""
        columns, every = list[Any](), np.arange(table.num_rows)
        for places in self._layouts.values():
            core = self._cores[places[0]]
            read = fill(core.form.layout, table, every, core.plan.bound.schema)
            addresses = read.whole.ctypes.data, read.number.ctypes.data, read.null.ctypes.data
            self._queries[np.ix_(places, (WHOLES_AT, NUMBERS_AT, NULLS_AT))] = addresses
            columns.append(read)
        return columns

    def can_drop(self, events: int) -> bool:
        """Do kernels say which events are gone, and are they there, or events enough to wait for them?"""
        for core in self._cores:
            if core.calls is None or core.form.moments.always:
                return False
        return events > FEW_EVENTS or all(each.is_ready() for each in (mark_needed, drop))

    def needed(self, until: int, rows: int) -> npt.NDArray[np.bool_]:
        """Which events of the log are needed when time has passed all up to `until`."""
        needed = np.zeros((1, rows), np.uint8)
        mark_needed.direct()(self._queries, self._ends(until), needed)
        found: npt.NDArray[np.bool_] = needed[0].view(bool)
        return found

    def _ends(self, until: int) -> Int64s:
        """Up to when each query needs no event."""
        return np.array([until - (core.plan.exchange.retention.reach or 0) for core in self._cores], np.int64)

    def drop(self, until: int, numbers: Int64s) -> None:
        """Drops the others; those that stay have these numbers in the log now."""
        drop.direct()(self._queries, self._ends(until), numbers)
        for core in self._cores:
            core.tidy()
        for shared in self._shared:
            shared.forget([core.reader for core in self._cores if core.reader.shared is shared])
