"""TIME's cluster story: which task maxed out the CPU, when the clocks disagree (TIME §5.2, its query 1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.simulate.simulation import Simulation, check_at_least, check_share, names_by_code

TICKS_PER_SECOND = 10
"""The paper rounds all times to 0.1 second."""
LOG_HALF_WIDTH = 5
"""0.5 second: the job tracker's clock against the compute node's."""
SAMPLE_HALF_WIDTH = 75
"""7.5 seconds: a load sample speaks of its whole 15-second period."""
SAMPLE_PERIOD = 2 * SAMPLE_HALF_WIDTH

CLUSTER_QUERY = """PATTERN SEQ(TaskStart a, CPU b, TaskFinish c, CPU d)
WHERE a.taskId = c.taskId AND b.nodeId = a.nodeId AND d.nodeId = a.nodeId
  AND b.value > 95% AND d.value <= 70% AND skip_till_any_match(a, b, c, d)
WITHIN 150
RETURN a, b, c"""

_TYPES = ("TaskStart", "TaskFinish", "CPU")


class _Tasks(NamedTuple):
    node: NDArray[np.int64]
    start: NDArray[np.int64]
    finish: NDArray[np.int64]


class _Samples(NamedTuple):
    """CPU samples, node after node, period after period: sample k is of node k // periods, period k % periods."""

    instant: NDArray[np.int64]
    load: NDArray[np.float64]
    periods: int


def cluster_log(
    tasks: int = 6_800,
    *,
    nodes: int = 10,
    slots: int = 2,
    heavy: float = 0.1,
    task_seconds: float = 6.0,
    idle_seconds: float = 10.0,
    seed: int = 0,
) -> Simulation:
    """Task starts and finishes as a job tracker logs them, and one CPU sample per node and 15 seconds.

    Every node runs `slots` tasks at a time, one after the other, of median length `task_seconds`. A share `heavy` of
    them drives the CPU above 95 % at one instant strictly inside the task; the sample of that period reports the peak,
    all other samples report an ordinary load of 70 % or less. At most one task peaks per node and period.
    Times count 0.1 s. `ts` is the reported time, [lower, upper] what a reader may conclude from it, `true_ts` what
    really happened (a column that no query should use): always inside the interval.
    The truth has one row per task that maxed out the CPU: its instants, that of the node's next sample, and whether
    these four satisfy TIME's query 1, that is, come in order and within 15 seconds.
    """
    check_at_least("tasks", tasks, 1)
    check_at_least("nodes", nodes, 1)
    check_at_least("slots", slots, 1)
    check_share("heavy", heavy)
    check_at_least("task_seconds", task_seconds, 1.0)
    check_at_least("idle_seconds", idle_seconds, 0.0)
    rng = np.random.default_rng(seed)
    work = _draw_tasks(rng, tasks, nodes * slots, nodes, task_seconds, idle_seconds)
    # One period more than the tasks fill, so that every peak has a next sample.
    periods = int(work.finish.max()) // SAMPLE_PERIOD + 2
    peaking, peak = _draw_peaks(rng, work, heavy, periods)
    samples = _draw_samples(rng, nodes, periods, work.node[peaking], peak)
    description = f"TIME's cluster log: {tasks} tasks on {nodes} nodes, {peaking.size} of them max out the CPU"
    return Simulation(
        _event_table(rng, work, samples), _truth_table(work, peaking, peak, samples), description, CLUSTER_QUERY
    )


