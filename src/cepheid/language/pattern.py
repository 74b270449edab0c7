"""The pattern algebra: what a pattern is made of, whatever language it was written in.

Nodes are frozen data. A dialect's parser makes them; automata and programs are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]  # character offsets into the text; the second one is exclusive
NOWHERE: Span = (0, 0)


@dataclass(frozen=True)
class Single:
    """One row or event of a label."""

    label: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Choice:
    """One of the parts, the earlier ones preferred."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Repeat:
    """A part several times: as often as possible if greedy, else as seldom; `most` None means without end."""

    part: Pattern
    least: int
    most: int | None
    greedy: bool = True
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class AnyOrder:
    """All parts, in any order; the order in which they are written is preferred (PERMUTE)."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Excluded:
    """A part whose rows belong to the match, but not to the output."""

    part: Pattern
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Start:
    """Only before the first row of a partition."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class End:
    """Only after the last row of a partition."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Empty:
    """No row at all."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


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


def exposed(pattern: Pattern, negative: frozenset[str], *, last: bool = False) -> tuple[frozenset[str], bool]:
    """The negative labels that can come before every other one (or, with `last`, behind), and can all others vanish?

    >>> absent, b = frozenset("N"), Single("B")
    >>> exposed(Sequence((Repeat(b, 0, 1), Single("N"), Single("A"))), absent)
    (frozenset({'N'}), False)
    >>> exposed(Sequence((Single("A"), Single("N"), b)), absent, last=True)
    (frozenset(), False)
    """
    match pattern:
        case Single(label=label):
            return (frozenset({label}), True) if label in negative else (frozenset(), False)
        case Sequence(parts=parts):
            found: frozenset[str] = frozenset()
            for part in reversed(parts) if last else parts:
                here, vanishes = exposed(part, negative, last=last)
                found |= here
                if not vanishes:
                    return found, False
            return found, True
        case Choice(parts=parts) | AnyOrder(parts=parts):
            inside = [exposed(part, negative, last=last) for part in parts]
            vanishes = all(gone for _, gone in inside) if isinstance(pattern, AnyOrder) else any(g for _, g in inside)
            return frozenset().union(*(here for here, _ in inside)), vanishes
        case Repeat(part=part, least=least):
            here, vanishes = exposed(part, negative, last=last)
            return here, vanishes or least == 0
        case Excluded(part=part):
            return exposed(part, negative, last=last)
    return frozenset(), True


def edge(pattern: Pattern, *, last: bool = False) -> frozenset[str]:
    """The labels that the first row of a match can have (or, with `last`, the last one).

    >>> sorted(edge(Sequence((Repeat(Single("A"), 0, 1), Choice((Single("B"), Single("C"))), Single("D")))))
    ['A', 'B', 'C']
    """
    match pattern:
        case Single(label=label):
            return frozenset({label})
        case Sequence(parts=parts):
            found: frozenset[str] = frozenset()
            for part in reversed(parts) if last else parts:
                found |= edge(part, last=last)
                if not may_be_empty(part):
                    break
            return found
    return frozenset().union(*(edge(part, last=last) for part in children(pattern)))


def fewest(pattern: Pattern) -> int:
    """How many rows a match has at least.

    >>> fewest(Sequence((Single("A"), Repeat(Single("B"), 2, None), Repeat(Single("C"), 0, 1))))
    3
    """
    match pattern:
        case Single():
            return 1
        case Sequence(parts=parts) | AnyOrder(parts=parts):
            return sum(map(fewest, parts))
        case Choice(parts=parts):
            return min(map(fewest, parts))
        case Repeat(part=part, least=least):
            return least * fewest(part)
        case Excluded(part=part):
            return fewest(part)
    return 0


def without(pattern: Pattern, labels: frozenset[str]) -> Pattern:
    """The pattern with some labels taking nothing.

    >>> without(Sequence((Single("A"), Single("N"))), frozenset("N")).parts[1]
    Empty()
    """
    return with_leaves(pattern, lambda leaf: Empty() if leaf.label in labels else leaf)


def with_leaves(pattern: Pattern, change: Callable[[Single], Pattern]) -> Pattern:
    """The pattern with each label changed, from left to right."""
    match pattern:
        case Single():
            return change(pattern)
        case Sequence(parts=parts) | Choice(parts=parts) | AnyOrder(parts=parts):
            return replace(pattern, parts=tuple(with_leaves(part, change) for part in parts))
        case Repeat(part=part) | Excluded(part=part):
            return replace(pattern, part=with_leaves(part, change))
    return pattern


def is_list(pattern: Pattern) -> bool:
    """Does it make its variables lists? All repetition does but `?`.

    >>> is_list(Repeat(Single("A"), 0, 1)), is_list(Repeat(Single("A"), 1, 1)), is_list(Single("A"))
    (False, True, False)
    """
    return isinstance(pattern, Repeat) and (pattern.least, pattern.most) != (0, 1)


def orders(pattern: AnyOrder, count: int | None = None) -> Choice:
    """Every order of the parts, in order of preference: lexicographic in the order they are written; or of `count`.

    >>> [[part.label for part in order.parts] for order in orders(AnyOrder((Single("A"), Single("B")))).parts]
    [['A', 'B'], ['B', 'A']]
    """
    return Choice(tuple(Sequence(order) for order in permutations(pattern.parts, count)), pattern.span)


def joined_repeats(pattern: Pattern) -> Pattern:
    """The pattern with neighbours that repeat the same label as one part: they take the same rows in the same order.

    >>> joined_repeats(Sequence((Repeat(Single("A"), 0, 1), Repeat(Single("A"), 0, 1), Single("A"))))
    Repeat(part=Single(label='A'), least=1, most=3, greedy=True)
    """
    match pattern:
        case Choice(parts=parts) | AnyOrder(parts=parts):
            return replace(pattern, parts=tuple(joined_repeats(part) for part in parts))
        case Repeat(part=part) | Excluded(part=part):
            return replace(pattern, part=joined_repeats(part))
        case Sequence(parts=parts):
            found: list[Pattern] = []
            for part in map(joined_repeats, parts):
                both = _joined(found[-1], part) if found else None
                found[-1:] = [both] if both else [*found[-1:], part]
            return found[0] if len(found) == 1 else replace(pattern, parts=tuple(found))
    return pattern


def _joined(one: Pattern, other: Pattern) -> Repeat | None:
    """Two parts as one, if both repeat one label and prefer more rows, or both fewer."""
    left, right = (part if isinstance(part, Repeat) else Repeat(part, 1, 1, span=part.span) for part in (one, other))
    if not isinstance(left.part, Single) or left.part != right.part:
        return None
    prefers = {each.greedy for each in (left, right) if each.least != each.most}
    if len(prefers) == 2:
        return None
    most = left.most + right.most if left.most is not None and right.most is not None else None
    return Repeat(left.part, left.least + right.least, most, prefers != {False}, left.span)
