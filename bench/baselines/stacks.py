"""SASE's sequence scan and construction with each of its techniques switched on or off (SASE sections 3 and 4).

Cepheid's own engine has one good plan; the paper's experiments compare plans. This is one kernel in which only the
technique under test differs:

- stacks: none (construction walks back over every event, the paper's Basic), AIS, PAIS by the first attribute, or
  Multi-PAIS, which also asks at every transition whether some earlier event agrees on both attributes;
- the second equivalence test, a simple predicate, an inequality and the window: early or in operators after
  construction; negation: during construction or after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]

NO_STACKS, AIS, PAIS, MULTI_PAIS = 0, 1, 2, 3


@dataclass(frozen=True)
class Technique:
    """Where each part of the query is evaluated."""

    stacks: int = PAIS
    second_early: bool = True
    simple_early: bool = True
    inequality_early: bool = True
    window_in_scan: bool = True
    window_in_construction: bool = True
    negation_early: bool = True


class Flags(NamedTuple):
    """The technique, and which parts the query has."""

    stacks: int
    second_early: bool
    simple_early: bool
    inequality_early: bool
    window_in_scan: bool
    window_in_construction: bool
    negation_early: bool
    has_second: bool
    has_inequality: bool
    negated_after: int  # place behind which the negative component stands; -1: there is none
    length: int
    window: int
    most: int


class Events(NamedTuple):
    """The stream: place of each event in the pattern (-1: none, length: the negative component) and its values."""

    time: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    value: npt.NDArray[np.int64]
    passes: npt.NDArray[np.bool_]


class Links(NamedTuple):
    """The stacks: most recent instance in the previous one, the one below in its own, the last negative before."""

    previous: npt.NDArray[np.int64]
    below: npt.NDArray[np.int64]
    negative: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Result:
    """The sequences that remain, and how many were constructed on the way."""

    chosen: Integers
    constructed: int
    truncated: bool


def scan_and_construct(
    table: pa.Table,
    types: tuple[str, ...],
    window: int,
    technique: Technique,
    *,
    first: str | None = "attr1",
    second: str | None = None,
    inequality: str | None = None,
    simple: npt.NDArray[np.bool_] | None = None,
    negative: tuple[str, int] | None = None,
    most: int = 50_000_000,
) -> Result:
    """SEQ(types...) WHERE [first], [second] AND e1.inequality < eL.inequality WITHIN window, by a technique.

    `negative` is a type and the place behind which it must not occur. `simple` says which events pass the simple
    predicates. At most so many sequences are constructed: the basic plan would fill any memory.
    """
    events = prepared(table, types, first, second, inequality, simple, negative)
    flags = Flags(
        technique.stacks,
        technique.second_early,
        technique.simple_early,
        technique.inequality_early,
        technique.window_in_scan,
        technique.window_in_construction,
        technique.negation_early,
        second is not None,
        inequality is not None,
        -1 if negative is None else negative[1],
        len(types),
        window,
        most,
    )
    chosen, constructed = run(events, flags)
    return Result(chosen, int(constructed), int(constructed) >= most)


def prepared(
    table: pa.Table,
    types: tuple[str, ...],
    first: str | None,
    second: str | None,
    inequality: str | None,
    simple: npt.NDArray[np.bool_] | None,
    negative: tuple[str, int] | None,
) -> Events:
    """The columns as arrays."""
    count = table.num_rows
    coded = table["type"].combine_chunks().dictionary_encode()
    wanted = {name: place for place, name in enumerate((*types, *((negative[0],) if negative else ())))}
    places = np.array([wanted.get(name, -1) for name in coded.dictionary.to_pylist()], np.int64)

    def column(name: str | None) -> Integers:
        return np.zeros(count, np.int64) if name is None else table[name].to_numpy().copy()

    # Copies: a read-only view would be another type to numba, and compile the kernel anew.
    passes = np.ones(count, np.bool_) if simple is None else simple.copy()
    return Events(
        column("ts"),
        places[coded.indices.to_numpy()],
        column(first),
        column(second),
        column(inequality),
        passes,
    )


def result_digest_table(result: Result, table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The sequences as a table of times, to be compared with what `match` returns."""
    times = table["ts"].to_numpy()
    columns = {name: pa.array(times[result.chosen[:, place]]) for place, name in enumerate(names)}
    return pa.table({"match_start": columns[names[0]], "match_end": columns[names[-1]], **columns})


