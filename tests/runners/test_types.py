"""The public face as a checker of types sees it: misspelt options and wrong values are found before anything runs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import cepheid
from cepheid.plan.options import options_of
from cepheid.runners.keywords import MatchKeywords
from cepheid.runners.options import BatchOptions, Options, StreamOptions
from runners.option_pages import COMMAND, SOURCE, keywords

SCRIPT = """
import pandas as pd
import cepheid

events = pd.DataFrame({"ts": [1], "type": ["A"]})
query = cepheid.query("PATTERN A a")
right: pd.DataFrame = cepheid.match(events, query, engine="auto", scoring="exact", time="ts")
number: int = query.match(events, output="count")
more: pd.DataFrame = query.match(events, bad_records="drop")
live = cepheid.live(query, {"ts": int, "type": str}, delay="2 seconds")
told: str = query.explain(events, analyze=True)
reveal_type(cepheid.fit(events, query, loss=0.1))
"""
WRONG = [
    'cepheid.match(events, query, engin="auto")',
    'cepheid.match(events, query, scoring="bogus")',
    'query.match(events, engine="sequense")',
    'query.explain(events, scorng="exact")',
    'cepheid.fit(events, query, negatives="some")',
    'cepheid.why(events, query, tme="ts")',
    'cepheid.live(query, {"ts": int}, delai=3)',
    'cepheid.match(events, query, bad_records="ignore")',
]


@pytest.mark.slow
def test_a_script_with_mistakes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\n".join(WRONG) + "\n")
    source = Path(cepheid.__file__).parent.parent
    checker = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path)]
    known = {"MYPYPATH": str(source)}
    ran = subprocess.run([*checker, "script.py"], capture_output=True, text=True, cwd=tmp_path, env=known)
    first = SCRIPT.count("\n") + 1
    wrong = {int(line.split(":")[1]) for line in ran.stdout.splitlines() if ": error:" in line}
    assert wrong == set(range(first, first + len(WRONG))), ran.stdout + ran.stderr
    assert 'Revealed type is "cepheid.model' in ran.stdout


def test_keywords_and_options_are_the_same() -> None:
    assert SOURCE.read_text(encoding="utf-8") == keywords(), f"run {COMMAND}"
    declared = {*options_of(Options), *options_of(BatchOptions), *options_of(StreamOptions)}
    typed = {name for kind in MatchKeywords.__mro__ for name in getattr(kind, "__annotations__", {})}
    others = {"parameters", "dialect", "unsafe_functions", "max_rows"}
    assert set(MatchKeywords.__optional_keys__) | typed == declared - {"output"} | others


def test_notebooks_show_the_options() -> None:
    shown = inspect.signature(cepheid.match)
    assert {"engine", "time", "bad_records", "partitions", "delay"} <= set(shown.parameters)
    assert shown.parameters["time"].default == "ts"
