"""Agreement with the reference evaluator, the judge of every engine; and of `find` with itself, cut anywhere."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import ENGINES, find
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan

Found = list[tuple[Any, ...]]


def bound_to(query: s.QuerySyntax, table: pa.Table, **roles: Any) -> BoundQuery:
    """The query over this table."""
    return bind(query, Schema.from_arrow(table.schema, **roles))


def assert_agrees(query: s.QuerySyntax, table: pa.Table, engine: str, **plan: Any) -> bool:
    """The engine finds exactly the reference's matches, nothing twice; False if it refuses the query."""
    bound = bound_to(query, table)
    if ENGINES[engine].refuses(bound) is not None:
        return False
    events = ordered(table, bound.schema)
    split = {"partition": bound.equivalence, **plan}
    found = everything(find(Plan(bound, engine, **split), events))
    assert found == everything(find(Plan(bound, "reference"), events))
    assert len(set(found)) == len(found)
    return True


def assert_cuts_agree(query: s.QuerySyntax, table: pa.Table, engine: str, cuts: Sequence[int]) -> None:
    """Intervals of completion that follow each other find together what the whole finds, each match once."""
    bound = bound_to(query, table)
    if ENGINES[engine].refuses(bound) is not None:
        return
    events = ordered(table, bound.schema)
    plan = Plan(bound, engine, partition=bound.equivalence)
    pieces = cut(plan, events, cuts)
    assert sorted(match for piece in pieces for match in everything(piece)) == everything(find(plan, events))


def cut(plan: Plan, events: EventTable, cuts: Sequence[int]) -> list[Matches]:
    """What is found in each interval between cuts, the open ends included."""
    edges: list[int | None] = [None, *sorted(set(cuts)), None]
    return [find(plan, events, after, until) for after, until in itertools.pairwise(edges)]


def everything(matches: Matches) -> Found:
    """All matches as plain values, sorted."""
    return sorted(zip(matches.groups(), matches.completion.tolist(), strict=True))
