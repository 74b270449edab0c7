"""The door to Spark: is it a Spark table, is there a Java to run it, and which Arrow types its columns become.

Nothing here imports PySpark before a Spark table or session is at hand, so that everything else runs without Java.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import pyarrow as pa

from cepheid.errors import CepheidError, DataError
from cepheid.language.zones import zone_called
from cepheid.runners.nested import missing_paths
from cepheid.runners.spark.arrow_types import to_arrow_schema, to_arrow_type
from cepheid.runners.spark.class_archive import archive, with_archive

PYSPARK = (4, 0)  # the oldest that is tested
JAVA = 17  # the oldest that Spark 4 runs on
CASE = "spark.sql.caseSensitive"
ZONE = "spark.sql.session.timeZone"
DataFrame: TypeAlias = Any  # a PySpark DataFrame, classic or Connect; importing PySpark for its name costs a second
Session: TypeAlias = Any

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Times are shown, and strings without a zone read, in the session's zone: UTC is the one that never jumps.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def is_spark_frame(value: object) -> bool:
    """Is it a PySpark DataFrame, classic or Connect?

    >>> is_spark_frame(pa.table({"ts": [1]}))
    False
    """
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql") for kind in type(value).__mro__
    )


def java_problem() -> str | None:
    """What is wrong with the Java that Spark would start, in one sentence; None if nothing is."""
    install = f"install Java {JAVA} or newer (Debian: openjdk-17-jre-headless) or set JAVA_HOME to one"
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not command:
        return f"Spark needs Java, and none was found: {install}"
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java, and {command} does not run ({error}): {install}"
    version = java_version(done.stderr + done.stdout)
    if version is None:
        return f"Spark needs Java, and {command} does not print its version: {install}"
    return None if version >= JAVA else f"Spark needs Java {JAVA} or newer, and {command} is {version}: {install}"


def java_version(told: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_402"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else None


def pyspark_problem() -> str | None:
    """What is wrong with the PySpark that is installed, in one sentence; None if nothing is."""
    install = "pip install 'cepheid[spark]'"
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return f"PySpark is not installed: {install}"
    if tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < PYSPARK:
        return f"PySpark {found} is too old, {'.'.join(map(str, PYSPARK))} or newer is needed: {install}"
    return None


def start_session(master: str = "local[*]", name: str = "cepheid", **settings: object) -> Session:
    """A Spark session on this machine with settings that suit event streams; a CepheidError if Java is not there.

    `settings` are Spark's, for example `start_session(**{"spark.driver.memory": "4g"})`; stop it with `.stop()`.
    """
    problem = pyspark_problem() or java_problem()
    if problem:
        raise CepheidError(problem)
    # Without these, Spark starts its workers with whatever `python3` is, and may bind to an address it cannot reach.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(name)
    chosen = {key: str(value) for key, value in {**SETTINGS, **settings}.items()}
    for key, value in with_archive(chosen, archive()).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def arrow_schema(df: DataFrame) -> pa.Schema:
    """The columns of a Spark table as Python workers see them. Timestamps are UTC whatever the session's zone."""
    from pyspark.errors import PySparkException

    check_case(df)
    large = setting(df.sparkSession, "spark.sql.execution.arrow.useLargeVarTypes") == "true"
    try:
        return to_arrow_schema(df.schema, large)
    except (PySparkException, TypeError, AssertionError):
        for field in df.schema.fields:
            try:
                to_arrow_type(field.dataType)
            except (PySparkException, TypeError, AssertionError):
                kind = field.dataType.simpleString()
                raise DataError(
                    f"column '{field.name}' is {kind}, which Spark cannot hand to Python workers",
                    hint="drop it or cast it first",
                ) from None
        raise


def check_case(df: DataFrame) -> None:
    """An error for columns whose names differ in nothing but case, where Spark cannot tell them apart."""
    known: dict[str, str] = {}
    for name in df.columns:
        other = known.setdefault(name.lower(), name)
        if other != name and setting(df.sparkSession, CASE) != "true":
            message = f"columns '{other}' and '{name}' differ in case alone, and this session ignores the case of names"
            raise DataError(message, column=name, hint=f"rename one of them, or set {CASE} to true")


def without(schema: pa.Schema, name: str | None) -> pa.Schema:
    """A schema without one of its columns, if it has to go."""
    return schema if name is None else schema.remove(schema.get_field_index(name))


def spark_schema(schema: pa.Schema) -> Any:
    """An Arrow schema as a Spark one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def setting(session: Session, name: str) -> str:
    """A setting of a session, classic or Connect; Spark's own default where the user has set nothing.

    `conf.get` with a default would give that default instead, and of the session's time zone no constant is right.
    """
    return str(session.conf.get(name))


def session_zone(session: Session) -> str:
    """The time zone in which a session shows and reads times."""
    return zone_called(setting(session, ZONE))


def parallelism(session: Session) -> int:
    """How many tasks run at once; over Connect, which does not tell, how many partitions a shuffle makes."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:  # Connect raises a PySparkAttributeError of its own
        return max(1, int(setting(session, "spark.sql.shuffle.partitions")))


def with_nested_columns(df: DataFrame, queries: Sequence[Any]) -> DataFrame:
    """The table with a column for each field of a struct that the queries name: `user.id`."""
    from pyspark.sql import functions as F

    for path in missing_paths(arrow_schema(df), [query.syntax for query in queries]):
        first, *rest = path.split(".")
        column = F.col("`" + first.replace("`", "``") + "`")
        for name in rest:
            column = column.getField(name)
        df = df.withColumn(path, column)
    return df
