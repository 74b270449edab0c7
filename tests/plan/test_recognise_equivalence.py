"""Equalities that are taken for an equivalence test mean what they say: whatever was seen, and whatever has no key."""

from __future__ import annotations

import itertools
import warnings

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.language.schema import Schema
from cepheid.model import Exponential, Model
from cepheid.plan.options import PlanOptions
from cepheid.plan.physical import Plan
from strategies.agreement import everything

MODEL = Model(loss=0.3, gaps=dict.fromkeys("abc", Exponential(mean=3.0)))
PATTERNS = ("SEQ(A a, B b, C c)", "SEQ(A a, !(B b), C c)")
FORMS = [
    form
    for one, two in itertools.permutations("abc", 2)
    for form in (f"{one}.id = {two}.id", f"{one}.id[{two}.id] = {two}.id")
]
EVENTS = st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([1, 1, 2, None])), min_size=1, max_size=6).map(
    lambda rows: pa.table(
        {
            "ts": range(len(rows)),
            "type": [kind for kind, _ in rows],
            "id": pa.array([key for _, key in rows], pa.int64()),
        }
    )
)


def plan_of(text: str, table: pa.Table, options: PlanOptions) -> tuple[Plan, Plan]:
    """The plan that is made, and the one that tests what stands in the query."""
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema))
    made = make_plan(bound, options=options)[0]
    return made, Plan(bound, "reference", model=options.model, options={"missing_last": options.missing_last})


def agree(text: str, table: pa.Table, options: PlanOptions) -> bool:
    made, plain = plan_of(text, table, options)
    events = ordered(table, plain.bound.schema)
    assert everything(find(made, events)) == everything(find(plain, events))
    return bool(made.partition)


@pytest.mark.slow
@given(st.sampled_from(PATTERNS), st.lists(st.sampled_from(FORMS), min_size=1, max_size=4), EVENTS, st.booleans())
def test_where_events_may_be_missing(pattern: str, forms: list[str], table: pa.Table, missing_last: bool):
    assume("!" not in pattern or not missing_last)
    text = f"PATTERN {pattern} WHERE {' AND '.join(forms)} WITHIN 5 THRESHOLD 0.001"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(text, table, PlanOptions(model=MODEL, missing_last=missing_last))


@given(
    st.sampled_from(PATTERNS),
    st.sampled_from(["skip_till_next_match", "skip_till_any_match"]),
    st.lists(st.sampled_from(FORMS[::2]), min_size=1, max_size=3),
    EVENTS,
)
def test_where_events_are_seen(pattern: str, strategy: str, forms: list[str], table: pa.Table):
    agree(f"PATTERN {pattern} WHERE {strategy} {{ {' AND '.join(forms)} }} WITHIN 5", table, PlanOptions())


@pytest.mark.parametrize(
    ("text", "recognised"),
    [
        ("SEQ(A a, C c) WHERE a.id[c.id] = c.id", True),
        ("SEQ(A a, C c) WHERE a.id = c.id", False),  # c alone need not have a key
        ("SEQ(A a, !(B b), C c) WHERE a.id[b.id] = b.id AND a.id[c.id] = c.id AND b.id = c.id", True),
        ("SEQ(A a, !(B b), C c) WHERE a.id[b.id] = b.id AND a.id[c.id] = c.id", False),  # a missing: any b kills
        ("SEQ(A a, B b, C c) WHERE a.id[c.id] = c.id AND b.id[c.id] = c.id", True),
        ("SEQ(A a, B b, C c) WHERE a.id[b.id] = b.id AND a.id[c.id] = c.id", False),  # a missing: b and c are free
        ("SEQ(A a, B b, C c) WHERE a.id = b.id AND b.id = c.id AND a.id[c.id] = c.id", True),
    ],
)
def test_every_set_of_events_must_be_tied(text: str, recognised: bool):
    table = pa.table({"ts": [1], "type": ["A"], "id": [1]})
    made, _ = plan_of(f"PATTERN {text} WITHIN 5 THRESHOLD 0.5", table, PlanOptions(model=MODEL))
    assert bool(made.partition) == recognised
    assert bool(made.match.hashed) == (not recognised)


@pytest.mark.parametrize(
    ("text", "untied"),
    [
        ("SEQ(A a, !(B b), C c) WHERE a.id[b.id] = b.id AND a.id[c.id] = c.id", ["a"]),  # as AYAC prints it
        ("SEQ(A a, !(B b), C c) WHERE a.id = b.id AND a.id = c.id", ["a"]),
        ("SEQ(A a, !(B b), C c) WHERE a.id = b.id AND a.id = c.id AND b.id = c.id", []),
        ("SEQ(A a, B b, C c) WHERE a.id = b.id AND b.id = c.id", ["b"]),
        ("SEQ(A a, B b, C c) WHERE a.id = b.id AND b.id = c.id AND a.id = c.id", []),
    ],
)
def test_what_is_tied_together_most_of_the_time_parts_the_queues(text: str, untied: list[str]):
    table = pa.table({"ts": [1], "type": ["A"], "id": [1]})
    made, _ = plan_of(f"PATTERN {text} WITHIN 5 THRESHOLD 0.5", table, PlanOptions(model=MODEL))
    assert made.match.hashed is not None
    assert made.match.hashed.attributes == ("id",)
    assert [*map(set, made.match.hashed.untied)] == [{name} for name in untied]


def test_the_printed_form_of_ayac_evaluates_no_more_than_an_equivalence_test():
    rows = [(kind, tag) for tag in range(300) for kind in ("A", "B", "C") if (tag, kind) != (tag // 7 * 7, "B")]
    table = pa.table({"ts": range(len(rows)), "type": [kind for kind, _ in rows], "id": [tag for _, tag in rows]})
    printed = "PATTERN SEQ(A a, !(B b), C c) WHERE a.id[b.id] = b.id AND a.id[c.id] = c.id WITHIN 900 THRESHOLD 0.1"
    keyed = "PATTERN SEQ(A a, !(B b), C c) WHERE [id] WITHIN 900 THRESHOLD 0.1"
    work = []
    for text in (printed, keyed):
        made, plain = plan_of(text, table, PlanOptions(model=MODEL))
        work.append(find(made, ordered(table, plain.bound.schema)).counters["evaluations"])
    assert work[0] <= 2 * work[1]


def test_under_next_match_what_is_tied_later_does_not_part():
    table = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "C"], "id": [1, 2, 1, 1]})
    later = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { a.id = c.id AND b.id = c.id } WITHIN 9"
    chain = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { a.id = b.id AND b.id = c.id } WITHIN 9"
    assert [cepheid.match(table, text).num_rows for text in (later, chain)] == [0, 1]
