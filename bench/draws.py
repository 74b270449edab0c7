"""Drawn streams and drawn questions about them, in every language: sequences, expressions, row patterns, Flink's.

A draw is a pure function of its seed and its number of events. Patterns are up to three parts deep; conditions are on
one event, on two, on groups, on texts and by users' functions; every strategy, output and way to skip occurs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.errors import CepheidError
from cepheid.flink import AfterMatchSkipStrategy, Pattern

STRATEGIES = ("skip_till_any_match", "skip_till_next_match", "skip_till_next_match", "partition_contiguity")
STRATEGIES += ("strict_contiguity",)
WINDOWS = ("100", "1000", "10000", "200 EVENTS")


@cepheid.function
def bench_far(x: float, y: float) -> bool:
    """Is one value far above another? Compiled, since it cannot fail."""
    return x > y + 2.0


@cepheid.function
def bench_same(s: str, t: str) -> bool:
    """Do two texts end alike? It runs as Python."""
    return s[-1:] == t[-1:]


@dataclass(frozen=True)
class Drawn:
    """A question about a stream."""

    text: str
    query: Any  # a text, or a pattern of Flink's
    options: dict[str, Any] = field(default_factory=dict)


def draw_stream(draw: random.Random, events: int) -> tuple[pa.Table, str]:
    """Events of a few types with keys, numbers, texts, NULLs and times that may coincide."""
    types, keys, gap = draw.choice([3, 5, 20]), draw.choice([5, 100, 2_000, 50_000]), draw.choice([1, 1, 5])
    rng = np.random.default_rng(draw.randrange(2**32))
    frequent = rng.random(types) ** draw.choice([0.5, 3.0])
    kinds = rng.choice(types, events, p=frequent / frequent.sum())
    skewed = draw.random() < 0.3
    chosen = rng.zipf(1.3, events) % keys if skewed else rng.integers(0, keys, events)
    names = np.array([f"s{number}" for number in range(40)])
    table = pa.table(
        {
            "ts": np.sort(rng.integers(0, events * gap, events)),
            "type": np.array([f"T{number}" for number in range(types)])[kinds],
            "id": chosen,
            "ref": rng.integers(0, keys, events),
            "x": rng.normal(size=events),
            "y": rng.integers(0, 1_000, events),
            "s": names[rng.integers(0, 40, events)],
            "u": np.char.add(names, "%")[rng.integers(0, 40, events)],
            "z": pa.array(rng.integers(0, 10, events), mask=rng.random(events) < 0.2),
        }
    )
    return table, f"{types} types, {keys} keys{' skewed' if skewed else ''}, {gap} apart"


def draw_sequence(draw: random.Random) -> Drawn:
    """A sequence that somebody could write: ties of several kinds, groups, negation."""
    length, names = draw.choice([2, 3, 3, 4]), "abcd"
    strategy = draw.choice(["skip_till_any_match", "skip_till_next_match", "skip_till_next_match"])
    parts, groups, conditions = [], set(), []
    for place in range(length):
        name = names[place]
        if draw.random() < 0.25:
            groups.add(name)
            parts.append(f"T{draw.randrange(3)}+ {name}[]")
        else:
            parts.append(f"T{draw.randrange(3)} {name}")
    if draw.random() < 0.2:
        parts.insert(draw.randrange(1, length), f"!(T{draw.randrange(3)} n)")
        conditions += draw.choice([[], [f"n.id = {_event(draw, names[0], groups)}.id"]])
    if draw.random() < 0.4:
        conditions.append(draw.choice(["[id]", "[id]", "[id, ref]"]))
    for _ in range(draw.choice([0, 1, 1, 2])):
        one, two = draw.sample(range(length), 2)
        left, right = _event(draw, names[one], groups), _event(draw, names[two], groups)
        conditions.append(draw.choice([f"{left}.id = {right}.ref", f"{left}.id = {right}.id", f"{left}.x < {right}.x"]))
    for name in sorted(groups):
        rising = [
            f"{name}[i].x > {name}[i-1].x",
            f"{name}[i].id = {name}[i-1].ref",
            f"{name}[i].y < avg({name}[..i-1].y)",
        ]
        conditions += draw.choice([[], rising[:1], rising[1:2], rising[2:]])
    if draw.random() < 0.4:
        conditions.append(f"{_event(draw, names[0], groups)}.y < {draw.choice([10, 200])}")
    window = draw.choice(WINDOWS)
    output = draw.choice(["", "", "", "", " OUTPUT NON-OVERLAP", " OUTPUT MAXIMAL"])
    where = " AND ".join(conditions)
    text = f"PATTERN SEQ({', '.join(parts)}) WHERE {strategy} {{ {where} }} WITHIN {window}{output}"
    return Drawn(text, text)


def _event(draw: random.Random, name: str, groups: set[str]) -> str:
    return name + draw.choice(["[1]", f"[{name}.LEN]"]) if name in groups else name


@dataclass
class _Parts:
    """The variables of a pattern that is being drawn."""

    draw: random.Random
    single: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    negative: list[str] = field(default_factory=list)

    def leaf(self, listed: bool, negation: bool) -> str:
        """One component."""
        draw = self.draw
        name = "abcdefghklmnopqrtuvw"[len(self.single) + len(self.groups) + len(self.negative)]
        kind = draw.choice([f"T{draw.randrange(3)}"] * 25 + ["ANY(T0, T1)", "*"])
        if negation and draw.random() < 0.12:
            self.negative.append(name)
            return f"!({kind} {name})"
        quantifier = draw.choice(["", "", "", "", "?", "+", "+", "*", "{2}", "{1,2}", "{2,}"])
        many = quantifier not in ("", "?")
        (self.groups if many or listed else self.single).append(name)
        gap = draw.choice([""] * 8 + [" WITHIN 40", " AFTER 2", " AFTER 1 WITHIN 50"])
        ends = [f" UNTIL {name}.y > 950", f" UNTIL {name}.y < {name}[i-1].y - 500", f" UNTIL {name}.type = 'T1'"]
        until = draw.choice(ends) if many and draw.random() < 0.15 else ""
        return f"{kind}{quantifier} {name}{'[]' * many}{gap}{until}"

    def part(self, depth: int, listed: bool, negation: bool = True) -> str:
        """A component, or a group, a choice or any order of parts."""
        draw = self.draw
        shape = draw.choice(["leaf", "leaf", "leaf", "group", "choice", "any"]) if depth else "leaf"
        if shape == "leaf" or len(self.single) + len(self.groups) + len(self.negative) > 5:
            return self.leaf(listed, negation)
        quantifier = draw.choice(["", "", "", "?", "+", "*", "{2}", "{1,2}"])
        listed = listed or quantifier not in ("", "?")
        inside = [self.part(depth - 1, listed, negation and shape == "group") for _ in range(draw.choice([2, 2, 3]))]
        if shape == "any":
            return f"AND({', '.join(inside)}){quantifier}"
        return f"({(' | ' if shape == 'choice' else ', ').join(inside)}){quantifier}"

    def event(self, negative: bool = False) -> str:
        """One of the events."""
        several = [*self.single, *(self.negative if negative else [])]
        several += [f"{name}{at}" for name in self.groups for at in ("[1]", f"[{name}.LEN]", "[i]")]
        return self.draw.choice(several)

    def condition(self) -> str:
        """A condition of any kind."""
        draw, one, two = self.draw, self.event(), self.event(negative=True)
        alone = [f"{one}.y < {draw.choice([10, 200])}", f"{one}.s LIKE 's1%'", f"{one}.z IS NULL"]
        alone += [f"{one}.z IN (1, 2, 3)", f"abs({one}.x) BETWEEN 0.5 AND 2", f"NOT {one}.y > 700"]
        ties = [f"{one}.id = {two}.id", f"{one}.id = {two}.ref", f"{one}.x < {two}.x", f"{one}.s = {two}.s"]
        ties += [f"{one}.y < {two}.y - 900", f"({one}.y < {two}.y OR {one}.id = {two}.id)"]
        ties += [f"{one}.s LIKE {two}.u", f"concat({one}.s, {two}.s) LIKE '%s1s2%'", f"{two}.ts - {one}.ts < 30"]
        ties += [f"coalesce({one}.z, 3) = {two}.z", f"CASE WHEN {one}.y > 500 THEN {one}.x ELSE 0 END < {two}.x"]
        ties += [
            f"NOT ({one}.id = {two}.id AND {one}.x < {two}.x)",
            f"({one}.s LIKE {two}.u OR {one}.y < {two}.y - 990)",
        ]
        ties += [f"bench_far({one}.x, {two}.x)", f"bench_same({one}.s, {two}.s)", f"({one}.y + {two}.y) % 7 = 3"]
        whole = []
        if self.groups:
            name = draw.choice(self.groups)
            whole = [f"{name}[i].x > {name}[i-1].x", f"{name}[i].id = {name}[i-1].id", f"{name}.LEN BETWEEN 2 AND 5"]
            whole += [f"{name}[i].y < avg({name}[..i-1].y)", f"sum({name}[].y) < 1500", f"max({name}[].x) > {one}.x"]
            whole += [f"avg({name}[].y) < 400", f"{name}[i].y > max({name}[..i-1].y)", f"stddev({name}[].x) > 1"]
            whole += [f"{name}[i].s = first({name}[..i-1].s)", f"count({name}) > 2"]
        return draw.choice(draw.choice([alone, ties, ties, whole or alone]))


def _can_run(query: Any, options: dict[str, Any]) -> bool:
    """Is a query one that can be run? The others are drawn anew."""
    try:
        cepheid.match(draw_stream(random.Random(0), 1)[0].slice(0, 0), query, **options)
    except CepheidError:
        return False
    return True


def draw_expression(draw: random.Random) -> Drawn:
    """A pattern of nested parts under any strategy, with any output."""
    while True:
        text, options = _expression(draw)
        if _can_run(text, options):
            return Drawn(f"{text} {options or ''}", text, options)


def _expression(draw: random.Random) -> tuple[str, dict[str, Any]]:
    parts = _Parts(draw)
    pattern = ", ".join(parts.part(draw.choice([0, 1, 2]), False) for _ in range(draw.choice([2, 3, 3])))
    while not parts.single and not parts.groups:
        pattern += f", {parts.leaf(False, False)}"
    conditions = draw.choice([[], ["[id]"], ["[id]"], ["[id, ref]"], ["[s]"], ["[z]"]])
    conditions = conditions + [parts.condition() for _ in range(draw.choice([0, 1, 1, 2, 3]))]
    text = f"PATTERN SEQ({pattern}) WHERE {draw.choice(STRATEGIES)} {{ {' AND '.join(conditions)} }}"
    named = [name for name in (*parts.single, *(f"{name}[i]" for name in parts.groups)) if draw.random() < 0.4]
    if named and draw.random() < 0.15:
        text += f" AND {draw.choice(STRATEGIES)}({', '.join(named)})"
    text += f" WITHIN {draw.choice(WINDOWS)}"
    plain = ["", "", "", " OUTPUT NON-OVERLAP", " OUTPUT MAXIMAL", " OUTPUT PARTIAL", "count", "summary", "returned"]
    output, one = draw.choice(plain), (parts.single + parts.groups)[0]
    if output == "count":
        return text, {"output": "count"}
    if output == "summary":
        by = draw.choice([" BY id", ""]) if "[id" in conditions[:1] else ""
        return f"{text} SUMMARISE count(*) AS n, sum({one}.y) AS total, max({one}.x) AS top{by}", {}
    if output == "returned":
        values = [f"count({name}) AS n_{name}, avg({name}[].x) AS x_{name}" for name in parts.groups]
        return f"{text} RETURN {', '.join([*(f'{name}.y AS y_{name}' for name in parts.single), *values])}", {}
    return text + output, {}


LABELS = "ABC"
QUANTIFIERS = ("", "", "", "*", "+", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{1,}?")
ON_ROWS = ("type = 'T0'", "type = 'T1'", "y < 500", "x > PREV(x)", "x < PREV(x) OR PREV(x) IS NULL", "NEXT(y) > y")
ON_ROWS += ("y BETWEEN 100 AND 400", "s LIKE 's1%'", "type <> 'T2'", "z IS NOT NULL AND z % 2 = 1", "true")
ON_PATHS = ("x > A.x", "x < FIRST(x)", "sum(y) < 3000", "avg(A.y) < 400", "count(*) <= 20", "y > LAST(B.y, 1)")
ON_PATHS += ("id = LAST(A.id)", "max(B.x) < x", "PREV(CLASSIFIER()) = 'A'", "MATCH_NUMBER() < 900", "s = FIRST(A.s)")
ON_PATHS += (
    "abs(y - FIRST(A.y)) < 100",
    "ts - FIRST(ts) < 40",
    "count(A.*) < count(B.*)",
    "A.x + B.x > x",
    "min(s) = s",
)
ON_PATHS += ("stddev(x) < 0.8", "LAST(CLASSIFIER(), 1) <> 'C'", "CASE WHEN A.y > 500 THEN x > 0 ELSE x < 0 END")
ON_PATHS += (
    "concat(A.s, s) LIKE '%s1s2%'",
    "A.s LIKE u",
    "bench_far(x, A.x)",
    "PREV(LAST(A.y), 1) > y",
    "FIRST(B.y) < 0",
)
INTERPRETED = (
    "count(DISTINCT A.s) > 4",
    "array_agg(CLASSIFIER()) <> ARRAY['A', 'B']",
    "bench_same(s, A.s)",
    "median(y) > 500",
)
MEASURES = (
    "FIRST(ts)",
    "LAST(y)",
    "count(*)",
    "sum(A.y)",
    "FINAL avg(x)",
    "CLASSIFIER()",
    "MATCH_NUMBER()",
    "max(B.x)",
)
MEASURES += ("array_agg(s)", "stddev(x)", "LAST(A.x, 1)", "PREV(y)", "count(U.*)", "min(C.s)", "max_by(s, y)")
ROWS = ("", "", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS", "ALL ROWS PER MATCH OMIT EMPTY MATCHES")
SKIPS = ("", "PAST LAST ROW", "TO NEXT ROW", "TO NEXT ROW", "TO LAST A", "TO FIRST B")


def _row_part(draw: random.Random, depth: int) -> str:
    shape = draw.choice(["leaf", "leaf", "group", "choice", "any", "left out"]) if depth else "leaf"
    if shape == "leaf":
        return draw.choice(LABELS) + draw.choice(QUANTIFIERS)
    inside = [_row_part(draw, depth - 1) for _ in range(draw.choice([2, 2, 3]))]
    if shape == "any":
        return f"PERMUTE({', '.join(inside)})"
    if shape == "left out":
        return f"{{- {inside[0]} -}}"
    return f"({(' | ' if shape == 'choice' else ' ').join(inside)}){draw.choice(QUANTIFIERS)}"


def draw_rows(draw: random.Random) -> Drawn:
    """A row pattern with conditions on rows and on its path."""
    while True:
        text = _clause(draw)
        if _can_run(text, {}):
            return Drawn(text, text)


def _clause(draw: random.Random) -> str:
    pattern = " ".join(_row_part(draw, draw.choice([0, 1, 2])) for _ in range(draw.choice([2, 3, 3])))
    rows, skip = draw.choice(ROWS), draw.choice(SKIPS)
    if "UNMATCHED" in rows:
        pattern = pattern.replace("{-", "(").replace("-}", ")")
    missing = [label for label in LABELS if label not in pattern.replace("PERMUTE", "")]
    pattern = " ".join([pattern, *(f"({label})??" for label in missing)])
    weights = [ON_ROWS, ON_ROWS, ON_PATHS, ON_PATHS, INTERPRETED] if draw.random() < 0.15 else [ON_ROWS, ON_PATHS]
    defined = [f"{label} AS {draw.choice(draw.choice(weights))}" for label in LABELS if draw.random() < 0.75]
    measures = [f"{each} AS m{at}" for at, each in enumerate(draw.sample(MEASURES, 3))]
    measures += [] if rows else ["count(*) AS taken"]  # it tells how long matches are
    partition, within = draw.choice(["", "PARTITION BY id"]), draw.choice(["", "", "WITHIN 100", "WITHIN 1000"])
    options = draw.choice([""] * 8 + ["OPTIONS (use_longest_match = true)"])
    options = "OPTIONS (output_partial = true)" if within and not rows and draw.random() < 0.15 else options
    clause = f"{partition} ORDER BY ts MEASURES {', '.join(measures)} {rows} {f'AFTER MATCH SKIP {skip}' * bool(skip)} "
    clause += (
        f"PATTERN ({pattern}) {within} SUBSET U = (A, B) {'DEFINE ' * bool(defined)}{', '.join(defined)} {options}"
    )
    return " ".join(f"MATCH_RECOGNIZE ({clause})".split())


def draw_flink(draw: random.Random) -> Drawn:
    """A pattern of Flink's builder, with its options."""
    while True:
        try:
            pattern = _chain(draw, [], 0)
            if draw.random() < 0.9:
                pattern = pattern.within(draw.choice([20, 100, 1_000]))
            options: dict[str, Any] = draw.choice([{}, {"partition_by": "id"}])
            if draw.random() < 0.1:
                options = {**options, "partial": True}
        except CepheidError:
            continue
        if _can_run(pattern, options):
            return Drawn(f"{pattern!r} {options or ''}", pattern, options)