@nb.njit(cache=True)
def run(events, flags):  # type: ignore[no-untyped-def]
    """Scans once; constructs at every event of the last place. Returns the sequences and how many were built."""
    count, length = len(events.time), flags.length
    keys = 1
    if flags.stacks >= PAIS:
        keys = events.first.max() + 1
    tops = np.full((length + 1, keys), -1, np.int64)
    links = Links(np.full(count, -1, np.int64), np.full(count, -1, np.int64), np.full(count, -1, np.int64))
    out = np.empty((1024, length), np.int64)
    kept, constructed = 0, 0
    current, cursor = np.empty(length, np.int64), np.empty(length, np.int64)
    for event in range(count):
        place = events.place[event]
        if place < 0 or (flags.simple_early and not events.passes[event]):
            continue
        key = events.first[event] if flags.stacks >= PAIS else 0
        links.negative[event] = tops[length, key]
        if place > 0 and place < length:
            if not extends(event, tops[place - 1, key], events, links, flags):
                continue
            links.previous[event] = tops[place - 1, key]
        links.below[event] = tops[place, key]
        tops[place, key] = event
        if place == length - 1:
            out, kept, constructed = construct(event, events, links, flags, current, cursor, out, kept, constructed)
            if constructed >= flags.most:
                break
    return out[:kept].copy(), constructed


@nb.njit(cache=True)
def extends(event, top, events, links, flags):  # type: ignore[no-untyped-def]
    """Transition filtering: is there an instance in the previous stack (in both, with Multi-PAIS) to go on from?"""
    if top < 0 or (flags.window_in_scan and events.time[event] - events.time[top] >= flags.window):
        return False
    if flags.stacks == MULTI_PAIS and flags.has_second:
        other = top
        while other >= 0 and events.second[other] != events.second[event]:
            other = links.below[other]
            if other >= 0 and flags.window_in_scan and events.time[event] - events.time[other] >= flags.window:
                return False
        return other >= 0
    return True


@nb.njit(cache=True)
def construct(last, events, links, flags, current, cursor, out, kept, constructed):  # type: ignore[no-untyped-def]
    """Depth first from the last event to the first, newest candidates first."""
    length = flags.length
    level = length - 2
    current[length - 1] = last
    cursor[level] = before(last, True, links, flags)
    while level < length - 1:
        candidate = cursor[level]
        outside = candidate >= 0 and events.time[last] - events.time[candidate] >= flags.window
        # Without the window in construction a walk over all events still ends: at the beginning of the stream.
        if candidate < 0 or (outside and flags.window_in_construction):
            level += 1
            continue
        cursor[level] = before(candidate, False, links, flags)
        if not fits(candidate, level, current[level + 1], last, events, links, flags):
            continue
        current[level] = candidate
        if level > 0:
            level -= 1
            cursor[level] = before(candidate, True, links, flags)
            continue
        constructed += 1
        if selected(current, events, links, flags):
            if kept == len(out):
                larger = np.empty((2 * kept, length), np.int64)
                larger[:kept] = out
                out = larger
            out[kept] = current
            kept += 1
        if constructed >= flags.most:
            break
    return out, kept, constructed


@nb.njit(cache=True)
def before(event, deeper, links, flags):  # type: ignore[no-untyped-def]
    """The next candidate: in the stack before (deeper) or below in the same one; without stacks the event before."""
    if flags.stacks == NO_STACKS:
        return event - 1
    return links.previous[event] if deeper else links.below[event]


@nb.njit(cache=True)
def fits(candidate, level, after, last, events, links, flags):  # type: ignore[no-untyped-def]
    """What is tested during construction."""
    if flags.stacks == NO_STACKS and (events.place[candidate] != level):
        return False
    if flags.simple_early and not events.passes[candidate]:
        return False
    if flags.has_second and flags.second_early and events.second[candidate] != events.second[last]:
        return False
    if flags.has_inequality and flags.inequality_early and level == 0 and events.value[candidate] >= events.value[last]:
        return False
    if flags.negation_early and flags.negated_after == level:
        negative = links.negative[after]
        if negative >= 0 and events.time[negative] > events.time[candidate]:
            return False
    return True


@nb.njit(cache=True)
def selected(current, events, links, flags):  # type: ignore[no-untyped-def]
    """Selection, window and negation after construction; what was tested before holds and costs little."""
    length, first, last = flags.length, current[0], current[flags.length - 1]
    if events.time[last] - events.time[first] >= flags.window:
        return False
    if not flags.simple_early:
        for place in range(length):
            if not events.passes[current[place]]:
                return False
    if flags.stacks < PAIS:
        for place in range(length - 1):
            if events.first[current[place]] != events.first[last]:
                return False
    if flags.has_second and not flags.second_early:
        for place in range(length - 1):
            if events.second[current[place]] != events.second[last]:
                return False
    if flags.has_inequality and not flags.inequality_early and events.value[first] >= events.value[last]:
        return False
    if not flags.negation_early and flags.negated_after >= 0:
        negative = links.negative[current[flags.negated_after + 1]]
        if negative >= 0 and events.time[negative] > events.time[current[flags.negated_after]]:
            return False
    return True
