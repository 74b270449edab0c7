"""Writes a checkpoint of another version of Cepheid as test data: `python tests/spark/old_checkpoints.py COMMIT NAME`.

The source of the commit runs the stream of test_checkpoints.py over the first half of its events, in two files, with
the Spark that is installed. `checkpoints/NAME.tar.xz` is what is left, with `@FOLDER@` where its place was. Kernels run
as plain Python: those of an old version are compiled nowhere.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from spark.test_checkpoints import FOLDER, HALF
from spark.test_stream import ABSENT, events, in_an_order_allowed, put

STREAM = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
from pyspark.sql import SparkSession
import cepheid
folder, text = sys.argv[1:]
small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": small}
settings |= {"spark.sql.streaming.stateStore.providerClass": provider}
settings |= {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
df = spark.readStream.schema("ts long, type string, id long, x long").option("maxFilesPerTrigger", 1)
found = []
result = cepheid.match(df.parquet(f"{folder}/in"), {"absent": text}, delay=20, shards=2)
writer = result.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()
pq.write_table(pa.concat_tables(found), f"{folder}/found.parquet")
spark.stop()
"""
KEPT = ("checkpoint", "found.parquet")
WRITTEN = 1_700_000_000  # the time that all files of the archive have


def main() -> None:
    """Writes one."""
    commit, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        source = subprocess.run(["git", "archive", commit, "src"], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(source)) as archive:
            archive.extractall(folder / "old", filter="data")
        table = in_an_order_allowed(events(2 * HALF), 20, 0)
        for number in range(2):
            put(folder / "in", number, table.slice(number * HALF // 2, HALF // 2))
        own = {"PYTHONPATH": str(folder / "old" / "src"), "PYSPARK_PYTHON": sys.executable, "NUMBA_DISABLE_JIT": "1"}
        subprocess.run([sys.executable, "-c", STREAM, str(folder), ABSENT], env=os.environ | own, check=True)
        with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as archive:
            for file in sorted(each for kept in KEPT for each in (folder / kept, *(folder / kept).rglob("*"))):
                if file.is_file() and not file.name.endswith(".crc"):
                    held = file.read_bytes().replace(str(folder).encode(), b"@FOLDER@")
                    member = tarfile.TarInfo(str(file.relative_to(folder)))
                    member.size, member.mtime = len(held), WRITTEN
                    archive.addfile(member, io.BytesIO(held))


if __name__ == "__main__":
    main()
