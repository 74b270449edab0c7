"""Processes of a stream are killed at drawn moments, again and again: every match is written, and none twice.

`CEPHEID_KILLS=100` for the longest run; the moments and victims are drawn from the seed below. Most kills take a Python
worker or let the disk be full for a while, which a session survives; one in five takes the driver or its JVM, and costs
the start of another session.
"""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import cepheid
from spark.test_stream import ABSENT, cut, events, rows

SEED = 16
KILLS = int(os.environ.get("CEPHEID_KILLS", "6"))
KINDS = ("driver", "worker", "executor", "disk", "worker", "worker", "disk", "worker", "worker", "worker")
FULL = 64  # bytes that a file may hold while the disk is full
PATIENCE = 600  # seconds without a micro-batch; only a stream that hangs takes them
# A failed micro-batch starts again in the same session, as a supervisor would do it: a session costs more than the
# stream. With several attempts Spark repeats the task of a dead worker by itself, and the query does not see it.
STREAM = """
import os, sys, threading, time
from pathlib import Path
from pyspark.errors import StreamingQueryException
import cepheid
from cepheid.runners.spark.session import start_session

def end_with(parent):
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)

threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
folder, text, master = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
session = start_session(master, **{
    "spark.driver.memory": "1g",
    "spark.local.dir": str(folder / "local"),
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})
session.sparkContext.setLogLevel("OFF")
df = session.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
result = cepheid.match(df.parquet(str(folder / "in")), {"absent": text}, delay=20, shards=2)
writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
for _ in range(100):
    query = writer.start()
    try:
        query.awaitTermination()
        print("finished", flush=True)
        break
    except StreamingQueryException:
        print("failed", flush=True)
"""


