"""The Flink baseline: what it is handed, and that it answers the same question as a plain count."""

import numpy as np
import pyarrow as pa
import pytest

from bench.flink.baseline import FlinkResult, Kleene, Sequence, driver_options, event_numbers, measure
from bench.flink.installation import FlinkUnavailable, find_tool
from cepheid.simulate import sase_events, stock_ticks


def test_a_sequence_is_handed_over_column_by_column() -> None:
    table = pa.table({"ts": [5, 6, 8], "type": ["B", "X", "A"], "user": ["u", "v", "u"]})
    numbers = event_numbers(Sequence(types=("A", "B"), key="user"), table)
    assert numbers.dtype == np.dtype("<i8")
    assert numbers.tolist() == [3, *[5, 6, 8], *[0, 1, 0], *[1, 2, 0], *[0, 0, 0], *[0, 0, 0]]


def test_ticks_are_handed_over_column_by_column() -> None:
    table = pa.table({"ts": [0, 1], "symbol": [7, 9], "price": [500, 3], "volume": [10, 20]})
    assert event_numbers(Kleene(), table).tolist() == [2, *[0, 1], *[7, 9], *[0, 0], *[500, 3], *[10, 20]]


def test_dictionary_and_timestamp_columns_are_numbers_too() -> None:
    table = pa.table(
        {
            "ts": pa.array([10, 20], pa.timestamp("us")),
            "type": pa.array(["A", "B"]).dictionary_encode(),
            "user": pa.array(["u", "v"]).dictionary_encode(),
        }
    )
    numbers = event_numbers(Sequence(types=("A", "B"), key="user"), table)
    assert numbers[:7].tolist() == [2, 10, 20, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"ts": [2, 1], "type": ["A", "B"], "user": [1, 1]}, "not in order"),
        ({"ts": [1, 2], "type": ["A", "B"], "user": [1, None]}, "has nulls"),
        ({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string()), "user": []}, "no events"),
    ],
)
def test_events_that_flink_could_not_take_are_refused(table: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        event_numbers(Sequence(types=("A", "B"), key="user"), pa.table(table))


@pytest.mark.parametrize(
    "workload", [Sequence(types=("A", "A")), Sequence(types=()), Kleene(iterator="p9"), Kleene(strategy="greedy")]
)
def test_workloads_that_do_not_exist_are_refused(workload: Sequence | Kleene) -> None:
    with pytest.raises(ValueError, match=r"distinct types|choose of"):
        driver_options(workload)


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(FlinkUnavailable, match=r"`javac`.*openjdk-17-jdk-headless"):
        find_tool("javac")


def test_events_per_second() -> None:
    assert FlinkResult(events=100, seconds=4.0, matches=1, selected_events=3).events_per_second == 25.0


def count_sequences(events: dict[str, list], window: int) -> int:
    rows = list(zip(events["ts"], events["type"], events["attr1"], strict=True))
    return sum(
        (x[1], y[1], z[1]) == ("T0", "T1", "T2")
        for i, x in enumerate(rows)
        if x[1] == "T0"
        for inside in [[row for row in rows[i + 1 :] if row[0] - x[0] < window and row[2] == x[2]]]
        for j, y in enumerate(inside)
        for z in inside[j + 1 :]
    )


@pytest.mark.slow
@pytest.mark.parametrize("prefilter", [True, False])
def test_sequences_agree_with_a_plain_count(prefilter: bool) -> None:
    table = sase_events(2_000, types=5, domains=(8,), seed=11).events
    result = measure(Sequence(window=100, prefilter=prefilter), table, warm_up=500)
    expected = count_sequences(table.to_pydict(), window=100)
    assert expected > 500
    assert (result.events, result.matches, result.selected_events) == (2_000, expected, 3 * expected)


def list_groups(events: dict[str, list[int]], workload: Kleene) -> list[int]:
    """The sizes of all matches, found by following every run event by event."""
    takes = {
        "p1": lambda price, group: True,
        "p2": lambda price, group: price > group[-1],
        "p3": lambda price, group: price > min(group),
    }[workload.iterator]
    sizes = []
    for symbol in set(events["symbol"]):
        ticks = [
            (ts, price, volume)
            for ts, s, price, volume in zip(*(events[c] for c in ("ts", "symbol", "price", "volume")), strict=True)
            if s == symbol
        ]
        for i, (start, first, _) in enumerate(ticks):
            group = [first]
            for ts, price, volume in ticks[i + 1 :] if first % 500 == 0 else []:
                if ts - start >= workload.window:
                    break
                if volume < 150:
                    sizes.append(len(group) + 1)
                if takes(price, group):
                    group.append(price)
                elif workload.strategy == "partition_contiguity":
                    break
    return sizes


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["partition_contiguity", "skip_till_next_match"])
@pytest.mark.parametrize("iterator", ["p1", "p2", "p3"])
def test_kleene_groups_agree_with_a_plain_search(iterator: str, strategy: str) -> None:
    table = stock_ticks(12_000, seed=12).events
    workload = Kleene(iterator=iterator, strategy=strategy, window=200)
    result = measure(workload, table, warm_up=0)
    sizes = list_groups(table.to_pydict(), workload)
    assert sizes
    assert (result.matches, result.selected_events) == (len(sizes), sum(sizes))