def _chain(draw: random.Random, steps: list[str], depth: int) -> Pattern:
    skips = [AfterMatchSkipStrategy(), AfterMatchSkipStrategy(), AfterMatchSkipStrategy.skip_to_next()]
    skips += [AfterMatchSkipStrategy.skip_past_last_event()]
    at: Pattern | None = None
    for _ in range(draw.choice([2, 3, 3]) if depth == 0 else draw.choice([1, 2])):
        hows = ["next", "followed_by", "followed_by", "followed_by", "followed_by_any", "not_next", "not_followed_by"]
        how = draw.choice(hows)
        negative = at is not None and how.startswith("not")
        what: Any = f"{'n' if negative else 's'}{len(steps)}"
        if depth < 2 and not negative and draw.random() < 0.15:
            what = _chain(draw, steps, depth + 1)
        else:
            steps.append(what)
        at = Pattern.begin(what, skip=draw.choice(skips)) if at is None else getattr(at, how)(what)
        if isinstance(what, str):
            at = at.where(f"type = 'T{draw.randrange(3)}'")
            if len(steps) > 1 and draw.random() < 0.4:
                at = at.where(_flink_condition(draw, [step for step in steps[:-1] if step[0] == "s"]))
        at = at if negative else _quantified(draw, at)
    assert at is not None
    return at


