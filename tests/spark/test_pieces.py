"""Events cut into pieces that fit memory give the matches of the whole, without Spark."""

from collections.abc import Iterable

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given

from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import find
from cepheid.language.bind import bind
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.events_of_each import events_of_each
from cepheid.runners.pieces import Piece, can_cut, cut_by_time, found, key_hashes, pieces
from strategies.queries import queries, streams


def numbered(table: pa.Table) -> pa.Table:
    return table.append_column("event", pa.array(range(table.num_rows), pa.int64()))


def signatures(plan: Plan, cut: Iterable[Piece]) -> list:
    ended, matches = None, []
    for piece in cut:
        events = ordered(piece.events, plan.bound.schema)
        ids = events.table["event"].to_pylist()
        some, ended = found(plan, events, piece, ended)
        matches += [tuple(tuple(sorted(ids[row] for row in group)) for group in match) for match in some.groups()]
    return sorted(matches)


@given(queries(returns=False), streams(max_size=14, ids=3), st.integers(100, 2000), st.integers(1, 5))
def test_pieces_find_what_the_whole_finds(query, table, memory, batch_size):
    table = numbered(table)
    bound = bind(query, Schema.from_arrow(table.schema))
    plan = Plan(bound, "reference", partition=bound.equivalence)
    keys = plan.exchange.keys
    batches = table.to_batches(max_chunksize=batch_size)
    cut = signatures(plan, pieces(batches, [plan], keys, memory))
    if keys:  # events without their key are dropped before
        table = table.filter(pa.array(~np.any([table[key].is_null().to_numpy() for key in keys], axis=0)))
    assert cut == signatures(plan, [Piece(table)])


@given(queries(returns=False, window=True), streams(max_size=14), st.integers(2, 6))
def test_intervals_find_what_the_whole_finds(query, table, parts):
    table = numbered(table)
    bound = bind(query, Schema.from_arrow(table.schema))
    plan = Plan(bound, "reference", partition=bound.equivalence)
    if can_cut(table, [plan]):
        assert signatures(plan, cut_by_time(table, [plan], parts)) == signatures(plan, [Piece(table)])


KINDS = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]


@given(st.lists(queries(returns=False), min_size=2, max_size=3), streams(max_size=14, ids=3), st.sampled_from(KINDS))
def test_a_query_finds_in_its_own_events_what_it_finds_in_all(drawn, table, kind):
    table = numbered(table).set_column(1, "type", table["type"].cast(kind))
    bounds = [bind(query, Schema.from_arrow(table.schema)) for query in drawn]
    events = ordered(table, bounds[0].schema)
    for bound, own in zip(bounds, events_of_each(bounds, events), strict=True):
        plan = Plan(bound, "reference", partition=bound.equivalence)
        assert found_in(plan, own) == found_in(plan, events)


def found_in(plan: Plan, events: EventTable) -> list:
    ids = events.table["event"].to_pylist()
    return sorted([sorted(ids[row] for row in group) for group in match] for match in find(plan, events).groups())


def test_equal_keys_have_equal_hashes():
    first = pa.record_batch({"k": ["a", "b", None], "n": [1.0, 2.0, 0.0]})
    second = pa.record_batch({"k": [None, "a"], "n": [-0.0, 1.0]})
    left, right = key_hashes(first, ["k", "n"]).tolist(), key_hashes(second, ["k", "n"]).tolist()
    assert right == [left[2], left[0]]
    assert len(set(left)) == 3
