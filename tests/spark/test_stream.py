"""Streams on Spark give the matches of a batch, whatever the micro-batches and whatever happens in between."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming import StreamingQueryListener

import cepheid
import cepheid.metrics
from cepheid.runners.spark.stream import match_stream
from spark.packed import by_query, expected, keyed_cases, packed, plan_of

FAR = 10**6


def put(folder: Path, number: int, table: pa.Table) -> None:
    """A file that the stream sees at once and whole, after all earlier ones."""
    folder.mkdir(exist_ok=True, parents=True)
    hidden = folder / f".{number}.parquet"
    pq.write_table(table, hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:05}.parquet")


def reading(spark, folder: Path, schema):
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(result, folder: Path):
    """Runs the stream to the end of its files."""
    writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def metrics_of(progress) -> dict:
    """The numbers of the one match in a query."""
    (told,) = cepheid.metrics.observed(progress).values()
    return told


def events(n=600, seed=0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(n),
            "type": rng.choice(["A", "B", "C"], n),
            "id": rng.integers(0, 10, n),
            "x": rng.integers(0, 50, n),
        }
    )


def cut(folder: Path, table: pa.Table, files: int, delay: int, seed=0) -> None:
    """Writes the events in an order that the delay allows, and a last event that ends the time of all others."""
    arriving = in_an_order_allowed(table, delay, seed)
    size = -(-table.num_rows // files)
    for number in range(files):
        put(folder, number, arriving.slice(number * size, size))
    end = table.slice(0, 1).set_column(0, "ts", pa.array([FAR])).set_column(1, "type", pa.array(["end"]))
    put(folder, files, end)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x AND b.x < c.x WITHIN 60"
ABSENT = "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 30"


@given(
    cases=keyed_cases(window=True, event_window=False, output=False, max_queries=2, max_streams=3),
    cuts=st.lists(st.integers(0, 40), max_size=2),
    delay=st.integers(0, 8),
)
@packed
def test_streams_cut_anywhere_find_what_a_batch_finds(spark, tmp_path_factory, cases, cuts, delay):
    queries, table = cases
    plans = {f"q{number}": plan_of(query, table) for number, query in enumerate(queries)}
    check_stream(spark, tmp_path_factory.mktemp("stream"), plans, table, cuts, delay)


def check_stream(spark, folder, plans, table, cuts, delay):
    """Events that arrive in an order that the delay allows, cut at these places, give the matches of a batch."""
    table = in_an_order_allowed(table, delay)
    schema = spark.createDataFrame(table).schema
    edges = sorted({min(place, table.num_rows) for place in cuts} | {0, table.num_rows})
    files = [table.slice(a, b - a) for a, b in pairwise(edges)]
    for number, file in enumerate(files):
        put(folder / "in", number, file)
    values = {"type": "end", "s": "a", "f": 0.0, "odds": None, "ts": FAR, "lower": FAR, "upper": FAR}
    end = [pa.array([values.get(field.name, 1)], field.type) for field in table.schema]
    put(folder / "in", len(files), pa.table(end, schema=table.schema))
    result = match_stream(reading(spark, folder / "in", schema), plans, {"delay": delay, "shards": 3})
    run(result, folder)
    found = by_query(plans, spark.read.parquet(str(folder / "out")).toArrow().to_pylist())
    assert found == {name: expected(plan, table) for name, plan in plans.items()}


@pytest.mark.slow
def test_non_overlapping_matches_of_a_stream_in_three_files_are_those_of_the_batch(spark, tmp_path):
    """30 A before a B have 2**30 matches: in every interval only the reported ones may be built."""
    kinds = ["A"] * 30 + ["B"] + ["A"] * 8 + ["B"]
    table = pa.table({"ts": range(40), "type": kinds, "id": [1] * 40, "x": [0] * 40})
    cut(tmp_path / "in", table, 3, 0)
    text = "PATTERN SEQ(A+ a[], B b) WITHIN 1000 OUTPUT NON-OVERLAP"
    stream = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(stream, text, delay=0), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow().select(["match_start", "match_end"])
    assert rows(found) == rows(cepheid.match(table, text).select(["match_start", "match_end"]))
    assert found.num_rows == 2


def in_an_order_allowed(table: pa.Table, delay: int, seed=0) -> pa.Table:
    """The events in an order in which none is more than `delay` behind the newest."""
    jitter = np.random.default_rng(seed).integers(0, delay + 1, table.num_rows)
    order = np.argsort(table["ts"].to_numpy() + jitter, kind="stable")
    return table.take(pa.array(order))


@pytest.mark.slow
def test_late_events_come_out_and_are_counted(spark, tmp_path):
    table = events()
    cut(tmp_path / "in", table, 3, delay=20)
    late = pa.table({"ts": [30, 31, FAR], "type": ["A", "B", "C"], "id": [1, 1, 1], "x": [1, 2, 3]})
    put(tmp_path / "in", 9, late)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    query = run(cepheid.match(df, QUERY, delay=20, late_events=True), tmp_path)
    out = spark.read.parquet(str(tmp_path / "out"))
    assert [row["late_event"]["ts"] for row in out.where("late_event IS NOT NULL").collect()] == [30, 31]
    matches = out.where("late_event IS NULL").drop("late_event").toArrow()
    assert rows(matches) == rows(cepheid.match(table, QUERY))
    told = [metrics_of(progress) for progress in query.recentProgress if progress["numInputRows"]]
    assert sum(one["late"] for one in told) == 2
    assert sum(one["matches"] for one in told) == matches.num_rows
    assert max(one["retained"] for one in told) > 0
    assert told[-1]["retained"] == 1  # the last event, which may still begin a match


@pytest.mark.slow
def test_absence_is_reported_when_time_has_passed(spark, tmp_path):
    table = events(300)
    cut(tmp_path / "in", table, 4, delay=5)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(df, ABSENT, delay=5), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert found.num_rows > 0
    assert rows(found) == rows(cepheid.match(table, ABSENT))


@pytest.mark.slow
def test_the_delay_of_withwatermark_is_taken(spark, tmp_path):
    table = events(60)
    table = table.set_column(0, "ts", pa.array(range(60), pa.int64()).cast(pa.timestamp("s", "UTC")))
    put(tmp_path / "in", 0, table)
    df = reading(spark, tmp_path / "in", "ts timestamp, type string, id long, x long").withWatermark("ts", "9 seconds")
    query = run(cepheid.match(df, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 50 seconds"), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    known = cepheid.match(table.slice(0, 50), "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 50 seconds")
    assert found.num_rows == known.num_rows > 0
    assert query.exception() is None


@pytest.mark.slow
def test_spark_drops_no_late_event_unseen(spark, tmp_path):
    """With a watermark of Spark's own before the match, too."""
    table = events(60)
    table = table.set_column(0, "ts", pa.array(range(60), pa.int64()).cast(pa.timestamp("s", "UTC")))
    for number, part in enumerate([table.slice(20, 20), table.slice(40), table.slice(3, 4)]):
        put(tmp_path / "in", number, part)
    df = reading(spark, tmp_path / "in", "ts timestamp, type string, id long, x long").withWatermark("ts", "2 seconds")
    text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 50 seconds"
    told: list[int] = []

    class Watch(StreamingQueryListener):
        def onQueryStarted(self, event): ...
        def onQueryIdle(self, event): ...
        def onQueryTerminated(self, event): ...

        def onQueryProgress(self, event):
            numbers = event.progress.observedMetrics.get("watched")
            if numbers is not None and numbers["late"] is not None:
                told.append(numbers["late"])

    watch = Watch()
    spark.streams.addListener(watch)
    try:
        run(cepheid.match(df, text, late_events=True, metrics="watched"), tmp_path)
        late = spark.read.parquet(str(tmp_path / "out")).where("late_event IS NOT NULL").count()
        wanted = sum(kind in "AB" for kind in table.slice(3, 4)["type"].to_pylist())
        deadline = time.time() + 60
        while sum(told) < wanted and time.time() < deadline:  # listeners hear of it some time later
            time.sleep(0.2)
    finally:
        spark.streams.removeListener(watch)
    assert late == sum(told) == wanted > 0


