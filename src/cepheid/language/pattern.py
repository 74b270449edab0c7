"""The pattern algebra: what a pattern is made of, whatever language it was written in.

Nodes are frozen data. A dialect's parser makes them; automata and programs are made of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]  # character offsets into the text; the second one is exclusive
NOWHERE: Span = (0, 0)


@dataclass(frozen=True)
class Single:
    """One row or event of a label."""

    label: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Choice:
    """One of the parts, the earlier ones preferred."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Repeat:
    """A part several times: as often as possible if greedy, else as seldom; `most` None means without end."""

    part: Pattern
    least: int
    most: int | None
    greedy: bool = True
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class AnyOrder:
    """All parts, in any order; the order in which they are written is preferred (PERMUTE)."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Excluded:
    """A part whose rows belong to the match, but not to the output."""

    part: Pattern
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Start:
    """Only before the first row of a partition."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class End:
    """Only after the last row of a partition."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Empty:
    """No row at all."""

    span: Span = field(default=NOWHERE, compare=False)


Pattern: TypeAlias = Single | Sequence | Choice | Repeat | AnyOrder | Excluded | Start | End | Empty


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The parts a pattern is directly made of."""
    match pattern:
        case Sequence(parts=parts) | Choice(parts=parts) | AnyOrder(parts=parts):
            return parts
        case Repeat(part=part) | Excluded(part=part):
            return (part,)
    return ()


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and everything in it, from left to right."""
    yield pattern
    for part in children(pattern):
        yield from walk(part)


def labels_of(pattern: Pattern) -> tuple[str, ...]:
    """The labels, each once, in the order in which they are written.

    >>> labels_of(Sequence((Single("A"), Repeat(Choice((Single("B"), Single("A"))), 0, None))))
    ('A', 'B')
    """
    return tuple(dict.fromkeys(node.label for node in walk(pattern) if isinstance(node, Single)))


def may_be_empty(pattern: Pattern) -> bool:
    """Can the pattern hold without taking a row?

    >>> may_be_empty(Repeat(Single("A"), 0, None)), may_be_empty(Sequence((Start(), Single("A"))))
    (True, False)
    """
    match pattern:
        case Single():
            return False
        case Sequence(parts=parts) | AnyOrder(parts=parts):
            return all(may_be_empty(part) for part in parts)
        case Choice(parts=parts):
            return any(may_be_empty(part) for part in parts)
        case Repeat(part=part, least=least):
            return least == 0 or may_be_empty(part)
        case Excluded(part=part):
            return may_be_empty(part)
    return True


def orders(pattern: AnyOrder) -> Choice:
    """Every order of the parts, in order of preference: lexicographic in the order they are written.

    >>> [[part.label for part in order.parts] for order in orders(AnyOrder((Single("A"), Single("B")))).parts]
    [['A', 'B'], ['B', 'A']]
    """
    return Choice(tuple(Sequence(order) for order in permutations(pattern.parts)), pattern.span)
