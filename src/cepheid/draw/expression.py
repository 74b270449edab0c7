"""The automaton of a pattern that is an expression: a state for each component, and an edge for each event that can
come next. Ways forward are drawn above the states, further rounds below them; a ring marks where a match can end.
"""

from __future__ import annotations

from html import escape

from cepheid.language import syntax as s
from cepheid.language.pattern import edge, follows, without
from cepheid.language.printing import component_text, expression_text, pattern_text, window_text

_STEP, _RADIUS, _LEFT = 110, 20, 50


def expression_svg(query: s.QuerySyntax) -> str:
    """The drawing of a query whose pattern is an expression.

    >>> from cepheid.language.sase.parse import parse
    >>> svg = expression_svg(parse("PATTERN SEQ(A a, (B b | C c)+, !(D d), E e) WITHIN 9"))
    >>> svg.count("<circle"), "no D d" in svg, "all within 9" in svg
    (6, True, True)
    """
    negative = [component for component in query.components if component.negative]
    positives = [component for component in query.components if not component.negative]
    pattern = without(query.pattern, frozenset(component.variable for component in negative))
    place = {component.variable: number + 1 for number, component in enumerate(positives)}
    ways = sorted((0, place[first]) for first in edge(pattern))
    ways += sorted((place[before], place[after]) for before, after in follows(pattern))
    highest = max((target - source for source, target in ways), default=1)
    deepest = max((source - target + 1 for source, target in ways if target <= source), default=0)
    middle, width = 30 + 18 * highest + _RADIUS, 2 * _LEFT + _STEP * len(positives)
    notes = [f"no {component_text(component, (), '')[2:-1]}" for component in negative]
    for component in positives:
        if component.until is not None:
            notes.append(f"{component.variable}[] until {expression_text(component.until)}")
    for selection in query.step_selections:
        notes.append(f"{', '.join(map(expression_text, selection.steps))} by {selection.strategy.value}")
    notes += [f"all within {window_text(query.within)}"] if query.within is not None else []
    below = middle + _RADIUS + 24 + 18 * deepest + 15 * len(notes)
    parts = [
        f'<svg class="automaton" viewBox="0 0 {width} {below}" width="{width}" height="{below}" role="img" '
        f'aria-label="{escape(pattern_text(query), quote=True)}" xmlns="http://www.w3.org/2000/svg" '
        'font-family="system-ui, sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>',
        _state(0, "start", "the start", middle, final=False),
    ]
    for component in positives:
        label = component_text(component, {component.variable}, "")
        final = component.variable in edge(pattern, last=True)
        parts.append(_state(place[component.variable], component.variable, label, middle, final=final))
    parts += [_way(source, target, middle) for source, target in ways]
    for number, note in enumerate(notes):
        style = 'class="negative" font-style="italic"' if number < len(negative) else 'opacity="0.8"'
        y = below - 6 - 15 * (len(notes) - 1 - number)
        parts.append(
            f'<text x="{_LEFT - _RADIUS}" y="{y}" fill="currentColor" font-size="11" {style}>{escape(note)}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def _state(place: int, name: str, title: str, middle: int, *, final: bool) -> str:
    x = _LEFT + _STEP * place
    at = f'cx="{x}" cy="{middle}" fill="none" stroke="currentColor"'
    ring = f'<circle {at} r="{_RADIUS - 4}"/>' if final else ""
    return (
        f'<circle {at} r="{_RADIUS}" stroke-width="1.5"/>{ring}<text x="{x}" y="{middle + 4}" text-anchor="middle" '
        f'fill="currentColor">{escape(name[:7])}<title>{escape(title)}</title></text>'
    )


def _way(source: int, target: int, middle: int) -> str:
    left, right = _LEFT + _STEP * source, _LEFT + _STEP * target
    style = 'fill="none" stroke="currentColor" stroke-width="1.5" marker-end="url(#tip)"'
    if target == source + 1:
        return f'<path d="M{left + _RADIUS} {middle}L{right - _RADIUS} {middle}" {style}/>'
    down = target <= source
    rim = middle + _RADIUS if down else middle - _RADIUS
    lift = (1 if down else -1) * (16 + 22 * (abs(target - source) + (1 if down else 0)))
    return f'<path d="M{left + 6} {rim}C{left + 6} {rim + lift} {right - 6} {rim + lift} {right - 6} {rim}" {style}/>'
