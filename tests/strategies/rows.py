"""Draws MATCH_RECOGNIZE clauses, and tables for them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

LABELS = ("A", "B", "C")
QUANTIFIERS = ("", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}?", "{2,}", "{1,}?")
ON_ROWS = (
    "value > 1",
    "{label}.value < PREV({label}.value)",
    "value >= PREV(value, 2) OR PREV(value) IS NULL",
    "NEXT(value) > value",
    "kind = 'x'",
    "kind IN ('x', 'y') AND NOT value = 2",
    "CLASSIFIER() = 'A' OR value BETWEEN 0 AND 1",
    "coalesce(value, 5) % 2 = 1",
    "value / 2 > 0.5",
    "true",
)
ON_PATHS = (
    "value > A.value",
    "A.value IS NULL OR value <> LAST(A.value, 1)",
    "value <= FIRST(value)",
    "sum(value) < 6",
    "avg(A.value) < 2.5 OR count(A.*) = 0",
    "count(*) <= 3",
    "max(B.value) >= value",
    "min(kind) = 'x'",
    "kind = LAST(B.kind)",
    "PREV(LAST(A.value), 1) = 1",
    "NEXT(FIRST(B.value, 1), 1) >= 0 OR id = 1",
    "PREV(CLASSIFIER()) = 'B'",
    "MATCH_NUMBER() < 3",
    "LAST(CLASSIFIER(), 1) <> 'C'",
    "CASE WHEN A.value > 1 THEN value > 1 ELSE value < 3 END",
    "abs(value - FIRST(A.value)) <= 1",
    "A.value + B.value > value",
    "count(value) = count(kind)",
    "LAST(U.value) = value",
    "stddev(value) < 1.2",
    "variance(A.value) > 0.4 OR count(A.value) < 3",
    "var_pop(U.value) < 0.5",
)
ON_FUNCTIONS = (
    "count(A.value) <> nullif(A.value, 2)",
    "upper(concat(A.kind, kind)) = 'XY'",
    "least(A.value, value) < 2",
    "coalesce(A.value / value, 1) > 1",
    "max(A.kind) = lower(kind)",
    "CASE WHEN A.value IS NULL THEN CLASSIFIER() ELSE kind END > 'A'",
)
CONDITIONS = {
    "of rows": ON_ROWS,
    "of paths": ON_ROWS + ON_PATHS,
    "of functions": (*ON_FUNCTIONS, *ON_ROWS[:2]),
    "interpreted": ("array_agg(CLASSIFIER()) <> ARRAY['A', 'B']", "upper(A.kind) = 'X'", *ON_PATHS),
}
MEASURES = (
    "value",
    "A.value",
    "CLASSIFIER()",
    "CLASSIFIER(U)",
    "MATCH_NUMBER()",
    "FIRST(value)",
    "FINAL LAST(B.value)",
    "FIRST(B.value, 1)",
    "FINAL FIRST(B.value)",
    "FIRST(CLASSIFIER(B))",
    "NEXT(FIRST(B.value))",
    "PREV(FIRST(U.value, 1), 1)",
    "RUNNING LAST(A.value, 1)",
    "PREV(value)",
    "NEXT(LAST(A.value), 2)",
    "NEXT(CLASSIFIER())",
    "count(*)",
    "FINAL count(*)",
    "count(U.*)",
    "sum(A.value)",
    "FINAL avg(value)",
    "min(kind)",
    "FINAL max(B.value)",
    "array_agg(kind)",
    "FINAL array_agg(lower(CLASSIFIER(U)) || U.kind)",
    "max_by(kind, value)",
    "sum(value) - FINAL sum(A.value)",
    "CASE WHEN count(A.*) > 1 THEN 'many' ELSE 'few' END",
    "coalesce(A.value, B.value, -1)",
    "LAST(value * 2 + 1)",
    "stddev(value)",
    "var_pop(A.value)",
    "FINAL stddev_pop(value)",
    "mode(kind)",
    "count_if(value > 1)",
)
ROWS = (
    "",
    "ONE ROW PER MATCH",
    "ALL ROWS PER MATCH",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
)
SKIPS = ("", "AFTER MATCH SKIP PAST LAST ROW", "AFTER MATCH SKIP TO NEXT ROW")
SKIPS += ("AFTER MATCH SKIP TO FIRST B", "AFTER MATCH SKIP TO LAST A", "AFTER MATCH SKIP TO U")

leaves = st.sampled_from((*LABELS, *LABELS, "()", "^", "$"))


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" ".join).map(lambda text: f"({text})"),
        st.lists(inner, min_size=2, max_size=2).map(" | ".join).map(lambda text: f"({text})"),
        st.lists(inner, min_size=2, max_size=2).map(", ".join).map(lambda text: f"PERMUTE({text})"),
        inner.map(lambda text: f"{{- {text} -}}"),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda pair: f"({pair[0]}){pair[1]}"),
    )


patterns = st.recursive(leaves, _grow, max_leaves=5)


@st.composite
def clauses(draw: st.DrawFn, conditions: tuple[str, ...]) -> str:
    pattern = f"{draw(patterns)} {draw(st.sampled_from(LABELS))}{draw(st.sampled_from(QUANTIFIERS))}"
    rows, skip = draw(st.sampled_from(ROWS)), draw(st.sampled_from(SKIPS))
    if "UNMATCHED" in rows:
        pattern = pattern.replace("{-", "(").replace("-}", ")")
    used = [label for label in LABELS if label in pattern.replace("PERMUTE", "")]
    others = [f"(() | {label}{{9}})" for label in LABELS if label not in used]  # so that every label can be named
    pattern = " ".join([pattern, *(f"({other})??" for other in others)])
    defined = draw(st.lists(st.sampled_from(LABELS), min_size=1, unique=True))
    definitions = [f"{label} AS {draw(st.sampled_from(conditions)).format(label=label)}" for label in defined]
    measures = draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=3))
    named = [f"{measure} AS m{number}" for number, measure in enumerate(measures)]
    partition = draw(st.sampled_from(("", "PARTITION BY part")))
    within = draw(st.sampled_from(("", "", "WITHIN 3")))
    partial = bool(within) and "UNMATCHED" not in rows and draw(st.booleans())
    options = "OPTIONS (output_partial = true)" if partial else ""
    return (
        f"{partition} ORDER BY {draw(st.sampled_from(('id', 'id ASC, value DESC')))} MEASURES {', '.join(named)} "
        f"{rows} {skip} PATTERN ({pattern}) {within} SUBSET U = (A, B) DEFINE {', '.join(definitions)} {options}"
    )


@st.composite
def tables(draw: st.DrawFn, most: int = 7) -> pa.Table:
    row = st.tuples(
        st.sampled_from(("p", "q", None)),
        st.integers(1, 9),
        st.one_of(st.none(), st.integers(0, 3)),
        st.sampled_from(("x", "y", None)),
    )
    drawn = draw(st.lists(row, max_size=most))
    kinds = {"part": pa.string(), "id": pa.int64(), "value": pa.int64(), "kind": pa.string()}
    return pa.table({name: pa.array([row[at] for row in drawn], kind) for at, (name, kind) in enumerate(kinds.items())})
