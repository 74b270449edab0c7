"""A Spark session for a command: quiet, its log aside, its errors as sentences."""

from __future__ import annotations

import logging
import os
import re
import signal
import tempfile
import threading
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

_IN_LOG = re.compile(r"^Exception in thread \"main\" [\w.$]+: (.*)$", re.MULTILINE)  # why Java did not start
_UNCLEAR = ("Spark failed", "Spark did not start")
_NO_REASON = re.compile(r"\s*An error occurred while calling")
_CLASS = re.compile(r"^(: )?([\w.$]+(Exception|Error): )?")


@contextmanager
def spark_session(master: str, settings: list[str], stages: Stages) -> Iterator[Any]:
    """A session that is stopped at the end; what Spark prints goes to a log that is kept if something fails."""
    from cepheid.runners.spark.session import start_session

    handle, name = tempfile.mkstemp(prefix="cepheid-spark-", suffix=".log")
    session, keep = None, False
    try:
        with stages.timed("start"), _late_interrupts(), _stderr_to(handle):  # the Java process keeps it for good
            session = start_session(master, **{**_SETTINGS, **parse_settings(settings)})
        with _plain_interrupts():
            yield session
    except Exception as error:
        if not _is_spark_error(error):
            raise
        said = in_our_words(error, Path(name).read_text(encoding="utf-8", errors="replace"))
        keep = said.message.startswith(_UNCLEAR)
        if keep:
            note(f"Spark's log is in {name}")
        raise said from error
    finally:
        os.close(handle)
        if session is not None:
            session.stop()
        if not keep:
            Path(name).unlink(missing_ok=True)


@contextmanager
def _late_interrupts() -> Iterator[None]:
    """Ctrl-C waits until Java is up: PySpark would leave a Java behind that is interrupted while it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    struck: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: struck.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if struck:
        raise KeyboardInterrupt


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    """Ctrl-C as Python's own: Spark's handler calls Java from wherever it strikes, also from within such a call."""

    def wanted(record: logging.LogRecord) -> bool:
        return "KeyboardInterrupt" not in str(record.msg)

    logging.getLogger().addFilter(wanted)  # of py4j's report of the very same
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        logging.getLogger().removeFilter(wanted)


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
            raise CepheidError(f"--conf {item}: expected a name and a value", hint="as in spark.driver.memory=4g")
        found[name.strip()] = value.strip()
    return found


def _is_spark_error(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark", "py4j"))


def in_our_words(error: Exception, log: str = "") -> CepheidError:
    """An error of Spark as one of ours: what a worker raised on purpose, or the first line of the rest.

    >>> in_our_words(RuntimeError("... PythonException: \\n cepheid.errors.DataError: column 'ts' is NULL\\n\\n at x"))
    DataError("column 'ts' is NULL")
    """
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        kind = DataError if ours[1] == "DataError" else CepheidError
        return kind(ours[2].strip())
    if "JAVA_GATEWAY_EXITED" in text:
        reason = _IN_LOG.search(log)
        of_master = reason is not None and "master" in reason[1].lower()
        hint = "--master is local[*], spark://host:7077, yarn, ..." if of_master else None
        return CepheidError(f"Spark did not start{': ' + reason[1].strip() if reason else ''}", hint=hint)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _NO_REASON.match(line)]
    first = _CLASS.sub("", lines[0]) if lines else type(error).__name__
    if "DATA_SOURCE_NOT_FOUND" in text and "delta" in text:
        hint = "pass --conf spark.jars.packages=io.delta:delta-spark_2.13:..., in the version made for this Spark"
        return CepheidError("Spark does not include the Delta connector", hint=hint)
    if "KAFKA_DATA_SOURCE_NOT_ENABLED" in text:
        hint = "pass --conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
        return CepheidError("Spark does not include the Kafka connector", hint=hint)
    return CepheidError(f"Spark failed: {first}")
