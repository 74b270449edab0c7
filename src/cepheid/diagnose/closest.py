"""The events that came closest to a match, and what stopped them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.diagnose.diagnosis import Closest
from cepheid.diagnose.relax import Part, Subject
from cepheid.diagnose.stages import Stage
from cepheid.diagnose.window import Affordable, longer_window, span_text, spans
from cepheid.engine.data.matches import Matches
from cepheid.engine.values.columnwise import condition, value
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.printing import component_text, expression_text, window_text

_LOOKED_AT = 10_000  # partial matches among which the closest is looked for


def closest_to_a_match(subject: Subject, stages: list[Stage], affordable: Affordable) -> Closest | None:
    """What came closest at the first stage that nothing survived."""
    if not stages or stages[-1].step.count.number:
        return None
    failed = stages[-1]
    match failed.step.kind:
        case "events":
            return _closest_event(subject, subject.positives[failed.place])
        case "join":
            return _closest_pair(subject, failed, affordable)
        case "condition":
            return _closest_combination(subject, stages)
        case _:
            return _killed(subject, stages)


def chosen_events(subject: Subject, matches: Matches, index: int) -> tuple[tuple[str, dict[str, object]], ...]:
    """The events of one match with their variables; every event of a Kleene group."""
    one = matches.take(np.array([index])).groups()[0]
    variables = _variables(subject, len(matches.chosen))
    return tuple((name, subject.row(row)) for name, rows in zip(variables, one, strict=True) for row in rows)


def _variables(subject: Subject, number: int) -> list[str]:
    return [component.variable for component in subject.positives[:number]]


# --- no event fills the component -------------------------------------------------------------------------------


def _closest_event(subject: Subject, component: s.Component) -> Closest | None:
    """The event of the right type that fails the fewest of the conditions on it."""
    schema, table = subject.bound.schema, subject.events.table
    if component.types is not None and schema.type is not None:
        column = value_column(table.column(schema.type))
        of_type = pc.fill_null(pc.is_in(column, value_set=pa.array(list(component.types), column.type)), False)
        rows = np.flatnonzero(of_type.to_numpy(zero_copy_only=False))
    else:
        rows = np.arange(len(subject.events))
    if not len(rows):
        return None
    some = table.take(pa.array(rows[:_LOOKED_AT]))
    failed = np.zeros(len(some), np.int64)
    for part in _own_parts(subject, component):
        held = condition(part, lambda node: value_column(some.column(node.name)), component.any)  # type: ignore[attr-defined]
        truth = held.as_py() if isinstance(held, pa.Scalar) else held.to_numpy(zero_copy_only=False)
        failed += ~np.broadcast_to(truth, len(some))
    best = int(failed.argmin())
    event = some.slice(best, 1).to_pylist()[0]
    blocking = [p for p in _own_parts(subject, component) if not _holds(p, event, some.slice(best, 1), component.any)]
    if not blocking:
        missing = [name for name in subject.bound.equivalence if event.get(name) is None]
        if not missing:
            return None
        return Closest(((component.variable, event),), f"[{', '.join(missing)}]", f"{missing[0]} is NULL")
    text = " AND ".join(expression_text(part) for part in blocking)
    return Closest(((component.variable, event),), text, _values_text(blocking[0], {component.variable: event}))


def _own_parts(subject: Subject, component: s.Component) -> list[s.Expression]:
    found: list[s.Expression] = []
    for part in subject.parts:
        if isinstance(part.expression, s.Equivalence):
            ((name, fixed),) = part.expression.tests
            if fixed is not None:
                found.append(s.Comparison("=", s.Attribute(s.Reference(component.variable), name), fixed))
        elif part.own == component.variable:
            found.append(part.expression)
    return found


def _holds(part: s.Expression, event: dict[str, Any], table: pa.Table, any_null: bool) -> bool:
    held = condition(part, lambda node: value_column(table.column(node.name)), any_null)  # type: ignore[attr-defined]
    return bool(held.as_py() if isinstance(held, pa.Scalar) else held[0].as_py())


# --- the next event never comes, or not in time, or not with the same key ---------------------------------------


def _closest_pair(subject: Subject, failed: Stage, affordable: Affordable) -> Closest | None:
    chosen = subject.positives[: failed.place + 1]
    assert failed.query is not None
    kept = failed.query.components
    if subject.bound.window is not None:
        built = longer_window(
            subject, lambda window: subject.relaxed(components=kept, without=failed.pending, window=window), affordable
        )
        if built is not None:
            length = spans(subject, built[1])
            best = int(length.argmin())
            assert subject.bound.within is not None
            return Closest(
                chosen_events(subject, built[1], best),
                f"WITHIN {window_text(subject.bound.within)}",
                f"they lie {span_text(subject, int(length[best]))} apart",
            )
    for key in [part for part in subject.parts if part.is_equivalence]:
        query = subject.relaxed(components=kept, without=[*failed.pending, key])
        found = subject.matches(query, 1) if affordable(query) else None
        if found is not None and len(found):
            events = chosen_events(subject, found, 0)
            assert isinstance(key.expression, s.Equivalence)
            name = key.expression.tests[0][0]
            differ = ", ".join(f"{variable}.{name} = {event.get(name)!r}" for variable, event in events)
            return Closest(events, f"[{name}]", differ)
    if subject.bound.strategies != {s.Strategy.SKIP_TILL_ANY}:
        query = subject.relaxed(components=kept, without=failed.pending, any_strategy=True)
        found = subject.matches(query, 1)
        if len(found):
            detail = "other events lie in between"
            return Closest(chosen_events(subject, found, 0), subject.bound.strategy_text, detail)
    lone = subject.matches(subject.relaxed(components=chosen[:-1], without=failed.pending), 1)
    if not len(lone):
        return None
    return Closest(
        chosen_events(subject, lone, 0),
        component_text(chosen[-1], {chosen[-1].variable}),
        _nothing_follows(subject, chosen[-2].variable, chosen[-1].variable),
    )


def _nothing_follows(subject: Subject, before: str, after: str) -> str:
    keys, window = subject.bound.equivalence, subject.bound.within
    same = f" with the same {' and '.join(keys)}" if keys else ""
    return f"no {after}{same} follows {before}" + (f" within {window_text(window)}" if window is not None else "")


# --- a condition holds for none ---------------------------------------------------------------------------------


def _closest_combination(subject: Subject, stages: list[Stage]) -> Closest | None:
    failed = stages[-1]
    assert failed.part is not None
    assert failed.query is not None
    query = subject.relaxed(components=failed.query.components, without=[*failed.pending, failed.part])
    before = subject.matches(query, _LOOKED_AT)
    if not len(before):
        return None
    distance = _distance(subject, failed.part, before)
    best = 0 if distance is None else int(np.nanargmin(distance))
    events = chosen_events(subject, before, best)
    return Closest(events, failed.part.text, _values_text(failed.part.expression, dict(events)))


def _distance(subject: Subject, part: Part, matches: Matches) -> np.ndarray | None:
    """How far each partial match is from satisfying a comparison of numbers, where that can be said."""
    if not isinstance(part.expression, s.Comparison):
        return None
    kleene = {c.variable for c in subject.positives if c.kleene}
    if part.variables & kleene:
        return None
    rows = dict(zip(_variables(subject, len(matches.chosen)), (c.rows for c in matches.chosen), strict=True))

    def resolve(node: Any) -> Any:
        return value_column(subject.events.table.column(node.name)).take(pa.array(rows[node.of.variable]))

    left, right = value(part.expression.left, resolve), value(part.expression.right, resolve)
    numbers = [side for side in (left, right) if pa.types.is_integer(side.type) or pa.types.is_floating(side.type)]
    if len(numbers) < 2:
        return None
    far = pc.abs(pc.subtract(pc.cast(left, pa.float64()), pc.cast(right, pa.float64())))
    values = np.asarray(far.to_numpy(zero_copy_only=False) if not isinstance(far, pa.Scalar) else [far.as_py()], float)
    return None if np.isnan(values).all() else values


def _values_text(expression: s.Expression, events: dict[str, dict[str, Any]]) -> str:
    """The values that a condition looked at."""
    found: dict[str, str] = {}
    for node in s.walk(expression):
        if isinstance(node, s.Attribute) and node.of.variable in events:
            shown = events[node.of.variable].get(node.name)
            found[expression_text(node)] = "NULL" if shown is None else _short(shown)
    return ", ".join(f"{name} = {shown}" for name, shown in found.items())


def _short(shown: object) -> str:
    if isinstance(shown, float) and math.isfinite(shown):
        return f"{shown:.6g}"
    text = repr(shown) if isinstance(shown, str) else str(shown)
    return text if len(text) <= 60 else text[:57] + "..."


# --- a negation kills all ---------------------------------------------------------------------------------------


def _killed(subject: Subject, stages: list[Stage]) -> Closest | None:
    """A match of all the rest, with the event that must not be there."""
    failed = stages[-1]
    assert failed.negation is not None
    assert failed.query is not None
    present = replace(failed.negation, negative=False)
    components = [present if c == failed.negation else c for c in failed.query.components]
    text = component_text(failed.negation, {failed.negation.variable})
    found = subject.matches(subject.relaxed(components=components, without=failed.pending), 1)
    if not len(found):
        return None
    variables = [c.variable for c in components if not c.negative]
    (one,) = found.take(np.array([0])).groups()
    events = tuple((name, subject.row(row)) for name, rows in zip(variables, one, strict=True) for row in rows)
    return Closest(events, text, f"this {failed.negation.variable} is present")
