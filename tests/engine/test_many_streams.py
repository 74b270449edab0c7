"""Every engine agrees with the reference on many small streams at once: each is the stream of one key in one table.

A call costs more than a stream of six events, so a hundred streams in one table cost little more than one of them.
"""

from __future__ import annotations

import random
import warnings
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.engines import ENGINES
from cepheid.model import Exponential, Model
from contract import properties
from contract.cases import Case, is_imprecise, is_lossy, may_be_untrue
from contract.steps import found_in_steps
from verification.matrix import rows_of

NEXT = "WHERE skip_till_next_match {{ [k]{} }} WITHIN {}"
QUERIES = {
    "certain": [
        "PATTERN SEQ(A a, !(C c), B b) WHERE [k] AND c.x = a.x WITHIN 4",
        "PATTERN SEQ(A a, B b, !(C c)) WHERE [k] AND c.x >= a.x WITHIN 4",
        "PATTERN SEQ(!(C c), A a, A b) WHERE [k] AND a.x <= b.x WITHIN 4",
        "PATTERN SEQ(A a, B b, !(C c), A d) WHERE [k] AND a.x < d.x AND b.x != c.x WITHIN 6",
        "PATTERN SEQ(A a, B+ b[], C c) " + NEXT.format(" AND b[i].x >= a.x", 5),
        "PATTERN SEQ(A a, B+ b[]) WHERE [k] AND b[i].x >= b[i-1].x AND sum(b[].x) > 1 WITHIN 4",
        "PATTERN SEQ(A a, B b, C c) WHERE partition_contiguity(a, b, c) { [k] } WITHIN 5",
        "PATTERN SEQ(A a, (B b | C c), A? d) " + NEXT.format("", 5),
        "PATTERN SEQ(A a, (B b, C c)+, A d) WHERE [k] WITHIN 6",
        "PATTERN AND(A a, B b, C c) WHERE [k] AND a.x != b.x WITHIN 4",
    ],
    "missing": [
        "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x <= c.x WITHIN 5 THRESHOLD 0.02",
        "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 5 THRESHOLD 0.02",
        "PATTERN SEQ(A a, !(C n), B b, A c) WHERE [k] AND n.x = a.x WITHIN 5 THRESHOLD 0.02",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE [k] AND b[i].x >= a.x WITHIN 4 THRESHOLD 0.02",
        "PATTERN SEQ(A a, B b, C c) " + NEXT.format("", 5) + " THRESHOLD 0.02",
        "PATTERN SEQ(A a, B b, !(C n)) WHERE [k] AND n.x > b.x WITHIN 4 THRESHOLD 0.02",
    ],
    "imprecise": [
        "PATTERN SEQ(A a, B b) WHERE [k] AND a.x <= b.x WITHIN 4",
        "PATTERN SEQ(A a, !(C c), B b) WHERE [k] AND c.x = a.x WITHIN 4",
        "PATTERN SEQ(A a, B b, C c) " + NEXT.format("", 5),
    ],
    "existence": [
        "PATTERN SEQ(A a, B b) WHERE [k] AND a.x <= b.x WITHIN 4",
        "PATTERN SEQ(A a, !(C c), B b) WHERE [k] WITHIN 4",
        "PATTERN SEQ(A a, B b, C c) " + NEXT.format("", 5),
    ],
}
STREAMS = {"certain": 60, "missing": 100, "imprecise": 80, "existence": 80}


class Drawn(NamedTuple):
    """A case, and its place in the lists above."""

    kind: str
    number: int
    seed: int


