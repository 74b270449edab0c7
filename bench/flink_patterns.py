"""Flink's own patterns: `cepheid.flink` beside Flink's NFA, on the same events in the same run.

`python -m bench.flink_patterns [EVENTS]`. Flink's NFA is called directly, in one thread, without a cluster, state
backend or serialisation, which is faster than a job; what is timed are its calls, as processor time of its thread
alone, without Java's collector and compiler. Of Cepheid the whole call of `match` is timed, from an Arrow table to one,
as processor time of all its threads. The numbers of matches must be equal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from bench.flink.installation import JAVA_OPTIONS, compile_driver, find_tool, flink_jars
from cepheid.flink import Pattern

WINDOW = 40


def step(name: str, letter: str, contiguity: str = "followed_by", **changes: Any) -> dict[str, Any]:
    """A step that takes events of one name."""
    tests = [{"test": "name", "value": letter, "or": False}]
    part: dict[str, Any] = {"name": name, "group": None, "contiguity": contiguity, "tests": tests, "rounds": "once"}
    part |= {"least": 1, "most": 1, "inner": "followed_by", "greedy": False, "optional": False, "until": None}
    return {**part, "window": None, "gap": None, "between": None, **changes}


def group(parts: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """A pattern as a step of another one."""
    return {**step("", "", **changes), "name": None, "tests": [], "group": parts}


PATTERNS: dict[str, list[dict[str, Any]]] = {
    "three steps": [step("a", "a", "next"), step("b", "b"), step("c", "c")],
    "followed by any": [step("a", "a", "next"), step("b", "b", "followed_by_any"), step("c", "c", "followed_by_any")],
    "optional": [step("a", "a", "next"), step("b", "b", optional=True), step("c", "c")],
    "times(2)": [step("a", "a", "next"), step("b", "b", rounds="times", least=2, most=2), step("c", "c")],
    "one or more": [step("a", "a", "next"), step("b", "b", rounds="one_or_more"), step("c", "c")],
    "greedy": [step("a", "a", "next"), step("b", "b", rounds="one_or_more", greedy=True), step("c", "c")],
    "group, twice": [
        step("a", "a", "next"),
        group([step("x", "b", "next"), step("y", "c")], rounds="times", least=2, most=2),
        step("d", "d"),
    ],
}


def builder(chain: list[dict[str, Any]]) -> Pattern:
    """The same pattern by our builder."""
    at: Pattern | None = None
    for part in chain:
        what: Any = part["name"] if part["group"] is None else builder(part["group"])
        at = Pattern.begin(what) if at is None else getattr(at, part["contiguity"])(what)
        for test in part["tests"]:
            at = at.where(f"name = '{test['value']}'")
        if part["rounds"] == "times":
            at = at.times(part["least"], part["most"])
        elif part["rounds"] == "one_or_more":
            at = at.one_or_more()
        at = at.greedy() if part["greedy"] else at
        at = at.optional() if part["optional"] else at
        at = at.within(part["window"]) if part["window"] else at
    assert at is not None
    return at


def main(count: int) -> None:
    """Prints events per second of both, and their ratio."""
    rng = np.random.default_rng(7)
    names = np.array(list("abcdefghijklmnopqrst"))[rng.integers(0, 20, count)]
    table = pa.table({"ts": np.arange(count), "name": pa.array(names), "price": rng.random(count)})
    rows = table.to_pylist()
    jars = flink_jars()
    path = f"{compile_driver('FlinkNfa', jars)}{os.pathsep}{jars / '*'}"
    command = [find_tool("java"), "-Xmx2g", *JAVA_OPTIONS, "-cp", path, "FlinkNfa"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    cepheid.match(table.slice(0, 10_000), builder(PATTERNS["three steps"]), type=None)
    print(f"{'pattern':<18}{'matches':>9}{'Flink ev/s':>12}{'Cepheid ev/s':>14}{'ratio':>7}")
    for name, chain in PATTERNS.items():
        windowed = [*chain[:-1], {**chain[-1], "window": WINDOW}]
        seconds = []
        for _ in range(3):  # the first one warms up the JIT compiler
            process.stdin.write(json.dumps({"chain": windowed, "skip": "no_skip", "events": rows}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            seconds.append(answer["processor"])
        own = []
        for _ in range(3):
            begun = time.process_time()
            found = cepheid.match(table, builder(windowed), type=None)
            own.append(time.process_time() - begun)
        assert found.num_rows == len(answer["matches"])
        flink, ours = count / min(seconds), count / min(own)
        print(f"{name:<18}{found.num_rows:>9,}{flink:>12,.0f}{ours:>14,.0f}{ours / flink:>7.0f}", flush=True)
    process.stdin.close()
    process.terminate()  # a thread of Flink's would keep it


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
