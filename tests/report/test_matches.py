"""What charts are drawn from."""

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from cepheid.report.matches import Shown, calibration, counts_over_time, likelihood_counts, timeline_rows

EVENT = pa.struct([("ts", pa.int64()), ("id", pa.string())])
RESULT = pa.table(
    {
        "match_start": pa.array([1, 10, 20]),
        "match_end": pa.array([5, 10, 24]),
        "a": pa.array([{"ts": 1, "id": "k"}, None, {"ts": 20, "id": "k"}], EVENT),
        "b": pa.array([[{"ts": 2, "id": "k"}, {"ts": 3, "id": "k"}], [], [{"ts": 22, "id": "k"}]], pa.list_(EVENT)),
        "c": pa.array([{"ts": 5, "id": "k"}, {"ts": 10, "id": "l"}, {"ts": 24, "id": "k"}], EVENT),
        "probability": pa.array([1.0, 0.2, 0.9]),
    }
)


def test_bars_are_named_by_their_key_and_told_apart() -> None:
    bars, _ = timeline_rows(Shown(RESULT, keys=("id",)))
    assert [bar["match"] for bar in bars] == ["k", "l", "k (2)"]
    assert [(bar["from"], bar["to"], bar["likely"]) for bar in bars] == [(1, 5, 1.0), (10, 10, 0.2), (20, 24, 0.9)]


def test_events_of_kleene_groups_and_unseen_events() -> None:
    _, marks = timeline_rows(Shown(RESULT, keys=("id",)))
    first = [(mark["variable"], mark["at"], mark["seen"]) for mark in marks if mark["match"] == "k"]
    assert first == [("a", 1, True), ("b", 2, True), ("b", 3, True), ("c", 5, True)]
    unseen = {mark["variable"]: mark for mark in marks if not mark["seen"]}
    assert set(unseen) == {"a", "b"}
    assert unseen["a"]["at"] < 10  # before the first event that was seen
    assert unseen["a"]["event"] == "a was not seen"


def test_unseen_events_lie_between_their_neighbours() -> None:
    row = {"match_start": [0], "match_end": [10], "a": [{"ts": 0}], "b": [None], "c": [{"ts": 10}]}
    table = pa.table(
        {name: pa.array(v, pa.struct([("ts", pa.int64())]) if name in "abc" else None) for name, v in row.items()}
    )
    _, marks = timeline_rows(Shown(table))
    assert [(mark["variable"], mark["at"], mark["seen"]) for mark in marks] == [
        ("a", 0, True),
        ("b", 5, False),
        ("c", 10, True),
    ]


def test_intervals() -> None:
    event = pa.struct([("lower", pa.int64()), ("upper", pa.int64())])
    table = pa.table({"match_start": [1], "match_end": [9], "a": pa.array([{"lower": 1, "upper": 5}], event)})
    _, (mark,) = timeline_rows(Shown(table, time="lower", lower="lower", upper="upper"))
    assert (mark["from"], mark["to"], mark["at"]) == (1, 5, 3)


def test_too_many_matches_are_thinned_out_evenly() -> None:
    many = pa.table({"match_start": range(1000), "match_end": range(1000)})
    bars, marks = timeline_rows(Shown(many), limit=11)
    assert [bar["from"] for bar in bars] == [0, 99, 199, 299, 399, 499, 599, 699, 799, 899, 999]
    assert marks == []


def test_counts_cover_all_matches() -> None:
    assert sum(bar["matches"] for bar in counts_over_time(Shown(RESULT))) == 3
    assert counts_over_time(Shown(RESULT.slice(0, 0))) == []
    same = pa.table({"match_start": [5, 5], "match_end": [5, 5]})
    assert sum(bar["matches"] for bar in counts_over_time(Shown(same))) == 2
    days = pa.table({"match_start": [datetime(2024, 1, 1)], "match_end": [datetime(2024, 1, 1, 12)]})
    (bar, *_) = [bar for bar in counts_over_time(Shown(days)) if bar["matches"]]
    assert bar["from"] == datetime(2024, 1, 1, 12).timestamp() * 1000 - datetime(1970, 1, 1).timestamp() * 1000


def test_likelihoods_of_zero_and_one_are_counted() -> None:
    assert sum(bar["matches"] for bar in likelihood_counts(np.array([0.0, 0.5, 1.0]))) == 3


def test_calibration() -> None:
    said = np.repeat([0.2, 0.8], 100)
    honest = np.concatenate([np.arange(100) < 20, np.arange(100) < 80])
    assert calibration(said, honest).error == pytest.approx(0.0)
    assert calibration(said, honest).brier == pytest.approx(0.16)
    lying = calibration(np.array([0.95]), np.array([False]))
    assert (lying.error, lying.bins) == (0.95, [{"said": 0.95, "true": 0.0, "matches": 1}])
