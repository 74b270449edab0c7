"""FORECAST: the partial matches of a pattern, as queries of their own, and what cannot be forecast.

A partial match that holds the first components is a match of the pattern up to there. It ends when an event comes that
an awaited component could take, or one that a negated component before the next event forbids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from cepheid.language import syntax as s
from cepheid.language.partial import begun_query, known_conditions
from cepheid.language.partial_expressions import Beginning as Begun
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Sequence, Single, is_list, labels_of, walk
from cepheid.language.pattern import may_be_empty as vanishes

LEAST = 1e-6  # partial matches with unseen events in between that are less probable than so are not listed
MOST_WAYS = 64  # in which an expression may go on; each has a table of its own
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
    taken: tuple[str, ...]  # the variables that are held, in order
    rest: tuple[Pattern, ...]  # what is awaited, one part after the other, negated components included
    waiting_for: str  # what comes next, or the negated component whose absence must last
    enders: tuple[Ender, ...]


def forecast_beginnings(query: s.QuerySyntax) -> list[Beginning]:
    """All ways to hold a part of a pattern that is no match yet.

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
    >>> text = "PATTERN SEQ(A a, (B b | C c), D? d, E e, F? f) WITHIN 9 FORECAST 80%"
    >>> [(each.taken, each.waiting_for) for each in forecast_beginnings(parse(text))][:4]
    [(('a',), 'b or c'), (('a', 'b'), 'd or e'), (('a', 'c'), 'd or e'), (('a', 'b', 'd'), 'e')]
    """
    by_name = {component.variable: component for component in query.components}
    negated = frozenset(name for name, component in by_name.items() if component.negative)
    found = []
    begun: list[tuple[tuple[str, ...], tuple[Pattern, ...]]] = [((), (query.pattern,))]
    for taken, parts in begun:
        nexts = list(_nexts(parts, negated))
        begun += [((*taken, *absent, name), behind) for name, absent, behind in nexts]
        rest = _without_trailing(parts)
        if not taken or not rest:
            continue
        awaited = tuple(by_name[name] for part in rest for name in labels_of(part))
        waiting = [name for name, _, _ in nexts if any(component.variable == name for component in awaited)]
        known = tuple(name for name in taken if name not in negated)
        found.append(
            Beginning(
                _begun(query, taken),
                known,
                rest,
                " or ".join(waiting) or awaited[0].variable,
                tuple(_enders(query, taken, awaited)),
            )
        )
    return found


def _nexts(
    parts: tuple[Pattern, ...], negated: frozenset[str]
) -> Iterator[tuple[str, tuple[str, ...], tuple[Pattern, ...]]]:
    """What may come next: a variable, the negated ones before it, and what is awaited behind it."""
    absent: tuple[str, ...] = ()
    for place, part in enumerate(parts):
        behind = parts[place + 1 :]
        match part:
            case Single(label=label) if label in negated:
                absent = (*absent, label)
                continue
            case Single(label=label):
                yield label, absent, behind
            case Sequence(parts=inner):
                yield from ((name, (*absent, *more), (*rest, *behind)) for name, more, rest in _nexts(inner, negated))
            case Choice(parts=inner):
                for each in inner:
                    yield from ((name, absent, (*rest, *behind)) for name, _, rest in _nexts((each,), negated))
            case Repeat(part=each):
                yield from ((name, absent, (*rest, *behind)) for name, _, rest in _nexts((each,), negated))
        if not vanishes(part):
            return


def _without_trailing(parts: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """What must still come: the match is complete before optional parts at the end."""
    flat: list[Pattern] = []
    for part in parts:
        flat += part.parts if isinstance(part, Sequence) else [part]
    while flat and vanishes(flat[-1]):
        flat.pop()
    return tuple(flat)


def _begun(query: s.QuerySyntax, taken: tuple[str, ...]) -> s.QuerySyntax:
    """The query for all that hold some components, with the negated ones between them."""
    plain = replace(query, forecast=None, threshold=None, returns=None)
    if not query.is_linear:
        return begun_query(plain, Begun(taken, ()))
    last = query.components[len(taken) - 1]
    where = known_conditions(query, frozenset(taken), open_group=last.variable if last.kleene else None)
    selection = query.selection
    if selection is not None:
        selection = replace(selection, variables=tuple(name for name in selection.variables if name in taken))
    held = plain.in_order(query.components[: len(taken)])
    return replace(held, sequence=True, where=_joined(where), selection=selection)


def _enders(query: s.QuerySyntax, known: tuple[str, ...], awaited: tuple[s.Component, ...]) -> Iterator[Ender]:
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
            if not isinstance(part, s.Equivalence) and component.variable in s.variables_of(part)
        )
        yield Ender(single, own)


def _joined(parts: tuple[s.Expression, ...]) -> s.Expression | None:
    return None if not parts else parts[0] if len(parts) == 1 else s.And(parts)


def _unforeseen(query: s.QuerySyntax) -> str | None:
    """What an expression has that the model says nothing about."""
    if query.is_linear:
        return None
    negated = frozenset(component.variable for component in query.components if component.negative)
    for node in walk(query.pattern):
        if isinstance(node, AnyOrder):
            return "AND(...): the model covers a single order"
        if isinstance(node, Repeat) and is_list(node) and not (isinstance(node.part, Single) and _is_open(node)):
            return "rounds of a group or numbers of events"
        if isinstance(node, Choice | Repeat) and negated & set(labels_of(node)):
            return "a negated component inside an optional part or an alternative"
        if isinstance(node, Choice) and any(_begins_open(part) for part in node.parts):
            return "an alternative that begins with an optional part"
    if _count(query.pattern) > MOST_WAYS:
        return "very many alternatives"
    if any(_absent_behind_optional(each.rest, negated) for each in forecast_beginnings(query)):
        return "a negated component after an optional part"
    return None


def _begins_open(part: Pattern) -> bool:
    return vanishes(part) or (isinstance(part, Sequence) and _begins_open(part.parts[0]))


def _absent_behind_optional(parts: tuple[Pattern, ...], negated: frozenset[str]) -> bool:
    """Does something that must not happen belong to some of the ways to go on, and not to others?"""
    optional = False
    for part in parts:
        absent = isinstance(part, Single) and part.label in negated
        if absent and optional:
            return True
        optional |= vanishes(part)
        if not absent and not vanishes(part):
            break
    return False


def _is_open(node: Repeat) -> bool:
    return node.least <= 1 and node.most is None


def _count(pattern: Pattern) -> int:
    """Into how many ways to go on a pattern is written out."""
    match pattern:
        case Sequence(parts=parts):
            return prod(_count(part) for part in parts)
        case Choice(parts=parts):
            return 1 + sum(_count(part) for part in parts)
        case Repeat(part=part, least=0):
            return 1 + _count(part)
    return 1


def forecast_problems(query: s.QuerySyntax) -> Iterator[tuple[str, s.Node, str, str | None]]:
    """What cannot be forecast, by name."""
    if query.forecast is None:
        return
    place: s.Node = query.components[-1]
    if query.within is None or query.within.unit == "events":
        yield "FORECAST needs a window of time", place, "bad-forecast", "add WITHIN 1 hour, for example"
    named = _unforeseen(query)
    if named is not None:
        yield f"FORECAST with {named}", place, "bad-forecast", "write one query for each alternative"
    elif not forecast_beginnings(query):
        yield "FORECAST of a single event: nothing is open", place, "bad-forecast", "add the event that follows it"
    strategies = [each.strategy for each in query.step_selections]
    if s.CONTIGUOUS.intersection([*strategies, *([query.selection.strategy] if query.selection is not None else [])]):
        hint = "use skip_till_next_match or skip_till_any_match"
        yield (
            "FORECAST with contiguity: it depends on other events, which the model does not cover",
            place,
            "bad-forecast",
            hint,
        )
    elif query.step_selections:
        yield "FORECAST with strategies for single steps", place, "bad-forecast", "use one strategy for all steps"
    if any(component.until is not None or component.gap is not None for component in query.components):
        yield "FORECAST with UNTIL, AFTER or WITHIN after a component", place, "bad-forecast", "use the query's WITHIN"
    if query.threshold is not None or query.confidence is not None:
        yield "FORECAST with THRESHOLD or CONFIDENCE", place, "bad-forecast", "leave the other out"
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
