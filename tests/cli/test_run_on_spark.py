"""`cepheid run` on Spark: the same matches as in this process, from batches and from streams."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.cli.progress import StreamNumbers, stream_numbers
from cepheid.cli.spark_run import Task
from cepheid.cli.spark_session import in_our_words
from cepheid.cli.spark_tables import kafka_topic
from cepheid.errors import CepheidError, DataError
from cepheid.files.roles import Roles
from cepheid.runners.spark.records import java_pattern
from cepheid.simulate import retail_visits
from cli.conftest import Cepheid

DAY = retail_visits(200, loss=0.0, theft=0.2, timestamps=True, seed=1)
SETTINGS = ["--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]"]


def rows(text: str) -> list[str]:
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in text.splitlines())


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    """A directory with the day in two files, in order."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    half = DAY.events.num_rows // 2
    for number, part in enumerate((DAY.events.slice(0, half), DAY.events.slice(half))):
        path = folder / f"part-{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_700_000_000 + 60 * number,) * 2)
    return folder


@pytest.mark.slow
@pytest.mark.spark
def test_batch_stream_and_local_agree(cepheid_command: Cepheid, incoming: Path, tmp_path: Path) -> None:
    here = cepheid_command("run", DAY.query, "-i", incoming)
    assert here.code == 0, here.err
    batch = cepheid_command("run", DAY.query, "-i", incoming, *SETTINGS)
    assert batch.code == 0, batch.err
    assert rows(batch.out) == rows(here.out)
    assert f"in {DAY.events.num_rows} events" in batch.err
    flags = ["--stream", "--trigger", "available-now", "--delay", "1 minute", "--files-per-batch", "1"]
    stream = cepheid_command(
        "run",
        DAY.query,
        "-i",
        incoming,
        *SETTINGS,
        *flags,
        "-o",
        tmp_path / "out.csv",
        "--checkpoint",
        tmp_path / "state",
    )
    assert stream.code == 0, stream.err
    written = [pacsv.read_csv(path) for path in (tmp_path / "out.csv").glob("*.csv") if path.stat().st_size]
    # What ended less than the delay before the last event is not known yet: earlier events may still come.
    watermark = DAY.events["ts"][-1].as_py() - timedelta(minutes=1)
    known = [row for row in here.out.splitlines() if datetime.fromisoformat(json.loads(row)["match_end"]) <= watermark]
    assert sum(part.num_rows for part in written) == len(known) > 20
    again = cepheid_command(
        "run",
        DAY.query,
        "-i",
        incoming,
        *SETTINGS,
        *flags,
        "-o",
        tmp_path / "out.csv",
        "--checkpoint",
        tmp_path / "state",
    )
    assert "0 matches" in again.err  # it goes on where it stopped


@pytest.mark.slow
@pytest.mark.spark
def test_partition_columns_several_queries_and_functions(cepheid_command: Cepheid, tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "part-0.csv").write_text("ts,type,id\n1,A,7\n2,B,7\n")
    functions = tmp_path / "mine.py"
    functions.write_text("import cepheid\n\n@cepheid.function\ndef next_of(x: int) -> int:\n    return x + 1\n")
    query = "PATTERN SEQ(A a, B b) WHERE [id, day] AND b.ts = next_of(a.ts) WITHIN 5"
    arguments = [
        "-q",
        f"pairs={query}",
        "-q",
        "ones=PATTERN A a",
        "--functions",
        functions,
        "-i",
        f"{tmp_path}/in/day=*",
    ]
    here = cepheid_command("run", *arguments)
    target = tmp_path / "found"
    spark = cepheid_command("run", *arguments, *SETTINGS, "-o", target, "--partition-by", "query")
    assert (here.code, spark.code) == (0, 0), here.err + spark.err
    days = [json.loads(line)["pairs"]["a"]["day"] for line in here.out.splitlines() if '"query": "pairs"' in line]
    assert sorted(days) == [1, 2]
    assert sorted(row["a"]["day"] for row in pq.read_table(target / "query=pairs")["pairs"].to_pylist()) == [1, 2]


