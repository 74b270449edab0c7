"""A plain sequence is the trivial expression: read as one, it has the same matches, known at the same instants."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings

from cepheid.engine import reference
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.engines import ENGINES
from cepheid.engine.find import BEGINNING, find
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.pattern import Sequence
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to
from strategies.queries import queries, streams

slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
SEQUENCES = queries(output=False, returns=False)


def as_expression(query: s.QuerySyntax) -> s.QuerySyntax:
    """The same query, whose pattern is a sequence inside of another: what is not linear is run as an expression."""
    found = check(dataclasses.replace(query, pattern=Sequence((query.pattern,))))
    assert query.is_linear
    assert not found.is_linear
    return found


def told(matches: Matches) -> set[tuple[object, int]]:
    return set(zip(matches.groups(), matches.completion.tolist(), strict=True))


def judged(query: s.QuerySyntax, events: pa.Table) -> Matches:
    bound = bound_to(query, events)
    return reference.find(Plan(bound, "reference"), ordered(events, bound.schema), BEGINNING, NEVER)


@slow
@given(SEQUENCES, streams(max_size=8))
def test_the_reference_says_the_same_of_both(query: s.QuerySyntax, events: pa.Table) -> None:
    assert told(judged(as_expression(query), events)) == told(judged(query, events))


@slow
@given(SEQUENCES, streams(max_size=10))
def test_states_find_what_runs_find(query: s.QuerySyntax, events: pa.Table) -> None:
    linear, expression = bound_to(query, events), bound_to(as_expression(query), events)
    assume(ENGINES["runs"].refuses(linear) is None and ENGINES["states"].refuses(expression) is None)
    by_runs, by_states = (
        find(Plan(bound, engine, partition=bound.equivalence), ordered(events, bound.schema))
        for bound, engine in ((linear, "runs"), (expression, "states"))
    )
    assert told(by_states) == told(by_runs)