def _draw_tasks(
    rng: np.random.Generator, tasks: int, lanes: int, nodes: int, task_seconds: float, idle_seconds: float
) -> _Tasks:
    """Every lane (a slot of a node) works through its own row of tasks."""
    shape = (lanes, -(-tasks // lanes))
    ticks = TICKS_PER_SECOND * task_seconds * rng.lognormal(0.0, 0.5, shape)
    # At least 2 ticks, so that an instant lies strictly inside; at least 1 idle, so that neighbours stay apart.
    duration = np.maximum(2, np.rint(ticks)).astype(np.int64)
    idle = 1 + np.rint(rng.exponential(TICKS_PER_SECOND * idle_seconds, shape)).astype(np.int64)
    finish = np.cumsum(idle + duration, axis=1)
    node = np.broadcast_to(np.arange(lanes, dtype=np.int64)[:, None] % nodes, shape)
    # Column by column, so that the first `tasks` are the early ones of every lane.
    return _Tasks(*(values.T.reshape(-1)[:tasks] for values in (node, finish - duration, finish)))


def _draw_peaks(
    rng: np.random.Generator, work: _Tasks, heavy: float, periods: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tasks that peak and when; a period that already has a peak on that node takes no second one."""
    candidates = np.flatnonzero(rng.random(work.start.size) < heavy)
    peak = rng.integers(work.start[candidates] + 1, work.finish[candidates])
    _, first = np.unique(work.node[candidates] * periods + peak // SAMPLE_PERIOD, return_index=True)
    first.sort()
    return candidates[first], peak[first]


def _draw_samples(
    rng: np.random.Generator, nodes: int, periods: int, peak_node: NDArray[np.int64], peak: NDArray[np.int64]
) -> _Samples:
    count = nodes * periods
    instant = (np.arange(count) % periods) * SAMPLE_PERIOD + rng.integers(0, SAMPLE_PERIOD, count)
    load = rng.uniform(0.2, 0.7, count)
    peaked = peak_node * periods + peak // SAMPLE_PERIOD
    instant[peaked] = peak
    load[peaked] = rng.uniform(0.951, 1.0, peaked.size)
    return _Samples(instant, load, periods)


def _event_table(rng: np.random.Generator, work: _Tasks, samples: _Samples) -> pa.Table:
    tasks, sampled = work.start.size, samples.instant.size
    sample_number = np.arange(sampled)
    log_true = np.concatenate((work.start, work.finish))
    log_reported = log_true + rng.integers(-LOG_HALF_WIDTH, LOG_HALF_WIDTH + 1, 2 * tasks)
    sample_reported = (sample_number % samples.periods) * SAMPLE_PERIOD + SAMPLE_HALF_WIDTH
    reported = np.concatenate((log_reported, sample_reported))
    half_width = np.repeat((LOG_HALF_WIDTH, SAMPLE_HALF_WIDTH), (2 * tasks, sampled))
    is_sample = np.arange(reported.size) >= 2 * tasks
    task = np.concatenate((np.arange(tasks), np.arange(tasks), np.zeros(sampled, np.int64)))
    value = np.concatenate((np.zeros(2 * tasks), samples.load))
    order = np.argsort(reported, kind="stable")
    return pa.table(
        {
            "ts": pa.array(reported[order]),
            "lower": pa.array((reported - half_width)[order]),
            "upper": pa.array((reported + half_width)[order]),
            "true_ts": pa.array(np.concatenate((log_true, samples.instant))[order]),
            "type": names_by_code(np.repeat((0, 1, 2), (tasks, tasks, sampled))[order], _TYPES),
            "nodeId": pa.array(np.concatenate((work.node, work.node, sample_number // samples.periods))[order]),
            "taskId": pa.array(task[order], mask=is_sample[order]),
            "value": pa.array(value[order], mask=~is_sample[order]),
        }
    )


def _truth_table(work: _Tasks, peaking: NDArray[np.int64], peak: NDArray[np.int64], samples: _Samples) -> pa.Table:
    node, start, finish = work.node[peaking], work.start[peaking], work.finish[peaking]
    following = node * samples.periods + peak // SAMPLE_PERIOD + 1
    next_sample = samples.instant[following]
    calm = samples.load[following] <= 0.7
    return pa.table(
        {
            "taskId": pa.array(peaking),
            "nodeId": pa.array(node),
            "start": pa.array(start),
            "peak": pa.array(peak),
            "finish": pa.array(finish),
            "next_sample": pa.array(next_sample),
            "satisfies_query": pa.array(calm & (finish < next_sample) & (next_sample - start < SAMPLE_PERIOD)),
        }
    )
