"""A stream in processes of its own, which tests kill: its driver, what that starts, and nodes of a small cluster."""

import contextlib
import ctypes
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from cepheid.files.input_files import completed_files
from spark.test_stream import ABSENT, FAR, events, in_an_order_allowed, put

# One task at a time needs the fewest Python workers, whose start costs most; the last number: attempts at a task.
MASTERS = ("local[1]", "local[1,4]", "local[1,4]", "local[1,4]", "local[2]")
KINDS = ("driver", "worker", "executor", "disk", "worker", "worker", "disk", "worker", "worker", "worker")
DELAY = 20
AHEAD = 3  # files that lie ready for the stream, so that it always has something to do
SIZE = 60  # events of a file
FULL = 64  # bytes that a file may hold while the disk is full
PR_SET_PDEATHSIG = 1  # of Linux
PATIENCE = 600  # seconds without a micro-batch; only a stream that hangs takes them
SMALL = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
# A failed micro-batch starts again in the same session, as a supervisor would do it: a session costs more than the
# stream. With several attempts Spark repeats the task of a dead worker by itself, and the query does not see it.
STREAM = """
import json, os, sys, threading, time
from pathlib import Path
from pyspark.errors import StreamingQueryException
import cepheid
from cepheid.runners.spark.session import start_session

def end_with(parent):
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)

threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
folder, text, master, settings = Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
session = start_session(master, **{"spark.local.dir": str(folder / "local"), **settings})
session.sparkContext.setLogLevel("OFF")
# Snappy is unpacked when it is first used. If the disk is full then, its class is broken for as long as the JVM lives.
session.read.schema("ts long").parquet(str(folder / "in")).agg({"ts": "max"}).collect()
df = session.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
result = cepheid.match(df.parquet(str(folder / "in")), {"absent": text}, delay=20, shards=2)
writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
for _ in range(100):
    query = writer.start()
    try:
        while not query.awaitTermination(0.1):
            if (folder / "all").exists():
                query.processAllAvailable()
                query.stop()
                print("finished", flush=True)
        break
    except StreamingQueryException as error:
        causes = [line for line in str(error).splitlines() if "Exception" in line or "Error" in line]
        print("failed", *causes[:9], sep="\\n  ", flush=True)
        time.sleep(0.5)  # or all attempts are made while the disk is full
"""


@dataclass
class Feed:
    """Events in an order that the delay allows, in files that are put before the stream as it goes on."""

    folder: Path
    seed: int
    most: int = 1000  # files
    given: int = 0
    table: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        self.table = in_an_order_allowed(events(SIZE * self.most, self.seed), DELAY, self.seed)
        self.given = len(list((self.folder / "in").glob("[0-9]*")))  # of a stream that goes on

    def keep_ahead(self, done: int) -> None:
        """Puts down files till a few more lie there than micro-batches are done."""
        while self.given < min(done + AHEAD, self.most):
            put(self.folder / "in", self.given, self.table.slice(SIZE * self.given, SIZE))
            self.given += 1

    def end(self) -> pa.Table:
        """A last event ends the time of all others; these are what a batch has to look at."""
        end = self.table.slice(0, 1).set_column(0, "ts", pa.array([FAR])).set_column(1, "type", pa.array(["end"]))
        put(self.folder / "in", self.given, end)
        self.most = self.given
        (self.folder / "all").touch()
        return self.table.slice(0, SIZE * self.given)


@dataclass
class Driver:
    """A stream in a process of its own, and what it starts."""

    folder: Path
    feed: Feed
    process: subprocess.Popen
    begun: float

    @classmethod
    def start(cls, feed: Feed, master: str, settings: Mapping[str, str] = SMALL) -> "Driver":
        folder = feed.folder
        feed.keep_ahead(commits(folder) + 1)
        command = [sys.executable, "-c", STREAM, str(folder), ABSENT, master, json.dumps(dict(settings))]
        with (folder / "told").open("w") as told, (folder / "errors").open("w") as errors:
            process = subprocess.Popen(command, stdout=told, stderr=errors, start_new_session=True)
        return cls(folder, feed, process, time.monotonic())

    def told(self) -> str:
        return (self.folder / "told").read_text()

    def commits(self) -> int:
        return commits(self.folder)

    def wait_for(self, done: Callable[[], object]) -> bool:
        """Waits for something; False if the driver came to its end before."""
        reached, self.begun = self.commits(), time.monotonic()
        while self.process.poll() is None and not done():
            self.feed.keep_ahead(self.commits() + 1)
            if self.commits() > reached:
                reached, self.begun = self.commits(), time.monotonic()
            if time.monotonic() - self.begun > PATIENCE:
                for java in self.victims("executor"):  # where its threads wait
                    os.kill(java, signal.SIGQUIT)
                time.sleep(5)
                pytest.fail(f"no progress: {(self.folder / 'errors').read_text()[-2000:]} {self.told()}")
            time.sleep(0.05)
        return self.process.poll() is None

    def finish(self) -> pa.Table:
        """Waits till the stream has seen all; gives the events that it was given."""
        given = self.feed.end()
        self.wait_for(lambda: "finished" in self.told())
        assert "finished" in self.told(), f"{self.told()} {(self.folder / 'errors').read_text()[-2000:]}"
        return given

    def victims(self, kind: str) -> list[int]:
        """The driver, its JVM (which holds the executor), or the Python processes that the JVM started."""
        others = commands_of(self.process)
        java = [each for each, command in others.items() if "java" in command.split(" ")[0]]
        workers = [each for each, command in others.items() if "pyspark.daemon" in command]
        return {"driver": [self.process.pid], "executor": java, "disk": java, "worker": workers}[kind]

    def end(self) -> None:
        """Ends what a dead driver left behind."""
        end_session(self.process)


