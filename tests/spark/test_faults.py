"""Processes of a stream are killed at drawn moments, again and again: every match is written, and none twice.

`CEPHEID_KILLS=100` for the longest run; the moments and victims are drawn from the seed below.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import cepheid
from spark.test_stream import ABSENT, cut, events, rows

SEED = 16
KILLS = int(os.environ.get("CEPHEID_KILLS", "6"))
STREAM = """
import sys
from pathlib import Path
import cepheid
from cepheid.runners.spark.session import start_session

folder = Path(sys.argv[1])
session = start_session("local[2]", **{"spark.sql.streaming.minBatchesToRetain": 5})
session.sparkContext.setLogLevel("OFF")
df = session.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
result = cepheid.match(df.parquet(str(folder / "in")), {"absent": sys.argv[2]}, delay=20, shards=4)
writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
print("started", flush=True)
query.awaitTermination()
print("finished", flush=True)
session.stop()
"""


def descendants(process: int) -> dict[int, str]:
    """The processes that a process started, and what they are."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry.name)] = int(status[1])
                commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, IndexError):
                continue
    found, todo = {}, [process]
    while todo:
        parent = todo.pop()
        for child in [each for each, of in parents.items() if of == parent]:
            found[child] = commands.get(child, "")
            todo.append(child)
    return found


def victim(rng: random.Random, driver: int) -> tuple[str, int]:
    """A process to kill: the driver, its JVM (which holds the executor), or a Python worker."""
    others = descendants(driver)
    java = [each for each, command in others.items() if "java" in command.split(" ")[0]]
    workers = [each for each, command in others.items() if "pyspark" in command and each not in java]
    kinds = {"driver": [driver], "executor": java, "worker": workers}
    kind = rng.choice([kind for kind, known in kinds.items() if known])
    return kind, rng.choice(kinds[kind])


def run_until_killed(rng: random.Random, folder: Path, kills: dict[str, int]) -> bool:
    """Runs the stream and kills one of its processes after a while; True if it came to its end before."""
    command = [sys.executable, "-c", STREAM, str(folder), ABSENT]
    stream = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    assert stream.stdout is not None
    stream.stdout.readline()  # it has started
    deadline = time.monotonic() + rng.uniform(0.5, 12)
    while sum(kills.values()) < KILLS and stream.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if stream.poll() is None and sum(kills.values()) < KILLS:
        kind, process = victim(rng, stream.pid)
        try:
            os.kill(process, signal.SIGKILL)
            kills[kind] = kills.get(kind, 0) + 1
        except ProcessLookupError:
            pass
    told = stream.stdout.read()
    stream.wait(timeout=600)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(stream.pid, signal.SIGKILL)  # what a dead driver left behind; the group is ours
    return "finished" in told


@pytest.mark.slow
def test_whatever_is_killed_every_match_is_written_once(spark, tmp_path):
    table, rng, kills = events(3_000, seed=SEED), random.Random(SEED), {}
    cut(tmp_path / "in", table, 40, delay=20)
    for _ in range(20 * KILLS):
        if run_until_killed(rng, tmp_path, kills):
            break
    out = spark.read.parquet(str(tmp_path / "out")).toArrow()
    expected = cepheid.match(table, {"absent": ABSENT})
    print(f"killed {kills}; {expected.num_rows} matches")
    assert rows(out) == rows(expected)
    assert sum(kills.values()) > 0


@pytest.mark.slow
def test_a_sink_that_fails_and_a_source_that_replays_lose_nothing(spark, tmp_path):
    """A sink that fails after writing gets the same micro-batch again; by its number it writes over what it wrote."""
    table = events(600)
    cut(tmp_path / "in", table, 8, delay=20)
    df = spark.readStream.schema(spark.createDataFrame(table).schema).option("maxFilesPerTrigger", 1)
    result = cepheid.match(df.parquet(str(tmp_path / "in")), ABSENT, delay=20, shards=2)
    rng, failures = random.Random(SEED), []

    def write(batch, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(tmp_path / "out" / f"batch={number}"))
        if len(failures) < 5 and rng.random() < 0.5:
            failures.append(number)
            raise OSError("the sink is gone")

    for _ in range(20):
        writer = result.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
            break
        except StreamingQueryException:
            continue
    assert failures
    out = spark.read.parquet(str(tmp_path / "out")).drop("batch").toArrow()
    assert rows(out) == rows(cepheid.match(table, ABSENT))
