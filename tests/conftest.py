"""Settings shared by all tests."""

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Drawn streams take uneven time and the first call of a kernel compiles it, so durations decide nothing.
settings.register_profile(
    "fast",
    max_examples=5,
    deadline=None,
    print_blob=True,
    derandomize=True,  # the same examples everywhere: a change is judged by what it changed; test-all draws afresh
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("plain", settings.get_profile("fast"), max_examples=4)
settings.register_profile("compiled", settings.get_profile("fast"), max_examples=2)
# `make test-all`, which has an end: thousands of cases are for `make verify`, which draws new ones each time.
settings.register_profile("all", settings.get_profile("fast"), max_examples=100, derandomize=False)
settings.register_profile("compiled-all", settings.get_profile("fast"), max_examples=25, derandomize=False)
settings.register_profile("hundreds", settings.get_profile("fast"), max_examples=500, derandomize=False)
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=2000, derandomize=False)
settings.load_profile(os.environ.get("CEPHEID_TEST_PROFILE", "fast"))

# What is compiled is tested compiled: a cold cache is no reason to run kernels as plain Python.
os.environ.setdefault("CEPHEID_COMPILE", "always")

# Spark starts its workers with whatever `python3` is, unless told.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

# Modules and collected tests stay until the end. Python need not look for garbage among them again and again.
gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves the slow ones out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is marked with `some(n)`, n cases run in `make test`: evenly spread ones. The others are slow."""
    cases: dict[tuple[object, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some"):
            cases.setdefault((item.parent, getattr(item, "originalname", item.name)), []).append(item)
    for every in cases.values():
        mark = every[0].get_closest_marker("some")
        assert mark
        number = mark.args[0]
        for place, item in enumerate(every):
            if place * number // len(every) == (place - 1) * number // len(every):
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
