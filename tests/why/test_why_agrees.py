"""Whatever the query and the stream, the diagnosis agrees with the reference evaluator about the matches."""

import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid import why
from cepheid.api import Query
from cepheid.language import syntax as s
from strategies.queries import queries, streams


@pytest.mark.slow
@given(queries(output=False), streams(max_size=8))
def test_matches_and_steps_agree_with_the_reference(syntax: s.QuerySyntax, events: pa.Table) -> None:
    query = Query(syntax)
    expected = len(cepheid.match(events, query, engine="reference"))
    found = why(events, query)
    assert found.matches.number == expected
    survivors = [step.count.number for step in found.steps]
    if 0 in survivors:
        assert expected == 0
        assert survivors.index(0) == len(survivors) - 1
    else:
        assert survivors[-1] == expected
    if found.closest is not None:
        assert expected == 0
        assert found.closest.events
