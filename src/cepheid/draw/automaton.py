"""The automaton of a query as SVG: states for the events that must happen, loops for Kleene plus, what must not happen
written on the way, and arcs with their score where events may be missing.

Colours are the page's own (`currentColor`), so that it reads in light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from cepheid.draw.expression import expression_svg
from cepheid.language import syntax as s
from cepheid.language.printing import component_text, expression_text, window_text

_STEP = 170  # from state to state
_RADIUS = 22
_LEFT = 60
_LINE = 15  # height of a line of conditions
_LONGEST = 26  # characters of a condition on the drawing; the whole stands in its tooltip


@dataclass(frozen=True)
class Arc:
    """A way past events that nobody saw: from one state to a later one, with its label."""

    source: int  # index among the positive components; -1: the start
    target: int  # index among the positive components; their number: the end of the window
    label: str
    dropped: bool = False  # it can never reach the threshold


def automaton_svg(query: s.QuerySyntax, arcs: Sequence[Arc] = ()) -> str:
    """The drawing.

    >>> from cepheid.language.sase.parse import parse
    >>> svg = automaton_svg(parse("PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 9"))
    >>> svg.count("<circle") >= 3, "no Register b" in svg
    (True, True)
    """
    if not query.is_linear:
        return expression_svg(query)
    positives = [component for component in query.components if not component.negative]
    count = len(positives)
    shown = [arc for arc in arcs if arc.target - arc.source > 1 or arc.target == count]
    above = _RADIUS + (_lift(max(map(_height, shown))) + 8 if shown else 8)
    loops = 34 if any(component.kleene for component in positives) else 0
    middle = above + loops
    notes = [_notes(query, positives, place) for place in range(count + 1)]
    written = max([_RADIUS, 18 + _LINE * max(map(len, notes[:-1])), _RADIUS + 16 + _LINE * len(notes[-1])])
    below = middle + written + (24 if query.within is not None else 8)
    width = 2 * _LEFT + _STEP * count
    name = escape(_description(query), quote=True)
    parts = [
        f'<svg class="automaton" viewBox="0 0 {width} {below}" width="{width}" height="{below}" role="img" '
        f'aria-label="{name}" xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>',
    ]
    parts += [_state(place, positives, middle) for place in range(count + 1)]
    for place, component in enumerate(positives):
        parts.append(_edge(place, component, middle, notes[place]))
        if component.kleene:
            parts.append(_loop(place, middle))
    parts.append(_lines(notes[count], _x(count), middle + _RADIUS + 16))
    if query.within is not None:
        within = escape(f"all within {window_text(query.within)}")
        parts.append(f'<text x="{_LEFT - _RADIUS}" y="{below - 6}" fill="currentColor" font-size="11">{within}</text>')
    parts += [_arc(arc, middle) for arc in shown]
    return "\n".join([*parts, "</svg>"])


def _x(place: int) -> int:
    """The centre of the state reached after `place` events; 0 is the start."""
    return _LEFT + _STEP * place


def _state(place: int, positives: list[s.Component], middle: int) -> str:
    at = f'cx="{_x(place)}" cy="{middle}" fill="none" stroke="currentColor"'
    label = "start" if place == 0 else positives[place - 1].variable
    ring = f'<circle {at} r="{_RADIUS - 4}"/>' if place == len(positives) else ""
    return (
        f'<circle {at} r="{_RADIUS}" stroke-width="1.5"/>{ring}<text x="{_x(place)}" y="{middle + 4}" '
        f'text-anchor="middle" fill="currentColor">{escape(_cut(label, 7))}</text>'
    )


def _edge(place: int, component: s.Component, middle: int, lines: list[tuple[str, bool]]) -> str:
    left, right = _x(place) + _RADIUS, _x(place + 1) - _RADIUS
    centre = (left + right) // 2
    label = component_text(component, {component.variable})
    text = (
        f'<line x1="{left}" y1="{middle}" x2="{right}" y2="{middle}" stroke="currentColor" stroke-width="1.5" '
        f'marker-end="url(#tip)"/><text x="{centre}" y="{middle - 7}" text-anchor="middle" fill="currentColor" '
        f'font-weight="600">{escape(_cut(label, 18))}<title>{escape(label)}</title></text>'
    )
    return text + _lines(lines, centre, middle + 18)


def _lines(lines: list[tuple[str, bool]], centre: int, top: int) -> str:
    found = []
    for index, (text, negative) in enumerate(lines):
        style = 'class="negative" font-style="italic"' if negative else 'opacity="0.8"'
        found.append(
            f'<text x="{centre}" y="{top + index * _LINE}" text-anchor="middle" fill="currentColor" font-size="11" '
            f"{style}>{escape(_cut(text, _LONGEST))}<title>{escape(text)}</title></text>"
        )
    return "".join(found)


def _loop(place: int, middle: int) -> str:
    x, top = _x(place + 1), middle - _RADIUS
    return (
        f'<path d="M{x - 10} {top + 3}C{x - 30} {top - 34} {x + 30} {top - 34} {x + 10} {top + 3}" fill="none" '
        f'stroke="currentColor" stroke-width="1.5" marker-end="url(#tip)"/>'
        f'<text x="{x}" y="{top - 28}" text-anchor="middle" fill="currentColor">more</text>'
    )


def _height(arc: Arc) -> int:
    return arc.target - arc.source - (1 if arc.target > arc.source else 0)


def _lift(height: int) -> int:
    """How far the control points of an arc lie above it; the arc itself reaches three quarters of that."""
    return 34 * height + 20


def _arc(arc: Arc, middle: int) -> str:
    left, right = _x(arc.source + 1), _x(arc.target + 1)
    lift = _lift(_height(arc))
    top = middle - _RADIUS
    faded = ' opacity="0.45"' if arc.dropped else ""
    return (
        f'<g{faded}><path d="M{left + 8} {top}C{left + 30} {top - lift} {right - 30} {top - lift} {right - 8} {top}" '
        f'fill="none" stroke="currentColor" stroke-dasharray="4 3" marker-end="url(#tip)"/>'
        f'<text x="{(left + right) // 2}" y="{top - int(lift * 0.75) - 5}" text-anchor="middle" fill="currentColor" '
        f'font-size="11">{escape(arc.label)}</text></g>'
    )


def _notes(query: s.QuerySyntax, positives: list[s.Component], place: int) -> list[tuple[str, bool]]:
    """What is asked on the way to the state after `place` + 1 events: conditions, and what must not happen."""
    last = place == len(positives)
    known = {component.variable for component in positives[: place + 1]}
    earlier = {component.variable for component in positives[:place]}
    lines: list[tuple[str, bool]] = []
    if not last:
        for part in conditions_of(query):
            variables = s.variables_of(part)
            new = bool(variables) and variables <= known and not variables <= earlier
            if new or (isinstance(part, s.Equivalence) and place > 0):
                lines.append((expression_text(part), False))
        lines += [(note, False) for note in step_notes(query, positives[place])]
    position = 0
    for component in query.components:
        if not component.negative:
            position += 1
        elif position == place:
            own = [expression_text(p) for p in conditions_of(query) if component.variable in s.variables_of(p)]
            text = component_text(component, {component.variable}).removeprefix("!(").removesuffix(")")
            lines.append((f"no {text}" + (f" with {' AND '.join(own)}" if own else ""), True))
    return lines


def step_notes(query: s.QuerySyntax, component: s.Component) -> list[str]:
    """What ends its group, and strategies that reach its events by another way than the rest.

    >>> from cepheid.language.sase.parse import parse
    >>> query = parse("PATTERN SEQ(A a, B+ b[] UNTIL b.x > 3) WHERE strict_contiguity(b[i])")
    >>> step_notes(query, query.components[1])
    ['until b.x > 3', 'b[i] by strict_contiguity']
    """
    notes = [f"until {expression_text(component.until)}"] if component.until is not None else []
    for selection in query.step_selections:
        own = [expression_text(step) for step in selection.steps if step.variable == component.variable]
        notes += [f"{', '.join(own)} by {selection.strategy.value}"] if own else []
    return notes


def conditions_of(query: s.QuerySyntax) -> list[s.Expression]:
    """The conditions of the top-level AND."""

    def flat(node: s.Expression) -> list[s.Expression]:
        return [part for operand in node.operands for part in flat(operand)] if isinstance(node, s.And) else [node]

    return [] if query.where is None else flat(query.where)


def _description(query: s.QuerySyntax) -> str:
    names = ", then ".join(
        f"no {c.variable}" if c.negative else f"one or more {c.variable}" if c.kleene else c.variable
        for c in query.components
    )
    return f"automaton of the query: {names}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
