"""Indexes by value: which candidates agree with an event that is already chosen on an attribute, or on several.

For each pair of components that equalities tie, the candidates of one lie in runs of equal values, each run in order of
time, so that a search finds those that agree with the other by one look and two bisections instead of looking through
the window. Equal values have equal codes, also of two columns; NULL, which equals nothing, has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import ColumnLayout, Columns, storage
from cepheid.engine.data.keys import combined, group_by_code
from cepheid.engine.kernels.compile import borrowing
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.plan.equalities import compared_events

Pair = tuple[str, str]  # an attribute of the event that is looked for, and the one of a known event that it equals

NO_CODE = -1
WORTH_AN_INDEX = 0.5  # the share of candidates that agree; above it an index would leave out too few


class ValueIndex(NamedTuple):
    """The indexes of a query, as kernels read them."""

    links: Int64Rows  # a row for each index; see the names of the columns
    codes: Int64Rows  # in each row, for each event, the code that candidates must have to agree with it
    starts: Int64s  # by index and code: where the run of the code begins
    events: Int64s  # the candidates of all indexes, run after run
    of_place: Int64Rows  # by place: the links that look for its events, from and to


# Columns of `links`: the place whose events are looked for, the place that is known, the row of `codes` to ask, and
# where the runs of the index begin in `starts`.
SOUGHT, KNOWN, ASKED, RUNS_FROM = range(4)


def value_index(
    bound: BoundQuery, indexed: Iterable[Conjunct], layout: ColumnLayout, columns: Columns, mask: Int64s
) -> ValueIndex:
    """Indexes for every pair of components that equalities tie, in both directions, where they leave out enough."""
    tied: dict[tuple[int, int], list[Pair]] = {}
    for conjunct in indexed:
        sides = compared_events(bound, conjunct)
        if sides is None or bound.has_kleene:
            continue
        for own, other in (sides, sides[::-1]):
            places = bound.place_of[own.of.variable], bound.place_of[other.of.variable]
            tied.setdefault(places, []).append((own.name, other.name))
    links: list[tuple[int, int, int, int]] = []
    codes: list[Int64s] = []
    starts: list[Int64s] = []
    events: list[Int64s] = []
    spans = np.zeros((len(bound.positives), 2), np.int64)
    used, listed = 0, 0
    for place in range(len(bound.positives)):
        spans[place] = len(links)
        found = [(*_runs(layout, columns, mask, of, pairs), of[1]) for of, pairs in tied.items() if of[0] == place]
        for share, asked, order, begins, known in sorted(found, key=lambda each: each[0]):
            if share > WORTH_AN_INDEX:
                continue
            links.append((place, known, len(codes), used))
            codes.append(asked)
            starts.append(begins + listed)
            events.append(order)
            used, listed = used + len(begins), listed + len(order)
        spans[place, 1] = len(links)
    return ValueIndex(
        np.array(links, np.int64).reshape(len(links), 4),
        np.stack(codes) if codes else np.zeros((0, len(mask)), np.int64),
        np.concatenate(starts) if starts else np.zeros(0, np.int64),
        np.concatenate(events) if events else np.zeros(0, np.int64),
        spans,
    )


def no_index(places: int, events: int) -> ValueIndex:
    """For a search that looks at its few events one by one."""
    nothing, none = np.zeros(0, np.int64), np.zeros((0, 4), np.int64)
    return ValueIndex(none, np.zeros((0, events), np.int64), nothing, nothing, np.zeros((places, 2), np.int64))


def _runs(
    layout: ColumnLayout, columns: Columns, mask: Int64s, of: tuple[int, int], pairs: Sequence[Pair]
) -> tuple[float, Int64s, Int64s, Int64s]:
    """How many of a place's candidates agree on average, the codes to ask for, the candidates in runs, their starts."""
    own, asked = link_codes(layout, columns, pairs)
    number = int(max(own.max(initial=NO_CODE), asked.max(initial=NO_CODE))) + 1
    candidates = np.flatnonzero(((mask >> of[0]) & 1 != 0) & (own != NO_CODE))
    order, starts = group_by_code(own[candidates], number)
    asking = asked[((mask >> of[1]) & 1 != 0) & (asked != NO_CODE)]
    agreeing = np.diff(starts)[asking].mean() if len(asking) else 0.0
    return float(agreeing / max(len(candidates), 1)), asked, candidates[order], starts


def link_codes(layout: ColumnLayout, columns: Columns, pairs: Sequence[Pair]) -> tuple[Int64s, Int64s]:
    """For each event its code as the one that is looked for and as the known one; where both are equal, they agree."""
    n = columns.null.shape[1]
    parts = [_codes_of_both(layout, columns, pair) for pair in pairs]
    both = parts[0] if len(parts) == 1 else combined(parts, 2 * n)
    for part in parts[1:]:
        both = np.where(part == NO_CODE, NO_CODE, both)
    if len(parts) > 1:
        both = np.where(parts[0] == NO_CODE, NO_CODE, both)
    return np.ascontiguousarray(both[:n]), np.ascontiguousarray(both[n:])


def _codes_of_both(layout: ColumnLayout, columns: Columns, pair: Pair) -> Int64s:
    rows = [(layout.value_row(name), layout.null_row(name)) for name in pair]
    kept = columns.number if storage(layout.type_of(pair[0])) == "number" else columns.whole
    null = np.concatenate([columns.null[absent] for _, absent in rows]) != 0
    values = np.concatenate([kept[row] for row, _ in rows])
    if len(values) and values.dtype == np.int64:
        low, high = int(values.min()), int(values.max())
        if high - low <= 4 * len(values) + 1024:
            return np.where(null, NO_CODE, values - low)
    if values.dtype != np.int64:
        values = values + 0.0  # -0.0 becomes 0.0
    coded = pc.dictionary_encode(pa.array(values)).indices.to_numpy().astype(np.int64)
    return np.where(null, NO_CODE, coded)


@borrowing
def first_from(run: Int64s, low: int, high: int, event: int) -> int:
    """The first index in run[low:high] of an event that is not before this one."""
    while low < high:
        middle = (low + high) // 2
        if run[middle] >= event:
            high = middle
        else:
            low = middle + 1
    return low


@borrowing
def agreeing(index: ValueIndex, link: int, known: int, first: int, last: int) -> tuple[int, int]:
    """The part of `index.events` that agrees with a known event, from the event `first` to the event `last`."""
    code = index.codes[index.links[link, ASKED], known]
    if code == NO_CODE:
        return 0, 0
    runs = index.links[link, RUNS_FROM] + code
    low = first_from(index.events, index.starts[runs], index.starts[runs + 1], first)
    return low, first_from(index.events, low, index.starts[runs + 1], last + 1)
