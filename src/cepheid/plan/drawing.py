"""The automaton of a query as SVG, whatever its language.

The drawing has a circle for each component: states that the same component leads to are one, however often it repeats.
So it shows which event can come right after which. Edges forward lie above the circles, further rounds below them. A
ring marks where a match can end. Below a circle stand the conditions on its event, and what must not happen before it.

Colours are the page's own (`currentColor`), so that it reads in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from cepheid.language import syntax as s
from cepheid.language.flink.pattern import NEGATIVE, Pattern
from cepheid.language.match_recognize.syntax import Clause
from cepheid.language.pattern import Repeat, Single, labels_of, walk, without
from cepheid.language.printing import (
    component_text,
    expression_text,
    pattern_text,
    quantifier_text,
    to_text,
    window_text,
)
from cepheid.plan.automaton import Action, Automaton, Kind
from cepheid.plan.flink_automaton import FlinkAutomaton, formula_text, step_of
from cepheid.plan.row_lowering import lower_rows

_STEP = 170  # from circle to circle
_RADIUS = 22
_LEFT = 85
_LINE = 15  # height of a line of conditions
_LONGEST = 26  # characters of a condition on the drawing; the whole stands in its tooltip
_TITLE = 'font-weight="600"'
_CONDITION = 'font-size="11" opacity="0.8"'
_NEGATIVE = 'font-size="11" class="negative" font-style="italic"'
_LINED = 'fill="none" stroke="currentColor" stroke-width="1.5" marker-end="url(#tip)"'
_DASHED = 'fill="none" stroke="currentColor" stroke-dasharray="4 3" marker-end="url(#tip)"'
# Colours and fonts are the notebook's, in light and dark; only what must not happen is red, as in reports.
_STYLE = (
    "<style>.cepheid pre { font-family: ui-monospace, monospace; white-space: pre; overflow-x: auto } "
    ".cepheid .negative { fill: #c0392b } .cepheid .drawing { overflow-x: auto } "
    "@media (prefers-color-scheme: dark) { .cepheid .negative { fill: #ff8a7a } }</style>"
)
Notes = list[tuple[str, str]]  # lines below a circle, each with its style


@dataclass(frozen=True)
class Arc:
    """A way past events that nobody saw: from one component to a later one, with its label."""

    source: int  # index among the positive components; -1: the start
    target: int  # index among the positive components; their number: the end of the window
    label: str
    dropped: bool = False  # it can never reach the threshold


def query_html(query: s.QuerySyntax, below: str = "") -> str:
    """What a notebook shows of a query, without scripts: its text, its automaton, and more that is plain text.

    >>> from cepheid.language.sase.parse import parse
    >>> shown = query_html(parse("PATTERN SEQ(`<b>` a, B b) WITHIN 5"), below="a < b")
    >>> "<b>" in shown, "&lt;b&gt;" in shown, "<pre>a &lt; b</pre>" in shown
    (False, True, True)
    """
    return html_of(to_text(query), query_svg(query), below)


def html_of(text: str, drawing: str, below: str = "") -> str:
    """A text and a drawing as one piece of HTML."""
    after = f"<pre>{escape(below)}</pre>" if below else ""
    return f'<div class="cepheid">{_STYLE}<pre>{escape(text)}</pre><div class="drawing">{drawing}</div>{after}</div>'


# --- what the languages write below the circles ---------------------------------------------------------------------


def query_svg(query: s.QuerySyntax, arcs: Sequence[Arc] = ()) -> str:
    """The drawing of a query in query text.

    >>> from cepheid.language.sase.parse import parse
    >>> svg = query_svg(parse("PATTERN SEQ(A a, (B b | C c)+, !(D d), E e) WITHIN 9"))
    >>> svg.count("<circle"), "no D d" in svg, "all within 9" in svg
    (6, True, True)
    """
    repeats = (node for node in walk(query.pattern) if isinstance(node, Repeat))
    often = {node.part.label: quantifier_text(node) for node in repeats if isinstance(node.part, Single)}
    conditions = s.conjoined(query.where)
    notes: dict[str, Notes] = {}
    forbidden: Notes = []
    for component in query.components:
        name = component.variable
        text = component_text(component, {name}, often.get(name, ""))
        own = [part for part in conditions if name in s.variables_of(part)]
        if component.negative:
            tests = " AND ".join(map(expression_text, own))
            forbidden.append((f"no {text[2:-1]}" + (f" with {tests}" if tests else ""), _NEGATIVE))
            continue
        lines = [expression_text(part) for part in own if s.variables_of(part) <= {name, *notes}]
        lines += [expression_text(part) for part in conditions if isinstance(part, s.Equivalence) and notes]
        lines += [f"until {expression_text(component.until)}"] if component.until is not None else []
        for selection in query.step_selections:
            steps = [expression_text(step) for step in selection.steps if step.variable == name]
            lines += [f"{', '.join(steps)} by {selection.strategy.value}"] if steps else []
        notes[name] = [(text, _TITLE), *((line, _CONDITION) for line in lines), *forbidden]
        forbidden = []
    _afterwards(notes, forbidden)
    negative = frozenset(component.variable for component in query.components if component.negative)
    automaton = lower_rows(without(query.pattern, negative), neighbours=True)
    within = None if query.within is None else window_text(query.within)
    return automaton_svg(automaton, notes, pattern_text(query), within, arcs)


def clause_svg(clause: Clause) -> str:
    """The drawing of a MATCH_RECOGNIZE clause.

    >>> from cepheid.language.match_recognize.parse import parse_clause
    >>> svg = clause_svg(parse_clause("MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B* C) DEFINE B AS B.x > 1)"))
    >>> svg.count("<circle"), "B.x &gt; 1" in svg
    (5, True)
    """
    notes: dict[str, Notes] = {label: [(label, _TITLE)] for label in labels_of(clause.pattern)}
    for definition in clause.definitions:
        text = clause.text[slice(*definition.span)]
        notes.get(definition.label.canonical, []).append((" ".join(text.split()), _CONDITION))
    automaton = lower_rows(clause.pattern, neighbours=True)
    return automaton_svg(automaton, notes, ", ".join(notes))


def flink_svg(pattern: Pattern, lowered: FlinkAutomaton) -> str:
    """The drawing of a Flink pattern: the conditions are those of its edges."""
    tests: dict[str, dict[str, None]] = {}
    for state in lowered.states:
        guards = (formula_text(edge.guard, lowered.atoms) for edge in state.takes)
        tests.setdefault(step_of(state.name), {}).update(dict.fromkeys(text for text in guards if text != "TRUE"))
    notes: dict[str, Notes] = {}
    forbidden: Notes = []
    for step in pattern.steps():
        name = step.name or ""
        if step.contiguity in NEGATIVE:
            own = " AND ".join(tests.get(name, ()))
            forbidden.append((f"no {name}" + (f" with {own}" if own else ""), _NEGATIVE))
        else:
            lines = ((text, _CONDITION) for text in tests.get(name, ()))
            notes[name] = [(name, _TITLE), *lines, *forbidden]
            forbidden = []
    _afterwards(notes, forbidden)
    within = None if pattern.window is None else str(pattern.window)
    return automaton_svg(lowered.automaton, notes, ", ".join(notes), within)


def _afterwards(notes: dict[str, Notes], forbidden: Notes) -> None:
    """What must not happen behind the last component."""
    if notes:
        notes[list(notes)[-1]] += [(f"then {text}", style) for text, style in forbidden]


# --- the drawing ----------------------------------------------------------------------------------------------------


def automaton_svg(
    automaton: Automaton[Any],
    notes: Mapping[str, Notes],
    name: str,
    within: str | None = None,
    arcs: Sequence[Arc] = (),
) -> str:
    """The drawing of an automaton with lines below each component, whose order is that of the circles."""
    place = {label: number + 1 for number, label in enumerate(notes)}
    edges = sorted({(place[a] if a else 0, place[b]) for a, b in _neighbours(automaton) if b in place})
    last = {place[a] for a, b in _neighbours(automaton) if a and not b}
    shown = [
        (arc.source + 1, arc.target + 1, arc) for arc in arcs if arc.target - arc.source > 1 or arc.target == len(notes)
    ]
    circles = len(notes) + 1 + any(target > len(notes) for _, target, _ in shown)
    spans = [(source, target) for source, target, _ in shown] + edges
    above = max([0, *(_lift(target - source - 1) for source, target in spans if target > source + 1)]) * 3 // 4
    above = max(above, 34 if any(source == target for source, target in edges) else 0)
    beneath = max([0, *(_lift(source - target) for source, target in edges if target < source)]) * 3 // 4
    middle = above + _RADIUS + 20
    top = middle + _RADIUS + 16 + beneath
    height = top + _LINE * max(map(len, notes.values()), default=0) + (18 if within is not None else 0)
    width = 2 * _LEFT + _STEP * (circles - 1)
    parts = [
        f'<svg class="automaton" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(f"automaton of the query: {name}", quote=True)}" xmlns="http://www.w3.org/2000/svg" '
        'font-family="system-ui, sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>',
    ]
    labels = ["start", *notes, "end"][:circles]
    parts += [_circle(number, label, middle, number in last) for number, label in enumerate(labels)]
    parts += [_edge(source, target, middle) for source, target in edges]
    parts += [_arc(source, target, middle, arc) for source, target, arc in shown]
    for number, lines in enumerate(notes.values(), 1):
        parts += [_text(_x(number), top + line * _LINE, *each) for line, each in enumerate(lines)]
    if within is not None:
        parts.append(_text(_LEFT - _RADIUS, height - 6, f"all within {within}", 'font-size="11"', "start"))
    return "\n".join([*parts, "</svg>"])


def _neighbours(automaton: Automaton[Any]) -> Iterator[tuple[str, str]]:
    """Which component can come right after which: the first is "" at the start, the second "" at the end of a match."""
    takes = [("", automaton.start)]
    takes += [(edge.variable, edge.target) for state in automaton.states for edge in state.takes]
    for before, target in dict.fromkeys(takes):
        seen, pending = {target}, [target]
        while pending:
            state = automaton.states[pending.pop()]
            if state.kind in (Kind.FINAL, Kind.PENDING):
                yield before, ""
            for edge in state.edges if state.kind is not Kind.STOP else ():
                if edge.action is Action.TAKE:
                    yield before, edge.variable
                elif edge.target not in seen:
                    seen.add(edge.target)
                    pending.append(edge.target)


def _x(number: int) -> int:
    return _LEFT + _STEP * number


def _text(x: int, y: int, text: str, style: str, anchor: str = "middle", longest: int = _LONGEST) -> str:
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="currentColor" {style}>{escape(short)}'
        f"<title>{escape(text)}</title></text>"
    )


def _circle(number: int, label: str, middle: int, final: bool) -> str:
    at = f'cx="{_x(number)}" cy="{middle}" fill="none" stroke="currentColor"'
    ring = f'<circle {at} r="{_RADIUS - 4}"/>' if final else ""
    return f'<circle {at} r="{_RADIUS}" stroke-width="1.5"/>{ring}' + _text(
        _x(number), middle + 4, label, "", longest=7
    )


def _lift(across: int) -> int:
    """How far the control points of a curve past so many circles lie from it; the curve reaches three quarters."""
    return 34 * across + 20


def _edge(source: int, target: int, middle: int) -> str:
    left, right = _x(source), _x(target)
    if target == source + 1:
        return f'<path d="M{left + _RADIUS} {middle}L{right - _RADIUS} {middle}" {_LINED}/>'
    if target == source:
        top = middle - _RADIUS + 3
        return (
            f'<path d="M{left - 10} {top}C{left - 30} {top - 37} {left + 30} {top - 37} {left + 10} {top}" {_LINED}/>'
        )
    return _curve(source, target, middle, _LINED)


def _curve(source: int, target: int, middle: int, style: str) -> str:
    """Forward above the circles, backward below them."""
    back = target <= source
    way, rim = (1, middle + _RADIUS - 4) if back else (-1, middle - _RADIUS + 4)
    lift, right = way * _lift(source - target if back else target - source - 1), -way
    x1, x2 = _x(source) + 13 * right, _x(target) - 13 * right
    return f'<path d="M{x1} {rim}C{x1 + 22 * right} {rim + lift} {x2 - 22 * right} {rim + lift} {x2} {rim}" {style}/>'


def _arc(source: int, target: int, middle: int, arc: Arc) -> str:
    y = middle - _RADIUS - _lift(target - source - 1) * 3 // 4 - 5
    label = _text((_x(source) + _x(target)) // 2, y, arc.label, 'font-size="11"', longest=len(arc.label))
    faded = ' opacity="0.45"' if arc.dropped else ""
    return f"<g{faded}>{_curve(source, target, middle, _DASHED)}{label}</g>"
