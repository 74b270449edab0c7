"""Rivals that run on the JVM: Siddhi, and Flink SQL's MATCH_RECOGNIZE. The drivers are compiled on first use."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.flink.installation import JAVA_OPTIONS, FlinkUnavailable, find_tool
from bench.harness.calls import match_digest
from bench.harness.experiment import Contestant, Outcome, Unavailable
from bench.rivals import setup
from bench.rivals.process import REPEATS, TIMEOUT

HERE = Path(__file__).parent


def siddhi(table: pa.Table, types: Sequence[str], key: str, window: int) -> Contestant:
    """Siddhi: `every e1 -> e2 -> e3 within`, one partition a key; its window keeps a match of exactly its length."""
    return driven("Siddhi", "SiddhiNext", setup.siddhi(), table, types, key, [str(window - 1)])


def flink_sql(table: pa.Table, types: Sequence[str], key: str, window: int, slots: int = 1) -> Contestant:
    """Flink SQL: MATCH_RECOGNIZE with gaps between the steps that hold no event of the next one."""
    jars = setup.flink() / f"flink-{setup.FLINK}" / "pyflink" / "lib"
    name = "Flink SQL MATCH_RECOGNIZE" + (f", {slots} slots" if slots > 1 else "")
    return driven(name, "FlinkSqlNext", jars, table, types, key, [str(window), str(slots)])


def driven(
    name: str, driver: str, jars: Path, table: pa.Table, types: Sequence[str], key: str, options: Sequence[str]
) -> Contestant:
    """A contestant that is a Java driver."""
    classes = compiled(driver, jars)
    java = tool("java")
    codes = np.array([types.index(kind) if kind in types else len(types) for kind in table["type"].to_pylist()])
    numbers = np.concatenate([[table.num_rows], table["ts"].to_numpy(), table[key].to_numpy(), codes]).astype("<i8")

    def run() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            events, found = Path(folder) / "events.bin", Path(folder) / "matches.bin"
            numbers.tofile(events)
            path = f"{classes}{os.pathsep}{jars / '*'}"
            command = [java, "-Xmx4g", *JAVA_OPTIONS, "-cp", path, driver, str(events), str(found), str(len(types))]
            try:
                done = subprocess.run(
                    [*command, *options], capture_output=True, text=True, check=False, timeout=TIMEOUT
                )
            except subprocess.TimeoutExpired:
                raise Unavailable(f"did not finish in {TIMEOUT:.0f} s") from None
            answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode != 0 or not answers:
                raise Unavailable(f"failed: {(done.stderr or done.stdout).strip()[-500:]}")
            return {**json.loads(answers[-1]), "times": np.fromfile(found, "<i8").reshape(-1, len(types))}

    def inspect(answer: dict[str, Any]) -> Outcome:
        columns = {f"e{place + 1}": pa.array(answer["times"][:, place]) for place in range(len(types))}
        result = pa.table({**columns, "match_start": columns["e1"], "match_end": columns[f"e{len(types)}"]})
        return Outcome(result.num_rows, match_digest(result), answer["seconds"])

    return Contestant(name, run, table.num_rows, inspect, most_repeats=REPEATS, warms_itself=True)


def compiled(driver: str, jars: Path) -> Path:
    """The folder of a driver's classes; a new one for every change of the source."""
    source = HERE / f"{driver}.java"
    folder = setup.HOME / f"{driver}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        setup.run(
            [tool("javac"), "--release", "17", "-cp", str(jars / "*"), "-d", str(folder), str(source)],
            f"compile {source.name}",
        )
    return folder


def tool(name: str) -> str:
    """The path of `java` or `javac`."""
    try:
        return find_tool(name)
    except FlinkUnavailable as problem:
        raise Unavailable(str(problem).replace("Flink needs", "It needs")) from None
