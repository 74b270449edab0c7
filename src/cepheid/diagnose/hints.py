"""Likely causes with a remedy, each found by one function; the list of them is HINTS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.diagnose.diagnosis import ComponentCount, Count, Hint, WindowNeeded, Without
from cepheid.diagnose.relax import Subject
from cepheid.diagnose.stages import Stage, about_negation
from cepheid.diagnose.window import longer_window, span_text, spans
from cepheid.engine.values.plain import value_column
from cepheid.errors import closest
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.printing import component_text, expression_text
from cepheid.language.schema import DataType

_MANY = 0.5  # a share of events that is worth a remark
# Whole-number times since 1970 that fall into the years 2001 to 2100 give away their unit by their size.
_EPOCHS = {"seconds": 1e9, "milliseconds": 1e12, "microseconds": 1e15, "nanoseconds": 1e18}


@dataclass(frozen=True)
class Findings:
    """All that was counted."""

    subject: Subject
    components: tuple[ComponentCount, ...]
    stages: tuple[Stage, ...]
    without: tuple[Without, ...]
    window: WindowNeeded | None
    types: tuple[tuple[str, int], ...]
    matches: Count

    @property
    def failed(self) -> Stage | None:
        """The first stage that nothing survived."""
        last = self.stages[-1] if self.stages else None
        return last if last is not None and last.step.count.number == 0 else None

    def column(self, name: str) -> pa.ChunkedArray:
        """A column as conditions see it."""
        return value_column(self.subject.events.table.column(name))

    def candidates(self, component: s.Component) -> np.ndarray:
        """The rows of a component's type."""
        schema = self.subject.bound.schema
        if component.types is None or schema.type is None:
            return np.arange(len(self.subject.events))
        column = self.column(schema.type)
        held = pc.fill_null(pc.is_in(column, value_set=pa.array(list(component.types), column.type)), False)
        return np.flatnonzero(held.to_numpy(zero_copy_only=False))

    def values(self, component: s.Component, name: str) -> pa.ChunkedArray:
        """The values of an attribute on the events of a component's type."""
        return self.column(name).take(pa.array(self.candidates(component)))


def find_hints(findings: Findings) -> tuple[Hint, ...]:
    """Every hint that applies, the most basic first."""
    found: list[Hint] = []
    for look in HINTS:
        found += [hint for hint in look(findings) if hint not in found]
    return tuple(found)


def _no_events(findings: Findings) -> Iterator[Hint]:
    if len(findings.subject.events) == 0:
        yield Hint("no-events", "the table is empty")


def _types_that_do_not_occur(findings: Findings) -> Iterator[Hint]:
    known = [name for name, _ in findings.types if name != "None"]
    if not known:
        return
    column = findings.subject.bound.schema.type
    for component in findings.subject.bound.components:
        for name in component.types or ():
            if name in known:
                continue
            guess = next((other for other in known if other.strip().casefold() == name.strip().casefold()), None)
            if guess is not None:
                difference = "case" if guess.casefold() == name.casefold() else "spaces"
                text = f"no event has the type '{name}', but many are called '{guess}': the {difference} differs"
            elif (near := closest(name, known)) is not None:
                text = f"no event has the type '{name}'; did you mean '{near}'?"
            else:
                some = ", ".join(f"'{other}'" for other in known[:5])
                text = (
                    f"no event has the type '{name}'; column '{column}' holds {some}{', ...' if len(known) > 5 else ''}"
                )
            yield Hint("unknown-type", text)


def _conditions_that_never_hold(findings: Findings) -> Iterator[Hint]:
    for component, counted in zip(findings.subject.bound.components, findings.components, strict=True):
        if counted.of_type == 0 or counted.negative:
            continue
        never = [c.text for c in counted.conditions if c.passed == 0]
        for part in findings.subject.parts:
            if part.text in never:
                expression = part.expression
                if isinstance(expression, s.Equivalence):
                    ((name, value),) = expression.tests
                    assert value is not None
                    expression = s.Comparison("=", s.Attribute(s.Reference(component.variable), name), value)
                seen = _what_is_there(findings, component, expression)
                text = f"{part.text} holds for none of the {counted.of_type:,} events of {counted.text}"
                yield Hint("never-true", f"{text}: {seen}" if seen else text)
        if not never and counted.passed == 0 and counted.without_key < counted.of_type and len(counted.conditions) > 1:
            conditions = " and ".join(c.text for c in counted.conditions)
            yield Hint(
                "never-together",
                f"each holds for some events of {counted.text}, but no event satisfies all: {conditions}",
            )