@pytest.mark.slow
def test_silence_does_not_stop_the_clock(spark, tmp_path):
    now = int(time.time() * 1000)
    put(tmp_path / "in", 0, pa.table({"ts": [now], "type": ["A"], "id": [1], "x": [0]}))
    df = reading(spark, tmp_path / "in", "ts long, type string, id long, x long")
    text = "PATTERN SEQ(A a, !(B b)) WHERE [id] WITHIN 500 milliseconds"
    started = []
    for name, options in (("idle", {"idle": "1 second"}), ("heartbeat", {"heartbeat": True})):
        result = cepheid.match(df, text, time_unit="ms", delay=0, shards=1, **options)
        writer = result.writeStream.format("memory").queryName(name).trigger(processingTime="500 milliseconds")
        started.append(writer.option("checkpointLocation", str(tmp_path / name)).start())
    deadline = time.time() + 120
    left = {"idle", "heartbeat"}
    while left and time.time() < deadline:
        left -= {name for name in left if spark.sql(f"SELECT * FROM {name}").count() == 1}
        time.sleep(0.5)
    for query in started:
        query.stop()
        assert query.exception() is None
    assert not left


@pytest.mark.slow
def test_matches_are_events_of_another_query(spark, tmp_path):
    table = events(400)
    cut(tmp_path / "in", table, 4, delay=0)
    df = reading(spark, tmp_path / "in", "ts long, type string, id long, x long")
    pairs = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x WITHIN 30 RETURN b.ts AS ts, b.id AS id"
    twice = "PATTERN SEQ(Pair p, Pair q) WHERE [id] WITHIN 9"
    first = cepheid.match(df, pairs, delay=0).selectExpr("ts", "'Pair' AS type", "id")
    run(cepheid.match(first, twice, delay=0), tmp_path)
    known = cepheid.match(table, pairs)
    known = pa.table({"ts": known["ts"], "type": ["Pair"] * known.num_rows, "id": known["id"]})
    expected = cepheid.match(known, twice)
    # The clock of the second query moves with matches of the first, so that the last of them are not complete.
    last = max(known["ts"].to_pylist())
    complete = [row for row in expected.to_pylist() if row["match_end"] < last]
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert rows(found) == sorted(map(str, complete))
    assert found.num_rows > 0


