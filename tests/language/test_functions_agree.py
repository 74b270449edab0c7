"""Functions of one event: over whole columns as the reference says, on drawn expressions and values at their edges."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cepheid.language.functions import BUILT_IN
from strategies import functions as f

EVENTS = f.table(rows=140)
EVERY = sorted({*f.NUMBERS_OF_NUMBERS, *f.STRINGS_OF_STRINGS, *f.INSTANTS_OF_INSTANTS, *f.CONDITIONS})


def filled(template: str, with_columns: dict[str, str]) -> str:
    for kind, column in with_columns.items():
        template = template.replace("{" + kind + "}", column)
    return template


@pytest.mark.parametrize("template", EVERY)
def test_every_function_of_columns(template: str) -> None:
    for columns in (
        {"n": "a.i", "s": "a.s", "u": "a.u", "c": "a.flag"},
        {"n": "a.f", "s": "a.t", "u": "a.ts", "c": "a.i > a.j"},
    ):
        text = filled(template, columns)
        for row, (one, other) in enumerate(zip(f.by_reference(text, EVENTS), f.by_arrow(text, EVENTS), strict=True)):
            assert f.alike(one, other), (text, EVENTS.slice(row, 1).to_pylist(), one, other)


@settings(max_examples=150, deadline=None)
@given(f.expressions(), st.integers(0, 50))
@example("round(a.f, 2)", 0)
def test_drawn_expressions(text: str, seed: int) -> None:
    events = f.table(seed, rows=40)
    for row, (one, other) in enumerate(zip(f.by_reference(text, events), f.by_arrow(text, events), strict=True)):
        assert f.alike(one, other), (text, events.slice(row, 1).to_pylist(), one, other)


def test_every_function_is_tried() -> None:
    tried = " ".join(EVERY).lower()
    left = {name for name in BUILT_IN if f"{name}(" not in tried and f" {name} " not in tried}
    same = {"substr", "char_length", "regexp_like", "endswith", "dayofmonth", "ln", "pow", "if", "case", "unix_micros"}
    same |= {"array", "date", "to_date", "to_timestamp"}  # as CAST, and as lists of other values
    kernels = {"exp", "log10", "log2", "sin", "cos", "tan", "radians", "degrees", "corr"}  # compared in test_kernels
    assert left <= same | kernels