def written(folder: Path) -> pa.Table:
    """What a stream has written: the files that it completed."""
    return pa.concat_tables([pq.read_table(path) for path in completed_files(folder)])


def commits(folder: Path) -> int:
    """The number of the last micro-batch that is done: Spark removes old ones."""
    return max((int(each.name) for each in (folder / "checkpoint" / "commits").glob("[0-9]*")), default=-1)


def commands_of(leader: subprocess.Popen) -> dict[int, str]:
    """The processes of a session and what they are; those whose parent is dead, too."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if int(status[3]) == leader.pid:
                    found[int(entry.name)] = command
            except (OSError, IndexError):
                continue
    return found


def end_session(leader: subprocess.Popen) -> None:
    """Kills all processes of a session, which no other process is in, at once."""
    for each in commands_of(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    leader.wait()


def kill_all(
    rng: random.Random,
    feed: Feed,
    kinds: list[str],
    kills: Counter[str],
    seconds: float = float("inf"),
    finish: bool = False,
) -> pa.Table | None:
    """Kills what the kinds say, from the last to the first; the events that the stream was given, if it came to an end.

    If time runs out before, whatever is left of the stream is killed, and it goes on from its checkpoint another time;
    or, if it is to finish, it comes to its end without further kills.
    """
    begun = time.monotonic()
    driver = Driver.start(feed, rng.choice(MASTERS))
    try:
        while kinds:
            if time.monotonic() - begun > seconds:
                if finish:
                    break
                return None
            kind = kinds[-1]
            if kill_one(rng, driver, kind):  # if not, it ended by itself, and the next one is killed
                kills[kinds.pop()] += 1
            if kind in ("driver", "executor") or driver.process.poll() is not None:
                time.sleep(rng.uniform(0, 1))  # what the others do without it
                driver.end()
                driver = Driver.start(feed, rng.choice(MASTERS))
        return driver.finish()
    finally:
        driver.end()


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


# --- a cluster --------------------------------------------------------------------------------------------------------


@dataclass
class Cluster:
    """Spark's standalone master and some nodes, each with its own processes, all on this machine."""

    folder: Path
    master: str = ""
    head: subprocess.Popen | None = None
    nodes: list[subprocess.Popen] = field(default_factory=list)
    started: int = 0

    def __enter__(self) -> "Cluster":
        self.folder.mkdir(parents=True)
        port, page = free_port(), free_port()
        self.master = f"spark://127.0.0.1:{port}"
        where = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
        self.head = self.daemon("master", "org.apache.spark.deploy.master.Master", *where)
        return self

    def __exit__(self, *_: object) -> None:
        for each in [*self.nodes, self.head]:
            if each is not None:
                end_session(each)

    def add_node(self) -> None:
        """A node that runs one task at a time."""
        self.started += 1
        work = ["--work-dir", str(self.folder / f"node-{self.started}")]
        place = ["--host", "127.0.0.1", "--webui-port", str(free_port()), "--cores", "1", "--memory", "700m"]
        name = "org.apache.spark.deploy.worker.Worker"
        self.nodes.append(self.daemon(f"node-{self.started}", name, *place, *work, self.master))

    def daemon(self, name: str, java_class: str, *arguments: str) -> subprocess.Popen:
        home = Path(pyspark.__file__).parent
        own = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        own |= {"SPARK_DAEMON_MEMORY": "200m", "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
        own |= {"SPARK_LOCAL_DIRS": str(self.folder / f"{name}-local"), "SPARK_LOG_DIR": str(self.folder)}
        own |= {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
        with (self.folder / f"{name}.log").open("w") as log:
            command = [str(home / "bin" / "spark-class"), java_class, *arguments]
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env=os.environ | own,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    def executors(self) -> list[int]:
        """The processes that run tasks."""
        return [
            each
            for node in self.nodes
            for each, command in commands_of(node).items()
            if "CoarseGrainedExecutorBackend" in command and "java" in command.split(" ")[0]
        ]

    def workers(self) -> list[int]:
        """Their Python processes."""
        return [each for node in self.nodes for each, told in commands_of(node).items() if "pyspark.daemon" in told]

    def kill_node(self, chosen: subprocess.Popen) -> None:
        """A node is gone with everything on it: its daemon, its executors, its Python workers, its shuffle files."""
        self.nodes.remove(chosen)
        end_session(chosen)


def end_with_parent() -> None:
    """The process that calls this is killed when the one that started it ends, in whatever way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