@pytest.mark.slow
@pytest.mark.spark
def test_errors_of_workers_and_sources_are_sentences(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(DAY.events, path)
    column = cepheid_command("run", "PATTERN SEQ(A a, B b) WHERE [tag] WITHIN 1 hour", "-i", path, *SETTINGS)
    assert (column.code, "Traceback" in column.err) == (1, False)
    assert "did you mean" in column.err
    kafka = cepheid_command(
        "run", DAY.query, "-i", "kafka://broker:9092/readings", *SETTINGS, "--stream", "--delay", "1 minute",
        "--schema", "ts timestamp, type string, tag_id long",
    )  # fmt: skip
    assert kafka.code == 1
    assert "spark-sql-kafka" in kafka.err


def test_streams_need_what_only_the_user_knows(cepheid_command: Cepheid, incoming: Path) -> None:
    ran = cepheid_command("run", DAY.query, "-i", incoming, "--stream", "-o", "found.parquet")
    assert ran.code == 1
    assert "--checkpoint" in ran.err


def test_topics_patterns_and_settings() -> None:
    assert kafka_topic("kafka://a:1,b:2/topic") is not None
    with pytest.raises(CepheidError, match="write kafka://broker:9092/topic"):
        kafka_topic("kafka://broker:9092")
    assert java_pattern("%Y-%m-%dT%H:%M:%S.%f") == "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    with pytest.raises(CepheidError, match="%Q, which Spark does not know"):
        java_pattern("%Q")


def test_worker_errors_keep_their_kind() -> None:
    told = in_our_words(
        RuntimeError("Job aborted:\n  cepheid.errors.DataError: column 'ts', row 3: the time is null\n\n at")
    )
    assert isinstance(told, DataError)
    assert str(told) == "column 'ts', row 3: the time is null"
    assert "Spark failed: disk full" in str(in_our_words(RuntimeError("\ndisk full\n at java")))


def test_what_java_printed_is_the_reason() -> None:
    log = 'WARNING: x\nException in thread "main" org.apache.spark.SparkException: Master must be local\n\tat org'
    told = str(in_our_words(RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"), log))
    assert told.startswith("Spark did not start: Master must be local; --master is local[*]")
    java = "An error occurred while calling o43.load.\n: org.apache.spark.SparkException: no space\n\tat org.apache"
    assert str(in_our_words(RuntimeError(java))) == "Spark failed: no space"
    delta = "calling o4.load.\n: SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find: delta."
    assert "io.delta:delta-spark" in str(in_our_words(RuntimeError(delta)))


def test_results_of_spark_do_not_replace_anything_else(cepheid_command: Cepheid, incoming: Path) -> None:
    kept = incoming.parent / "kept.parquet"
    kept.mkdir()
    (kept / "notes.txt").write_text("precious")
    ran = cepheid_command("run", DAY.query, "-i", incoming, *SETTINGS, "-o", kept)
    assert (ran.code, (kept / "notes.txt").read_text()) == (1, "precious")
    assert "is a directory that holds notes.txt; name another" in ran.err
    whole = incoming.rename(incoming.parent / "in.parquet")
    above = cepheid_command("run", DAY.query, "-i", whole / "part-0.parquet", *SETTINGS, "-o", whole)
    assert "is the input, and would overwrite it" in above.err


def test_a_stream_goes_on_with_its_own_checkpoint_only(
    cepheid_command: Cepheid, incoming: Path, tmp_path: Path
) -> None:
    (tmp_path / "found.parquet" / "_spark_metadata").mkdir(parents=True)
    flags = ("--stream", "--delay", "1 minute", "-o", tmp_path / "found.parquet", "--checkpoint", tmp_path / "new")
    ran = cepheid_command("run", DAY.query, "-i", incoming, *flags)
    assert ran.code == 1
    assert "was written by a stream with another checkpoint" in ran.err
    inside = (*flags[:-3], incoming / "found.parquet", *flags[-2:])
    assert "is read as a stream" in cepheid_command("run", DAY.query, "-i", incoming, *inside).err


def test_a_checkpoint_belongs_to_its_query(cepheid_command: Cepheid, incoming: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    task = Task(cepheid.query(DAY.query), [], Roles(), {})
    (tmp_path / "state" / "cepheid.json").write_text(task.told())
    flags = ("--stream", "--delay", "1 minute", "-o", tmp_path / "found.parquet", "--checkpoint", tmp_path / "state")
    ran = cepheid_command("run", "PATTERN SEQ(Shelf a, Exit b) WITHIN 1 hour", "-i", incoming, *flags)
    assert ran.code == 1
    assert "belongs to another query" in ran.err


@pytest.mark.slow
@pytest.mark.spark
def test_interrupting_the_start_leaves_no_java_behind(incoming: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cepheid.cli", "run", DAY.query, "-i", str(incoming), *SETTINGS],
        stdout=subprocess.PIPE,  # which a Java that lives on would keep open
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    while not list(tmp_path.glob("cepheid-spark-*.log")):  # made when Java is about to be started
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=180)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert not list(tmp_path.glob("cepheid-spark-*.log"))


@pytest.mark.slow
@pytest.mark.spark
def test_interrupting_a_stream_ends_it_in_good_order(incoming: Path) -> None:
    command = [sys.executable, "-m", "cepheid.cli", "run", DAY.query, "-i", str(incoming), *SETTINGS]
    process = subprocess.Popen(
        [*command, "--stream", "--delay", "1 minute"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()  # a match: the stream is running
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert json.loads(first)["match_start"]
    assert "Traceback" not in told
    assert "matches in" in told


def test_numbers_of_a_stream() -> None:
    first = {"batchId": 0, "numInputRows": 10, "eventTime": {"watermark": "2024-01-01T08:00:00Z"}}
    second = {"batchId": 1, "numInputRows": 5, "observedMetrics": {"cepheid": {"matches": 3, "late": 1, "retained": 7}}}
    found = stream_numbers([first, second, first])
    assert found == StreamNumbers(2, 15, 1, 3, 0.0, "2024-01-01T08:00:00Z", 0, 7)
    assert "1 late" in str(found)


@pytest.mark.slow
@pytest.mark.spark
def test_csv_on_spark_is_read_and_written_as_here(cepheid_command: Cepheid, tmp_path: Path) -> None:
    """Leading zeros, texts that mean NULL, formulas; and a result that is replaced, beside a file that stays."""
    (tmp_path / "in.csv").write_text('ts,type,id,s\n1,A,7,"=1+1"\n2,A,007,NA\n3,A,8,\n')
    query = "PATTERN A a RETURN a.id AS id, a.s AS s"
    target = tmp_path / "found.csv"
    more = ("--null", "NA", "--escape-formulas")
    here = cepheid_command("run", query, "-i", tmp_path / "in.csv", *more)
    assert [json.loads(line)["id"] for line in here.out.splitlines()] == ["7", "007", "8"]
    for again in (False, True):
        flags = ["--overwrite"] if again else []
        ran = cepheid_command("run", query, "-i", tmp_path / "in.csv", *SETTINGS, *more, *flags, "-o", target)
        assert ran.code == 0, ran.err
        text = "".join(path.read_text() for path in sorted(target.glob("part-*.csv")))
        assert sorted(line.split(",", 2)[2] for line in text.splitlines() if "id" not in line) == [
            "007,",
            "7,'=1+1",
            "8,",
        ]
        (target / "notes.txt").write_text("precious")
    assert (target / "notes.txt").read_text() == "precious"
    refused = cepheid_command("run", query, "-i", tmp_path / "in.csv", *SETTINGS, "-o", target)
    assert "holds notes.txt" in refused.err
    elsewhere = cepheid_command("run", query, "-i", tmp_path / "in.csv", *SETTINGS, "-o", f"file:{target}")
    assert "exists already" in elsewhere.err
    assert (target / "notes.txt").read_text() == "precious"
