"""The ways on through a pattern that is an expression: from what was taken last to what may come next.

The rest of a pattern is a stack of parts, the next one first, with the round of every repeated part that is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from cepheid.budget import checkpoint
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Sequence, Single, exposed, is_list, labels_of

MOST_WAYS = 2000


class TooManyTransitionsError(Exception):
    """The pattern has more states than are told apart."""


@dataclass(frozen=True)
class Round:
    """So many rounds of a repeated part are over; where there is no end, no more are counted than are needed."""

    repeat: Repeat
    count: int


@dataclass(frozen=True)
class Others:
    """The parts of an AND that have not come yet."""

    parts: tuple[Pattern, ...]


Frame: TypeAlias = Pattern | Round | Others
Rest: TypeAlias = tuple[Frame, ...]


@dataclass(frozen=True)
class Transition:
    """A step through the rest of a pattern to its next event, or to its end."""

    variable: str | None  # None: the pattern is complete
    rest: Rest
    passed: tuple[str, ...]  # the negated components in between
    entered: frozenset[Repeat]  # the repeated parts of which a round begins
    further: bool  # is one of these a further round?


def transitions(rest: Rest, negative: frozenset[str]) -> Iterator[Transition]:
    """Every transition through the rest of a pattern."""

    def on(rest: Rest, passed: tuple[str, ...], entered: frozenset[Repeat], further: bool) -> Iterator[Transition]:
        checkpoint()
        if not rest:
            yield Transition(None, (), passed, entered, further)
            return
        head, tail = rest[0], rest[1:]
        match head:
            case Single(label=label) if label in negative:
                yield from on(tail, (*passed, label), entered, further)
            case Single(label=label):
                yield Transition(label, tail, passed, entered, further)
            case Sequence(parts=parts):
                yield from on((*parts, *tail), passed, entered, further)
            case Choice(parts=parts):
                for part in parts:
                    yield from on((part, *tail), passed, entered, further)
            case AnyOrder(parts=parts):
                yield from on((Others(parts), *tail), passed, entered, further)
            case Others(parts=()):
                yield from on(tail, passed, entered, further)
            case Others(parts=parts):
                for number, part in enumerate(parts):
                    left = Others((*parts[:number], *parts[number + 1 :]))
                    yield from on((part, left, *tail), passed, entered, further)
            case Repeat(part=part) if not is_list(head):
                yield from on(tail, passed, entered, further)
                yield from on((part, *tail), passed, entered, further)
            case Repeat():
                yield from on((Round(head, 0), *tail), passed, entered, further)
            case Round(repeat=repeat, count=count):
                if repeat in entered:
                    return  # a round takes at least one event
                if count >= repeat.least or vanishes(repeat.part, negative):
                    yield from on(tail, passed, entered, further)
                if repeat.most is None or count < repeat.most:
                    begun = count + 1 if repeat.most is not None else min(count + 1, max(repeat.least, 1))
                    inside = (repeat.part, Round(repeat, begun), *tail)
                    yield from on(inside, passed, entered | {repeat}, further or count > 0)
            case _:
                raise TypeError("parts of row patterns")

    return on(rest, (), frozenset(), False)


def vanishes(pattern: Pattern, negative: frozenset[str]) -> bool:
    """Can a part be there without taking an event?"""
    return exposed(pattern, negative)[1]


def awaited_sets(pattern: Pattern, negative: frozenset[str]) -> dict[frozenset[Rest], tuple[str, ...]]:
    """What a run that is not complete may wait for, by what is left of the patterns that agree with it.

    >>> group = Repeat(Sequence((Single("b"), Single("c"))), 1, 2)
    >>> sorted(set(awaited_sets(Sequence((Single("a"), group, Single("d"))), frozenset()).values()))
    [('b',), ('b', 'd'), ('c',), ('d',)]
    """
    start: frozenset[Rest] = frozenset({(pattern,)})
    seen, pending = {start}, [start]
    found: dict[frozenset[Rest], tuple[str, ...]] = {}
    while pending:
        here = pending.pop()
        on, complete = ways_on(here, negative)
        if here != start and not complete:
            found[here] = tuple(name for name in labels_of(pattern) if name in on)
        for rests in on.values():
            if rests not in seen:
                seen.add(rests)
                pending.append(rests)
                if len(seen) > MOST_WAYS:
                    raise TooManyTransitionsError
    return found


def ways_on(rests: frozenset[Rest], negative: frozenset[str]) -> tuple[dict[str, frozenset[Rest]], bool]:
    """What is left after each variable that may come next, and whether the pattern is complete here."""
    found: dict[str, set[Rest]] = {}
    complete = False
    for rest in rests:
        for transition in transitions(rest, negative):
            if transition.variable is None:
                complete = True
            else:
                found.setdefault(transition.variable, set()).add(transition.rest)
    return {name: frozenset(left) for name, left in found.items()}, complete
