"""What led to nothing, remembered together with what the conditions ahead read of the path.

A split of the program from which no condition looks at the path has one bit per row (kernel.py). From the other splits
the rest of the search depends on the path, but only on what the conditions ahead read of it: the values of rows that
FIRST and LAST refer to, labels, running aggregates, the number of the match. Two paths that agree in all of these find
the same, so a failure is remembered under them. Entries hold the whole key, so no two keys are ever confused.

A search uses the memory only if it fails often without one: most do not, and they stay as fast as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64Rows, Int64s, Uint8Rows, Uint8s
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.search.row_pattern import path_state as j
from cepheid.engine.search.row_pattern.lowering import Seen
from cepheid.engine.search.row_pattern.path_state import PathState
from cepheid.engine.search.row_pattern.program import JUMP, KEYED, LOOP, SPLIT, TAKE, Program

# What a part of a key is. The numbers behind it: a set of labels, an offset and a place; an aggregate; rows back.
FIRST_VALUES, LAST_VALUES, FIRST_ROW, LAST_ROW, FIRST_LABEL, LAST_LABEL, LABEL_BACK = range(7)
COUNTED, IS_KNOWN, TOTAL_WHOLE, TOTAL_REAL, BEST_VALUES, MATCH, HISTORY = range(7, 14)
LABELLED, ONCE, LIMITED = 1, 2, 4  # of a history: are labels part of it, or each value once; times its limit
NO_LIMIT = np.iinfo(np.int64).max

ROOM = 1 << 10  # entries to begin with
MUCH_ROOM = 1 << 17  # the same if conditions run as Python: to begin again with more of them would call these again
MOST = 1 << 21  # entries of one attempt; what is beyond is tried again
LASTING = 1 << 20  # entries that are kept for the attempts to come
USED, FULL, HELD = range(3)  # in Memory.counters; from HELD on the histories of the path, per part
UNREACHED = -1


class Memory(NamedTuple):
    """The parts of keys, which of them count at which split, and the entries, found by a hash table."""

    parts: Int64Rows  # per part: what it is, and three numbers
    relevant: Uint8Rows  # per split that has keys, and part
    codes: Int64Rows  # per place that conditions read, and row: equal numbers where they read equal values
    keys: Int64Rows  # per entry: the split, the row, and the parts
    alive: Uint8s  # per entry: does it hold?
    slots: Int64s  # the hash table: entries from 1 on
    counters: Int64s


@borrowing
def label_at(judge: PathState, place: int, position: int) -> int:
    """The label of a position of the path, if the path has reached it."""
    label: int = judge.labels[place] if 0 <= place <= position else UNREACHED
    return label


@borrowing
def part_of_key(judge: PathState, memory: Memory, part: int, start: int, row: int, number: int) -> int:
    """What one part of the key is after the path from `start` to the row before `row`."""
    kind, first, second, third = memory.parts[part]
    position = row - start - 1
    if kind == MATCH:
        return number
    if kind == LABEL_BACK:
        return label_at(judge, position + 1 - first, position)
    if kind == HISTORY:
        held: int = memory.counters[HELD + part]
        return held
    if kind >= COUNTED:
        if position < 0:
            return 0
        known: int = judge.kept_n[position, first]
        if kind == COUNTED:
            return known if known <= second else NO_LIMIT
        if kind == IS_KNOWN:
            return min(known, 1)
        if kind == TOTAL_WHOLE:
            total: int = judge.kept_i[position, first]
            return total if total <= second else NO_LIMIT
        if kind == BEST_VALUES:
            best: int = memory.codes[third, judge.kept_i[position, first]] if known > 0 else UNREACHED
            return best
        if second != NO_LIMIT and judge.kept_f[position, first] > second:
            return NO_LIMIT
        return int(np.float64(judge.kept_f[position, first]).view(np.int64))
    count = judge.counts[position, first] if position >= 0 else 0
    if second >= count:
        return UNREACHED - count
    if kind in (FIRST_VALUES, FIRST_ROW, FIRST_LABEL):
        place: int = judge.places[first, second]
    else:
        place = judge.places[first, count - 1 - second]
    if kind in (FIRST_LABEL, LAST_LABEL):
        return label_at(judge, place + third, position)
    if kind in (FIRST_ROW, LAST_ROW):
        return start + place
    code: int = memory.codes[third, start + place]
    return code


@inlined  # a call would copy the tuple
def slot_of(memory: Memory, entry: int) -> int:
    """Where the hash table has the key of an entry, or would have it."""
    mixed = np.uint64(1469598103934665603)
    for part in range(memory.keys.shape[1]):  # xorshift
        mixed ^= np.uint64(memory.keys[entry, part])
        mixed ^= mixed << np.uint64(13)
        mixed ^= mixed >> np.uint64(7)
        mixed ^= mixed << np.uint64(17)
    mask = np.uint64(len(memory.slots) - 1)
    slot = mixed & mask
    while True:
        known = memory.slots[slot] - 1
        if known < 0 or known == entry:
            return int(slot)
        equal = memory.alive[known] != 0
        part = 0
        while equal and part < memory.keys.shape[1]:
            equal = memory.keys[known, part] == memory.keys[entry, part]
            part += 1
        if equal:
            return int(slot)
        slot = (slot + np.uint64(1)) & mask


@borrowing
def followed(memory: Memory, part: int, before: int, code: int) -> int:
    """The number of a history that goes on with a code; -2 if there is no room for it."""
    entry: int = memory.counters[USED]
    if entry >= len(memory.keys):
        memory.counters[FULL] = 1
        return -2
    memory.keys[entry] = 0
    memory.keys[entry, 0], memory.keys[entry, 1], memory.keys[entry, 2] = -1 - part, before, code
    slot = slot_of(memory, entry)
    if memory.slots[slot] == 0:
        memory.slots[slot] = entry + 1
        memory.alive[entry] = 1
        memory.counters[USED] = entry + 1
    known: int = memory.slots[slot] - 1
    return known


@borrowing
def history_of(judge: PathState, memory: Memory, part: int, start: int, row: int) -> int:
    """A number for what an aggregate has seen of the path: the same for the same; -2 if there is no room for it."""
    _, group, how, values = memory.parts[part]
    found = 0 if how & ONCE else -1
    left = how // LIMITED
    for place in range(row - start):
        label = judge.labels[place]
        if judge.sets[group, label]:
            code = memory.codes[values, start + place] if values >= 0 else 0
            if how & LABELLED:
                code = code * judge.sets.shape[1] + label
            if how & ONCE:
                found |= 1 << code
            else:
                left -= 1
                if left < 0 and how >= LIMITED:
                    return NO_LIMIT
                found = followed(memory, part, found, code)
                if found == -2:
                    break
    return found


@borrowing
def new_entry(judge: PathState, memory: Memory, split: int, start: int, row: int, number: int) -> int:
    """The entry of a split that is reached for the first time with what lies ahead of it; -1 if it is known.

    -2 if there is no entry because the memory is full.
    """
    for part in range(len(memory.parts)):
        if memory.relevant[split, part] and memory.parts[part, 0] == HISTORY:
            memory.counters[HELD + part] = history_of(judge, memory, part, start, row)
            if memory.counters[HELD + part] == -2:
                return -2
    entry: int = memory.counters[USED]
    if entry >= len(memory.keys):
        memory.counters[FULL] = 1
        return -2
    memory.keys[entry, 0], memory.keys[entry, 1] = split, row
    for part in range(len(memory.parts)):
        relevant = memory.relevant[split, part] != 0
        memory.keys[entry, 2 + part] = part_of_key(judge, memory, part, start, row, number) if relevant else 0
    slot = slot_of(memory, entry)
    if memory.slots[slot] != 0:
        return -1
    memory.slots[slot] = entry + 1
    memory.alive[entry] = 1
    memory.counters[USED] = entry + 1
    return entry


@borrowing
def forget(memory: Memory) -> None:
    """Forgets everything."""
    memory.slots[:] = 0
    memory.counters[USED] = 0


@kernel
def with_more_entries(memory: Memory) -> Memory:
    """The same, with room for twice the entries, and empty."""
    room = 2 * len(memory.keys)
    return Memory(
        memory.parts,
        memory.relevant,
        memory.codes,
        np.zeros((room, memory.keys.shape[1]), np.int64),
        np.zeros(room, np.uint8),
        np.zeros(4 * room, np.int64),
        np.zeros(len(memory.counters), np.int64),
    )


def no_memory() -> Memory:
    """A memory that is never used."""
    return _memory([], np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.int64), 1)


def memory_for(program: Program, judge: PathState, seen: Seen, bounds: Int64s) -> Memory:
    """A memory for the splits of a program that have keys, over rows in partitions."""
    rows = int(bounds[-1]) if len(bounds) else 0
    reads = {label: _reads_of(judge, seen, label) for label in range(len(judge.entry))}
    places: dict[tuple[int | str, ...], dict[tuple[str, int], None]] = {}
    parts: dict[tuple[int, int, int, int], None] = {}
    of_label: dict[int, list[tuple[int, int, int, int]]] = {}
    for label, found in reads.items():
        of_label[label] = []
        for kind, first, second, read in found:
            third = 0
            if kind in (FIRST_VALUES, LAST_VALUES, BEST_VALUES):
                at = (first, kind)
                places.setdefault(at, {})[read] = None
                third = list(places).index(at)
            elif kind in (FIRST_LABEL, LAST_LABEL):
                third = read[1]
            part = (kind, first, second, third)
            parts[part] = None
            of_label[label].append(part)
        for history in seen.histories[label]:
            third, how = -1, LABELLED * history.labelled + ONCE * history.once + LIMITED * history.most
            if history.columns:
                listed = ("history", *history.columns)
                places.setdefault(listed, {(name, 0): None for name in history.columns})
                third = list(places).index(listed)
            part = (HISTORY, history.group, how, third)
            parts[part] = None
            of_label[label].append(part)
    ahead = _labels_ahead(program)
    numbered = list(parts)
    relevant = np.zeros((len(ahead), len(numbered)), np.uint8)
    for split, labels in enumerate(ahead):
        for label in labels:
            for part in of_label.get(label, ()):
                relevant[split, numbered.index(part)] = 1
    codes = [_codes_of(seen, list(values), bounds, rows) for values in places.values()]
    numbered = [_with_order(part, codes, judge) if part[0] == HISTORY else part for part in numbered]
    told = np.array(codes, np.int64).reshape(len(codes), rows)
    return _memory(numbered, relevant, told, MUCH_ROOM if seen.opaque else ROOM)


def _with_order(part: tuple[int, int, int, int], codes: list[Int64s], judge: PathState) -> tuple[int, int, int, int]:
    """A history whose order counts if there are too many values for their set to be a number."""
    kind, group, how, values = part
    different = int(codes[values].max(initial=0)) + 1 if values >= 0 else 1
    different *= judge.sets.shape[1] if how & LABELLED else 1
    return kind, group, how if different <= j.MOST_IN_SET else how & ~ONCE, values


def _memory(parts: list[tuple[int, int, int, int]], relevant: Uint8Rows, codes: Int64Rows, room: int) -> Memory:
    return Memory(
        np.array(parts, np.int64).reshape(-1, 4),
        relevant,
        codes,
        np.zeros((room, 2 + len(parts)), np.int64),
        np.zeros(room, np.uint8),
        np.zeros(4 * room, np.int64),
        np.zeros(HELD + len(parts), np.int64),
    )


_Read = tuple[int, int, int, tuple[str, int]]  # a part of a key, and the column that is read so many rows on


def _reads_of(judge: PathState, seen: Seen, label: int) -> list[_Read]:
    """What the condition of a label reads of the path before its row: parts of keys with the values read there."""
    found: list[_Read] = []
    nothing = ("", 0)
    for what, slot, *place in judge.asks[slice(*judge.entry[label])].tolist():
        names = sorted(name for at, name in seen.reads[label] if at == slot)
        if what == j.ASK_BEST:
            found += [(BEST_VALUES, place[0], 0, (name, 0)) for name in names]
        elif what == j.ASK_KEPT:
            index, counts, bounded, most = place
            limit = most if bounded else NO_LIMIT
            found.append((COUNTED if counts else IS_KNOWN, index, limit, nothing))
            if judge.aggregates[index, 0] in (j.KEEP_SUM, j.KEEP_MEAN, j.KEEP_SPREAD, j.KEEP_SET):
                found.append((TOTAL_REAL if judge.aggregates[index, 2] else TOTAL_WHOLE, index, limit, nothing))
        else:
            found += _reads_at(judge, label, what, place, names)
    if seen.numbers[label]:
        found.append((MATCH, 0, 0, nothing))
    return found


def _reads_at(judge: PathState, label: int, what: int, place: list[int], names: list[str]) -> list[_Read]:
    """The same for a row that FIRST or LAST refers to, or its label."""
    group, from_first, offset, shift = place
    back = offset + 1 - int(judge.sets[group, label])
    found: list[_Read] = []
    kinds = [(FIRST_VALUES, LAST_VALUES, name) for name in names]
    if what == j.ASK_LABEL:
        kinds = [(FIRST_LABEL, LAST_LABEL, "")]
        if shift:  # the row may lie outside the path
            kinds.append((FIRST_ROW, LAST_ROW, ""))
        found += [(LABEL_BACK, rows, 0, ("", 0)) for rows in range(1, 1 - shift)]
    for of_first, of_last, name in kinds:
        found += [(of_first, group, offset, (name, shift))] if from_first else []
        found += [(of_last, group, each, (name, shift)) for each in range(0 if from_first else back)]
    return found


def _codes_of(seen: Seen, reads: list[tuple[str, int]], bounds: Int64s, rows: int) -> Int64s:
    """Per row a number: equal where all that is read from the row is equal."""
    import pandas as pd  # slow to load

    low, high = np.repeat(bounds[:-1], np.diff(bounds)), np.repeat(bounds[1:], np.diff(bounds))
    combined = np.zeros(rows, np.int64)
    for name, shift in reads:
        values = seen.values[name].dictionary_encode().indices
        target = np.arange(rows) + shift
        outside = (target < low) | (target >= high)
        codes = pc.fill_null(values, -1).to_numpy(zero_copy_only=False)
        known = np.where(outside, -1, codes[np.where(outside, 0, target)]) + 1
        combined, _ = pd.factorize(combined * (rows + 1) + known)
    return combined.astype(np.int64)


def _labels_ahead(program: Program) -> list[set[int]]:
    """For each split that has keys, the labels that can be reached from it."""
    count = len(program.kind)
    onward: list[tuple[int, ...]] = []
    for step in range(count):
        if program.kind[step] in (SPLIT, LOOP):
            onward.append((int(program.left[step]), int(program.right[step])))
        else:
            onward.append((int(program.left[step]),) if program.kind[step] == JUMP else (step + 1,))
    onward[-1] = ()
    reached = [1 << int(program.label[step]) if program.kind[step] == TAKE else 0 for step in range(count)]
    changed = True
    while changed:
        changed = False
        for step in range(count - 1, -1, -1):
            found = reached[step]
            for target in onward[step]:
                found |= reached[target]
            changed |= found != reached[step]
            reached[step] = found
    keyed = sorted((KEYED - int(bit), step) for step, bit in enumerate(program.memory) if bit <= KEYED)
    return [{label for label in range(reached[step].bit_length()) if reached[step] >> label & 1} for _, step in keyed]
