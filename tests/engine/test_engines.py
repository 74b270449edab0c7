"""The registry of engines: each is listed once, loads nothing but itself, and is chosen by what it costs."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine import engines
from cepheid.engine.choose import make_plan
from cepheid.engine.data.matches import from_groups
from cepheid.engine.data.table import ordered
from cepheid.engine.engines import ENGINES, Engine, Fixed
from cepheid.engine.find import find
from cepheid.language.schema import Schema
from cepheid.plan.options import NoOptions, options_of
from cepheid.runners.options import Options

EVENTS = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "C", "B"], "id": [1, 1, 1, 2], "x": [5, 6, 7, 8]})
SEQUENCE = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9"
GROUP = "PATTERN SEQ(A+ a[], B b) WITHIN 9"
PLAIN = """
import sys, cepheid, pyarrow
events = pyarrow.table({"ts": [1, 2], "type": ["A", "B"], "id": [7, 7]})
assert cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5").num_rows == 1
searches = {name.split(".")[3] for name in sys.modules if name.startswith("cepheid.engine.search.")}
heavy = {"scipy.special", "cepheid.model", "pyspark"} & set(sys.modules)
print(*sorted(searches), *sorted(heavy))
"""


def test_a_plain_query_loads_its_own_search_and_no_scipy() -> None:
    # numba imports scipy's name by itself, to see that it is there; what takes time are its parts.
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["stacks"]


def test_every_engine_can_be_loaded_and_its_options_are_those_of_match() -> None:
    for engine in ENGINES.values():
        assert callable(engine.load())
        assert set(options_of(engine.options)) <= set(options_of(Options))


def run_nothing(plan, events, after, until):
    """An engine that finds nothing."""
    return from_groups([], [], [component.kleene for component in plan.bound.positives])


def test_a_new_engine_is_its_module_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine("nothing", NoOptions, engines.precise, Fixed(0.0), "nothing:run_nothing")
    monkeypatch.setitem(ENGINES, "nothing", engine)  # type: ignore[misc]
    monkeypatch.setitem(sys.modules, "cepheid.engine.nothing", sys.modules[__name__])
    bound = cepheid.query(SEQUENCE).bind(Schema.from_arrow(EVENTS.schema))
    plan, _ = make_plan(bound)
    assert plan.engine == "nothing"  # nothing is cheaper
    assert len(find(plan, ordered(EVENTS, bound.schema))) == 0


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (
            "PATTERN SEQ(A+ a[], B b) WITHIN 9",
            {"engine": "sequence"},
            "does not support Kleene plus; 'runs' or 'backtrack' can",
        ),
        (SEQUENCE, {"engine": "queues"}, "it is for events that may be missing; pass model=.* 'sequence', .* can"),
        (SEQUENCE, {"engine": "bogus"}, "no engine 'bogus'; the engines are"),
        (SEQUENCE, {"merge": False, "order": "ab"}, "merge is an option of engine 'runs', but another option"),
        (SEQUENCE, {"merge": False, "engine": "sequence"}, "merge is an option of engine 'runs', not of 'sequence'"),
        (
            "PATTERN SEQ(A+ a[], B b) WITHIN 9",
            {"order": "ab"},
            "'lazy-chain', which cannot run this query: it does not",
        ),
        (GROUP, {"pushdown": False}, "pushdown is an option of engine 'sequence', which"),
        (SEQUENCE, {"order": "abc"}, "must name each of a, b once"),
    ],
)
def test_what_an_engine_cannot_do_is_said(text: str, options: dict, told: str) -> None:
    with pytest.raises(cepheid.EngineError, match=told):
        cepheid.match(EVENTS, text, **options)


def test_options_choose_among_the_engines_that_read_them() -> None:
    explain = cepheid.query(SEQUENCE).explain
    assert "engine      runs" in explain(EVENTS, merge=False)
    assert "engine      lazy-tree" in explain(EVENTS, learn=False)
    assert "engine      lazy-chain" in explain(EVENTS, order=["b", "a"])
    assert "engine      sequence" in explain(EVENTS, pushdown=False)


def test_hints_are_true() -> None:
    bounds = {"lower": "ts", "upper": "ts"}
    counted = "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS"
    with pytest.raises(cepheid.EngineError, match=r"counts events in order.*only engine='reference' can"):
        cepheid.match(EVENTS, counted, **bounds)
    assert cepheid.match(EVENTS, counted, engine="reference", **bounds).num_rows > 0
    with pytest.raises(cepheid.QueryError, match="NON-OVERLAP needs to know which match ended first") as error:
        cepheid.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 3 OUTPUT NON-OVERLAP", **bounds)
    assert "reference" not in str(error.value)
