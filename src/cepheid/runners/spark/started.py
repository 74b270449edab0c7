"""What is done when Spark starts a stream: settings for this query alone, and a look at its checkpoint.

Spark copies a session's settings for each query that it starts, tells listeners of the start, and reads the copy only
then. So a listener can set, in the copy, what this query needs: as many partitions as can have work instead of Spark's
200, each of which would start a Python worker and a state store in every micro-batch; and the state store that keeps
the kinds of state used here. The session, and other queries of it, keep their settings. In the same moment the
checkpoint is looked at: a query that cannot go on from it fails then, whether events come or not.

Over Spark Connect there is no such moment; what must be set is an error that names the setting.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started

from cepheid.errors import CepheidError
from cepheid.runners.spark.checkpoint_place import check_place
from cepheid.runners.spark.session import SETTINGS, DataFrame, Session, setting
from cepheid.runners.spark.shards import ADOPTED, adoptable
from cepheid.runners.spark.watermarks import check_watermarks
from cepheid.runners.stream.identity import recorded_shards

PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
FILES = "spark.sql.streaming.checkpointFileManagerClass"
_STREAMING = "org.apache.spark.sql.execution.streaming"
_RENAMING = "FileSystemBasedCheckpointFileManager"
RECORD = "cepheid-stream.json"  # in a checkpoint: what it was written by
_MARK = re.compile(r"SubqueryAlias (cepheid_[0-9a-f]{32})")
_log = logging.getLogger("cepheid.stream")
_announced: dict[str, Announced] = {}  # streams of this process, by the mark in their plans
_listening: dict[str, Any] = {}  # the listeners of sessions whose starts are heard, as Java has them


@dataclass(frozen=True)
class Announced:
    """A stream that may be started: how many shards it has, and what may go on from a checkpoint's record."""

    shards: int
    # The new record of a checkpoint from the old one and the shards that were adopted from it, or an error.
    record: Callable[[str | None, int | None], str]
    adopts: bool = False  # does it go on with the shards of its checkpoint, however many these are?

    def adopted(self, record: str | None) -> int | None:
        """The shards of a checkpoint, if they are others than were planned, and these may be taken."""
        told = recorded_shards(record) if self.adopts else None
        return told if told is not None and told != self.shards and adoptable(told) else None


def announce(outcome: DataFrame, announced: Announced) -> DataFrame:
    """The stream with a mark in its plan, so that it is known when it is started."""
    session = outcome.sparkSession
    if not hasattr(session, "_jsparkSession"):
        _check_connect(session, announced.shards)
        return outcome
    listen(session)
    mark = f"cepheid_{uuid.uuid4().hex}"
    _announced[mark] = announced
    return outcome.alias(mark)


def _check_connect(session: Session, shards: int) -> None:
    """Over Connect nothing can be set for one query: the session must be right."""
    if "RocksDB" not in setting(session, PROVIDER):
        raise CepheidError(
            "the state of a stream needs RocksDB, and over Spark Connect it cannot be set for one query",
            hint=f"spark.conf.set('{PROVIDER}', '{SETTINGS[PROVIDER]}')",
        )
    partitions = int(setting(session, PARTITIONS))
    if partitions > shards:
        message = "%s is %s, but at most %s partitions of this stream can have work: every further one costs a Python "
        message += "worker and a state store in each micro-batch. Lower it before the stream is started"
        _log.warning(message, PARTITIONS, partitions, shards)


def listen(session: Session) -> None:
    """Has Spark tell of every stream that a session starts.

    Spark is asked whether it still does: it removes a listener during whose call somebody stops the query.
    """
    known, streams = session._jsparkSession.sessionUUID(), session.streams._jsqm
    if known in _listening and any(_listening[known].equals(each) for each in streams.listListeners()):
        return
    gateway = session.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    wrapper = gateway.jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
    _listening[known] = wrapper(Starts(session))
    streams.addListener(_listening[known])


