"""OUTPUT PARTIAL of patterns that are expressions: the runs that began and whose window passed, as queries.

A run stands for all linear patterns that agree with what it took. It is given up if none of them was complete, none
could take anything until the window had passed, and no negated event ended all of them: a match of what it took,
followed by the absence of each event that one of them waited for, and of what must not come before that event. So each
beginning of a linear pattern that is no pattern itself is a query with absence at its end. Under skip_till_next_match a
run does not pass what another pattern could take: these events are absent in between, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product

from cepheid.language import syntax as s
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Sequence, Single, is_list, walk

Linear = tuple[str, ...]  # variables, negated ones included
Change = Callable[[s.Expression, str], s.Expression | None]
MOST_LINEAR = 200


@dataclass(frozen=True)
class Beginning:
    """What a run took, with the negated components in between, and what it may take next, by variable."""

    taken: Linear
    awaited: tuple[str, ...]
    ended_by: tuple[frozenset[str], ...] = ()  # negated components before what comes next, of each pattern that goes on


def endless_groups(pattern: Pattern) -> Iterator[Repeat]:
    """The parts that a linear pattern cannot have as one component: groups with rounds, and counted events."""
    for node in walk(pattern):
        counted = isinstance(node, Repeat) and (node.least > 1 or node.most is not None)
        if isinstance(node, Repeat) and is_list(node) and (counted or not isinstance(node.part, Single)):
            yield node


def linear_variables(pattern: Pattern) -> list[Linear]:
    """The linear patterns, a group of events of one component being one variable.

    >>> linear_variables(Sequence((Single("a"), Choice((Single("b"), Repeat(Single("c"), 0, None))))))
    [('a', 'b'), ('a',), ('a', 'c')]
    """
    match pattern:
        case Single(label=label):
            return [(label,)]
        case Sequence(parts=parts):
            return [sum(chosen, ()) for chosen in product(*map(linear_variables, parts))]
        case Choice(parts=parts):
            return list(dict.fromkeys(linear for part in parts for linear in linear_variables(part)))
        case AnyOrder(parts=parts):
            orders = (linear_variables(Sequence(order)) for order in permutations(parts))
            return list(dict.fromkeys(linear for order in orders for linear in order))
        case Repeat(part=part, least=least):
            return [*([()] if least == 0 else []), *linear_variables(part)]
    return [()]


def beginnings(query: s.QuerySyntax) -> list[Beginning]:
    """The beginnings of linear patterns with which a run may be given up."""
    negated = {component.variable for component in query.components if component.negative}
    patterns = linear_variables(query.pattern)
    complete = {tuple(name for name in linear if name not in negated) for linear in patterns}
    found: dict[Linear, list[tuple[str, frozenset[str]]]] = {}
    for linear in patterns:
        positive = [place for place, name in enumerate(linear) if name not in negated]
        for here, following in pairwise(positive):
            between = frozenset(linear[here + 1 : following])
            ends = between - depending(query, between, frozenset(linear[following:]) - negated)
            found.setdefault(linear[: here + 1], []).append((linear[following], ends))
    return [
        Beginning(taken, tuple(dict.fromkeys(name for name, _ in ways)), tuple(dict.fromkeys(ends for _, ends in ways)))
        for taken, ways in found.items()
        if tuple(name for name in taken if name not in negated) not in complete
    ]


def depending(query: s.QuerySyntax, negated: frozenset[str], coming: frozenset[str]) -> frozenset[str]:
    """The negated components with a condition that mentions an event to come: they end no wait by themselves."""
    mentioned = [s.variables_of(condition) for condition in conditions_of(query.where)]
    return frozenset(name for name in negated if any(name in each and each & coming for each in mentioned))


def partial_query(query: s.QuerySyntax, beginning: Beginning, about: Change) -> s.QuerySyntax:
    """The runs that began so and were given up; `about` says what a condition asks of an event that is not there."""
    by_name = {component.variable: component for component in query.components}
    competes = query.selection is not None and query.selection.strategy is s.Strategy.SKIP_TILL_NEXT
    components: list[s.Component] = []
    conditions: list[s.Expression] = []
    before: list[str] = []

    def absent(variable: str, name: str) -> None:
        components.append(replace(by_name[variable], variable=name, negative=True, kleene=False, gap=None, until=None))
        for condition in conditions_of(query.where):
            mentioned = s.variables_of(condition)
            if variable in mentioned and mentioned <= {variable, *before}:
                changed = about(condition, variable)
                if changed is not None:
                    conditions.append(_renamed(changed, variable, name))

    for name in beginning.taken:
        own = by_name[name]
        open_group = bool(before) and by_name[before[-1]].kleene
        if not own.negative and competes and before and not open_group:
            for number, other in enumerate(_others(query, tuple(before), name)):
                absent(other, f"{other} before {name} {number}")
        components.append(own)
        if not own.negative:
            before.append(name)
    for name in beginning.awaited:
        absent(name, name)
    ends = beginning.ended_by[0] if len(beginning.ended_by) == 1 else frozenset()
    components += [by_name[name] for name in sorted(ends)]
    known = frozenset(beginning.taken) | ends
    for condition in conditions_of(query.where):
        if isinstance(condition, s.Equivalence) or (s.variables_of(condition) <= known and s.variables_of(condition)):
            conditions.append(condition)
    selection = query.selection
    if selection is not None:
        selection = replace(selection, variables=tuple(component.variable for component in components))
    where = None if not conditions else conditions[0] if len(conditions) == 1 else s.And(tuple(conditions))
    return replace(
        query.in_order(tuple(components)),
        sequence=True,
        where=where,
        selection=selection,
        output=s.Output(),
    )


def _others(query: s.QuerySyntax, before: Linear, name: str) -> list[str]:
    """What other patterns could take where a run took one event."""
    negated = {component.variable for component in query.components if component.negative}
    found: dict[str, None] = {}
    for linear in linear_variables(query.pattern):
        positive = tuple(each for each in linear if each not in negated)
        if positive[: len(before)] == before and len(positive) > len(before) and positive[len(before)] != name:
            found[positive[len(before)]] = None
    return list(found)


def conditions_of(where: s.Expression | None) -> tuple[s.Expression, ...]:
    """The conditions that are joined by AND."""
    if where is None:
        return ()
    return where.operands if isinstance(where, s.And) else (where,)


def _renamed(node: s.Expression, old: str, new: str) -> s.Expression:
    if isinstance(node, s.Reference) and node.variable == old:
        return replace(node, variable=new)
    return s.rebuild(node, lambda inner: _renamed(inner, old, new))
