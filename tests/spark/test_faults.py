"""Processes of a stream are killed at drawn moments, again and again: every match is written, and none twice.

`CEPHEID_KILLS=100` for the longest run, in runs of ten; the moments and victims are drawn from the seed of each. Most
kills take a Python worker or let the disk be full for a while, which a session survives; one in five takes the driver
or its JVM, and costs the start of another session. `python -m spark.kills` does the same to one stream for as long as
one likes, with pauses.
"""

import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import cepheid
from spark.killing import KINDS, SMALL, Cluster, Driver, Feed, commits, kill_all, written
from spark.test_stream import ABSENT, cut, events, rows

SEED = 16
KILLS = int(os.environ.get("CEPHEID_KILLS", "10"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED, SEED + -(-KILLS // len(KINDS))))
def test_whatever_is_killed_every_match_is_written_once(tmp_path, seed):
    """Workers, the driver, its JVM, and a disk that is full for a while."""
    rng, feed, kills = random.Random(seed), Feed(tmp_path, seed), Counter()
    kinds = list(KINDS)
    rng.shuffle(kinds)
    given = kill_all(rng, feed, kinds, kills)
    out = written(tmp_path / "out")
    print(f"seed {seed}: {dict(kills)}, {commits(tmp_path) + 1} micro-batches, {out.num_rows} matches")
    assert rows(out) == rows(cepheid.match(given, {"absent": ABSENT}))
    assert kills.total() == len(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_a_cluster_whose_nodes_are_killed_writes_every_match_once(tmp_path, seed):
    """A node goes with its executor, its Python workers and what it has shuffled; another one comes after a while."""
    rng, kills, begun = random.Random(seed), Counter(), time.monotonic()
    kinds = ["node", "cluster executor", "node", "cluster executor", "cluster worker"]
    rng.shuffle(kinds)
    settings = SMALL | {"spark.executor.memory": "500m", "spark.sql.shuffle.partitions": "2"}
    settings |= {"spark.executor.extraJavaOptions": SMALL["spark.driver.extraJavaOptions"]}
    with Cluster(tmp_path / "cluster") as cluster:
        cluster.add_node()
        cluster.add_node()
        driver = Driver.start(Feed(tmp_path, seed), cluster.master, settings)
        try:
            for kind in kinds:
                goal = driver.commits() + rng.randint(1, 2)
                both = 1 if kills.total() == 0 else 2
                there = driver.wait_for(lambda: driver.commits() >= goal and len(cluster.executors()) >= both)  # noqa: B023
                assert there, (tmp_path / "errors").read_text()[-2000:]
                time.sleep(rng.uniform(0, 1))
                if kind == "node":
                    cluster.kill_node(rng.choice(cluster.nodes))
                    time.sleep(rng.uniform(0, 3))
                    cluster.add_node()
                else:
                    known = cluster.executors() if kind == "cluster executor" else cluster.workers()
                    os.kill(rng.choice(known), signal.SIGKILL)
                kills[kind] += 1
            given, told = driver.finish(), driver.told()
        finally:
            driver.end()
    out = written(tmp_path / "out")
    done = f"{dict(kills)}, {driver.commits() + 1} micro-batches, {out.num_rows} matches"
    print(f"cluster, seed {seed}: {done}, {told.count('failed')} times begun anew, {time.monotonic() - begun:.0f} s")
    assert rows(out) == rows(cepheid.match(given, {"absent": ABSENT}))


@pytest.mark.slow
def test_two_drivers_on_one_checkpoint_write_every_match_once(tmp_path):
    """The second is started by mistake, while the first still runs: Spark's logs let one of them do a micro-batch."""
    feed = Feed(tmp_path, SEED, most=60)
    first = Driver.start(feed, "local[1,4]")
    try:
        assert first.wait_for(lambda: first.commits() >= 1)
        second = Driver.start(feed, "local[1,4]")
        try:
            both = second.commits() + 4
            assert second.wait_for(lambda: second.commits() >= both)
            given = second.finish()
        finally:
            second.end()
    finally:
        first.end()
    assert rows(written(tmp_path / "out")) == rows(cepheid.match(given, {"absent": ABSENT}))


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
