"""SASE+'s backtracking with NON-OVERLAP that stops early (SASE+ sections 5.2.3 and 6.2, experiment 4).

One run at a time over the template SEQ(Stock+ a[], Stock b [, Stock c]): a start, the group as it grows, and at every
event that may close it a search for the end. A run is given up as soon as it cannot end before the best match so far,
and after a match the search goes on behind it. The engine `backtrack` of the package finds all matches instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

STEP, VOLUME = 500, 150
P1, P2, P3 = 0, 1, 2


class Ticks(NamedTuple):
    """The ticks of all symbols, symbol by symbol, in order of time."""

    time: npt.NDArray[np.int64]
    price: npt.NDArray[np.int64]
    volume: npt.NDArray[np.int64]


class Template(NamedTuple):
    """The query: which iterator predicate, contiguous or not, with or without c, and the window in events."""

    iterator: int
    contiguous: bool
    third: bool
    window: int


def non_overlapping(table: pa.Table, template: Template) -> pa.Table:
    """The matches as times: the group, b and, where the query has it, c."""
    order = np.argsort(table["symbol"].to_numpy(), kind="stable")
    ticks = Ticks(*(table[name].to_numpy()[order] for name in ("ts", "price", "volume")))
    _, begins = np.unique(table["symbol"].to_numpy()[order], return_index=True)
    bounds = np.append(begins, table.num_rows)
    rows, reprocessed = search(ticks, template, bounds)
    starts, closes, ends = rows.T
    groups = [ticks.time[members(ticks, template, start, close)] for start, close in zip(starts, closes, strict=True)]
    columns = {
        "match_start": pa.array(ticks.time[starts]),
        "match_end": pa.array(ticks.time[ends]),
        "a": pa.array(groups, pa.list_(pa.int64())),
        "b": pa.array(ticks.time[closes]),
    }
    if template.third:
        columns["c"] = pa.array(ticks.time[ends])
    facts = {"cepheid": f'{{"counters": {{"reprocessed": {int(reprocessed)}}}}}'}
    return pa.table(columns).replace_schema_metadata(facts)


@nb.njit(cache=True)
def search(ticks, template, bounds):  # type: ignore[no-untyped-def]
    """Start, close and end of each match, and how many events were looked at."""
    out = np.empty((len(ticks.time) + 1, 3), np.int64)
    kept, looked = 0, 0
    for part in range(len(bounds) - 1):
        begin, stop = bounds[part], bounds[part + 1]
        while begin < stop:
            best_start, best_close, best_end = -1, -1, stop
            start = begin
            # The earliest end wins, then the latest start: later starts may still win until the best end so far.
            while start < best_end:
                if ticks.price[start] % STEP == 0:
                    close, end, cost = first_end(ticks, template, start, min(best_end + 1, stop))
                    looked += cost
                    if end >= 0:
                        best_start, best_close, best_end = start, close, end
                start += 1
            if best_start < 0:
                break
            out[kept, 0], out[kept, 1], out[kept, 2] = best_start, best_close, best_end
            kept += 1
            begin = best_end + 1
    return out[:kept].copy(), looked


@nb.njit(cache=True)
def first_end(ticks, template, start, stop):  # type: ignore[no-untyped-def]
    """The earliest end before `stop` of a run from a start, the close it belongs to, and the events looked at."""
    limit = min(stop, start + template.window)
    last = lowest = ticks.price[start]
    best_close, best_end, looked = -1, -1, 0
    event = start + 1
    while event < limit:
        looked += 1
        if ticks.volume[event] < VOLUME:
            if not template.third:
                return event, event, looked
            for third in range(event + 1, limit):
                looked += 1
                price = ticks.price[third]
                if price > ticks.price[start] and price < last:
                    best_close, best_end, limit = event, third, third
                    break
                if template.contiguous:
                    break
        if takes(template.iterator, ticks.price[event], last, lowest):
            last = ticks.price[event]
            lowest = min(lowest, last)
        elif template.contiguous:
            break
        event += 1
    return best_close, best_end, looked


@nb.njit(cache=True)
def takes(iterator, price, last, lowest):  # type: ignore[no-untyped-def]
    """The iterator predicate."""
    return iterator == P1 or (iterator == P2 and price > last) or (iterator == P3 and price > lowest)


def members(ticks: Ticks, template: Template, start: int, close: int) -> npt.NDArray[np.int64]:
    """The events of a group from its start to before its close."""
    taken, last, lowest = [start], ticks.price[start], ticks.price[start]
    for event in range(start + 1, close):
        price = ticks.price[event]
        if takes(template.iterator, price, last, lowest):
            taken.append(event)
            last, lowest = price, min(lowest, price)
    return np.array(taken, np.int64)
