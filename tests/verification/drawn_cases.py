"""A pytest plugin that runs drawn properties alone, with as many cases as are asked for, and records each run.

`run.py` loads it. A property is a test of Hypothesis. The record has one line of JSON for each run of a property: how
many cases it drew, from which seed, in how many seconds, and, if it failed, the smallest case that fails.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

PASSING = re.compile(r"(\d+) passing")
CASES, PROCESSOR = pytest.StashKey[int](), pytest.StashKey[float]()
SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps what @settings says of a test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=0, help="cases that each drawn property draws")
    parser.addoption("--cases-of", default="", help="a file of JSON: cases of some properties, by their names")
    parser.addoption("--cases-record", default="", help="the file to which a line for each property is added")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is no drawn property, and gives every property its number of cases."""
    drawn = [item for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)]
    config.hook.pytest_deselected(items=[item for item in items if item not in drawn])
    items[:] = drawn
    of = config.getoption("--cases-of")
    wanted = json.loads(Path(of).read_text()) if of else {}
    for item in drawn:
        item.stash[CASES] = wanted.get(item.nodeid, config.getoption("--cases"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that differ in a parameter share their function, so each sets its own number of cases on it."""
    assert isinstance(item, pytest.Function)
    function = getattr(item.obj, "__func__", item.obj)
    changed = settings(
        getattr(function, SETTINGS, None) or settings(),
        max_examples=item.stash[CASES],
        derandomize=False,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    setattr(function, SETTINGS, changed)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measures processor time, which tells more than the clock where others work, too."""
    begin = time.process_time()
    yield
    item.stash[PROCESSOR] = time.process_time() - begin


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Adds a line to the record when a property has run."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.when != "call" or report.skipped:
        return
    said = getattr(item, "hypothesis_statistics", "").partition("shrink phase")[0]
    each = getattr(getattr(item, "function", None), "cases_each", 1)  # streams of one table
    line = {
        "property": item.nodeid,
        "cases": each * sum(map(int, PASSING.findall(said))),
        "seconds": round(call.duration, 3),
        "processor": round(item.stash.get(PROCESSOR, call.duration), 3),
        "seed": item.config.getoption("--hypothesis-seed"),
        "asked": item.stash[CASES],
        "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }
    if report.failed:
        line["failure"] = report.longreprtext
    with Path(item.config.getoption("--cases-record")).open("a") as record:
        record.write(json.dumps(line) + "\n")
