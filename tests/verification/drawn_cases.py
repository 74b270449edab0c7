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
SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps what @settings says of a test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=0, help="cases that each drawn property draws")
    parser.addoption("--cases-record", default="", help="the file to which a line for each property is added")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is no drawn property, and gives every property the number of cases."""
    wanted = config.getoption("--cases")
    drawn = [item for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)]
    config.hook.pytest_deselected(items=[item for item in items if item not in drawn])
    items[:] = drawn
    for function in {getattr(item.obj, "__func__", item.obj) for item in drawn}:
        chosen = getattr(function, SETTINGS, None) or settings()
        changed = settings(
            chosen,
            max_examples=wanted,
            derandomize=False,
            database=None,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
        setattr(function, SETTINGS, changed)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Adds a line to the record when a property has run."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.when != "call" or report.skipped:
        return
    said = getattr(item, "hypothesis_statistics", "").partition("shrink phase")[0]
    line = {
        "property": item.nodeid,
        "cases": sum(map(int, PASSING.findall(said))),
        "seconds": round(call.duration, 3),
        "seed": item.config.getoption("--hypothesis-seed"),
        "asked": item.config.getoption("--cases"),
        "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }
    if report.failed:
        line["failure"] = report.longreprtext
    with Path(item.config.getoption("--cases-record")).open("a") as record:
        record.write(json.dumps(line) + "\n")
