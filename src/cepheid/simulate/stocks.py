"""SASE+'s stock tickers and its query template (SASE+ §6, its table 1)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.simulate.simulation import Simulation, check_at_least, check_choice, check_share

ITERATOR_PREDICATES = {"p1": "", "p2": "a[i].price > a[i-1].price", "p3": "a[i].price > min(a[..i-1].price)"}
"""What each further element of the Kleene group must satisfy (SASE+ table 1; p3 with the paper's choice of min)."""


def stock_ticks(
    events: int = 1_000_000,
    *,
    symbols: int = 2,
    up: float = 0.7,
    step: int = 1,
    highest_price: int = 1_000,
    highest_volume: int = 1_000,
    type_name: str = "Stock",
    seed: int = 0,
) -> Simulation:
    """Ticks at times 0, 1, 2, ...: symbol uniform on 1 .. symbols, volume uniform, price a walk per symbol.

    A tick moves its symbol's price up with probability `up`, down or not at all with (1 - up) / 2 each, by 1 .. step.
    The paper gives the range 1 .. 1000 and leaves open how the walk stays inside. We let it wrap from 1000 to 1:
    that keeps prices uniform over the range, so `a[1].price % 500 = 0` starts one run in 500 ticks. With steps of 1
    this also gives the paper's profile for p = 0.7: two runs at a time over a window of 500 (1 a symbol), and groups
    of 250 * (0.7 - 0.15) = 137 rising prices against its 140. A reflecting walk would stick to 1000 and start a run
    on most ticks. The price of the wrap: a run that starts at 1000 finds no higher price.
    """
    check_at_least("events", events, 1)
    check_at_least("symbols", symbols, 1)
    check_share("up", up)
    check_at_least("step", step, 1)
    check_at_least("highest_price", highest_price, 1)
    check_at_least("highest_volume", highest_volume, 1)
    rng = np.random.default_rng(seed)
    symbol = rng.integers(0, symbols, events, dtype=np.int64)
    chance = rng.random(events)
    move = np.where(chance < up, 1, np.where(chance < up + (1.0 - up) / 2.0, -1, 0))
    if step > 1:
        move = move * rng.integers(1, step + 1, events)
    opening = rng.integers(0, highest_price, symbols, dtype=np.int64)
    price = (opening[symbol] + _running_sum_by_group(move, symbol, symbols)) % highest_price + 1
    table = pa.table(
        {
            "ts": pa.array(np.arange(events, dtype=np.int64)),
            "type": pa.repeat(type_name, events),
            "symbol": pa.array(symbol + 1),
            "price": pa.array(price),
            "volume": pa.array(rng.integers(1, highest_volume + 1, events, dtype=np.int64)),
        }
    )
    return Simulation(
        table,
        None,
        f"SASE+'s stock ticks: {symbols} symbols, each price rising with probability {up}",
        stock_query(type_name=type_name),
    )


def stock_query(
    *, strategy: str = "skip_till_next_match", iterator: str = "p2", window: int = 500, type_name: str = "Stock"
) -> str:
    """SASE+'s query template; `window` counts the events of one symbol, as the paper's partition window does.

    >>> stock_query(iterator="p1", strategy="partition_contiguity").split("{")[1]
    '[symbol] AND a[1].price % 500 = 0 AND b.volume < 150} WITHIN 500 EVENTS'
    """
    check_choice("iterator", iterator, list(ITERATOR_PREDICATES))
    check_choice("strategy", strategy, ["partition_contiguity", "skip_till_next_match"])
    conditions = ["[symbol]", "a[1].price % 500 = 0", ITERATOR_PREDICATES[iterator], "b.volume < 150"]
    where = " AND ".join(condition for condition in conditions if condition)
    return f"PATTERN SEQ({type_name}+ a[], {type_name} b) WHERE {strategy}(a[], b) {{{where}}} WITHIN {window} EVENTS"


def _running_sum_by_group(values: NDArray[np.int64], group: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Cumulative sum within each group, in input order: one sort by group, one cumulative sum over all."""
    order = np.argsort(group, kind="stable")
    running = np.cumsum(values[order], dtype=np.int64)
    sizes = np.bincount(group, minlength=groups)
    ends = np.cumsum(sizes)
    before = np.concatenate(([0], running))[ends - sizes]
    result = np.empty_like(running)
    result[order] = running - np.repeat(before, sizes)
    return result
