"""OUTPUT NON-OVERLAP: per partition, a match is reported only if it starts after the last reported one ended.

Matches compete in order of their end (earliest first), then of their start (latest first: the shortest wins), then in
the order of their events. This is the one output that looks back: `ended` carries, for each partition, the order key of
the last reported end from one interval of completion to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.keys import NULL_CODE, codes, combined
from cepheid.engine.data.matches import MISSING, Matches, sortable
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.output.maximal import BEGINNING, deadlines
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType, data_type
from cepheid.plan.physical import Plan

Partition = tuple[Any, ...]
OrderKey = tuple[Any, ...]  # the time, then the tiebreakers
Ended = Mapping[Partition, OrderKey]
NOTHING_ENDED = -1


def find_non_overlapping(
    run: Callable[[Plan, EventTable, int, int], Matches],
    plan: Plan,
    events: EventTable,
    after: int,
    until: int,
    ended: Ended | None,
) -> Matches:
    """The matches that do not overlap among what an engine's `run` finds, decided in (after, until].

    Without `ended`, what was reported before is found again from the events.
    """
    window = plan.bound.window
    earliest = BEGINNING
    if ended is not None and after > BEGINNING:
        waits = plan.bound.postponed or bool(plan.options.get("missing_last", False))
        # A match that waits for its window is known up to a window before it is decided here.
        earliest = after if not waits or window is None or window.events else after - window.length
        earliest = BEGINNING if waits and window is not None and window.events else earliest
    if earliest == BEGINNING and not ended:
        plan = _without_overlaps(plan)
    elif earliest == after and ended is not None and plan.bound.strategies == {s.Strategy.SKIP_TILL_ANY}:
        # What was reported before is known, so that pruning can go on from there.
        plan = _without_overlaps(plan, _may_begin(plan.bound, events, ended) if ended else None)
    matches = run(plan, events, earliest, until)
    in_order = plan.bound.is_linear
    first, last = matches.first_rows(in_order=in_order), matches.last_rows(in_order=in_order)
    matches = replace(matches, completion=_decided(plan, events, matches, last))
    wanted = matches.completion <= until
    if ended is not None:
        wanted &= matches.completion > after
    matches, first, last = matches.take(np.flatnonzero(wanted)), first[wanted], last[wanted]
    kept = non_overlapping(plan.bound, events, matches, first, last, ended or {})
    kept = kept[matches.completion[kept] > after]
    return matches.take(kept)


def _without_overlaps(plan: Plan, may_begin: npt.NDArray[np.bool_] | None = None) -> Plan:
    """The same plan, with leave to leave out what is sure to overlap."""
    options = replace(plan.options, non_overlapping=True, may_begin=may_begin)
    return replace(plan, match=replace(plan.match, options=options))


def _may_begin(bound: BoundQuery, events: EventTable, ended: Ended) -> npt.NDArray[np.bool_]:
    """The events that lie behind the last match that was reported of their partition."""
    parts = [codes(events.table.column(name)) for name in bound.equivalence]
    _, examples, numbers = np.unique(combined(parts, len(events)), return_index=True, return_inverse=True)
    columns = [
        value_column(events.table.column(name).take(pa.array(examples))).to_pylist() for name in bound.equivalence
    ]
    values = zip(*columns, strict=True) if columns else [()] * len(examples)
    before = [_rank(bound, events, ended[key]) if key in ended else NOTHING_ENDED for key in values]
    found: npt.NDArray[np.bool_] = events.instant > np.array(before, np.int64)[numbers]
    return found


def last_ends(plan: Plan, events: EventTable, matches: Matches) -> dict[Partition, OrderKey]:
    """What NON-OVERLAP carries on: for each partition, the order key of the latest end among these matches."""
    if len(matches) == 0:
        return {}
    partition, examples = _partition_numbers(plan.bound, events, matches)
    last = matches.last_rows(in_order=plan.bound.is_linear)
    order = np.lexsort((events.instant[last], partition))
    ends = order[np.append(np.diff(partition[order]) != 0, True)]
    values = _partition_values(plan.bound, events, matches, examples)
    return {values[int(partition[index])]: _order_key(plan.bound, events, int(last[index])) for index in ends}


def _decided(plan: Plan, events: EventTable, matches: Matches, last: Int64s) -> Int64s:
    """When a match can be reported: once all that end before it are known, and those may wait for their windows."""
    seen_last = not plan.bound.is_linear or not len(matches)
    missing = np.zeros(len(matches), bool) if seen_last else matches.chosen[-1].last() == MISSING
    if plan.bound.postponed:
        return deadlines(plan.bound, events, last)
    if missing.any():
        return np.where(missing, deadlines(plan.bound, events, last), events.time[last])
    return events.time[last]


def non_overlapping(
    bound: BoundQuery, events: EventTable, matches: Matches, first: Int64s, last: Int64s, ended: Ended
) -> Int64s:
    """The numbers of the matches that are reported."""
    if len(matches) == 0:
        return np.zeros(0, np.int64)
    partition, examples = _partition_numbers(bound, events, matches)
    start, end = events.instant[first], events.instant[last]
    order = np.lexsort((-start, end, partition))
    before = np.full(len(examples), NOTHING_ENDED, np.int64)
    if ended:
        for number, values in enumerate(_partition_values(bound, events, matches, examples)):
            if values in ended:
                before[number] = _rank(bound, events, ended[values])
    sorted_by = partition[order], start[order], end[order]
    chosen = choose_non_overlapping(*sorted_by, before)
    # Concurrent events can make several matches equal in all of that: the order of their events decides.
    equal = np.logical_and.reduce([values[1:] == values[:-1] for values in sorted_by])
    kept = order[chosen]
    ties = np.flatnonzero(np.append(equal, False)[chosen])
    if len(ties):
        last = np.append(np.flatnonzero(~equal), len(order) - 1)  # of each series of equal ones
        begins = chosen[ties]
        stops = last[np.searchsorted(last, begins)] + 1
        concerned = np.concatenate([order[begin:stop] for begin, stop in zip(begins, stops, strict=True)])
        keys = _by_events(events, matches.take(concerned))
        at = np.concatenate([[0], np.cumsum(stops - begins)])
        for tie, low, high in zip(ties, at[:-1], at[1:], strict=True):
            kept[tie] = concerned[min(range(low, high), key=keys.__getitem__)]
    return kept


@kernel
def choose_non_overlapping(partition: Int64s, start: Int64s, end: Int64s, ended: Int64s) -> Int64s:
    """The first of each group of matches that is reported, of matches in the order they compete in."""
    chosen = np.empty(len(partition), np.int64)
    count = 0
    latest = ended.copy()
    for index in range(len(partition)):
        if start[index] > latest[partition[index]]:
            chosen[count] = index
            count += 1
            latest[partition[index]] = end[index]
    return chosen[:count].copy()


def _partition_numbers(bound: BoundQuery, events: EventTable, matches: Matches) -> tuple[Int64s, Int64s]:
    """A number for the partition of each match, and for each partition a match that is in it."""
    parts = []
    for name in bound.equivalence:
        known = codes(events.table.column(name))
        value = np.full(len(matches), NULL_CODE, np.int64)
        for group in matches.chosen:  # an event of an ANY component may lack it, the others have it
            rows = group.first()
            value = np.where((value == NULL_CODE) & (rows != MISSING), known[rows], value)
        parts.append(value)
    _, examples, numbers = np.unique(combined(parts, len(matches)), return_index=True, return_inverse=True)
    return numbers.astype(np.int64), examples


def _partition_values(bound: BoundQuery, events: EventTable, matches: Matches, examples: Int64s) -> list[Partition]:
    """The equivalence-test values of partitions, from a match in each."""
    columns = {name: value_column(events.table.column(name)) for name in bound.equivalence}
    found = []
    for match in examples:
        rows = [int(group.first()[match]) for group in matches.chosen]
        seen = [row for row in rows if row != MISSING]
        found.append(tuple(_first_known(columns[name][row].as_py() for row in seen) for name in bound.equivalence))
    return found


def _first_known(values: Iterable[object]) -> Any:
    return next((value for value in values if value is not None), None)


def _order_key(bound: BoundQuery, events: EventTable, row: int) -> OrderKey:
    breakers = (value_column(events.table.column(name))[row].as_py() for name in bound.schema.tiebreak)
    return (int(events.time[row]), *breakers)


def _rank(bound: BoundQuery, events: EventTable, key: OrderKey) -> int:
    """The last instant of the table that does not come after an order key, which may be of an event long gone."""
    stop = int(np.searchsorted(events.time, key[0], side="right"))
    while (
        stop > 0 and events.time[stop - 1] == key[0] and sortable(_order_key(bound, events, stop - 1)) > sortable(key)
    ):
        stop -= 1
    return int(events.instant[stop - 1]) if stop > 0 else NOTHING_ENDED


def _by_events(events: EventTable, matches: Matches) -> list[Any]:
    """The order of each match's events; concurrent ones by their values, since arrival must not matter."""
    groups = matches.groups()
    rows = np.unique(np.concatenate([group.rows[group.rows != MISSING] for group in matches.chosen]))
    taken = events.table.take(pa.array(rows))
    columns = [_values(taken.column(name)) for name in sorted(taken.column_names)]
    values = {int(row): sortable(column[place] for column in columns) for place, row in enumerate(rows)}
    instants = events.instant
    return [
        (
            [[int(instants[row]) for row in group] for group in match],
            [[values[int(row)] for row in group] for group in match],
        )
        for match in groups
    ]


def _values(column: pa.ChunkedArray) -> list[object]:
    found: list[Any] = (column if data_type(column.type) is DataType.OTHER else value_column(column)).to_pylist()
    return found
