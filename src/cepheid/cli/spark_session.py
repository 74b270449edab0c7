"""A Spark session for a command: quiet, its log aside, its errors as sentences."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cepheid.cli.messages import note
from cepheid.cli.stages import Stages
from cepheid.errors import CepheidError, DataError

LOCAL = "local[*]"
# Other programs read these as what they are, instants in UTC.
_SETTINGS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
_OURS = re.compile(r"cepheid\.errors\.(\w+): (.*?)(?:\n\n|\n\s+at |\Z)", re.DOTALL)


@contextmanager
def spark_session(master: str, settings: list[str], stages: Stages) -> Iterator[Any]:
    """A session that is stopped at the end; what Spark prints goes to a log that is kept if something fails."""
    from cepheid.runners.spark_session import start_session

    handle, name = tempfile.mkstemp(prefix="cepheid-spark-", suffix=".log")
    session = None
    try:
        with stages.timed("start"), _stderr_to(handle):  # the Java process keeps it for good
            session = start_session(master, **{**_SETTINGS, **parse_settings(settings)})
        yield session
        Path(name).unlink()
    except CepheidError:
        Path(name).unlink(missing_ok=True)
        raise
    except Exception as error:
        if _is_spark_error(error):
            note(f"Spark's log is in {name}")
            raise in_our_words(error) from error
        raise
    finally:
        os.close(handle)
        if session is not None:
            session.stop()


@contextmanager
def _stderr_to(handle: int) -> Iterator[None]:
    saved = os.dup(2)
    os.dup2(handle, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def parse_settings(given: list[str]) -> dict[str, str]:
    """Spark's own settings from NAME=VALUE.

    >>> parse_settings(["spark.driver.memory=4g"])
    {'spark.driver.memory': '4g'}
    """
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            raise CepheidError(f"--conf {item}: a name and a value are needed", hint="as in spark.driver.memory=4g")
        found[name.strip()] = value.strip()
    return found


def _is_spark_error(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark", "py4j"))


def in_our_words(error: Exception) -> CepheidError:
    """An error of Spark as one of ours: what a worker raised on purpose, or the first line of the rest.

    >>> in_our_words(RuntimeError("... PythonException: \\n cepheid.errors.DataError: column 'ts' is NULL\\n\\n at x"))
    DataError("column 'ts' is NULL")
    """
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        kind = DataError if ours[1] == "DataError" else CepheidError
        return kind(ours[2].strip())
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    if "KAFKA_DATA_SOURCE_NOT_ENABLED" in text:
        hint = "pass --conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
        return CepheidError("Spark comes without its connector for Kafka", hint=hint)
    return CepheidError(f"Spark failed: {first}")
