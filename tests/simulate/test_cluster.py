"""TIME's cluster log."""

from typing import Any

import pytest

from cepheid.simulate.cluster import cluster_log


def test_times_intervals_and_nulls() -> None:
    rows = cluster_log(400, nodes=3, slots=2, seed=1).events.to_pylist()
    for row in rows:
        half_width = 75 if row["type"] == "CPU" else 5
        assert (row["ts"] - row["lower"], row["upper"] - row["ts"]) == (half_width, half_width)
        assert row["lower"] <= row["true_ts"] <= row["upper"]
        assert (row["taskId"] is None) == (row["type"] == "CPU")
        assert (row["value"] is None) == (row["type"] != "CPU")
        assert 0 <= row["nodeId"] < 3
    shifts = {row["true_ts"] - row["ts"] for row in rows if row["type"] != "CPU"}
    assert shifts == set(range(-5, 6))


def test_every_node_is_sampled_once_a_period() -> None:
    rows = cluster_log(300, nodes=2, seed=2).events.to_pylist()
    last = max(row["true_ts"] for row in rows if row["type"] == "TaskFinish")
    for node in (0, 1):
        samples = [row for row in rows if row["type"] == "CPU" and row["nodeId"] == node]
        assert [row["ts"] for row in samples] == [150 * k + 75 for k in range(last // 150 + 2)]
        assert all(row["true_ts"] // 150 == row["ts"] // 150 for row in samples)


def tasks_of(rows: list[dict[str, Any]]) -> dict[int, tuple[int, int, int]]:
    """Node, true start and true finish by task."""
    starts = {row["taskId"]: (row["nodeId"], row["true_ts"]) for row in rows if row["type"] == "TaskStart"}
    finishes = {row["taskId"]: (row["nodeId"], row["true_ts"]) for row in rows if row["type"] == "TaskFinish"}
    assert starts.keys() == finishes.keys()
    assert all(starts[task][0] == finishes[task][0] for task in starts)
    return {task: (*starts[task], finishes[task][1]) for task in starts}


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_node_never_runs_more_tasks_than_it_has_slots(slots: int) -> None:
    tasks = tasks_of(cluster_log(500, nodes=2, slots=slots, seed=3).events.to_pylist()).values()
    for node, start, finish in tasks:
        assert start + 1 < finish
        assert sum(n == node and s <= start < f for n, s, f in tasks) <= slots


def test_truth_is_what_a_peak_inside_a_task_means() -> None:
    simulation = cluster_log(2_000, nodes=4, heavy=0.2, seed=4)
    assert simulation.truth is not None
    rows = simulation.events.to_pylist()
    tasks = tasks_of(rows)
    samples: dict[int, list[dict[str, Any]]] = {node: [] for node in range(4)}
    for row in rows:
        if row["type"] == "CPU":
            samples[row["nodeId"]].append(row)
    truth = simulation.truth.to_pylist()
    assert 200 < len(truth) < 500
    for row in truth:
        assert tasks[row["taskId"]] == (row["nodeId"], row["start"], row["finish"])
        assert row["start"] < row["peak"] < row["finish"]
        position = next(k for k, s in enumerate(samples[row["nodeId"]]) if s["true_ts"] == row["peak"])
        high, following = samples[row["nodeId"]][position : position + 2]
        assert high["value"] > 0.95
        assert following["true_ts"] == row["next_sample"]
        fits = following["value"] <= 0.7 and row["finish"] < row["next_sample"] < row["start"] + 150
        assert row["satisfies_query"] == fits
    peaks = {(row["nodeId"], row["peak"]) for row in truth}
    assert len(peaks) == len(truth)
    high = {(s["nodeId"], s["true_ts"]) for node in samples for s in samples[node] if s["value"] > 0.7}
    assert high == peaks


def test_truth_holds_every_match_of_the_query_in_the_true_world_when_tasks_do_not_overlap() -> None:
    simulation = cluster_log(1_500, nodes=5, slots=1, heavy=0.2, seed=5)
    assert simulation.truth is not None
    rows = simulation.events.to_pylist()
    samples = [row for row in rows if row["type"] == "CPU"]
    found = {
        task
        for task, (node, start, finish) in tasks_of(rows).items()
        for b in samples
        if b["nodeId"] == node and b["value"] > 0.95 and start < b["true_ts"] < finish
        for d in samples
        if d["nodeId"] == node and d["value"] <= 0.7 and finish < d["true_ts"] < start + 150
    }
    assert found
    assert found == {row["taskId"] for row in simulation.truth.to_pylist() if row["satisfies_query"]}


def test_without_heavy_tasks_nothing_peaks() -> None:
    simulation = cluster_log(200, heavy=0.0)
    assert simulation.truth is not None
    assert simulation.truth.num_rows == 0
    assert max(value for value in simulation.events["value"].to_pylist() if value is not None) <= 0.7
