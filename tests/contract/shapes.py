"""Few queries of many kinds. Compiled, a query costs its predicate's compilation; these are met by many streams."""

from __future__ import annotations

from functools import cache

from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.sase.parse import parse

CERTAIN = (
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x AND b.y != c.x WITHIN 8",
    "PATTERN SEQ(A a, !(B n), A b) WHERE [id] AND n.x >= a.x",
    "PATTERN SEQ(!(B n), A a, !(D m), A b, !(C o)) WHERE m.x = a.x OR b.y > 1 WITHIN 6",
    "PATTERN SEQ(A a, ANY(B, C) b) WHERE [z] AND a.x < b.z WITHIN 7",
    "PATTERN SEQ(A a, A b, * c) WHERE a.f < b.f OR c.z IS NULL WITHIN 4",
    "PATTERN SEQ(A a, B b) WHERE [s = 'a', id] AND abs(a.x) >= b.y WITHIN 4 EVENTS",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [id] AND a[i].x >= a[i-1].x } WITHIN 6",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { sum(b[].x) > a.x AND b.LEN < 4 } WITHIN 6",
    "PATTERN SEQ(A+ a[], !(D n), B b) WHERE skip_till_next_match { [id] AND n.x > a[a.LEN].x } WITHIN 9",
    "PATTERN SEQ(A a, B+ b[], A c) WHERE skip_till_next_match { b[i].x > avg(b[..i-1].x) AND c.x != b[1].x }",
    "PATTERN SEQ(A a, B b, A c) WHERE skip_till_next_match { a.x <= b.x OR b.y = c.y } WITHIN 8",
    "PATTERN SEQ(A a, A+ b[]) WHERE partition_contiguity { [id] AND max(b[].y) > 0 } WITHIN 7",
    "PATTERN SEQ(A a, * b) WHERE strict_contiguity { a.x != b.x }",
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 8 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, !(B m), !(A n), B b) WHERE m.x = n.x AND m.y > a.y WITHIN 8",
    "PATTERN SEQ(!(B m), A a, !(B n)) WHERE [id] AND m.x < n.x WITHIN 5",
    "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1 OR b.type = 'E', C c) WHERE skip_till_next_match { [id] } WITHIN 9",
    "PATTERN SEQ(A a, B+ b[], A c) WHERE skip_till_next_match { [id] } AND strict_contiguity(c) WITHIN 9",
    "PATTERN SEQ(A a, A+ b[], B c) WHERE { [id] } AND partition_contiguity(b) AND skip_till_next_match(b[i]) WITHIN 9",
)
MISSING = (
    "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 8 THRESHOLD 0.001",
    "PATTERN SEQ(A a, !(B n), A b) WHERE n.x >= a.x WITHIN 6 THRESHOLD 0.05",
    "PATTERN SEQ(A a, B b, !(D n), A c) WHERE b.x[a.x] <= c.x WITHIN 7 THRESHOLD 0.001",
    "PATTERN SEQ(A a, ANY(B, C) b, !(D n)) WHERE a.z < b.x OR n.y = a.y WITHIN 6 THRESHOLD 0.01",
    "PATTERN SEQ(A a, B+ b[], A c) WHERE b.LEN < 3 AND sum(b[].x) >= c.y WITHIN 6 THRESHOLD 0.001",
    "PATTERN SEQ(A+ a[], B b) WHERE [id] AND a[i].x >= a[i-1].x WITHIN 6 THRESHOLD 0.001",
    "PATTERN SEQ(A a, B b, A c) WHERE skip_till_next_match { a.x <= b.x[0] } WITHIN 8 THRESHOLD 0.001",
    "PATTERN SEQ(A a, B+ b[], A c) WHERE skip_till_next_match { count(b[].z) > 0 } WITHIN 8 THRESHOLD 0.001",
)
IMPRECISE = (
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5",
    "PATTERN SEQ(A a, B b, A c) WHERE skip_till_next_match { a.x <= b.x } WITHIN 6",
    "PATTERN SEQ(A a, !(B n), A b) WHERE n.x >= a.x OR a.y = b.y WITHIN 6",
    "PATTERN SEQ(A a, ANY(B, C) b, !(D n)) WHERE [id] WITHIN 5 CONFIDENCE 0.1",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i].x >= a[i-1].x } WITHIN 6",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { sum(a[].x) < b.x } WITHIN 6",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.x != b.x } WITHIN 6",
    "PATTERN SEQ(A a, A+ b[]) WHERE partition_contiguity { [id] } WITHIN 5",
    "PATTERN SEQ(A a, !(B m), !(D n), A b) WHERE m.x = n.x WITHIN 6",
)
EXPRESSION = (
    "PATTERN SEQ(A a, B? b, A c) WHERE [id] AND b.x > a.x WITHIN 8",
    "PATTERN SEQ(A a, (B b | C c), A d) WHERE a.x <= d.x AND b.x IS NOT NULL WITHIN 8",
    "PATTERN SEQ((A a, B b)+, A c) WHERE a.x <= b.x AND b[i].y != b[i-1].y WITHIN 8",
    "PATTERN SEQ(AND(A a, B b), C? c) WITHIN 6",
    "PATTERN SEQ(A a, B{1,2} b[] WITHIN 4, !(C n), A? c) WHERE n.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, (B* b[], C c)?, A d) WHERE partition_contiguity { [id] } WITHIN 9 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, (B b | A c)+, D? d) WHERE skip_till_next_match { b.x <= a.x } AND strict_contiguity(c) WITHIN 9",
    "PATTERN SEQ(A a, B+ b[] UNTIL b.x > a.x + count(b[..i-1]), A? c) WHERE skip_till_next_match { [id] } WITHIN 9",
)
SHAPES = {"expression": EXPRESSION, "certain": CERTAIN, "missing": MISSING, "imprecise": IMPRECISE, "both": MISSING}
SHAPES |= {"existence": IMPRECISE}


@cache
def shapes(kind: str) -> tuple[s.QuerySyntax, ...]:
    """The queries of one kind, checked."""
    return tuple(check(parse(text), text) for text in SHAPES[kind.removeprefix("existence ")])
