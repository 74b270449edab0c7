"""From an event's arrival to its match on Spark, and where a micro-batch's time goes: `python -m bench.latency`.

- without more: percentiles at some rates, beside a stateless filter on the same session, in less than 5 minutes.
- `profile`: one rate, with the parts of a micro-batch's time: what Spark reports of the stream's phases, of the state
  store, of stages and tasks, and the processor time of driver, JVM and Python workers.
- `settings`: the same for settings that trade latency for throughput.
- `start`: from a fresh process to the first match.

Events come from a process of their own through a socket, a line each, with the time at which they were sent, in steps
of at most 5 milliseconds. (Spark's socket source takes time that is quadratic in the size of a micro-batch; beyond
1,000 events/s they come from its `rate` source, which gives them out by whole seconds: half a second of the wait, for
the filter as well.) Every event completes one match, with the event of its key a second before. What is measured
ends when the row is in the driver's hands, in `foreachBatch`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TEXT = "PATTERN SEQ(A a, A b) WHERE [id] WITHIN 1500 milliseconds RETURN b.ts AS at"
STEP = 0.005  # seconds between two looks at what is due
MANY = 1_000  # events/s beyond which they come from Spark's own source
FILTER, MATCH = "filter", "match"
CODEGEN = "spark.sql.codegen.wholeStage"
PYTHON = "time to run Python workers"
_SCHEMA = ["timestamp_micros(cast(split(value, ',')[0] as bigint)) AS ts", "'A' AS type"]


def send(connection: socket.socket, rate: int) -> None:
    """Sends events at a rate till nobody listens any more."""
    sent, begun = 0, time.time()
    try:
        while True:
            due = int((time.time() - begun) * rate) + 1
            if due > sent:
                now = time.time_ns() // 1000
                lines = (f"{now + number},{sent + number}\n" for number in range(due - sent))
                connection.sendall("".join(lines).encode())
                sent = due
            time.sleep(max(STEP, begun + sent / rate - time.time()))
    except OSError:
        return


def serve(rate: int) -> None:
    """Sends events to whoever connects, till standard input ends; prints the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            threading.Thread(target=send, args=(listening.accept()[0], rate), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


@contextmanager
def source(session: Any, rate: int) -> Iterator[Any]:
    """A stream of events at a rate."""
    if rate > MANY:
        given = session.readStream.format("rate").option("rowsPerSecond", rate).load()
        yield given.selectExpr("timestamp AS ts", "'A' AS type", f"value % {rate} AS id")
        return
    command = [sys.executable, "-m", "bench.latency", "serve", "--rates", str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        assert sender.stdin is not None
        options = {"host": "127.0.0.1", "port": sender.stdout.readline().strip()}
        lines = session.readStream.format("socket").options(**options).load()
        yield lines.selectExpr(*_SCHEMA, f"cast(split(value, ',')[1] as bigint) % {rate} AS id")
        sender.stdin.close()


def result_of(name: str, events: Any) -> Any:
    """The stream that is measured."""
    import cepheid

    if name == FILTER:
        return events.where("id >= 0").selectExpr("ts AS at")
    asked = {"shards": int(name.partition("=")[2])} if "=" in name else {}
    return cepheid.match(events, TEXT, delay=0, **asked).select("at")


@dataclass
class Measured:
    """What was measured of one stream."""

    waits: list[float] = field(default_factory=list)  # seconds from an event to its result
    progress: list[dict[str, Any]] = field(default_factory=list)  # what Spark tells of each micro-batch
    spent: dict[str, float] = field(default_factory=dict)  # milliseconds of processor time of a micro-batch

    def percentiles(self) -> list[float]:
        """The 50th, 95th and 99th percentile, in milliseconds."""
        return [1000 * float(each) for each in np.percentile(self.waits, [50, 95, 99])] if self.waits else [np.nan] * 3

    def phase(self, name: str) -> float:
        """The median of a phase of micro-batches, in milliseconds."""
        return float(np.median([each["durationMs"].get(name, 0) for each in self.progress] or [np.nan]))


def measure(result: Any, seconds: float, warm: int, sink: str = "foreach", mode: str = "append") -> Measured:
    """Runs a stream for some time after some micro-batches in which it warms up."""
    measured = Measured()

    def write(batch: Any, _: int) -> None:
        found = batch.toArrow()
        now = time.time()
        measured.waits.extend(now - each.timestamp() for each in found["at"].to_pylist())

    with tempfile.TemporaryDirectory() as folder:
        writer = result.writeStream.outputMode(mode).option("checkpointLocation", folder)
        query = (writer.foreachBatch(write) if sink == "foreach" else writer.format("noop")).start()

        def last() -> int:  # the whole list of progresses would be costly to ask for
            if not query.isActive and query.exception() is not None:
                raise query.exception()
            return int((query.lastProgress or {"batchId": -1})["batchId"])

        while last() < warm:
            time.sleep(0.2)
        measured.waits.clear()
        before, begun = processor_seconds(), last()
        time.sleep(seconds)
        after, ended = processor_seconds(), last()
        measured.progress = [each for each in query.recentProgress if begun < each["batchId"] <= ended]
        measured.spent = {name: 1000 * (after[name] - before[name]) / max(1, ended - begun) for name in after}
        query.stop()
    return measured


def run_rates(rates: list[int], seconds: float, names: Sequence[str] = (FILTER, MATCH)) -> None:
    """Percentiles at some rates, beside those of a filter."""
    from cepheid.runners.spark.session import start_session

    session = start_session("local[2]")
    with source(session, 100) as events:  # the JVM compiles what all of them need
        for name in names:
            measure(result_of(name, events), 8, 20)
    print(
        "| events/s | query | rows | p50 ms | p95 ms | p99 ms | micro-batch ms | of it planning, tasks, logs | ", end=""
    )
    print("times the filter | processor ms |\n|---|---|---|---|---|---|---|---|---|---|")
    for rate in rates:
        with source(session, rate) as events:
            floor = np.nan
            for name in names:
                seldom = rate < 10
                found = measure(result_of(name, events), max(seconds, 25 if seldom else 0), 4 if seldom else 12)
                whole = found.phase("triggerExecution")
                floor = whole if name == FILTER else floor
                waits = " | ".join(f"{each:,.0f}" for each in found.percentiles())
                spent = ", ".join(f"{part} {value:.0f}" for part, value in found.spent.items())
                logs = found.phase("walCommit") + found.phase("commitOffsets")
                parts = f"{found.phase('queryPlanning'):.0f}, {found.phase('addBatch'):.0f}, {logs:.0f}"
                told = f"{waits} | {whole:.0f} | {parts} | {whole / floor:.1f} | {spent}"
                print(f"| {rate:,} | {name} | {len(found.waits):,} | {told} |", flush=True)
    session.stop()


def run_settings(rate: int, seconds: float, settings: list[str], names: Sequence[str]) -> None:
    """Settings of the session, one after another, and none before and after: a micro-batch's time and its processor
    time."""
    from cepheid.runners.spark.session import start_session

    session = start_session("local[2]")
    print("| setting | query | micro-batch ms | planning | state and tasks | logs | processor ms |")
    print("|---|---|---|---|---|---|---|")
    with source(session, rate) as events:
        measure(result_of(MATCH, events), 8, 15, "noop")
        for setting in ["", *settings, ""]:
            pairs = [each.split("=", 1) for each in setting.split(",") if each]
            for key, value in pairs:
                session.conf.set(key, value)
            for name in names:
                found = measure(result_of(name, events), seconds, 8, "noop")
                logs = found.phase("walCommit") + found.phase("commitOffsets")
                phases = [found.phase(each) for each in ("triggerExecution", "queryPlanning", "addBatch")] + [logs]
                told = " | ".join(f"{each:.0f}" for each in phases)
                print(f"| {setting or 'none'} | {name} | {told} | {sum(found.spent.values()):.0f} |", flush=True)
            for key, _ in pairs:
                session.conf.unset(key)
    session.stop()


def run_profile(rate: int, seconds: float, names: Sequence[str]) -> None:
    """Where the time of a micro-batch goes."""
    from cepheid.runners.spark.session import start_session

    with tempfile.TemporaryDirectory() as folder:
        logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": Path(folder).as_uri()}
        logged |= {"spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"}
        session = start_session("local[2]", **logged)
        with source(session, rate) as events:
            for name in names:
                found = measure(result_of(name, events), seconds, 25, "noop")
                phases = {key: found.phase(key) for key in found.progress[-1]["durationMs"]}
                print(f"{name}: {len(found.progress)} micro-batches; medians in ms: {phases}")
                print(f"  processor time of a micro-batch, ms: { {k: round(v) for k, v in found.spent.items()} }")
                for key, value in state_numbers(found.progress).items():
                    print(f"  {key}: {value:g}")
        session.stop()
        for line in told_of_tasks(next(Path(folder).iterdir())):
            print(line)


def state_numbers(progress: list[dict[str, Any]]) -> dict[str, float]:
    """The medians of what the state store tells that are not 0."""
    rows = [each["stateOperators"][0] for each in progress if each.get("stateOperators")]
    if not rows:
        return {}
    found = {name: [row[name] for row in rows] for name in ("allUpdatesTimeMs", "commitTimeMs")}
    for name in rows[-1]["customMetrics"]:
        if "Latency" in name or "Count" in name:
            found[name] = [row["customMetrics"].get(name, 0) for row in rows]
    return {name: float(np.median(values)) for name, values in found.items() if np.median(values)}


def told_of_tasks(log: Path) -> Iterator[str]:
    """The medians of what stages and tasks of the last micro-batches of each stream took, from Spark's event log."""
    jobs: dict[str, list[list[int]]] = {}
    stages: dict[int, dict[str, Any]] = {}
    tasks: dict[int, list[dict[str, Any]]] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            query = event.get("Properties", {}).get("sql.streaming.queryId")
            jobs.setdefault(query, []).append(sorted(event["Stage IDs"]))
        elif event["Event"] == "SparkListenerStageCompleted":
            stages[event["Stage Info"]["Stage ID"]] = event["Stage Info"]
        elif event["Event"] == "SparkListenerTaskEnd":
            tasks.setdefault(event["Stage ID"], []).append(event)
    for query, numbers in jobs.items():
        for place in range(max(map(len, numbers)) if query else 0):
            here = [each[place] for each in numbers[-30:] if place < len(each) and each[place] in stages]
            took = [stages[each]["Completion Time"] - stages[each]["Submission Time"] for each in here]
            parts: dict[str, list[float]] = {}
            for task in (task for each in here for task in tasks.get(each, [])):
                for key, value in parts_of(task).items():
                    parts.setdefault(key, []).append(value)
            told = ", ".join(f"{key} {np.median(values):.1f}" for key, values in parts.items() if np.median(values))
            count = np.median([len(tasks.get(each, [])) for each in here])
            yield f"stage {place} of {query}: {np.median(took):.0f} ms, {count:.0f} tasks, each, ms: {told}"


def parts_of(task: dict[str, Any]) -> dict[str, float]:
    """What one task took, in milliseconds."""
    info, metrics = task["Task Info"], task.get("Task Metrics") or {}
    whole = info["Finish Time"] - info["Launch Time"]
    run, read = metrics.get("Executor Run Time", 0), metrics.get("Executor Deserialize Time", 0)
    parts = {"whole": whole, "running": run, "reading the task": read, "waiting": whole - run - read}
    parts["processor"] = metrics.get("Executor CPU Time", 0) / 1e6
    parts["garbage"] = metrics.get("JVM GC Time", 0)
    for told in info.get("Accumulables", []):
        name = str(told.get("Name", ""))
        if name in (PYTHON, "time to commit changes") or name.startswith("RocksDB: load"):
            parts[name] = parts.get(name, 0) + float(told.get("Update") or 0)
    return parts


PLAIN = "SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false').getOrCreate()"
SESSIONS = {
    "Spark's defaults": PLAIN,
    "start_session": "cepheid.start_session('local[2]')",
}


START = """
import time; begun = time.time(); at = {{}}
import cepheid
from pyspark.sql import SparkSession
at["imports"] = time.time()
spark = {session}
at["session"] = time.time()
events = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
events = events.selectExpr("timestamp AS ts", "'A' AS type", "value % 10 AS id")
found = {found}
at["plan"] = time.time()
seen = []
def write(batch, number):
    at.setdefault("first micro-batch", time.time())
    seen.extend(batch.collect())
    if number == 0:
        at["its rows"] = time.time()
query = found.writeStream.foreachBatch(write).start()
at["start"] = time.time()
while not seen: time.sleep(0.01)
at["first match"] = time.time()
from bench.latency import processor_seconds
stages = [at[name] - begun for name in {stages!r}]
print(*(f"{{each:.1f}}" for each in (*stages, *processor_seconds().values())), sep=" | ")
query.stop()
"""
STAGES = ("imports", "session", "plan", "start", "first micro-batch", "its rows", "first match")


def run_start() -> None:
    """From a fresh process to the first match, by the clock and in processor time, in some kinds of sessions.

    Stages are seconds after the process began. Beside each session stands a stateless filter: what Spark itself takes.
    """
    print(
        f"| session | {' | '.join(f'{stage}, s' for stage in STAGES)} | processor s: driver | JVM | workers | lines |"
    )
    print("|---" * (len(STAGES) + 5) + "|")
    for name, session in SESSIONS.items():
        for what, found in ((MATCH, f"cepheid.match(events, {TEXT!r}, delay=0)"), (FILTER, "events.where('id >= 0')")):
            program = START.format(session=session, found=found, stages=STAGES)
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            print(f"| {name}, {what} | {done.stdout.strip() or lines[-1:]} | {len(lines)} |", flush=True)


def processor_seconds() -> dict[str, float]:
    """The processor time so far of this process, of the JVM below it and of the Python workers below that."""
    ticks, parents, names, spent = os.sysconf("SC_CLK_TCK"), {}, {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, tail = (entry / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            fields, number = tail.split(), int(entry.name)
            parents[number], names[number] = int(fields[1]), head.split("(", 1)[1]
            # Children that have ended count with their parents: the JVM starts some for every file that it renames.
            spent[number] = sum(int(each) for each in fields[11:15]) / ticks
    own = os.getpid()
    found = {"driver": spent[own], "jvm": 0.0, "workers": 0.0}
    for number in spent:
        above, below_jvm = number, False
        while above not in (own, 0) and above in parents:
            above = parents[above]
            below_jvm |= names.get(above) == "java"
        if above == own and number != own and names[number] == "java":
            found["jvm"] += spent[number]
        elif above == own and below_jvm and names[number].startswith("python"):
            found["workers"] += spent[number]
    return found


def main() -> None:
    """Runs one of the programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "program", nargs="?", default="rates", choices=["rates", "profile", "settings", "start", "serve"]
    )
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--set", nargs="*", default=[f"{CODEGEN}=false"], help="key=value,key=value for each run")
    parser.add_argument("--shards", type=int, nargs="*", default=[], help="of further streams beside the default's")
    chosen = parser.parse_args()
    names = [FILTER, MATCH, *(f"match, shards={count}" for count in chosen.shards)]
    rate = chosen.rates[0] if len(chosen.rates) == 1 else 100
    match chosen.program:
        case "rates":
            run_rates(chosen.rates, chosen.seconds, names)
        case "profile":
            run_profile(rate, chosen.seconds, names)
        case "settings":
            run_settings(rate, chosen.seconds, chosen.set, names[1:])
        case "start":
            run_start()
        case _:
            serve(chosen.rates[0])


if __name__ == "__main__":
    main()