@lru_cache(maxsize=1)
def case_of(drawn: Drawn) -> Case:
    rng, kind = random.Random(str(drawn)), drawn.kind
    rows: list[dict[str, Any]] = []
    for key in range(STREAMS[kind]):
        at = 0
        for _ in range(rng.randint(3, 6) if kind in ("certain", "missing") else 4):
            at += rng.choice([0, 1, 1, 2])
            row: dict[str, Any] = {"ts": at, "type": rng.choice("AABBC"), "k": key, "x": rng.randint(0, 2)}
            if is_imprecise(kind):
                row |= {"lower": at - rng.randint(0, 1), "upper": at + rng.randint(0, 1)}
            if may_be_untrue(kind):
                row["chance"] = rng.choice([1.0, 1.0, 0.75, 0.5])
            rows.append(row)
    rows.sort(key=lambda row: row["ts"])
    table = pa.Table.from_pylist(rows)
    table = table.append_column("event", pa.array(range(table.num_rows), pa.int64()))
    parts: dict[str, Any] = {}
    if is_lossy(kind):
        parts["model"] = Model(loss=0.2, gaps={name: Exponential(mean=2.0) for name in "abcn"})
        parts["options"] = {"missing_last": bool(drawn.seed % 2)}
    return Case(kind, cepheid.query(QUERIES[kind][drawn.number]).syntax, table, parts)


def agrees(drawn: Drawn) -> None:
    """All engines that take the query find what the reference finds, also where completion is cut in two."""
    case = case_of(drawn)
    bound, ran = case.bound(), 0
    for name, engine in ENGINES.items():
        if name != "reference" and engine.refuses(bound, case.parts.get("model")) is None:
            properties.agrees_with_the_reference(case, name)
            properties.can_be_cut_anywhere(case, name, [drawn.seed % 7 + 1])
            ran += 1
    assert ran


ALL = [(kind, number) for kind, queries in QUERIES.items() for number in range(len(queries))]


@pytest.mark.some(8)
@pytest.mark.parametrize(("kind", "number"), ALL)
def test_engines_agree_on_many_streams(kind: str, number: int) -> None:
    agrees(Drawn(kind, number, number))


def pieces_of(table: pa.Table, seed: int) -> tuple[list[pa.Table], int]:
    """The events in an order in which none is later than a delay, cut anywhere, and the delay."""
    rng = random.Random(seed)
    delay = rng.choice([0, 1, 3])
    order = sorted(range(table.num_rows), key=lambda row: table["ts"][row].as_py() + rng.random() * delay)
    cuts = [0, *sorted(rng.randint(0, len(order)) for _ in range(rng.randint(0, 4))), len(order)]
    return [table.take(pa.array(order[low:high], pa.int64())) for low, high in pairwise(cuts)], delay


def streams_agree(drawn: Drawn) -> None:
    """Micro-batches find what the engine finds in the whole table."""
    case = case_of(drawn)
    pieces, delay = pieces_of(case.table, drawn.seed)
    for name, engine in ENGINES.items():
        if engine.refuses(case.bound(), case.parts.get("model")) is None and not is_imprecise(case.kind):
            plan = case.plan(name)
            expected = sorted(properties.signatures_of(plan, case.events()))
            assert found_in_steps(plan, pieces, delay) == expected, name


def live_agrees(drawn: Drawn) -> None:
    """A live query finds what the reference does, also saved and restored."""
    case, query = case_of(drawn), QUERIES[drawn.kind][drawn.number]
    pieces, delay = pieces_of(case.table, drawn.seed)
    options: dict[str, Any] = {"model": case.parts["model"]} if case.parts else {}
    options |= case.parts.get("options", {})
    options |= {"lower": "lower", "upper": "upper"} if is_imprecise(case.kind) else {}
    options |= {"existence": "chance"} if may_be_untrue(case.kind) else {}
    waits = {"delay": delay + 3 * is_imprecise(case.kind)}
    live, found = cepheid.live(query, case.table.schema, **options, **waits), []
    for number, piece in enumerate(pieces):
        found += live.send(piece).to_pylist()
        if (drawn.seed + number) % 2:
            live = cepheid.live(query, case.table.schema, state=live.save(), **options, **waits)
    found += live.finish().to_pylist()
    assert rows_of(found) == rows_of(cepheid.match(case.table, query, engine="reference", **options))


LONG = {"engines": agrees, "streams": streams_agree, "live": live_agrees}


@pytest.mark.slow
@pytest.mark.parametrize("how", LONG)
@given(st.sampled_from(ALL), st.integers(0, 2**20))
def test_drawn_streams(how: str, chosen: tuple[str, int], seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties
        LONG[how](Drawn(*chosen, seed))


test_drawn_streams.cases_each = min(STREAMS.values())  # type: ignore[attr-defined]  # for verification/drawn_cases.py
