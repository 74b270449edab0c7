"""LAZY's stocks: price histories to correlate, and one component much rarer than the others (LAZY §7)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.errors import DataError
from cepheid.simulate.simulation import Simulation, check_at_least, check_share, names_by_code

FINANCE = ("JPM", "BAC", "C", "GS", "MS", "WFC")
HI_TECH = ("MSFT", "AAPL", "INTC", "ORCL", "CSCO", "IBM")
TARGET = ("GOOG",)
OTHER = ("PFE", "MRK", "JNJ", "LLY", "AMGN", "GILD")
SECTORS = ("Finance", "Hi-Tech", "Internet", "Pharmaceuticals")
"""GOOG has a sector of its own: were it Hi-Tech too, the paper's b could take the events meant for c."""

_TICKERS = FINANCE + HI_TECH + TARGET + OTHER
_SECTOR_SIZES = np.array([len(FINANCE), len(HI_TECH), len(TARGET), len(OTHER)])
_FLUCTUATION = 0.1
_FLUCTUATION_PERIOD = 20_000
_VOLATILITY = 0.01


def correlated_stocks(
    events: int = 100_000,
    *,
    history: int = 20,
    rare_frequency: float = 0.05,
    switch_every: int | None = None,
    irrelevant: float = 0.0,
    coupling: float = 0.5,
    events_per_minute: int = 10,
    seed: int = 0,
) -> Simulation:
    """Stock events at times 0, 1, 2, ..., each with the last `history` prices of its ticker, one a minute.

    A Finance event (a) and a Hi-Tech event (b) are about equally likely, with slow swings of 10 % as in the paper's
    data; GOOG (c) comes `rare_frequency` (the paper's f_c) times as often as either. With `switch_every`, the rare one
    is c, then a, then b, then c again, changing after that many events (the paper's last experiment: 100,000).
    `irrelevant` is the share of Pharmaceuticals events, which no component takes.
    `coupling` is the share of a price's variance that follows the market, hence how strongly stocks correlate.
    The truth lists the intervals of the stream and the sector that is rare in each.
    """
    check_at_least("events", events, 1)
    check_at_least("history", history, 2)
    check_at_least("rare_frequency", rare_frequency, 0)
    check_at_least("events_per_minute", events_per_minute, 1)
    check_share("irrelevant", irrelevant)
    check_share("coupling", coupling)
    if switch_every is not None:
        check_at_least("switch_every", switch_every, 1)
    if events * history > np.iinfo(np.int32).max:
        raise DataError(
            f"simulate: {events} histories of {history} prices do not fit in one list column",
            hint="ask for fewer events or a shorter history",
        )
    rng = np.random.default_rng(seed)
    interval = np.arange(events) // (switch_every or events)
    rare = np.array([2, 0, 1])[interval % 3]
    sector = _draw_sectors(rng, rare, rare_frequency, irrelevant)
    first_ticker = np.cumsum(_SECTOR_SIZES) - _SECTOR_SIZES
    ticker = first_ticker[sector] + (rng.random(events) * _SECTOR_SIZES[sector]).astype(np.int64)

    minute = np.arange(events) // events_per_minute
    paths = _price_paths(rng, int(minute[-1]) + history, coupling)
    histories = np.lib.stride_tricks.sliding_window_view(paths, history, axis=1)[ticker, minute]
    offsets = np.arange(0, events * history + 1, history, dtype=np.int32)
    table = pa.table(
        {
            "ts": pa.array(np.arange(events, dtype=np.int64)),
            "type": pa.repeat("Stock", events),
            "ticker": names_by_code(ticker, _TICKERS),
            "sector": names_by_code(sector, SECTORS),
            "price": pa.array(np.ascontiguousarray(histories[:, -1])),
            "history": pa.ListArray.from_arrays(pa.array(offsets), pa.array(histories.reshape(-1))),
        }
    )
    query = correlation_query(window=history * events_per_minute)
    rarity = "each in turn" if switch_every else "GOOG"
    description = f"LAZY's correlated stocks: {history} prices each, rare ({rarity}) at {rare_frequency} of the others"
    return Simulation(table, _intervals(rare, switch_every or events), description, query)


def correlation_query(*, threshold: float = 0.9, window: int = 200, order: str = "abc") -> str:
    """LAZY's pattern; `order` places Finance (a), Hi-Tech (b) and GOOG (c), as in its figures 7 and 8.

    >>> correlation_query(order="cba").split(" WHERE ")[0]
    'PATTERN SEQ(Stock c, Stock b, Stock a)'
    """
    if sorted(order) != ["a", "b", "c"]:
        raise DataError(f"simulate: order is {order!r}", hint="write the letters a, b, c once each")
    components = ", ".join(f"Stock {variable}" for variable in order)
    conditions = [
        f"a.ticker IN ({_quoted(FINANCE)})",
        f"b.ticker IN ({_quoted(HI_TECH)})",
        "c.ticker = 'GOOG'",
        f"Corr(a.history, b.history) > {threshold}",
        f"Corr(b.history, c.history) > {threshold}",
    ]
    return f"PATTERN SEQ({components}) WHERE {' AND '.join(conditions)} WITHIN {window}"


def _draw_sectors(
    rng: np.random.Generator, rare: NDArray[np.int64], rare_frequency: float, irrelevant: float
) -> NDArray[np.int64]:
    """0 Finance, 1 Hi-Tech, 2 GOOG, 3 irrelevant; the rare one of the first three differs along the stream."""
    swing = _FLUCTUATION * np.sin(2.0 * np.pi * np.arange(rare.size) / _FLUCTUATION_PERIOD)
    finance = np.where(rare == 0, rare_frequency, 1.0 + swing)
    hi_tech = np.where(rare == 1, rare_frequency, 1.0 - swing)
    target = np.where(rare == 2, rare_frequency, 1.0)
    relevant = finance + hi_tech + target
    draw = rng.random(rare.size) * relevant
    sector = (draw >= finance).astype(np.int64) + (draw >= finance + hi_tech)
    return np.where(rng.random(rare.size) < irrelevant, 3, sector)


def _price_paths(rng: np.random.Generator, minutes: int, coupling: float) -> NDArray[np.float64]:
    """One row of prices a ticker: geometric walks that share a market walk."""
    market = rng.standard_normal(minutes)
    own = rng.standard_normal((len(_TICKERS), minutes))
    moves = _VOLATILITY * (np.sqrt(coupling) * market + np.sqrt(1.0 - coupling) * own)
    opening = rng.uniform(20.0, 500.0, (len(_TICKERS), 1))
    return np.asarray(opening * np.exp(np.cumsum(moves, axis=1)))


def _intervals(rare: NDArray[np.int64], length: int) -> pa.Table:
    starts = np.arange(0, rare.size, length, dtype=np.int64)
    return pa.table(
        {
            "first_ts": pa.array(starts),
            "last_ts": pa.array(np.minimum(starts + length, rare.size) - 1),
            "rarest": names_by_code(rare[starts], SECTORS),
        }
    )


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
