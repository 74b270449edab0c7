"""FORECAST: the partial matches of a pattern, as queries of their own, and what cannot be forecast.

A partial match that holds the first k positive components is a match of the sequence up to there. It ends when an event
comes that an awaited component could take, or one that a negated component before the next event forbids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cepheid.language import syntax as s
from cepheid.language.partial import known_conditions

LEAST = 1e-6  # partial matches with unseen events in between that are less probable than so are not listed
COLUMNS = ("forecast_at", "probability", "waiting_for", "expected", "earliest", "latest")


@dataclass(frozen=True)
class Ender:
    """A component whose next event ends a partial match, and the conditions on it and the events that are held."""

    component: s.Component
    conditions: tuple[s.Expression, ...]


@dataclass(frozen=True)
class Beginning:
    """Partial matches that hold the same components: a query for them, what they wait for, and what ends them."""

    query: s.QuerySyntax
    held: int  # positive components that are held
    awaited: tuple[s.Component, ...]  # all components behind them, negated ones included
    enders: tuple[Ender, ...]

    @property
    def waiting_for(self) -> str:
        """The component that comes next, or the negated one whose absence must last."""
        positive = (component for component in self.awaited if not component.negative)
        return next(positive, self.awaited[0]).variable


def forecast_beginnings(query: s.QuerySyntax) -> list[Beginning]:
    """All ways to hold a part of a sequence.

    >>> from cepheid.language.printing import to_text
    >>> from cepheid.language.sase.parse import parse
    >>> text = "PATTERN SEQ(A a, !(B b), C c) WHERE [id] AND c.x > a.x WITHIN 9 FORECAST 80%"
    >>> found = forecast_beginnings(parse(text))
    >>> print(to_text(found[0].query), "...", found[0].waiting_for)
    PATTERN SEQ(A a)
    WHERE [id]
    WITHIN 9 ... c
    >>> [(ender.component.variable, len(ender.conditions)) for ender in found[0].enders]
    [('b', 0), ('c', 1)]
    """
    places = [place for place, component in enumerate(query.components) if not component.negative]
    found = []
    for held, place in enumerate(places, start=1):
        awaited = query.components[place + 1 :]
        if not awaited:
            continue
        known = tuple(component.variable for component in query.components[: place + 1])
        last = query.components[place]
        where = known_conditions(query, frozenset(known), open_group=last.variable if last.kleene else None)
        selection = query.selection
        if selection is not None:
            selection = replace(selection, variables=tuple(name for name in selection.variables if name in known))
        part = replace(
            query,
            components=query.components[: place + 1],
            sequence=True,
            where=_joined(where),
            selection=selection,
            forecast=None,
            threshold=None,
            returns=None,
        )
        found.append(Beginning(part, held, awaited, tuple(_enders(query, known, awaited, where))))
    return found


def _enders(
    query: s.QuerySyntax, known: tuple[str, ...], awaited: tuple[s.Component, ...], before: tuple[s.Expression, ...]
) -> Iterator[Ender]:
    """Negated components forbid events up to the next positive one; any positive one that is awaited may be taken."""
    positive_seen = False
    for component in awaited:
        if component.negative and positive_seen:
            continue
        positive_seen |= not component.negative
        single = replace(component, negative=False, kleene=False, until=None)
        conditions = known_conditions(query, frozenset({*known, component.variable}), awaited=component)
        own = tuple(
            part
            for part in conditions
            if part not in before and not isinstance(part, s.Equivalence) and component.variable in s.variables_of(part)
        )
        yield Ender(single, own)


def _joined(parts: tuple[s.Expression, ...]) -> s.Expression | None:
    return None if not parts else parts[0] if len(parts) == 1 else s.And(parts)


def forecast_problems(query: s.QuerySyntax) -> Iterator[tuple[str, s.Node, str, str | None]]:
    """What cannot be forecast, by name."""
    if query.forecast is None:
        return
    place: s.Node = query.components[-1]
    if query.within is None or query.within.unit == "events":
        yield "FORECAST needs a window of time", place, "bad-forecast", "add WITHIN 1 hour, for example"
    if query.pattern is not None:
        hint = "write one query for each alternative"
        yield "FORECAST of a pattern that is more than a sequence", place, "bad-forecast", hint
    if len(query.components) < 2:
        yield "FORECAST of a single event: it waits for nothing", place, "bad-forecast", "name what comes behind it"
    strategies = [each.strategy for each in query.step_selections]
    if s.CONTIGUOUS.intersection([*strategies, *([query.selection.strategy] if query.selection is not None else [])]):
        hint = "use skip_till_next_match or skip_till_any_match"
        yield (
            "FORECAST with contiguity: other events decide, and the model does not know them",
            place,
            "bad-forecast",
            hint,
        )
    elif query.step_selections:
        yield "FORECAST with strategies for single steps", place, "bad-forecast", "let one strategy govern all steps"
    if any(component.until is not None or component.gap is not None for component in query.components):
        yield "FORECAST with UNTIL, AFTER or WITHIN behind a component", place, "bad-forecast", "use the query's WITHIN"
    if query.threshold is not None or query.confidence is not None:
        yield "FORECAST beside THRESHOLD or CONFIDENCE", place, "bad-forecast", "leave the other out"
    if query.output.mode is not s.OutputMode.ALL:
        yield f"FORECAST with OUTPUT {query.output.mode.value}", query.output, "bad-forecast", "leave OUTPUT out"
    if query.returns is not None or query.summary is not None:
        yield (
            "FORECAST returns events",
            place,
            "bad-forecast",
            "leave RETURN and SUMMARISE out, and compute with the rows",
        )
    if query.components[0].negative:
        hint = "begin with an event"
        yield "FORECAST of a pattern that begins with an absence", query.components[0], "bad-forecast", hint
    for component in query.components:
        if component.variable in COLUMNS:
            hint = "choose another variable"
            yield f"'{component.variable}' is a column of this result", component, "bad-forecast", hint
