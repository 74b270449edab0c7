"""Spark's classes in an archive that Java maps into memory: a session starts with less work for the processor.

A Spark session loads thousands of classes from 300 jars, and checks each. Java can keep them as they are once checked
(class data sharing). `cepheid warm --spark` records an archive, once for an installation of Java and PySpark, and
`start_session` uses it if it is there. Java compares it with the jars itself, and ignores one that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from cepheid.errors import CepheidError

OPTIONS = "spark.driver.extraJavaOptions"
_QUIET = "-Xlog:disable"  # Java warns of every class that it cannot keep, and of an archive that does not fit
_RECORDED = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
import cepheid
folder, options = sys.argv[1:]
pq.write_table(pa.table({"ts": range(20), "type": ["A", "B"] * 10, "id": [0] * 20}), f"{folder}/events.parquet")
spark = cepheid.start_session("local[2]", **{"spark.driver.extraJavaOptions": options})
text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
cepheid.match(spark.read.parquet(folder), text).collect()
events = spark.readStream.schema("ts long, type string, id long").parquet(folder)
found = cepheid.match(events, text, delay=0).writeStream.foreachBatch(lambda batch, _: batch.collect())
found.option("checkpointLocation", f"{folder}/c").trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def archive() -> Path:
    """Where the archive for this PySpark and this Java lies, or would lie."""
    java = os.environ.get("JAVA_HOME") or os.path.realpath(shutil.which("java") or "java")
    digest = hashlib.sha256(f"{version('pyspark')} {java} {sys.prefix}".encode()).hexdigest()[:16]
    user = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    return Path(user) / "cepheid" / f"spark-{digest}.jsa"


def with_archive(settings: dict[str, str], path: Path) -> dict[str, str]:
    """Settings of a session, with the archive if there is one; options of the user's stay, and may turn it off.

    >>> with_archive({OPTIONS: "-Xss4m"}, Path("/nowhere.jsa"))
    {'spark.driver.extraJavaOptions': '-Xss4m'}
    """
    own = settings.get(OPTIONS, "")
    if not path.is_file() or " " in str(path) or "-XX:SharedArchiveFile" in own or "-XX:ArchiveClassesAtExit" in own:
        return settings
    return {**settings, OPTIONS: f"-XX:SharedArchiveFile={path} {_QUIET} {own}".strip()}


def record() -> Path:
    """Records the archive: a session runs a small batch and a small stream, and Java writes at its end what it has."""
    path = archive()
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        made = Path(folder) / "made.jsa"
        command = [sys.executable, "-c", _RECORDED, folder, f"-XX:ArchiveClassesAtExit={made} {_QUIET}"]
        # The pipes are open as long as Java runs, which writes the archive after Python has ended.
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not made.is_file():
            last = (done.stderr.strip().splitlines() or ["Java wrote none"])[-1]
            raise CepheidError(f"no archive of Spark's classes could be recorded: {last}")
        unfinished = path.with_suffix(".new")
        shutil.move(made, unfinished)
        unfinished.replace(path)
    return path