@dataclass
class Driver:
    """A stream in a process of its own, and what it starts."""

    folder: Path
    process: subprocess.Popen
    begun: float

    @classmethod
    def start(cls, folder: Path, master: str) -> "Driver":
        command = [sys.executable, "-c", STREAM, str(folder), ABSENT, master]
        with (folder / "told").open("w") as told, (folder / "errors").open("w") as errors:
            process = subprocess.Popen(command, stdout=told, stderr=errors, start_new_session=True)
        return cls(folder, process, time.monotonic())

    def told(self) -> str:
        return (self.folder / "told").read_text()

    def commits(self) -> int:
        """The number of the last micro-batch that is done: Spark removes old ones."""
        return max((int(each.name) for each in (self.folder / "checkpoint" / "commits").glob("[0-9]*")), default=-1)

    def wait_for(self, done: Callable[[], object]) -> bool:
        """Waits for something; False if the driver came to its end before."""
        reached = self.commits()
        while self.process.poll() is None and not done():
            if self.commits() > reached:
                reached, self.begun = self.commits(), time.monotonic()
            if time.monotonic() - self.begun > PATIENCE:
                for java in self.victims("executor"):  # where its threads wait
                    os.kill(java, signal.SIGQUIT)
                time.sleep(5)
                pytest.fail(f"no progress: {(self.folder / 'errors').read_text()[-2000:]} {self.told()}")
            time.sleep(0.02)
        return self.process.poll() is None

    def victims(self, kind: str) -> list[int]:
        """The driver, its JVM (which holds the executor), or the Python processes that the JVM started."""
        others = descendants(self.process.pid)
        java = [each for each, command in others.items() if "java" in command.split(" ")[0]]
        workers = [each for each, command in others.items() if "pyspark.daemon" in command]
        return {"driver": [self.process.pid], "executor": java, "disk": java, "worker": workers}[kind]

    def end(self) -> None:
        """Ends what a dead driver left behind: all processes of its session, which no other process is in."""
        for each in session_of(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.process.wait()


def processes() -> dict[int, tuple[int, int, str]]:
    """Parent, session and command of each process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(entry.name)] = int(status[1]), int(status[3]), command
            except (OSError, IndexError):
                continue
    return found


def session_of(leader: int) -> list[int]:
    return [each for each, (_, session, _) in processes().items() if session == leader]


def descendants(process: int) -> dict[int, str]:
    """The processes that a process started, and what they are."""
    known, found, todo = processes(), {}, [process]
    while todo:
        parent = todo.pop()
        for child in [each for each, (of, _, _) in known.items() if of == parent]:
            found[child] = known[child][2]
            todo.append(child)
    return found


def kill_one(rng: random.Random, driver: Driver, kind: str) -> bool:
    """Kills one process some micro-batches and a part of one later; False if there is none left to kill."""
    goal, pause = driver.commits() + rng.randint(0, 1), rng.uniform(0, 1)
    if not driver.wait_for(lambda: driver.commits() >= goal and driver.victims("worker")):
        return False
    time.sleep(pause)
    for chosen in rng.sample(known := driver.victims(kind), len(known)):
        with contextlib.suppress(ProcessLookupError):
            if kind == "disk":
                fill_disk(chosen, rng.uniform(1, 3))
            else:
                os.kill(chosen, signal.SIGKILL)
            return True
    return False


def fill_disk(process: int, seconds: float) -> None:
    """For some time no file that the process writes can become longer than a few bytes."""
    _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (FULL, most))
    time.sleep(seconds)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.slow
def test_whatever_is_killed_every_match_is_written_once(spark, tmp_path):
    """Workers, the driver, its JVM, and a disk that is full for a while."""
    rng, kills, begun = random.Random(SEED), Counter(), time.monotonic()
    files = 2 * KILLS + 6
    table = events(60 * files, seed=SEED)
    cut(tmp_path / "in", table, files, delay=20)
    kinds = [KINDS[number % len(KINDS)] for number in range(KILLS)]
    rng.shuffle(kinds)
    driver = Driver.start(tmp_path, "local[2]")
    try:
        while kinds and "finished" not in driver.told():
            driver.begun, kind = time.monotonic(), kinds[-1]
            if kill_one(rng, driver, kind):  # if not, it ended by itself, and the next one is killed
                kills[kinds.pop()] += 1
                print(f"{time.monotonic() - begun:.0f} s: {kind} killed after micro-batch {driver.commits()}")
            if kind in ("driver", "executor") or driver.process.poll() is not None:
                time.sleep(rng.uniform(0, 1))  # what the others do without it
                driver.end()
                driver = Driver.start(tmp_path, rng.choice(["local[2]", "local[2,3]"]))
        driver.begun = time.monotonic()
        driver.wait_for(lambda: "finished" in driver.told())
        assert "finished" in driver.told(), (tmp_path / "errors").read_text()[-2000:]
    finally:
        driver.end()
    out = spark.read.parquet(str(tmp_path / "out")).toArrow()
    expected = cepheid.match(table, {"absent": ABSENT})
    print(f"killed {dict(kills)} over {files + 1} files in {time.monotonic() - begun:.0f} s; {out.num_rows} matches")
    assert rows(out) == rows(expected)
    assert kills.total() == KILLS


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", ["state gone", "state cut", "state altered", "commit gone", "offsets gone", "record"]
)
def test_a_damaged_checkpoint_gives_an_error_or_the_right_matches(spark, tmp_path, damage):
    """A file of the checkpoint is missing, cut short or altered while the stream is stopped."""
    table = events(240)
    cut(tmp_path / "all", table, 4, delay=20)
    files = sorted((tmp_path / "all").iterdir())
    (tmp_path / "in").mkdir()
    df = spark.readStream.schema(spark.createDataFrame(table).schema).option("maxFilesPerTrigger", 1)
    result = cepheid.match(df.parquet(str(tmp_path / "in")), {"absent": ABSENT}, delay=20, shards=2)

    def run() -> bool:
        writer = result.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except StreamingQueryException:
            return False
        return True

    for each in files[:3]:
        shutil.move(each, tmp_path / "in")
    assert run()
    harm(tmp_path / "checkpoint", damage)
    for each in files[3:]:
        shutil.move(each, tmp_path / "in")
    # Spark keeps loaded states: as after a new start, they have to be read.
    spark.sparkContext._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    if run():
        out = spark.read.parquet(str(tmp_path / "out")).toArrow()
        assert rows(out) == rows(cepheid.match(table, {"absent": ABSENT})), damage
    else:
        assert damage != "record"


def harm(checkpoint: Path, damage: str) -> None:
    """Does something to the newest file of a kind, and to the check sum that Hadoop keeps beside it."""
    what, how = damage.split(" ")[0], damage.split(" ")[-1]
    places = {"state": "state/0/*/*.changelog", "commit": "commits/[0-9]*", "offsets": "offsets/[0-9]*"}
    found = sorted(checkpoint.glob(places.get(what, "cepheid-stream.json")), key=lambda each: each.stat().st_mtime)
    for each in found[-2:] if what == "state" else found[-1:]:
        (each.parent / f".{each.name}.crc").unlink(missing_ok=True)
        held = each.read_bytes()
        if how == "gone":
            each.unlink()
        elif how == "cut":
            each.write_bytes(held[: len(held) // 2])
        else:
            each.write_bytes(bytes(byte ^ 0x55 for byte in held))
