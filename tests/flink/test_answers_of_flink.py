"""Drawn patterns, with the answers that Flink 2.3 itself gave: the reference and the automaton give the same.

`python tests/flink/test_answers_of_flink.py 400` asks Flink again (it needs Java), and writes the file anew.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import QueryError
from cepheid.plan.flink_lowering import lower_flink
from cepheid.runners.flink import events_schema
from cepheid.runners.options import FlinkOptions
from strategies.flink import draw_task, to_pattern

FILE = Path(__file__).with_name("answers_of_flink.jsonl")
SCHEMA = pa.schema({"ts": pa.int64(), "name": pa.string(), "price": pa.float64()})
DEFAULTS = {
    "name": None,
    "group": None,
    "tests": [],
    "rounds": "once",
    "least": 1,
    "most": 1,
    "inner": "followed_by",
    "greedy": False,
    "optional": False,
    "until": None,
    "window": None,
    "gap": None,
    "between": None,
}


def answers(task: dict[str, Any], engine: str) -> tuple[list[Any], list[Any]]:
    """Our matches in the order in which they are found, and the runs that were given up."""
    table = pa.Table.from_pylist(task["events"], SCHEMA).append_column("id", pa.array(range(len(task["events"]))))
    found = cepheid.match(table, to_pattern(task), type=None, engine=engine, partial=True)
    steps = [name for name in found.column_names if name not in FINDINGS]
    matches, given_up = [], []
    for row in found.to_pylist():
        taken = {
            step: [event["id"] for event in (row[step] if isinstance(row[step], list) else [row[step]])]
            for step in steps
            if row[step]
        }
        if row["timed_out"]:
            given_up.append([taken, row["given_up"]])
        else:
            matches.append(taken)
    return matches, in_order(given_up)


FINDINGS = ("match_start", "match_end", "timed_out", "waiting_for", "given_up")


def in_order(given_up: list[Any]) -> list[Any]:
    """Runs that were given up come in no particular order."""
    return sorted(given_up, key=lambda each: json.dumps(each, sort_keys=True))


def full(chain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts with all their fields."""
    parts = [{**DEFAULTS, **part} for part in chain]
    return [{**part, "group": full(part["group"]) if part["group"] else None} for part in parts]


def short(chain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts without what is so by default."""
    parts = [{**part, "group": short(part["group"]) if part["group"] else None} for part in chain]
    return [{key: value for key, value in part.items() if DEFAULTS.get(key, "") != value} for part in parts]


@pytest.mark.parametrize("engine", ["automaton", "reference"])
def test_the_answers_are_those_of_flink(engine: str) -> None:
    for line in FILE.read_text().splitlines():
        task = json.loads(line)
        task["chain"] = full(task["chain"])
        matches, given_up = answers(task, engine)
        assert matches == task["matches"], to_pattern(task)
        assert given_up == in_order(task["given_up"]), to_pattern(task)


@pytest.mark.slow
def test_fresh_answers_of_flink() -> None:
    installation = pytest.importorskip("bench.flink.installation")
    if not (installation.BENCH_HOME / f"flink-{installation.FLINK_VERSION}").exists():
        pytest.skip("Flink is not set up: make bench-rivals")
    for task in asked(range(500_000, 500_600)):
        if "error" not in task:
            matches, given_up = answers(task, "automaton")
            assert matches == task["matches"], to_pattern(task)
            assert given_up == in_order(task["given_up"]), to_pattern(task)


def asked(seeds: range) -> Any:
    """Tasks with Flink's answers; those that take long are left out."""
    from bench.flink.installation import JAVA_OPTIONS, compile_driver, find_tool, flink_jars

    jars = flink_jars()
    classes = compile_driver("FlinkNfa", jars)
    command = [find_tool("java"), "-Xmx1g", *JAVA_OPTIONS, "-cp", f"{classes}{os.pathsep}{jars / '*'}", "FlinkNfa"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    options = FlinkOptions(type=None)
    for seed in seeds:
        task = draw_task(random.Random(seed))
        try:
            lower_flink(to_pattern(task), events_schema(options, SCHEMA))
            if is_long(task):
                continue
        except QueryError:
            continue
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        yield {**task, **json.loads(process.stdout.readline())}
    process.stdin.close()
    process.wait()


def is_long(task: dict[str, Any]) -> bool:
    """Does it open so many runs that Flink would not end?"""

    def ring(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        answers(task, "reference")
    except TimeoutError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


if __name__ == "__main__":
    lines: list[str] = []
    for answered in asked(range(10**6)):
        known = answered.get("matches") or answered.get("given_up")
        if known and len(json.dumps(answered)) < 4000:
            lines.append(json.dumps({**answered, "chain": short(answered["chain"])}))
        if len(lines) == int(sys.argv[1]):
            break
    FILE.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} answers, {FILE.stat().st_size:,} bytes")
