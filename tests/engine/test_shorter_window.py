"""A condition on how long a match lasts stands for a shorter window, where that changes nothing else."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.engine.shorter_window import with_shorter_window
from cepheid.language.schema import Schema
from cepheid.plan.examples import example
from strategies.agreement import everything

PATTERNS = ("A a, B b, C c", "A+ a[], B b, C c", "A a, B+ b[], C c", "A a, !(D d), B b, C+ c[]", "A a, B b, C+ c[]")
PATTERNS += ("!(D d), A a, B b, C c", "A a, B b, C c, !(D d)")
SPANS = ("{c}.ts - {a}.ts < 5", "{c}.ts - {a}.ts <= 4", "6 > {c}.ts - {a}.ts", "3 >= {c}.ts - {a}.ts")
SPANS += ("{c}.ts - {a}.ts < 0", "{c}.ts - {a}.ts < 40", "{c}.ts - {a}.ts < 5 AND {c}.ts - {a}.ts <= 3")


def window_of(text: str) -> int:
    """The window that a query is run with."""
    plan = with_shorter_window(make_plan(example(text).bound)[0])
    assert plan.bound.window is not None
    return plan.bound.window.length


def drawn(seed: int) -> tuple[pa.Table, str]:
    """Events, at times that may coincide, and a query with a condition on its first and last event."""
    draw = random.Random(seed)
    times = sorted(draw.choices(range(16), k=14)) if seed % 2 else list(range(14))
    table = pa.table({"ts": times, "type": draw.choices("AABBCCD", k=14), "x": draw.choices(range(3), k=14)})
    pattern = draw.choice(PATTERNS)
    first = draw.choice(["a[1]", "a[i]"]) if "a[]" in pattern else "a"
    last = draw.choice(["c[c.LEN]", "c[i]"]) if "c[]" in pattern else "c"
    where = draw.choice(SPANS).format(a=first, c=last) + draw.choice(["", " AND [x]", f" AND {first}.x < {last}.x + 1"])
    strategy = draw.choice(["skip_till_any_match", "skip_till_next_match", "partition_contiguity"])
    output = draw.choice(["", "", " OUTPUT NON-OVERLAP", " OUTPUT MAXIMAL"])
    return table, f"PATTERN SEQ({pattern}) WHERE {strategy} {{ {where} }} WITHIN {draw.choice([7, 12])}{output}"


@pytest.mark.some(6)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("seed", range(60))
def test_the_matches_are_those_of_the_reference(seed: int) -> None:
    table, text = drawn(seed)
    found, wanted = (cepheid.match(table, text, engine=name) for name in ("auto", "reference"))
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("seed", range(12))
def test_a_search_can_be_cut_anywhere(seed: int) -> None:
    table, text = drawn(seed)
    text = text.partition(" OUTPUT")[0]
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema))
    events, plan = ordered(table, bound.schema), make_plan(bound)[0]
    parts = [found for low in range(-1, 16, 3) for found in everything(find(plan, events, low, low + 3))]
    assert sorted(parts) == sorted(everything(find(plan, events)))


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("SEQ(A a, B b, C c) WHERE c.ts - a.ts < 30 WITHIN 100", 30),
        ("SEQ(A a, B b, C c) WHERE 30 >= c.ts - a.ts AND c.ts - a.ts < 50 WITHIN 100", 31),
        ("SEQ(A+ a[], B b) WHERE b.ts - a[i].ts < 30 WITHIN 100", 30),
        ("SEQ(A a, B b, C c) WHERE c.ts - a.ts < 300 WITHIN 100", 100),
        ("SEQ(A a, B b, C c) WHERE c.ts - b.ts < 30 AND c.ts - a.x < 30 AND a.ts - c.ts < 30 WITHIN 100", 100),
        ("SEQ(A+ a[], B b) WHERE b.ts - a[a.LEN].ts < 30 WITHIN 100", 100),
        ("SEQ(A a, B b, C c) WHERE (c.ts - a.ts < 30 OR a.x = 1) WITHIN 100", 100),
        ("SEQ(A a, B b, C c) WHERE c.ts - a.ts < 30 WITHIN 100 EVENTS", 100),
        ("SEQ(A a, B b, !(C c)) WHERE b.ts - a.ts < 30 WITHIN 100", 100),  # it waits for the end of its window
        ("SEQ(!(C c), A a, B b) WHERE b.ts - a.ts < 30 WITHIN 100", 100),  # no C in all of it
        ("SEQ(A a, B b) WHERE b.ts - a.ts < 30 WITHIN 100 OUTPUT MAXIMAL", 100),  # so do matches that are compared
        ("SEQ(A a, B? b, C c) WHERE c.ts - a.ts < 30 WITHIN 100", 100),
    ],
)
def test_which_conditions_are_windows(text: str, length: int) -> None:
    assert window_of(f"PATTERN {text}") == length