KILLED = """
import sys, os, signal, json
from pathlib import Path
import cepheid
from cepheid.runners.spark.session import start_session

folder, killing = Path(sys.argv[1]), sys.argv[2]
os.environ["VICTIM"] = str(os.getpid()) if killing == "yes" else ""
session = start_session("local[2]", **{"spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g",
                                       "spark.local.dir": str(folder / "local")})

@cepheid.function
def kill(ts: int, x: int) -> bool:  # the same both times: with another body it would be another query
    if ts > 450 and os.environ["VICTIM"]:
        os.kill(int(os.environ["VICTIM"]), signal.SIGKILL)
    return True

df = session.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
text = "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] AND kill(b.ts, a.x) WITHIN 30"
result = cepheid.match(df.parquet(str(folder / "in")), text, delay=20, engine="reference")
writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
query.awaitTermination()
print("finished")
session.stop()
"""


@pytest.mark.slow
def test_a_killed_stream_goes_on_where_it_was(spark, tmp_path):
    table = events()
    cut(tmp_path / "in", table, 6, delay=20)

    def driver(killing: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", KILLED, str(tmp_path), killing]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    first = driver("yes")
    assert first.returncode == -signal.SIGKILL, first.stderr[-2000:]
    committed = len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*")))
    assert 0 < committed < 7
    second = driver("no")
    assert "finished" in second.stdout, second.stderr[-2000:]
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert rows(found) == rows(cepheid.match(table, ABSENT))


# --- errors ---------------------------------------------------------------------------------------------------------


def test_what_a_stream_cannot_do_is_said_before_it_starts(spark, tmp_path):
    put(tmp_path / "in", 0, events(10))
    df = reading(spark, tmp_path / "in", "ts long, type string, id long, x long")
    with pytest.raises(cepheid.CepheidError, match="no WITHIN"):
        cepheid.match(df, "PATTERN SEQ(A a, B b) WHERE [id]", delay=5)
    with pytest.raises(cepheid.DataError, match=r"how much later .* pass delay='10 seconds'"):
        cepheid.match(df, QUERY)
    with pytest.raises(cepheid.DataError, match="has a unit, but it is not known"):
        cepheid.match(df, QUERY, delay="5 seconds")
    with pytest.raises(cepheid.DataError, match="is not a length of time"):
        cepheid.match(df, QUERY, delay="soon")
    with pytest.raises(cepheid.CepheidError, match="shards=0 is not a whole number of at least 1"):
        cepheid.match(df, QUERY, delay=5, shards=0)
    with pytest.raises(cepheid.CepheidError, match="slices is an option of Spark batches"):
        cepheid.match(df, QUERY, delay=5, slices=3)
    with pytest.raises(cepheid.DataError, match="idle needs the unit"):
        cepheid.match(df, QUERY, delay=5, idle=3)


def test_other_output_modes_are_refused_by_spark(spark, tmp_path):
    put(tmp_path / "in", 0, events(10))
    df = reading(spark, tmp_path / "in", "ts long, type string, id long, x long")
    writer = cepheid.match(df, QUERY, delay=5).writeStream.format("memory").queryName("refused")
    with pytest.raises(Exception, match=r"(?i)complete"):
        writer.outputMode("complete").start().processAllAvailable()


@pytest.mark.slow
def test_the_mode_update_gives_what_append_gives(spark, tmp_path):
    table = events(120)
    cut(tmp_path / "in", table, 3, delay=5)
    found = []
    for mode in ("append", "update"):
        result = cepheid.match(reading(spark, tmp_path / "in", "ts long, type string, id long, x long"), QUERY, delay=5)
        writer = result.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
        writer = writer.outputMode(mode).option("checkpointLocation", str(tmp_path / mode))
        writer.trigger(availableNow=True).start().awaitTermination()
        assert sorted(line for part in found for line in rows(part)) == rows(cepheid.match(table, QUERY))
        found.clear()


@pytest.mark.slow
def test_a_checkpoint_of_another_query_is_refused(spark, tmp_path):
    put(tmp_path / "in", 0, events(10))
    df = reading(spark, tmp_path / "in", "ts long, type string, id long, x long")
    run(cepheid.match(df, QUERY, delay=5), tmp_path)
    put(tmp_path / "in", 1, events(20))
    with pytest.raises(Exception, match="the checkpoint belongs to another query"):
        run(cepheid.match(df, QUERY.replace("60", "70"), delay=5), tmp_path)


@pytest.mark.slow
def test_progress_tells_the_size_of_the_state(spark, tmp_path):
    table = events(400)
    cut(tmp_path / "in", table, 2, delay=0)
    df = reading(spark, tmp_path / "in", "ts long, type string, id long, x long")
    query = run(cepheid.match(df, QUERY, delay=0), tmp_path)
    told = [metrics_of(progress) for progress in query.recentProgress]
    assert told[0]["events"] == 200
    assert 0 < told[0]["retained"] <= 61  # a window of 60 steps, and one event in each
    assert told[0]["state_bytes"] > 0


@pytest.mark.slow
def test_totals_come_out_when_their_period_is_over(spark, tmp_path):
    table = events(300)
    cut(tmp_path / "in", table, files=4, delay=5)
    totals = "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 20 SUMMARISE count(*) AS n, sum(b.x) AS v, avg(a.x) AS mean"
    queries = {"one": f"{totals} EVERY 50", "each": f"{totals} BY id EVERY 50", "rows": QUERY}
    stream = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(stream, queries, delay=5), tmp_path)
    found = pq.read_table(tmp_path / "out").to_pylist()
    expected_rows = cepheid.match(table, queries).to_pylist()

    def told(row):
        return row["query"], row["match_start"], str(row[row["query"]])

    assert sorted(map(told, found), key=str) == sorted(map(told, expected_rows), key=str)
    with pytest.raises(cepheid.CepheidError, match=r"a stream has no end(.|\n)*EVERY"):
        cepheid.match(stream, totals, delay=5)
