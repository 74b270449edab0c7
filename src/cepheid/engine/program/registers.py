"""Where a search keeps what conditions read: chosen events in slots, lengths and aggregates in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cepheid.engine.data.columns import storage
from cepheid.engine.program.tables import AVERAGE, COUNT, FIRST, GREATEST, LAST, LEAST, SUM
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.printing import expression_text
from cepheid.language.typing import type_of

_KEPT = {"count": COUNT, "sum": SUM, "avg": AVERAGE, "min": LEAST, "max": GREATEST, "first": FIRST, "last": LAST}


class Slots:
    """The layout of chosen events: one slot for a single component, four for a Kleene group, then the negated ones."""

    def __init__(self, bound: BoundQuery) -> None:
        self.place_of = bound.place_of
        self.first: list[int] = []
        self.last: list[int] = []
        self.current: list[int] = []
        self.previous: list[int] = []
        slots = 0
        for component in bound.positives:
            own = [slots + step for step in range(4)] if component.kleene else [slots] * 4
            for places, slot in zip((self.first, self.last, self.current, self.previous), own, strict=True):
                places.append(slot)
            slots = own[-1] + 1
        self.negated = {n.component.variable: slots + j for j, n in enumerate(bound.negations)}
        self.count = slots + len(self.negated)

    def of(self, reference: s.Reference) -> str:
        """The source of a reference: an element of `at`."""
        if reference.variable in self.negated:
            return f"at[{self.negated[reference.variable]}]"
        place = self.place_of[reference.variable]
        match reference.element:
            case s.Element.FIRST:
                return f"at[{self.first[place]}]"
            case s.Element.LAST:
                return f"at[{self.last[place]}]"
            case s.Element.PREVIOUS:
                return f"at[{self.previous[place]}]"
            case _:
                return f"at[{self.current[place]}]"


@dataclass(frozen=True)
class Kept:
    """An aggregate that a search carries along."""

    place: int
    kind: int
    argument: s.Expression  # over the event at hand
    known: int
    value: int
    fraction: bool

    @property
    def column(self) -> str:
        """The name of the column that its values come from."""
        return self.argument.name if isinstance(self.argument, s.Attribute) else f"={expression_text(self.argument)}"


class Registers:
    """Gives every aggregate that conditions read its registers; the first whole numbers are the lengths of groups."""

    def __init__(self, bound: BoundQuery, expressions: Iterable[s.Expression]) -> None:
        self.bound = bound
        self.whole = len(bound.positives)
        self.number = 0
        self.kept: dict[tuple[int, int, str], Kept] = {}
        for expression in expressions:
            self._keep(expression)

    def by_place(self) -> list[Kept]:
        """All that is kept, place by place."""
        return sorted(self.kept.values(), key=lambda each: each.place)

    def kept_for(self, node: s.Call) -> Kept:
        """What is kept for an aggregate."""
        (argument,) = node.arguments
        (variable,) = s.variables_of(argument)
        kind = _KEPT[node.function.lower()]
        return self.kept[self.bound.place_of[variable], kind, expression_text(_single(argument))]

    def source(self, walked: frozenset[str]) -> Callable[[s.Expression], tuple[str, str]]:
        """Source for an aggregate: over all events so far, or over those before an element that is being walked."""

        def source(node: s.Expression) -> tuple[str, str]:
            if isinstance(node, s.Length):
                return f"counted[{self.bound.place_of[node.variable]}]", "False"
            assert isinstance(node, s.Call)
            (argument,) = node.arguments
            (variable,) = s.variables_of(argument)
            before = any(isinstance(n, s.Reference) and n.element is s.Element.BEFORE for n in s.walk(argument))
            whole, number = (self.whole, self.number) if before and variable in walked else (0, 0)
            if isinstance(argument, s.Reference):
                return f"counted[{whole + self.bound.place_of[variable]}]", "False"
            kept = self.kept_for(node)
            known = f"counted[{whole + kept.known}]"
            value = f"running[{number + kept.value}]" if kept.fraction else f"counted[{whole + kept.value}]"
            function = node.function.lower()
            if function == "count":
                return known, "False"
            if function == "avg":
                return f"({value} / {known} if {known} != 0 else nan)", f"{known} == 0"
            return value, f"{known} == 0"

        return source

    def _keep(self, expression: s.Expression) -> None:
        for node in s.walk(expression):
            if not isinstance(node, s.Call) or node.function.lower() not in _KEPT:
                continue
            (argument,) = node.arguments
            if isinstance(argument, s.Reference):
                continue  # counting events: the length
            (variable,) = s.variables_of(argument)
            place, kind, single = self.bound.place_of[variable], _KEPT[node.function.lower()], _single(argument)
            key = place, kind, expression_text(single)
            if key in self.kept:
                continue
            fraction = storage(type_of(argument, self.bound.schema)) == "number"
            value = self.number if fraction else self.whole + 1
            self.kept[key] = Kept(place, kind, single, self.whole, value, fraction)
            self.whole += 1 if fraction else 2
            self.number += fraction


def _single(node: s.Expression) -> s.Expression:
    """An aggregate's argument as a value of one event."""
    return s.Reference("event") if isinstance(node, s.Reference) else s.rebuild(node, _single)
