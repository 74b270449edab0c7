"""Drawn queries whose patterns are expressions: optional parts, rounds, groups, alternatives, any order and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.sase.parse import parse

VARIABLES = "abcdefgh"
QUANTIFIERS = ("", "", "", "?", "*", "+", "{2}", "{1,2}", "{2,}")
GROUP_QUANTIFIERS = ("", "", "?", "+", "*", "{2}", "{1,2}")
SIGNS = ("<=", ">=", "!=", "<", "=")


@st.composite
def expression_queries(
    draw: st.DrawFn,
    *,
    strategies: Sequence[s.Strategy] = tuple(s.Strategy),
    window: bool | None = None,
    output: bool = True,
    unbounded: bool = True,
    steps: bool = True,
    depth: int = 2,
    looking_back: bool = True,
) -> s.QuerySyntax:
    """A checked query; `unbounded`: may parts of a group that is repeated be repeated without end themselves?

    `depth`: how many groups, alternatives and orders may stand in each other; `looking_back`: may UNTIL name other
    events?
    """
    used: list[tuple[str, bool, bool]] = []  # variable, is it a list, is it negative

    def leaf(listed: bool, negation: bool) -> str:
        assume(len(used) < len(VARIABLES))
        variable = VARIABLES[len(used)]
        kind = draw(st.sampled_from(("A", "A", "B", "B", "C", "D")))
        if negation and draw(st.integers(0, 5)) == 0:
            used.append((variable, False, True))
            return f"!({kind} {variable})"
        quantifiers = QUANTIFIERS if not listed or unbounded else ("", "", "?", "{1,2}", "{2}")
        quantifier = draw(st.sampled_from(quantifiers))
        many = quantifier not in ("", "?")
        used.append((variable, listed or many, False))
        gap = draw(st.sampled_from(("", "", "", "", " WITHIN 4", " AFTER 2", " AFTER 1 WITHIN 5")))
        ends = many and draw(st.integers(0, 3)) == 0
        tests = ["x > 1", "y <= -2", "z IS NULL"]
        if ends and looking_back:
            singles = [name for name, inside, negative in used[:-1] if not (inside or negative)]
            tests += [f"x > {variable}[i-1].x", f"y < {variable}[1].y", f"x > count({variable}[..i-1])"]
            tests += [f"x >= {name}.x" for name in singles]
        until = f" UNTIL {variable}.{draw(st.sampled_from(tests))}" if ends else ""
        return f"{kind}{quantifier} {variable}{'[]' if many else ''}{gap}{until}"

    def part(depth: int, listed: bool, negation: bool = True) -> str:
        shape = draw(st.sampled_from(("leaf", "leaf", "group", "choice", "any"))) if depth else "leaf"
        if shape == "leaf" or len(used) > 4:
            return leaf(listed, negation)
        quantifier = draw(st.sampled_from(GROUP_QUANTIFIERS if unbounded or not listed else ("", "?", "{1,2}")))
        listed = listed or quantifier not in ("", "?")
        inside = [part(depth - 1, listed, negation and shape != "any") for _ in range(draw(st.integers(1, 2)) + 1)]
        if shape == "any":
            return f"AND({', '.join(inside)}){quantifier}"
        return f"({(' | ' if shape == 'choice' else ', ').join(inside)}){quantifier}"

    parts = [part(depth, False) for _ in range(draw(st.integers(1, 3)))]
    strategy = draw(st.sampled_from(list(strategies)))
    conditions = [_condition(draw, used) for _ in range(draw(st.integers(0, 2)))]
    conditions += draw(st.sampled_from(([], [], ["[id]"])))
    text = f"PATTERN SEQ({', '.join(parts)}) WHERE {strategy.value} {{ {' AND '.join(conditions)} }}"
    if steps and draw(st.integers(0, 2)) == 0:
        chosen = [one for one in used if not one[2] and draw(st.booleans())]
        named = [f"{name}{draw(st.sampled_from(('', '[i]', '[]'))) if many else ''}" for name, many, _ in chosen]
        text += f" AND {draw(st.sampled_from(list(strategies))).value}({', '.join(named)})" if named else ""
    if window or (window is None and draw(st.booleans())):
        text += f" WITHIN {draw(st.integers(2, 9))}{draw(st.sampled_from(('', '', ' EVENTS')))}"
    if output and draw(st.integers(0, 3)) == 0:
        text += draw(st.sampled_from((" OUTPUT NON-OVERLAP", " OUTPUT MAXIMAL")))
    try:
        query = check(parse(text), text)
    except QueryError:
        assume(False)
        raise
    assume(not query.is_linear)
    return query


def _condition(draw: st.DrawFn, used: Sequence[tuple[str, bool, bool]]) -> str:
    def value(one: tuple[str, bool, bool]) -> str:
        variable, listed, _ = one
        elements = ("", "[i]", "[1]", f"[{variable}.LEN]") if listed else ("",)
        return f"{variable}{draw(st.sampled_from(elements))}.{draw(st.sampled_from(('x', 'y', 'z')))}"

    one, other = draw(st.sampled_from(list(used))), draw(st.sampled_from(list(used)))
    sign = draw(st.sampled_from(SIGNS))
    several: list[Any] = [f"{value(one)} {sign} {value(other)}", f"{value(one)} {sign} {draw(st.integers(-2, 2))}"]
    several.append(f"({several[0]} OR {value(other)} > 0)")
    lists = [name for name, listed, _ in used if listed]
    if lists:
        name = draw(st.sampled_from(lists))
        several += [f"{name}[i].x {sign} {name}[i-1].x", f"{name}.LEN {sign} 2", f"sum({name}[].x) {sign} {value(one)}"]
        several += [f"{name}[i].x {sign} first({name}[..i-1].y)"]
    if not one[2] and not one[1]:
        several += [f"{one[0]}.x IS NULL", f"coalesce({one[0]}.x, 1) {sign} 1"]
    return str(draw(st.sampled_from(several)))