class Starts:
    """Hears of the streams that a session starts, before they run.

    PySpark wraps its own listeners in the like. Those get all that Spark tells of a micro-batch as Python objects,
    which are made value by value, with a call to the JVM for each: hundreds in every micro-batch, for nothing here.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def onQueryStarted(self, event: Any) -> None:
        """Called by the thread that is about to run the query; it waits till this returns."""
        try:
            execution = self.session.streams._jsqm.get(event.id()).streamingQuery()
            found = [
                _announced[mark] for mark in _MARK.findall(execution.analyzedPlan().toString()) if mark in _announced
            ]
            if found:
                self.set_up(execution, found)
        except Exception as error:
            message = "could not set up the stream (%s); it runs with the settings of the session: see %s and %s"
            _log.warning(message, error, PARTITIONS, PROVIDER)

    def set_up(self, execution: Any, found: list[Announced]) -> None:
        """Sets what the query needs, and compares it with the checkpoint's record; stops it if it cannot go on."""
        jvm = self.session._jvm
        place = jvm.org.apache.hadoop.fs.Path(execution.resolvedCheckpointRoot(), RECORD)
        files = place.getFileSystem(self.session._jsparkSession.sessionState().newHadoopConf())
        old = _read(jvm, files, place)
        adopted = found[0].adopted(old)
        set_for_query(execution, adopted or max(each.shards for each in found), self.session)
        if adopted is not None:
            message = (
                "the checkpoint has %s shards, and the stream continues with these (%s would be chosen for a new one)"
            )
            _log.info(message, adopted, found[0].shards)
            execution.sparkSessionForStream().conf().set(ADOPTED, str(adopted))
        try:
            check_place(jvm, files, execution.resolvedCheckpointRoot())
            check_watermarks(execution.analyzedPlan())
            new = found[0].record(old, adopted)
        except CepheidError as error:
            _fail(jvm, execution, error)
            return
        if new != old:
            beside = jvm.org.apache.hadoop.fs.Path(execution.resolvedCheckpointRoot(), f".{RECORD}.new")
            stream = files.create(beside, True)
            stream.write(bytearray(new.encode()))
            stream.close()
            files.delete(place, False)
            files.rename(beside, place)

    def onQueryProgress(self, event: object) -> None:
        """Nothing to do."""

    def onQueryIdle(self, event: object) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: object) -> None:
        """Nothing to do."""

    class Java:
        """What Py4J asks a class that Java calls."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def set_for_query(execution: Any, shards: int, session: Session) -> None:
    """Sets what one query needs in its own copy of the session's settings."""
    own = execution.sparkSessionForStream()
    conf, chosen = own.conf(), own.sessionState().conf()
    asked = int(conf.get(PARTITIONS)) if chosen.contains(PARTITIONS) else session.sparkContext.defaultParallelism
    wanted = {
        PARTITIONS: str(max(1, min(shards, asked))),
        PROVIDER: conf.get(PROVIDER) if "RocksDB" in (conf.get(PROVIDER, "") or "") else SETTINGS[PROVIDER],
        CHANGELOG: conf.get(CHANGELOG, "true"),
    }
    files = None if chosen.contains(FILES) else renaming_files(session, str(execution.resolvedCheckpointRoot()))
    if files is not None:
        wanted[FILES] = files
    for name, value in wanted.items():
        # Asked for what is not set, Spark wants a default of the setting's own kind.
        if not chosen.contains(name) or conf.get(name) != value:
            _log.info("for this stream alone %s is %s", name, value)
            conf.set(name, value)
    if files is not None:
        write_logs_by(session, execution, files)


def renaming_files(session: Session, checkpoint: str) -> str | None:
    """The class that writes a checkpoint on this machine's disk with the fewest processes; None for any other place.

    Spark's first choice looks for symbolic links before it renames a file, and Hadoop, without its native library,
    starts `readlink` eight times for that and `chmod` twice: ten processes for each file, of which a micro-batch
    writes two and another for each partition of the state. The second choice, which Spark takes where the first cannot
    be had, writes a file beside and renames it, too.
    """
    if not checkpoint.startswith("file:"):
        return None
    for place in (f"{_STREAMING}.checkpointing", _STREAMING):  # since Spark 4.1, and before
        try:
            session._jvm.java.lang.Class.forName(f"{place}.{_RENAMING}")
        except Exception:
            continue
        return f"{place}.{_RENAMING}"
    return None


def write_logs_by(session: Session, execution: Any, files: str) -> None:
    """Has the two logs of a stream written by a class: some versions of Spark open them before a start is told."""
    place = files.rpartition(".")[0]
    try:
        known = session._jvm.java.lang.Class.forName(f"{place}.HDFSMetadataLog").getDeclaredField("fileManager")
        known.setAccessible(True)
        package = session._jvm
        for name in place.split("."):
            package = getattr(package, name)
        conf = execution.sparkSessionForStream().sessionState().newHadoopConf()
        for log in (execution.offsetLog(), execution.commitLog()):
            if known.get(log).getClass().getName() != files:
                known.set(log, getattr(package, _RENAMING)(log.metadataPath(), conf))
    except Exception as error:
        _log.debug("the logs of this stream are written as Spark does by default: %s", error)


def _read(jvm: Any, files: Any, place: object) -> str | None:
    if not files.exists(place):
        return None
    stream = files.open(place)
    try:
        text: str = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        return text
    finally:
        stream.close()


def _fail(jvm: Any, execution: Any, error: CepheidError) -> None:
    """Ends a query with an error of ours, as if it had met it while it ran."""
    cause = jvm.java.lang.IllegalStateException(str(error))
    nothing = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    kind = jvm.org.apache.spark.sql.streaming.StreamingQueryException
    failed = kind(str(error), cause, "STREAM_FAILED", nothing)
    getattr(execution, "streamDeathCause_$eq")(failed)
    # As `stop` does, but without its interrupt: Spark removes a listener that is interrupted, and no later start of
    # the session would be heard. The query ends by itself before its first micro-batch.
    state = execution.state()
    ended = f"{state.get().getClass().getPackageName()}.TERMINATED$"
    state.set(jvm.java.lang.Class.forName(ended).getField("MODULE$").get(None))
