"""What several queries over the same events need is worked out once.

Hundreds of small queries in one step of a stream differ in a constant or a window, and read the same events by the same
types, keys and conditions on one event. Within a block of `sharing` whatever is asked for a second time under the same
key is handed out again. Keys name what the answer depends on; arrays that are shared are read, never written.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

from cepheid.budget import set_to
from cepheid.language import syntax as s
from cepheid.remembered import Remembered

Result = TypeVar("Result")
Kept = dict[tuple[int, Hashable], tuple[object, Any]]
MOST_KEPT = 10_000  # texts of conditions that a process remembers
_texts = Remembered[str](most=MOST_KEPT)
_kept: ContextVar[Kept | None] = ContextVar("cepheid_shared", default=None)


def sharing() -> AbstractContextManager[None]:
    """What queries in this block find out of the same events is kept till its end, or that of the block around it.

    >>> made, events = [], object()
    >>> with sharing():
    ...     for _ in range(2):
    ...         with sharing():
    ...             once(events, "x", lambda: made.append(1))
    >>> made
    [1]
    """
    around = _kept.get()
    return set_to(_kept, {} if around is None else around)


def once(events: object, key: Hashable, make: Callable[[], Result]) -> Result:
    """What `make` returns for some events, or returned before for the same events and key.

    >>> made, events = [], object()
    >>> with sharing():
    ...     [once(events, "x", lambda: made.append(1) or len(made)) for _ in range(3)]
    [1, 1, 1]
    >>> [once(events, "x", lambda: made.append(1) or len(made)) for _ in range(2)]
    [2, 3]
    """
    kept = _kept.get()
    if kept is None:
        return make()
    known = id(events), key
    if known not in kept:
        kept[known] = events, make()  # the events, too, lest another object gets their id
    found: Result = kept[known][1]
    return found


def is_shared() -> bool:
    """Do several queries look at the same events?"""
    return _kept.get() is not None


def told_of_any(expression: s.Expression) -> str:
    """A condition on one event as text, whatever the query calls that event. (1 and 1.0 are equal, their texts not.)

    >>> told_of_any(s.Attribute(s.Reference("a"), "x")) == told_of_any(s.Attribute(s.Reference("b"), "x"))
    True
    """
    return _texts.of(expression, lambda: repr(of_any_variable(expression)))


def of_any_variable(expression: s.Expression) -> s.Expression:
    """The same of an event, whatever the query calls it."""
    if isinstance(expression, s.Reference):
        return s.Reference("", expression.element)
    return s.rebuild(expression, of_any_variable)