def _quantified(draw: random.Random, at: Pattern) -> Pattern:
    rounds: list[Callable[[Pattern], Pattern]] = [
        lambda at: at,
        lambda at: at,
        lambda at: at.times(2),
        lambda at: at.times(1, 3),
        lambda at: at.one_or_more(),
        lambda at: at.times_or_more(2).greedy(),
        lambda at: at.one_or_more().until("y > 950"),
        lambda at: at.one_or_more().consecutive(),
        lambda at: at.times(2, 3).allow_combinations(),
    ]
    at = draw.choice(rounds)(at)
    return at.optional() if draw.random() < 0.15 else at


def _flink_condition(draw: random.Random, steps: list[str]) -> str:
    if not steps:
        return draw.choice(["y < 200", "s LIKE 's1%'", "z IS NULL"])
    step = draw.choice(steps)
    several = [
        f"id = {step}[1].id",
        f"x > {step}[1].x",
        f"sum({step}[].y) + y < 2000",
        f"count({step}[]) < 4",
        "y < 200",
    ]
    several += [
        f"y > avg({step}[].y)",
        f"s = {step}[1].s",
        f"bench_far(x, {step}[1].x)",
        f"concat({step}[1].s, s) LIKE '%1s%'",
    ]
    return draw.choice(several)


KINDS: dict[str, Callable[[random.Random], Drawn]] = {
    "sequence": draw_sequence,
    "expression": draw_expression,
    "rows": draw_rows,
    "flink": draw_flink,
}
