"""Flink's own patterns: `cepheid.flink` beside Flink CEP, on the same events in the same run.

`python -m bench.flink_patterns [--events 100000] [--window 40] [--names 20] [PATTERN ...]`.
Flink is measured in two ways:

- as a job, as its users run it: `CEP.pattern` on a stream in event time, in a local cluster with one slot; wall time
  from the first event that the source hands out to the end of the pattern operator, so without the start of Java, of
  the cluster and of the job (`FlinkJob.java`);
- as its bare NFA, called in one thread without a cluster, state backend or serialisation, which is faster than a job:
  the processor time of that thread alone, without Java's collector and compiler (`FlinkNfa.java`).

Of Cepheid the whole call of `match` is timed, from an Arrow table to one: wall time beside the job, processor time of
all its threads beside the NFA. Everything runs several times after a warm-up, and the shortest
counts. The numbers of matches must be equal.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from bench.flink.installation import JAVA_OPTIONS, compile_driver, find_tool, flink_jars
from cepheid.flink import AfterMatchSkipStrategy, Pattern

KEYS = 100
JOBS, ROUNDS = 2, 3  # a job takes longer to start than to run

Part = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """A pattern as both sides can make it, what it skips after a match, and whether each key is by itself."""

    chain: list[Part]
    skip: str = "no_skip"
    keyed: bool = False

    def task(self, window: int) -> dict[str, Any]:
        """The workload for Flink; of keyed events a window holds as many per key as it does of others."""
        length = window * KEYS if self.keyed else window
        chain = [*self.chain[:-1], {**self.chain[-1], "window": length}]
        return {"chain": chain, "skip": self.skip, **({"keyed": True} if self.keyed else {})}


def step(name: str, letter: str, contiguity: str = "followed_by", **changes: Any) -> Part:
    """A step that takes events of one name."""
    tests = [{"test": "name", "value": letter, "or": False}]
    part: Part = {"name": name, "group": None, "contiguity": contiguity, "tests": tests, "rounds": "once"}
    part |= {"least": 1, "most": 1, "inner": "followed_by", "greedy": False, "optional": False, "until": None}
    return {**part, "window": None, "gap": None, "between": None, **changes}


def group(parts: list[Part], **changes: Any) -> Part:
    """A pattern as a step of another one."""
    return {**step("", "", **changes), "name": None, "tests": [], "group": parts}


def higher(part: Part, than: str) -> Part:
    """The step with a condition on an earlier one."""
    return {**part, "tests": [*part["tests"], {"test": "above first", "step": than, "or": False}]}


A, B, C = step("a", "a", "next"), step("b", "b"), step("c", "c")
LOOP = {"rounds": "one_or_more"}
WORKLOADS: dict[str, Workload] = {
    "three steps": Workload([A, B, C]),
    "followed by any": Workload([A, step("b", "b", "followed_by_any"), step("c", "c", "followed_by_any")]),
    "optional": Workload([A, step("b", "b", optional=True), C]),
    "times(2)": Workload([A, step("b", "b", rounds="times", least=2, most=2), C]),
    "one or more": Workload([A, step("b", "b", **LOOP), C]),
    "greedy": Workload([A, step("b", "b", **LOOP, greedy=True), C]),
    "consecutive": Workload([A, step("b", "b", **LOOP, inner="next"), C]),
    "until": Workload([A, step("b", "b", **LOOP, until={"test": "name", "value": "d"}), C]),
    "not followed by": Workload([A, step("n", "d", "not_followed_by"), B, C]),
    "group, twice": Workload(
        [A, group([step("x", "b", "next"), step("y", "c")], rounds="times", least=2, most=2), step("d", "d")]
    ),
    "skip past last": Workload([A, step("b", "b", **LOOP), C], skip="skip_past_last_event"),
    "price > a.price": Workload([A, higher(B, "a"), higher(C, "b")]),
    "keyed": Workload([A, B, C], keyed=True),
}


def test_text(test: Mapping[str, Any]) -> str:
    """A condition as we write it."""
    return f"price > {test['step']}.price" if test["test"] == "above first" else f"name = '{test['value']}'"


def builder(chain: list[Part], skip: str) -> Pattern:
    """The same pattern by our builder."""
    strategy = getattr(AfterMatchSkipStrategy, skip)()
    at: Pattern | None = None
    for part in chain:
        what: Any = part["name"] if part["group"] is None else builder(part["group"], skip)
        at = Pattern.begin(what, skip=strategy) if at is None else getattr(at, part["contiguity"])(what)
        for test in part["tests"]:
            at = at.where(test_text(test))
        if part["rounds"] == "times":
            at = at.times(part["least"], part["most"])
        elif part["rounds"] == "one_or_more":
            at = at.one_or_more()
        at = at.consecutive() if part["inner"] == "next" else at
        at = at.greedy() if part["greedy"] else at
        at = at.optional() if part["optional"] else at
        at = at.until(test_text(part["until"])) if part["until"] else at
        at = at.within(part["window"]) if part["window"] else at
    assert at is not None
    return at


def drawn_events(count: int, names: int) -> pa.Table:
    """Events a step of time apart, each of one of some names, with a price and a key."""
    rng = np.random.default_rng(7)
    letters = np.array(list("abcdefghijklmnopqrst"))[rng.integers(0, names, count)]
    prices, keys = rng.random(count), rng.integers(0, KEYS, count)
    return pa.table({"ts": np.arange(count), "name": pa.array(letters), "price": prices, "key": keys})


class FlinkDriver:
    """Flink in a process of its own, which is asked by lines of JSON."""

    def __init__(self, table: pa.Table) -> None:
        jars = flink_jars()
        path = f"{compile_driver('FlinkNfa', jars)}{os.pathsep}{jars / '*'}"
        command = [find_tool("java"), "-Xmx2g", *JAVA_OPTIONS, "-cp", path, "FlinkNfa"]
        quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **quiet)
        self.events: list[dict[str, Any]] | None = table.to_pylist()

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        """Its answer to a task, without the matches themselves; events are sent with the first one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        events = {} if self.events is None else {"events": self.events}
        self.events = None
        self.process.stdin.write(json.dumps({**task, **events, "count": True}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):  # the cluster may have something to say, too
                answer: dict[str, Any] = json.loads(line)
                assert "error" not in answer, answer
                return answer
        raise RuntimeError("Flink has ended")

    def close(self) -> None:
        """Ends the process."""
        self.process.terminate()  # a thread of Flink's would keep it


@dataclass(frozen=True)
class Measured:
    """The shortest of several runs, in seconds, and the matches that all found."""

    matches: int
    job: float
    nfa: float
    own: float
    own_processor: float


def measure(driver: FlinkDriver, table: pa.Table, workload: Workload, window: int) -> Measured:
    """Runs a workload by all three."""
    task = workload.task(window)
    jobs = [driver.ask({**task, "job": True}) for _ in range(JOBS)]
    bare = [driver.ask(task) for _ in range(ROUNDS)]
    options = {"partition_by": "key"} if workload.keyed else {}
    walls, processors = [], []
    for _ in range(4 * ROUNDS):
        begun, worked = time.perf_counter(), time.process_time()
        found = cepheid.match(table, builder(task["chain"], workload.skip), type=None, **options)
        walls.append(time.perf_counter() - begun)
        processors.append(time.process_time() - worked)
    counts = {found.num_rows, *(each["count"] for each in (*jobs, *bare))}
    assert len(counts) == 1, counts
    shortest = min(each["seconds"] for each in jobs), min(each["processor"] for each in bare)
    return Measured(found.num_rows, *shortest, min(walls), min(processors))


def main(count: int, window: int, names: int, chosen: list[str]) -> None:
    """Prints events per second of all three, and how many times faster Cepheid is."""
    table = drawn_events(count, names)
    driver = FlinkDriver(table)
    measure(driver, table, WORKLOADS["one or more"], window)  # so that Java's compiler has warmed up, and ours
    titles = ("pattern", "matches", "job ev/s", "NFA ev/s", "Cepheid ev/s", "x job", "x NFA")
    print("{:<18}{:>9}{:>12}{:>12}{:>14}{:>8}{:>8}".format(*titles))
    try:
        for name in chosen or WORKLOADS:
            found = measure(driver, table, WORKLOADS[name], window)
            rates = [f"{count / seconds:,.0f}" for seconds in (found.job, found.nfa, found.own)]
            times = found.job / found.own, found.nfa / found.own_processor
            print(f"{name:<18}{found.matches:>9,}{rates[0]:>12}{rates[1]:>12}{rates[2]:>14}", end="")
            print(f"{times[0]:>8.0f}{times[1]:>8.0f}", flush=True)
    finally:
        driver.close()


if __name__ == "__main__":
    parser = ArgumentParser(description="cepheid.flink beside Flink CEP")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--window", type=int, default=40, help="how many events it spans")
    parser.add_argument("--names", type=int, default=20, choices=range(4, 21), help="of how many names events are")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help=f"of {', '.join(WORKLOADS)}; all by default")
    given = parser.parse_args()
    main(given.events, given.window, given.names, given.patterns)
