"""Where a search keeps what conditions read: chosen events in slots, lengths and aggregates in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cepheid.engine.data.columns import storage
from cepheid.engine.program.tables import COUNT, FIRST, GREATEST, LAST, LEAST, SPREAD, SUM
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES, REGISTERS
from cepheid.language.printing import expression_text
from cepheid.language.schema import Schema
from cepheid.language.typing import type_of

_KINDS = {"count": COUNT, "sum": SUM, "least": LEAST, "greatest": GREATEST, "first": FIRST, "last": LAST}
_KINDS |= {"spread": SPREAD}


class Slots:
    """The layout of chosen events: one slot for a single component, four for a Kleene group, then the negated ones."""

    def __init__(self, place_of: Mapping[str, int], groups: Iterable[bool], beside: Iterable[str]) -> None:
        """By place: is it a group? Variables beside these have no place: negated ones, or the event at hand."""
        self.place_of = place_of
        self.first: list[int] = []
        self.last: list[int] = []
        self.current: list[int] = []
        self.previous: list[int] = []
        slots = 0
        for group in groups:
            own = [slots + step for step in range(4)] if group else [slots] * 4
            for places, slot in zip((self.first, self.last, self.current, self.previous), own, strict=True):
                places.append(slot)
            slots = own[-1] + 1
        self.beside = {variable: slots + number for number, variable in enumerate(beside)}
        self.count = slots + len(self.beside)

    def of(self, reference: s.Reference) -> str:
        """The source of a reference: an element of `at`."""
        if reference.variable in self.beside:
            return f"at[{self.beside[reference.variable]}]"
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
    """A register that a search carries along for aggregates."""

    place: int
    register: str
    argument: s.Expression  # over the event at hand
    fraction: bool  # are the argument's values fractions?
    known: int  # where among the whole numbers it is kept how many values were known
    value: int
    counts: bool  # are they counted, or is it only noted whether there are any?

    @property
    def column(self) -> str:
        """The name of the column that its values come from."""
        return self.argument.name if isinstance(self.argument, s.Attribute) else f"={expression_text(self.argument)}"

    @property
    def kind(self) -> int:
        """The register's number, for kernels."""
        return _KINDS[self.register]

    @property
    def fractions(self) -> bool:
        """Is the register itself among the fractions?"""
        return self.fraction or self.register == "spread"

    def values(self) -> range:
        """Where its value is kept; behind a spread lies the mean, behind a whole sum how often it went past 64 bits."""
        width = {"count": 0, "spread": 2, "sum": 1 if self.fraction else 2}.get(self.register, 1)
        return range(self.value, self.value + width)


class Registers:
    """Gives every aggregate that conditions read its registers; the first whole numbers are the lengths of groups."""

    def __init__(self, place_of: Mapping[str, int], schema: Schema, expressions: Iterable[s.Expression]) -> None:
        self.place_of, self.schema = place_of, schema
        self.whole = len(place_of)
        self.number = 0
        self.kept: dict[tuple[int, str], dict[str, Kept]] = {}
        arguments: dict[tuple[int, str], s.Expression] = {}
        needed: dict[tuple[int, str], set[str]] = {}
        for node in (node for expression in expressions for node in s.walk(expression)):
            if isinstance(node, s.Call) and node.function.lower() in AGGREGATES:
                if isinstance(node.arguments[0], s.Reference):
                    continue  # counting events: the length
                key = self._key(node)
                arguments[key] = node.arguments[0]
                needed.setdefault(key, set()).update(AGGREGATES[node.function.lower()].keeps)
        for key, registers in needed.items():
            self.kept[key] = self._keep(key[0], arguments[key], registers)

    def by_place(self) -> list[Kept]:
        """All that is kept, place by place."""
        every = {(kept.place, kept.known, kept.value): kept for own in self.kept.values() for kept in own.values()}
        return sorted(every.values(), key=lambda each: each.place)

    def kept_for(self, node: s.Call) -> list[Kept]:
        """What is kept for an aggregate."""
        own = self.kept[self._key(node)]
        return [own[register] for register in AGGREGATES[node.function.lower()].keeps]

    def source(self, walked: frozenset[str]) -> Callable[[s.Expression], tuple[str, str]]:
        """Source for an aggregate: over all events so far, or over those before an element that is being walked."""

        def source(node: s.Expression) -> tuple[str, str]:
            if isinstance(node, s.Length):
                return f"counted[{self.place_of[node.variable]}]", "False"
            assert isinstance(node, s.Call)
            (argument,) = node.arguments
            (variable,) = s.variables_of(argument)
            before = any(isinstance(n, s.Reference) and n.element is s.Element.BEFORE for n in s.walk(argument))
            whole, number = (self.whole, self.number) if before and variable in walked else (0, 0)
            if isinstance(argument, s.Reference):
                return f"counted[{whole + self.place_of[variable]}]", "False"
            aggregate = AGGREGATES[node.function.lower()]
            found: dict[str, str] = {}
            overflows = ""
            for register, kept in zip(aggregate.keeps, self.kept_for(node), strict=True):
                if register == "sum" and not kept.fractions:
                    overflows = f" or counted[{whole + kept.value + 1}] != 0"
                known = f"counted[{whole + kept.known}]"
                value = f"running[{number + kept.value}]" if kept.fractions else f"counted[{whole + kept.value}]"
                found[register] = known if register == "count" else value
                found.setdefault("known", known)
            value, null = aggregate.source(found)
            return value, f"({null}{overflows})" if overflows else null

        return source

    def _key(self, node: s.Call) -> tuple[int, str]:
        (argument,) = node.arguments
        (variable,) = s.variables_of(argument)
        return self.place_of[variable], expression_text(_single(argument))

    def _keep(self, place: int, argument: s.Expression, needed: set[str]) -> dict[str, Kept]:
        """The registers of one argument. The first one that looks at every value counts them, too, if that is asked."""
        fraction = storage(type_of(argument, self.schema)) == "number"
        found: dict[str, Kept] = {}
        for register in REGISTERS:
            if register not in needed:
                continue
            counting = next((kept for kept in found.values() if kept.counts), None)
            if register == "count" and counting is not None:
                found[register] = counting
                continue
            fractions = fraction or register == "spread"
            value = self.number if fractions else self.whole + 1
            counts = register in ("count", "spread") or (
                "count" in needed and counting is None and register not in ("first", "last")
            )
            kept = Kept(place, register, _single(argument), fraction, self.whole, value, counts)
            found[register] = kept
            self.whole += 1 + (0 if fractions else len(kept.values()))
            self.number += len(kept.values()) if fractions else 0
        return found


def _single(node: s.Expression) -> s.Expression:
    """An aggregate's argument as a value of one event."""
    return s.Reference("event") if isinstance(node, s.Reference) else s.rebuild(node, _single)
