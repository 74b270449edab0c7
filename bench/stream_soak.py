"""A stream on Spark for a long time: is the memory of all its processes flat while windows pass?"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.stream_steps import resident_bytes, slope_of

ADVANCE = 10_000  # milliseconds of event time in a micro-batch: 360 of them are an hour
WINDOW = 60  # seconds
EVERY = 10  # micro-batches between two looks
TEXT = "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] AND a.x > b.x + 90 WITHIN {} seconds"
# The heap is touched at the start, so that only what lies beside it can make the process grow.
SETTINGS = {
    "spark.driver.memory": "600m",
    "spark.driver.extraJavaOptions": "-Xms600m -XX:+AlwaysPreTouch -XX:+UseSerialGC",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Spark keeps what its pages would show of the last 1,000 micro-batches, pages or not, and grows till then.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "100",
    "spark.python.authenticate.socketTimeout": "300s",  # a busy machine is slow to start Python
}


def run_spark_soak(batches: int, events: int, minutes: float) -> None:
    """The memory of the driver, of its JVM (and of that the heap after a collection) and of the Python workers."""
    import cepheid
    from cepheid.runners.spark.session import start_session

    with tempfile.TemporaryDirectory() as folder:
        session = start_session("local[1]", **SETTINGS, **{"spark.local.dir": folder})
        source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", events).option("numPartitions", 1)
        numbers = source.option("startTimestamp", 0).option("advanceMillisPerBatch", ADVANCE).load()
        stream = numbers.selectExpr(
            f"timestamp_millis(unix_millis(timestamp) + value % {events} * {ADVANCE // events}) AS ts",
            "element_at(array('A', 'B', 'C', 'D'), CAST(1 + pmod(hash(value, 1), 4) AS INT)) AS type",
            "pmod(hash(value, 2), 50) AS id",
            "pmod(hash(value, 3), 100) AS x",
        )
        result = cepheid.match(stream, {"absent": TEXT.format(WINDOW)}, delay="1 second")
        writer = result.writeStream.format("noop").option("checkpointLocation", folder + "/checkpoint")
        query, seen, begun = writer.start(), [], time.monotonic()
        while time.monotonic() - begun < 60 * minutes and (not seen or seen[-1][0] < batches):
            query.awaitTermination(0.2)
            told = query.lastProgress
            if told is not None and told["batchId"] >= (seen[-1][0] + EVERY if seen else 1):
                seen.append((told["batchId"], *memory_of_all(session), *state_of(told)))
        took = time.monotonic() - begun
        query.stop()
        session.stop()
    report(seen, events, took)


def report(seen: list[tuple[int, ...]], events: int, took: float) -> None:
    """The slope of everything that was looked at, without the first third: what starting takes does not count."""
    last = seen[-1][0]
    hours = last * ADVANCE / 3_600_000
    print(f"{last:,} micro-batches of {events} events in {took:.0f} s: {hours:.1f} hours of event time,", end=" ")
    print(f"{last * ADVANCE // (1000 * WINDOW):,} windows of {WINDOW} s passed")
    kept = seen[len(seen) // 3 :]
    x, *columns = (np.array(column, float) for column in zip(*kept, strict=True))
    names = ("driver", "JVM", "heap of the JVM", "Python workers", "retained events", "state, bytes")
    for name, values in zip(names, columns, strict=True):
        slope, error = slope_of(x, values)
        grown = slope * (x[-1] - x[0])
        print(f"{name:16} mean {values.mean():14,.0f}, slope {slope:10.2f} ± {error:.2f} per micro-batch,", end=" ")
        print(f"{100 * grown / values.mean():+.2f}% from the first to the last of {len(x)} looks")
    holds = events * 1000 * WINDOW // ADVANCE
    print(f"a window holds {holds:,} events, of which the state keeps {columns[-2].mean() / holds:.2f}")


def memory_of_all(session: Any) -> tuple[int, int, int, int]:
    """Bytes of this process, of the JVM below it, of its heap after a collection, and of all Python workers."""
    jvm = session._jvm
    jvm.java.lang.System.gc()
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    java = workers = 0
    for number, command in below(os.getpid()).items():
        try:
            size = resident_bytes(number)
        except FileNotFoundError:  # Spark ends workers that have had nothing to do
            continue
        if "java" in command.split(" ")[0]:
            java += size
        else:
            workers += size
    return resident_bytes(), java, int(heap), workers


def state_of(told: Any) -> tuple[int, int]:
    """The retained events and their bytes, as the stream tells them."""
    from cepheid.metrics import observed

    (numbers,) = observed(told).values()
    return int(numbers["retained"] or 0), int(numbers["state_bytes"] or 0)


def below(process: int) -> dict[int, str]:
    """The processes that a process started, and those that these started, with their commands."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    found, todo = {}, [process]
    while todo:
        above = todo.pop()
        children = [each for each, parent in parents.items() if parent == above]
        found.update({each: commands[each] for each in children})
        todo += children
    return found
