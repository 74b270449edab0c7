"""A diagnosis in words: the same tables for the terminal, for print() and for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from cepheid.draw.text import counted, value_text

if TYPE_CHECKING:
    from cepheid.diagnose.diagnosis import Closest, Diagnosis

Look = Literal["plain", "head", "aside", "none"]  # "none": the number is zero, which is what one looks for


@dataclass(frozen=True)
class Row:
    """A line of a table, how deep it is indented, and its number as text."""

    text: str
    number: str
    look: Look = "plain"
    indent: int = 0


@dataclass(frozen=True)
class Section:
    """A table with two columns."""

    title: str
    columns: tuple[str, str]
    rows: tuple[Row, ...]


def verdict(diagnosis: Diagnosis) -> tuple[str, str]:
    """How many matches, and among which events."""
    found = f"{diagnosis.matches} {'match' if diagnosis.matches.number == 1 else 'matches'}"
    return found, f"among {diagnosis.sample}" if diagnosis.sample else f"in {counted(diagnosis.events, 'event')}"


def sections(diagnosis: Diagnosis) -> Iterator[Section]:
    """The tables that have something to say."""
    yield Section("Events that can fill each component", ("component", "events"), tuple(_components(diagnosis)))
    if len(diagnosis.steps) > 1:
        yield Section("What remains, step by step", ("step", "remaining"), tuple(_steps(diagnosis)))
    if diagnosis.without or diagnosis.window is not None:
        yield Section("Number of matches without one condition", ("without", "matches"), tuple(_without(diagnosis)))


def _components(diagnosis: Diagnosis) -> Iterator[Row]:
    for component in diagnosis.components:
        yield Row(component.text, f"{component.of_type:,}", "head")
        for condition in component.conditions:
            yield Row(condition.text, f"{condition.passed:,}", _look(condition.passed), 1)
        if component.without_key:
            yield Row("key is NULL", f"{component.without_key:,}", "aside", 1)
        if component.conditions or component.without_key:
            yield Row("can fill it", f"{component.passed:,}", _look(component.passed), 1)


def _look(number: int) -> Look:
    return "plain" if number else "none"


def _steps(diagnosis: Diagnosis) -> Iterator[Row]:
    for place, step in enumerate(diagnosis.steps):
        if step.kind == "events" and place > 0:  # the events of a component are no combinations yet
            yield Row(f"+ {step.text}", str(step.count), "aside")
        else:
            yield Row(step.text, str(step.count), _look(step.count.number), 1 if place else 0)


def _without(diagnosis: Diagnosis) -> Iterator[Row]:
    for item in diagnosis.without:
        yield Row(item.text, "too many combinations to count" if item.matches is None else str(item.matches))
    window = diagnosis.window
    if window is None:
        return
    if window.matches is None:
        yield Row(f"WITHIN {window.text}", "0")
    elif window.needed is None:
        yield Row(f"WITHIN {window.text}, twice as long", str(window.matches))
    else:
        yield Row(f"WITHIN {window.text} (the closest needs {window.needed_text})", str(window.matches))


def closest_lines(closest: Closest) -> list[tuple[str, str]]:
    """The events that came closest: variable and attributes."""
    return [
        (variable, " ".join(f"{name}={value_text(value)}" for name, value in event.items() if value is not None))
        for variable, event in closest.events
    ]


# --- print() ----------------------------------------------------------------------------------------------------


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """The whole story as plain text."""
    lines = [diagnosis.query, "", " ".join(verdict(diagnosis))]
    for section in sections(diagnosis):
        texts = ["  " * row.indent + row.text for row in section.rows]
        width = max(len(text) for text in [section.columns[0], *texts])
        last = max(len(number) for number in [section.columns[1], *(row.number for row in section.rows)])
        lines += ["", section.title, f"  {section.columns[0]:<{width}}  {section.columns[1]:>{last}}"]
        lines += [f"  {text:<{width}}  {row.number:>{last}}" for text, row in zip(texts, section.rows, strict=True)]
    if diagnosis.closest is not None:
        lines += ["", "Closest to a match"]
        lines += [f"  {variable}  {event}" for variable, event in closest_lines(diagnosis.closest)]
        lines.append(f"  stopped by {diagnosis.closest.stopped_by}: {diagnosis.closest.detail}")
    if diagnosis.hints:
        lines += ["", "Likely causes"]
        lines += [f"  • {hint.text}  [{hint.code}]" for hint in diagnosis.hints]
    return "\n".join(lines)


# --- notebooks --------------------------------------------------------------------------------------------------

_STYLE = (
    "<style>.cepheid .why td { text-align: left } .cepheid .why td + td { text-align: right } "
    ".cepheid .why .aside { opacity: .65 } .cepheid .why .none td + td { color: #c0392b; font-weight: bold } "
    ".cepheid .why .head { font-weight: bold } "
    "@media (prefers-color-scheme: dark) { .cepheid .why .none td + td { color: #ff8a7a } }</style>"
)


def diagnosis_html(diagnosis: Diagnosis, style: str = _STYLE) -> str:
    """The whole story as one piece of HTML without scripts: likely causes first, then the numbers behind them."""
    found, among = verdict(diagnosis)
    parts = [f"<pre>{escape(diagnosis.query)}</pre>", f"<p><strong>{escape(found)}</strong> {escape(among)}</p>"]
    if diagnosis.hints:
        items = "".join(f"<li>{escape(hint.text)} <code>{escape(hint.code)}</code></li>" for hint in diagnosis.hints)
        parts.append(f"<p><strong>Likely causes</strong></p><ul>{items}</ul>")
    if diagnosis.closest is not None:
        rows = "".join(
            f"<tr><td>{escape(variable)}</td><td>{escape(event)}</td></tr>"
            for variable, event in closest_lines(diagnosis.closest)
        )
        stopped = f"stopped by <strong>{escape(diagnosis.closest.stopped_by)}</strong>"
        parts.append(f"<p><strong>Closest to a match</strong>: {stopped}: {escape(diagnosis.closest.detail)}</p>")
        parts.append(f"<table><tbody>{rows}</tbody></table>")
    parts += [_section_html(section) for section in sections(diagnosis)]
    return f'<div class="cepheid">{style}<div class="why">{"".join(parts)}</div></div>'


def _section_html(section: Section) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in section.columns)
    rows = "".join(
        f'<tr class="{row.look}"><td style="padding-left: {1 + row.indent}em">{escape(row.text)}</td>'
        f"<td>{escape(row.number)}</td></tr>"
        for row in section.rows
    )
    caption = f"<caption>{escape(section.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
