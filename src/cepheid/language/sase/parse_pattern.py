"""Parts of a pattern as the parser meets them: each a pattern and the components that are its leaves."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace

from cepheid.language import syntax as s
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Sequence, Single, is_list, labels_of, walk

PLUS, STAR, OPTIONAL = (1, None), (0, None), (0, 1)


@dataclass(frozen=True)
class Part:
    """A piece of the pattern with its leaves in the order of the text."""

    pattern: Pattern
    components: tuple[s.Component, ...]


def single(component: s.Component, quantifier: tuple[int, int | None] | None) -> Part:
    """One component, as often as its quantifier says."""
    leaf: Pattern = Single(component.variable, span=component.span)
    if quantifier is not None:
        leaf = Repeat(leaf, *quantifier, span=component.span)
    return Part(leaf, (component,))


def in_sequence(parts: Several[Part], span: s.Span) -> Part:
    """Parts one after the other; sequences inside sequences are one."""
    return _flat(Sequence, parts, span)


def one_of(parts: Several[Part], span: s.Span) -> Part:
    """One of the parts."""
    return _flat(Choice, parts, span)


def _flat(kind: type[Sequence] | type[Choice], parts: Several[Part], span: s.Span) -> Part:
    flat: list[Pattern] = []
    for part in parts:
        flat.extend(part.pattern.parts if isinstance(part.pattern, kind) else [part.pattern])
    return Part(flat[0] if len(flat) == 1 else kind(tuple(flat), span=span), _leaves(parts))


def all_of(parts: Several[Part], span: s.Span) -> Part:
    """All of the parts, in any order."""
    patterns = tuple(part.pattern for part in parts)
    return Part(patterns[0] if len(patterns) == 1 else AnyOrder(patterns, span=span), _leaves(parts))


def repeated(part: Part, quantifier: tuple[int, int | None] | None, span: s.Span) -> Part:
    """A group as often as its quantifier says."""
    return part if quantifier is None else Part(Repeat(part.pattern, *quantifier, span=span), part.components)


def _leaves(parts: Several[Part]) -> tuple[s.Component, ...]:
    return tuple(component for part in parts for component in part.components)


def marked(part: Part) -> tuple[s.Component, ...]:
    """The components, those of repeated parts marked as lists."""
    lists = {label for node in walk(part.pattern) if is_list(node) for label in labels_of(node)}
    return tuple(replace(c, kleene=c.kleene if c.negative else c.variable in lists) for c in part.components)
