"""Drawn queries are what they promise, and their text reads back."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.printing import to_text
from cepheid.language.sase.parse import parse
from strategies.queries import ARROW_SCHEMA, SCHEMA, queries, streams


@given(
    queries()
    | queries(threshold=True, missing_groups=True, missing_next=True)
    | queries(tied_negations=True)
    | queries(confidence=True, min_components=1)
)
def test_they_bind_and_read_back(query: s.QuerySyntax) -> None:
    bound = bind(query, SCHEMA)
    assert bound.syntax.components == query.components
    text = to_text(query)
    again = check(parse(text), text)
    assert again == query
    assert repr(again) == repr(query)


@given(streams() | streams(shuffled=True, ids=3))
def test_streams_have_the_schema(events: pa.Table) -> None:
    assert events.schema == ARROW_SCHEMA
    events.validate(full=True)
    assert len(events) <= 12


@given(streams(concurrent=False, nulls=False, nans=False, min_size=2))
def test_streams_can_do_without_edge_cases(events: pa.Table) -> None:
    rows = events.to_pylist()
    times = [row["ts"] for row in rows]
    assert all(one < next_one for one, next_one in pairwise(times))
    assert all(row["z"] is not None and row["f"] == row["f"] for row in rows)


def _nodes(query: s.QuerySyntax) -> list[s.Expression]:
    roots = [query.where] if query.where else []
    roots += [item.expression for item in query.returns or ()]
    return [node for root in roots for node in s.walk(root)]


RESTRICTIONS = {
    "negation": lambda query: any(component.negative for component in query.components),
    "edge_negation": lambda query: query.components[0].negative or query.components[-1].negative,
    "kleene": lambda query: any(component.kleene for component in query.components),
    "wildcard": lambda query: any(component.any for component in query.components),
    "untyped": lambda query: any(component.types is None for component in query.components),
    "equivalence": lambda query: any(isinstance(node, s.Equivalence) for node in _nodes(query)),
    "disjunction": lambda query: any(isinstance(node, s.Or | s.Not) for node in _nodes(query)),
    "arithmetic": lambda query: any(isinstance(node, s.Arithmetic | s.Negative) for node in _nodes(query)),
    "functions": lambda query: any(
        isinstance(node, s.Call) and node.function in ("abs", "coalesce") for node in _nodes(query)
    ),
    "aggregates": lambda query: any(isinstance(node, s.Call) and node.function == "avg" for node in _nodes(query)),
    "window": lambda query: query.within is not None,
    "event_window": lambda query: query.within is not None and query.within.unit == "events",
    "returns": lambda query: query.returns is not None,
    "output": lambda query: query.output != s.Output(),
}


ONCE = settings(phases=[Phase.generate], max_examples=2000, database=None)  # any example will do, not the smallest


@pytest.mark.some(4)
@pytest.mark.parametrize("feature", RESTRICTIONS)
def test_a_feature_occurs_unless_it_is_switched_off(feature: str) -> None:
    has = RESTRICTIONS[feature]
    find(queries(), has, settings=ONCE)  # raises if none is found

    @settings(max_examples=50)
    @given(queries(**{feature: False}))
    def never(query: s.QuerySyntax) -> None:
        assert not has(query)

    never()


@given(st.data())
def test_a_strategy_can_be_asked_for(data: st.DataObject) -> None:
    wanted = data.draw(st.sampled_from(s.Strategy))
    query = data.draw(queries(strategy=wanted))
    assert bind(query, SCHEMA).strategy is wanted
