"""SASE+'s stock ticks."""

from itertools import pairwise

import numpy as np
import pytest

from cepheid.errors import DataError
from cepheid.simulate.stocks import stock_query, stock_ticks


def moves_of(events: dict[str, list[int]], symbol: int, highest_price: int) -> list[int]:
    """Each tick's move, undoing the wrap from the highest price to 1."""
    prices = [price for s, price in zip(events["symbol"], events["price"], strict=True) if s == symbol]
    half = highest_price // 2
    return [(b - a + half) % highest_price - half for a, b in pairwise(prices)]


@pytest.mark.parametrize("up", [0.7, 0.55, 0.0, 1.0])
def test_each_symbol_walks_on_its_own(up: float) -> None:
    events = stock_ticks(20_000, symbols=3, up=up, seed=1).events.to_pydict()
    assert set(events["symbol"]) == {1, 2, 3}
    for symbol in (1, 2, 3):
        moves = moves_of(events, symbol, 1_000)
        assert set(moves) <= {-1, 0, 1}
        assert moves.count(1) / len(moves) == pytest.approx(up, abs=0.02)
        assert moves.count(-1) / len(moves) == pytest.approx((1 - up) / 2, abs=0.02)


def test_larger_steps() -> None:
    events = stock_ticks(20_000, symbols=1, step=4, seed=1).events.to_pydict()
    assert set(moves_of(events, 1, 1_000)) == set(range(-4, 5))


def test_prices_and_volumes_cover_their_ranges_evenly() -> None:
    events = stock_ticks(200_000, seed=2).events
    price, volume = events["price"].to_numpy(), events["volume"].to_numpy()
    assert (price.min(), price.max()) == (1, 1_000)
    assert (volume.min(), volume.max()) == (1, 1_000)
    assert np.mean(price <= 500) == pytest.approx(0.5, abs=0.03)
    assert np.mean(volume < 150) == pytest.approx(0.149, abs=0.005)
    assert np.mean(price % 500 == 0) == pytest.approx(1 / 500, rel=0.25)


def test_groups_of_rising_prices_are_as_long_as_the_paper_says() -> None:
    """SASE+ table 2: with p2 under skip till next match, W = 500, matches have 140 events on average."""
    events = stock_ticks(100_000, symbols=1, up=0.7, seed=3).events
    price = events["price"].to_numpy()
    lengths = []
    for start in np.flatnonzero(price[:-500] == 500):
        records = np.maximum.accumulate(price[start : start + 500])
        lengths.append(len(np.unique(records)))
    # A match may close anywhere in the group, so it holds half of it on average.
    assert np.mean(lengths) / 2 == pytest.approx(140, rel=0.05)


def test_query_template() -> None:
    query = stock_query(strategy="partition_contiguity", iterator="p3", window=2_000)
    assert query == (
        "PATTERN SEQ(Stock+ a[], Stock b) WHERE partition_contiguity(a[], b) {[symbol] AND a[1].price % 500 = 0 AND "
        "a[i].price > min(a[..i-1].price) AND b.volume < 150} WITHIN 2000 EVENTS"
    )
    with pytest.raises(DataError, match="p1, p2, p3"):
        stock_query(iterator="p4")


def test_a_probability_above_one_is_refused() -> None:
    with pytest.raises(DataError, match=r"up is 1\.2; it must lie between 0 and 1"):
        stock_ticks(10, up=1.2)