def _what_is_there(findings: Findings, component: s.Component, expression: s.Expression) -> str | None:
    """The range or the values of what a condition compares with a constant."""
    names = {node.name for node in s.walk(expression) if isinstance(node, s.Attribute)}
    if len(names) != 1:
        return None
    (name,) = names
    values = findings.values(component, name).drop_null()
    if not len(values):
        return f"{name} is NULL on all of them"
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        if findings.subject.bound.schema.type_of(name) is DataType.TIME:
            return None
        extremes = pc.min_max(values).as_py()
        return f"{name} goes from {extremes['min']:g} to {extremes['max']:g}"
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        literals = [n.value for n in s.walk(expression) if isinstance(n, s.Literal) and isinstance(n.value, str)]
        known = [str(v) for v in values.unique().to_pylist()[:10_000]]
        near = next((guess for text in literals if (guess := closest(text, known)) is not None), None)
        if near is not None:
            return f"did you mean '{near}'?"
        return f"{name} is " + ", ".join(f"'{v}'" for v in known[:5]) + (", ..." if len(known) > 5 else "")
    return None


def _keys_that_are_null(findings: Findings) -> Iterator[Hint]:
    for counted, component in zip(findings.components, findings.subject.bound.components, strict=True):
        if counted.of_type and counted.without_key >= _MANY * counted.of_type:
            all_of = "all" if counted.without_key == counted.of_type else f"{counted.without_key:,} of"
            number = f"{counted.of_type:,} {'event' if counted.of_type == 1 else 'events'}"
            names = findings.subject.bound.equivalence
            keys = " or ".join([n for n in names if findings.values(component, n).null_count] or names)
            yield Hint("null-key", f"{keys} is NULL on {all_of} {number} of {counted.text}: these never match")


def _equalities(findings: Findings) -> Iterator[tuple[str, s.Component, str, s.Component, str]]:
    """Everything that must be equal on two components: text, and attribute by component."""
    positives = findings.subject.positives
    for name in findings.subject.bound.equivalence:
        for left, right in pairwise(positives):
            yield f"[{name}]", left, name, right, name
    by_name = {c.variable: c for c in positives}
    for part in findings.subject.parts:
        match part.expression:
            case s.Comparison(
                operator="=",
                left=s.Attribute(of=s.Reference(variable=a), name=a_name),
                right=s.Attribute(of=s.Reference(variable=b), name=b_name),
            ) if a in by_name and b in by_name and a != b:
                yield part.text, by_name[a], a_name, by_name[b], b_name


def _keys_that_are_never_equal(findings: Findings) -> Iterator[Hint]:
    if findings.matches.number:
        return
    for text, left, left_name, right, right_name in _equalities(findings):
        lefts = findings.values(left, left_name).drop_null().unique()
        rights = findings.values(right, right_name).drop_null().unique()
        if not len(lefts) or not len(rights) or lefts.type != rights.type:
            continue
        if pc.any(
            pc.is_in(lefts, value_set=rights.combine_chunks() if isinstance(rights, pa.ChunkedArray) else rights)
        ).as_py():
            continue
        a, b = lefts[0].as_py(), rights[0].as_py()
        message = (
            f"{text}: no {left_name} of {component_text(left)} occurs as {right_name} of {component_text(right)} "
            f"(such as {a!r} and {b!r})"
        )
        alike = _alike(lefts, rights)
        yield Hint("key-never-equal", f"{message}; {alike}" if alike else message)


def _alike(lefts: Any, rights: Any) -> str | None:
    """How two sets of texts differ although they mean the same."""
    if not pa.types.is_string(lefts.type):
        return None
    ways: dict[str, Callable[[str], str]] = {
        "case": str.casefold,
        "spaces around them": str.strip,
        "leading zeros": lambda text: text.lstrip("0"),
    }
    left_texts, right_texts = lefts.to_pylist()[:100_000], rights.to_pylist()[:100_000]
    for name, fold in ways.items():
        common = {fold(text): text for text in left_texts}
        other = next((text for text in right_texts if fold(text) in common), None)
        if other is not None:
            return f"{common[fold(other)]!r} and {other!r} differ in {name} only"
    return None


def _order(findings: Findings) -> Iterator[Hint]:
    """The next event is there, but earlier or too late."""
    failed = findings.failed
    if failed is None or failed.step.kind != "join":
        return
    subject = findings.subject
    first, second = subject.positives[failed.place - 1], subject.positives[failed.place]
    turned = subject.matches(subject.relaxed(components=[second, first], any_strategy=True), 1)
    later = _shortest_wait(findings, failed, first, second)
    if len(turned) and later is None:
        text = f"{component_text(second)} comes before {component_text(first)}, never after it"
        yield Hint("wrong-order", f"{text}: is the pattern in the right order?")
    elif len(turned) and later:
        text = f"{component_text(second)} comes after {component_text(first)}, but at least {later} later"
        yield Hint("too-late", f"{text}; those within the window come before it")


