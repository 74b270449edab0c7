"""Patterns that are expressions where events may be missing, times are imprecise, or events may not have happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cepheid.engine.engines import ENGINES
from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.language.linear import linear_patterns
from cepheid.plan.checks import check_meaning, check_options
from cepheid.plan.options import PlanOptions
from contract import properties
from contract.cases import CHANCES, COMPILED, Case
from strategies.expressions import expression_queries
from strategies.intervals import intervals
from strategies.models import models
from strategies.queries import streams

MOST_LINEAR = 8
CUTS = st.lists(st.integers(-5, 30), max_size=3)


@st.composite
def cases(draw: st.DrawFn, kind: str) -> Case:
    """An expression that means something on an unsure stream of this kind."""
    lossy = kind == "missing"
    strategies = (s.Strategy.SKIP_TILL_ANY,) if lossy else tuple(s.Strategy)
    window = True if lossy else None
    query = draw(expression_queries(unbounded=False, output=False, steps=False, window=window, strategies=strategies))
    assume(not any(component.until is not None for component in query.components))
    parts: dict[str, Any] = {}
    if lossy:
        assume(query.within is not None and query.within.unit is None)
        query = replace(query, threshold=draw(st.sampled_from((0.001, 0.05, 0.5))))
        parts = {"model": draw(models(component.variable for component in query.components))}
        parts["scoring"] = draw(st.sampled_from(("exact", "paper")))
    table = draw(streams(max_size=6) if lossy else intervals(max_size=4, most=2))
    if kind.startswith("existence"):
        chances = [draw(CHANCES) for _ in range(table.num_rows)]
        table = table.append_column("chance", pa.array(chances, pa.float64()))
    case = Case(kind, query, table.append_column("event", pa.array(range(table.num_rows), pa.int64())), parts)
    bound = case.bound()
    try:
        check_meaning(bound)
        check_options(bound, PlanOptions(model=parts.get("model")))
    except CepheidError:
        assume(False)
    assume(ENGINES["expansion"].refuses(bound, parts.get("model")) is None)
    assume(len(linear_patterns(bound, 1)) <= MOST_LINEAR)
    return case


@pytest.mark.skipif(COMPILED, reason="each drawn query is several that would be compiled")
@pytest.mark.parametrize("kind", ["missing", "imprecise", "existence imprecise"])
@settings(max_examples=max(min(settings().max_examples // 4, 300), 1), suppress_health_check=list(HealthCheck))
@given(data=st.data(), cuts=CUTS)
def test_it_agrees_with_the_reference(kind: str, data: Any, cuts: list[int]) -> None:
    case = data.draw(cases(kind))
    properties.agrees_with_the_reference(case, "expansion")
    properties.can_be_cut_anywhere(case, "expansion", cuts)
