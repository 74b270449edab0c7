"""The program of a query: where conditions are placed, what they need, and how they read when events are missing."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.program.compile import CompiledProgram, compile_program
from cepheid.engine.program.placing import Order, place_conditions
from cepheid.engine.program.tables import (
    AFTER_AT,
    BEFORE_AT,
    BEGIN,
    CASE,
    CLOSE,
    GROUP,
    JUDGED_AT,
    NEEDS,
    NEGATION_NEEDS,
    TAKE,
)
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.check import check
from cepheid.language.printing import expression_text
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema

COLUMNS = (("ts", DataType.INT), ("type", DataType.STRING), ("x", DataType.INT), ("y", DataType.FLOAT))
SEQUENCE = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AND a.y < c.y AND b.x > 3 WITHIN 10"


def bound_query(text: str) -> BoundQuery:
    return bind(check(parse(text)), Schema(COLUMNS, "ts", "type"))


def placed_conditions(text: str, order: Order = None, push: bool = True) -> dict[int, list[str]]:
    placed = place_conditions(bound_query(text), order, push, False)
    return {
        moment: [" AND ".join(map(expression_text, test.conditions)) for test in tests]
        for moment, tests in enumerate(placed.moments)
        if tests
    }


def test_conditions_stand_where_the_order_has_filled_what_they_need() -> None:
    forward = {3: ["a.x < b.x"], 6: ["b.x < c.x AND a.y < c.y"]}
    assert placed_conditions(SEQUENCE) == forward
    assert placed_conditions(SEQUENCE, (0, 1, 2)) == forward
    assert placed_conditions(SEQUENCE, (2, 1, 0)) == {0: ["a.x < b.x AND a.y < c.y"], 3: ["b.x < c.x"]}
    assert placed_conditions(SEQUENCE, (2, 0, 1)) == {0: ["a.y < c.y"], 3: ["a.x < b.x AND b.x < c.x"]}


def test_without_pushing_all_stand_at_the_last_place_of_the_order() -> None:
    assert placed_conditions(SEQUENCE, (2, 1, 0), push=False) == {0: ["a.x < b.x AND b.x < c.x AND a.y < c.y"]}


def test_in_any_order_each_condition_says_what_it_needs() -> None:
    program = compile_program(bound_query(SEQUENCE), order="any").program
    assert program.moments[1] == 3
    assert program.tests[:3, NEEDS].tolist() == [0b011, 0b110, 0b101]


def test_groups_are_judged_when_they_are_complete() -> None:
    text = "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x AND avg(b[].y) < c.y AND b[i].x > a.x WITHIN 10"
    backwards = placed_conditions(text, (2, 1, 0))
    assert backwards == {0: ["b[i].x > a.x"], 3 + CLOSE: ["avg(b[].y) < c.y", "b[i].x > b[i-1].x"]}
    forward = placed_conditions(text)
    assert forward[3 + BEGIN] == ["b[i].x > a.x"]
    assert forward[3 + TAKE] == ["b[i].x > b[i-1].x AND b[i].x > a.x"]
    assert forward[6 + BEGIN] == ["avg(b[].y) < c.y"]


def test_negations_know_their_neighbours_and_what_they_need() -> None:
    text = "PATTERN SEQ(A a, !(B b), C c, D d) WHERE b.x = d.x WITHIN 10"
    row = compile_program(bound_query(text)).program.negations[0]
    assert row.tolist() == [0, 1, 0, 1, 0b111, 2, 0, 0]
    backwards = compile_program(bound_query(text), order=(2, 1, 0)).program.negations[0]
    assert (backwards[AFTER_AT], backwards[BEFORE_AT], backwards[JUDGED_AT]) == (0, 1, 0)
    edge = compile_program(bound_query("PATTERN SEQ(A a, C c, !(B b)) WITHIN 10"), order="any").program.negations[0]
    assert (edge[BEFORE_AT], edge[NEGATION_NEEDS], edge[GROUP]) == (-1, 0b11, 0)


def variant(compiled: CompiledProgram, missing: int, at: list[int], x: list[int], y: list[float]) -> bool:
    """Calls the first test of a program as if the places `missing` were missing."""
    program, layout = compiled.program, compiled.layout
    needs = int(program.tests[0, NEEDS])
    bits, case, place = 0, int(program.tests[0, CASE]), 0
    while needs >> place:
        if needs & (1 << place):
            case += (missing >> place & 1) << bits
            bits += 1
        place += 1
    whole = np.array([x] if any(name == "x" for name, _, _ in layout.attributes) else np.zeros((0, len(x))), np.int64)
    number = np.array([y] if any(name == "y" for name, _, _ in layout.attributes) else np.zeros((0, len(y))), float)
    null = np.zeros((len(layout.attributes), len(x)), np.uint8)
    columns = (whole, number, null, np.zeros(0, np.int64), np.zeros(0), np.zeros((0, len(x)), np.int64))
    counted, running = np.zeros(compiled.whole, np.int64), np.zeros(compiled.number)
    return bool(called(compiled.predicate.call, case, np.array(at, np.int64), counted, running, Columns(*columns)))


@kernel
def called(
    predicate: PredicateCall, case: int, at: Int64s, counted: Int64s, running: Float64s, columns: Columns
) -> bool:
    """A predicate is for kernels, so one calls it."""
    return predicate(case, at, counted, running, columns)


def test_a_condition_has_a_variant_for_each_set_of_missing_events() -> None:
    compiled = compile_program(bound_query("PATTERN SEQ(A a, B b) WHERE a.x[b.x] < b.x WITHIN 10"), variants=True)
    assert variant(compiled, 0b00, [0, 1], [1, 2], [0.0, 0.0])
    assert not variant(compiled, 0b00, [0, 1], [2, 2], [0.0, 0.0])
    assert not variant(compiled, 0b01, [0, 1], [1, 2], [0.0, 0.0])  # b.x < b.x
    assert variant(compiled, 0b10, [0, 1], [2, 2], [0.0, 0.0])  # b has no default


def test_a_missing_group_has_no_events_to_aggregate() -> None:
    text = "PATTERN SEQ(A a, B+ b[], C c) WHERE {} WITHIN 10"
    at, x, y = [0, 0, 0, 0, 0, 0], [1], [1.0]
    for condition, holds in (("b.LEN = 0", True), ("count(b[].x) = 0", True), ("sum(b[].x) >= 0", False)):
        compiled = compile_program(bound_query(text.format(condition)), variants=True)
        assert variant(compiled, 0b010, at, x, y) is holds, condition