def _shortest_wait(findings: Findings, failed: Stage, first: s.Component, second: s.Component) -> str | None:
    """How long after the first the second comes at the soonest, whatever the window; None: it never does.

    Empty where it comes in time: then an event before these two is what is too far away.
    """
    subject, own = findings.subject, findings.subject.bound.window

    def pairs(window: s.Window | None) -> BoundQuery:
        return subject.relaxed(components=[first, second], without=failed.pending, window=window, any_strategy=True)

    if own is None or own.events:  # a window of events is not measured on the pair alone
        return "" if len(subject.matches(pairs(None), 1)) else None
    found = longer_window(subject, pairs, lambda _: True)
    if found is None:
        return None
    shortest = int(spans(subject, found[1]).min())
    return "" if shortest < own.length else span_text(subject, shortest)


def _same_time(findings: Findings) -> Iterator[Hint]:
    ties = findings.subject.ties
    if ties is not None:
        yield Hint("same-time", str(ties))


def _window_too_short(findings: Findings) -> Iterator[Hint]:
    window, own = findings.window, findings.subject.bound.window
    if window is None or own is None or window.needed is None or findings.matches.number:
        return
    yield Hint("window-too-short", f"WITHIN {window.text} is too short: the closest needs {window.needed_text}")
    ratio = window.needed / window.length
    if ratio >= 100 and not own.events:
        factor = 1_000_000 if ratio >= 30_000 else 1_000
        yield Hint("time-unit", f"that is {ratio:,.0f} times longer: is the unit wrong by a factor of {factor:,}?")


def _unit_by_size(findings: Findings) -> Iterator[Hint]:
    """Times that can only be milliseconds since 1970 while the call or the window says seconds."""
    subject = findings.subject
    schema, window = subject.bound.schema, subject.bound.window
    if schema.type_of(schema.time) is not DataType.INT or window is None or window.events or not len(subject.events):
        return
    middle = float(np.median(subject.events.time))
    unit = next((name for name, low in _EPOCHS.items() if low <= middle < 4.2 * low), None)
    if unit is None or unit == schema.time_unit:
        return
    looks = f"column '{schema.time}' looks like {unit} since 1970"
    if schema.time_unit is not None:
        yield Hint("time-unit", f"{looks}, not {schema.time_unit}: pass time_unit='{unit}'")
    elif not findings.matches.number:
        written = f"so WITHIN {window.length} is {window.length:,} {unit}"
        yield Hint("time-unit", f"{looks}, {written}: pass time_unit='{unit}' and write WITHIN with a unit")


def _negation_kills_all(findings: Findings) -> Iterator[Hint]:
    failed = findings.failed
    if failed is None or failed.negation is None:
        return
    subject, variable = findings.subject, failed.negation.variable
    about = [part for part in subject.parts if about_negation(subject, part) and variable in part.variables]
    text = f"{component_text(failed.negation)} excludes every remaining match"
    if not subject.bound.equivalence and not any(len(part.variables) > 1 for part in about):
        text += f": no condition relates {variable} to the other events, so any such event counts; add one such as [id]"
    yield Hint("negation-kills-all", text)


def _one_thing_blocks(findings: Findings) -> Iterator[Hint]:
    if findings.matches.number:
        return
    for item in sorted(findings.without, key=lambda item: item.kind == "key"):
        if item.matches is not None and item.matches.number:
            text = f"without {item.text} there would be {item.matches} matches"
            yield Hint("only-this-blocks", text.replace(" 1 matches", " 1 match"))


def _condition_on_null(findings: Findings) -> Iterator[Hint]:
    """A condition on several events fails because an attribute is NULL on all events of a component."""
    failed = findings.failed
    if failed is None or failed.part is None:
        return
    by_name = {c.variable: c for c in findings.subject.positives}
    for node in s.walk(failed.part.expression):
        if isinstance(node, s.Attribute) and node.of.variable in by_name:
            values = findings.values(by_name[node.of.variable], node.name)
            if len(values) and values.null_count == len(values):
                component = component_text(by_name[node.of.variable])
                yield Hint("null-attribute", f"{expression_text(node)} is NULL on all events of {component}")


HINTS: tuple[Callable[[Findings], Iterator[Hint]], ...] = (
    _no_events,
    _types_that_do_not_occur,
    _conditions_that_never_hold,
    _keys_that_are_null,
    _keys_that_are_never_equal,
    _condition_on_null,
    _order,
    _same_time,
    _unit_by_size,
    _window_too_short,
    _negation_kills_all,
    _one_thing_blocks,
)
