"""Whole checkpoints of earlier versions, as Spark left them: a stream goes on from them.

`checkpoints/format-3.tar.xz` was written by the version before format 4, by PySpark 4.3.0: the query below, 2 shards,
over the first half of the events below, in 2 files; with the matches that it had written by then.
"""

import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
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
@pytest.mark.parametrize("name", ["format-3.tar.xz"])
def test_a_stream_goes_on_from_a_checkpoint_of_an_earlier_version(spark, tmp_path, name):
    unpacked(name, tmp_path)
    table = in_an_order_allowed(events(2 * HALF), 20, 0)
    put(tmp_path / "in", 2, table.slice(HALF))
    end = table.slice(0, 1).set_column(0, "ts", pa.array([FAR])).set_column(1, "type", pa.array(["end"]))
    put(tmp_path / "in", 3, end)
    df = spark.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
    result = cepheid.match(df.parquet(str(tmp_path / "in")), {"absent": ABSENT}, delay=20, shards=2)
    found = [pq.read_table(tmp_path / "found.parquet")]
    writer = result.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert found[0].num_rows
    expected = cepheid.match(table, {"absent": ABSENT})
    assert sorted(line for part in found for line in rows(part)) == rows(expected)
