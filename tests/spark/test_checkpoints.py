"""Whole checkpoints of earlier versions, as Spark left them: a stream goes on from them.

`checkpoints/format-N.tar.xz` was written by a version that wrote format N, with PySpark 4.3.0 (old_checkpoints.py): the
query below, 2 shards, over the first half of the events below, in 2 files; with the matches that it had written.
"""

import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.runners.spark.started import RECORD
from cepheid.runners.stream.identity import recorded_shards
from spark.test_stream import ABSENT, FAR, events, in_an_order_allowed, put, rows

FOLDER = Path(__file__).parent / "checkpoints"
HALF = 60


def unpacked(name: str, folder: Path) -> None:
    """The checkpoint in a folder: Spark's logs hold the paths of their own files."""
    with tarfile.open(FOLDER / name) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            place = folder / member.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read().replace(b"@FOLDER@", str(folder).encode()))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"shards": 2}, {}], ids=["shards given", "shards of the checkpoint"])
@pytest.mark.parametrize("name", sorted(each.name for each in FOLDER.glob("*.tar.xz")))
def test_a_stream_goes_on_from_a_checkpoint_of_an_earlier_version(spark, tmp_path, caplog, name, options):
    """Where no number of shards is given, a new stream has another one than this checkpoint: it keeps its own.

    Format 2 does not say its own, so it has to be given.
    """
    caplog.set_level("INFO", "cepheid.stream")
    unpacked(name, tmp_path)
    table = in_an_order_allowed(events(2 * HALF), 20, 0)
    put(tmp_path / "in", 2, table.slice(HALF))
    end = table.slice(0, 1).set_column(0, "ts", pa.array([FAR])).set_column(1, "type", pa.array(["end"]))
    put(tmp_path / "in", 3, end)
    df = spark.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
    result = cepheid.match(df.parquet(str(tmp_path / "in")), {"absent": ABSENT}, delay=20, **options)
    found = [pq.read_table(tmp_path / "found.parquet")]
    writer = result.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    if name == "format-2.tar.xz" and not options:
        with pytest.raises(Exception, match="another number of shards"):
            query.awaitTermination()
        return
    query.awaitTermination()
    assert found[0].num_rows
    assert ("continues with these" in caplog.text) == (not options)
    assert recorded_shards((tmp_path / "checkpoint" / RECORD).read_text()) == 2
    expected = cepheid.match(table, {"absent": ABSENT})
    assert sorted(line for part in found for line in rows(part)) == rows(expected)


@pytest.mark.slow
def test_a_checkpoint_keeps_its_shards_and_another_number_is_refused(spark, tmp_path):
    """Of a query that bounds its state, too; and of a stream of rows."""
    table = in_an_order_allowed(events(2 * HALF), 20, 0)
    put(tmp_path / "in", 0, table.slice(0, HALF))
    df = spark.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
    stream = df.parquet(str(tmp_path / "in"))
    seconds = stream.selectExpr("timestamp_seconds(ts) AS ts", "id", "x")
    whole = spark.createDataFrame(table).selectExpr("timestamp_seconds(ts) AS ts", "id", "x")
    clause = """MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES FIRST(x) AS low, LAST(x) AS high, LAST(ts) AS at
    PATTERN (A B+) WITHIN INTERVAL '1' MINUTE DEFINE B AS x > PREV(x))"""
    absent = "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 30"
    results = {
        "query": lambda **more: cepheid.match(stream, absent, delay=20, max_state_bytes=10**7, **more),
        "rows": lambda **more: cepheid.match(seconds, clause, delay="20 seconds", **more),
    }
    found = {"query": [], "rows": []}
    for name, result in results.items():
        run(result(shards=3), tmp_path / name, found[name])
    put(tmp_path / "in", 1, table.slice(HALF))
    end = table.slice(0, 1).set_column(0, "ts", pa.array([FAR])).set_column(1, "type", pa.array(["end"]))
    put(tmp_path / "in", 2, end)
    for name, result in results.items():
        with pytest.raises(Exception, match="written with shards=3"):
            run(result(shards=4), tmp_path / name, found[name])
        run(result(), tmp_path / name, found[name])
    assert sorted(line for part in found["query"] for line in rows(part)) == rows(cepheid.match(table, absent))
    expected = rows(cepheid.match(whole, clause).toArrow())
    assert sorted(line for part in found["rows"] for line in rows(part)) == expected


def run(result, folder: Path, found: list[pa.Table]) -> None:
    writer = result.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
    writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()


@pytest.mark.slow
def test_a_checkpoint_that_was_moved_is_refused_at_the_start(spark, tmp_path):
    """Spark keeps absolute paths in it and would die of a missing file; a link to the new place is a remedy."""
    table = in_an_order_allowed(events(2 * HALF), 20, 0)
    put(tmp_path / "in", 0, table.slice(0, HALF))
    df = spark.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
    result = cepheid.match(df.parquet(str(tmp_path / "in")), ABSENT, delay=20)
    found: list[pa.Table] = []
    run(result, tmp_path / "old", found)
    (tmp_path / "old").rename(tmp_path / "new")
    put(tmp_path / "in", 1, table.slice(HALF))
    end = table.slice(0, 1).set_column(0, "ts", pa.array([FAR])).set_column(1, "type", pa.array(["end"]))
    put(tmp_path / "in", 2, end)
    with pytest.raises(Exception, match="was written at") as error:
        run(result, tmp_path / "new", found)
    told = str(error.value)
    assert f"{tmp_path}/old" in told
    assert f"{tmp_path}/new" in told
    assert "move it back" in told
    (tmp_path / "old").symlink_to(tmp_path / "new")
    run(result, tmp_path / "new", found)
    assert sorted(line for part in found for line in rows(part)) == rows(cepheid.match(table, ABSENT))
